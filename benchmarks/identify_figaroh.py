"""From a log in memory to ordinary and weighted least squares with covariance: armid against FIGAROH.

FIGAROH (`figaroh` on PyPI) is no dependency of armid, not even of its development. Put it anywhere, such as
``python -m venv DIR && DIR/bin/pip install figaroh``, and name that interpreter: ``ARMID_FIGAROH_PYTHON=DIR/bin/python
make bench``. Without it nothing is measured, and the results say so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import armid
from armid.signals.dataset import Dataset
from benchmarks.identify import log_of

VARIABLE = "ARMID_FIGAROH_PYTHON"
SAMPLES = 100_000
ROUNDS = 3
HOW = f"not measured: install figaroh into an environment of its own and set {VARIABLE} to its python"


def identify_figaroh(results: dict, robot: armid.Robot) -> None:
    """Time per sample of both, on one thread each, taking turns; columns: inertia, viscous and Coulomb friction.

    It is the time that the processor works, so that other processes on the machine count for nobody.
    """
    python = os.environ.get(VARIABLE) or (sys.executable if importlib.util.find_spec("figaroh") else None)
    if python is None:
        results["identify_vs_figaroh"] = HOW
        return
    data = log_of(robot, SAMPLES)
    default, whole = armid.WeightedLeastSquares(), armid.WeightedLeastSquares(slow_share=0.0, slow_floor=0.0)
    every = whole.fit(robot, data)  # all rows, as FIGAROH
    ours: list[float] = []
    all_rows: list[float] = []
    theirs: list[dict] = []
    with tempfile.TemporaryDirectory() as folder:
        placements = np.array([joint.placement for joint in robot.joints])
        motion = {"q": data.q, "qd": data.qd, "qdd": data.qdd, "torque": data.torque}
        np.savez(Path(folder) / "log.npz", placements=placements, gravity=np.array(robot.gravity), **motion)
        with _started(python, folder) as peer:
            for _ in range(ROUNDS):
                ours += [_seconds(default, robot, data) for _ in range(5)]
                theirs.append(_answer(peer))
                ours += [_seconds(default, robot, data) for _ in range(5)]
                all_rows += [_seconds(whole, robot, data) for _ in range(5)]
    mine, other = statistics.median(ours), statistics.median(found["seconds"] for found in theirs)
    rms = np.array(theirs[-1]["residual_rms"])
    assert theirs[-1]["parameters"] == len(every.names)
    results["identify_vs_figaroh"] = other / mine
    results["identify_figaroh"] = {
        "samples": len(data.q),
        "parameters": len(every.names),
        "armid_us_per_sample": 1e6 * mine / len(data.q),
        "figaroh_us_per_sample": 1e6 * other / len(data.q),
        "figaroh_peak_mb": theirs[-1]["peak_mb"],
        "figaroh": theirs[-1]["version"],
        "pinocchio_of_figaroh": theirs[-1]["pinocchio"],
        "largest_relative_difference_of_residuals": float(np.abs(every.residual_rms / rms - 1.0).max()),
        "least_ratio_of_any_turns": min(found["seconds"] for found in theirs) / max(ours),
        "ratio_with_all_rows": other / statistics.median(all_rows),
    }


def _started(python: str, folder: str) -> subprocess.Popen[str]:
    """FIGAROH's process, on one thread; it ends when its input does."""
    script = Path(__file__).with_name("figaroh_peer.py")
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **one, "PYTHONWARNINGS": "ignore", "PYTHONSAFEPATH": "1"}
    return subprocess.Popen(
        [python, str(script), folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _answer(peer: subprocess.Popen[str]) -> dict:
    """One run of FIGAROH."""
    assert peer.stdin is not None
    assert peer.stdout is not None
    peer.stdin.write("once\n")
    peer.stdin.flush()
    line = peer.stdout.readline()
    if not line:
        raise RuntimeError(f"FIGAROH's process ended; see above, and check {VARIABLE}")
    return json.loads(line)


def _seconds(estimator: armid.WeightedLeastSquares, robot: armid.Robot, data: Dataset) -> float:
    start = time.process_time()
    estimator.fit(robot, data)
    return time.process_time() - start
