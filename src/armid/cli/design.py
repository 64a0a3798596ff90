"""`armid design ROBOT`: an exciting trajectory, certified."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import armid
from armid.cli.arguments import arg
from armid.cli.display import Display, display
from armid.cli.options import (
    JOINTS,
    SEED,
    check_pictures,
    command,
    finish,
    joints_from,
    output,
    robot_arguments,
    robot_from,
    words,
)
from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.arrays import Array
    from armid.excitation.search import Standing

_PLAN_KEYS = ("robot", "criterion", "value", "parameters", "certified", "margins", "unchecked", "notes", "binding")


@command(
    "design",
    "design an exciting trajectory inside all limits that are known",
    "Design a periodic trajectory that makes the parameters visible, inside every limit that is known: of joints, "
    "torque, self-collision, floor and tool speed. What cannot be checked is listed.",
    *robot_arguments(),
    output("plan file to write (JSON)", "PLAN"),
    arg("--to KIND...", "also write, beside -o: {values}", values="armid.excitation.export_plan:KINDS"),
    arg("--pictures [DIR]", "draw the plan into this folder (default: beside -o)", const=""),
    arg("--criterion NAME", "{values}", default="d-optimal", values="armid.excitation.criteria:CRITERIA"),
    arg("--parameters WHICH", "{values}, or names with commas", default="all", values="all inertial payload"),
    arg("--harmonics N", "how many, or a list such as 1,20", default="5"),
    arg("--period S", "seconds", default=10.0),
    arg("--rate HZ", "rate of the experiment", default=150.0),
    JOINTS,
    arg("--posture Q...", "position of joints that do not move, rad", float),
    arg("--margin SHARE", "share of the limits to use", default=0.95),
    arg("--box M", "keep the tool inside: x y z of two corners, m", float, nargs=6),
    arg("--keep-out M", "keep the tool outside a box; may be repeated", float, [], nargs=6, action="append"),
    arg("--torque [SHARE]", "share of the torque limits to use (0.8)", float, 0.8, const=0.8),
    arg("--collisions [R]", "radius of links of unknown shape, m (default: 7 %% of the arm's length)", float),
    arg("--floor Z", "height of the floor in the base frame, m (default: 0 for an arm that stands)", float),
    arg("--tool-speed V", "largest speed of the tool, m/s (default: the description's, else 2)", float),
    arg("--unchecked WHAT...", "leave out checks: {values}", values="torque self-collision floor tool-speed"),
    arg("--noise NM...", "standard deviation of each joint's torque, N m (default: the same for all)", float),
    arg("--given FIT", "a fit, or a plan that was run: design for what is left"),
    arg("--at-rest", "start and end with zero velocity and acceleration"),
    arg("--resonance HZ", "keep all harmonics below this frequency", float),
    arg("--starts N", "random starts", default=10),
    arg("--budget S", "stop after this many seconds with the best so far", float),
    SEED,
    arg("--explain", "say which limits bind where, and what relaxing each would bring"),
    arg("--default-limits", "stand-ins for limits that are not known"),
    arg("--allow-violation", "write a plan even if it breaks a limit"),
)
def design(options: argparse.Namespace) -> int:
    """Run the command."""
    robot = robot_from(options)
    _check_outputs(robot, options)
    limits = _limits(robot, options)
    shape = armid.Fourier(_orders(options.harmonics), options.period)
    what: dict[str, Any] = {
        "parameters": options.parameters.split(",") if "," in options.parameters else options.parameters,
        "joints": None if options.joints is None else [j + 1 for j in joints_from(robot, options.joints)],
        "posture": options.posture,
        "rate_hz": options.rate,
        "margin": options.margin,
        "limits": limits,
        "checks": armid.Checks(
            without=tuple(word.replace("-speed", " speed") for word in options.unchecked or ()),
            torque_share=options.torque,
            radius=options.collisions,
            floor=options.floor,
            tool_speed=options.tool_speed,
        ),
        "noise": options.noise,
        "at_rest": options.at_rest,
        "resonance_hz": options.resonance,
    }
    given = None
    if options.given is not None:
        given, what["noise"] = _given_information(options.given, robot, shape, what)
    with display(options) as shown:
        plan = armid.design(
            robot,
            shape,
            criterion=armid.criterion(options.criterion),
            given=given,
            constraints=_keep_out(robot, options),
            **what,
            starts=options.starts,
            budget=options.budget,
            seed=options.seed,
            progress=_Standings(shown, options.starts),
            keep_on_interrupt=True,
        )
    if not plan.certified and not options.allow_violation:
        worst = plan.certificate.worst
        raise ArmidError(
            f"{robot.name}: the best plan breaks the limit of {worst.quantity} (margin {worst.text}) and is "
            "not written; use a smaller --margin or more --starts, or --allow-violation"
        )
    files = _write(plan, replace(robot, limits=limits), options)
    lines = [plan.summary(), *(map(str, plan.binding) if options.explain else ())]
    return finish(options, _as_data(plan), lines, files, good=plan.certified)


def _check_outputs(robot: armid.Robot, options: argparse.Namespace) -> None:
    """Find out before a long search whether its results can be written."""
    for option, given in (("--to", options.to), ("--pictures", options.pictures == "")):
        if given and not options.output:
            raise ArmidError(f"{option} needs -o PLAN: its files are written beside the plan, under the same name")
    if options.to is not None:
        from armid.excitation.export_plan import check_kinds

        options.to = words(options.to) or [""]
        check_kinds(options.to, robot.n_joints)
    if options.pictures is not None:
        options.pictures = options.pictures or str(Path(options.output).parent)
        check_pictures(options.pictures)


def _write(plan: armid.Plan, robot: armid.Robot, options: argparse.Namespace) -> list[Path]:
    """Write what was asked for; returns the files."""
    path = Path(options.output or plan.robot)
    files, stem = [], path.with_suffix("") if path.suffix == ".json" else path
    if options.output:
        plan.save(path)
        files.append(path)
    if options.to is not None:
        from armid.excitation.export_plan import export_plan

        files += export_plan(plan, options.to, stem)
    if options.pictures is not None:
        from armid.excitation.pictures import draw_plan

        files += draw_plan(plan, robot, Path(options.pictures), stem.name)
    return files


class _Standings:
    """Shows how a search stands, in the figures of the plan's summary and by the same names."""

    def __init__(self, shown: Display, starts: int) -> None:
        from armid.excitation.search import searches

        self._shown = shown
        shown(f"start 1/{searches(starts)}", 0.0)

    def __call__(self, now: Standing) -> None:
        if not now.cost < float("inf"):
            best = f"nothing feasible yet, limits broken by {100 * now.violation:.3g} %"
        else:
            best = f"best so far: log det {now.log_det:.2f}, condition number {now.condition:.3g}"
        self._shown(f"start {min(now.done + 1, now.total)}/{now.total}, {best}", now.done / now.total)


