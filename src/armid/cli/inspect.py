"""`armid inspect LOG...`: what is in a log, what is wrong with it, and what to do."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import arg
from armid.cli.options import LOGS, ROBOTS, command, finish
from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.signals.doctor import Examination


@command(
    "inspect",
    "look for faults in logs before they are used",
    "Look for faults in logs: timing, dead or noisy channels, units, swapped or reversed joints, delays. With a recipe "
    "all files are read as one log. Ends with 1 if a log should not be used as it is.",
    *LOGS,
    arg("--robot ROBOT", "library name or description: checks joints, limits and effort against it", values=ROBOTS),
)
def inspect(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.logs import read_log
    from armid.robot import load_robot
    from armid.signals.doctor import examine

    robot = load_robot(options.robot) if options.robot else None
    sources: list[Any] = [options.logs] if options.recipe else list(options.logs)
    reports = []
    for source in sources:
        log = read_log(source, options.recipe, effort=options.effort)
        if not len(log):
            raise ArmidError(f"{log.info.source or source}: is empty; there is nothing to inspect")
        reports.append(examine(log, robot))
    text = "\n".join(report.summary() for report in reports).removesuffix("\n")
    return finish(options, _as_data(reports), text, good=all(report.usable for report in reports))


def _as_data(reports: list[Examination]) -> dict[str, Any]:
    """One report as it is; several as a list, with all findings together, each with its source."""
    data = [report.as_data() for report in reports]
    if len(data) == 1:
        return data[0]
    findings = [{"source": report["source"], **finding} for report in data for finding in report["findings"]]
    return {"usable": all(report["usable"] for report in data), "findings": findings, "logs": data}
