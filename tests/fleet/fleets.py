"""Made-up results of fleets, in the format of fleet.json, as large as wanted."""

import bisect
import datetime

import numpy as np

from armid.files import checked
from armid.files import plain as plain_data
from armid.fleet.promise import Promise
from armid.fleet.result import FleetResult, WatchEntry
from armid.fleet.watch import ordered, runs

PROMISE = Promise(1e-3, True, "promised", threshold=4.9, freedom=30.0, scores=4000)
WITHDRAWN = Promise(1e-3, False, "too-few-scores", freedom=7.0, scores=26)
FIRST = datetime.date(2026, 1, 5)
JOINTS = 7
LINK = ("Ixx", "Ixy", "Ixz", "Iyz", "Izz", "mx", "my")
FRICTION = {
    "fv": ("viscous friction", "friction", "N m s/rad", True, 0.03, -0.012),
    "fc": ("Coulomb friction", "friction", "N m", True, 0.02, -0.004),
    "fo": ("torque offset", "offset", "N m", False, 0.05, None),
}
REASONS = (
    "is empty",
    "cannot be read (Parquet magic bytes not found in footer)",
    "has 4 joints where pa10 has 7",
    "The effort of turn is 0 in all rows.",
)


def plain(values, digits=6):
    """Numbers for JSON, quickly."""
    return np.round(values, digits).tolist()


def made_up(arms: int, days: int, *, faults: int = 6, lost: int = 3, seed: int = 0) -> FleetResult:
    """A fleet with some faults of all kinds and some recordings that could not be used."""
    rng = np.random.default_rng(seed)
    watched = [
        {
            "name": f"{letters}{joint + 1}",
            "what": f"{what} of joint {joint + 1}",
            "joint": joint + 1,
            "unit": unit,
            "relative": relative,
            "day_to_day": usual,
            "per_degree": slope,
        }
        for joint in range(JOINTS)
        for letters, (what, _, unit, relative, usual, slope) in FRICTION.items()
    ]
    watched.append(
        {
            "name": "payload",
            "what": "mass in the hand",
            "joint": None,
            "unit": "kg",
            "relative": False,
            "day_to_day": 0.02,
            "per_degree": None,
        }
    )
    dates = tuple(str(FIRST + datetime.timedelta(days=day)) for day in range(days))
    names = [f"{letters}{joint + 1}" for joint in range(JOINTS) for letters in LINK]
    names += [one["name"] for one in watched[:-1]]
    fleet = _Fleet(rng, [f"arm{index + 1:03d}" for index in range(arms)], dates, watched, names)
    for index, arm in enumerate(rng.permutation(arms)[: min(faults, arms)]):
        fleet.spoil(int(arm), index % 7)
    fleet.lose(lost)
    return fleet.result()


def as_result(data: dict) -> FleetResult:
    """The entries of fleet.json as a result."""
    return checked(data, FleetResult, "fleet.json")


def astray(data: dict, day: str, arm: int, size: float = 0.1) -> dict:
    """The same fleet with one more day, far away, on which only one arm has a recording.

    Args:
        data: as `FleetResult.to_data` gives it.
        day: ISO date.
        arm: index.
        size: deviation of all that is watched on that day.
    """
    at = bisect.bisect(data["dates"], day)
    arms = []
    for index, one in enumerate(data["arms"]):
        series = one["series"] and {**one["series"], "days": [d + (d >= at) for d in one["series"]["days"]]}
        if index == arm:
            where = bisect.bisect(series["days"], at)
            series["days"] = [*series["days"][:where], at, *series["days"][where:]]
            for name, values in one["series"].items():
                if name == "temperature":
                    series[name] = [*values[:where], 25.0, *values[where:]]
                elif name != "days":
                    new = size if name == "deviation" else 0.01
                    series[name] = {key: [*v[:where], new, *v[where:]] for key, v in values.items()}
        arms.append({**one, "series": series})
    return {**data, "dates": [*data["dates"][:at], day, *data["dates"][at:]], "arms": arms}


