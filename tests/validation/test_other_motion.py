"""A fit from averaged periods is validated on motion that does not repeat."""

import logging

import numpy as np

import armid
from armid.estimation import WeightedLeastSquares
from armid.excitation import FourierSeries
from armid.experiment import VirtualRobot, excite, point_to_point
from armid.signals import PeriodicAverage, process


def test_point_to_point_after_periods(caplog):
    """The log takes the usual way, which is said, and the fit holds on it."""
    robot = armid.load_robot("ir361")
    rng = np.random.default_rng(2)
    motion = FourierSeries(0.2, (1, 2, 3), *rng.normal(scale=0.25, size=(2, 3, 3)), np.zeros(3))
    arm = VirtualRobot(robot, rate_hz=150, seed=1)
    fit = WeightedLeastSquares().fit(robot, process(excite(arm, motion, periods=4), PeriodicAverage(), robot=robot))
    other = point_to_point(VirtualRobot(robot, rate_hz=150, seed=2), robot, points=10)
    with caplog.at_level(logging.WARNING, logger="armid"):
        check = armid.validate(fit, other)
    assert "does not repeat" in caplog.text
    assert check.good
    assert check.pipeline[-1]["step"] != "periodic-average"
