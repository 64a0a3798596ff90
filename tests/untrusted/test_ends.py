"""How every long command may end: killed, interrupted, on a full disk, in a read-only folder, beside another.

No process stays, what it writes is old or complete, and nothing else lies about.
"""

import ctypes
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from armid.cli import main
from tests.exporting.arms import virtual_description

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
GONE_S = 10.0
AGAIN_S = 5.0  # after which Ctrl-C is pressed again: Python loses one that falls into the lock of an import
MARK = "ARMID_TEST_OF_ENDS"

#: What is run in a folder with small.yaml, plan.json, log.parquet and fit.json, and how long it takes at most [s].
COMMANDS = {
    "design": ("design small.yaml -o out.json --starts 8 --seed 3 --default-limits", 12.0),
    "simulate": ("simulate small.yaml plan.json -o out.parquet --periods 200", 8.0),
    "identify": ("identify small.yaml log.parquet -o out.json", 8.0),
    "run": ("run small.yaml --log log.parquet -o out", 15.0),
    "track": ("track fit.json path.csv -o out.json", 8.0),
    "friction": ("friction ir361 -o out.json --joints 1,2 --seconds 2", 8.0),
    "warmup": ("warmup ir361 -o out.json --joints 1", 8.0),
    "fleet simulate": ("fleet simulate ir361 --robots 4 --days 4 --workers 2 -o out", 12.0),
    "fleet identify": ("fleet identify hall/fleet.yaml --workers 2 -o out", 15.0),
    "reproduce": ("reproduce ir361 rx60 -o out --processes 2", 15.0),
}


