"""Running armid in this process."""

from typing import NamedTuple

import pytest

from armid.cli import main


class Outcome(NamedTuple):
    """What a run left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def armid(capsys):
    """Runs a command line and returns exit code, standard output and standard error."""

    def run(*arguments) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run
