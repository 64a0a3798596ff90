"""Your own arm: a URDF, a CSV as a controller writes it, and a recipe that says what its columns mean."""

from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import armid
from armid.experiment.excite import excite
from armid.robot.robot import Robot

ARM = Path(__file__).with_name("arm.yaml")
RECIPE = """
joints: [turn, lift, bend, twist]
effort: joint torque
columns: {time: t_ms, position: "q{1..4}", effort: "tau{1..4}"}
units: {time: ms, position: deg}
robot: little_arm
"""


def record(robot: Robot, seed: int, path: Path) -> None:
    """Stands in for your controller: time in milliseconds, angles in degrees, torque in N m."""
    plan = armid.design(robot, armid.Fourier(harmonics=4, period=8.0), rate_hz=200.0, starts=1, seed=seed)
    log = excite(armid.VirtualRobot(robot, rate_hz=200.0, seed=seed), plan, periods=6)
    table = np.column_stack([1e3 * log.time, np.degrees(log["position"]), log["effort"]])
    names = "t_ms,q1,q2,q3,q4,tau1,tau2,tau3,tau4"
    np.savetxt(path, table, fmt="%.7g", delimiter=",", header=names, comments="")


robot = armid.load_robot(ARM)
folder = Path(mkdtemp())
(folder / "recipe.yaml").write_text(RECIPE)
record(robot, 0, folder / "monday.csv")
record(robot, 1, folder / "tuesday.csv")

# From here on it is what you do with your own files.
monday = armid.read_log(folder / "monday.csv", folder / "recipe.yaml")
tuesday = armid.read_log(folder / "tuesday.csv", folder / "recipe.yaml")
fit = armid.identify(robot, armid.process(monday, robot=robot))
check = armid.validate(fit, tuesday)
print(fit.summary())
print(check.summary())
