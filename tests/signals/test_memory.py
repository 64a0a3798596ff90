"""Long logs are averaged in constant memory."""

import subprocess
import sys

import pytest

pytest.importorskip("resource")

PROGRAM = """
import resource, sys, time
import numpy as np
from armid.logs.log import Log, LogInfo
from armid.logs.log import LogStream
from armid.signals import PeriodicAverage, process

rows, K, joints = int(float(sys.argv[1])), 10_000, 7
phase = 2.0 * np.pi * np.arange(K) / K
one = np.stack([np.sin((j % 3 + 1) * phase) + 0.3 * np.cos(5 * phase) for j in range(joints)], axis=1)
info = LogInfo(tuple(f"j{j}" for j in range(joints)), "joint torque", rate_hz=1000.0)

def blocks(size):
    rng = np.random.default_rng(0)
    for start in range(0, rows, size):
        index = np.arange(start, min(start + size, rows))
        clean = one[index % K]
        noise = rng.normal(size=(2, len(index), joints))
        yield Log(index / 1000.0, {"position": clean + 1e-4 * noise[0], "effort": 10 * clean + noise[1]}, info)

def peak_mb():
    # getrusage would count the parent's memory at the time of the fork
    try:
        status = open("/proc/self/status").read().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

base = peak_mb()
start = time.perf_counter()
data = process(LogStream(info, ("position", "effort"), blocks), PeriodicAverage())
peak = peak_mb()
assert np.allclose(data.torque_noise * data.periods**0.5, 1.0, rtol=0.02), data.torque_noise
print(data.periods, peak, peak - base, time.perf_counter() - start)
"""


def run(rows):
    result = subprocess.run([sys.executable, "-c", PROGRAM, str(rows)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    periods, peak, extra, seconds = map(float, result.stdout.split())
    print(f"{rows:g} rows: {peak:.0f} MB in all, {extra:.0f} MB for the work, {seconds:.1f} s")
    return periods, peak, extra


def test_a_stream_is_averaged_in_little_memory():
    """1e6 rows of 7 joints, 176 MB of numbers with time: less than 400 MB for the whole process."""
    periods, peak, _ = run(1e6)
    assert periods == 100
    assert peak < 400.0


@pytest.mark.prove
def test_ten_million_rows_take_no_more():
    """1e7 rows of 7 joints, 1.2 GB of numbers: less than 400 MB, process and interpreter included."""
    periods, peak, _ = run(1e7)
    assert periods == 1000
    assert peak < 400.0
