"""`armid track FIT PATH`: follow a tool path with PID, feed-forward and computed torque, and compare."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from armid.cli.arguments import arg
from armid.cli.display import display
from armid.cli.options import FIT, PICTURES, ROBOTS, SEED, command, finish, hashes, kept_options, output, positive
from armid.errors import ArmidError, UnknownNameError
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.control import TrackingComparison
    from armid.estimation import Fit
    from armid.robot import Robot

CONTROLLERS = ("pid", "feedforward", "computed-torque", "nominal")


@command(
    "track",
    "follow a tool path with PID, feed-forward and computed torque",
    "Drive the virtual robot along a tool path in torque mode, once with each controller at the same bandwidth. "
    "Controllers use the fit; the virtual robot has friction, losses and noise of its own.",
    FIT,
    arg("path PATH", "pa10-figure, or a CSV of tool poses: time,x,y,z,qw,qx,qy,qz", values="pa10-figure"),
    arg("--robot ROBOT", "description of the arm to drive (default: the fit's own)", values=ROBOTS),
    arg("--controller NAME...", "{values} (default: all there can be)", values="armid.cli.track:CONTROLLERS"),
    arg("--bandwidth HZ...", "one, or one per joint (default: graded by friction)", float),
    arg("--cycle S", "of the controllers", default=0.0025),
    arg("--laps N", "of a closed path", default=1),
    SEED,
    output("result to write (JSON)"),
    PICTURES,
    epilog="controllers: pid; feedforward (PID and the fit's torque for the path); computed-torque (inverse dynamics "
    "of the fit, PA-10 (21)); nominal (the same with URDF or published inertias, without friction)",
)
def track(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit

    names = _names(options.controller)
    positive("--cycle", options.cycle)
    fit = load_fit(options.fit)
    comparison = _compare(fit, _arm_of(fit, options), names, options)
    files = _write(comparison, options)
    data = comparison.to_data()
    data["runs"] = [{key: value for key, value in run.items() if key != "series"} for run in data["runs"]]
    good = all(run.completed for run in comparison.runs if "nominal" not in run.title)
    return finish(options, data, comparison.summary(), files, good=good)


def _names(given: list[str] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(dict.fromkeys(name.strip() for text in given for name in text.split(",") if name.strip()))
    for name in names:
        if name not in CONTROLLERS:
            raise UnknownNameError("--controller", name, CONTROLLERS)
    if not names:
        raise ArmidError(f"--controller {' '.join(given)!r}: names none; choose of {', '.join(CONTROLLERS)}")
    return names


def _arm_of(fit: Fit, options: argparse.Namespace) -> Robot:
    """Description of the arm to drive, with the mounting of the fit."""
    from armid.robot import load_robot

    try:
        robot = load_robot(options.robot or fit.robot.source)
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


def _compare(fit: Fit, robot: Robot, names: tuple[str, ...] | None, options: argparse.Namespace) -> TrackingComparison:
    from armid.control.track import compare_controllers

    with watch_progress(display(options)):
        return compare_controllers(
            fit,
            robot,
            options.path,
            controllers=names,
            bandwidth_hz=options.bandwidth,
            cycle_s=options.cycle,
            laps=options.laps,
            seed=options.seed,
            options={**kept_options(options), "files_sha256": hashes([options.fit, options.path])},
        )


def _write(comparison: TrackingComparison, options: argparse.Namespace) -> list[str]:
    files = []
    if options.output:
        comparison.save(options.output)
        files.append(options.output)
    done = [run for run in comparison.runs if run.completed]
    if options.pictures and done:
        from armid import theme
        from armid.control.tracking import error_figure, path_figure, torque_figure
        from armid.escaping import file_name

        best = min(done, key=lambda run: run.mean_tool_error)
        drawn = {
            "path": path_figure(comparison),
            "errors": error_figure(comparison),
            "torques": torque_figure(next((run for run in done if run.controller == "computed-torque"), best)),
        }
        for name, figure in drawn.items():
            file = Path(options.pictures) / f"{file_name(comparison.robot)}-tracking-{name}.png"
            theme.save(figure, file)
            files.append(str(file))
    return files
