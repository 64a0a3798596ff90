"""`armid payload`, `gains`, `observe`, `track` and `export`: what a fit is good for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import armid
from armid.cli.arguments import arg
from armid.cli.display import display
from armid.cli.options import (
    FIT,
    LOGS,
    PICTURES,
    ROBOTS,
    SEED,
    command,
    finish,
    fit_from,
    hashes,
    kept_options,
    logs_from,
    output,
    output_folder,
    picture,
    robot_arguments,
    robot_from,
    words,
    written,
)
from armid.errors import ArmidError
from armid.progress import watch_progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@command(
    "payload",
    "mass, centre of mass and inertia of what the arm carries",
    "Estimate a payload with intervals from logs with it, given a fit of the arm without it. Friction is estimated "
    "again, joints at rest take no part. Exit code 1 where it is not known well enough, or contradicts the reference.",
    FIT,
    *LOGS,
    output("payload to write (JSON)"),
    arg("--reference FILE", "known payload to compare with: mass, com, inertia (YAML or JSON)"),
    arg("--empty LOG", "the same motion without payload; may be repeated", default=[], action="append"),
    arg("--loaded FIT", "fit of the arm with the payload attached to write (JSON)", file="written"),
    PICTURES,
    arg("--mass-within SHARE", "how well the mass must be known (0.05)", float),
    arg("--com-within M", "and the centre of mass [m] (0.01)", float),
    arg("--gain SHARE", "how well drive gains are known (default: what the logs state)", float),
    epilog="A plan for it, moving few joints in a small space: armid design ROBOT --parameters payload --joints "
    "3,4,5,6 --harmonics 1,20 --period 30 --box x y z x y z -o plan.json",
)
def payload(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.payload import load_reference
    from armid.payload.estimate import payload_figure

    inputs = [options.fit, *options.logs, *options.empty, *([options.reference] if options.reference else [])]
    fit = fit_from(options)
    reference = load_reference(options.reference) if options.reference else None
    asked = {"mass": options.mass_within, "com_m": options.com_within}
    found = armid.identify_payload(
        fit,
        logs_from(options),
        empty=logs_from(options, options.empty),
        reference=reference,
        requirement=armid.Requirement(**{name: value for name, value in asked.items() if value is not None}),
        gain=options.gain,
    )
    found = replace(found, options=kept_options(options), history={**found.history, "files_sha256": hashes(inputs)})
    files = written(
        (options.output, found.save),
        (options.loaded, lambda path: found.apply(fit).save(path)),
        picture(options, "payload-torque.png", lambda: payload_figure(found)),
    )
    heavy = ("loaded_values", "loaded_covariance")
    data = {key: value for key, value in found.to_data().items() if key not in heavy}
    return finish(options, data, found.summary(), files, good=found.good)


@command(
    "gains",
    "drive gains of all joints from logs with and without a known load",
    "Estimate by what each joint's torque has to be multiplied, with intervals, from logs without load and, after "
    "--load, a file that describes the load and logs with it. Without --load, ratios of gains between joints, where "
    "the motion tells them. Ends with 1 where a joint's gain is not determined.",
    *robot_arguments(),
    *LOGS,
    arg("--load FILE...", "the load (mass, com, inertia in the tool frame; YAML or JSON), then logs with it"),
    arg("--load-within SHARE", "how well the load's mass is known", default=0.01),
    arg("--corrected RECIPE", "recipe to write: that of --recipe with the gains found (YAML)", file="written"),
    output("result to write (JSON)"),
)
def gains(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.files import parse_yaml, read_text, write_result, write_text
    from armid.payload.body import known_body
    from armid.payload.gains import corrected_recipe

    robot = robot_from(options)
    load, *names = options.load or [None]
    if options.corrected and not options.recipe:
        raise ArmidError("--corrected writes the recipe of --recipe with other gains; give --recipe")
    empty = armid.process_logs(logs_from(options), None, robot)
    loaded = armid.process_logs(logs_from(options, names), list(empty[0].pipeline), robot) if names else []
    body = None if load is None else known_body(load)
    found = armid.identify_gains(robot, empty, loaded, body, load_within=options.load_within)

    def correct(path: str) -> None:
        entries = corrected_recipe(parse_yaml(read_text(options.recipe), options.recipe), found)
        text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in entries.items())
        write_text(path, "# gains by armid gains\n" + text)

    data = found.to_data()
    files = written(
        (options.output, lambda path: write_result(path, "armid gains 1", data)), (options.corrected, correct)
    )
    return finish(options, data, found.summary(), files, good=all(found.told))


@command(
    "observe",
    "external torque and contacts, without a force sensor",
    "Find contacts in logs by a momentum observer, with limits calibrated on contact-free logs for a stated rate of "
    "false alarms. It is no safety function.",
    FIT,
    *LOGS,
    arg("--calibrate QUIET...", "contact-free logs; a LOG among them is left out for itself", required=True),
    arg("--false-alarms RATE", "of the whole arm, per hour: 10/h", default="10/h"),
    arg("--gain HZ", "of the observer, 1/s: its time constant is the inverse", default=25.0),
    output("limits to write (JSON), for `armid.Detector`"),
    arg("--torque FILE", "external torque, its standard deviation and limit to write (.csv)", file="written"),
    PICTURES,
)
def observe(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.files import write_csv

    found = armid.observe(
        fit_from(options),
        logs_from(options),
        quiet=logs_from(options, options.calibrate),
        false_alarms=_rate(options.false_alarms),
        gain=options.gain,
    )
    files = written(
        (options.output, found.limits.save),
        (options.torque, lambda path: write_csv(path, found.columns())),
        picture(options, "external-torque.png", found.plot),
    )
    return finish(options, found.to_data(), found.summary(), files)


def _rate(text: str) -> float:
    """Per hour, from ``10/h`` or ``10``."""
    try:
        rate = float(text.removesuffix("/h"))
    except ValueError:
        rate = 0.0
    if not 0.0 < rate < float("inf"):
        raise ArmidError(f"--false-alarms {text}: is no rate; write it as 10/h")
    return rate


@command(
    "track",
    "follow a tool path with PID, feed-forward and computed torque",
    "Drive the virtual robot along a tool path in torque mode, once with each controller at the same bandwidth. "
    "Controllers use the fit; the virtual robot has friction, losses and noise of its own.",
    FIT,
    arg("path PATH", "pa10-figure, or a CSV of tool poses: time,x,y,z,qw,qx,qy,qz", values="pa10-figure"),
    arg("--robot ROBOT", "description of the arm to drive (default: the fit's own)", values=ROBOTS),
    arg("--controller NAME...", "{values} (default: all there can be)", values="armid.control.track:CONTROLLERS"),
    arg("--bandwidth HZ...", "one, or one per joint (default: graded by friction)", float),
    arg("--cycle S", "of the controllers", default=0.0025, least=1e-5, most=1.0),
    arg("--laps N", "of a closed path", default=1, least=1, most=1000),
    SEED,
    output("result to write (JSON)"),
    PICTURES,
    epilog="controllers: pid; feedforward (PID and the fit's torque for the path); computed-torque (inverse dynamics "
    "of the fit, PA-10 (21)); nominal (the same with URDF or published inertias, without friction)",
)
def track(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.control.tracking import error_figure, path_figure, torque_figure
    from armid.escaping import file_name

    fit = fit_from(options)
    comparison = _compare(fit, _arm_of(fit, options), options)
    done = sorted((run for run in comparison.runs if run.completed), key=lambda run: run.mean_tool_error)
    drawn: dict[str, Callable[[], Figure]] = {
        "path": lambda: path_figure(comparison),
        "errors": lambda: error_figure(comparison),
        "torques": lambda: torque_figure(next((run for run in done if run.controller == "computed-torque"), done[0])),
    }
    stem = f"{file_name(comparison.robot)}-tracking"
    pictures = [picture(options, f"{stem}-{name}.png", draw) for name, draw in drawn.items()] if done else []
    files = written((options.output, comparison.save), *pictures)
    data = comparison.to_data()
    data["runs"] = [{key: value for key, value in run.items() if key != "series"} for run in data["runs"]]
    good = all(run.completed for run in comparison.runs if "nominal" not in run.title)
    return finish(options, data, comparison.summary(), files, good=good)


def _arm_of(fit: armid.Fit, options: argparse.Namespace) -> armid.Robot:
    """Description of the arm to drive, with the mounting of the fit."""
    try:
        robot = armid.load_robot(options.robot or fit.robot.source)
    except ArmidError as error:
        if options.robot:
            raise
        raise ArmidError(f"{options.fit}: the fit's robot cannot be read again ({error}); give --robot") from None
    if not options.robot and robot.n_joints > fit.robot.n_joints:
        robot = robot.first_links(fit.robot.n_joints)
    if robot.joint_names != fit.robot.joint_names:
        there, wanted = ", ".join(robot.joint_names), ", ".join(fit.robot.joint_names)
        raise ArmidError(f"{robot.name} has the joints {there}, the fit is of {wanted}; give the arm it is of")
    return robot.with_gravity(fit.robot.gravity)


def _compare(fit: armid.Fit, robot: armid.Robot, options: argparse.Namespace) -> armid.TrackingComparison:
    with watch_progress(display(options)):
        return armid.compare_controllers(
            fit,
            robot,
            options.path,
            controllers=list(dict.fromkeys(words(options.controller))),
            bandwidth_hz=options.bandwidth,
            cycle_s=options.cycle,
            laps=options.laps,
            seed=options.seed,
            options={**kept_options(options), "files_sha256": hashes([options.fit, options.path])},
        )


@command(
    "export",
    "write a fit as URDF, SDF, MJCF, C, Python or a robot file",
    "Write the identified arm for other programs. Every file is read back by another program and compared with the fit "
    "before it is kept; EXPORT.json and EXPORT.md say how well it agrees and what the format cannot hold. Exit code 1 "
    "where a file was not kept.",
    FIT,
    arg("--to FORMAT...", "{values}; with commas or blanks", required=True, values="armid.exporting:exporters"),
    output_folder("folder to write to", required=True),
    arg("--urdf FILE", "the robot's own URDF to complete (default: where the fit read it)"),
    arg("--mjcf FILE", "the robot's own MJCF to complete (default: where the fit read it)"),
    arg("--limits FILE", "limits of contacts (armid observe -o), for a detector in c and python"),
    SEED,
)
def export(options: argparse.Namespace) -> int:
    """Run the command."""
    folder, given = Path(options.output), {"urdf": options.urdf, "mjcf": options.mjcf, "seed": options.seed}
    given["limits"] = armid.load_limits(options.limits) if options.limits else None
    history = {"files_sha256": hashes([options.fit, *([options.limits] if options.limits else [])])}
    done = armid.export(fit_from(options), words(options.to), folder, **given, history=history)
    data = done.to_data()
    shown = {
        "robot": done.robot,
        "proofs": [file.proof for file in done.files],
        "refused": data["refused"],
        "cannot_hold": [{"file": file["file"], **row} for file in data["files"] for row in file["cannot_hold"]],
        "notes": data["notes"],
        "history": data["history"],
    }
    files = [folder / name for name in (*done.names, "EXPORT.json", "EXPORT.md")]
    return finish(options, shown, [done.summary(), ""], files, good=not done.refused)
