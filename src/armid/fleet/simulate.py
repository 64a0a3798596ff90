"""A virtual fleet: arms of one type with manufacturing spread, seasons, and faults planted on purpose."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from armid._version import __version__
from armid.arrays import Array
from armid.errors import ArmidError
from armid.experiment.excite import point_to_point
from armid.experiment.virtual import VirtualRobot, truth_of
from armid.files import parse_json, read_text, write_text
from armid.fleet.day import Store
from armid.fleet.engine import engine, tell_part
from armid.logs import Log, write_log
from armid.notes import Note, note
from armid.robot.inertia import from_com
from armid.robot.load import robot_digest
from armid.robot.robot import Robot, Virtual
from armid.torque.friction.law import friction_law

FAULTS = ("friction", "payload", "sign", "dead")
FIRST_DAY = datetime.date(2026, 1, 5)
LINK_SPREAD, ROTOR_SPREAD, FRICTION_SPREAD = 0.02, 0.01, 0.10  # relative standard deviations between arms
USUAL_TEMPERATURE, PER_DEGREE = 25.0, -0.012  # [°C], and relative change of viscous friction per degree
RISE_PER_DAY = 0.08  # of viscous friction in a joint that wears
LOST_SHARE = 0.04  # mass of an unreported payload, over the arm's own
ONSET = (5, 10)  # days on which faults begin, the last not included; in shorter times, in the middle
DRAWN_DAYS = 20  # days whose weather is drawn before what else is random, however many more are asked for
LATER_DAYS = 1  # stream of the weather of later days
PER_DAY = ("dates", "temperature")  # entries of truth.json that grow with the days
MOST_DAYS, MOST_RECORDINGS = 10_000, 1_000_000
LEAST_RATE, MOST_RATE, MOST_POINTS = 20.0, 10_000.0, 1000  # [Hz]; more does not fit into memory


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong on one arm.

    Attributes:
        kind: ``friction`` (viscous friction rises day by day), ``payload`` (carried but not reported), ``sign`` (torque
            sensor reversed) or ``dead`` (torque channel stuck at zero).
        arm: index of the arm.
        day: index of the first day.
        joint: index of the joint; of no meaning for a payload.
    """

    kind: str
    arm: int
    day: int
    joint: int


@dataclass(frozen=True, eq=False)
class VirtualDay:
    """All that one arm's recording of one day is made from.

    Attributes:
        robot: with the truth of that day.
        signs: that the sensors give each joint's torque: 1, -1 or 0.
        temperature: [°C].
        poor: whether the arm moves little.
        seed: of motion and noise.
    """

    robot: Robot
    signs: Array
    temperature: float
    poor: bool
    seed: int

    def record(self, *, points: int = 8, rate_hz: float = 100.0) -> Log:
        """Random points, as a day's work, with the sensors' faults."""
        machine = VirtualRobot(self.robot, rate_hz=rate_hz, seed=self.seed)
        margin, share = (0.42, 0.35) if self.poor else (0.1, 0.8)
        log = point_to_point(machine, machine.robot, points=points, seed=self.seed, margin=margin, share=share)
        effort = self.signs * log["effort"]
        warmth = np.random.default_rng(self.seed).normal(self.temperature, 0.5, effort.shape[1])
        channels = {"effort": effort, "temperature": np.tile(warmth, (len(log), 1)), "command": None}
        history = {"made_by": "armid fleet simulate", "armid": __version__, "seed": self.seed}
        return log.with_channels(channels, history=history, period_s=None)


