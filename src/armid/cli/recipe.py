"""`armid recipe LOG --robot ROBOT`: what the columns of a file mean, as far as that can be told."""

from __future__ import annotations

import argparse

from armid.cli.arguments import arg
from armid.cli.options import ROBOTS, command, finish, output


@command(
    "recipe",
    "write a recipe for a table: what its columns mean",
    "Guess which columns are time, position, velocity and effort, and their units, from names and physics. Each guess "
    "stands with its evidence; what cannot be told is left as a line marked OPEN. Ends with 1 where lines are open.",
    arg("logs LOG...", "text tables or Parquet files of another program, all with the same columns"),
    arg("--robot ROBOT", "library name or description of the arm", required=True, values=ROBOTS),
    output("recipe to write (YAML)", "RECIPE"),
)
def recipe(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.files import write_text
    from armid.logs.guess import guess_recipe
    from armid.robot import load_robot

    found = guess_recipe(options.logs, load_robot(options.robot))
    if options.output:
        write_text(options.output, found.text())
    rows = [vars(guess) for guess in found.guesses]
    data = {"source": found.source, "guesses": rows, "open": [guess.entry for guess in found.open]}
    return finish(options, data, found.text(), [options.output] if options.output else [], good=not found.open)
