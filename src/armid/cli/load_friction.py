"""armid load-friction: torque lost in proportion to the load (PA-10 (19))."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from armid.cli.display import display
from armid.cli.given import check_friction, friction_entries
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
    from armid.estimation.single_joint.friction_fit import FrictionFit
    from armid.estimation.single_joint.load_friction import LoadFrictionFit
    from armid.experiment.load_friction import LoadFrictionRun
    from armid.robot import Robot


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "load-friction",
        aliases=["stiffness"],
        help="measure the torque lost in proportion to the load",
        description="Drive each joint at constant speed while gravity loads it, or read such logs; what is left of the "
        "torque without friction and gravity is fitted by a line over the load.",
    )
    add_options(command)
    command.add_argument("--friction", metavar="FILE", help="result of `armid friction -o FILE` for the same arm")
    command.add_argument("--speed", type=float, metavar="V", help="rad/s (default: a fifth of the joint's largest)")
    command.add_argument(
        "--seconds", type=float, default=60.0, metavar="S", help="steady motion in each direction (default: 60)"
    )
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    robot = robot_from(options)
    check_outputs(options)
    joints = joints_from(robot, options)
    curves = {} if options.friction is None else _curves(options.friction, robot)
    results = _from_logs(robot, joints, curves, options) if options.logs else _measured(robot, joints, curves, options)
    fits = [fit for _, fit, _, _ in results if fit is not None]
    figure = None
    if options.pictures and fits:
        from armid.estimation.single_joint.pictures import load_friction_figure

        figure = load_friction_figure(fits, robot.name)
    total = sum(experiment.seconds for *_, experiment, _ in results if experiment is not None)
    data = {
        "seed": options.seed,
        "seconds_of_motion": total or None,
        "joints": [_as_data(*row) for row in results],
    }
    finish("load-friction", robot, options, data, _describe(robot, results, total), figure)
    return 0


Row = tuple[int, "LoadFrictionFit | None", "LoadFrictionRun | None", str]


def _curves(path: str, robot: Robot) -> dict[str, FrictionFit]:
    """Friction curves by joint, from a result of `armid friction`."""
    from armid.estimation.single_joint.friction_fit import friction_from_data

    return {joint: friction_from_data(entry, path) for joint, entry in friction_entries(path, robot).items()}


def _from_logs(
    robot: Robot, joints: list[int], curves: dict[str, FrictionFit], options: argparse.Namespace
) -> list[Row]:
    from armid.estimation.single_joint.curves import FitError
    from armid.logs import LogError

    logs = logs_from(options)
    rows: list[Row] = []
    problems: list[ArmidError] = []
    for index in joints:
        try:
            rows.append((index, _fit(robot, index, logs, curves), None, ""))
        except (LogError, FitError) as error:
            if options.joints or (isinstance(error, LogError) and error.field):
                raise
            problems.append(error)
    if not rows:
        raise problems[0]
    if options.friction:
        check_friction(options.friction, curves, [robot.joint_names[index] for index, *_ in rows])
    return rows


def _fit(robot: Robot, index: int, logs: Any, curves: dict[str, FrictionFit]) -> LoadFrictionFit:
    from armid.dynamics import Model
    from armid.estimation.single_joint.load_friction import fit_load_friction
    from armid.experiment.gravity_free import foreseen_values

    logs = logs if isinstance(logs, list) else [logs]
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
    robot: Robot, joints: list[int], curves: dict[str, FrictionFit], options: argparse.Namespace
) -> list[Row]:
    """Run the experiments on the virtual robot; friction near the speed comes first where none is given."""
    from armid.estimation.single_joint.curves import FitError
    from armid.experiment.load_friction import load_friction_run, moderate_speed

    robot = virtual_arm(robot, options).robot
    if options.friction:
        check_friction(options.friction, curves, [robot.joint_names[index] for index in joints])
    rows: list[Row] = []
    for k, index in enumerate(joints):
        speed = moderate_speed(robot, index) if options.speed is None else options.speed
        curve = curves.get(robot.joint_names[index]) or _near_friction(robot, index, speed, options)
        with watch_progress(display(options, f"{k + 1}/{len(joints)} ")):
            experiment = load_friction_run(
                virtual_arm(robot, options), robot, index + 1, speed=speed, seconds=options.seconds
            )
        try:
            fit = _fit(robot, index, experiment.log, {robot.joint_names[index]: curve})
            rows.append((index, fit, experiment, ""))
        except FitError as error:
            rows.append((index, None, experiment, str(error)))
    return rows


def _near_friction(robot: Robot, index: int, speed: float, options: argparse.Namespace) -> FrictionFit:
    """Friction about one speed, without load: a line per direction through three speeds."""
    from armid.estimation.single_joint.friction_fit import fit_friction
    from armid.estimation.single_joint.friction_points import friction_points
    from armid.experiment.friction_sweep import friction_sweep
    from armid.experiment.gravity_free import gravity_free

    mounted = robot.with_gravity(gravity_free(robot, index + 1).gravity)
    speeds = [0.9 * speed, speed, 1.1 * speed]
    sweep = friction_sweep(
        virtual_arm(mounted, options), mounted, index + 1, speeds=speeds, seconds=min(20.0, options.seconds)
    )
    return fit_friction(friction_points(sweep.log, mounted, index + 1), "coulomb-viscous", per_direction=True)


def _as_data(
    index: int, fit: LoadFrictionFit | None, experiment: LoadFrictionRun | None, problem: str
) -> dict[str, Any]:
    where = {}
    if experiment is not None:
        where = {"posture": posture_data(experiment.posture), "seconds": experiment.seconds}
    return {"number": index + 1, **({"slope": None, "note": problem} if fit is None else fit.to_data()), **where}


def _describe(robot: Robot, results: list[Row], total: float) -> Iterable[str]:
    yield f"{robot.name}: loss S = a × load + b at the motor's axis (PA-10 (19)); intervals are 95 %"
    cells = []
    for index, fit, _, _ in results:
        if fit is None:
            cells.append([numbered(robot, index), "no load", "-", "-", "-"])
            continue
        low, high = fit.slope_interval
        offset = plus_minus(fit.offset, 1.96 * fit.offset_sigma) if fit.friction_known else "needs --friction"
        verdict = "present" if fit.present else "none seen"
        load = f"{fit.load.min():.3g} … {fit.load.max():.3g}"
        cells.append([numbered(robot, index), plus_minus(fit.slope, 0.5 * (high - low)), offset, load, verdict])
    yield from table(("", "slope a", "offset b [N m]", "load [N m]", "loss"), cells, indent="")
    for index, _, experiment, problem in results:
        if experiment is not None:
            words = posture_words(experiment.posture)
            yield f"{numbered(robot, index)}: {words}; {experiment.speed:.3g} rad/s"
        if problem:
            yield problem
    if total:
        yield f"the loaded runs take {total:.0f} s of motion"
