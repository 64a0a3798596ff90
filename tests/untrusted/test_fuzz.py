"""Mutated files of every kind: used, or refused in a sentence; no traceback, no hang, no memory, no crash.

`make prove` reads 1000 of each kind; a file that once went wrong is read in every run of the tests.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.untrusted import fuzz
from tests.untrusted.readers import READERS, write_examples

ROOT = Path(__file__).parents[2]
FILES = 1000  # of each kind
FEW = 5
#: Seeds of files that were not refused in a sentence when they were found.
FOUND = (
    "robot.yaml:253",  # half a character
    "fit:40",  # an arm without any parameter
    "fit:112",  # a matrix without its last row
    "fit:156",
    "fit:265",  # a mass of 1e-12 kg: the moments of inertia are not finite
    "fit:680",  # a factor that makes the gains' equations singular
    "fit:1316",  # a direction
    "fit by default:1145",  # a table of singular values
    "fit by default:1888",  # a gear ratio
    "fit:704",  # a frame with a number that is none
    "fit by default:56",  # a number for the columns of a factor
    "fit:643",  # a gear ratio of zero
    "fit:892",  # a note with other values than its sentence has
    "mjcf:492",  # a mass of 1e300 kg
    "plan:297",  # a note about a mapping
    "friction:16",  # a list as the number of a joint
    "csv log:219",  # a line break in the name of a column
    "csv log:329",  # a position of 1e300: no lag scores
    "csv of others:72",
    "csv of others:395",  # a name of 140 000 digits
    "signals:563",  # a cut-off of 5e-12 Hz
    "settings:55",  # names that no file can have
    "fleet.yaml:25",
    "fleet.yaml:107",
    "tool poses:13",
    "fleet.json:0",  # lists that do not fit each other
    "fleet.json:11",
    "fleet.json:41",
    "fleet.json:92",  # a state that there is not
    "fleet.json:289",
    "fleet.json:358",  # noise that is no list of numbers
    "fleet.json:844",  # a date that is none
    "tracking:207",  # a run of no length
    "inspection:16",
    "inspection:19",
    "inspection:20",
    "inspection:35",
    "inspection:73",
    "fleet.yaml:866",  # a file name with a null byte
    "fleet.yaml:902",  # half a name
    "arm-day:161",  # a name in an archive that is no text
    "arm-day:554",  # half of an array's header
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Good files, and a folder to spoil them in."""
    good, folder = tmp_path_factory.mktemp("good"), tmp_path_factory.mktemp("fuzz")
    write_examples(good)
    fuzz.prepare(good, folder)
    before = signal.signal(signal.SIGPROF, fuzz._too_long)
    yield folder
    signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("kind", READERS)
def test_the_good_file_is_used(place, kind):
    """Otherwise the mutations would all be refused for another reason."""
    READERS[kind].use(place / "good" / READERS[kind].name)


@pytest.mark.parametrize("kind", READERS)
def test_a_few_of_each_kind(place, kind):
    """The first files of the proof, and those that were found."""
    known = [int(seed.rpartition(":")[2]) for seed in FOUND if seed.startswith(f"{kind}:")]
    assert fuzz.run(kind, [*range(FEW), *known], place) == []


@pytest.mark.prove
@pytest.mark.parametrize("kind", READERS)
def test_a_thousand_of_each_kind(place, kind):
    """In a process of its own, whose death would be noticed; `now` holds the seed that it died of."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.untrusted.fuzz", str(place), kind, "0", str(FILES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert run.returncode == 0, f"died of {(place / 'now').read_text()}: {run.stderr[-2000:]}"
    assert [json.loads(line) for line in run.stdout.splitlines()] == []
