"""Compile all kernels into the cache: ``python -m armid.dynamics.warm``."""

import sys
import time

import numpy as np

from armid.dynamics.factor import compact_factor
from armid.dynamics.model import Model
from armid.dynamics.sensitivity import Sensitivity
from armid.robot.load import load_robot


def warm() -> float:
    """Call every compiled loop once; returns the seconds it took."""
    start = time.perf_counter()
    model = Model(load_robot("rx60"))
    still = np.zeros((1, 3))
    compact_factor(model, still, still, still, still)
    model.regressor(still, still, still)
    values = np.zeros(len(model.names))
    model.inverse_dynamics(still, still, still, values)
    model.mass_matrix(still, values)
    sensitivity = Sensitivity(model, model.names)
    motion = model.motion(still, still, still)
    sensitivity.information_gradient(motion, np.eye(len(values)))
    sensitivity.torque_gradient(motion, values, still)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.stdout.write(f"Kernels ready ({warm():.1f} s)\n")
