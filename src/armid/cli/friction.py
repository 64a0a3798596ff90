"""`armid friction` and `armid load-friction`: torque lost by speed, and in proportion to the load (PA-10 (19))."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import armid
from armid.cli.arguments import arg
from armid.cli.display import display
from armid.cli.options import command, robot_from
from armid.cli.single_joint import (
    ARGUMENTS,
    finish,
    from_logs,
    joints_from,
    numbered,
    plus_minus,
    posture_words,
    table,
    virtual_arm,
)
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.estimation.single_joint.friction_fit import FrictionFit, FrictionPoints
    from armid.estimation.single_joint.load_friction import LoadFrictionFit
    from armid.experiment.friction_runs import FrictionRun

Row = tuple[int, "FrictionFit", "FrictionRun | None"]


@command(
    "friction",
    "measure friction against speed and fit a law",
    "Drive each joint at constant speeds where gravity does not act on it, or read such logs; fit a friction law to "
    "the means.",
    *ARGUMENTS,
    arg("--law NAME", "{values}", default="auto", values="auto armid.registry:friction_laws"),
    arg("--grid PAPER", "speeds of which paper (default: by the robot's friction law)", choices=("pa10", "powerball")),
    arg("--seconds S", "steady motion per speed and direction", default=15.0, least=0.1, most=3600.0),
    arg("--warmup S", "moderate motion before each joint (PA-10 paper: 60)", default=0.0, most=1e5, old="--warm-up"),
)
def friction(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.single_joint.friction_fit import fit_friction
    from armid.estimation.single_joint.friction_points import friction_points
    from armid.estimation.single_joint.pictures import friction_figure
    from armid.torque.friction.law import friction_law

    robot = robot_from(options)
    if options.law != "auto":
        friction_law(options.law)
    joints = joints_from(robot, options)
    found: list[tuple[int, FrictionPoints, FrictionRun | None]]
    if options.logs:
        look = from_logs(joints, options, lambda logs, index: friction_points(logs, robot, index + 1))
        found = [(index, points, None) for index, points in look]
    else:
        found = _sweeps(robot, joints, options)
    described = [one.law for one in robot.friction] or [""] * robot.n_joints
    fits: list[Row] = [(i, fit_friction(p, options.law, prefer=described[i]), run) for i, p, run in found]
    total = sum(sweep.seconds for *_, sweep in fits if sweep is not None)
    result = {"seconds_of_motion": total or None, "joints": [_as_data(*row) for row in fits]}
    lines = _describe(robot, fits, total)
    return finish(
        "friction", robot, options, result, lines, lambda: friction_figure([f for _, f, _ in fits], robot.name)
    )


def _sweeps(
    robot: armid.Robot, joints: list[int], options: argparse.Namespace
) -> list[tuple[int, FrictionPoints, FrictionRun | None]]:
    """Drive the virtual robot; a run keeps the mounting as seen from the robot's own, and not its log."""
    from armid.estimation.single_joint.friction_points import friction_points
    from armid.experiment.friction_runs import default_speeds, friction_sweep, powerball_speeds
    from armid.experiment.gravity_free import gravity_free

    robot = virtual_arm(robot, options).robot
    found: list[tuple[int, FrictionPoints, FrictionRun | None]] = []
    for k, index in enumerate(joints):
        law = robot.friction[index].law if robot.friction else ""
        slow = options.grid == "powerball" or (options.grid is None and law == "hyperbolic")
        speeds = powerball_speeds() if slow else default_speeds(robot, index)
        posture = gravity_free(robot, index + 1)
        mounted = robot.with_gravity(posture.gravity)
        with watch_progress(display(options, f"{k + 1}/{len(joints)} ")):
            arm, more = virtual_arm(mounted, options), {"seconds": options.seconds, "warm_up_s": options.warmup}
            sweep = friction_sweep(arm, mounted, index + 1, speeds=speeds, **more)
        points = friction_points(sweep.log, mounted, index + 1)
        found.append((index, points, replace(sweep, posture=posture, log=sweep.log.rows(slice(0, 1)))))
    return found


def _as_data(index: int, fit: FrictionFit, sweep: FrictionRun | None) -> dict[str, Any]:
    where = {} if sweep is None else {"posture": sweep.posture.to_data(), "seconds": sweep.seconds}
    return {"number": index + 1, **fit.to_data(), **where}


def _describe(robot: armid.Robot, fits: list[Row], total: float) -> Iterable[str]:
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
        acting = {*(s.joint for s in robot.springs), *(c.joint for c in robot.counterbalances)}
        if index + 1 in acting or any(spring.ratios[index] for spring in robot.linear_springs):
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


LossRow = tuple[int, "LoadFrictionFit | None", "FrictionRun | None", str]


