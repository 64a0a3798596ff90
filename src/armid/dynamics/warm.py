"""Compile all kernels into the cache, in two processes: ``python -m armid.dynamics.warm``."""

import gc
import logging
import multiprocessing
import sys
import time
from typing import Any

import numpy as np

from armid.dynamics import adjoint, kernel
from armid.dynamics.blocks import BLOCK, STATE_ROWS
from armid.dynamics.factor import compact_factor
from armid.dynamics.model import Model
from armid.dynamics.sensitivity import Sensitivity
from armid.robot.load import load_robot

LONGEST_S = 120.0  # that the other half is waited for
_STILL = np.zeros((1, 3))


def warm() -> float:
    """Call every compiled loop once; returns the seconds it took."""
    start = time.perf_counter()
    _columns()
    _others()
    return time.perf_counter() - start


def _columns() -> None:
    """Regressors and their factors."""
    model = Model(load_robot("rx60"))
    compact_factor(model, _STILL, _STILL, _STILL, _STILL)


def _others() -> None:
    """What needs no columns: derivatives, and last torques, some of whose parts the columns have, too."""
    model = Model(load_robot("rx60"))
    given = Sensitivity(model, model.names)
    bar, rest = np.zeros((model.robot.n_joints, len(model.names), BLOCK)), np.zeros(STATE_ROWS * BLOCK)
    memory = [np.zeros_like(array) for array in (*kernel.scratch(given.tree), rest, *adjoint.scratch(given.tree))]
    adjoint.reverse(given.tree, given.columns, bar, *memory, 0, np.zeros((3, *_STILL.shape)))
    model.inverse_dynamics(_STILL, _STILL, _STILL, np.zeros(len(model.names)))


def _meanwhile() -> None:
    """The second half, without saying again that kernels are being compiled."""
    logging.disable()
    _others()


def main() -> None:
    """Both halves at once; then all of it, from the cache."""
    start = time.perf_counter()
    # A fork has all modules at once; where processes cannot be forked safely, another one reads them again.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    other = context.Process(target=_meanwhile, daemon=True)
    other.start()
    _columns()
    other.join(LONGEST_S)  # whatever became of it: what is missing is compiled here
    warm()
    sys.stdout.write(f"Kernels ready ({time.perf_counter() - start:.1f} s)\n")
    gc.freeze()  # nothing of it is looked through once more at the end


if __name__ == "__main__":
    main()
