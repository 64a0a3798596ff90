"""`armid simulate ROBOT PLAN`: run an experiment on the virtual robot."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import arg
from armid.cli.display import display
from armid.cli.options import (
    ARM_CHOICE,
    SEED,
    command,
    finish,
    hashes,
    motion_from,
    output,
    robot_arguments,
    robot_from,
)
from armid.errors import ArmidError
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.excitation import Plan, Trajectory
    from armid.experiment.virtual import VirtualRobot
    from armid.logs import Log
    from armid.robot import Robot

DEFAULT_RATE_HZ = 150.0
SUFFIXES = (".parquet", ".csv", ".mcap")


@command(
    "simulate",
    "run a plan on the virtual robot and write the log",
    "Run a plan, a saved trajectory, or a point-to-point motion on the virtual robot (MuJoCo) and write what its "
    "sensors say.",
    *robot_arguments(),
    *ARM_CHOICE,
    arg("plan [PLAN]", "plan or trajectory file (JSON); or use --points"),
    output("log to write: .parquet, .csv or .mcap", "LOG"),
    arg("--points N", "point-to-point through N random postures instead", int),
    arg("--periods M", "periods to record", default=1),
    arg("--settle M", "periods before them", default=1),
    arg("--rate HZ", "sample rate (default: the plan's, or 150)", float),
    SEED,
    arg("--bandwidth HZ", "of the drive loops", default=8.0),
    arg("--noise NM...", "torque noise, one or one per joint, N m", float),
    arg("--perfect", "no noise, no rounding"),
    arg("--presliding", "friction that does not jump at reversals"),
    arg("--cold", "start with cold grease, which warms up"),
    arg("--delay S", "how late torque is reported", default=0.0),
    arg("--jitter S", "spread of the sampling instants", default=0.0),
    arg("--drop SHARE", "share of samples lost", default=0.0),
    arg("--current", "report motor current instead of torque"),
    arg("--payload P...", "on the flange: mass, centre (kg, m), or ten inertial parameters in the tool frame", float),
)
def simulate(options: argparse.Namespace) -> int:
    """Run the command."""
    robot = robot_from(options)
    if (options.plan is None) == (options.points is None):
        raise ArmidError("give either a PLAN file or --points N")
    if options.output and Path(options.output).suffix.lower() not in SUFFIXES:
        raise ArmidError(f"{options.output}: has no known ending; use one of: {', '.join(SUFFIXES)}")
    motion = None if options.plan is None else _motion(options.plan, robot)
    arm = _arm(robot, motion, options)
    log = _driven(arm, motion, options)
    files = [options.output] if options.output else []
    if options.output:
        from armid.logs import write_log

        write_log(log, Path(options.output))
    data = {
        "robot": log.info.robot,
        "rows": len(log),
        "rate_hz": log.info.rate_hz,
        "period_s": log.info.period_s,
        "seconds": log.duration,
        "effort": log.info.effort,
        "seed": options.seed,
        "faster_than_real_time": arm.speed_factor,
    }
    period = "" if log.info.period_s is None else f", period {log.info.period_s:g} s"
    text = (
        f"{log.info.robot}: {len(log)} samples at {log.info.rate_hz:g} Hz{period}; simulated {arm.speed_factor:.0f} "
        "times faster than real time"
    )
    advice = [] if files else ["nothing is kept: give -o LOG (.parquet, .csv or .mcap) to write the log"]
    return finish(options, data, [text, *advice], files)


def _driven(arm: VirtualRobot, motion: Plan | Trajectory | None, options: argparse.Namespace) -> Log:
    from armid.experiment.excite import excite, point_to_point

    with watch_progress(display(options)):
        if motion is None:
            log = point_to_point(arm, arm.robot, points=options.points, repetitions=options.periods, seed=options.seed)
        else:
            log = excite(arm, motion, periods=options.periods, settle=options.settle)
    history = {**log.info.history, "robot_file": arm.robot.source}
    if options.plan is not None:
        history["plan_sha256"] = hashes([options.plan])[options.plan]
    return log.with_channels({}, history=history)


def _arm(robot: Robot, motion: Plan | Trajectory | None, options: argparse.Namespace) -> VirtualRobot:
    from armid.excitation import Plan
    from armid.experiment.settings import DriveLoop, Presliding, Sensors, Thermal
    from armid.experiment.virtual import VirtualRobot

    sensors = Sensors.perfect() if options.perfect else Sensors()
    if options.noise is not None:
        noise = options.noise
        sensors = replace(sensors, torque_noise=noise[0] if len(noise) == 1 else tuple(noise))
    sensors = replace(sensors, effort_delay_s=options.delay, jitter_s=options.jitter, drop_probability=options.drop)
    planned = motion.rate_hz if isinstance(motion, Plan) else DEFAULT_RATE_HZ
    return VirtualRobot(
        robot,
        rate_hz=planned if options.rate is None else options.rate,
        seed=options.seed,
        payload=_payload(options.payload),
        effort="current" if options.current else "joint torque",
        loop=DriveLoop(bandwidth_hz=options.bandwidth),
        sensors=sensors,
        thermal=Thermal() if options.cold else None,
        presliding=Presliding() if options.presliding else None,
    )


def _motion(path: str, robot: Robot) -> Plan | Trajectory:
    """A plan for this robot, or a bare trajectory."""
    from armid.excitation import Plan

    motion = motion_from(path)
    if isinstance(motion, Plan) and motion.robot != robot.name:
        raise ArmidError(f"{path}: is a plan for {motion.robot!r}, not for {robot.name!r}; design one for this robot")
    return motion


def _payload(numbers: list[float] | None) -> Any:
    import numpy as np

    from armid.robot.inertia import from_com, impossibility

    if numbers is None:
        return None
    if len(numbers) in (4, 10):
        payload = from_com(numbers[0], numbers[1:], np.zeros((3, 3))) if len(numbers) == 4 else np.array(numbers)
        if reason := impossibility(payload):
            raise ArmidError(f"--payload: no body can have these parameters, since {reason}")
        return payload
    raise ArmidError(f"--payload has {len(numbers)} numbers; give 4 (kg, x y z in m) or ten inertial parameters")
