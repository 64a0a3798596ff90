"""The identified arm in MuJoCo, from its MJCF alone, follows the virtual robot's record better than the nominal one."""

import numpy as np
import pytest

import armid
from armid import theme
from armid.errors import ArmidError
from armid.estimation import identify
from armid.exporting import ExportError, export
from armid.exporting.replay import nominal_mjcf, replay, replay_figure
from armid.signals import process
from tests.exporting.arms import library_fit, swing, virtual_description

pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A virtual arm that its URDF describes badly, identified on one motion; a record of another."""
    from armid.experiment.virtual import VirtualRobot

    folder = tmp_path_factory.mktemp("replay")
    robot = armid.load_robot(virtual_description(folder))
    log = VirtualRobot(robot, seed=0).run(swing(robot, 0), periods=3)
    other = VirtualRobot(robot, seed=1).run(swing(robot, 1), periods=1)
    fit = identify(robot, process(log, robot=robot), friction="linear")
    export(fit, ["mjcf"], folder / "out")
    nominal_mjcf(fit, folder / "nominal.xml")
    nominal_mjcf(fit, folder / "links.xml", friction="identified")
    arms = {
        "identified": folder / "out/small.xml",
        "nominal": folder / "nominal.xml",
        "nominal links": folder / "links.xml",
    }
    return fit, other, replay(arms, other)


def test_the_identified_arm_follows_the_record(case):
    """Every joint is much nearer than with nominal values, also where only the links differ; and near in itself."""
    found = case[2]
    identified = found.rms("identified")
    assert np.all(identified < 0.02 * found.rms("nominal"))
    assert np.all(identified < 0.25 * found.rms("nominal links"))
    assert np.all(identified < 0.03 * np.std(found.position, axis=0))


def test_the_picture(case, tmp_path):
    """One row per joint; the sentence states the ratio that the numbers give."""
    pytest.importorskip("matplotlib")
    found = case[2]
    figure = replay_figure(found, "small")
    assert len(figure.axes) == 2 * len(found.joints)
    assert "times nearer" in figure.get_suptitle()
    theme.save(figure, tmp_path / "replay.png")
    assert (tmp_path / "replay.png").stat().st_size > 20_000


def test_what_replay_needs(case, tmp_path):
    """Velocity, a window, and a description that states inertias to compare with."""
    fit, other, _ = case
    with pytest.raises(ArmidError, match="window above 0"):
        replay({"identified": tmp_path / "a.xml"}, other, window_s=0.0)
    with pytest.raises(ExportError, match="no nominal inertia"):
        nominal_mjcf(library_fit("ir361"), tmp_path / "a.xml")
    assert fit.standard_parameters is not None
