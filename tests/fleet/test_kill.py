"""Worker processes and the client are killed in the middle of a run: the same result, nothing lost, nothing redone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from armid.fleet.description import load_fleet
from armid.fleet.identify import identify_fleet
from tests.fleet.arms import write_fleet

ROOT = Path(__file__).parents[2]


def started(fleet_file, folder, workers):
    command = [sys.executable, "-m", "tests.fleet.kill", str(fleet_file), str(folder), str(workers)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def descendants(pid):
    """Processes that a process has started, directly or not, with their command lines."""
    found, parents = {}, {pid}
    table = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                table.append((int(entry.name), int(fields[1]), (entry / "cmdline").read_text()))
            except OSError:
                continue
    grew = True
    while grew:
        grew = False
        for child, parent, words in table:
            if parent in parents and child not in found:
                found[child] = words
                parents.add(child)
                grew = True
    return found


def workers_of(pid):
    """Processes that do the work: Dask's nannies start them, so that they have no children of their own."""
    tree = descendants(pid)
    leaves = [child for child, words in tree.items() if "spawn_main" in words and not descendants(child)]
    return sorted(leaves)


def finished(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "factors").glob("*.npz")}


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "took too long"
        time.sleep(0.05)


def survives(folder, arms, days, kills, kill_client):
    fleet_file = write_fleet(folder, arms, days, seconds=10.0)
    expected = identify_fleet(load_fleet(fleet_file), folder / "undisturbed")
    run = started(fleet_file, folder / "result", 2)
    for kill in range(kills):
        wait_for(lambda kill=kill: len(finished(folder / "result")) > kill + 1 or run.poll() is not None)
        assert run.poll() is None, run.stdout.read()
        wait_for(lambda: workers_of(run.pid))
        os.kill(workers_of(run.pid)[0], signal.SIGKILL)
    before = {}
    if kill_client:
        wait_for(lambda: len(finished(folder / "result")) > kills + 3)
        orphans = list(descendants(run.pid))
        run.kill()
        run.wait()
        before = finished(folder / "result")
        assert before
        assert run.stdout is not None
        run.stdout.close()
        for pid in orphans:  # those this test has started; they would end by themselves when they miss their client
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        run = started(fleet_file, folder / "result", 2)
    output, _ = run.communicate(timeout=600)
    assert run.returncode == 0, output
    after = finished(folder / "result")
    assert {name: after[name] for name in before} == before
    assert len(after) == arms * days
    again = identify_fleet(load_fleet(fleet_file), folder / "result")
    assert again.counts.kept == arms * days
    for one, other in zip(expected.arms, again.arms, strict=True):
        np.testing.assert_allclose(other.values, one.values, rtol=1e-10)


@pytest.mark.prove
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_a_killed_worker(tmp_path):
    """One of two workers."""
    survives(tmp_path, arms=1, days=4, kills=1, kill_client=False)


@pytest.mark.prove
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_five_killed_workers_and_a_killed_client(tmp_path):
    """Five workers, one after the other, and then the client."""
    survives(tmp_path, arms=4, days=10, kills=5, kill_client=True)
