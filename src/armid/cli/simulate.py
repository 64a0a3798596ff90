"""`armid simulate ROBOT PLAN`: run an experiment on the virtual robot."""

from __future__ import annotations

import argparse
import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.display import display
from armid.cli.log_options import check_output
from armid.cli.options import add_json_option, add_robot_options, print_json, robot_from
from armid.errors import ArmidError
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.excitation import Plan, Trajectory
    from armid.experiment.virtual import VirtualRobot
    from armid.logs import Log
    from armid.robot import Robot

DEFAULT_RATE_HZ = 150.0
SUFFIXES = (".parquet", ".csv", ".mcap")


def add_parser(commands: argparse._SubParsersAction[Any]) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "simulate",
        help="run a plan on the virtual robot and write the log",
        description="Run a plan, a saved trajectory, or a point-to-point motion on the virtual robot (MuJoCo) and "
        "write what its sensors say.",
    )
    add_robot_options(command)
    command.add_argument("plan", metavar="PLAN", nargs="?", help="plan or trajectory file (JSON); or use --points")
    command.add_argument("-o", "--output", metavar="LOG", help="log to write: .parquet, .csv or .mcap")
    command.add_argument("--points", type=int, metavar="N", help="point-to-point through N random postures instead")
    command.add_argument("--periods", type=int, default=1, metavar="M", help="periods to record (default: 1)")
    command.add_argument("--settle", type=int, default=1, metavar="M", help="periods before them (default: 1)")
    command.add_argument("--rate", type=float, metavar="HZ", help="sample rate (default: the plan's, or 150)")
    command.add_argument("--seed", type=int, default=0, help="of noise and random postures (default: 0)")
    command.add_argument("--bandwidth", type=float, default=8.0, metavar="HZ", help="of the drive loops (default: 8)")
    command.add_argument("--noise", type=float, nargs="+", metavar="NM", help="torque noise, one or one per joint, N m")
    command.add_argument("--perfect", action="store_true", help="no noise, no rounding")
    command.add_argument("--presliding", action="store_true", help="friction that does not jump at reversals")
    command.add_argument("--cold", action="store_true", help="start with cold grease, which warms up")
    command.add_argument("--delay", type=float, default=0.0, metavar="S", help="how late torque is reported")
    command.add_argument("--jitter", type=float, default=0.0, metavar="S", help="spread of the sampling instants")
    command.add_argument("--drop", type=float, default=0.0, metavar="SHARE", help="share of samples lost")
    command.add_argument("--current", action="store_true", help="report motor current instead of torque")
    command.add_argument(
        "--payload",
        type=float,
        nargs="+",
        metavar="P",
        help="at the flange: mass and centre (4 numbers: kg, m) or ten inertial parameters in the tool frame",
    )
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    robot = robot_from(options)
    if (options.plan is None) == (options.points is None):
        raise ArmidError("give either a PLAN file or --points N")
    if not 0.0 <= options.drop < 1.0:
        raise ArmidError(f"--drop {options.drop:g}: must be a share, at least 0 and below 1")
    check_output(options.output, [options.plan] if options.plan else [])
    if options.output and Path(options.output).suffix.lower() not in SUFFIXES:
        raise ArmidError(f"{options.output}: has no known ending; use one of: {', '.join(SUFFIXES)}")
    motion = None if options.plan is None else _motion(options.plan, robot)
    arm = _arm(robot, motion, options)
    log = _driven(arm, motion, options)
    if options.output:
        from armid.logs import write_log

        write_log(log, Path(options.output))
    _report(log, arm, options)
    return 0


def _driven(arm: VirtualRobot, motion: Plan | Trajectory | None, options: argparse.Namespace) -> Log:
    from armid.experiment.excite import excite, point_to_point

    with watch_progress(display(options)):
        if motion is None:
            log = point_to_point(arm, arm.robot, points=options.points, repetitions=options.periods, seed=options.seed)
        else:
            log = excite(arm, motion, periods=options.periods, settle=options.settle)
    history = {**log.info.history, "robot_file": arm.robot.source}
    if options.plan is not None:
        history["plan_sha256"] = hashlib.sha256(Path(options.plan).read_bytes()).hexdigest()
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
    """A plan, or a bare trajectory."""
    from armid.excitation import load_plan, load_trajectory
    from armid.files import read_text

    if '"armid trajectory' in read_text(Path(path))[:200]:
        return load_trajectory(path)
    plan = load_plan(path)
    if plan.robot != robot.name:
        raise ArmidError(f"{path}: is a plan for {plan.robot!r}, not for {robot.name!r}; design one for this robot")
    return plan


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


def _report(log: Log, arm: VirtualRobot, options: argparse.Namespace) -> None:
    data = {
        "robot": log.info.robot,
        "rows": len(log),
        "rate_hz": log.info.rate_hz,
        "period_s": log.info.period_s,
        "seconds": log.duration,
        "effort": log.info.effort,
        "seed": options.seed,
        "faster_than_real_time": arm.speed_factor,
        "files": [options.output] if options.output else [],
    }
    if options.json:
        print_json(data)
        return
    period = "" if log.info.period_s is None else f", period {log.info.period_s:g} s"
    sys.stdout.write(
        f"{log.info.robot}: {len(log)} samples at {log.info.rate_hz:g} Hz{period}; "
        f"simulated {arm.speed_factor:.0f} times faster than real time\n"
    )
    if options.output:
        sys.stdout.write(f"wrote {options.output}\n")
    else:
        sys.stdout.write("nothing is kept: give -o LOG (.parquet, .csv or .mcap) to write the log\n")
