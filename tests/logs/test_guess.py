"""Columns that nobody has explained: each guess is right, or left open; none is wrong."""

import numpy as np
import pytest
import yaml

import armid
from armid.dynamics.model import Motion
from armid.logs.guess import guess_recipe
from armid.logs.log import LogError
from armid.logs.public import public_log
from armid.logs.recipe import Recipe
from armid.signals.repair import increasing_rows
from tests.estimation.virtual_arms import arm, mujoco_torque

RATE_HZ, SECONDS = 200.0, 25.0
KINDS = ["time", "position", "velocity", "effort", "current", "other"]
STYLES = {  # names of position, velocity, effort, current of joint number {}
    "snake": ("pos_{}", "vel_{}", "joint_torque_{} [Nm]", "motor_current_{}"),
    "short": ("q{}", "dq{}", "tau{}", "i{}"),
    "long": ("Joint {} Position (deg)", "Joint {} Velocity (deg/s)", "Joint {} Torque (Nm)", "Joint {} Current (A)"),
    "ur": ("actual_q_{}", "actual_qd_{}", "actual_moment_{}", "actual_current_{}"),
}


def recorded(name, seed):
    """Time, position, velocity and torque of a virtual arm, in SI units, with noise."""
    robot, rng = arm(name), np.random.default_rng(seed)
    time = np.arange(int(SECONDS * RATE_HZ)) / RATE_HZ
    low, high = np.clip(robot.limits.lower, -2.0, 2.0), np.clip(robot.limits.upper, -2.0, 2.0)
    q, qd, qdd = (np.zeros((len(time), robot.n_joints)) for _ in range(3))
    for joint in range(robot.n_joints):
        for omega, phase in zip(rng.uniform(0.6, 4.0, 5), rng.uniform(0.0, 6.0, 5), strict=True):
            size = 0.16 * (high[joint] - low[joint]) / omega
            q[:, joint] += size * np.sin(omega * time + phase)
            qd[:, joint] += size * omega * np.cos(omega * time + phase)
            qdd[:, joint] -= size * omega**2 * np.sin(omega * time + phase)
    q += 0.5 * (low + high)
    tau = mujoco_torque(robot, Motion(q, qd, qdd))
    tau += 0.02 * tau.std(axis=0) * rng.normal(size=tau.shape)
    return robot, time, q, qd + 1e-3 * rng.normal(size=qd.shape), tau


REAL = {  # recipe and files
    "ur10e": [["ur-20_02_10-30sec_12harm.csv"], ["ur-20_01_17-ptp_10_points.csv"], ["ur-20_02_12-50sec_12harm.csv"]],
    "xmate7p": [["traj1.csv"], ["traj2.csv"]],
    "tx40": [["pos_read_data.csv", "curr_data.csv"]],
    "kr300": [["A.mat"], ["B.mat"]],
}


def of_real_robot(data, name, number):
    """Time, position, velocity and torque of a real log; velocity by differences where it has none."""
    robot = armid.load_robot(public_log(name).robot_path(data))
    files = [data / name / file for file in REAL[name][number % len(REAL[name])]]
    log = armid.read_log(files if len(files) > 1 else files[0], recipe=name).for_joints(robot.joint_names)
    log = log.rows(slice(0, None, max(1, round(log.rate_hz / RATE_HZ))))
    keep = np.flatnonzero(increasing_rows(log.time))[: int(SECONDS * RATE_HZ)]
    time, q = log.time[keep] - log.time[keep][0], log["position"][keep]
    qd = log["velocity"][keep] if "velocity" in log else np.gradient(q, time, axis=0)
    return robot, time, q, qd, log["effort"][keep]


