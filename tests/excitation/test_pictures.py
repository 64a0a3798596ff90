"""Pictures of a plan: they exist, show every joint with its limits and units, and say what they show."""

import struct
import sys
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid import theme
from armid.errors import ArmidError, MissingExtraError
from armid.excitation import FourierSeries, Plan
from armid.excitation.certificate import certify
from armid.excitation.criteria import Conditioning, conditioning
from armid.excitation.polynomial import quintic

matplotlib = pytest.importorskip("matplotlib")

from armid.excitation.pictures import (  # noqa: E402 - after the check that it can be drawn
    _used,
    draw_plan,
    motion_figure,
    random_like,
    singular_value_figure,
    spectrum_figure,
    tool_figure,
)


def drawn(name, joints=None):
    """A robot and a plan for it that was drawn at random inside 90 % of its limits."""
    robot = armid.load_robot(name)
    n = robot.n_joints
    moves = np.ones(n) if joints is None else np.isin(np.arange(1, n + 1), joints)
    sine = np.outer(moves, [0.1, 0.2, 0.1])
    middle = 0.5 * (robot.limits.lower + robot.limits.upper)
    series = FourierSeries(0.1, (1, 2, 3), sine, sine[:, ::-1], middle)
    plan = Plan(
        robot=robot.name,
        joint_names=robot.joint_names,
        trajectory=series,
        rate_hz=150.0,
        criterion="d-optimal",
        value=0.0,
        parameters=armid.Model(robot).base.kept,
        conditioning=Conditioning(0.0, 1.0, 1.0, 1.0, (1.0,)),
        margins=certify(series, robot.limits).margins,
        seconds=0.0,
        options={"joints": joints},
    )
    (random,) = random_like(plan, robot, draws=1, seed=9)
    size = 0.9 / np.nanmax(_used(random, robot))
    return robot, replace(plan, trajectory=replace(random, sine=size * random.sine, cosine=size * random.cosine))


@pytest.fixture(scope="module")
def pa10():
    return drawn("pa10")


def sentence(figure):
    return figure.get_suptitle().replace("\n", " ")


def texts(axis):
    return [text.get_text() for text in axis.texts]


def boxes(figure):
    """Extents of all that is written in a figure [pixel], by text; marks outside the view are not drawn."""
    figure.canvas.draw()
    hidden = {
        id(tick.label1)
        for axes in figure.axes
        for direction in (axes.xaxis, axes.yaxis)
        for tick in (*direction.get_major_ticks(), *direction.get_minor_ticks())
        if not min(direction.get_view_interval()) <= tick.get_loc() <= max(direction.get_view_interval())
        or not tick.label1.get_visible()
    }
    items = [item for item in figure.findobj(matplotlib.text.Text) if item.get_visible() and item.get_text().strip()]
    renderer = figure.canvas.get_renderer()
    return [(item.get_text(), item.get_window_extent(renderer)) for item in items if id(item) not in hidden]


def test_files(pa10, tmp_path):
    """Four PNG files 1200 pixels wide, and nothing else."""
    robot, plan = pa10
    written = draw_plan(plan, robot, tmp_path, "my plan")
    names = ["motion", "tool-path", "spectrum", "singular-values"]
    assert [path.name for path in written] == [f"my plan-{n}.png" for n in names]
    assert sorted(tmp_path.iterdir()) == sorted(written)
    for path in written:
        content = path.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", content[16:24])
        assert width == 1200
        assert 500 <= height <= 1300


def test_motion_shows_every_joint_with_limits(pa10):
    """Seven rows, three columns, the curve of the trajectory, its two limits, units on every axis."""
    robot, plan = pa10
    figure = motion_figure(plan, robot)
    assert len(figure.axes) == 7 * 3
    limits = robot.limits
    bounds = ((limits.lower, limits.upper), *((-b, b) for b in (limits.velocity, limits.acceleration)))
    for number, axis in enumerate(figure.axes):
        j, column = divmod(number, 3)
        curve, low, high = axis.lines
        want = plan.trajectory.at(curve.get_xdata())[column][:, j]
        assert np.array_equal(curve.get_ydata(), want)
        assert (curve.get_color(), low.get_color()) == (theme.PREDICTED, theme.LIMIT)
        assert (low.get_ydata()[0], high.get_ydata()[0]) == (bounds[column][0][j], bounds[column][1][j])
        bottom, top = axis.get_ylim()
        assert bottom < low.get_ydata()[0] < high.get_ydata()[0] < top
        assert axis.get_ylabel() == ("rad", "rad/s", "rad/s²")[column]
        assert axis.get_xlabel() == ("time [s]" if j == 6 else "")
    assert "every joint stays inside its limits" in sentence(figure)
    assert "using 90.0 % of its" in sentence(figure)


