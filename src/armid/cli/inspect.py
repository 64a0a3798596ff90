"""`armid inspect LOG...`: what is in a log, what is wrong with it, and what to do."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import arg
from armid.cli.options import ARM_CHOICE, LOGS, ROBOTS, arm_choice, command, finish
from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.logs import Log
    from armid.robot import Robot
    from armid.signals.doctor import Examination


@command(
    "inspect",
    "look for faults in logs before they are used",
    "Look for faults in logs: timing, dead or noisy channels, units, swapped or reversed joints, delays. With a recipe "
    "all files are read as one log. Ends with 1 if a log should not be used as it is.",
    *LOGS,
    arg("--robot ROBOT", "library name or description: checks joints, limits and effort against it", values=ROBOTS),
    *ARM_CHOICE,
)
def inspect(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.logs import read_log
    from armid.robot import load_robot
    from armid.signals.doctor import examine

    robot = load_robot(options.robot, **arm_choice(options)) if options.robot else None
    reports: list[tuple[Examination, dict[str, Any]]] = []
    sources: list[Any] = [options.logs] if options.recipe else list(options.logs)
    for source in sources:
        log = read_log(source, options.recipe, effort=options.effort)
        if not len(log):
            raise ArmidError(f"{log.info.source or source}: is empty; there is nothing to inspect")
        reports.append((examine(log, robot), _use(log, robot)))
    text = "\n".join(report.summary() + _in_words(use) for report, use in reports).removesuffix("\n")
    return finish(options, _as_data(reports), text, good=all(report.usable for report, _ in reports))


def _use(log: Log, robot: Robot | None) -> dict[str, Any]:
    """What `armid identify` makes of a log: how many rows of each joint, by which steps and why."""
    from armid.signals import process

    try:
        data = process(log, robot=robot)
    except ArmidError as error:
        return {"refused": str(error)}
    used = [len(data)] * len(data.joints) if data.use is None else data.use.sum(axis=0).tolist()
    rows = dict(zip(data.joints, used, strict=True))
    return {"rows": rows, "pipeline": list(data.pipeline), "notes": [str(said) for said in data.notes]}


def _in_words(use: dict[str, Any]) -> str:
    if "refused" in use:
        return f"\nidentify will refuse it: {use['refused']}\n"
    rows = ", ".join(f"{name} {count}" for name, count in use["rows"].items())
    lines = ["\nidentify will do this (a delay of the torque is estimated):", *use["notes"], f"Rows used: {rows}."]
    return "\n  ".join(lines) + "\n"


def _as_data(reports: list[tuple[Examination, dict[str, Any]]]) -> dict[str, Any]:
    """One report as it is; several as a list, with all findings together, each with its source."""
    data = [{**report.as_data(), "identify": use} for report, use in reports]
    if len(data) == 1:
        return data[0]
    findings = [{"source": report["source"], **finding} for report in data for finding in report["findings"]]
    return {"usable": all(report["usable"] for report in data), "findings": findings, "logs": data}
