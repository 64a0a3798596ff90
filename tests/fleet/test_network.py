"""Workers of a fleet listen to nobody but this machine, and one that dies, at work or while it starts, is replaced."""

import os
import signal
from pathlib import Path

import pytest

from armid.fleet.engine import engine
from tests.fleet.test_kill import descendants

pytest.importorskip("distributed")
LISTENS, LOOPBACK = "0A", "0100007F"


def listening(pids):
    """Local addresses, in hexadecimal, that processes listen at."""
    sockets = set()
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(str(entry.readlink()))
            except OSError:
                continue
    rows = [line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]]
    return [row[1].partition(":")[0] for row in rows if row[3] == LISTENS and f"socket:[{row[9]}]" in sockets]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="sockets are found in /proc")
def test_only_loopback():
    """Scheduler, workers, nannies and their pages: loopback alone."""
    with engine(2):
        found = listening([os.getpid(), *descendants(os.getpid())])
        assert len(found) >= 4
        assert set(found) == {LOOPBACK}


class Known:
    """In the place of a fleet."""

    def key(self):
        return "key"


def fatal_once(_, item):
    """The first worker that is given 1 dies of it."""
    marker, number = item
    if number == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_workers_that_die(tmp_path, monkeypatch):
    """The first process dies while it starts, another at work: all is done (whole fleets: test_kill, a proof)."""
    import dask

    monkeypatch.setenv("ARMID_DIE_ONCE", str(tmp_path / "at start"))
    preload = {"distributed.worker.preload": [str(Path(__file__).with_name("die_once.py"))]}
    items = [(tmp_path / "at work", number) for number in range(4)]
    with dask.config.set(preload), engine(1) as place:
        assert sorted(place.each(fatal_once, Known(), items)) == [(k, k) for k in range(4)]
    assert {path.name for path in tmp_path.iterdir()} >= {"at start", "at work"}
