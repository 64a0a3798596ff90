"""armid friction: friction of each joint against its speed, and the law that fits."""

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
    posture_data,
    posture_words,
    table,
    virtual_arm,
)
from armid.errors import ArmidError
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.estimation.single_joint.friction_fit import FrictionFit, FrictionPoints
    from armid.experiment.friction_sweep import FrictionRun
    from armid.robot import Robot

_LAWS = ("auto", "double-exponential", "hyperbolic", "stribeck", "coulomb-viscous", "makkar")


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "friction",
        help="measure friction against speed and fit a law",
        description="Drive each joint at constant speeds where gravity does not act on it, or read such logs; "
        "fit a friction law to the means.",
    )
    add_options(command)
    command.add_argument("--law", default="auto", metavar="NAME", help=f"{', '.join(_LAWS)} (default: auto)")
    command.add_argument(
        "--grid", choices=("pa10", "powerball"), help="speeds of which paper (default: by the robot's friction law)"
    )
    command.add_argument(
        "--seconds", type=float, default=15.0, metavar="S", help="steady motion per speed and direction (default: 15)"
    )
    command.add_argument(
        "--warmup",
        "--warm-up",
        type=float,
        default=0.0,
        metavar="S",
        help="moderate motion before each joint (PA-10 paper: 60)",
    )
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    robot = robot_from(options)
    if options.law not in _LAWS:
        raise ArmidError(f"--law {options.law}: is not known; use one of: {', '.join(_LAWS)}")
    if not options.seconds > 0.0:
        raise ArmidError(f"--seconds {options.seconds:g}: must be positive")
    check_outputs(options)
    joints = joints_from(robot, options)
    found = _from_logs(robot, joints, options) if options.logs else _from_sweeps(robot, joints, options)
    fits = [(index, _fit(robot, index, points, options), sweep) for index, points, sweep in found]
    figure = None
    if options.pictures:
        from armid.estimation.single_joint.pictures import friction_figure

        figure = friction_figure([fit for _, fit, _ in fits], robot.name)
    total = sum(sweep.seconds for *_, sweep in fits if sweep is not None)
    result = {
        "seed": options.seed,
        "seconds_of_motion": total or None,
        "joints": [_as_data(index, fit, sweep) for index, fit, sweep in fits],
    }
    finish("friction", robot, options, result, _describe(robot, fits, total), figure)
    return 0


def _fit(robot: Robot, index: int, points: FrictionPoints, options: argparse.Namespace) -> FrictionFit:
    from armid.estimation.single_joint.friction_fit import fit_friction

    return fit_friction(points, options.law, prefer=robot.friction[index].law if robot.friction else "")


def _from_logs(
    robot: Robot, joints: list[int], options: argparse.Namespace
) -> list[tuple[int, FrictionPoints, FrictionRun | None]]:
    """Points of every joint asked for; without --joints, of those that the logs show."""
    from armid.estimation.single_joint.friction_points import friction_points
    from armid.logs import LogError

    logs = logs_from(options)
    found: list[tuple[int, FrictionPoints, FrictionRun | None]] = []
    problems = []
    for index in joints:
        try:
            found.append((index, friction_points(logs, robot, index + 1), None))
        except LogError as error:
            if options.joints or error.field:
                raise
            problems.append(error)
    if not found:
        raise problems[0]
    return found


