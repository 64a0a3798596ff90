"""From nothing to a model that has been checked, on one of armid's own arms."""

import armid
from armid.experiment.excite import excite, point_to_point

robot = armid.load_robot("ir361")
print(f"{robot.title}: {armid.Model(robot).base.count} parameters can be found")

# A motion that makes them visible, inside every limit.
plan = armid.design(robot, armid.Fourier(harmonics=5, period=10.0), starts=2, seed=0)
print(plan.summary())

# The experiment, on the virtual robot: 16 periods, then 20 random points as another motion.
training = excite(armid.VirtualRobot(robot, rate_hz=150.0, seed=0), plan, periods=16)
arm = armid.VirtualRobot(robot, rate_hz=150.0, seed=1)
other = point_to_point(arm, arm.robot, points=20, repetitions=4, seed=1)

# Estimate, and compare with what the fit has not seen.
fit = armid.identify(robot, armid.process(training, robot=robot))
check = armid.validate(fit, other)
print(fit.summary())
print(check.summary())