@dataclass(frozen=True, eq=False)
class VirtualFleet:
    """The truth about a fleet.

    Attributes:
        robot: the type of arm.
        arms: truth of each.
        temperature: of each day [°C], (days,).
        poor: which arms move little.
        faults: what goes wrong.
        seed: of everything random.
        robot_options: with which the robot was loaded from its file: ``links``, ``rotors``, ``gravity``, ``simplify``.
        notes: faults that could not be planted as asked for.
    """

    robot: Robot
    arms: tuple[Virtual, ...]
    temperature: Array
    poor: tuple[bool, ...]
    faults: tuple[Fault, ...]
    seed: int
    robot_options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arms."""
        return tuple(f"arm{index + 1:03d}" for index in range(len(self.arms)))

    @property
    def dates(self) -> tuple[str, ...]:
        """ISO dates of the days."""
        return tuple(str(FIRST_DAY + datetime.timedelta(days=day)) for day in range(len(self.temperature)))

    def truth(self, arm: int, day: int) -> Virtual:
        """What an arm is on a day: grease and wear included."""
        virtual = self.arms[arm]
        factor = np.full(len(virtual.inertia), 1.0 + PER_DEGREE * (self.temperature[day] - USUAL_TEMPERATURE))
        payload = virtual.payload
        for fault in self.faults:
            if fault.arm != arm or day < fault.day:
                continue
            if fault.kind == "friction":
                factor[fault.joint] *= 1.0 + RISE_PER_DAY * (day - fault.day + 1)
            elif fault.kind == "payload":
                mass = LOST_SHARE * float(virtual.inertia[:, 0].sum())
                more = from_com(mass, [0.0, 0.0, 0.05], 1e-3 * mass * np.eye(3))
                payload = more if payload is None else payload + more
        coefficients = tuple(
            {name: value * (factor[j] if name in _viscous(virtual, j) else 1.0) for name, value in values.items()}
            for j, values in enumerate(virtual.coefficients)
        )
        return replace(virtual, coefficients=coefficients, payload=payload)

    def day(self, arm: int, day: int) -> VirtualDay:
        """One arm's day."""
        on = [fault for fault in self.faults if fault.arm == arm and day >= fault.day]
        signs = np.ones(self.robot.n_joints)
        for fault in on:
            if fault.kind in ("sign", "dead"):
                signs[fault.joint] = -1.0 if fault.kind == "sign" else 0.0
        seed = int(np.random.SeedSequence([self.seed, arm, day]).generate_state(1)[0])
        robot = replace(self.robot, virtual=self.truth(arm, day))
        return VirtualDay(robot, signs, float(self.temperature[day]), self.poor[arm], seed)

    def to_data(self) -> dict[str, Any]:
        """The truth, for those who check."""
        return {
            "armid": __version__,
            "robot": self.robot.name,
            "seed": self.seed,
            "arms": list(self.names),
            "dates": list(self.dates),
            "temperature": self.temperature.tolist(),
            "poor": [name for name, poor in zip(self.names, self.poor, strict=True) if poor],
            "faults": [
                {**asdict(f), "arm": self.names[f.arm], "date": self.dates[f.day], "joint": f.joint + 1}
                for f in self.faults
            ],
        }


