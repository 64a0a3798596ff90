"""The command line: ``armid COMMAND``. One file per command, no logic."""

from armid.cli.main import main as main
