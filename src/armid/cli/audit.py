"""armid audit: can any arm have these parameters, and if not, why not."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from armid.cli.log_options import check_output
from armid.cli.options import add_json_option, add_robot_options, print_json, robot_from
from armid.errors import ArmidError


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "audit",
        help="say whether an arm with given parameters can exist",
        description="Say whether an arm with the parameters of a fit (fit.json), a URDF or a robot file can exist; if "
        "not, why not, and which possible set is nearest. Exit code 1 if it cannot.",
    )
    add_robot_options(command, also="; or a fit (.json), written by `armid identify`")
    command.add_argument("--published", action="store_true", help="audit the published sets of ROBOT instead")
    command.add_argument("--set", metavar="NAME", help="only this published set (see `armid robots ROBOT`)")
    command.add_argument(
        "--seed", type=int, default=0, help="of the random states of the torque distance and postures (default: 0)"
    )
    command.add_argument("-o", "--output", metavar="FILE", help="audit to write (JSON), nearest possible set included")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.files import write_text
    from armid.validation.auditing import audit

    check_output(options.output, [options.robot])
    is_fit = options.robot.endswith(".json")
    if is_fit and (options.links or options.no_rotors or options.gravity or options.simplify):
        raise ArmidError(
            f"{options.robot}: is a fit, which has its robot with it; leave --links, --no-rotors, --gravity and "
            "--simplify out"
        )
    what = load_fit(options.robot) if is_fit else robot_from(options)
    found = audit(what, published=options.published, name=options.set, seed=options.seed)
    # With several sets the first that is impossible speaks for all.
    worst = next((one for one in found if not one.possible), found[0])
    data = worst.to_data()
    if len(found) > 1:
        data["sets"] = [one.to_data() for one in found]
    if options.output:
        write_text(Path(options.output), json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    files = [options.output] if options.output else []
    if options.json:
        print_json({**data, "files": files})
    else:
        sys.stdout.write("\n".join([*(one.summary() for one in found), *(f"wrote {file}" for file in files)]) + "\n")
    return 0 if worst.possible else 1
