"""Constant memory: long streams become a compact factor in a process of bounded size."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
import numpy as np
import armid
from armid.dynamics.base import random_motion

model = armid.Model(armid.load_robot("pa10", rotors=False, simplify="none"))
rng = np.random.default_rng(0)

def stream(blocks, size=50_000):
    for _ in range(blocks):
        motion = random_motion(model.robot, size, rng)
        yield (*motion, motion.q)

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

armid.accumulate(model, stream(1), model.base.kept)
first = peak()
factor = armid.accumulate(model, stream(int(sys.argv[1])), model.base.kept)
print(json.dumps({"samples": factor.samples, "first": first, "peak": peak()}))
"""


def run(blocks):
    if not sys.platform.startswith("linux"):
        pytest.skip("reads the peak memory from /proc, which only Linux has")
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(blocks)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_memory_does_not_grow():
    """Twenty blocks need no more memory than one."""
    result = run(20)
    assert result["samples"] == 1_000_000
    assert result["peak"] < result["first"] + 30


@pytest.mark.prove
def test_ten_million_samples_fit_into_500_mb():
    """The compact factor of 1e7 samples stays below 500 MB."""
    result = run(200)
    assert result["samples"] == 10_000_000
    assert result["peak"] < 500
