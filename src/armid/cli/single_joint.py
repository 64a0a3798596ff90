"""`armid warmup ROBOT [LOG...]`, and what it has in common with friction and load-friction."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import armid
from armid.cli import options as shared
from armid.cli.arguments import Argument, arg
from armid.cli.display import display
from armid.cli.options import (
    JOINTS,
    LOGS_OR_VIRTUAL,
    PICTURES,
    SEED,
    command,
    kept_options,
    logs_from,
    output,
    picture,
    robot_arguments,
    robot_from,
    written,
)
from armid.errors import ArmidError
from armid.progress import watch_progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from armid.estimation.single_joint.warmup import WarmUpFit
    from armid.experiment.gravity_free import Posture
    from armid.experiment.warm_up import WarmUpRun

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


def joints_from(robot: armid.Robot, options: argparse.Namespace) -> list[int]:
    """Indices of the joints asked for, from 0; all without --joints."""
    return sorted(set(shared.joints_from(robot, options.joints))) if options.joints else list(range(robot.n_joints))


def from_logs(
    joints: Sequence[int], options: argparse.Namespace, look: Callable[[list[armid.Log], int], Found]
) -> list[tuple[int, Found]]:
    """What `look` finds in the logs for every joint asked for; without --joints, for those that the logs show."""
    from armid.estimation.single_joint.curves import FitError

    logs = logs_from(options)
    found, problems = [], []
    for index in joints:
        try:
            found.append((index, look(logs, index)))
        except (armid.LogError, FitError) as error:
            if options.joints or getattr(error, "field", ""):
                raise
            problems.append(error)
    if not found:
        raise problems[0]
    return found


def virtual_arm(robot: armid.Robot, options: argparse.Namespace, **settings: Any) -> armid.VirtualRobot:
    """The arm to experiment on where no log is given."""
    if robot.virtual is None and robot.nominal_inertia is None:
        raise ArmidError(
            f"{robot.source}: has no virtual arm to experiment on; give a LOG, or describe one under virtual:"
        )
    return armid.VirtualRobot(robot, rate_hz=options.rate, seed=options.seed, **settings)


def numbered(robot: armid.Robot, index: int) -> str:
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
    robot: armid.Robot,
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

    form = f"armid {command} 1"
    data = {"robot": robot.name, "options": kept_options(options), "seed": options.seed, **result}
    data["source"] = list(options.logs) or "virtual robot"
    drawn = picture(options, f"{file_name(robot.name)}-{command}.png", figure)
    files = written((options.output, lambda path: write_result(path, form, data)), drawn)
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


@command(
    "warmup",
    "move until friction changes no more; fit how it falls",
    "Move joints harmonically until the mean torque per cycle changes no more, on the virtual robot with cold grease, "
    "or read such logs; fit an exponential.",
    *ARGUMENTS,
    arg("--cycle S", "length of a cycle (default: 10, or found in LOG)", float, least=0.1, most=3600.0),
    arg("--threshold X", "change to come that ends it", default=0.01),
    arg("--longest S", "give up after", default=3600.0, least=1.0, most=1e5),
)
def warmup(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.single_joint.pictures import warmup_figure
    from armid.estimation.single_joint.warmup import fit_warmups

    robot = robot_from(options)
    joints = joints_from(robot, options)
    run = None if options.logs else _experiment(robot, joints, options)
    logs = logs_from(options) if run is None else [run.log]
    fits = fit_warmups(logs, robot, joints, options.cycle, every=bool(options.joints))
    result: dict[str, Any] = {
        "joints": [{"number": index + 1, **fit.to_data()} for index, fit in fits.items()],
        "warm": None if run is None else run.warm,
        "left": None if run is None or not run.left.max() < 1e9 else float(run.left.max()),
        "seconds_of_motion": sum(log.duration for log in logs),
    }
    lines, good = _describe(robot, fits, run), run is None or run.warm
    return finish(
        "warmup", robot, options, result, lines, lambda: warmup_figure([*fits.values()], robot.name), good=good
    )


def _experiment(robot: armid.Robot, joints: list[int], options: argparse.Namespace) -> WarmUpRun:
    from armid.experiment.warm_up import warm_up

    arm = virtual_arm(robot, options, thermal=armid.Thermal())
    with watch_progress(display(options, most=True)):
        return warm_up(
            arm,
            arm.robot,
            [index + 1 for index in joints],
            cycle_s=options.cycle or 10.0,
            threshold=options.threshold,
            longest_s=options.longest,
        )


def _describe(robot: armid.Robot, fits: dict[int, WarmUpFit], run: WarmUpRun | None) -> Iterable[str]:
    if run is not None:
        state, most = "warm" if run.warm else "NOT warm yet", float(run.left.max())
        left = f"{100 * most:.2g} % to come" if most < 1e9 else "too few cycles to say what is to come"
        yield f"{robot.name}: {state} after {run.log.duration:.0f} s, {len(run.time)} cycles; {left}"
    else:
        yield f"{robot.name}: how the mean torque per cycle falls"
    yield "mean |torque| per cycle = a + b exp(-t / T); intervals are 95 %"
    rows = []
    for index, fit in fits.items():
        sigma, c = fit.fit.sigma, fit.fit.coefficients
        drop = plus_minus(100 * fit.drop, 196 * fit.drop_sigma) if fit.significant else "no change"
        constant = plus_minus(c["T"], 1.96 * sigma["T"]) if fit.significant else "-"
        rows.append([numbered(robot, index), drop, constant, plus_minus(c["a"], 1.96 * sigma["a"]), f"{len(fit.time)}"])
    yield from table(("", "drop [%]", "T [s]", "warm torque [N m]", "cycles"), rows, indent="")