def _as_data(plan: armid.Plan) -> dict[str, Any]:
    data = plan.to_data()
    figures = data["conditioning"]
    return {
        **{name: data[name] for name in _PLAN_KEYS},
        "condition_number": figures["condition"],
        "condition_number_raw": figures["condition_raw"],
        "sigma_min": figures["sigma_min"],
        "log_det": figures["log_det"],
        "seconds": plan.seconds,
        "stopped": plan.options.get("stopped"),
    }


def _orders(text: str) -> int | tuple[int, ...]:
    numbers = _numbers("--harmonics", text)
    return numbers[0] if len(numbers) == 1 and "," not in text else tuple(numbers)


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",") if word]
    except ValueError:
        raise ArmidError(f"{option} {text}: not whole numbers joined by commas, such as 3,4,5,6") from None


def _given_information(
    path: str, robot: armid.Robot, shape: armid.Fourier, options: dict[str, Any]
) -> tuple[Array, list[float] | None]:
    """Information matrix for `design`, and the torque noise it is measured in (None for the options' own).

    A plan counts as one period of it run with the same noise. A fit counts with the inverse of its covariance; its
    joints' residuals are then the noise, unless noise was given.
    """
    from armid.excitation.design import gathered_information
    from armid.files import read_text

    if '"armid fit' not in read_text(path)[:200]:
        return gathered_information(armid.load_plan(path), robot, shape, **options), options.get("noise")
    from armid.run.goal import fit_information

    try:
        return fit_information(armid.load_fit(path), robot, shape, **options)
    except ArmidError as error:
        raise ArmidError(f"{path}: {error}") from None


def _limits(robot: armid.Robot, options: argparse.Namespace) -> armid.Limits:
    """The robot's limits with the box asked for, gaps filled with stand-ins if that was asked for, which is said."""
    import numpy as np

    limits = robot.limits
    if options.box:
        limits = replace(limits, box=np.sort(np.reshape(options.box, (2, 3)), axis=0))
    if not options.default_limits:
        return limits
    from armid.excitation.design import with_default_limits

    limits, filled = with_default_limits(limits)
    if filled and not options.quiet:
        sys.stderr.write(f"armid: stand-ins are used for unknown limits: {'; '.join(filled)}\n")
    return limits


def _keep_out(robot: armid.Robot, options: argparse.Namespace) -> list[Any]:
    """The boxes that the tool has to stay out of."""
    import numpy as np

    boxes: list[Any] = []
    for number, corners in enumerate(options.keep_out, start=1):
        low, high = np.sort(np.reshape(corners, (2, 3)), axis=0)
        name = "keep-out box" if len(options.keep_out) == 1 else f"keep-out box {number}"
        boxes.append(armid.KeepOutBox(robot, low, high, name=name))
    return boxes
