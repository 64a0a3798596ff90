"""The exported C header: time per inverse dynamics, beside Pinocchio's RNEA called from Python."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pinocchio as pin

import armid
from armid.dynamics.base import random_motion
from armid.estimation.least_squares import WeightedLeastSquares
from armid.exporting import export
from armid.exporting.arm import IdentifiedArm, arm_of
from armid.exporting.c import compile_c, compiler
from armid.exporting.programs import run_limited
from armid.signals.dataset import Dataset

CALLS = 20_000


def export_c(results: dict) -> None:
    """Seven joints (PA-10 with coupled rotors, friction), base parameters; C does rotors and friction as well."""
    if compiler() is None:
        results["export_c"] = {"note": "no C compiler"}
        return
    robot = armid.load_robot("pa10", simplify="none")
    motion = random_motion(robot, 2000, np.random.default_rng(0))
    model = armid.Model(robot)
    values = dict(zip(model.names, np.random.default_rng(1).uniform(0.5, 1.0, len(model.names)), strict=True))
    torque = model.inverse_dynamics(*motion, values)
    data = Dataset(robot.joint_names, 0.01 * np.arange(2000), *motion, torque, np.arange(2000))
    fit = WeightedLeastSquares().fit(robot, data)
    with tempfile.TemporaryDirectory() as folder:
        done = export(fit, ["c"], folder)
        seconds, step = time_c(Path(folder) / done.files[0].file, arm_of(fit, complete=False))
    results["export_c_us"] = 1e6 * seconds
    results["export_c"] = {
        "inverse_dynamics_us": 1e6 * seconds,
        "observer_step_us": 1e6 * step,
        "pinocchio_rnea_from_python_us": 1e6 * _pinocchio(robot, motion),
        "joints": robot.n_joints,
        "error": done.files[0].proof.error,
    }


def time_c(header: Path, arm: IdentifiedArm) -> tuple[float, float]:
    """Seconds that inverse dynamics and a step of the observer, or of the detector, take; the best of twenty rounds."""
    timed = (Path(__file__).parent / "timed.c").read_text("utf-8")
    with tempfile.TemporaryDirectory(prefix="armid-export-") as folder:
        binary = compile_c(compiler() or "cc", header, arm, Path(folder), timed)
        inverse_dynamics, step, _ = run_limited([str(binary)], Path(folder), limit_s=60.0).split()
    return float(inverse_dynamics), float(step)


def _pinocchio(robot: armid.Robot, motion: tuple) -> float:
    """Best of five rounds over the states [s per call]."""
    from benchmarks import peers

    model = peers.pinocchio_model(robot)
    data = model.createData()
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        for k in range(CALLS):
            row = k % len(motion[0])
            pin.rnea(model, data, motion[0][row], motion[1][row], motion[2][row])
        best = min(best, (time.perf_counter() - start) / CALLS)
    return best
