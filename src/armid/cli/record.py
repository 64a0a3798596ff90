"""`armid record ur://HOST -o log.parquet`: live recording from a controller."""

from __future__ import annotations

import argparse
import signal

from armid.cli.arguments import arg
from armid.cli.display import display
from armid.cli.options import command, finish, output, positive
from armid.errors import ArmidError
from armid.progress import watch_progress


@command(
    "record",
    "record a log from a UR controller, live",
    "Record joint positions, velocities, currents, temperatures and targets from a UR controller, every row it sends. "
    "While it goes on, the log doctor looks at rate, gaps and saturation. A dropped connection is made again; Ctrl-C "
    "ends the recording, and what has come is kept. Exit code 1 if it ended before its time or should not be used.",
    arg("address ADDRESS", "ur://HOST or ur://HOST:PORT"),
    output("log to write: .parquet, .csv or .mcap"),
    arg("--seconds S", "how long (default: until Ctrl-C)", float),
    arg("--rate HZ", "rows per second (default: 500, or 125 of older controllers)", float),
    arg("--robot NAME", "name of the robot, for the log"),
    arg("--patience S", "how long to try to connect again", default=10.0),
)
def record(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.experiment.record import record

    positive("--seconds", options.seconds)
    positive("--rate", options.rate)
    if not options.output:
        raise ArmidError("name the log to write with -o, such as -o log.parquet")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite end keeps the rows as well
    with display(options, stay=False) as shown, watch_progress(shown):
        done = record(
            options.address,
            options.output,
            seconds=options.seconds,
            rate_hz=options.rate,
            robot=options.robot or "",
            patience_s=options.patience,
            tell=lambda text: shown.line(text, timed=False),
        )
    data = done.to_data()
    lines = [f"{data['rows']} rows, {data['seconds']:.1f} s, {data['rate_hz'] or 0.0:.1f} Hz; {done.ended}"]
    lines += [
        f"gap at {gap.time_s:.2f} s: {gap.rows} rows, {gap.seconds:.2f} s"
        + (" (the connection dropped)" if gap.dropped else "")
        for gap in done.gaps
    ]
    early = done.ended != "complete" and not (done.ended == "interrupted" and options.seconds is None)
    good = done.examination.usable and not early
    return finish(options, data, [*lines, done.examination.summary()], [options.output], good=good)
