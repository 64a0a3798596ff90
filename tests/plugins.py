"""Packages that add something to armid by an entry point, and the command line of a process that finds them."""

import json
import os
import subprocess
import sys
from typing import NamedTuple

PROGRAM = """
import contextlib, io, json, sys
from armid.cli import main

done = []
for words in json.loads(sys.stdin.read()):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    done.append((code, out.getvalue(), err.getvalue()))
json.dump(done, sys.stdout)
"""


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def words(self):
        """Standard output with single spaces."""
        return " ".join(self.out.split())


def install(folder, group, entry, text):
    """Put a package into `folder`/site: its module has this text and is offered as ``name = module:object``."""
    module = entry.partition("=")[2].partition(":")[0].strip()
    place = folder / "site" / f"{module}-1.0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
    (folder / "site" / f"{module}.py").write_text(text)


def armid_with_plugins(folder, *commands):
    """Run commands in `folder`, one after the other in one process that sees the packages of its site."""
    path = os.pathsep.join(filter(None, [str(folder / "site"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, env={**os.environ, "PYTHONPATH": path},
        input=json.dumps(commands), capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [Ended(*one) for one in json.loads(done.stdout)]
