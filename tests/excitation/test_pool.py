"""Processes of a search end with the process that started them, however that ends."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import multiprocessing, sys
import armid

def told(now):
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)

if __name__ == "__main__":
    armid.design(armid.load_robot("rx60"), starts=1000, workers=2, progress=told)
"""


def running(pid):
    """Whether a process is there; one that only waits for its exit status to be read is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks for processes in /proc")
def test_no_process_outlives_a_killed_parent(tmp_path):
    """kill -9 while two processes search: both are gone within seconds."""
    (tmp_path / "script.py").write_text(SCRIPT)
    parent = subprocess.Popen([sys.executable, tmp_path / "script.py"], stdout=subprocess.PIPE, text=True)
    try:
        children = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(children) == 2
        assert all(running(pid) for pid in children)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    end = time.monotonic() + 20.0
    while any(running(pid) for pid in children) and time.monotonic() < end:
        time.sleep(0.1)
    assert not [pid for pid in children if running(pid)]
