"""Pictures of single-joint experiments are drawn and say what they show."""

import numpy as np
import pytest

import armid
from armid import theme
from armid.estimation.single_joint.friction_fit import fit_friction
from armid.estimation.single_joint.friction_points import friction_points
from armid.estimation.single_joint.load_friction import fit_load_friction
from armid.estimation.single_joint.warmup import fit_warmup
from armid.experiment.friction_runs import friction_sweep, load_friction_run
from tests.experiment.fake_arm import FakeArm

pytest.importorskip("matplotlib")
PA10 = armid.load_robot("pa10")


def sentence(figure):
    return figure.get_suptitle().replace("\n", " ")


def test_friction_picture(tmp_path):
    """One row per joint, curve and residual; the sentence names the worst joint; the file is written."""
    from armid.estimation.single_joint.pictures import friction_figure

    fits = []
    for joint in (1, 4):
        arm = FakeArm(PA10, rate_hz=100.0)
        run = friction_sweep(arm, PA10, joint, seconds=1.0)
        fits.append(fit_friction(friction_points(run.log, PA10, joint)))
    figure = friction_figure(fits, "pa10")
    assert len(figure.axes) == 4
    assert "times the noise" in sentence(figure)
    assert theme.save(figure, tmp_path / "friction.png").stat().st_size > 10_000


def test_stiffness_picture(tmp_path):
    """Dots and line per joint; the sentence says how many joints lose torque."""
    from armid.estimation.single_joint.pictures import load_friction_figure

    arm = FakeArm(PA10, rate_hz=100.0)
    fits = [
        fit_load_friction(load_friction_run(arm, PA10, joint, seconds=10.0).log, PA10, joint, values=arm.values)
        for joint in (1, 2, 3)
    ]
    figure = load_friction_figure(fits, "pa10")
    assert "3 of 3 joints" in sentence(figure)
    assert theme.save(figure, tmp_path / "stiffness.png").exists()


def test_warmup_picture(tmp_path):
    """Means and exponential; the sentence gives the drop."""
    from armid.estimation.single_joint.pictures import warmup_figure

    t = np.arange(5.0, 600.0, 10.0)
    means = 9.0 + np.exp(-t / 150.0) + 0.01 * np.random.default_rng(0).normal(size=len(t))
    figure = warmup_figure([fit_warmup("joint4", t, means)], "powerball")
    assert "10.0 %" in sentence(figure) or "9.9 %" in sentence(figure) or "10.1 %" in sentence(figure)
    assert theme.save(figure, tmp_path / "warmup.png").exists()
