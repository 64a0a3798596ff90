"""Constant memory: long logs are written and read in a process of bounded size."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
import numpy as np
from armid.logs import Log, LogInfo, open_log, write_log
from armid.logs.log import LogStream

path, rows = sys.argv[1], int(sys.argv[2])
info = LogInfo(tuple(f"joint{i + 1}" for i in range(7)), "joint torque", rate_hz=1000.0)

def make(size, step=50_000):
    rng = np.random.default_rng(0)
    for start in range(0, rows, step):
        count = min(step, rows - start)
        channels = {name: rng.standard_normal((count, 7)).round(4) for name in ("position", "effort")}
        yield Log(np.arange(start, start + count) / 1000.0, channels, info)

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

write_log(LogStream(info, ("position", "effort"), make), path)
written = peak()
count, total = 0, np.zeros(7)
for block in open_log(path).blocks():
    count += len(block)
    total += block["effort"].sum(axis=0)
wanted = sum(block["effort"].sum(axis=0) for block in make(0))
assert np.allclose(total, wanted), (total, wanted)
print(json.dumps({"samples": count, "written": written, "peak": peak()}))
"""


def run(path, rows):
    if not sys.platform.startswith("linux"):
        pytest.skip("reads the peak memory from /proc, which only Linux has")
    command = [sys.executable, "-c", SCRIPT, str(path), str(rows)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("suffix", "few", "many"), [("parquet", 200_000, 1_000_000), ("csv", 70_000, 210_000)])
def test_memory_does_not_grow(tmp_path, suffix, few, many):
    """A log several times as long needs no more memory."""
    small, large = (run(tmp_path / f"log.{suffix}", rows) for rows in (few, many))
    assert large["samples"] == many
    assert large["peak"] < small["peak"] + 40


@pytest.mark.prove
def test_ten_million_samples_fit_into_500_mb(tmp_path):
    """1e7 samples of seven joints, position and torque: written and read below 500 MB."""
    result = run(tmp_path / "log.parquet", 10_000_000)
    assert result["samples"] == 10_000_000
    assert result["peak"] < 500
