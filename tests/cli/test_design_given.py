"""`armid design --given FIT`: the next trajectory is designed for what a fit does not know yet."""

import numpy as np

from armid import load_robot
from armid.estimation import WeightedLeastSquares
from armid.excitation import Fourier, FourierSeries, load_plan
from armid.excitation.criteria import DOptimal
from armid.excitation.design import design_problem, gathered_information
from armid.experiment import VirtualRobot, excite
from armid.signals import PeriodicAverage, process


def test_design_after_a_fit(armid, tmp_path):
    """A fit is taken, its information counts, and a fit of another robot is refused."""
    robot = load_robot("er16").first_links(3)
    rng = np.random.default_rng(0)
    motion = FourierSeries(0.2, (1, 2), *rng.normal(scale=0.2, size=(2, 3, 2)), np.full(3, 0.1))
    arm = VirtualRobot(robot, rate_hz=100, seed=1)
    fit = WeightedLeastSquares().fit(robot, process(excite(arm, motion, periods=3), PeriodicAverage(), robot=robot))
    path = tmp_path / "fit.json"
    fit.save(path)
    common = ("design", "er16", "--links", 3, "--starts", 1, "--rate", 100, "--period", 5, "--json", "--default-limits")
    plan = tmp_path / "plan.json"
    result = armid(*common, "--given", path, "-o", plan)
    assert result.code == 0, result.err
    noise = 1.0 / np.sqrt(fit.weights)
    own = gathered_information(load_plan(plan), robot, Fourier(5, 5.0), rate_hz=100.0, noise=noise)
    assert load_plan(plan).value < DOptimal().cost(own, 500)[0] - 0.1
    other = armid("design", "ir361", "--given", path, "--starts", 1)
    assert other.code == 2
    assert "is a fit of 'er16'" in other.err


def test_information_of_a_fit_is_the_inverse_of_its_covariance(tmp_path):
    """Per sample of the plan to come, in the design's order of parameters."""
    from armid.cli.design import _given_information as given_information

    robot = load_robot("er16").first_links(3)
    rng = np.random.default_rng(1)
    motion = FourierSeries(0.2, (1, 2), *rng.normal(scale=0.2, size=(2, 3, 2)), np.full(3, 0.1))
    data = process(excite(VirtualRobot(robot, rate_hz=100), motion, periods=3), PeriodicAverage(), robot=robot)
    fit = WeightedLeastSquares().fit(robot, data)
    fit.save(tmp_path / "fit.json")
    shape = Fourier(3, 5.0)
    options = {"rate_hz": 100.0, "noise": None}
    found, noise = given_information(str(tmp_path / "fit.json"), robot, shape, options)
    names = design_problem(robot, shape, rate_hz=100.0, noise=noise).parameters
    order = [fit.columns.index(name) for name in names]
    expected = np.linalg.inv(fit.covariance[np.ix_(order, order)]) / 500.0
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
