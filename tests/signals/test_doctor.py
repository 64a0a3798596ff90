"""The log doctor: planted faults are found and named, clean logs of the virtual robot raise no alarm."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

from armid.excitation import FourierSeries
from armid.logs.log import Log
from armid.robot import load_robot
from armid.signals.doctor import Examination, examine
from armid.signals.doctor.fit import FitRows, fit

pytest.importorskip("mujoco")

ROBOTS = ("pa10", "powerball", "er16", "ir361", "rx60")
RATES = (150.0, 200.0, 250.0, 500.0, 1000.0)
PERIODS = (8.0, 10.0, 12.0)
MOTION = ("position", "velocity")


def motion(robot, rng, *, hold: int | None = None, still: float = 0.0) -> FourierSeries:
    """A random Fourier series of five harmonics that uses 30 to 70 % of the limits, at most 2 rad.

    Joint `hold` moves by no more than `still` [rad].
    """
    n, harmonics, limits = robot.n_joints, np.arange(1, 6), robot.limits
    sine, cosine = rng.normal(size=(2, n, len(harmonics))) / np.sqrt(harmonics)
    frequency = 1.0 / rng.choice(PERIODS)
    reach = FourierSeries(frequency, tuple(harmonics), sine, cosine, np.zeros(n)).extrema()
    amount = rng.uniform(0.3, 0.7)
    span = reach.upper - reach.lower
    scale = amount * np.minimum.reduce(
        [
            (limits.upper - limits.lower) / span,
            limits.velocity / reach.velocity,
            limits.acceleration / reach.acceleration,
        ]
    )
    scale = np.minimum(scale, 2.0 / span)
    if hold is not None:
        scale[hold] = still / span[hold]
    middle = 0.5 * (limits.upper + limits.lower) - 0.5 * scale * (reach.upper + reach.lower)
    return FourierSeries(frequency, tuple(harmonics), sine * scale[:, None], cosine * scale[:, None], middle)


@dataclass(frozen=True, eq=False)
class Case:
    """A log of a virtual robot, with what is needed to spoil it."""

    robot: object
    log: Log
    noise: np.ndarray
    rng: np.random.Generator


@lru_cache(maxsize=8)
def recorded(name: str, seed: int, still: float | None = None, delay: float = 0.0) -> Case:
    """Four periods; with `still`, joint 2 moves by no more than that [rad]; effort late by `delay` [s]."""
    from armid.experiment.settings import Presliding, Sensors
    from armid.experiment.virtual import VirtualRobot

    rng = np.random.default_rng(seed)
    robot = load_robot(name)
    robot = robot.first_links(len(robot.virtual.inertia))
    noise = robot.virtual.torque_noise * rng.uniform(0.3, 1.2)
    rate = float(rng.choice(RATES))
    presliding = Presliding() if rng.random() < 0.5 else None
    sensors = Sensors(torque_noise=tuple(map(float, noise)), effort_delay_s=delay)
    arm = VirtualRobot(robot, rate_hz=rate, seed=seed, sensors=sensors, presliding=presliding)
    path = motion(robot, rng) if still is None else motion(robot, rng, hold=1, still=still)
    return Case(robot, arm.run(path, periods=4), noise, np.random.default_rng(seed + 1000))


Spoiled = tuple[Log, str | None]
Plant = Callable[[Case], Spoiled]


def with_time(log: Log, time) -> Log:
    return Log(time, log.channels, log.info)


def column_changed(case: Case, channel: str, change) -> Spoiled:
    """One random joint of a channel replaced by `change` of it."""
    joint = int(case.rng.integers(len(case.log.joints)))
    values = case.log[channel].copy()
    values[:, joint] = change(values[:, joint], joint)
    return case.log.with_channels({channel: values}), case.log.joints[joint]


def irregular(case: Case) -> Spoiled:
    step = 1.0 / case.log.rate_hz
    jitter = np.clip(case.rng.normal(0.0, case.rng.uniform(0.05, 0.15), len(case.log)), -0.4, 0.4)
    return with_time(case.log, case.log.time + step * jitter), None


def duplicated(case: Case) -> Spoiled:
    twice = case.rng.choice(len(case.log), case.rng.integers(1, 10), replace=False)
    if case.rng.random() < 0.5:
        return case.log.rows(np.sort(np.concatenate([np.arange(len(case.log)), twice]))), None
    time = case.log.time.copy()
    time[np.maximum(twice, 1)] = time[np.maximum(twice, 1) - 1]
    return with_time(case.log, time), None


def backward(case: Case) -> Spoiled:
    at = int(case.rng.integers(100, len(case.log) - 100))
    if case.rng.random() < 0.5:
        order = np.arange(len(case.log))
        order[[at, at + 1]] = at + 1, at
        return case.log.rows(order), None
    time = case.log.time.copy()
    time[at:] -= case.rng.uniform(0.05, 0.5)
    return with_time(case.log, time), None


def gap(case: Case) -> Spoiled:
    keep = np.ones(len(case.log), dtype=bool)
    for _ in range(case.rng.integers(1, 6)):
        at = case.rng.integers(100, len(case.log) - 200)
        keep[at : at + case.rng.integers(1, 50)] = False
    return case.log.rows(keep), None


def not_a_number(case: Case) -> Spoiled:
    def lose(x, joint):
        x[case.rng.choice(len(x), case.rng.integers(1, 20), replace=False)] = np.nan
        return x

    return column_changed(case, str(case.rng.choice(["position", "velocity", "effort"])), lose)


def spike(case: Case) -> Spoiled:
    def strike(x, joint):
        rows = 10 + case.rng.choice(len(x) - 20, case.rng.integers(2, 10), replace=False)
        height = max(12.0 * case.noise[joint], case.rng.uniform(0.1, 0.3) * np.ptp(x))
        x[rows] += height * case.rng.choice([-1.0, 1.0], len(rows))
        return x

    return column_changed(case, "effort", strike)


def saturated(case: Case) -> Spoiled:
    def cut(x, joint):
        bound = case.rng.uniform(0.6, 0.85) * np.abs(x).max()
        return np.clip(x, -bound, bound)

    return column_changed(case, "effort", cut)


def dead(case: Case) -> Spoiled:
    channel = str(case.rng.choice(["position", "velocity", "effort"]))
    return column_changed(case, channel, lambda x, joint: np.full_like(x, x[0]))


def mostly_zero(case: Case) -> Spoiled:
    def drop(x, joint):
        share = case.rng.uniform(0.6, 0.9)
        if case.rng.random() < 0.5:
            return np.where(case.rng.random(len(x)) < share, 0.0, x)
        return np.where(np.arange(len(x)) < share * len(x), 0.0, x)

    return column_changed(case, str(case.rng.choice(["velocity", "effort"])), drop)


def coarse(case: Case) -> Spoiled:
    def rounded(x, joint):
        step = max(4.0 * case.noise[joint], case.rng.uniform(0.1, 0.3) * np.std(x))
        return step * np.round(x / step)

    return column_changed(case, "effort", rounded)


def degrees(case: Case) -> Spoiled:
    channels = MOTION if case.rng.random() < 0.5 else ("position",)
    return case.log.with_channels({name: np.rad2deg(case.log[name]) for name in channels}), None


def exchanged(case: Case) -> Spoiled:
    a, b = case.rng.choice(len(case.log.joints), 2, replace=False)
    order = np.arange(len(case.log.joints))
    order[[a, b]] = b, a
    channels = (MOTION, ("effort",), ("velocity",))[case.rng.integers(3)]
    return case.log.with_channels({name: case.log[name][:, order] for name in channels}), case.log.joints[a]


def flipped(case: Case) -> Spoiled:
    joint = int(case.rng.integers(len(case.log.joints)))
    sign = np.ones(len(case.log.joints))
    sign[joint] = -1.0
    channels = (MOTION, ("effort",), ("velocity",))[case.rng.integers(3)]
    return case.log.with_channels({name: case.log[name] * sign for name in channels}), case.log.joints[joint]


def slow_velocity(case: Case) -> Spoiled:
    from scipy.signal import lfilter

    def lag(x, joint):
        constant = case.rng.uniform(0.01, 0.04)
        if case.rng.random() < 0.5:
            return np.interp(case.log.time - constant, case.log.time, x)
        keep = np.exp(-1.0 / (case.log.rate_hz * constant))
        return lfilter([1.0 - keep], [1.0, -keep], x, zi=[keep * x[0]])[0]

    return column_changed(case, "velocity", lag)


def late_effort(case: Case) -> Spoiled:
    seed = int(case.log.info.history["seed"])
    return recorded(case.robot.name, seed, delay=case.rng.uniform(0.015, 0.04)).log, None


def settling(case: Case) -> Spoiled:
    """The position loop still swings in when the recording starts."""
    time = (case.log.time - case.log.time[0])[:, None]
    constant = case.rng.uniform(0.2, 1.0)
    span = np.ptp(case.log["position"], axis=0)
    size = case.rng.uniform(0.03, 0.1) * span * np.exp(-time / constant)
    effort = case.rng.uniform(0.1, 0.3) * np.ptp(case.log["effort"], axis=0) * np.exp(-time / constant)
    changed = {"position": size, "velocity": -size / constant, "effort": effort}
    return case.log.with_channels({name: case.log[name] + part for name, part in changed.items()}), None


def still(travel: float) -> Plant:
    def plant(case: Case) -> Spoiled:
        seed = int(case.log.info.history["seed"])
        again = recorded(case.robot.name, seed, still=travel)
        return again.log, again.log.joints[1]

    return plant


# What goes wrong, and the finding that names it. Whether a joint has to be named is up to the plant.
FAULTS: dict[str, tuple[Plant, str]] = {
    "time stamps jitter by 5 to 15 % of a step": (irregular, "irregular-timestamps"),
    "1 to 10 rows or stamps repeated": (duplicated, "duplicated-timestamps"),
    "two rows out of order, or the clock set back by 50 to 500 ms": (backward, "time-runs-backward"),
    "1 to 5 gaps of 1 to 50 samples": (gap, "gaps"),
    "1 to 20 values of one channel not recorded": (not_a_number, "not-a-number"),
    "2 to 10 efforts wrong by 10 to 30 % of the range": (spike, "spikes"),
    "effort cut at 60 to 85 % of its maximum": (saturated, "saturated"),
    "one channel constant": (dead, "dead-channel"),
    "60 to 90 % of a channel zero": (mostly_zero, "mostly-zero"),
    "effort in steps of 10 to 30 % of its deviation, at least 4 sigma": (coarse, "quantised"),
    "positions, or also velocities, in degrees": (degrees, "degrees"),
    "motion, effort or velocity of two joints exchanged": (exchanged, "swapped-joints"),
    "motion, effort or velocity of a joint reversed": (flipped, "sign-flipped"),
    "velocity late or low-passed by 10 to 40 ms": (slow_velocity, "velocity-lag"),
    "effort late by 15 to 40 ms": (late_effort, "effort-delay"),
    "recording starts while the arm swings in": (settling, "transient"),
    "a joint is held": (still(0.0), "joint-at-rest"),
    "a joint moves by 0.04 rad": (still(0.04), "little-motion"),
}


def named(report: Examination, code: str, joint: str | None) -> bool:
    """Whether the finding is there, as a warning or an error and about that joint."""
    return any(f.code == code and f.severity != "info" and joint in (None, f.joint) for f in report.findings)


def alarms(report: Examination) -> list[tuple[str, str | None, str]]:
    return [(f.code, f.joint, f.what) for f in report.at_least("warning")]


# Three arms take turns in the short version.
SHORT = [(title, *(("er16", 12), ("rx60", 14), ("ir361", 3))[i % 3]) for i, title in enumerate(FAULTS)]


@pytest.mark.parametrize(("title", "name", "seed"), SHORT, ids=list(FAULTS))
def test_planted_fault_is_named(title, name, seed):
    case = recorded(name, seed)
    plant, code = FAULTS[title]
    log, joint = plant(Case(case.robot, case.log, case.noise, np.random.default_rng(seed + 1000)))
    report = examine(log, case.robot)
    assert named(report, code, joint), alarms(report)


@pytest.mark.parametrize(("name", "seed"), [("er16", 12), ("ir361", 3), ("rx60", 14), ("powerball", 21)])
def test_clean_log_raises_no_alarm(name, seed):
    case = recorded(name, seed)
    assert alarms(examine(case.log)) == []
    report = examine(case.log, case.robot)
    assert alarms(report) == []
    assert report.facts.periods == 4
    assert report.facts.period_s == pytest.approx(case.log.info.period_s, rel=1e-5)
    assert report.usable


@pytest.mark.prove
def test_planted_faults_are_named_in_19_of_20_logs():
    missed = {title: [] for title in FAULTS}
    for seed in range(20):
        case = recorded(ROBOTS[seed % 5], seed)
        for title, (plant, code) in FAULTS.items():
            log, joint = plant(Case(case.robot, case.log, case.noise, np.random.default_rng(seed + 1000)))
            report = examine(log, case.robot)
            if not named(report, code, joint):
                missed[title].append((case.robot.name, seed, joint, alarms(report)))
    assert not {title: which for title, which in missed.items() if len(which) > 1}


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(100, 150))
def test_fifty_clean_logs_raise_no_alarm(seed):
    case = recorded(ROBOTS[seed % 5], seed)
    assert alarms(examine(case.log)) == []
    assert alarms(examine(case.log, case.robot)) == []


def test_a_fault_does_not_hide_behind_another():
    """Two mistakes in the wiring, spikes and a gap at once: all are named."""
    case = recorded("rx60", 14)
    effort = case.log["effort"][:, [1, 0, 2]] * [1.0, 1.0, -1.0]
    effort[[500, 900], 2] += 5.0
    log = case.log.with_channels({"effort": effort}).rows(np.r_[0:2000, 2020 : len(case.log)])
    found = {(f.code, f.joint) for f in examine(log, case.robot).findings}
    expected = {("swapped-joints", "joint1"), ("swapped-joints", "joint2"), ("sign-flipped", "joint3")}
    assert expected | {("spikes", "joint3"), ("gaps", None)} <= found


def test_log_of_another_robot():
    case = recorded("rx60", 14)
    report = examine(case.log, load_robot("pa10"))
    assert named(report, "other-robot", None)
    assert not report.usable


def test_rows_and_times_of_a_finding():
    case = recorded("rx60", 14)
    effort = case.log["effort"].copy()
    effort[[1000, 3000], 1] += 8.0
    report = examine(case.log.with_channels({"effort": effort}))
    (finding,) = report.of("spikes")
    assert finding.where.rows == (1000, 3000)
    assert finding.where.count == 2
    assert finding.where.start_s == case.log.time[1000]
    assert finding.where.stop_s == case.log.time[3000]
    assert 0.9 < finding.confidence <= 1.0
    assert "joint2" in report.summary()
    assert report.as_data()["findings"][0]["code"] == "spikes"


def test_delay_is_measured():
    case = recorded("rx60", 14, delay=0.02)
    (finding,) = examine(case.log, case.robot).of("effort-delay")
    assert finding.values["delay_s"] == pytest.approx(0.02, abs=1e-3)


@pytest.mark.parametrize(("inertia", "told"), [(0.0, False), (1.0, True)])
def test_delay_is_told_of_inertia_not_of_friction_alone(inertia, told):
    """A joint whose effort is friction that changes sides gradually says nothing of how late its effort is."""
    time, rng = np.arange(4000) / 100.0, np.random.default_rng(0)
    q = np.sin(2.0 * time)[:, None] + 0.5 * np.sin(0.7 * time)[:, None]
    qd, qdd = np.gradient(q, 0.01, axis=0), np.gradient(np.gradient(q, 0.01, axis=0), 0.01, axis=0)
    effort = inertia * qdd + np.tanh(20.0 * qd) + 0.01 * rng.normal(size=q.shape)
    block, keep = np.repeat(np.arange(8), 500), np.abs(qd) > 0.1
    rows = FitRows(q, qd, qdd, effort, 0.01, block, keep, 10.0, (slice(0, 4000),))
    found = fit(rows, qdd[:, :, None], np.zeros_like(q), shared=True)
    assert bool(np.isfinite(found.delay_doubt_s[0])) == told


@pytest.mark.prove
def test_a_million_rows_take_seconds():
    import time

    rng = np.random.default_rng(0)
    case = recorded("er16", 12)
    times = int(np.ceil(1e6 / len(case.log)))
    channels = {name: np.tile(values, (times, 1)) for name, values in case.log.channels.items()}
    channels["effort"] = channels["effort"] + rng.normal(size=channels["effort"].shape)
    log = Log(np.arange(len(channels["effort"])) / case.log.rate_hz, channels, case.log.info)
    began = time.perf_counter()
    report = examine(log, case.robot)
    assert time.perf_counter() - began < 20.0
    assert report.facts.rows >= 1_000_000
