"""Odd numbers for every option that takes one: refused in a sentence, or something sensible within seconds."""

import os
import signal
from pathlib import Path

import pytest

from armid.cli import main
from tests.cli.test_arguments import numeric_options
from tests.untrusted.fuzz import Hang, _too_long
from tests.untrusted.test_ends import prepare

ODD = ("nan", "inf", "-1", "0", "1e18", "1e-9", f"{10**18}")
SECONDS = 20  # of processor time, for what is not refused
#: What each command needs besides, small enough to run in seconds.
REST = {
    "model": "small.yaml",
    "new": "small.urdf",
    "design": "small.yaml --default-limits --starts 1 --budget 2",
    "simulate": "small.yaml plan.json",
    "record": "ur://127.0.0.1:9 -o out.parquet --patience 0",
    "identify": "small.yaml log.parquet --method feasible --friction linear",
    "validate": "fit.json other.parquet",
    "predict": "fit.json plan.json",
    "audit": "small.urdf",
    "payload": "fit.json other.parquet",
    "gains": "small.yaml log.parquet",
    "observe": "fit.json other.parquet --calibrate log.parquet",
    "track": "fit.json path.csv --controller pid",
    "run": "small.yaml --log log.parquet -o out --to none",
    "fleet identify": "hall/fleet.yaml -o out",
    "fleet simulate": "ir361 --robots 1 --days 1 -o OUT --points 2",
    "warmup": "ir361 --joints 1 --longest 60",
    "friction": "ir361 --joints 1 --seconds 1",
    "load-friction": "ir361 --joints 2 --seconds 1",
    "stiffness": "ir361 --joints 2 --seconds 1",
    "export": "fit.json -o out --to yaml",
    "report": "fit.json -o out.html",
    "studio": "plan.json --no-browser",  # not a folder: a page would stay until Ctrl-C
    "reproduce": "ir361 -o plan.json",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder to work in."""
    folder = tmp_path_factory.mktemp("odd")
    prepare(folder)
    here = Path.cwd()
    os.chdir(folder)
    assert main(["simulate", "small.yaml", "plan.json", "-o", "other.parquet", "--seed", "1", "--quiet"]) == 0
    before = signal.signal(signal.SIGPROF, _too_long)
    yield
    signal.signal(signal.SIGPROF, before)
    os.chdir(here)


def outcome(typed, capsys):
    """What is wrong with how a command line ends; empty where nothing is."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        code = main(typed)
    except SystemExit as end:
        code = end.code
    except Hang:
        return "takes too long"
    except BaseException as error:  # a solver's panic is no Exception
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    said = capsys.readouterr().err.strip().splitlines()
    if code == 2 and not (said and "error: " in said[-1]):
        return f"no sentence: {said}"
    return "" if code in (0, 1, 2) else f"exit code {code}"


@pytest.mark.prove
@pytest.mark.parametrize(("words", "option", "count"), numeric_options(), ids=lambda value: str(value))
def test_every_number(home, capsys, words, option, count):
    """No traceback, no hang, and a code that means something."""
    found = {}
    for value in ODD:
        rest = REST[" ".join(words)].replace("OUT", f"fleet{option}{value}")
        typed = [*words, *rest.split(), option, *[value] * count, "--quiet"]
        if problem := outcome(typed, capsys):
            found[value] = problem
    assert found == {}
