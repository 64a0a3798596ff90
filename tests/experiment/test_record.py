"""Live recording against an RTDE server: every row that was sent is in the log, gaps are named, ends keep the rows."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import armid
from armid.errors import ArmidError
from armid.experiment.record import RtdeConnection, RtdeError, record
from armid.logs import read_log
from armid.logs.csv_file import RTDE_FIELDS
from tests.experiment.rtde_server import RtdeServer, reading


def check_rows(log, sent):
    """The log has these rows and no others, each with its own values."""
    stamps = np.array(sent[: len(log)])
    np.testing.assert_allclose(log.time, stamps - stamps[0], atol=1e-9)
    for channel, field in RTDE_FIELDS.items():
        np.testing.assert_array_equal(log[channel], [reading(field, at) for at in stamps])


@pytest.mark.filterwarnings("ignore::armid.errors.ArmidWarning")
def test_every_row_that_was_sent_is_there(tmp_path):
    """As fast as rows come, with a dropped connection: all are kept, in order, and the gap is named with its length."""
    path = tmp_path / "log.parquet"
    with RtdeServer(fast=True, drop_after=3000, away=0.25, stop_after=8000) as server:
        done = record(server.address, path, robot="ur10e", patience_s=0.5)
    assert done.ended == "connection lost"
    assert len(server.sent) == len(done.log) == 8000
    check_rows(done.log, server.sent)
    assert [(gap.rows, gap.dropped) for gap in done.gaps] == [(125, True)]
    assert done.gaps[0].time_s == pytest.approx(2999 / 500.0)
    assert "gaps" in [finding.code for finding in done.examination.findings]
    again = read_log(path)
    np.testing.assert_array_equal(again["current"], done.log["current"])
    assert again.info.effort == "current"
    assert again.info.robot == "ur10e"
    assert again.info.history["controller"] == "5.11.1.0"


def test_recording_at_the_controllers_pace(tmp_path):
    """A stated time at 500 Hz: 500 rows a second, without gap or repetition."""
    with RtdeServer() as server:
        done = record(server.address, tmp_path / "log.csv", seconds=1.0)
    assert done.ended == "complete"
    assert len(done.log) == 500
    assert done.gaps == ()
    check_rows(done.log, server.sent)
    assert done.to_data()["rate_hz"] == pytest.approx(500.0)


@pytest.mark.prove
def test_a_minute_with_a_dropped_connection(tmp_path):
    """60 s at 500 Hz, dropped once: no row that was sent is lost, the gap is named."""
    with RtdeServer(drop_after=12_000, away=1.0) as server:
        done = record(server.address, tmp_path / "log.parquet", seconds=60.0)
    check_rows(done.log, server.sent)
    assert done.log.time[-1] > 59.99
    gap = max(done.gaps, key=lambda gap: gap.seconds)
    assert gap.dropped
    assert 1.0 <= gap.seconds < 2.0
    assert len(done.log) + sum(gap.rows for gap in done.gaps) == 30_000


def test_the_rate_of_older_controllers(tmp_path):
    """Before version 5 it is 125 Hz, unless another is wanted."""
    with RtdeServer(controller=(3, 15, 0, 0), fast=True, stop_after=50) as server:
        assert record(server.address, tmp_path / "a.csv", patience_s=0.1).log.info.rate_hz == 125.0
    with RtdeServer(fast=True, stop_after=50) as server:
        assert record(server.address, tmp_path / "b.csv", rate_hz=50.0, patience_s=0.1).log.info.rate_hz == 50.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"version": 1}, "refuses version 2"),
        ({"unknown": ("joint_temperatures",)}, "does not send joint_temperatures"),
        ({"silent": True}, "does not start"),
    ],
)
def test_controllers_that_cannot_be_used(tmp_path, options, words):
    """One sentence that names the controller and what to do; no file."""
    with RtdeServer(**options) as server, pytest.raises(RtdeError, match=words):
        record(server.address, tmp_path / "log.csv")
    assert not (tmp_path / "log.csv").exists()


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x00", b"\x00\x04U\x01" * 200, b""]
)
def test_what_is_no_controller(reply):
    """Another server, damage, a flood of other packages, silence: an error, never a crash or a wait without end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            client, _ = listener.accept()
            with client:
                client.sendall(reply)
                client.recv(100)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(RtdeError, match=r"127\.0\.0\.1"):
            RtdeConnection("127.0.0.1", ("timestamp",), port=listener.getsockname()[1], timeout_s=0.5)
        thread.join(5.0)


