"""`armid gains ROBOT LOG... --load FILE LOG...`: drive gains from a known load."""

from __future__ import annotations

import argparse
import json

from armid.cli.arguments import arg
from armid.cli.options import LOGS, command, finish, logs_from, output, robot_arguments, robot_from
from armid.errors import ArmidError


@command(
    "gains",
    "drive gains of all joints from logs with and without a known load",
    "Estimate by what each joint's torque has to be multiplied, with intervals, from logs without load and, after "
    "--load, a file that describes the load and logs with it. Without --load, ratios of gains between joints, where "
    "the motion tells them. Ends with 1 where a joint's gain is not told.",
    *robot_arguments(),
    *LOGS,
    arg("--load FILE...", "the load (mass, com, inertia in the tool frame; YAML or JSON), then logs with it"),
    arg("--load-within SHARE", "how well the load's mass is known", default=0.01),
    arg("--corrected RECIPE", "recipe to write: that of --recipe with the gains found (YAML)", file="written"),
    output("result to write (JSON)"),
)
def gains(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.files import parse_yaml, read_text, write_result, write_text
    from armid.payload.body import known_body
    from armid.payload.gains import corrected_recipe, identify_gains
    from armid.signals import process_logs

    robot = robot_from(options)
    load, *names = options.load or [None]
    if options.corrected and not options.recipe:
        raise ArmidError("--corrected writes the recipe of --recipe with other gains; give --recipe")
    empty = process_logs(logs_from(options), None, robot)
    loaded = process_logs(logs_from(options, names), list(empty[0].pipeline), robot) if names else []
    body = None if load is None else known_body(load)
    found = identify_gains(robot, empty, loaded, body, load_within=options.load_within)
    written = []
    if options.output:
        write_result(options.output, "armid gains 1", found.to_data())
        written.append(options.output)
    if options.corrected:
        entries = corrected_recipe(parse_yaml(read_text(options.recipe), options.recipe), found)
        text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in entries.items())
        write_text(options.corrected, "# gains by armid gains\n" + text)
        written.append(options.corrected)
    return finish(options, found.to_data(), found.summary(), written, good=all(found.told))
