"""Pictures of the papers: what is written and drawn follows from the numbers."""

import numpy as np
import pytest

from armid import theme
from armid.dynamics.kinematics import all_frames
from armid.excitation.profiles import er16_beta_1
from armid.papers import pictures
from armid.papers.frames import frames_figure, link_lines
from armid.robot.load import library_names, load_robot

JOINTS = ("joint1", "joint2", "joint3")


def sentence(figure):
    return figure.get_suptitle().replace("\n", " ").replace("\u00a0", " ")


def texts(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


@pytest.fixture
def torques():
    t = np.linspace(0.0, 10.0, 501)
    measured = np.column_stack([100.0 * np.sin(t), 20.0 + 50.0 * np.cos(t), 3.0 * np.sin(2.0 * t)])
    return t, measured, measured + np.array([2.0, -1.0, 0.3])


def test_torque_figure_writes_rms_and_noise_ratio(torques):
    t, measured, predicted = torques
    figure = pictures.torque_figure(t, measured, predicted, JOINTS, what="Arm, test", noise=[4.0, 1.0, 0.1])
    assert sentence(figure).startswith("Arm, test: the model leaves 2 / 1 / 0.3 N m RMS")
    assert any("RMS 2 N m" in text and "0.50 × noise" in text for text in texts(figure))
    assert any("RMS 0.3 N m" in text and "3.00 × noise" in text for text in texts(figure))


def test_error_has_the_scale_of_its_torque(torques, tmp_path):
    """A newton metre is as long in both panels of a joint."""
    t, measured, predicted = torques
    figure = pictures.torque_figure(t, measured, predicted, JOINTS, what="Arm", validation=True)
    theme.save(figure, tmp_path / "a.png")
    for upper, lower in zip(figure.axes[::2], figure.axes[1::2], strict=True):
        per_inch = [float(np.diff(axis.get_ylim())[0]) / axis.get_position().height for axis in (upper, lower)]
        assert per_inch[0] == pytest.approx(per_inch[1], rel=0.02)
        assert upper.get_facecolor() == lower.get_facecolor() != (1.0, 1.0, 1.0, 1.0)


def test_huge_errors_are_cut_and_said(torques):
    t, measured, _ = torques
    figure = pictures.torque_figure(t, measured, 0.0 * measured - 300.0, JOINTS, what="Arm")
    assert any("cut off" in text for text in texts(figure))


def test_motion_figure_says_when_limits_are_broken():
    robot, series = load_robot("er16"), er16_beta_1()
    times = np.linspace(0.0, 20.0, 500)
    motion = series.at(times)
    assert "joints stay inside their limits" in sentence(pictures.motion_figure(times, motion, robot, what="A"))
    fast = motion._replace(qd=3.0 * motion.qd)
    assert "LIMITS OF VELOCITY ARE BROKEN" in sentence(pictures.motion_figure(times, fast, robot, what="A"))
    assert len(pictures.motion_figure(times, motion, robot, what="A").axes) == 9


def test_tool_paths_tell_their_lengths():
    angle = np.linspace(0.0, 2.0 * np.pi, 2001)
    ring = np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    assert "travels 6.28 m" in sentence(pictures.tool_path_figure({"a": ring}, what="Arm"))
    six = {name: (k + 1) * ring for k, name in enumerate("abcdef")}
    figure = pictures.tool_path_figure(six, what="Arm")
    assert len(figure.axes) == 6
    assert "from 6.28 m (a) to 37.7 m (f)" in sentence(figure)


def test_evolution_names_the_best_and_the_published():
    falling = 1.0 / np.arange(1.0, 52.0)
    many = np.vstack([falling, 2.0 * falling, 3.0 * falling])
    figure = pictures.evolution_figure({"one": falling, "three": many}, what="Search", published=0.3182)
    assert "falls from 1 to 0.0196 with one" in sentence(figure)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["one: 0.0196", "three: 0.0392", "published: 0.3182"]


def test_spectrum_tells_how_far_lines_stand_out():
    f = np.arange(0.0, 5.0, 0.1)
    amplitude = np.full((len(f), 3), 1e-3)
    amplitude[[1, 2, 3]] = 1.0
    figure = pictures.spectrum_figure(f, amplitude, JOINTS, what="Arm", lines_hz=(0.1, 0.2, 0.3))
    assert "3 excited lines (dots) stand a factor 1000 above the rest" in sentence(figure)


def test_estimates_count_how_many_hold_the_truth():
    values, errors, truth = np.array([1.0, 2.0, 3.0]), np.full(3, 0.1), np.array([1.1, 2.3, 3.0])
    figure = pictures.estimates_figure("abc", values, errors, what="Arm", truth=truth, published=values, unit="kg")
    assert "3 parameters with 2σ intervals; 2 of 3 contain the truth" in sentence(figure)
    wide = pictures.estimates_figure("abc", [1e-4, 1e-4, 50.0], errors, what="Arm")
    assert wide.axes[0].get_yscale() == "symlog"


@pytest.mark.parametrize("name", library_names())
def test_links_are_drawn_from_origin_to_origin(name):
    """Lines run along frames of forward kinematics, in steps along or across the joint's axis, for any posture."""
    robot = load_robot(name)
    joints, links = (frames[0] for frames in all_frames(robot, np.full((1, robot.n_joints), 0.3)))
    for j, line in enumerate(link_lines(robot, joints, links)):
        parent = robot.joints[j].parent
        start = np.zeros(3) if parent == 0 else links[parent - 1, :3, 3]
        np.testing.assert_allclose(line[0], start, atol=1e-12)
        np.testing.assert_allclose(line[-1], links[j, :3, 3], atol=1e-9)
        for step in np.diff(line, axis=0):
            along = abs(step @ joints[j, :3, 2])
            assert min(along, np.linalg.norm(step) - along) < 1e-9


def test_frames_are_labelled_once(tmp_path):
    """Every axis is named; names of axes that end in one point share a label."""
    figure = frames_figure(load_robot("rx60", links=6))
    names = [name.strip() for text in texts(figure) for name in text.split(",")]
    assert sorted(n for n in names if n[0] in "xz") == sorted(f"{a}{k}" for a in "xz" for k in range(7))
    assert "x4, x5, x6" in [text.strip() for text in texts(figure)]
    assert "(0.29, 0.049, 0.547) m" in sentence(figure)
    theme.save(figure, tmp_path / "frames.png")
