"""Reads mutated files of one kind after the other and says what went wrong: ``python -m tests.untrusted.fuzz``.

The seed of each file is the kind and a number, so that ``KIND:NUMBER`` makes the same file again.
"""

import json
import random
import resource
import shutil
import signal
import sys
import traceback
import warnings
from pathlib import Path

from armid.errors import ArmidError
from tests.untrusted.readers import READERS

SECONDS = 10  # of processor time for one file
MEMORY = 1 << 30  # bytes that one file may take


class Hang(BaseException):
    """A file took too long."""


def _too_long(number, frame):
    raise Hang


def mutated(kind, number, folder):
    """Content of the mutated file with a seed."""
    reader = READERS[kind]
    return reader.mutate((folder / "good" / reader.name).read_bytes(), random.Random(f"{kind}:{number}"))


def trial(kind, content, folder):
    """What is wrong with how a file is read; empty where it is used or refused in a sentence."""
    reader = READERS[kind]
    path = folder / "place" / reader.name
    path.write_bytes(content)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.use(path)
    except ArmidError as error:
        return "" if "\n" not in str(error) and len(str(error)) < 4000 else f"not a sentence: {str(error)[:500]}"
    except Hang:
        return f"takes more than {SECONDS} s: {traceback.format_exc()[-800:]}"
    except BaseException as error:  # a solver's panic is no Exception
        return f"{type(error).__name__}: {str(error)[:200]} {_where(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        path.write_bytes((folder / "good" / reader.name).read_bytes())
    return ""


def _where(error):
    frames = traceback.extract_tb(error.__traceback__)[::-1]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[:6])


def run(kind, numbers, folder):
    """Findings of some files of a kind; the current one is noted first, should the process not survive it."""
    found = []
    for number in numbers:
        (folder / "now").write_text(f"{kind}:{number}")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        problem = trial(kind, mutated(kind, number, folder), folder)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if not problem and more > MEMORY:
            problem = f"takes {more >> 20} MB"
        if problem:
            found.append({"seed": f"{kind}:{number}", "problem": problem})
    return found


def prepare(good, folder):
    """A folder to work in, from one with good files."""
    shutil.copytree(good, folder / "good")
    shutil.copytree(good, folder / "place")


if __name__ == "__main__":
    sys.stderr.flush()
    signal.signal(signal.SIGPROF, _too_long)
    place, kinds, first, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    for one in READERS if kinds == "all" else kinds.split(","):
        for finding in run(one, range(first, first + count), place):
            print(json.dumps(finding), flush=True)