def prepare(folder):
    """Everything that commands read: an arm, a tool path, a plan, a log, a fit, a fleet."""
    virtual_description(folder)
    rows = [f"{0.1 * k},{0.6 + 0.002 * k},0.1,0.6" for k in range(40)]
    (folder / "path.csv").write_text("\n".join(["time,x,y,z", *rows]) + "\n")
    here = Path.cwd()
    os.chdir(folder)
    try:
        for words in (
            "design small.yaml -o plan.json --starts 1 --budget 2 --default-limits",
            "simulate small.yaml plan.json -o log.parquet --periods 4",
            "identify small.yaml log.parquet -o fit.json --method feasible --friction linear",
            "track fit.json path.csv -o tracking.json",  # compiles its kernels, which a full disk could not keep
            "fleet simulate ir361 --robots 2 --days 3 -o hall",
        ):
            assert main([*words.split(), "--quiet"]) in (0, 1), words
    finally:
        os.chdir(here)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder to copy."""
    folder = tmp_path_factory.mktemp("ends")
    prepare(folder)
    return folder


def marked(mark):
    """Processes that were started with this mark, by us or by what we started."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            ours = entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes()
            if ours and (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def complete(path):
    """Whether a result, or every result in a folder, can be read."""
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.suffix == ".json":
            json.loads(file.read_text())
        elif file.suffix == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.read_metadata(file)
        elif file.suffix == ".html":
            assert file.read_text().endswith("</html>\n")


def placed(home, command, place):
    """A copy of the folder to run a command in; returns where it writes, which may be a file that is there already."""
    shutil.copytree(home, place)
    old = place / COMMANDS[command][0].split(" -o ")[1].split()[0]
    like = home / ("log.parquet" if old.suffix == ".parquet" else "fit.json")
    if old.suffix and like.exists():
        old.write_bytes(like.read_bytes())
    return old


def started(command, place, **options):
    """A command in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "armid", *COMMANDS[command][0].split(), "--quiet"],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **options,
    )


def ended(home, command, how, seconds, folder):
    """Start a command in a copy of the folder, end it after so long, and look at what is left."""
    place = folder / f"{command.replace(' ', '-')}-{how.name}-{seconds:.2f}"
    old = placed(home, command, place)
    mark = f"{os.getpid()}-{random.random()}"
    run = started(command, place, env={**os.environ, MARK: mark})
    try:
        output, _ = run.communicate(timeout=seconds)
        was = "over"
    except subprocess.TimeoutExpired:
        was = "running"
        if how is signal.SIGINT:
            os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to all of them
        else:
            run.kill()
    start = time.monotonic()
    while (left := marked(mark)) and time.monotonic() < start + GONE_S:
        time.sleep(0.1)
        if how is signal.SIGINT and was == "running" and time.monotonic() > start + AGAIN_S:
            os.killpg(run.pid, signal.SIGINT)
            was = "interrupted twice"
    names = [(Path("/proc") / str(pid) / "cmdline").read_bytes()[:200] for pid in left if Path(f"/proc/{pid}").exists()]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if was != "over":
        output, _ = run.communicate(timeout=20)
    assert not left, (command, how, seconds, names)
    if how is signal.SIGINT:
        assert b"Traceback" not in output, output[-3000:].decode()
    complete(old)
    shutil.rmtree(place)
    return was


def test_one_moment(tmp_path):
    """One moment of the command with the most processes; all commands take minutes and are proved."""
    (tmp_path / "home").mkdir()
    ended(tmp_path / "home", "fleet simulate", signal.SIGKILL, 3.0, tmp_path)


@pytest.mark.prove
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_five_moments(home, tmp_path, command, how):
    """Five moments spread over the run, drawn with a recorded seed."""
    moments = random.Random(f"{command} {how}")
    longest = COMMANDS[command][1]
    times = [moments.uniform(0.3, longest) for _ in range(5)]
    said = [ended(home, command, how, seconds, tmp_path) for seconds in times]
    print(command, how.name, *(f"{seconds:.1f} s {was};" for seconds, was in zip(times, said, strict=True)))
    assert set(said) != {"over"}, f"{command} was over each time: {said}"


def full_disk():
    """No file of this process can grow beyond a kilobyte, as if the disk were full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def no_superuser():
    """What is read-only stays so, even for root, who may otherwise write everywhere: prctl(PR_CAPBSET_DROP, ...)."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability)


def tree(place):
    """Everything in a folder: names and contents."""
    return {path.relative_to(place): path.read_bytes() if path.is_file() else None for path in place.rglob("*")}


def refused(home, command, place, preexec_fn, mode):
    """A command that cannot write says so in a sentence and leaves everything as it was."""
    old = placed(home, command, place)
    before = tree(place)
    place.chmod(mode)
    run = started(command, place, preexec_fn=preexec_fn)
    try:
        output = run.communicate(timeout=300)[0].decode()
    finally:
        place.chmod(0o755)
    assert run.returncode == 2, output
    assert "Traceback" not in output
    assert "cannot be written" in output.splitlines()[-1] or "cannot be made" in output.splitlines()[-1], output
    left = {name: content for name, content in tree(place).items() if before.get(name, 0) != content}
    if not old.suffix:  # a folder may hold what was finished before
        complete(old)
        left = {
            name for name, content in left.items() if name.parts[0] != old.name or (content and name.name[0] == ".")
        }
    assert not left, left


def beside(home, command, place):
    """Twice the same at once, to the same place: each is done or refused in a sentence, and what is there is whole."""
    old = placed(home, command, place)
    names = set(tree(place))
    runs = [started(command, place) for _ in range(2)]
    for run in runs:
        output = run.communicate(timeout=600)[0].decode()
        assert run.returncode in (0, 1, 2), output
        assert "Traceback" not in output, output
    assert any(run.returncode < 2 for run in runs), output
    complete(old)
    assert not [name for name in set(tree(place)) - names if name.name.startswith(".") and name.parts[0] != old.name]


@pytest.mark.prove
@pytest.mark.parametrize("command", COMMANDS)
def test_full_disk(home, tmp_path, command):
    """No result fits."""
    refused(home, command, tmp_path / "place", full_disk, 0o755)


@pytest.mark.prove
@pytest.mark.parametrize("command", COMMANDS)
def test_read_only_folder(home, tmp_path, command):
    """Nothing can be made in the folder."""
    refused(home, command, tmp_path / "place", no_superuser, 0o555)


@pytest.mark.prove
@pytest.mark.parametrize("command", COMMANDS)
def test_two_at_once(home, tmp_path, command):
    """Both write to the same place."""
    beside(home, command, tmp_path / "place")
