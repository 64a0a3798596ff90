"""Exports of a plan: what a controller reads is the trajectory, to the last digit, and starts at rest."""

import csv
import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml

import armid
from armid.errors import ArmidError, UnknownNameError
from armid.excitation import FourierSeries, Plan
from armid.excitation.certificate import Margin, certify
from armid.excitation.criteria import Conditioning
from armid.excitation.export_plan import export_plan, to_csv, to_ros, to_urscript
from armid.excitation.polynomial import quintic
from armid.excitation.sequence import Ramp
from armid.excitation.trajectory import SamplingError
from armid.notes import Note


def plan_for(name, harmonics=(1, 2, 5), size=0.3, **changes):
    """A plan that was drawn, not designed."""
    robot = armid.load_robot(name)
    rng = np.random.default_rng(3)
    sine, cosine = size * rng.normal(size=(2, robot.n_joints, len(harmonics))) / np.array(harmonics)
    sine[0, 0] = 1e-7  # an exponent in its text
    series = FourierSeries(0.1, harmonics, sine, cosine, rng.normal(size=robot.n_joints))
    plan = Plan(
        robot=robot.name,
        joint_names=robot.joint_names,
        trajectory=series,
        rate_hz=150.0,
        criterion="d-optimal",
        value=0.0,
        parameters=("fv1",),
        conditioning=Conditioning(0.0, 1.0, 1.0, 1.0, (1.0,)),
        margins=certify(series, robot.limits).margins,
        seconds=0.0,
    )
    return replace(plan, **changes)


@pytest.fixture(scope="module")
def plan():
    return plan_for("powerball")


def table_of(plan, rate=None):
    """Rows of the CSV without its comments."""
    return [row for row in csv.reader(io.StringIO(to_csv(plan, rate))) if not row[0].startswith("#")]


@pytest.mark.parametrize("write", [to_csv, to_ros, to_urscript])
def test_every_program_says_what_was_not_checked(plan, write):
    """A plan that knows of no floor says so in a comment of one line, whatever names hold; a full one says nothing."""
    names = ("torque", "self-collision", "tool speed")
    kept = replace(plan, margins=tuple(Margin(name, 0, 0.1, "") for name in names))
    odd = Note("excitation.unchecked-shapes", {"names": "a\nmovej()\u2028b"})
    comments = [line for line in write(replace(kept, notes=(odd,))).splitlines() if "ot checked" in line]
    assert comments == [
        "# Not checked: shapes that could not be read: a movej() b",
        "# Not checked: floor: no part of this design",
    ]
    full = replace(kept, margins=(*kept.margins, Margin("floor", 0, 0.1, "", "m")))
    assert "ot checked" not in write(full)
    assert "LIMITS ARE BROKEN" in write(replace(full, margins=(Margin("floor", 0, -0.1, "", "m"),)))


@pytest.mark.parametrize("rate", [None, 40.0])
def test_csv_holds_one_period_exactly(plan, rate):
    """Re-read, every number of the table is that of the trajectory."""
    header, *rows = table_of(plan, rate)
    kinds = ("position", "velocity", "acceleration")
    assert header == ["time", *(f"{kind}.{name}" for kind in kinds for name in plan.joint_names)]
    table = np.array(rows, dtype=float)
    times, motion = plan.trajectory.sample(rate or plan.rate_hz)
    assert len(table) == 10 * (rate or 150)
    assert np.array_equal(table, np.hstack([times[:, None], *motion]))
    assert np.abs(table[:, 1:] - np.hstack(plan.trajectory.at(table[:, 0]))).max() <= 1e-15


def test_csv_quotes_names(plan):
    """A joint's name with a comma stays one column."""
    odd = replace(plan, joint_names=("a,b", *plan.joint_names[1:]))
    assert table_of(odd)[0][1] == "position.a,b"


def points_of(text):
    """Message, times and motion of a ROS export."""
    message = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text).get_single_data()
    points = message["points"]
    times = np.array([p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in points])
    return message, times, [np.array([p[k] for p in points]) for k in ("positions", "velocities", "accelerations")]


