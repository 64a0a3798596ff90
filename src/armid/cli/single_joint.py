"""What the commands warmup, friction and stiffness have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid._version import __version__
from armid.cli import options as options_module
from armid.cli.options import (
    JOINTS,
    add_json_option,
    add_log_options,
    add_robot_options,
    check_output,
    check_pictures,
    kept_options,
    print_json,
)
from armid.errors import ArmidError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from armid.experiment.gravity_free import Posture
    from armid.experiment.virtual import VirtualRobot
    from armid.robot import Robot

RATE_HZ = 400.0


def add_options(command: argparse.ArgumentParser) -> None:
    """ROBOT [LOG...] and the options of all three commands."""
    add_robot_options(command)
    add_log_options(command, needed=False)
    JOINTS.add_to(command)
    command.add_argument("--rate", type=float, default=RATE_HZ, metavar="HZ", help="of the virtual robot (400)")
    command.add_argument("--seed", type=int, default=0, help="of the virtual robot's noise (default: 0)")
    command.add_argument("-o", "--output", metavar="FILE", help="result to write (JSON)")
    command.add_argument("--pictures", metavar="DIR", help="draw the result into this folder")
    add_json_option(command)


def check_outputs(options: argparse.Namespace) -> None:
    """Find out before a long experiment whether its results can be written."""
    check_output(options.output, options.logs)
    check_pictures(options.pictures)


def joints_from(robot: Robot, options: argparse.Namespace) -> list[int]:
    """Indices of the joints asked for, from 0; all without --joints."""
    if not options.joints:
        return list(range(robot.n_joints))
    return sorted(set(options_module.joints_from(robot, options.joints)))


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


def posture_data(posture: Posture) -> dict[str, Any]:
    """Posture and mounting for JSON."""
    return {
        "position": posture.position.tolist(),
        "mounting": posture.mounting,
        "gravity": posture.gravity.tolist(),
        "gravity_torque": posture.torque if posture.torque == posture.torque else None,
        "reason": posture.reason,
    }


def finish(
    command: str,
    robot: Robot,
    options: argparse.Namespace,
    result: dict[str, Any],
    lines: Iterable[str],
    figure: Figure | None,
) -> None:
    """Write and print what was found."""
    import json

    from armid.files import write_text

    about = {"format": f"armid {command} 1", "armid": __version__, "robot": robot.name}
    data = {**about, "options": kept_options(options), **result}
    data["source"] = list(options.logs) or "virtual robot"
    files = []
    if options.output:
        write_text(Path(options.output), json.dumps(data, indent=1) + "\n")
        files.append(options.output)
    if figure is not None:
        from armid.theme import save

        files.append(str(save(figure, Path(options.pictures) / f"{robot.name}-{command}.png")))
    if options.json:
        print_json({**data, "files": files})
        return
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.writelines(f"wrote {file}\n" for file in files)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Right-aligned columns under their header."""
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]
    return [indent + "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in (header, *rows)]


def plus_minus(value: float, half: float) -> str:
    """A value with its interval, to the digits that the interval leaves."""
    import numpy as np

    if not np.isfinite(half):
        return f"{value:.4g} (not to be told)"
    digits = 2 if half <= 0.0 else min(8, max(0, 1 - int(np.floor(np.log10(half)))))
    return f"{value:.{digits}f} ± {half:.{digits}f}"