class _Fleet:
    """Arrays of a fleet while it is being made up."""

    def __init__(self, rng, names, dates, watched, parameters):
        self.rng, self.names, self.dates, self.watched, self.parameters = rng, names, dates, watched, parameters
        arms, days, count = len(names), len(dates), len(watched)
        usual = np.array([one["day_to_day"] for one in watched])
        self.sigma = (
            usual * rng.uniform(0.5, 2.0, (arms, days, count)) * rng.choice([1.0, 3.0], (arms, 1, 1), p=[0.9, 0.1])
        )
        self.deviation = rng.normal(0.0, np.hypot(self.sigma, usual))
        self.used = rng.random((arms, days)) > 0.03
        self.mean = rng.lognormal(-1.0, 1.0, len(parameters))
        self.odd = rng.standard_normal((arms, len(parameters)))
        self.watch, self.problems, self.unusual = [], [], {}

    def spoil(self, arm, kind):
        """Plant a fault: friction, payload, sign, dead, odd days, unlike others, play."""
        name, joint = self.names[arm], int(self.rng.integers(JOINTS))
        start = int(self.rng.integers(len(self.dates) // 3, max(len(self.dates) // 3 + 1, 2 * len(self.dates) // 3)))
        since = self.dates[start]
        after = np.arange(len(self.dates)) >= start
        if kind == 0:
            self.deviation[arm, :, 3 * joint] += 0.08 * np.where(after, np.arange(len(self.dates)) - start + 1, 0)
            what = {"what": f"viscous friction of joint {joint + 1}"}
            place = since, None, joint + 1, f"fv{joint + 1}"
            self._tell(name, "friction", "ramp", *place, "ramp", 0.08, 0.004, "1", 21.3, what)
        elif kind == 1:
            self.deviation[arm, :, -1] += np.where(after, 0.9, 0.0)
            self._tell(name, "payload", "payload", since, None, None, "payload", "step", 0.9, 0.03, "kg", 34.0)
        elif kind in (2, 3):
            what = ("has the wrong sign", "is dead")[kind - 2]
            self.used[arm, after] = False
            for date in np.array(self.dates)[after]:
                self.problems.append(
                    {"robot": name, "date": str(date), "file": "all", "reason": f"torque of joint {joint + 1} {what}"}
                )
            for first, last in runs([str(d) for d in np.array(self.dates)[after]], self.dates):
                code = ("sign", "dead")[kind - 2]
                self._tell(name, code, code, first, last, joint + 1)
        elif kind == 4:
            self.used[arm, start] = False
            self._tell(name, "misfit", "misfit", since, since, joint + 1, size=9.3, unit="1")
        elif kind == 5:
            self.odd[arm, 7 * joint] = 9.4
            self.unusual[arm] = [self.parameters[7 * joint]]
            odd = self.parameters[7 * joint]
            values = {"names": [odd], "deviations": [9.4], "watched": {}}
            self._tell(name, "unusual", "unusual", parameter=odd, score=9.4, values=values)
        else:
            place = since, None, joint + 1, f"reversal{joint + 1}"
            self._tell(name, "reversal", "reversal", *place, "step", 0.9, 0.1, "1", 8.8)

    def _tell(self, *entries, **more):
        self.watch.append(WatchEntry(*entries, **more))

    def lose(self, count):
        """Some recordings that could not be used; the last arm has none at all where there are several."""
        for index in range(count):
            arm, day = int(self.rng.integers(len(self.names))), int(self.rng.integers(len(self.dates)))
            self.used[arm, day] = False
            reason = REASONS[index % len(REASONS)]
            self.problems.append(
                {"robot": self.names[arm], "date": self.dates[day], "file": "log.parquet", "reason": reason}
            )
        if count > 1:
            self.used[-1] = False
            self.watch = [one for one in self.watch if one.robot != self.names[-1]]

    def _arm(self, index):
        known = self.used[index].any()
        days = np.flatnonzero(self.used[index])
        samples = 4000 * len(days)
        own = self.rng.uniform(0.2, 1.0, len(self.parameters))
        spread = 0.05 * self.mean
        series = {
            "days": days.tolist(),
            "temperature": plain(25.0 + 4.0 * np.sin(days / 5.0) + self.rng.normal(0.0, 0.5, len(days)), 4),
            "deviation": {w["name"]: plain(self.deviation[index, days, k], 4) for k, w in enumerate(self.watched)},
            "deviation_sigma": {w["name"]: plain(self.sigma[index, days, k], 3) for k, w in enumerate(self.watched)},
        }
        looked = any(one.robot == self.names[index] for one in self.watch)
        return {
            "name": self.names[index],
            "state": "look" if looked else "good" if known else "no data",
            "days": len(days),
            "samples": samples,
            "seconds": 0.01 * samples,
            "noise": plain(self.rng.uniform(0.1, 0.5, JOINTS)) if known else None,
            "values": plain(self.mean + spread * self.odd[index]) if known else None,
            "sigma": plain(spread * np.sqrt(1.0 - 0.9 * own)) if known else None,
            "own": plain(own) if known else None,
            "deviation": plain(self.odd[index]) if known else None,
            "unusual": self.unusual.get(index, []) if known else [],
            "possible": bool(index % 9) if known else None,
            "fit": f"robots/{self.names[index]}/fit.json" if known else None,
            "key": None,
            "series": series if known else None,
        }

    def result(self):
        """As `armid fleet identify` gives it."""
        arms = tuple(self._arm(index) for index in range(len(self.names)))
        samples = sum(arm["samples"] for arm in arms)
        parameters = tuple(
            {
                "name": name,
                "expression": f"{name} + d3² (m3 + m4)" if name.startswith("I") else name,
                "unit": "kg m^2" if name.startswith("I") else "N m",
                "mean": plain(mean),
                "sigma": plain(0.004 * mean),
                "spread": plain(0.05 * mean),
            }
            for name, mean in zip(self.parameters, self.mean, strict=True)
        )
        data = {
            "robot": {
                "name": "pa10",
                "title": "Mitsubishi PA-10",
                "source": "pa10",
                "joints": ["S1", "S2", "S3", "E1", "E2", "W1", "W2"],
            },
            "dates": self.dates,
            "parameters": parameters,
            "watched": tuple(self.watched),
            "arms": arms,
            "watch": [plain_data(one) for one in ordered(self.watch)],
            "problems": tuple(sorted(self.problems, key=lambda p: (p["robot"], p["date"], p["file"]))),
            "promise": plain_data(PROMISE),
            "summary": {
                "arms": len(arms),
                "arm_days": len(arms) * len(self.dates),
                "used": int(self.used.sum()),
                "misfit_days": sum(one.kind == "misfit" for one in self.watch),
                "kept": 0,
                "samples": samples,
                "seconds": 0.01 * samples,
                "problems": len(self.problems),
                "watch": len(self.watch),
                "work_s": 312.5,
            },
        }
        return as_result(data)
