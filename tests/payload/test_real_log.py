"""A real payload: UR10e with 2.805 kg, the arm trained on another day's log, defaults only."""

from functools import cache

import numpy as np
import pytest

import armid
from armid.estimation import identify
from armid.logs import read_log
from armid.logs.public import public_log
from armid.payload import identify_payload
from armid.robot.inertia import impossibility
from armid.signals import process

KNOWN_KG = 2.805


@cache
def loaded(data):
    """Fit of the arm, and the log with payload."""
    entry = public_log("ur10e")
    robot = armid.load_robot(entry.robot_path(data))
    train, load = (data / "ur10e" / entry.of_use(use)[0] for use in ("train", "payload"))
    return identify(robot, process(read_log(train, entry.recipe), robot=robot)), read_log(load, entry.recipe)


def test_ur10e(data):
    """The interval holds the mass, the body can exist, and torque errors fall on every joint.

    Gains that are typed in are known to 10 %, which the interval holds by default; known to 1 %, it is narrower.
    """
    usual = identify_payload(*loaded(data)).quantity("m")
    assert usual.lower <= KNOWN_KG <= usual.upper
    found = identify_payload(*loaded(data), reference={"m": KNOWN_KG}, gain=0.01)
    mass = found.quantity("m")
    assert mass.lower <= KNOWN_KG <= mass.upper
    assert mass.upper - mass.lower < 0.5 * (usual.upper - usual.lower)
    assert impossibility(found.parameters) is None
    assert all(joint.rms_with < 0.5 * joint.rms_without for joint in found.joints)
    assert found.good


@pytest.mark.xfail(
    strict=True,
    reason="how much of the weight the drives lose is hardly seen in these logs: +2.10 % where gains are known to 10 % "
    "(the standard deviation is 4.5 %), and +2.07 % and a width of 5.9 % where they are known to 1 %",
)
@pytest.mark.parametrize(("gain", "width"), [(None, np.inf), (0.01, 0.05)])
def test_ur10e_within_two_per_cent(data, gain, width):
    """The mass is within 2 %, and with gains known to 1 % its interval at most 5 % wide: not met."""
    mass = identify_payload(*loaded(data), gain=gain).quantity("m")
    assert abs(mass.value / KNOWN_KG - 1.0) <= 0.02
    assert mass.upper - mass.lower <= width * KNOWN_KG
