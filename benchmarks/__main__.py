"""Measure armid against its peers and write benchmarks/results.json. Ratios, in one run, on one thread."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import armid
from armid.dynamics.base import random_motion
from armid.run.warm import warm
from benchmarks import peers
from benchmarks.design import design, design_limits, ten_starts
from benchmarks.export import export_c
from benchmarks.fleet import DEFAULT
from benchmarks.fleet import measure as fleet
from benchmarks.identify import identify
from benchmarks.identify_figaroh import identify_figaroh
from benchmarks.waiting import defaults, doctor, first_use, large_tree

SAMPLES = 100_000
ROUNDS = 7
# Sums and products per sample of the loops in armid.dynamics.blocks, counted by hand for a chain of seven revolute
# joints: 7 x 50 (sine, cosine), 7 x 120 (outward), 21 x 57 (carry), 21 x 85 + 7 x 8 (columns).
REGRESSOR_FLOPS = 4_200
CHUNK = 512  # samples whose regressor fits into the second-level cache


def seconds_of(*work: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Median time of each piece of work [s].

    They take turns, and each fills at least a fifth of a second of its turn, so that a busy machine hurts all alike.
    """
    times: list[list[float]] = [[] for _ in work]
    for turn in range(rounds + 1):
        for index, call in enumerate(work):
            start, calls = time.perf_counter(), 0
            while (elapsed := time.perf_counter() - start) < 0.2 or calls == 0:
                call()
                calls += 1
            if turn > 0:  # the first turn warms up
                times[index].append(elapsed / calls)
    return [statistics.median(values) for values in times]


def setting():
    """PA-10 with all links, without rotors: 7 joints, 45 base columns, which Pinocchio can compute too."""
    robot = armid.load_robot("pa10", rotors=False, simplify="none")
    model = armid.Model(robot)
    inertial = [parameter.name for parameter in model.parameters if parameter.kind == "inertial"]
    names = tuple(name for name in model.base.kept if name in inertial)
    columns = np.array([inertial.index(name) for name in names])
    motion = random_motion(robot, SAMPLES, np.random.default_rng(0))
    tau = np.random.default_rng(1).normal(size=motion.q.shape)
    return robot, model, names, columns, motion, tau


def regressor(results: dict, model, names, columns, motion, pinocchio) -> None:
    """The matrices of all samples, base columns: made and overwritten in cache, and kept in one large array."""
    peer_small = np.zeros((CHUNK, model.robot.n_joints, len(names)))
    peer_large = np.zeros((SAMPLES, model.robot.n_joints, len(names)))
    chunks = [slice(k, k + CHUNK) for k in range(0, SAMPLES, CHUNK)]

    def ours() -> None:
        for _ in model.regressor_blocks(*motion, names, size=CHUNK):
            pass

    def theirs() -> None:
        for chunk in chunks:
            part = [array[chunk] for array in motion]
            peers.regressor_loop(pinocchio, *part, columns, peer_small[: len(part[0])])

    ours_s, theirs_s, bare_s, ours_kept_s, theirs_kept_s = seconds_of(
        ours,
        theirs,
        lambda: peers.bare_loop(pinocchio, *motion),
        lambda: model.regressor(*motion, names),
        lambda: peers.regressor_loop(pinocchio, *motion, columns, peer_large),
    )
    large = model.regressor(*motion, names)
    results["regressor_vs_pinocchio"] = theirs_s / ours_s
    results["regressor"] = {
        "armid_us_per_sample": 1e6 * ours_s / SAMPLES,
        "pinocchio_us_per_sample": 1e6 * theirs_s / SAMPLES,
        "pinocchio_all_columns_thrown_away_us_per_sample": 1e6 * bare_s / SAMPLES,
        "armid_kept_us_per_sample": 1e6 * ours_kept_s / SAMPLES,
        "pinocchio_kept_us_per_sample": 1e6 * theirs_kept_s / SAMPLES,
        "kept_ratio": theirs_kept_s / ours_kept_s,
        "largest_relative_difference": np.abs(large - peer_large).max() / np.abs(peer_large).max(),
    }


