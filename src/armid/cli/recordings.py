"""`armid simulate`, `record`, `recipe` and `inspect`: logs, how they are made, read and judged."""

from __future__ import annotations

import argparse
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import armid
from armid.cli.arguments import arg
from armid.cli.display import display
from armid.cli.options import (
    ARM_CHOICE,
    GRAVITY,
    LOGS,
    ROBOTS,
    SEED,
    arm_choice,
    command,
    finish,
    hashes,
    motion_from,
    output,
    robot_arguments,
    robot_from,
    written,
)
from armid.errors import ArmidError
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.signals.doctor import Examination

DEFAULT_RATE_HZ = 150.0


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
    arg("--periods M", "periods to record", default=1, most=10_000),
    arg("--settle M", "periods before them", default=1, most=10_000),
    arg("--rate HZ", "sample rate (default: the plan's, or 150)", float),
    SEED,
    arg("--bandwidth HZ", "of the drive loops", default=8.0),
    arg("--noise NM...", "torque noise, one or one per joint, N m", float),
    arg("--perfect", "no noise, no rounding"),
    arg("--presliding", "friction that does not jump at reversals"),
    arg("--elastic HZ", "gears that give way: the lowest resonance of a joint", float),
    arg("--cold", "start with cold grease, which warms up"),
    arg("--delay S", "how late torque is reported", default=0.0),
    arg("--jitter S", "spread of the sampling instants", default=0.0),
    arg("--drop SHARE", "share of samples lost", default=0.0),
    arg("--current", "report motor current instead of torque"),
    arg("--payload P...", "on the flange: mass, centre (kg, m), or ten inertial parameters in the tool frame", float),
)
def simulate(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.logs.files import check_target

    robot = robot_from(options)
    if (options.plan is None) == (options.points is None):
        raise ArmidError("give either a PLAN file or --points N")
    if options.output:
        check_target(options.output)
    motion = None if options.plan is None else _motion(options.plan, robot)
    arm = _arm(robot, motion, options)
    log = _driven(arm, motion, options)
    files = written((options.output, lambda path: armid.write_log(log, Path(path))))
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
    own = None if robot.virtual is None else robot.virtual.payload
    if options.payload is not None and own is not None and own[0] > 0.0:
        text += f"; --payload is carried instead of the description's own payload of {own[0]:.3g} kg"
    advice = [] if files else ["nothing is kept: give -o LOG (.parquet, .csv or .mcap) to write the log"]
    return finish(options, data, [text, *advice], files)


def _driven(
    arm: armid.VirtualRobot, motion: armid.Plan | armid.Trajectory | None, options: argparse.Namespace
) -> armid.Log:
    with watch_progress(display(options)):
        if motion is None:
            more = {"repetitions": options.periods, "seed": options.seed}
            log = armid.point_to_point(arm, arm.robot, points=options.points, **more)
        else:
            log = armid.excite(arm, motion, periods=options.periods, settle=options.settle)
    history = {**log.info.history, "robot_file": arm.robot.source}
    if options.plan is not None:
        history["plan_sha256"] = hashes([options.plan])[options.plan]
    return log.with_channels({}, history=history)


def _arm(
    robot: armid.Robot, motion: armid.Plan | armid.Trajectory | None, options: argparse.Namespace
) -> armid.VirtualRobot:
    sensors = armid.Sensors.perfect() if options.perfect else armid.Sensors()
    if options.noise is not None:
        noise = options.noise
        sensors = replace(sensors, torque_noise=noise[0] if len(noise) == 1 else tuple(noise))
    sensors = replace(sensors, effort_delay_s=options.delay, jitter_s=options.jitter, drop_probability=options.drop)
    planned = motion.rate_hz if isinstance(motion, armid.Plan) else DEFAULT_RATE_HZ
    return armid.VirtualRobot(
        robot,
        rate_hz=planned if options.rate is None else options.rate,
        seed=options.seed,
        payload=_payload(options.payload),
        effort="current" if options.current else "joint torque",
        loop=armid.DriveLoop(bandwidth_hz=options.bandwidth),
        sensors=sensors,
        thermal=armid.Thermal() if options.cold else None,
        presliding=armid.Presliding() if options.presliding else None,
        elasticity=None if options.elastic is None else armid.Elasticity(options.elastic),
    )


def _motion(path: str, robot: armid.Robot) -> armid.Plan | armid.Trajectory:
    """A plan for this robot, or a bare trajectory."""
    motion = motion_from(path)
    if isinstance(motion, armid.Plan) and motion.robot != robot.name:
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


@command(
    "record",
    "record a log from a UR controller, live",
    "Record joint positions, velocities, currents, temperatures and targets from a UR controller, every row it sends. "
    "While it goes on, the log doctor looks at rate, gaps and saturation. A dropped connection is made again; Ctrl-C "
    "ends the recording, and what has come is kept. Exit code 1 if it ended before its time or should not be used.",
    arg("address ADDRESS", "ur://HOST or ur://HOST:PORT"),
    output("log to write: .parquet, .csv or .mcap"),
    arg("--seconds S", "how long (default: until Ctrl-C)", float, least=0.1),
    arg("--rate HZ", "rows per second (default: 500, or 125 of older controllers)", float),
    arg("--robot NAME", "name of the robot, for the log"),
    arg("--patience S", "how long to try to connect again", default=10.0),
    arg("--force", "overwrite an existing log"),
)
def record(options: argparse.Namespace) -> int:
    """Run the command."""
    if not options.output:
        raise ArmidError("name the log to write with -o, such as -o log.parquet")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a polite end keeps the rows as well
    with display(options, stay=False) as shown, watch_progress(shown):
        done = armid.record(
            options.address,
            options.output,
            seconds=options.seconds,
            rate_hz=options.rate,
            robot=options.robot or "",
            patience_s=options.patience,
            force=options.force,
            tell=lambda text: shown.line(text, timed=False),
        )
    data = done.to_data()
    lines = [f"{data['rows']} rows, {data['seconds']:.1f} s, {data['rate_hz'] or 0.0:.1f} Hz; {done.ended}"]
    lines += [
        f"gap at {gap.time_s:.2f} s: {gap.rows} rows, {gap.seconds:.2f} s"
        + (" (the connection dropped)" if gap.dropped else "")
        for gap in done.gaps
    ]
    early = done.ended != "complete" and not (done.ended == "interrupted" and options.seconds is None)
    good = done.examination.usable and not early
    return finish(options, data, [*lines, done.examination.summary()], [options.output], good=good)


@command(
    "recipe",
    "write a recipe for a table: what its columns mean",
    "Guess which columns are time, position, velocity and effort, and their units, from names and physics. Each guess "
    "stands with its evidence; what is not determined is left as a line marked OPEN. Ends with 1 where lines are open.",
    arg("logs LOG...", "text tables or Parquet files of another program, all with the same columns"),
    arg("--robot ROBOT", "library name or description of the arm", required=True, values=ROBOTS),
    GRAVITY,
    *ARM_CHOICE,
    output("recipe to write (YAML)", "RECIPE"),
)
def recipe(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.files import write_text
    from armid.logs.guess import guess_recipe

    robot = armid.load_robot(options.robot, gravity=options.gravity, **arm_choice(options))
    found = guess_recipe(options.logs, robot)
    files = written((options.output, lambda path: write_text(path, found.text())))
    rows = [vars(guess) for guess in found.guesses]
    data = {"source": found.source, "guesses": rows, "open": [guess.entry for guess in found.open]}
    return finish(options, data, found.text(), files, good=not found.open)


@command(
    "inspect",
    "look for faults in logs before they are used",
    "Look for faults in logs: timing, dead or noisy channels, units, swapped or reversed joints, delays. With a recipe "
    "all files are read as one log. Ends with 1 if a log should not be used as it is.",
    *LOGS,
    arg("--robot ROBOT", "library name or description: checks joints, limits and effort against it", values=ROBOTS),
    GRAVITY,
    *ARM_CHOICE,
)
def inspect(options: argparse.Namespace) -> int:
    """Run the command."""
    robot = None
    if options.robot:
        robot = armid.load_robot(options.robot, gravity=options.gravity, **arm_choice(options))
    elif options.gravity:
        raise ArmidError("--gravity says how a robot is mounted; give that with --robot")
    reports: list[tuple[Examination, dict[str, Any]]] = []
    sources: list[Any] = [options.logs] if options.recipe else list(options.logs)
    for source in sources:
        log = armid.read_log(source, options.recipe, effort=options.effort)
        if not len(log):
            raise ArmidError(f"{log.info.source or source}: is empty; there is nothing to inspect")
        reports.append((armid.examine(log, robot), _use(log, robot)))
    text = "\n".join(report.summary() + _in_words(use) for report, use in reports).removesuffix("\n")
    return finish(options, _as_data(reports), text, good=all(report.usable for report, _ in reports))


def _use(log: armid.Log, robot: armid.Robot | None) -> dict[str, Any]:
    """What `armid identify` makes of a log: how many rows of each joint, by which steps and why."""
    from armid.signals.doctor.robot import check_torque

    try:
        data = armid.process(log, robot=robot)
        check_torque(data, robot)
    except ArmidError as error:
        return {"refused": str(error)}
    used = [len(data)] * len(data.joints) if data.use is None else data.use.sum(axis=0).tolist()
    rows = dict(zip(data.joints, used, strict=True))
    return {"rows": rows, "pipeline": list(data.pipeline), "notes": [str(said) for said in data.notes]}


def _in_words(use: dict[str, Any]) -> str:
    if "refused" in use:
        return f"\nidentify will refuse it: {use['refused']}\n"
    rows = ", ".join(f"{name} {count}" for name, count in use["rows"].items())
    lines = ["\nidentify will do this (a delay of the torque is estimated):", *use["notes"], f"Rows used: {rows}."]
    return "\n  ".join(lines) + "\n"


def _as_data(reports: list[tuple[Examination, dict[str, Any]]]) -> dict[str, Any]:
    """One report as it is; several as a list, with all findings together, each with its source."""
    data = [{**report.as_data(), "identify": use} for report, use in reports]
    if len(data) == 1:
        return data[0]
    findings = [{"source": report["source"], **finding} for report in data for finding in report["findings"]]
    return {"usable": all(report["usable"] for report in data), "findings": findings, "logs": data}
