"""A ROS 2 bag of joint states, without ROS: written, looked at by the log doctor, and identified from."""

from pathlib import Path
from tempfile import mkdtemp

import armid
from armid.experiment.excite import excite
from armid.signals.doctor import examine

robot = armid.load_robot(Path(__file__).with_name("arm.yaml"))

# A bag as `ros2 bag record /joint_states` makes it; here the virtual arm is recorded.
plan = armid.design(robot, armid.Fourier(harmonics=4, period=8.0), rate_hz=200.0, starts=1, seed=0)
recorded = excite(armid.VirtualRobot(robot, rate_hz=200.0, seed=0), plan, periods=6)
bag = Path(mkdtemp()) / "run.mcap"
armid.write_log(recorded, bag)

# A bag of your own does not say what effort means: then armid.read_log(bag, effort="joint torque").
log = armid.read_log(bag)
report = examine(log, robot)
print(report.summary())
fit = armid.identify(robot, armid.process(log, robot=robot))
print(fit.summary())
