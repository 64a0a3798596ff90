"""Where logs and workers may be: other file formats, a file system that is not local, a scheduler that is running."""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace

import fsspec
import numpy as np
import pytest

import armid
from armid.errors import ArmidError
from armid.fleet import engine
from armid.fleet.description import load_fleet
from armid.fleet.identify import identify_fleet
from armid.logs import read_log, write_log
from tests.fleet.arms import write_fleet


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A fleet file, its logs as local Parquet, and what comes out of them."""
    folder = tmp_path_factory.mktemp("fleet")
    file = write_fleet(folder, 2, 2)
    return file, identify_fleet(load_fleet(file), folder / "result")


def assert_same(one, other, relative):
    """Values and standard deviations of every arm, relative to the largest of their kind."""
    assert len(one.arms) == len(other.arms) == 2
    for mine, theirs in zip(one.arms, other.arms, strict=True):
        for key in ("values", "sigma"):
            scale = np.abs(getattr(mine, key)).max()
            np.testing.assert_allclose(getattr(theirs, key), getattr(mine, key), atol=relative * scale, rtol=0.0)


def with_logs(known, folder, address):
    """The fleet file, with the logs at another place."""
    text = known[0].read_text().splitlines()
    lines = [f"logs: {address}" if line.startswith("logs:") else line for line in text]
    (folder / "fleet.yaml").write_text("\n".join(lines) + "\n")
    for name in ("arm.yaml", "arm.urdf"):
        (folder / name).write_bytes((known[0].parent / name).read_bytes())
    return load_fleet(folder / "fleet.yaml")


@pytest.mark.parametrize(("suffix", "relative"), [(".mcap", 1e-10), (".csv", 1e-8)])
def test_other_formats(known, tmp_path, suffix, relative):
    """MCAP bags and CSV files give what Parquet gives."""
    for path in sorted((known[0].parent / "logs").rglob("*.parquet")):
        target = tmp_path / "logs" / path.relative_to(known[0].parent / "logs").with_suffix(suffix)
        target.parent.mkdir(parents=True)
        write_log(read_log(path), target)
    fleet = with_logs(known, tmp_path, "logs")
    assert_same(known[1], identify_fleet(fleet, tmp_path / "result"), relative)


def test_another_file_system(known, tmp_path):
    """Logs behind an fsspec address are copied one at a time and give the same; a second run reads none of them."""
    memory = fsspec.filesystem("memory")
    for path in (known[0].parent / "logs").rglob("*.parquet"):
        memory.pipe(f"/hall/{path.relative_to(known[0].parent / 'logs')}", path.read_bytes())
    try:
        fleet = with_logs(known, tmp_path, "memory://hall")
        assert_same(known[1], identify_fleet(fleet, tmp_path / "result"), 1e-10)
        assert identify_fleet(fleet, tmp_path / "result").counts.kept == 4
    finally:
        memory.rm("/hall", recursive=True)


@contextmanager
def running(folder, *tls, workers=1):
    """A Dask scheduler and its workers, each a process in a group of its own; gives the address."""
    place = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    dask = [sys.executable, "-m", "dask"]
    commands = [[*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", place]]
    commands += [[*dask, "worker", "--scheduler-file", place, "--nthreads", "1", "--no-dashboard"]] * workers
    quiet |= {"cwd": folder, "env": environment, "start_new_session": True}
    processes = [subprocess.Popen([*map(str, one), *tls], **quiet) for one in commands]
    try:
        from distributed import Client

        end = time.monotonic() + 60.0
        while not place.exists() and time.monotonic() < end:
            time.sleep(0.1)
        address = json.loads(place.read_text())["address"]
        with Client(address, timeout=60) as client:
            client.wait_for_workers(workers, timeout=60)
        yield address
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=30)


@pytest.mark.prove
def test_a_scheduler_that_is_running(known, tmp_path, monkeypatch):
    """Work on somebody else's workers gives the same; workers with another version of armid are refused."""
    fleet = load_fleet(known[0])
    with running(tmp_path) as address:
        assert_same(known[1], identify_fleet(fleet, tmp_path / "result", scheduler=address), 1e-10)
        monkeypatch.setattr("armid.fleet.engine.__version__", "0.0")
        with pytest.raises(ArmidError, match=r"workers have armid .*; install armid\[fleet\] 0\.0 where they run"):
            identify_fleet(fleet, tmp_path / "other", scheduler=address)


@pytest.mark.prove
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_encrypted_workers_and_an_object_store(known, tmp_path, monkeypatch):
    """Workers behind TLS that read logs from an S3-compatible store give the same; without a certificate, nothing."""
    import dask

    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    pytest.importorskip("s3fs")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run(["openssl", *words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    server.start()
    try:
        storage = {"endpoint_url": "http://{}:{}".format(*server.get_host_and_port()), "key": "k", "secret": "s"}
        store = fsspec.filesystem("s3", **storage)
        store.mkdir("hall")
        for path in (known[0].parent / "logs").rglob("*.parquet"):
            store.pipe(f"hall/{path.relative_to(known[0].parent / 'logs')}", path.read_bytes())
        fleet = replace(with_logs(known, tmp_path, "s3://hall"), storage=storage)
        said = ["--tls-ca-file", certificate, "--tls-cert", certificate, "--tls-key", key]
        settings = {"ca-file": str(certificate), "client.key": str(key), "client.cert": str(certificate)}
        settings = {f"distributed.comm.tls.{name}": value for name, value in settings.items()}
        with dask.config.set(settings), running(tmp_path, *map(str, said)) as address:
            assert address.startswith("tls://")
            assert_same(known[1], identify_fleet(fleet, tmp_path / "result", scheduler=address), 1e-10)
            without = dict.fromkeys(settings)
            with dask.config.set(without), pytest.raises(ArmidError, match=r"cannot be reached.*TLS configuration"):
                identify_fleet(fleet, tmp_path / "other", scheduler=address)
    finally:
        server.stop()


class Answering:
    """A client of a scheduler whose workers answer what they are asked; one without armid raises."""

    def __init__(self, *versions):
        self.versions = versions

    def run(self, function, *arguments):
        if None in self.versions:
            raise ModuleNotFoundError("armid")
        return dict(enumerate(self.versions))


def test_workers_of_another_version_are_refused():
    """Workers with another armid, or none, are named with what to install; those with this one are fine."""
    engine._check_installation(Answering(armid.__version__, armid.__version__), "tcp://here")
    for versions, words in (((armid.__version__, "0.0"), "workers have armid 0.0"), ((None,), "a worker has no armid")):
        with pytest.raises(ArmidError, match=rf"--scheduler tcp://here: .*{words}.*install armid\[fleet\]"):
            engine._check_installation(Answering(*versions), "tcp://here")