def factor(results: dict, model, names, columns, motion, tau, pinocchio) -> None:
    """Samples to the compact factor: ours in Gram form, Pinocchio's loop with a QR per block; a large product."""
    square = np.random.default_rng(0).normal(size=(1200, 1200))
    ours_s, theirs_s, square_s = seconds_of(
        lambda: armid.compact_factor(model, *motion, tau, names),
        lambda: peers.blocked_qr(pinocchio, *motion, tau, columns),
        lambda: square @ square,
    )
    compact = armid.compact_factor(model, *motion, tau, names)
    peer_factor = peers.blocked_qr(pinocchio, *motion, tau, columns)
    gram = peer_factor.T @ peer_factor
    matrix, vector, _ = compact.normal_equations()
    ours = np.column_stack([matrix, vector])
    difference = np.abs(ours - gram[:-1]).max() / np.abs(gram).max()
    sizes = [len(seen) + 1 for seen in compact.columns]
    flops = (sum(size * (size + 1) for size in sizes) + REGRESSOR_FLOPS) * SAMPLES
    rate = 2.0 * len(square) ** 3 / square_s
    armid.set_threads(2)
    two_s = seconds_of(lambda: armid.compact_factor(model, *motion, tau, names))[0]
    armid.set_threads(1)
    results["factor_vs_pinocchio"] = theirs_s / ours_s
    results["factor"] = {
        "armid_us_per_sample": 1e6 * ours_s / SAMPLES,
        "armid_two_threads_us_per_sample": 1e6 * two_s / SAMPLES,
        "pinocchio_us_per_sample": 1e6 * theirs_s / SAMPLES,
        "dgemm_gflops": rate / 1e9,
        "share_of_dgemm": flops / ours_s / rate,
        "largest_relative_difference": difference,
    }


def constant_memory(results: dict) -> None:
    """Peak memory of a process that makes the compact factor of 1e7 samples, generated in blocks."""
    run = subprocess.run([sys.executable, "-m", "benchmarks", "--memory"], check=True, capture_output=True, text=True)
    results["factor_1e7_samples"] = json.loads(run.stdout)


def memory_child() -> None:
    """The process measured by `constant_memory`."""
    robot, model, names, *_ = setting()
    rng = np.random.default_rng(0)
    block, blocks = 50_000, 200

    def stream():
        for _ in range(blocks):
            motion = random_motion(robot, block, rng)
            yield (*motion, motion.q)

    start = time.perf_counter()
    compact = armid.accumulate(model, stream(), names)
    seconds = time.perf_counter() - start
    sys.stdout.write(json.dumps({"samples": compact.samples, "seconds": seconds, "peak_mb": peak_memory_mb()}))


def peak_memory_mb() -> float:
    """Peak memory of this process; getrusage would count the parent's at the time of the fork."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def against_pinocchio(results: dict) -> None:
    """The rows that share one setting."""
    robot, model, names, columns, motion, tau = setting()
    pinocchio = peers.pinocchio_model(robot)
    results |= {"samples": SAMPLES, "joints": robot.n_joints, "columns": len(names)}
    regressor(results, model, names, columns, motion, pinocchio)
    factor(results, model, names, columns, motion, tau, pinocchio)
    identify(results, robot, columns, pinocchio)


def against_figaroh(results: dict) -> None:
    """Weighted least squares on the same arm."""
    identify_figaroh(results, setting()[0])


def fleets(results: dict) -> None:
    """Many arms on one and on two workers."""
    results["fleet"] = fleet(float(os.environ.get("ARMID_FLEET_SAMPLES", DEFAULT)))


ONE_THREAD = (against_pinocchio, against_figaroh, defaults, large_tree, doctor, design, design_limits, export_c)
ALL_CORES = (ten_starts, first_use, constant_memory, fleets)


def main() -> None:
    """Run all benchmarks, or those that are named: ``python -m benchmarks large_tree first_use``."""
    if "--memory" in sys.argv:
        memory_child()
        return
    known = [work.__name__ for work in (*ONE_THREAD, *ALL_CORES)]
    wanted = sys.argv[1:] or known
    if unknown := set(wanted) - set(known):
        sys.exit(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    warm()
    results: dict = {
        "machine": platform.processor() or platform.machine(),
        "blas": sorted({str(pool.get("architecture")) for pool in threadpool_info() if pool["user_api"] == "blas"}),
        "python": platform.python_version(),
        "armid": armid.__version__,
    }
    armid.set_threads(1)
    with threadpool_limits(limits=1):
        for work in ONE_THREAD:
            if work.__name__ in wanted:
                work(results)
    armid.set_threads(0)
    for work in ALL_CORES:
        if work.__name__ in wanted:
            work(results)
    results["targets"] = {
        "regressor_vs_pinocchio": 20,
        "factor_vs_pinocchio": 14,
        "factor.share_of_dgemm": "0.6 with vectors of 256 bits, 0.45 with 512",
        "design_vs_finite_differences": 60,
        "design_all_limits_vs_plain": "below 3",
        "identify_defaults_vs_linear": "below 4",
        "base_parameters_30_joints_s": "below 2",
        "first_use_s": "below 10",
        "doctor_vs_reading_csv": "below 2",
        "design_pa10_ten_starts_s": "below 30",
        "identify_vs_pinocchio": 60,
        "identify_vs_figaroh": 250,
        "export_c_us": "below 5",
        "fleet.speed_up": 1.7,
        "factor_1e7_samples.peak_mb": 500,
    }
    text = json.dumps(results, indent=2)
    Path(__file__).with_name("results.json").write_text(text + "\n")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
