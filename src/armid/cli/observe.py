"""`armid observe FIT LOG... --calibrate QUIET...`: external torque and contacts."""

from __future__ import annotations

import argparse
from pathlib import Path

from armid.cli.arguments import arg
from armid.cli.options import FIT, LOGS, PICTURES, command, finish, logs_from, output, positive
from armid.errors import ArmidError


@command(
    "observe",
    "external torque and contacts, without a force sensor",
    "Find contacts in logs by a momentum observer, with limits calibrated on contact-free logs for a stated rate of "
    "false alarms. It is no safety function.",
    FIT,
    *LOGS,
    arg("--calibrate QUIET...", "contact-free logs; a LOG among them is left out for itself", required=True),
    arg("--false-alarms RATE", "of the whole arm, per hour: 10/h", default="10/h"),
    arg("--gain HZ", "of the observer, 1/s: its time constant is the inverse", default=25.0),
    output("limits to write (JSON), for `armid export --limits` and `armid.Detector`"),
    arg("--torque FILE", "external torque, its standard deviation and limit to write (.csv)", file="written"),
    PICTURES,
)
def observe(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.monitoring import observe

    positive("--gain", options.gain)
    found = observe(
        load_fit(options.fit),
        logs_from(options),
        quiet=logs_from(options, options.calibrate),
        false_alarms=_rate(options.false_alarms),
        gain=options.gain,
    )
    written = []
    if options.output:
        found.limits.save(options.output)
        written.append(options.output)
    if options.torque:
        from armid.files import write_csv

        write_csv(options.torque, found.columns())
        written.append(options.torque)
    if options.pictures:
        from armid import theme

        written.append(str(Path(options.pictures) / "external-torque.png"))
        theme.save(found.plot(), Path(written[-1]))
    return finish(options, found.to_data(), found.summary(), written)


def _rate(text: str) -> float:
    """Per hour, from ``10/h`` or ``10``."""
    try:
        rate = float(text.removesuffix("/h"))
    except ValueError:
        rate = 0.0
    if not 0.0 < rate < float("inf"):
        raise ArmidError(f"--false-alarms {text}: is no rate; write it as 10/h")
    return rate
