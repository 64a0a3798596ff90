"""What does the arm carry? Mass, centre of mass and inertia, with intervals, from a minute of motion."""

from pathlib import Path

import numpy as np

import armid
from armid.experiment.excite import excite, point_to_point
from armid.payload import identify_payload
from armid.robot.inertia import from_com

robot = armid.load_robot(Path(__file__).with_name("arm.yaml"))
plan = armid.design(robot, armid.Fourier(harmonics=4, period=8.0), rate_hz=200.0, starts=1, seed=0)

# Once: the arm without a load.
log = excite(armid.VirtualRobot(robot, rate_hz=200.0, seed=0), plan, periods=8)
fit = armid.identify(robot, armid.process(log, robot=robot))

# Whenever it carries something: the same motion, or one designed for it (armid design --parameters payload).
truth = from_com(1.4, [0.02, -0.01, 0.11], np.diag([0.004, 0.003, 0.002]))  # [kg, m, kg m^2] in the tool frame
loaded = excite(armid.VirtualRobot(robot, rate_hz=200.0, seed=1, payload=truth), plan, periods=4)
payload = identify_payload(fit, loaded)
print(payload.summary())
print(f"true mass {truth[0]:.3f} kg, found {payload.mass:.3f} kg")

# The fit with the load attached predicts another motion of the loaded arm.
arm = armid.VirtualRobot(robot, rate_hz=200.0, seed=2, payload=truth)
other = point_to_point(arm, arm.robot, points=10, seed=2)
print(armid.validate(payload.apply(fit), other).summary())