def virtual_fleet(
    robot: Robot,
    *,
    robots: int,
    days: int,
    faults: int | Sequence[Fault] = 0,
    poor: float = 0.0,
    seed: int = 0,
    robot_options: Mapping[str, Any] | None = None,
) -> VirtualFleet:
    """A fleet of one type of arm.

    With more days, arms, temperatures and faults of the same seed stay what they are (from ten days on).

    Args:
        robot: with a truth to vary (a `virtual:` section, or the inertias of its file).
        robots: how many arms.
        days: how many days.
        faults: how many to plant on different arms, kinds in turn; or the faults themselves.
        poor: share of the arms that move little.
        seed: of everything random, not negative.
        robot_options: with which the robot was loaded from its file, for the fleet file.
    """
    if robots < 1 or days < 1:
        raise ArmidError(f"{robots} robots and {days} days: at least one of each is needed")
    if robots * days > MOST_RECORDINGS or days > MOST_DAYS:
        raise ArmidError(
            f"{robots} robots and {days} days: at most {MOST_DAYS} days and {MOST_RECORDINGS} recordings can be made"
        )
    if seed < 0:
        raise ArmidError(f"seed is {seed}; give a whole number from 0")
    if not 0.0 <= poor <= 1.0:
        raise ArmidError(f"poor is {poor:g}; give a share from 0 to 1")
    if isinstance(faults, int) and faults < 0:
        raise ArmidError(f"faults is {faults}; give 0 or more")
    truth, options = truth_of(robot), dict(robot_options or {})
    n = len(truth.inertia)
    if n != robot.n_joints:
        robot, options["links"] = robot.first_links(n), n
    rng = np.random.default_rng(seed)
    arms = tuple(_varied(truth, rng) for _ in range(robots))
    season = USUAL_TEMPERATURE + 4.0 * np.sin(2.0 * np.pi * np.arange(days) / 30.0)
    # What is drawn later must not depend on the number of days: days beyond these have a stream of their own. Short
    # fleets, whose faults begin earlier, are fleets of their own.
    drawn = days if days < ONSET[1] else DRAWN_DAYS
    weather = rng.normal(0.0, 1.0, drawn)
    later = np.random.default_rng([seed, LATER_DAYS]).normal(0.0, 1.0, max(0, days - drawn))
    temperature = season + np.concatenate([weather, later])[:days]
    little = rng.permutation(robots) < round(poor * robots)
    planted, notes = (tuple(faults), ()) if not isinstance(faults, int) else _planted(faults, days, truth, little, rng)
    if any(not 0 <= fault.day < days for fault in planted):
        raise ArmidError(f"faults begin after the first day, so they need at least 2 days; there are {days}")
    return VirtualFleet(robot, arms, temperature, tuple(bool(p) for p in little), planted, seed, options, notes)


def simulate_fleet(
    fleet: VirtualFleet, folder: Path, *, points: int = 8, rate_hz: float = 100.0, workers: int = 0
) -> Path:
    """Record every arm on every day into ``robot=…/date=…/log.parquet``; writes fleet.yaml and truth.json too.

    A recording that is there already is not made again; with more days than before, only those are made. Progress is
    reported after each.

    Args:
        fleet: the arms.
        folder: to write to.
        points: postures the arm drives to on a day.
        rate_hz: samples per second.
        workers: processes to start; 0 to work in this one.

    Returns:
        The fleet file.

    Raises:
        ArmidError: the folder holds the recordings of another fleet, or one that was recorded otherwise.
    """
    if not 2 <= points <= MOST_POINTS:
        raise ArmidError(f"points is {points}; give 2 to {MOST_POINTS}")
    if not LEAST_RATE <= rate_hz <= MOST_RATE:
        raise ArmidError(f"rate is {rate_hz:g} Hz; give {LEAST_RATE:g} to {MOST_RATE:g} Hz")
    data = {**fleet.to_data(), "points": points, "rate_hz": rate_hz, "robot_sha256": robot_digest(fleet.robot)}
    _check_folder(folder, data)
    Store(folder)  # whether it can be written is found out before the work
    write_text(folder / "truth.json", json.dumps(data, indent=2) + "\n")
    places = {
        (arm, day): folder / "logs" / f"robot={name}" / f"date={date}" / "log.parquet"
        for arm, name in enumerate(fleet.names)
        for day, date in enumerate(fleet.dates)
    }
    todo = {place: path for place, path in places.items() if not path.exists()}
    tasks = ((fleet.day(*place), points, rate_hz, path) for place, path in todo.items())  # made when handed out
    with engine(workers) as place:
        for done, (_, path) in enumerate(place.each(_record, None, tasks), start=1):
            tell_part("recording", done, len(todo), len(places), f"{path.parent.parent.name}, {path.parent.name}")
    text = f"# A virtual fleet, made by armid fleet simulate.\nrobot: {_from(folder, fleet.robot.source)}\nlogs: logs\n"
    if fleet.robot_options:
        text += f"robot_options: {json.dumps(dict(fleet.robot_options))}\n"
    write_text(folder / "fleet.yaml", text)
    return folder / "fleet.yaml"


