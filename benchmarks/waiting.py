"""Where people wait: defaults of `identify`, base parameters of a large tree, first use, the log doctor."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import armid
from armid.dynamics.base import base_parameters, random_motion
from armid.estimation import identify
from armid.experiment import VirtualRobot
from armid.logs import read_log, write_log
from armid.logs.log import Log
from armid.signals import process
from armid.signals.doctor import examine

ROUNDS = 3
JOINTS = 30
ROWS = 1_000_000


def defaults(results: dict) -> None:
    """`identify` by defaults and with linear friction on one log of the virtual PA-10, from the log to the fit."""
    robot = armid.load_robot("pa10")
    plan = armid.design(robot, starts=1)
    log = VirtualRobot(robot, seed=0).run(plan.trajectory, periods=16)
    data = process(log, robot=robot)
    signals, linear, auto = _medians(
        lambda: process(log, robot=robot),
        lambda: identify(robot, data, friction="linear"),
        lambda: identify(robot, data),
    )
    results["identify_defaults_vs_linear"] = (signals + auto) / (signals + linear)
    results["identify_defaults"] = {
        "rows": len(data),
        "signals_s": signals,
        "linear_s": linear,
        "defaults_s": auto,
        "estimation_alone": auto / linear,
    }


def large_tree(results: dict) -> None:
    """Base parameters of a tree of 30 joints with groups in words, and one QR decomposition of its regressor."""
    robot = armid.load_robot(_tree(JOINTS, np.random.default_rng(0)))
    model = armid.Model(robot)
    names = base_parameters(model).names
    motion = random_motion(robot, max(64, 4 * len(names) // JOINTS), np.random.default_rng(0))
    stacked = model.regressor(*motion, names).reshape(-1, len(names))
    ours, qr = _medians(lambda: base_parameters(model).groups, lambda: np.linalg.qr(stacked, mode="r"))
    results["base_parameters_30_joints_s"] = ours
    results["base_parameters"] = {"columns": len(names), "qr_s": qr, "over_qr": ours / qr}


def _tree(joints: int, rng: np.random.Generator) -> Path:
    """A random URDF: every link hangs on one of the four before it."""
    text = '<robot name="tree"><link name="l0"/>'
    for number in range(1, joints + 1):
        parent = int(rng.integers(max(0, number - 4), number))
        angles = " ".join(repr(float(angle)) for angle in rng.choice([0.0, np.pi / 2, -np.pi / 2], 3))
        place = " ".join(f"{length:.3f}" for length in rng.uniform(-0.3, 0.3, 3))
        text += (
            f'<link name="l{number}"/><joint name="j{number}" type="continuous"><parent link="l{parent}"/>'
            f'<child link="l{number}"/><origin xyz="{place}" rpy="{angles}"/><axis xyz="0 0 1"/></joint>'
        )
    path = Path(tempfile.mkdtemp()) / "tree.urdf"
    path.write_text(text + "</robot>")
    return path


def first_use(results: dict) -> None:
    """Seconds by the clock to compile all kernels into an empty cache, as `make warm` does; and to find them there."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "armid.run.warm"], check=True, env=environment, capture_output=True)
        first = time.perf_counter() - began
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "armid.run.warm"], check=True, env=environment, capture_output=True)
    results["first_use_s"] = first
    results["later_use_s"] = time.perf_counter() - began


def doctor(results: dict) -> None:
    """The log doctor on 1e6 rows of 7 joints with the robot's model, and reading that log from CSV and Parquet."""
    robot = armid.load_robot("pa10")
    one = VirtualRobot(robot, seed=0).run(armid.design(robot, starts=1).trajectory, periods=8)
    times, rng = -(-ROWS // len(one)), np.random.default_rng(0)
    channels = {name: np.tile(values, (times, 1))[:ROWS] for name, values in one.channels.items()}
    channels["effort"] = channels["effort"] + 0.01 * rng.normal(size=channels["effort"].shape)
    log = Log(np.arange(ROWS) / one.rate_hz, channels, one.info)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("log.csv", "log.parquet")]
        for path in paths:
            write_log(log, path)
        csv, parquet, bare, whole = _medians(
            *(lambda path=path: read_log(path) for path in paths),
            lambda: examine(log),
            lambda: examine(log, robot),
            rounds=1,
        )
    results |= {"doctor_vs_reading_csv": whole / csv, "doctor_vs_reading_parquet": whole / parquet}
    results["doctor"] = {
        "rows": ROWS,
        "read_csv_s": csv,
        "read_parquet_s": parquet,
        "without_robot_s": bare,
        "with_robot_s": whole,
    }


def _medians(*work: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Median processor time of each piece of work [s]; they take turns, and the first turn warms up."""
    times: list[list[float]] = [[] for _ in work]
    for turn in range(rounds + 1):
        for index, call in enumerate(work):
            start = time.process_time()
            call()
            if turn > 0:
                times[index].append(time.process_time() - start)
    return [statistics.median(values) for values in times]
