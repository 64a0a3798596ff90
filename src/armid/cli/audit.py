"""armid audit: can any arm have these parameters, and if not, why not."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from armid.cli.options import add_json_option, add_robot_options, print_json, robot_from


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "audit",
        help="say whether an arm with given parameters can exist",
        description="Say whether an arm with the parameters of a fit (fit.json), a URDF or a robot file can exist; if "
        "not, why not, and which possible set is nearest. Exit code 1 if it cannot.",
    )
    add_robot_options(command)
    command.add_argument("--published", action="store_true", help="audit the published sets of the robot")
    command.add_argument("--set", metavar="NAME", help="only this published set")
    command.add_argument("--seed", type=int, default=0, help="of the random states of the torque distance")
    command.add_argument("-o", "--output", metavar="FILE", help="also write the result as JSON")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.robot.write import write_text
    from armid.validation.audit import audit

    what = load_fit(options.robot) if options.robot.endswith(".json") else robot_from(options)
    found = audit(what, published=options.published, name=options.set, seed=options.seed)
    # With several sets the first that is impossible speaks for all.
    worst = next((one for one in found if not one.possible), found[0])
    data = worst.to_data()
    if len(found) > 1:
        data["sets"] = [one.to_data() for one in found]
    if options.output:
        write_text(Path(options.output), json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    if options.json:
        print_json(data)
    else:
        sys.stdout.write("\n".join(one.summary() for one in found) + "\n")
    return 0 if worst.possible else 1
