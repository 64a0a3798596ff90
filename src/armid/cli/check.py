"""`armid check`: the state of the installation."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from armid.cli.options import add_json_option, print_json


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "check",
        help="the state of the installation",
        description="Say which extras are installed, whether the numeric kernels are compiled and right, which BLAS "
        "is used, and whether MuJoCo can simulate and draw. Exit code 1 if something that is installed does not work.",
    )
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.run.installation import examine_installation

    found = examine_installation()
    if options.json:
        print_json({"good": all(item.good for item in found), "items": [vars(item) for item in found]})
    else:
        width = max(len(item.name) for item in found)
        marks = {"ok": "ok", "absent": "--", "broken": "!!"}
        lines = [f"{marks[item.state]} {item.name:<{width}}  {item.detail}" for item in found]
        sys.stdout.write("\n".join(lines) + "\n")
    return 0 if all(item.good for item in found) else 1
