"""Compile all kernels into the cache, in two processes: ``python -m armid.dynamics.warm``."""

import subprocess
import sys
import time

import numpy as np
from numba import typeof

from armid.dynamics import adjoint
from armid.dynamics.factor import compact_factor
from armid.dynamics.model import Model
from armid.dynamics.sensitivity import Sensitivity
from armid.robot.load import load_robot

_STILL = np.zeros((1, 3))


def warm() -> float:
    """Call every compiled loop once; returns the seconds it took."""
    start = time.perf_counter()
    model = Model(load_robot("rx60"))
    _columns(model)
    _torques(model)
    return time.perf_counter() - start


def _columns(model: Model) -> None:
    """What makes regressors, and factors of them."""
    model.regressor(_STILL, _STILL, _STILL)
    compact_factor(model, _STILL, _STILL, _STILL, _STILL)


def _torques(model: Model) -> None:
    """What makes torques, and derivatives; first the loops that need no columns, which are compiled meanwhile."""
    values = np.zeros(len(model.names))
    sensitivity = Sensitivity(model, model.names)
    flat, square, cube = np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0, 0))
    given = sensitivity.tree, sensitivity.columns, square, square, cube, cube, flat, flat, square, cube, square
    adjoint.reverse.compile(tuple(map(typeof, given)))
    model.inverse_dynamics(_STILL, _STILL, _STILL, values)
    model.mass_matrix(_STILL, values)
    sensitivity.torque_gradient(model.motion(_STILL, _STILL, _STILL), values, _STILL)


def main() -> None:
    """Both halves at once; then all of it, from the cache."""
    start = time.perf_counter()
    if sys.argv[1:] == ["torques"]:
        _torques(Model(load_robot("rx60")))
        return
    with subprocess.Popen([sys.executable, "-m", __spec__.name, "torques"], stderr=subprocess.DEVNULL):
        _columns(Model(load_robot("rx60")))
    warm()
    sys.stdout.write(f"Kernels ready ({time.perf_counter() - start:.1f} s)\n")


if __name__ == "__main__":
    main()
