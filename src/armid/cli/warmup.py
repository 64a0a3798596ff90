"""`armid warmup ROBOT [LOG...]`: move until friction changes no more, and how it falls on the way."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import arg
from armid.cli.display import display
from armid.cli.options import command, logs_from, robot_from
from armid.cli.single_joint import ARGUMENTS, finish, joints_from, numbered, plus_minus, table, virtual_arm
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.estimation.single_joint.warmup import WarmUpFit
    from armid.experiment.warm_up import WarmUpRun
    from armid.robot import Robot


@command(
    "warmup",
    "move until friction changes no more; fit how it falls",
    "Move joints harmonically until the mean torque per cycle changes no more, on the virtual robot with cold grease, "
    "or read such logs; fit an exponential.",
    *ARGUMENTS,
    arg("--cycle S", "length of a cycle (default: 10, or found in LOG)", float),
    arg("--threshold X", "change to come that ends it", default=0.01),
    arg("--longest S", "give up after", default=3600.0),
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


def _experiment(robot: Robot, joints: list[int], options: argparse.Namespace) -> WarmUpRun:
    from armid.experiment.settings import Thermal
    from armid.experiment.warm_up import warm_up

    arm = virtual_arm(robot, options, thermal=Thermal())
    with watch_progress(display(options, most=True)):
        return warm_up(
            arm,
            arm.robot,
            [index + 1 for index in joints],
            cycle_s=options.cycle or 10.0,
            threshold=options.threshold,
            longest_s=options.longest,
        )


def _describe(robot: Robot, fits: dict[int, WarmUpFit], run: WarmUpRun | None) -> Iterable[str]:
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
