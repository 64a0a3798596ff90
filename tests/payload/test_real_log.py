"""A real payload: UR10e with 2.805 kg, the arm trained on another day's log, defaults only."""

import armid
from armid.estimation import identify
from armid.logs import read_log
from armid.logs.public import public_log
from armid.payload import identify_payload
from armid.robot.inertia import impossibility
from armid.signals import process

KNOWN_KG = 2.805


def test_ur10e(data):
    """The mass is within 2 %, the interval holds it, the body can exist, and torque errors fall on every joint.

    Gains that are typed in are known to 10 %, which the interval holds by default; known to 1 %, it is narrow. What
    drives lose of the weight, which this log hardly tells, makes the most of its width.
    """
    entry = public_log("ur10e")
    robot = armid.load_robot(entry.robot_path(data))
    train, load = (data / "ur10e" / entry.of_use(use)[0] for use in ("train", "payload"))
    fit = identify(robot, process(read_log(train, entry.recipe), robot=robot))
    log = read_log(load, entry.recipe)
    usual = identify_payload(fit, log).quantity("m")
    assert usual.lower <= KNOWN_KG <= usual.upper
    found = identify_payload(fit, log, reference={"m": KNOWN_KG}, gain=0.01)
    assert abs(usual.value / KNOWN_KG - 1.0) <= 0.02
    mass = found.quantity("m")
    assert mass.lower <= KNOWN_KG <= mass.upper
    assert mass.upper - mass.lower <= 0.06 * KNOWN_KG
    assert impossibility(found.parameters) is None
    assert all(joint.rms_with < 0.5 * joint.rms_without for joint in found.joints)
    assert found.good