def _check_folder(folder: Path, data: Mapping[str, Any]) -> None:
    """Refuse a folder whose recordings are not the first days of this fleet."""
    path = folder / "truth.json"
    if not path.exists():
        if any((folder / "logs").glob("robot=*")):
            raise ArmidError(f"{folder}: holds logs, but no truth.json that says what they are; choose another folder")
        return
    try:
        before = parse_json(read_text(path))
        days = len(before["dates"])
        same = {**before, "armid": ""} == {**data, "armid": "", **{key: data[key][:days] for key in PER_DAY}}
    except (ValueError, KeyError, TypeError):
        same = False
    if not same:
        raise ArmidError(f"{folder}: was made with other options; choose another folder or remove it")


def _record(_: None, task: tuple[VirtualDay, int, float, Path]) -> Path:
    day, points, rate_hz, path = task
    path.parent.mkdir(parents=True, exist_ok=True)
    write_log(day.record(points=points, rate_hz=rate_hz), path)
    return path


def _from(folder: Path, source: str) -> str:
    """A robot file as the fleet file names it: relative where both lie together, else absolute; or a library name."""
    path = Path(source)
    return os.path.relpath(path.resolve(), folder.resolve()) if path.is_file() else source


def _varied(truth: Virtual, rng: np.random.Generator) -> Virtual:
    """An arm as it leaves the factory: every link, rotor and gear a little different."""
    links = truth.inertia * (1.0 + LINK_SPREAD * rng.standard_normal((len(truth.inertia), 1)))
    rotors = truth.rotor_inertia * (1.0 + ROTOR_SPREAD * rng.standard_normal(len(truth.rotor_inertia)))
    coefficients = tuple(
        {name: value * np.exp(FRICTION_SPREAD * rng.standard_normal()) for name, value in values.items()}
        for values in truth.coefficients
    )
    return replace(truth, inertia=links, rotor_inertia=rotors, coefficients=coefficients)


def _planted(
    count: int, days: int, truth: Virtual, poor: Any, rng: np.random.Generator
) -> tuple[tuple[Fault, ...], tuple[Note, ...]]:
    """Faults in turn of all kinds that have an effect, each on an arm of its own that moves enough; and what to say."""
    sound = np.flatnonzero(~np.asarray(poor, dtype=bool))
    if count > len(sound):
        raise ArmidError(f"{count} faults need as many arms that move; there are {len(sound)}")
    joints = len(truth.inertia)
    where = {kind: list(range(joints)) for kind in FAULTS}
    where["friction"] = [j for j in range(joints) if any(truth.coefficients[j][name] for name in _viscous(truth, j))]
    if not float(truth.inertia[:, 0].sum()) > 0.0:
        where["payload"] = []
    kinds = [kind for kind in FAULTS if where[kind]]
    left_out = [note("fleet.no-effect", kind=kind) for kind in FAULTS if kind not in kinds]
    first, last = max(1, days // 4), max(2, days // 2)
    planted = []
    for k, arm in enumerate(rng.permutation(sound)[:count]):
        kind = kinds[k % len(kinds)]
        day, joint = int(rng.integers(*ONSET)), int(rng.integers(joints))
        if days < ONSET[1]:  # too short for that: somewhere in the middle
            day = first + (day - ONSET[0]) * (last - first) // (ONSET[1] - ONSET[0])
        if joint not in where[kind]:
            joint = where[kind][joint % len(where[kind])]
        planted.append(Fault(kind, int(arm), day, joint))
    return tuple(planted), tuple(left_out) if count else ()


def _viscous(truth: Virtual, joint: int) -> list[str]:
    """Coefficients of a joint's friction, in either direction, that grease and wear change, as its law says."""
    name = friction_law(truth.friction[joint].law).viscous
    return (
        []
        if name is None
        else [one for one in truth.coefficients[joint] if one.removesuffix("p").removesuffix("n") == name]
    )