def test_addresses(tmp_path):
    """Other schemes and hosts that are not there are refused with what to write."""
    for address, words in (
        ("ros://robot", "ros2 bag record"),
        ("http://robot", "ur://HOST"),
        ("ur://", "names no host"),
        ("ur://robot:99999", "is no address"),
        ("ur://127.0.0.1:1", "cannot be reached"),
    ):
        with pytest.raises(ArmidError, match=words):
            armid.record(address, tmp_path / "log.csv")


def test_a_restarted_controller_ends_the_recording(tmp_path):
    """Its clock starts again: rows from before and after do not go into one log."""
    with RtdeServer(fast=True, drop_after=1000, away=-1.5, stop_after=2000) as server:
        done = record(server.address, tmp_path / "log.csv", patience_s=1.0)
    assert done.ended == "controller restarted"
    check_rows(done.log, server.sent[:1000])
    assert len(done.log) == 1000


def test_live_doctor(tmp_path):
    """What is wrong is said while the recording goes on, once each."""
    said = []
    with RtdeServer(fast=True, drop_after=4000, away=0.1, stop_after=8000) as server:
        record(server.address, tmp_path / "log.csv", patience_s=0.1, tell=said.append)
    assert [text.split(":")[0] for text in said][:2] == ["the connection dropped; connecting again", "gaps"]
    assert sum(text.startswith("gaps") for text in said) == 1


@pytest.mark.parametrize("sign", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.prove)])
def test_an_interruption_keeps_what_is_there(tmp_path, sign):
    """Ctrl-C and a polite end write the rows that have come."""
    path = tmp_path / "log.csv"
    with RtdeServer() as server:
        command = [sys.executable, "-m", "armid", "record", server.address, "-o", str(path)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
        until = time.monotonic() + 60.0
        while len(server.sent) < 300 and time.monotonic() < until:
            time.sleep(0.02)
        running.send_signal(sign)
        out, err = running.communicate(timeout=60)
    assert running.returncode in (0, 1), err  # 1: a second of sines is not worth much
    assert "interrupted" in out
    log = read_log(path)
    assert len(log) >= 200
    check_rows(log, server.sent)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_a_killed_recording_keeps_what_is_there(tmp_path):
    """Rows that have come are a log beside the one that was wanted; recording there again does not overwrite them."""
    path = tmp_path / "log.parquet"
    with RtdeServer() as server:
        command = [sys.executable, "-m", "armid", "record", server.address, "-o", str(path), "--robot", "ur10e"]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
        until = time.monotonic() + 60.0
        while len(server.sent) < 400 and time.monotonic() < until:
            time.sleep(0.02)
        count = len(server.sent)
        time.sleep(0.3)
        running.kill()
        running.communicate(timeout=60)
        assert not path.exists()
        with pytest.raises(ArmidError, match=r"log\.part\.csv.*killed"):
            record(server.address, path)
    log = read_log(tmp_path / "log.part.csv")
    assert len(log) >= count
    assert log.info.robot == "ur10e"
    check_rows(log, server.sent)


def test_a_full_disk_does_not_end_a_recording(tmp_path, monkeypatch):
    """Rows so far that cannot be written meanwhile are reported; none is lost, and nothing stays beside the log."""
    monkeypatch.setattr(
        sys.modules["armid.experiment.record"], "write_rows", lambda *_: (_ for _ in ()).throw(OSError("disk full"))
    )
    said = []
    with RtdeServer(fast=True, stop_after=3000) as server:
        done = record(server.address, tmp_path / "log.csv", patience_s=0.1, tell=said.append)
    check_rows(done.log, server.sent)
    assert len(done.log) == 3000
    assert sum("in memory only" in text for text in said) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_the_fields_own_client_accepts_the_server():
    """The server speaks RTDE as ur-rtde, the client in common use, understands it: values are those of one row."""
    receive = pytest.importorskip("rtde_receive", reason="ur-rtde is not installed")
    command = [sys.executable, "-m", "tests.experiment.rtde_server", "127.0.0.2", "30004"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        client = receive.RTDEReceiveInterface("127.0.0.2", 500.0, ["timestamp", "actual_q", "actual_current"])
        for _ in range(100):
            at, q = client.getTimestamp(), client.getActualQ()
            if at == client.getTimestamp():
                break
        client.disconnect()
        np.testing.assert_array_equal(q, reading("actual_q", at))
    finally:
        server.communicate("")
