"""armid warmup: move until friction changes no more, and how it falls on the way."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from armid.cli.display import display
from armid.cli.options import logs_from, robot_from
from armid.cli.single_joint import (
    add_options,
    check_outputs,
    finish,
    joints_from,
    numbered,
    plus_minus,
    table,
    virtual_arm,
)
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.estimation.single_joint.warmup import WarmUpFit
    from armid.experiment.warm_up import WarmUpRun
    from armid.logs import Log
    from armid.robot import Robot


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "warmup",
        help="move until friction changes no more; fit how it falls",
        description="Move joints harmonically until the mean torque per cycle changes no more, on the virtual robot "
        "with cold grease, or read such logs; fit an exponential.",
    )
    add_options(command)
    command.add_argument("--cycle", type=float, metavar="S", help="length of a cycle (default: 10, or found in LOG)")
    command.add_argument(
        "--threshold",
        type=float,
        default=0.01,
        metavar="X",
        help="change to come that ends it (default: 0.01)",
    )
    command.add_argument("--longest", type=float, default=3600.0, metavar="S", help="give up after (default: 3600)")
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    robot = robot_from(options)
    check_outputs(options)
    joints = joints_from(robot, options)
    experiment = None if options.logs else _experiment(robot, joints, options)
    logs = logs_from(options) if experiment is None else [experiment.log]
    fits = _fits(robot, joints, logs, options)
    figure = None
    if options.pictures:
        from armid.estimation.single_joint.pictures import warmup_figure

        figure = warmup_figure([fit for _, fit in fits], robot.name)
    result: dict[str, Any] = {
        "seed": options.seed,
        "joints": [{"number": index + 1, **fit.to_data()} for index, fit in fits],
        "warm": None if experiment is None else experiment.warm,
        "left": None if experiment is None or not experiment.left.max() < 1e9 else float(experiment.left.max()),
        "seconds_of_motion": sum(log.duration for log in logs),
    }
    finish("warmup", robot, options, result, _describe(robot, fits, experiment, options), figure)
    return 0 if experiment is None or experiment.warm else 1


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


def _fits(robot: Robot, joints: list[int], logs: list[Log], options: argparse.Namespace) -> list[tuple[int, WarmUpFit]]:
    """One fit per joint and log that moves it; the log that moves a joint most counts."""
    from armid.estimation.single_joint.friction_points import moving_joints
    from armid.estimation.single_joint.warmup import cycle_means, fit_warmup
    from armid.logs import LogError

    fits = []
    for index in joints:
        mine = [log for log in logs if options.joints or index in moving_joints(log, robot)]
        if mine:
            log = mine[0]
            period = options.cycle or log.info.period_s or _period(log)
            fits.append((index, fit_warmup(robot.joint_names[index], *cycle_means(log, robot, index + 1, period))))
    if not fits:
        raise LogError(logs[0].info.source, "", "no joint moves; a log of many equal cycles of motion is needed")
    return fits


def _period(log: Log) -> float | None:
    from armid.signals.period import find_period

    found = find_period(log).period
    return None if found is None else found.seconds


def _describe(
    robot: Robot, fits: list[tuple[int, WarmUpFit]], experiment: WarmUpRun | None, options: argparse.Namespace
) -> Iterable[str]:
    if experiment is not None:
        state = "warm" if experiment.warm else "NOT warm yet"
        seconds, most = experiment.log.duration, float(experiment.left.max())
        left = f"{100 * most:.2g} % to come" if most < 1e9 else "too few cycles to say what is to come"
        yield f"{robot.name}: {state} after {seconds:.0f} s, {len(experiment.time)} cycles; {left}"
    else:
        yield f"{robot.name}: how the mean torque per cycle falls"
    yield "mean |torque| per cycle = a + b exp(-t / T); intervals are 95 %"
    rows = []
    for index, fit in fits:
        sigma, c = fit.fit.sigma, fit.fit.coefficients
        seen = fit.seen
        rows.append(
            [
                numbered(robot, index),
                plus_minus(100 * fit.drop, 196 * fit.drop_sigma) if seen else "no change seen",
                plus_minus(c["T"], 1.96 * sigma["T"]) if seen else "-",
                plus_minus(c["a"], 1.96 * sigma["a"]),
                f"{len(fit.time)}",
            ]
        )
    yield from table(("", "drop [%]", "T [s]", "warm torque [N m]", "cycles"), rows, indent="")
