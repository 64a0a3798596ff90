"""After `armid.run.warm` nothing is compiled any more, whatever an arm is used for."""

import subprocess
import sys

import pytest

USES = {
    "model": "armid.Model(robot).base.groups",
    "design": "armid.design(robot, starts=1)",
    "virtual robot": "VirtualRobot(robot, seed=0).run(motion)",
    "elastic gears, bristles": """
from armid.experiment import Elasticity, Presliding
VirtualRobot(robot, seed=0, elasticity=Elasticity(), presliding=Presliding()).run(motion)""",
    "control": """
from armid.control.newton_euler import RigidTorque
model = armid.Model(robot)
rigid = RigidTorque(model, np.zeros(len(model.names)))
rigid(*np.zeros((3, 3)))""",
    "contacts": """
from tests.monitoring import stand
from armid.monitoring import Detector, calibrate, stretches
fit = stand.fitted("er16")
quiet = [stretches(fit, stand.recording("er16", 20.0, seed)) for seed in (1, 2, 3)]
(part,) = quiet[0]
Detector(fit, calibrate(fit, quiet)).run(part.dt, part.q, part.qd, part.tau)""",
}
SCRIPT = """
import numpy as np
import armid
from armid import compiling
from armid.experiment import VirtualRobot
from armid.excitation.fourier import FourierSeries

def refuse(self, func):
    raise SystemExit(f"{func.__name__} is compiled")

compiling._Compiler.compile_extra = refuse
robot = armid.load_robot("er16")
small = np.full((3, 1), 0.05)
motion = FourierSeries(1.0, (1,), small, small, np.zeros(3))
"""


@pytest.mark.parametrize("use", USES)
def test_kernels_are_there(use):
    found = subprocess.run([sys.executable, "-c", SCRIPT + USES[use]], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr[-500:]
