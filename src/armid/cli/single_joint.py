"""What the commands warmup, friction and load-friction have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from armid.cli import options as shared
from armid.cli.arguments import Argument, arg
from armid.cli.options import JOINTS, LOGS_OR_VIRTUAL, PICTURES, SEED, kept_options, logs_from, output, robot_arguments
from armid.errors import ArmidError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from armid.experiment.gravity_free import Posture
    from armid.experiment.virtual import VirtualRobot
    from armid.logs import Log
    from armid.robot import Robot

Found = TypeVar("Found")

#: ROBOT [LOG...] and the options of all three commands.
ARGUMENTS: tuple[Argument, ...] = (
    *robot_arguments(),
    *LOGS_OR_VIRTUAL,
    JOINTS,
    arg("--rate HZ", "of the virtual robot", default=400.0),
    SEED,
    output("result to write (JSON)"),
    PICTURES,
)


def joints_from(robot: Robot, options: argparse.Namespace) -> list[int]:
    """Indices of the joints asked for, from 0; all without --joints."""
    return sorted(set(shared.joints_from(robot, options.joints))) if options.joints else list(range(robot.n_joints))


def from_logs(
    joints: Sequence[int], options: argparse.Namespace, look: Callable[[list[Log], int], Found]
) -> list[tuple[int, Found]]:
    """What `look` finds in the logs for every joint asked for; without --joints, for those that the logs show."""
    from armid.estimation.single_joint.curves import FitError
    from armid.logs import LogError

    logs = logs_from(options)
    found, problems = [], []
    for index in joints:
        try:
            found.append((index, look(logs, index)))
        except (LogError, FitError) as error:
            if options.joints or getattr(error, "field", ""):
                raise
            problems.append(error)
    if not found:
        raise problems[0]
    return found


def virtual_arm(robot: Robot, options: argparse.Namespace, **settings: Any) -> VirtualRobot:
    """The arm to experiment on where no log is given."""
    from armid.experiment.virtual import VirtualRobot

    if robot.virtual is None and robot.nominal_inertia is None:
        raise ArmidError(
            f"{robot.source}: has no virtual arm to experiment on; give a LOG, or describe one under virtual:"
        )
    return VirtualRobot(robot, rate_hz=options.rate, seed=options.seed, **settings)


def numbered(robot: Robot, index: int) -> str:
    """A joint's number, and its name where it has one of its own: joint 2 (elbow)."""
    name = robot.joint_names[index]
    return f"joint {index + 1}" if name in (f"joint{index + 1}", str(index + 1)) else f"joint {index + 1} ({name})"


def posture_words(posture: Posture) -> str:
    """Posture and mounting in one line."""
    import numpy as np

    angles = " ".join(f"{angle:.0f}" for angle in np.degrees(posture.position))
    gravity = " ".join(f"{value:.3g}" for value in posture.gravity)
    return f"posture {angles}°, {posture.mounting} (gravity {gravity} m/s²): {posture.reason}"


def finish(
    command: str,
    robot: Robot,
    options: argparse.Namespace,
    result: dict[str, Any],
    lines: Iterable[str],
    figure: Callable[[], Figure],
    *,
    good: bool = True,
) -> int:
    """Write and print what was found; returns the exit code."""
    from armid._version import __version__
    from armid.escaping import file_name
    from armid.files import write_result
    from armid.theme import save

    form = f"armid {command} 1"
    data = {"robot": robot.name, "options": kept_options(options), "seed": options.seed, **result}
    data["source"] = list(options.logs) or "virtual robot"
    files = []
    if options.output:
        write_result(options.output, form, data)
        files.append(options.output)
    if options.pictures:
        files.append(str(save(figure(), Path(options.pictures) / f"{file_name(robot.name)}-{command}.png")))
    return shared.finish(options, {"format": form, "armid": __version__, **data}, lines, files, good=good)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Right-aligned columns under their header."""
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]
    return [indent + "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in (header, *rows)]


def plus_minus(value: float, half: float) -> str:
    """A value with its interval, to the digits that the interval leaves."""
    import numpy as np

    if not np.isfinite(half):
        return f"{value:.4g} (not determined)"
    digits = 2 if half <= 0.0 else min(8, max(0, 1 - int(np.floor(np.log10(half)))))
    return f"{value:.{digits}f} ± {half:.{digits}f}"
