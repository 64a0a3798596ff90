"""Compile all kernels into the cache, as many at a time as there are processors: ``python -m armid.run.warm``."""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from typing import Any

import numpy as np

from armid.dynamics import adjoint, kernel
from armid.dynamics.blocks import BLOCK, STATE_ROWS
from armid.dynamics.factor import compact_factor
from armid.dynamics.model import Model
from armid.dynamics.sensitivity import Sensitivity
from armid.dynamics.threads import available_threads
from armid.robot.load import load_robot

_STILL = np.zeros((1, 3))


def warm() -> None:
    """Call every compiled loop once."""
    for work in KERNELS:
        work()


def _model() -> Model:
    return Model(load_robot("rx60"))


def _gradients() -> None:
    """Derivatives of regressors."""
    model = _model()
    given = Sensitivity(model, model.names)
    bar, rest = np.zeros((model.robot.n_joints, len(model.names), BLOCK)), np.zeros(STATE_ROWS * BLOCK)
    memory = [np.zeros_like(array) for array in (*kernel.scratch(given.tree), rest, *adjoint.scratch(given.tree))]
    adjoint.reverse(given.tree, given.columns, bar, *memory, 0, np.zeros((3, *_STILL.shape)))


def _columns() -> None:
    """Regressors and their factors."""
    compact_factor(_model(), _STILL, _STILL, _STILL, _STILL)


def _virtual_robot() -> None:
    """Steps of the virtual robot, where MuJoCo is installed."""
    if importlib.util.find_spec("mujoco") is not None:
        from armid.experiment.virtual import VirtualRobot

        VirtualRobot(load_robot("rx60")).command(_STILL)


def _torques() -> None:
    """Inverse dynamics of many samples."""
    model = _model()
    model.inverse_dynamics(_STILL, _STILL, _STILL, np.zeros(len(model.names)))


def _control() -> None:
    """Inverse dynamics and momentum of one sample."""
    from armid.control.newton_euler import RigidTorque

    model = _model()
    rigid = RigidTorque(model, np.zeros(len(model.names)))
    rigid(*np.zeros((3, 3)))
    rigid.momentum(_STILL, _STILL)


def _observer() -> None:
    """Filters of external torque."""
    from armid.monitoring import observer

    observer.warm()


#: Those that take longest come first.
KERNELS: tuple[Callable[[], None], ...] = (_virtual_robot, _columns, _gradients, _control, _torques, _observer)


def main() -> None:
    """All of them at once."""
    start = time.perf_counter()
    # A fork has all modules at once; where processes cannot be forked safely, others read them again.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(min(available_threads(), len(KERNELS)), mp_context=context) as pool:
        try:
            for done in [pool.submit(work) for work in KERNELS]:
                done.result()
        except BrokenExecutor:
            warm()  # what is missing
    sys.stdout.write(f"Kernels ready ({time.perf_counter() - start:.1f} s)\n")


if __name__ == "__main__":
    main()
