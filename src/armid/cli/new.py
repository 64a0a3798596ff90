"""armid new: start a description for your own arm."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from armid.cli.options import add_json_option, print_json
from armid.errors import ArmidError


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "new",
        help="start a description for your own arm",
        description="Write a commented robot file to start from: for a URDF or MJCF file, or with a DH table.",
    )
    command.add_argument("file", metavar="FILE", help="arm.urdf or arm.xml to describe, or arm.yaml for a DH template")
    command.add_argument("-o", "--output", metavar="FILE", help="file to write (default: FILE with the ending .yaml)")
    command.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.files import write_text
    from armid.robot.template import description_for

    source = Path(options.file)
    if not source.name:
        raise ArmidError(f"{options.file!r} is no file name; give arm.urdf, arm.xml or arm.yaml")
    target = Path(options.output) if options.output else source.with_suffix(".yaml")
    if source.suffix.lower() not in (".yaml", ".yml") and target.resolve() == source.resolve():
        raise ArmidError(f"{target}: is the file to be described; choose another name with -o")
    if os.path.lexists(target) and not options.force:
        raise ArmidError(f"{target}: exists already; choose another name with -o or overwrite it with --force")
    write_text(target, description_for(source, target))
    if options.json:
        print_json({"file": str(target)})
        return 0
    sys.stdout.write(f"wrote {target}; edit it, then: armid model {shlex.quote(str(target))}\n")
    return 0
