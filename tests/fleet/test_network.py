"""Workers of a fleet listen to nobody but this machine."""

import os
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
