"""armid inspect: what is in a log, what is wrong with it, and what to do."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from armid.cli.options import add_json_option, print_json
from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.signals.doctor import Examination


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "inspect",
        help="look for faults in logs before they are used",
        description="Look for faults in logs: timing, dead or noisy channels, units, swapped or reversed joints, "
        "delays. Ends with 1 if a log should not be used as it is.",
    )
    command.add_argument("logs", metavar="LOG", nargs="+", help="log file, or a recipe (.yaml) that names files")
    command.add_argument(
        "--robot", metavar="ROBOT", help="library name or description: checks joints, limits and effort against it"
    )
    command.add_argument(
        "--recipe", metavar="FILE", help="what the files hold: all of them are read as one log with it"
    )
    command.add_argument("--effort", metavar="KIND", help="what was measured, for a file that does not say it")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.logs.read import read_log
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
    if options.json:
        print_json(_as_data(reports))
    else:
        sys.stdout.write("\n".join(report.summary() for report in reports))
    return 0 if all(report.usable for report in reports) else 1


def _as_data(reports: list[Examination]) -> dict[str, Any]:
    """One report as it is; several as a list, with all findings together, each with its source."""
    data = [report.as_data() for report in reports]
    if len(data) == 1:
        return data[0]
    findings = [{"source": report["source"], **finding} for report in data for finding in report["findings"]]
    return {"usable": all(report["usable"] for report in data), "findings": findings, "logs": data}
