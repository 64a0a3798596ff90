"""Compile all kernels into the cache, in two processes: ``python -m armid.dynamics.warm``."""

import logging
import multiprocessing
import sys
import time
from typing import Any

import numpy as np
from numba import typeof

from armid.dynamics import adjoint, kernel
from armid.dynamics.factor import compact_factor
from armid.dynamics.model import Model
from armid.dynamics.sensitivity import Sensitivity
from armid.robot.load import load_robot

LONGEST_S = 120.0  # that the other half is waited for
_STILL = np.zeros((1, 3))


def warm() -> float:
    """Call every compiled loop once; returns the seconds it took."""
    start = time.perf_counter()
    _torques()
    _derivatives()
    return time.perf_counter() - start


def _torques() -> None:
    """What makes torques, regressors and factors of them."""
    model = Model(load_robot("rx60"))
    compact_factor(model, _STILL, _STILL, _STILL, _STILL)
    model.inverse_dynamics(_STILL, _STILL, _STILL, np.zeros(len(model.names)))


def _derivatives() -> None:
    """What makes derivatives; first the loops that need no columns, while the other half compiles these."""
    model = Model(load_robot("rx60"))
    sensitivity = Sensitivity(model, model.names)
    flat, square, cube = np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0, 0))
    places = np.zeros((0, 0), dtype=np.int64)
    kernel._fill_local.compile(tuple(map(typeof, (sensitivity.columns, places, square, flat, cube, 0))))
    given = sensitivity.tree, sensitivity.columns, square, square, cube, cube, flat, flat, square, cube, square
    adjoint.reverse.compile(tuple(map(typeof, given)))
    sensitivity.torque_gradient(model.motion(_STILL, _STILL, _STILL), np.zeros(len(model.names)), _STILL)


def _meanwhile() -> None:
    """The second half, without saying again that kernels are being compiled."""
    logging.disable()
    _derivatives()


def main() -> None:
    """Both halves at once; then all of it, from the cache."""
    start = time.perf_counter()
    # A fork has all modules at once; where processes cannot be forked safely, another one reads them again.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    other = context.Process(target=_meanwhile, daemon=True)
    other.start()
    _torques()
    other.join(LONGEST_S)  # whatever became of it: what is missing is compiled here
    warm()
    sys.stdout.write(f"Kernels ready ({time.perf_counter() - start:.1f} s)\n")


if __name__ == "__main__":
    main()
