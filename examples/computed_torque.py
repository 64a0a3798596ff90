"""Computed torque in MuJoCo: an arm that follows a motion with the identified model, the URDF's own, and none."""

from pathlib import Path

import armid
from armid.control import PID, ComputedTorque, choose_gains, fit_model, nominal_model, path_reference, track
from armid.experiment.excite import excite

robot = armid.load_robot(Path(__file__).with_name("arm.yaml"))
shape = armid.Fourier(harmonics=4, period=8.0)
plan = armid.design(robot, shape, rate_hz=200.0, starts=1, seed=0)
log = excite(armid.VirtualRobot(robot, rate_hz=200.0, seed=0), plan, periods=8)
fit = armid.identify(robot, armid.process(log, robot=robot))

# Another motion to follow, at 400 Hz; all controllers have the same bandwidth.
other = armid.design(robot, armid.Fourier(harmonics=2, period=8.0), rate_hz=400.0, starts=1, seed=5)
reference = path_reference(robot, other.trajectory, cycle_s=0.0025, name="another motion")
gains = choose_gains(fit_model(fit), reference.motion, 0.0025)
controllers = {
    "PID alone": PID(),
    "computed torque, URDF": ComputedTorque(model=nominal_model(robot)),
    "computed torque, identified": ComputedTorque(model=fit_model(fit)),
}
for name, controller in controllers.items():
    arm = armid.VirtualRobot(robot, rate_hz=400.0, seed=1)  # MuJoCo's dynamics; the truth differs from the URDF
    run = track(arm, arm.robot, reference, controller, gains)
    print(f"{name:<28} mean distance from the path {1e3 * run.mean_tool_error:6.2f} mm")