@command(
    "load-friction",
    "measure the torque lost in proportion to the load",
    "Drive each joint at constant speed while gravity loads it, or read such logs; what is left of the torque without "
    "friction and gravity is fitted by a line over the load.",
    *ARGUMENTS,
    arg("--friction FILE", "result of `armid friction -o FILE` for the same arm"),
    arg("--speed V", "rad/s (default: a fifth of the joint's largest)", float),
    arg("--seconds S", "steady motion in each direction", default=60.0, least=0.1, most=3600.0),
    old="stiffness",
)
def load_friction(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.single_joint.friction_fit import FrictionFit
    from armid.estimation.single_joint.pictures import load_friction_figure
    from armid.torque.known import friction_file

    robot = robot_from(options)
    joints = joints_from(robot, options)
    curves = {} if options.friction is None else friction_file(options.friction, robot, FrictionFit)
    rows: list[LossRow]
    if options.logs:
        found = from_logs(joints, options, lambda logs, index: _fit(robot, index, logs, curves))
        rows = [(index, fit, None, "") for index, fit in found]
    else:
        rows = _measured(robot, joints, curves, options)
    if options.friction:
        friction_file(options.friction, robot, FrictionFit, [robot.joint_names[index] for index, *_ in rows])
    fits = [fit for _, fit, _, _ in rows if fit is not None]
    options.pictures = options.pictures if fits else None
    total = sum(run.seconds for *_, run, _ in rows if run is not None)
    result = {"seconds_of_motion": total or None, "joints": [_loss_data(*row) for row in rows]}
    lines = _describe_losses(robot, rows, total)
    return finish("load-friction", robot, options, result, lines, lambda: load_friction_figure(fits, robot.name))


def _fit(robot: armid.Robot, index: int, logs: list[armid.Log], curves: Mapping[str, FrictionFit]) -> LoadFrictionFit:
    from armid.estimation.single_joint.load_friction import fit_load_friction
    from armid.experiment.gravity_free import foreseen_values

    payload = next((log.info.payload for log in logs if log.info.payload is not None), None)
    curve = curves.get(robot.joint_names[index])
    return fit_load_friction(
        logs,
        robot,
        index + 1,
        values=foreseen_values(armid.Model(robot), payload),
        friction=None if curve is None else curve.curve,
        friction_error=None if curve is None else curve.standard_error,
    )


def _measured(
    robot: armid.Robot, joints: list[int], curves: Mapping[str, FrictionFit], options: argparse.Namespace
) -> list[LossRow]:
    """Run the experiments on the virtual robot; friction near the speed comes first where none is given."""
    from armid.estimation.single_joint.curves import FitError
    from armid.experiment.friction_runs import load_friction_run, moderate_speed

    robot = virtual_arm(robot, options).robot
    rows: list[LossRow] = []
    for k, index in enumerate(joints):
        name = robot.joint_names[index]
        speed = moderate_speed(robot, index) if options.speed is None else options.speed
        mine = curves if options.friction else {name: _near_friction(robot, index, speed, options)}
        with watch_progress(display(options, f"{k + 1}/{len(joints)} ")):
            arm = virtual_arm(robot, options)
            run = load_friction_run(arm, robot, index + 1, speed=speed, seconds=options.seconds)
        try:
            rows.append((index, _fit(robot, index, [run.log], mine), run, ""))
        except FitError as error:
            rows.append((index, None, run, str(error)))
    return rows


def _near_friction(robot: armid.Robot, index: int, speed: float, options: argparse.Namespace) -> FrictionFit:
    """Friction about one speed, without load: a line per direction through three speeds."""
    from armid.estimation.single_joint.friction_fit import fit_friction
    from armid.estimation.single_joint.friction_points import friction_points
    from armid.experiment.friction_runs import friction_sweep
    from armid.experiment.gravity_free import gravity_free

    mounted = robot.with_gravity(gravity_free(robot, index + 1).gravity)
    speeds, seconds = [0.9 * speed, speed, 1.1 * speed], min(20.0, options.seconds)
    sweep = friction_sweep(virtual_arm(mounted, options), mounted, index + 1, speeds=speeds, seconds=seconds)
    return fit_friction(friction_points(sweep.log, mounted, index + 1), "coulomb-viscous", per_direction=True)


def _loss_data(index: int, fit: LoadFrictionFit | None, run: FrictionRun | None, problem: str) -> dict[str, Any]:
    where = {} if run is None else {"posture": run.posture.to_data(), "seconds": run.seconds}
    return {"number": index + 1, **({"slope": None, "note": problem} if fit is None else fit.to_data()), **where}


def _describe_losses(robot: armid.Robot, rows: list[LossRow], total: float) -> Iterable[str]:
    yield f"{robot.name}: loss S = a × load + b at the motor's axis (PA-10 (19)); intervals are 95 %"
    cells = []
    for index, fit, _, _ in rows:
        if fit is None:
            cells.append([numbered(robot, index), "no load", "-", "-", "-"])
            continue
        low, high = fit.slope_interval
        offset = plus_minus(fit.offset, 1.96 * fit.offset_sigma) if fit.friction_known else "needs --friction"
        verdict = "present" if fit.present else "not significant"
        load = f"{fit.load.min():.3g} … {fit.load.max():.3g}"
        cells.append([numbered(robot, index), plus_minus(fit.slope, 0.5 * (high - low)), offset, load, verdict])
    yield from table(("", "slope a", "offset b [N m]", "load [N m]", "loss"), cells, indent="")
    for index, _, run, problem in rows:
        if run is not None:
            yield f"{numbered(robot, index)}: {posture_words(run.posture)}; {run.speeds[0]:.3g} rad/s"
        if problem:
            yield problem
    if total:
        yield f"the loaded runs take {total:.0f} s of motion"