class Table:
    """A CSV made from a log, and what its columns are."""

    def __init__(self, folder, name, seed, made=None):
        rng = np.random.default_rng(1000 + seed)
        self.robot, time, q, qd, tau = recorded(name, seed) if made is None else made
        joints, style = self.robot.n_joints, list(STYLES)[seed % len(STYLES)]
        self.header = bool(rng.random() < 0.75)
        degrees = style == "long" or bool(rng.random() < 0.3)
        factor = np.degrees(1.0) if degrees else 1.0
        base, words = int(rng.integers(2)), STYLES[style]
        unit, clock = [("", time), ("_ms", 1e3 * time), (" [us]", 1e6 * (time + 1.7e9)), ("", time + 1.7e9)][seed % 4]
        columns = {f"time{unit}": (clock, "time", 0)}
        current = bool(rng.random() < 0.3)
        for j in range(joints):
            columns[words[0].format(j + base)] = (factor * q[:, j], "position", j)
            columns[words[1].format(j + base)] = (factor * qd[:, j], "velocity", j)
            measured = (tau[:, j] / 9.0, "current", j) if current else (tau[:, j], "effort", j)
            columns[words[3 if current else 2].format(j + base)] = measured
        if rng.random() < 0.6:
            columns["row"] = (np.arange(len(time)), "other", 0)
            columns["temperature_case"] = (30.0 + 0.01 * time, "other", 0)
            columns["state"] = (np.round(rng.random(len(time))), "other", 0)
        order = list(columns)
        if rng.random() < 0.7:
            rng.shuffle(order)
        else:
            order.sort(key=lambda one: KINDS.index(columns[one][1]))
        self.truth = {one if self.header else k + 1: columns[one][1:] for k, one in enumerate(order)}
        self.degrees, self.clock = degrees, ["s", "ms", "us", "s"][seed % 4]
        self.path = folder / f"{name}{seed}.csv"
        rows = np.column_stack([columns[one][0] for one in order])
        head = ",".join(order) if self.header else ""
        np.savetxt(self.path, rows, delimiter=",", header=head, comments="", fmt="%.9f" if seed % 4 == 3 else "%.10g")
        if seed % 4 == 2:
            np.savetxt(self.path, rows, delimiter=",", header=head, comments="", fmt="%.6f")

    def judged(self):
        """Entries that are right, wrong and open."""
        found = guess_recipe([self.path], self.robot)
        right, wrong = [], []
        for guess in found.guesses:
            section, _, channel = guess.entry.rpartition(".")
            if guess.value is None:
                continue
            if section == "columns":
                places = guess.value if isinstance(guess.value, list) else [guess.value]
                told = [self.truth[place] for place in places]
                good = told == [(channel, j) for j in range(len(told))]
            elif section == "units":
                angle = "deg" if self.degrees else "rad"
                wanted = {
                    "time": self.clock,
                    "position": angle,
                    "velocity": f"{angle}/s",
                    "effort": "Nm",
                    "current": "A",
                }
                good = guess.value == wanted[channel]
            else:
                kinds = {channel for channel, _ in self.truth.values()}
                good = guess.value == ("current" if "current" in kinds else "joint torque")
            (right if good else wrong).append((guess.entry, guess.value))
        return right, wrong, [guess.entry for guess in found.open]


@pytest.mark.parametrize("seed", range(4))
def test_no_guess_is_wrong(tmp_path, seed):
    """Shuffled columns, other units, no header, more columns, clocks of several kinds: right or open."""
    right, wrong, _ = Table(tmp_path, ("ir361", "rx60")[seed % 2], seed).judged()
    assert not wrong
    assert right


@pytest.mark.prove
def test_thirty_tables(tmp_path):
    """30 tables from five arms: none wrong, and most of what could be told is told."""
    told = left = 0
    for seed in range(30):
        name = ("ir361", "rx60", "kr15", "pa10", "er16")[seed % 5]
        right, wrong, still = Table(tmp_path, name, seed).judged()
        assert not wrong, (name, seed, wrong)
        told, left = told + len(right), left + len(still)
        print(name, seed, len(right), "right, open:", still)
    print(f"{told} entries right, {left} open")
    assert told > 3 * left