def test_motion_tells_of_a_broken_limit(pa10):
    """A plan that breaks its limits is not called good."""
    robot, plan = pa10
    slow = replace(robot, limits=replace(robot.limits, velocity=0.5 * robot.limits.velocity))
    assert "LIMITS ARE BROKEN" in sentence(motion_figure(plan, slow))


@pytest.mark.parametrize("make", [motion_figure, spectrum_figure, singular_value_figure])
def test_nothing_is_written_over_anything(pa10, make):
    """No two texts overlap, and none leaves the picture, with seven joints."""
    figure = make(pa10[1], pa10[0])
    found = boxes(figure)
    size = figure.get_size_inches() * figure.dpi
    for index, (text, box) in enumerate(found):
        assert box.x0 > -1, text
        assert box.y0 > -1, text
        assert box.x1 < size[0] + 1, text
        assert box.y1 < size[1] + 1, text
        for other, another in found[index + 1 :]:
            wide = min(box.x1, another.x1) - max(box.x0, another.x0)
            high = min(box.y1, another.y1) - max(box.y0, another.y0)
            assert min(wide, high) < 1.0, f"{text!r} and {other!r}"


def test_resting_joints_and_unknown_limits():
    """Joints that do not move say so; limits that nobody knows are not drawn."""
    robot, plan = drawn("kr15", joints=[3, 4, 5, 6])
    figure = motion_figure(plan, robot)
    assert ["at rest" in texts(axis) for axis in figure.axes[::3]] == [True, True, False, False, False, False]
    unknown = replace(robot, limits=type(robot.limits).unknown(6))
    figure = motion_figure(plan, unknown)
    assert all(len(axis.lines) == 1 for axis in figure.axes)
    assert "no limits are known" in sentence(figure)


def test_tool_path_is_in_space_with_equal_scales(pa10):
    """The path is that of the tool, its first point is marked, metres are equally long in all directions."""
    robot, plan = pa10
    figure = tool_figure(plan, robot)
    (axis,) = figure.axes
    times = np.linspace(0.0, 10.0, 1000)
    want = armid.tool_frame(robot, plan.trajectory.at(times).q)[:, :3, 3]
    curves = [np.array(line.get_data_3d()).T for line in axis.lines]
    assert any(np.allclose(curve, want) for curve in curves if curve.shape == want.shape)
    assert any(np.allclose(curve, want[:1]) for curve in curves if len(curve) == 1)
    spans = np.array([np.ptp(getattr(axis, f"get_{name}lim")()) for name in "xyz"])
    assert np.ptp(spans / axis.get_box_aspect()) < 1e-9
    assert [axis.get_xlabel(), axis.get_ylabel(), axis.get_zlabel()] == ["x [m]", "y [m]", "z [m]"]
    assert any("start" in text for text in texts(axis))
    boxed = replace(robot, limits=replace(robot.limits, box=np.array([[-1.0, -1.0, 0.0], [1.0, 1.0, 2.0]])))
    red = [line for line in tool_figure(plan, boxed).axes[0].lines if line.get_color() == theme.LIMIT]
    assert len(red) == 12


def test_spectrum_has_a_stem_per_harmonic(pa10):
    """One panel per joint on one scale; amplitudes are those of a discrete Fourier transform of the positions."""
    robot, plan = pa10
    figure = spectrum_figure(plan, robot)
    assert len(figure.axes) == 7
    _, motion = plan.trajectory.sample(100.0)
    transform = 2.0 * np.abs(np.fft.rfft(motion.q, axis=0)) / 1000
    for j, axis in enumerate(figure.axes):
        (heads,) = axis.lines
        assert heads.get_xdata() == pytest.approx([0.1, 0.2, 0.3])
        assert heads.get_ydata() == pytest.approx(transform[1:4, j])
        assert axis.get_ylim() == figure.axes[0].get_ylim()
    assert "3 harmonics up to 0.3 Hz" in sentence(figure)