def test_ros_points_without_run_in_are_the_trajectory(plan):
    """One period at 75 Hz (150 Hz halved), from the first point after 0 to the end of the period."""
    text = to_ros(plan, run_in=False)
    message, times, (q, qd, qdd) = points_of(text)
    assert message == yaml.safe_load(text)
    assert list(message) == ["header", "joint_names", "points"]
    assert message["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    assert tuple(message["joint_names"]) == plan.joint_names
    assert all(isinstance(value, float) for point in message["points"] for value in point["positions"])
    assert times == pytest.approx(np.arange(1, 751) / 75.0, abs=1e-9)
    want = plan.trajectory.at(np.arange(1, 751) / 75.0)
    for have, exact in zip((q, qd, qdd), want, strict=True):
        assert np.abs(have - exact).max() < 1e-13


@pytest.mark.parametrize("periods", [1, 2])
def test_ros_starts_and_ends_at_rest(plan, periods):
    """With run-in the whole periods lie where the comment says, and no more acceleration is needed than in them."""
    text = to_ros(plan, 100.0, periods=periods)
    start, end = (float(word) for word in re.search(r"from ([\d.]+) s to ([\d.]+) s", text).groups())
    _, times, (q, qd, qdd) = points_of(text)
    assert end - start == pytest.approx(10.0 * periods)
    inside = (times > start - 1e-6) & (times < end + 1e-6)
    want = plan.trajectory.at(times[inside] - start)
    assert np.abs(q[inside] - want.q).max() < 1e-8
    assert np.abs(qd[inside] - want.qd).max() < 1e-8
    assert np.abs(qd[0]).max() < 0.02 * np.abs(qd).max()
    assert np.abs(qd[-1]).max() < 1e-12
    extrema = plan.trajectory.extrema()
    assert np.all(np.abs(qd) <= extrema.velocity + 1e-9)
    assert np.all(np.abs(qdd) <= extrema.acceleration * 1.001)
    assert np.abs(np.diff(q, axis=0) - 0.005 * (qd[1:] + qd[:-1])).max() < 1e-4


@pytest.mark.parametrize(("rate", "points"), [(150.0, 750), (1000.0, 1000), (100.0, 1000), (150.1, 1501), (7.5, 75)])
def test_ros_default_rate(plan, rate, points):
    """At most 100 Hz by a whole divisor of the samples; a rate that has none is kept."""
    _, times, _ = points_of(to_ros(replace(plan, rate_hz=rate), run_in=False))
    assert (len(times), times[-1]) == (points, pytest.approx(10.0))


def run_urscript(text):
    """Run a script as Python, which it is but for `end`, `global` and `local`: arguments of all calls, by function."""
    calls = {"movej": [], "servoj": [], "stopj": [], "sleep": []}
    lines = [line for line in text.splitlines() if line.strip() != "end"]
    python = re.sub(r"\b(global|local) (?=\w+ =)", "", "\n".join(lines))
    names = {"sin": math.sin, "cos": math.cos, "floor": math.floor}
    for name, found in calls.items():
        names[name] = lambda value, found=found, **options: found.append((value, options))
    exec(python + "\narmid_excitation()", names)
    return calls


@pytest.mark.parametrize(("rate", "periods", "step"), [(None, 1, 0.002), (125.0, 2, 0.008)])
def test_urscript_drives_the_trajectory(plan, rate, periods, step):
    """The script's own arithmetic gives run-in, periods and run-out of the trajectory at every step of its loop."""
    text = to_urscript(plan, rate, periods=periods)
    assert text.count("end\n") == len(re.findall(r"^ *(?:def|while|if) ", text, re.MULTILINE))
    calls = run_urscript(text)
    q = np.array([value for value, _ in calls["servoj"]])
    assert all(o == {"t": step, "lookahead_time": 0.1, "gain": 300} for _, o in calls["servoj"])
    ramp = float(re.search(r"run-out of ([\d.]+) s", text).group(1))
    times = np.arange(len(q)) * step
    assert times[-1] == pytest.approx(10.0 * periods + 2 * ramp)
    want = np.where(
        (times < ramp)[:, None],
        Ramp(plan.trajectory, ramp).at(times).q,
        np.where(
            (times <= ramp + 10.0 * periods)[:, None],
            plan.trajectory.at(times - ramp).q,
            Ramp(plan.trajectory, ramp, rising=False).at(times - ramp - 10.0 * periods).q,
        ),
    )
    assert np.abs(q - want).max() < 1e-12
    ((start, moderate),) = calls["movej"]
    assert np.abs(start - want[0]).max() < 1e-12
    assert max(moderate.values()) <= 0.5
    assert len(calls["stopj"]) == 1
    assert np.abs(q[1] - q[0]).max() < 1e-5  # starts at rest
    assert np.abs(q[-1] - q[-2]).max() < 1e-5


def test_urscript_says_what_to_check_and_has_no_exponents(plan):
    """Comments come first; numbers are written out, since controllers need not know 1e-07."""
    text = to_urscript(replace(plan, robot="my\narm"))
    assert text.startswith("# Exciting trajectory for my arm")
    assert "Before it runs, check" in text
    assert not re.search(r"\de[-+]?\d", text)
    assert len(text) < 20_000


def test_urscript_needs_six_joints_and_a_series(plan):
    """Other arms and other trajectories are refused in a sentence."""
    with pytest.raises(ArmidError, match="6 joints, this one has 7; use csv or ros"):
        to_urscript(plan_for("pa10"))
    path = quintic(np.zeros((2, 6)), [1.0])
    with pytest.raises(ArmidError, match="needs a Fourier series"):
        to_urscript(replace(plan, trajectory=path))
    with pytest.raises(ArmidError, match="periods"):
        to_urscript(plan, periods=0)


def test_other_trajectories_go_as_csv_and_ros(plan):
    """A trajectory that is not periodic is exported from its start to its end."""
    path = quintic(np.array([np.zeros(6), np.ones(6)]), [2.0])
    other = replace(plan, trajectory=path)
    _, times, (q, *_) = points_of(to_ros(other, 50.0))
    assert (times[-1], q[-1].tolist()) == (2.0, pytest.approx([1.0] * 6))
    assert len(table_of(other)) == 302


@pytest.mark.parametrize("export", [to_csv, to_ros])
def test_rate_must_fit_the_period(plan, export):
    """A rate without a whole number of samples is refused, with the nearest that fits."""
    with pytest.raises(SamplingError, match=r"use 33\.3 Hz"):
        export(plan, 33.33)


def test_files(plan, tmp_path):
    """Each kind has its ending; an unknown kind is named before anything is written."""
    stem = tmp_path / "plan.v2"
    with pytest.raises(UnknownNameError, match="did you mean 'csv'"):
        export_plan(plan, ["ros", "cvs"], stem)
    assert list(tmp_path.iterdir()) == []
    written = export_plan(plan, ["csv", "ros", "urscript"], stem)
    assert [path.name for path in written] == ["plan.v2.csv", "plan.v2.ros.yaml", "plan.v2.script"]
    assert sorted(tmp_path.iterdir()) == sorted(written)
    assert written[0].read_text() == to_csv(plan)