def _from_sweeps(
    robot: Robot, joints: list[int], options: argparse.Namespace
) -> list[tuple[int, FrictionPoints, FrictionRun | None]]:
    from armid.estimation.single_joint.friction_points import friction_points
    from armid.experiment.friction_sweep import friction_sweep, pa10_speeds, powerball_speeds
    from armid.experiment.gravity_free import gravity_free

    robot = virtual_arm(robot, options).robot
    found: list[tuple[int, FrictionPoints, FrictionRun | None]] = []
    for k, index in enumerate(joints):
        law = robot.friction[index].law if robot.friction else ""
        slow = options.grid == "powerball" or (options.grid is None and law == "hyperbolic")
        fastest = float(robot.limits.velocity[index])
        speeds = powerball_speeds() if slow or fastest != fastest else pa10_speeds(fastest)
        mounted = robot.with_gravity(gravity_free(robot, index + 1).gravity)
        with watch_progress(display(options, f"{k + 1}/{len(joints)} ")):
            sweep = friction_sweep(
                virtual_arm(mounted, options),
                mounted,
                index + 1,
                speeds=speeds,
                seconds=options.seconds,
                warm_up_s=options.warmup,
            )
        found.append((index, friction_points(sweep.log, mounted, index + 1), _remembered(robot, sweep)))
    return found


def _remembered(robot: Robot, sweep: FrictionRun) -> FrictionRun:
    """The run with the mounting as seen from the robot's own, and without its log, which may be large."""
    from dataclasses import replace

    from armid.experiment.gravity_free import gravity_free

    return replace(sweep, posture=gravity_free(robot, sweep.joint + 1), log=sweep.log.rows(slice(0, 1)))


def _as_data(index: int, fit: FrictionFit, sweep: FrictionRun | None) -> dict[str, Any]:
    where = {} if sweep is None else {"posture": posture_data(sweep.posture), "seconds": sweep.seconds}
    return {"number": index + 1, **fit.to_data(), **where}


def _describe(robot: Robot, fits: list[tuple[int, FrictionFit, FrictionRun | None]], total: float) -> Iterable[str]:
    yield f"{robot.name}: friction on the joint side; intervals are 95 %"
    for index, fit, sweep in fits:
        how = "each direction on its own" if fit.per_direction else "both directions together"
        yield ""
        yield f"{numbered(robot, index)}: {fit.law}, {how}; residuals {(fit.chi2 / fit.dof) ** 0.5:.2f} times the noise"
        if sweep is not None:
            yield f"  {posture_words(sweep.posture)}"
        yield f"  points: {fit.points.method}"
        yield f"  why this law: {fit.reason}"
        for note in dict.fromkeys((*fit.points.notes, *fit.up.notes, *fit.down.notes)):
            yield f"  note: {note}"
        if index + 1 in {*(s.joint for s in robot.springs), *(c.joint for c in robot.counterbalances)}:
            yield "  note: a spring or counterbalance acts on this joint; its torque is in the points"
        if fit.points.offset:
            yield f"  offset {fit.points.offset:.3g} N m, taken out"
        yield from _coefficients(fit)
        yield from _samples(fit)
    if total:
        yield ""
        yield f"the experiment takes {total:.0f} s of motion ({total / 60:.0f} min)"


def _coefficients(fit: FrictionFit) -> list[str]:
    header = ("coefficient", "positive", "negative") if fit.per_direction else ("coefficient", "value")
    curves = (fit.up, fit.down) if fit.per_direction else (fit.up,)
    rows = []
    for name in fit.up.coefficients:
        cells = [plus_minus(curve.coefficients[name], 1.96 * curve.sigma[name]) for curve in curves]
        off = [curve.coefficients[name] == 0.0 for curve in curves]
        rows.append([name, *("switched off" if none else cell for none, cell in zip(off, cells, strict=True))])
    return table(header, rows)


def _samples(fit: FrictionFit) -> list[str]:
    """The curve at a few speeds, which say more than coefficients that trade with each other."""
    import numpy as np

    rows = []
    for sign in (1.0, -1.0) if fit.per_direction else (1.0,):
        v = fit.points.speed[np.sign(fit.points.speed) == sign]
        picks = v[np.argsort(np.abs(v))][[0, len(v) // 3, 2 * len(v) // 3, -1]]
        pairs = zip(picks, fit.curve(picks), 1.96 * fit.standard_error(picks), strict=True)
        rows += [(f"{speed:.4g}", plus_minus(float(torque), float(half))) for speed, torque, half in pairs]
    return table(("speed [rad/s]", "friction [N m]"), rows)