def test_singular_values_before_and_after(pa10):
    """The curve is that of the scaled regressor by SVD, and the condition numbers stand there in words."""
    robot, plan = pa10
    figure = singular_value_figure(plan, robot)
    (axis,) = figure.axes
    before, after = (line.get_ydata() for line in axis.lines)
    motion = plan.trajectory.at(np.arange(512) * 10.0 / 512)
    W = armid.Model(robot).regressor(*motion, plan.parameters).reshape(-1, len(plan.parameters))
    want = np.linalg.svd(W / np.linalg.norm(W, axis=0), compute_uv=False)
    assert after == pytest.approx(want, rel=0.05)  # the sign of velocity is smoothed
    words = " ".join(texts(axis))
    assert f"this plan: condition number {after[0] / after[-1]:.3g}" in words
    assert f"random (median of 25): condition number {before[0] / before[-1]:.3g}" in words
    assert "confidence intervals are" in sentence(figure)


def test_random_trajectories_use_the_same_limits(pa10):
    """Each reaches the share of the limits that the plan may use, and no more; resting joints keep their posture."""
    robot, plan = pa10
    for series in random_like(plan, robot, draws=5, seed=1):
        extrema, limits = series.extrema(), robot.limits
        used = [extrema.velocity / limits.velocity, extrema.acceleration / limits.acceleration]
        used.append(np.maximum(extrema.upper, -extrema.lower) / limits.upper)  # this arm's ranges are symmetric
        assert np.max(used, axis=0) == pytest.approx(np.full(7, 0.9))
    robot, plan = drawn("kr15", joints=[3, 4, 5, 6])
    (series,) = random_like(plan, robot, draws=1)
    assert not series.sine[:2].any()
    assert np.array_equal(series.offset[:2], plan.trajectory.offset[:2])


def test_unseen_parameters_are_told():
    """Where random motion leaves parameters unseen, the sentence says so instead of dividing by zero."""
    robot, plan = drawn("kr15", joints=[3, 4, 5, 6])
    figure = singular_value_figure(plan, robot)
    assert conditioning(np.zeros((2, 2)), 1).condition == np.inf
    assert "infinite" in " ".join(texts(figure.axes[0]))
    assert "leaves some unseen" in sentence(figure)


def test_wrong_robot_and_wrong_trajectory(pa10):
    """A plan for another arm, or one that is no Fourier series, is refused in a sentence."""
    robot, plan = pa10
    with pytest.raises(ArmidError, match="the plan is for pa10 with joints"):
        motion_figure(plan, armid.load_robot("kr15"))
    with pytest.raises(ArmidError, match="need a plan with a Fourier series"):
        motion_figure(replace(plan, trajectory=quintic(np.zeros((2, 7)), [1.0])), robot)


def test_without_matplotlib(pa10, tmp_path, monkeypatch):
    """The extra to install is named, and nothing is written."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"armid\[report\]"):
        draw_plan(pa10[1], pa10[0], tmp_path, "plan")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_not_there(pa10, tmp_path):
    """The error names the file."""
    with pytest.raises(ArmidError, match=r"gone.*cannot be written"):
        draw_plan(pa10[1], pa10[0], tmp_path / "gone", "plan")


def test_nobody_elses_settings_are_touched(pa10):
    """Neither matplotlib's settings nor its choice of screen change."""
    before = dict(matplotlib.rcParams)
    loaded = "matplotlib.pyplot" in sys.modules
    motion_figure(pa10[1], pa10[0])
    assert dict(matplotlib.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) == loaded


def test_keep_out_boxes_are_drawn(pa10):
    """Twelve red edges for each box that the plan names, and the sentence tells what they are."""
    robot, plan = pa10
    told = [{"name": "keep-out box", "corner": [0.2, 0.2, 0.2], "opposite": [0.5, 0.6, 0.7]}, {"name": "floor"}]
    limited = replace(plan, options={"constraints": told})
    bare, kept_out = tool_figure(plan, robot), tool_figure(limited, robot)
    assert len(kept_out.axes[0].lines) == len(bare.axes[0].lines) + 12
    assert "what it has to keep out of is red." in sentence(kept_out)
    both = replace(robot, limits=replace(robot.limits, box=np.array([[-1.0] * 3, [1.0] * 3])))
    assert "to stay in and to keep out of are red" in sentence(tool_figure(limited, both))
