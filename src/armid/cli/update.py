"""`armid update FIT LOG`: friction levels, offsets, delay and load brought up to date."""

from __future__ import annotations

import argparse

from armid.cli.options import FIT, LOGS, command, finish, logs_from, output
from armid.errors import ArmidError


@command(
    "update",
    "bring friction, delay and load of a fit up to date",
    "Find what has changed since a fit from a few seconds of ordinary motion: friction levels, offsets, delay of the "
    "torque and load, and whether that is more than usual. The inertia of the arm stays.",
    FIT,
    *LOGS,
    output("fit to write (JSON), brought up to date"),
)
def update(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.monitoring import update

    logs = logs_from(options)
    if len(logs) > 1:
        raise ArmidError(f"{len(logs)} logs are given; update takes one at a time")
    found = update(load_fit(options.fit), logs[0])
    if options.output:
        found.fit.save(options.output)
    return finish(options, found.to_data(), found.summary(), [options.output] if options.output else [])
