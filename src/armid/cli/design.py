"""armid design: an exciting trajectory, certified."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.display import duration, on_line
from armid.cli.log_options import check_output
from armid.cli.options import add_json_option, add_robot_options, print_json, robot_from
from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.excitation import Plan, Standing
    from armid.robot import Robot
    from armid.robot.robot import Limits

_CRITERIA = "d-optimal, a-optimal, e-optimal, condition, condition-raw, condition-and-sigma"
_RADIUS = 0.06  # of links without a known shape [m]


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "design",
        help="design an exciting trajectory inside all limits",
        description="Design a periodic trajectory that makes the parameters visible, inside every certified limit.",
    )
    add_robot_options(command)
    command.add_argument("-o", "--output", metavar="PLAN", help="plan file to write (JSON)")
    command.add_argument("--to", metavar="KINDS", help="also write, beside -o: csv, ros, urscript, joined by commas")
    command.add_argument("--pictures", action="store_true", help="also draw the plan, beside -o")
    command.add_argument("--criterion", default="d-optimal", metavar="NAME", help=f"{_CRITERIA} (default: d-optimal)")
    command.add_argument(
        "--parameters", default="all", metavar="WHICH", help="all, inertial, payload, or names joined by commas"
    )
    command.add_argument("--harmonics", default="5", metavar="N", help="how many, or a list such as 1,20 (default: 5)")
    command.add_argument("--period", type=float, default=10.0, metavar="S", help="seconds (default: 10)")
    command.add_argument(
        "--rate", type=float, default=150.0, metavar="HZ", help="rate of the experiment (default: 150)"
    )
    command.add_argument("--joints", metavar="LIST", help="joints that move, such as 3,4,5,6 (default: all)")
    command.add_argument(
        "--posture", type=float, nargs="+", metavar="Q", help="position of joints that do not move, rad"
    )
    command.add_argument("--margin", type=float, default=0.95, help="share of the limits to use (default: 0.95)")
    command.add_argument(
        "--box", type=float, nargs=6, metavar="M", help="keep the tool inside: x y z of two corners, m"
    )
    command.add_argument(
        "--keep-out",
        type=float,
        nargs=6,
        action="append",
        default=[],
        metavar="M",
        help="keep the tool outside a box: x y z of two corners, m; may be given several times",
    )
    command.add_argument(
        "--torque", action="store_true", help="keep torques of the nominal or virtual arm within limits"
    )
    command.add_argument(
        "--collisions",
        type=float,
        nargs="?",
        const=_RADIUS,
        metavar="R",
        help=f"keep links apart; R is the radius of links without a known shape, m (default: {_RADIUS})",
    )
    command.add_argument("--floor", type=float, metavar="Z", help="keep links above this height of the base frame, m")
    command.add_argument(
        "--noise",
        type=float,
        nargs="+",
        metavar="S",
        help="standard deviation of each joint's torque, N m: weights the information (default: the same for all)",
    )
    command.add_argument("--given", metavar="FIT", help="a fit, or a plan that was run: design for what is left")
    command.add_argument("--at-rest", action="store_true", help="start and end with zero velocity and acceleration")
    command.add_argument("--resonance", type=float, metavar="HZ", help="keep all harmonics below this frequency")
    command.add_argument("--starts", type=int, default=10, metavar="N", help="random starts (default: 10)")
    command.add_argument("--budget", type=float, metavar="S", help="stop after this many seconds with the best so far")
    command.add_argument("--seed", type=int, default=0, help="of the random starts (default: 0)")
    command.add_argument("--default-limits", action="store_true", help="stand-ins for limits that are not known")
    command.add_argument("--allow-violation", action="store_true", help="write a plan even if it breaks a limit")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    robot = robot_from(options)
    from armid.cli.given import given_information
    from armid.excitation import Fourier, criterion, design

    _check_outputs(robot, options)
    limits = _limits(robot, options)
    shape = Fourier(_orders(options.harmonics), options.period)
    what: dict[str, Any] = {
        "parameters": options.parameters.split(",") if "," in options.parameters else options.parameters,
        "joints": None if options.joints is None else _numbers("--joints", options.joints),
        "posture": options.posture,
        "rate_hz": options.rate,
        "margin": options.margin,
        "limits": limits,
        "noise": options.noise,
        "at_rest": options.at_rest,
        "resonance_hz": options.resonance,
    }
    given = None
    if options.given is not None:
        given, what["noise"] = given_information(options.given, robot, shape, what)
    display = None if options.quiet or options.json else _Display(_positive("--starts", options.starts))
    with display or nullcontext():
        plan = design(
            robot,
            shape,
            criterion=criterion(options.criterion),
            given=given,
            constraints=_constraints(robot, limits, options),
            **what,
            starts=_positive("--starts", options.starts),
            budget=options.budget,
            seed=options.seed,
            progress=display,
            keep_on_interrupt=True,
        )
    if not plan.certified and not options.allow_violation:
        worst = plan.certificate.worst
        raise ArmidError(
            f"{robot.name}: the best plan breaks the limit of {worst.quantity} (margin {worst.text}) and is "
            "not written; use a smaller --margin or more --starts, or --allow-violation"
        )
    files = _write(plan, replace(robot, limits=limits), options)
    if options.json:
        print_json({**_as_data(plan), "files": [str(file) for file in files]})
    else:
        sys.stdout.write(plan.summary() + "\n")
        sys.stdout.writelines(f"wrote {file}\n" for file in files)
    return 0 if plan.certified else 1


def _check_outputs(robot: Robot, options: argparse.Namespace) -> None:
    """Find out before a long search whether its results can be written."""
    for option, given in (("--to", options.to is not None), ("--pictures", options.pictures)):
        if given and not options.output:
            raise ArmidError(f"{option} needs -o PLAN: its files are written beside the plan, under the same name")
    check_output(options.output, [options.robot, *([options.given] if options.given else [])])
    if options.to is not None:
        from armid.excitation.export_plan import check_kinds

        check_kinds(options.to.split(","), robot.n_joints)
    if options.pictures:
        from armid import theme

        theme.need_matplotlib()


def _write(plan: Plan, robot: Robot, options: argparse.Namespace) -> list[Path]:
    """Write what was asked for; returns the files."""
    if not options.output:
        return []
    path = Path(options.output)
    plan.save(path)
    files, stem = [path], path.with_suffix("") if path.suffix == ".json" else path
    if options.to is not None:
        from armid.excitation.export_plan import export_plan

        files += export_plan(plan, options.to.split(","), stem)
    if options.pictures:
        from armid.excitation.pictures import draw_plan

        files += draw_plan(plan, robot, stem.parent, stem.name)
    return files


class _Display:
    """On a terminal one line that updates, with the start that is being searched; a line per ended start elsewhere.

    Figures are those of the plan's summary, by the same names. Used as a context, it clears a line that did not come to
    its end, so that results or an error stand alone.
    """

    def __init__(self, starts: int) -> None:
        from armid.excitation.search import searches

        self._began, self._live, self._open = time.monotonic(), sys.stderr.isatty(), False
        self._total = searches(starts)

    def __enter__(self) -> _Display:
        if self._live:
            on_line(f"start 1/{self._total}")
            self._open = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._open:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, now: Standing) -> None:
        seconds = time.monotonic() - self._began
        left = seconds / now.done * (now.total - now.done)
        if not now.cost < float("inf"):
            best = f"nothing feasible yet, limits broken by {100 * now.violation:.3g} %"
        else:
            best = f"best so far: log det {now.log_det:.2f}, condition number {now.condition:.3g}"
        self._open = self._live and now.done < now.total
        text = f"start {now.done + self._open}/{now.total}  {duration(seconds)}, {duration(left)} left  {best}"
        if self._live:
            on_line(text if self._open else text + "\n")
        else:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def _as_data(plan: Plan) -> dict[str, Any]:
    data = plan.to_data()
    figures = data["conditioning"]
    return {
        **{name: data[name] for name in ("robot", "criterion", "value", "parameters", "certified", "margins")},
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


def _positive(option: str, value: int) -> int:
    if value < 1:
        raise ArmidError(f"{option} {value}: must be at least 1")
    return value


def _limits(robot: Robot, options: argparse.Namespace) -> Limits:
    """The robot's limits with the box asked for, gaps filled with stand-ins if that was asked for, which is said."""
    import numpy as np

    limits = robot.limits
    if options.box:
        limits = replace(limits, box=np.sort(np.reshape(options.box, (2, 3)), axis=0))
    if not options.default_limits:
        return limits
    from armid.excitation import with_default_limits

    limits, filled = with_default_limits(limits)
    if filled and not options.quiet:
        sys.stderr.write(f"armid: stand-ins are used for unknown limits: {'; '.join(filled)}\n")
    return limits


def _constraints(robot: Robot, limits: Limits, options: argparse.Namespace) -> list[Any]:
    import numpy as np

    from armid.dynamics import Model
    from armid.excitation import Floor, KeepOutBox, SelfCollision, ToolBox, TorqueLimit, link_capsules, prior_values

    constraints: list[Any] = []
    if options.torque:
        model = Model(robot)
        constraints.append(TorqueLimit(model, prior_values(model), limits.torque))
    if limits.box is not None:
        constraints.append(ToolBox(robot, limits.box.min(axis=0), limits.box.max(axis=0)))
    for number, corners in enumerate(options.keep_out, start=1):
        low, high = np.sort(np.reshape(corners, (2, 3)), axis=0)
        name = "keep-out box" if len(options.keep_out) == 1 else f"keep-out box {number}"
        constraints.append(KeepOutBox(robot, low, high, name=name))
    if options.collisions is not None or options.floor is not None:
        capsules = link_capsules(robot, _RADIUS if options.collisions is None else options.collisions)
        if options.collisions is not None:
            constraints.append(SelfCollision(robot, capsules))
        if options.floor is not None:
            constraints.append(Floor(robot, capsules, options.floor))
    return constraints
