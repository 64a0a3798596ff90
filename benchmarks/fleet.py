"""Fleet: how the reduction of logs scales from one worker process to two, and how much memory a worker takes.

``python -m benchmarks.fleet`` measures 4e6 samples; ``--samples 1e8`` (or ARMID_FLEET_SAMPLES=1e8) the full size. The
log is a motion of 20 s of the PA-10 of the library, repeated; all files are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from armid.fleet.description import load_fleet
from armid.fleet.engine import engine
from armid.fleet.partitions import Partition, find_partitions
from armid.fleet.reduce import reduce_partition
from armid.logs import write_log
from armid.logs.log import Log, LogInfo
from armid.robot import load_robot
from armid.torque.model import model_of

ROBOT, RATE_HZ, PERIOD_S = "pa10", 1000.0, 20.0
FILES = 16  # partitions; all of one size, so that two workers end together
DEFAULT = 4e6


def write_logs(folder: Path, samples: float) -> Path:
    """A fleet of `FILES` partitions with `samples` in all; every file is a link to one and the same log."""
    robot = load_robot(ROBOT)
    model = model_of(robot)
    rng = np.random.default_rng(0)
    per_file = round(samples / FILES / (PERIOD_S * RATE_HZ)) or 1
    t = np.arange(round(PERIOD_S * RATE_HZ)) / RATE_HZ
    w = 2.0 * np.pi / PERIOD_S * np.arange(1, 6)
    amplitude = 0.5 * rng.normal(size=(robot.n_joints, 5)) / np.arange(1, 6)
    s, c = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    q, qd, qdd = s @ amplitude.T, c @ (w[:, None] * amplitude.T), -s @ (w[:, None] ** 2 * amplitude.T)
    values = rng.uniform(0.1, 1.0, len(model.names))
    tau = model.inverse_dynamics(q, qd, qdd, values)
    tau = np.tile(tau, (per_file, 1)) + 0.1 * rng.normal(size=(per_file * len(t), robot.n_joints))
    info = LogInfo(joints=robot.joint_names, effort="joint torque", rate_hz=RATE_HZ, robot=robot.name)
    log = Log(np.arange(len(tau)) / RATE_HZ, {"position": np.tile(q, (per_file, 1)), "effort": tau}, info)
    write_log(log, folder / "one.parquet")
    for number in range(FILES):
        place = folder / "logs" / f"robot=arm{number + 1:02d}" / "date=2026-01-01"
        place.mkdir(parents=True)
        os.link(folder / "one.parquet", place / "log.parquet")
    (folder / "fleet.yaml").write_text(f"robot: {ROBOT}\nlogs: logs\n")
    return folder / "fleet.yaml"


def work(fleet, partition: Partition) -> tuple[int, int, float]:
    """Reduce one partition; returns process, samples and peak memory [MB]."""
    day = reduce_partition(fleet, partition)
    assert day.usable, day.problems
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    return os.getpid(), day.samples, peak


def seconds_with(workers: int, fleet, partitions: list[Partition]) -> tuple[float, int, float]:
    """Time of all partitions, after each worker has warmed up; samples and peak memory of the largest worker."""
    small = replace(partitions[0], files=partitions[0].files[:1])
    with engine(workers) as place:
        warmed: set[int] = set()
        while len(warmed) < workers:
            warmed |= {pid for _, (pid, *_) in place.each(work, fleet, [small] * workers)}
        began = time.perf_counter()
        found = [result for _, result in place.each(work, fleet, partitions)]
        seconds = time.perf_counter() - began
    return seconds, sum(samples for _, samples, _ in found), max(peak for *_, peak in found)


def measure(samples: float) -> dict:
    """One worker against two."""
    with tempfile.TemporaryDirectory() as name:
        fleet = load_fleet(write_logs(Path(name), samples))
        partitions = find_partitions(fleet)
        one, total, peak_one = seconds_with(1, fleet, partitions)
        two, _, peak_two = seconds_with(2, fleet, partitions)
    return {
        "samples": total,
        "one_worker_s": one,
        "two_workers_s": two,
        "speed_up": one / two,
        "us_per_sample": 1e6 * one / total,
        "worker_peak_mb": max(peak_one, peak_two),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=float, default=float(os.environ.get("ARMID_FLEET_SAMPLES", DEFAULT)))
    sys.stdout.write(json.dumps(measure(parser.parse_args().samples), indent=2) + "\n")


if __name__ == "__main__":
    main()
