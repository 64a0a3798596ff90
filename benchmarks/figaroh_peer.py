"""FIGAROH's identification of a log in memory, in a process of its own: it is no dependency of armid.

Run by FIGAROH's interpreter with a folder that holds ``log.npz``; for each line on standard input it identifies once
and answers with one line of JSON: the seconds it took. Nothing of armid is imported here.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
from figaroh.identification.base_identification import BaseIdentification
from figaroh.identification.identification_tools import relative_stdev
from figaroh.identification.parameter import add_standard_additional_parameters, get_standard_parameters
from figaroh.tools.qrdecomposition import QRDecomposer
from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced, get_index_eliminate


class Weighting(BaseIdentification):
    """FIGAROH's weighted least squares without its files and configuration."""

    def __init__(self, phi_base: np.ndarray) -> None:
        self.phi_base = phi_base

    def load_trajectory_data(self) -> None:
        """Nothing to load; its base class wants the method."""


def robot_of(placements: np.ndarray, gravity: np.ndarray) -> SimpleNamespace:
    """What FIGAROH calls a robot: a Pinocchio model of revolute joints and its data."""
    model = pin.Model()
    model.gravity.linear = gravity
    for index, placement in enumerate(placements):
        number = model.addJoint(
            index, pin.JointModelRZ(), pin.SE3(placement[:3, :3], placement[:3, 3]), f"joint{index + 1}"
        )
        model.appendBodyToJoint(number, pin.Inertia(1.0, np.zeros(3), 0.1 * np.eye(3)), pin.SE3.Identity())
    return SimpleNamespace(model=model, data=model.createData())


def identify(robot: SimpleNamespace, log: dict[str, np.ndarray]) -> dict[str, object]:
    """Ordinary and weighted least squares with standard deviations, by the functions its own classes call."""
    n = robot.model.nv
    config = {"has_friction": True, "is_joint_torques": True, "act_idxv": list(range(n)), "fv": [0.0] * n}
    config["fs"] = config["fv"]
    names = {**get_standard_parameters(robot.model, config), **add_standard_additional_parameters(robot.model, config)}
    regressor = build_regressor_basic(robot, log["q"], log["qd"], log["qdd"], config)
    torque = log["torque"].T.ravel()  # joint by joint, as its rows
    without, kept = get_index_eliminate(regressor, names, tol_e=1e-6)
    reduced = build_regressor_reduced(regressor, without)
    base, _, _, values, _ = QRDecomposer(tolerance=1e-6).double_decomposition(torque, reduced, kept, names)
    relative = relative_stdev(base, values, torque)
    weighting = Weighting(values)
    _, variance = weighting._calculate_joint_variances(base, torque, n)
    weighted, weighted_relative = weighting._solve_weighted_least_squares(base, torque, variance)
    error = (torque - base @ weighted).reshape(n, -1)
    return {
        "parameters": len(values),
        "residual_rms": np.sqrt(np.mean(error**2, axis=1)).tolist(),
        "all_sigmas": bool(np.isfinite(relative).all() and np.isfinite(weighted_relative).all()),
    }


def peak_memory_mb() -> float:
    """Peak memory of this process."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def main() -> None:
    """Answer each line on standard input with one run."""
    logging.disable(logging.WARNING)
    log = dict(np.load(Path(sys.argv[1]) / "log.npz"))
    robot = robot_of(log["placements"], log["gravity"])
    for _ in sys.stdin:
        start = time.process_time()
        found = identify(robot, log)
        found["seconds"] = time.process_time() - start
        found |= {"peak_mb": peak_memory_mb(), "version": version("figaroh"), "pinocchio": version("pin")}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