@pytest.mark.prove
def test_thirty_tables_of_real_robots(tmp_path, data):
    """30 tables from eight logs of four robots, whose torque has real friction, noise and rounding: none wrong."""
    told = left = 0
    for seed in range(30):
        name = list(REAL)[seed % len(REAL)]
        table = Table(tmp_path, name, seed, of_real_robot(data, name, seed // len(REAL)))
        right, wrong, still = table.judged()
        print(name, seed, len(right), "right, open:", still, wrong)
        assert not wrong, (name, seed, wrong)
        told, left = told + len(right), left + len(still)
    print(f"{told} entries right, {left} open")
    assert told > left


def test_a_recipe_to_complete(tmp_path):
    """The written recipe is YAML, marks what is open, and reads the log once completed."""
    table = Table(tmp_path, "ir361", 1)
    text = guess_recipe([table.path], table.robot).text()
    assert "# OPEN effort" in text
    assert yaml.safe_load(text)["joints"] == list(table.robot.joint_names)
    recipe = Recipe.parse(text + ("" if "\neffort:" in text else "effort: joint torque\n"))
    log = armid.read_log(table.path, recipe)
    assert log["position"].shape[1] == table.robot.n_joints


def test_names_that_tell_nothing(tmp_path):
    """Words of another language: what a recipe cannot do without is open, not left out silently."""
    robot, time, q, _, tau = recorded("ir361", 0)
    names = ["t", *(f"A{j}" for j in range(3)), *(f"M{j}" for j in range(3))]
    np.savetxt(tmp_path / "a.csv", np.column_stack([time, q, tau]), header=",".join(names), delimiter=",", comments="")
    found = guess_recipe([tmp_path / "a.csv"], robot)
    assert [guess.entry for guess in found.open] == ["columns.position", "effort"]


def test_a_clock_in_two_columns(tmp_path):
    """Nanoseconds that start anew every second are no clock; two that run are named."""
    robot, time, q, _, tau = recorded("ir361", 0)
    names = [f"{kind}{j + 1}" for kind in ("position", "torque") for j in range(3)]
    for first, told in (
        ([np.floor(time), np.round(1e9 * (time % 1.0))], "0 columns run like a clock;"),
        ([time, time + 5.0], "2 columns run like a clock (here, there);"),
    ):
        header = ",".join([*(("secs", "nsecs") if "0" in told else ("here", "there")), *names])
        np.savetxt(tmp_path / "a.csv", np.column_stack([*first, q, tau]), header=header, delimiter=",", comments="")
        (guess,) = (one for one in guess_recipe([tmp_path / "a.csv"], robot).open if one.entry == "columns.time")
        assert guess.evidence.startswith(told)


def test_joints_that_wrap(tmp_path):
    """Told within 0 to 360 degrees, as some arms do: the effort balances them all the same."""
    robot, time, q, _, tau = recorded("ir361", 0)
    names = [
        "time_s",
        *(f"{kind}{j + 1}{u}" for kind, u in (("position", "_deg"), ("torque", "_Nm")) for j in range(3)),
    ]
    table = np.column_stack([time, np.degrees(q) % 360.0, tau])
    assert np.abs(np.diff(table[:, 1:4], axis=0)).max() > 300.0
    np.savetxt(tmp_path / "a.csv", table, header=",".join(names), delimiter=",", comments="")
    found = guess_recipe([tmp_path / "a.csv"], robot)
    assert found["columns.effort"] == names[4:]


def test_what_says_itself_what_it_is(tmp_path):
    """armid's own files need no recipe, and say so."""
    robot, time, q, _, tau = recorded("ir361", 0)
    log = armid.Log(time, {"position": q, "effort": tau}, armid.LogInfo(robot.joint_names, "joint torque"))
    armid.write_log(log, tmp_path / "log.csv")
    with pytest.raises(LogError, match="needs no recipe"):
        guess_recipe([tmp_path / "log.csv"], robot)


def test_real_tables(data):
    """Tables without a header: the clock is found, positions and velocities are offered in order, nothing is wrong."""
    entry = public_log("ur10e")
    found = guess_recipe([data / "ur10e" / entry.of_use("train")[0]], armid.load_robot(entry.robot_path(data)))
    assert found["columns.time"] == 1
    assert "[2, 3, 4, 5, 6, 7] with derivatives [8, 9, 10, 11, 12, 13]" in found.open[0].evidence
    entry = public_log("xmate7p")
    found = guess_recipe([data / "xmate7p" / entry.of_use("train")[0]], armid.load_robot(entry.robot_path(data)))
    assert [guess.entry for guess in found.guesses] == ["columns.time"]
    assert found["columns.time"] is None  # it has none
