"""`armid load-friction ROBOT [LOG...]`: torque lost in proportion to the load (PA-10 (19), there called stiffness)."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import arg
from armid.cli.display import display
from armid.cli.options import command, positive, robot_from
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
    from armid.estimation.single_joint.friction_fit import FrictionFit
    from armid.estimation.single_joint.load_friction import LoadFrictionFit
    from armid.experiment.friction_runs import FrictionRun
    from armid.logs import Log
    from armid.robot import Robot

Row = tuple[int, "LoadFrictionFit | None", "FrictionRun | None", str]


@command(
    "load-friction",
    "measure the torque lost in proportion to the load",
    "Drive each joint at constant speed while gravity loads it, or read such logs; what is left of the torque without "
    "friction and gravity is fitted by a line over the load.",
    *ARGUMENTS,
    arg("--friction FILE", "result of `armid friction -o FILE` for the same arm"),
    arg("--speed V", "rad/s (default: a fifth of the joint's largest)", float),
    arg("--seconds S", "steady motion in each direction", default=60.0),
    old="stiffness",
)
def load_friction(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.single_joint.friction_fit import FrictionFit
    from armid.estimation.single_joint.pictures import load_friction_figure
    from armid.torque.known import friction_file

    robot = robot_from(options)
    positive("--seconds", options.seconds)
    joints = joints_from(robot, options)
    curves = {} if options.friction is None else friction_file(options.friction, robot, FrictionFit)
    rows: list[Row]
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
    result = {"seconds_of_motion": total or None, "joints": [_as_data(*row) for row in rows]}
    lines = _describe(robot, rows, total)
    return finish("load-friction", robot, options, result, lines, lambda: load_friction_figure(fits, robot.name))


def _fit(robot: Robot, index: int, logs: list[Log], curves: Mapping[str, FrictionFit]) -> LoadFrictionFit:
    from armid.dynamics import Model
    from armid.estimation.single_joint.load_friction import fit_load_friction
    from armid.experiment.gravity_free import foreseen_values

    payload = next((log.info.payload for log in logs if log.info.payload is not None), None)
    curve = curves.get(robot.joint_names[index])
    return fit_load_friction(
        logs,
        robot,
        index + 1,
        values=foreseen_values(Model(robot), payload),
        friction=None if curve is None else curve.curve,
        friction_error=None if curve is None else curve.standard_error,
    )


def _measured(
    robot: Robot, joints: list[int], curves: Mapping[str, FrictionFit], options: argparse.Namespace
) -> list[Row]:
    """Run the experiments on the virtual robot; friction near the speed comes first where none is given."""
    from armid.estimation.single_joint.curves import FitError
    from armid.experiment.friction_runs import load_friction_run, moderate_speed

    robot = virtual_arm(robot, options).robot
    rows: list[Row] = []
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


def _near_friction(robot: Robot, index: int, speed: float, options: argparse.Namespace) -> FrictionFit:
    """Friction about one speed, without load: a line per direction through three speeds."""
    from armid.estimation.single_joint.friction_fit import fit_friction
    from armid.estimation.single_joint.friction_points import friction_points
    from armid.experiment.friction_runs import friction_sweep
    from armid.experiment.gravity_free import gravity_free

    mounted = robot.with_gravity(gravity_free(robot, index + 1).gravity)
    speeds, seconds = [0.9 * speed, speed, 1.1 * speed], min(20.0, options.seconds)
    sweep = friction_sweep(virtual_arm(mounted, options), mounted, index + 1, speeds=speeds, seconds=seconds)
    return fit_friction(friction_points(sweep.log, mounted, index + 1), "coulomb-viscous", per_direction=True)


def _as_data(index: int, fit: LoadFrictionFit | None, run: FrictionRun | None, problem: str) -> dict[str, Any]:
    where = {} if run is None else {"posture": run.posture.to_data(), "seconds": run.seconds}
    return {"number": index + 1, **({"slope": None, "note": problem} if fit is None else fit.to_data()), **where}


def _describe(robot: Robot, rows: list[Row], total: float) -> Iterable[str]:
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
