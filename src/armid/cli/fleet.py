"""`armid fleet identify` and `armid fleet simulate`: many arms of one type, many days."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.display import duration, on_line
from armid.cli.options import add_json_option, add_robot_options, print_json, robot_from
from armid.errors import ArmidError
from armid.progress import watch_progress

if TYPE_CHECKING:
    from armid.fleet.engine import Progress
    from armid.fleet.result import FleetResult

EVERY_S = 10.0  # between lines of progress where there is no terminal
SHOWN = 10  # lines about recordings that could not be used


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "fleet",
        help="many arms of one type, many days: identify them, find out which to look at",
        description="Identify all arms of a fleet from their daily logs, on this machine or on a Dask cluster, learn "
        "across arms, and name those that need a look; or simulate a fleet to try it.",
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    _add_identify(actions)
    _add_simulate(actions)
    return command


def _add_identify(actions: Any) -> None:
    action = actions.add_parser(
        "identify",
        help="estimate all arms and list those to look at",
        description="Reduce the logs of each arm and day to a factor of some tens of kilobytes, add them up, estimate. "
        "Factors are kept in DIR: the next run reads only what is new, and an interrupted run goes on where it "
        "stopped. Exit code 1 if recordings could not be used.",
    )
    action.add_argument("fleet", metavar="FLEET", help="fleet file (YAML): robot, where the logs are, signals")
    action.add_argument("-o", "--output", metavar="DIR", required=True, help="folder of the results")
    where = action.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, default=0, metavar="N", help="processes to start (default: none)")
    where.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler to use, such as tcp://host:8786")
    action.add_argument(
        "--false-alarms",
        type=float,
        default=1e-3,
        metavar="RATE",
        help="promised rate per arm and day for all tests together (default: 0.001)",
    )
    _add_common(action)


def _add_simulate(actions: Any) -> None:
    action = actions.add_parser(
        "simulate",
        help="a virtual fleet with spread between arms, temperature and planted faults",
        description="Record a virtual fleet into DIR/logs/robot=…/date=…; DIR/fleet.yaml is ready for `armid fleet "
        "identify`, DIR/truth.json tells what was planted.",
    )
    add_robot_options(action)
    action.add_argument("--robots", type=int, required=True, metavar="N", help="how many arms")
    action.add_argument("--days", type=int, required=True, metavar="M", help="how many days")
    action.add_argument("-o", "--output", metavar="DIR", required=True, help="folder to write to")
    action.add_argument("--faults", type=int, default=0, metavar="K", help="faults to plant (default: 0)")
    action.add_argument("--poor", type=float, default=0.0, metavar="SHARE", help="share of arms that move little")
    action.add_argument("--points", type=int, default=8, metavar="P", help="postures per recording (default: 8)")
    action.add_argument("--rate", type=float, default=100.0, metavar="HZ", help="sample rate (default: 100)")
    action.add_argument("--seed", type=int, default=0, help="of everything random (default: 0)")
    action.add_argument("--workers", type=int, default=0, metavar="N", help="processes to start (default: none)")
    _add_common(action)


def _add_common(action: argparse.ArgumentParser) -> None:
    add_json_option(action)
    # The parent has --quiet as well; without SUPPRESS its value would be overwritten here.
    action.add_argument("--quiet", action="store_true", default=argparse.SUPPRESS, help="no warnings and notes")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    return _identify(options) if options.action == "identify" else _simulate(options)


def _identify(options: argparse.Namespace) -> int:
    from armid.fleet.description import load_fleet
    from armid.fleet.identify import identify_fleet

    fleet = load_fleet(options.fleet)
    folder = Path(options.output)
    _check_output(folder)
    there = folder.exists()
    try:
        result = identify_fleet(
            fleet,
            folder,
            workers=options.workers,
            scheduler=options.scheduler,
            false_alarms=options.false_alarms,
            progress=None if options.quiet or options.json else _Display(),
        )
    except ArmidError:
        if not there:
            _remove_empty(folder)
        raise
    if options.json:
        files = [str(folder / "fleet.json"), *(str(folder / arm["fit"]) for arm in result.arms if arm["fit"])]
        print_json({**result.to_data(), "files": files})
    else:
        sys.stdout.write(
            f"{_summary(result)}\nwrote {folder / 'fleet.html'} (open it in a browser), {folder / 'fleet.json'} and "
            f"{folder / 'robots'}/NAME/fit.json\n"
        )
    return 0 if result.good else 1


def _check_output(folder: Path) -> None:
    """Whether results can be written under their names; found out before the work."""
    for name in ("fleet.json", "fleet.html"):
        if (folder / name).is_dir():
            raise ArmidError(
                f"{folder / name}: is a folder, but a file is written there; rename it, or choose another -o"
            )
    robots = folder / "robots"
    for entry in sorted(robots.iterdir()) if robots.is_dir() else ():
        if not entry.is_dir() and not entry.name.startswith("."):
            raise ArmidError(f"{entry}: is a file where folders of arms are written; move it, or choose another -o")


def _remove_empty(folder: Path) -> None:
    """Take back folders that were made for results that there are none of."""
    for path in (folder / "factors", folder / "robots", folder):
        with suppress(OSError):  # it is not empty
            path.rmdir()


def _summary(result: FleetResult) -> str:
    """The result for people, not more than some lines of it about recordings that could not be used."""
    lines = result.summary().split("\n")
    first = len(lines) if result.good else next(i for i, line in enumerate(lines) if line.endswith(" not be used:")) + 1
    left = len(lines) - first - SHOWN
    more = [f"  … and {left} more, see fleet.html"] if left > 0 else []
    return "\n".join([*lines[: first + SHOWN], *more])


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _robot_options(options: argparse.Namespace) -> dict[str, Any]:
    """Options that change the robot, as a fleet file says them."""
    said = {"links": options.links, "gravity": options.gravity, "simplify": options.simplify}
    found = {key: value for key, value in said.items() if value is not None}
    return {**found, "rotors": False} if options.no_rotors else found


def _simulate(options: argparse.Namespace) -> int:
    from armid.fleet.simulate import LEAST_RATE, MOST_POINTS, MOST_RATE, simulate_fleet, virtual_fleet
    from armid.fleet.store import Store

    if not 0.0 <= options.poor <= 1.0:
        raise ArmidError(f"--poor {options.poor:g}: must be a share from 0 to 1")
    if options.faults < 0 or options.points < 2 or options.workers < 0:
        raise ArmidError("--faults and --workers must not be negative, and --points at least 2")
    if options.seed < 0:
        raise ArmidError(f"--seed {options.seed}: must be a whole number from 0")
    if not LEAST_RATE <= options.rate <= MOST_RATE:
        raise ArmidError(f"--rate {options.rate:g}: must be {LEAST_RATE:g} to {MOST_RATE:g} Hz")
    if options.points > MOST_POINTS:
        raise ArmidError(f"--points {options.points}: must be {MOST_POINTS} at most")
    folder = Path(options.output)
    fleet = virtual_fleet(
        robot_from(options),
        robots=options.robots,
        days=options.days,
        faults=options.faults,
        poor=options.poor,
        seed=options.seed,
        robot_options=_robot_options(options),
    )
    Store(folder)  # whether it can be written is found out before the work
    show = None if options.quiet or options.json else _Display()
    with watch_progress(None):  # what single recordings tell would stand in the way of the display of all
        file = simulate_fleet(
            fleet,
            folder,
            points=options.points,
            rate_hz=options.rate,
            workers=options.workers,
            progress=None if show is None else show.recorded,
        )
    if options.json:
        print_json({**fleet.to_data(), "files": [str(file), str(folder / "truth.json")]})
    else:
        counts = _number(options.robots, "arm"), _number(options.days, "day"), _number(len(fleet.faults), "fault")
        notes = "".join(f"{note}\n" for note in fleet.notes)
        sys.stdout.write(
            f"{fleet.robot.name}: {', '.join(counts)} planted\n{notes}"
            f"wrote {file}; next: armid fleet identify {file} -o {folder / 'result'}\n"
        )
    return 0


class _Display:
    """One line that updates on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._live, self._last, self._began = sys.stderr.isatty(), time.monotonic(), time.monotonic()

    def __call__(self, now: Progress) -> None:
        kept = f", {now.kept} known from before" if now.kept else ""
        self._show(
            f"{now.stage}: {now.done} of {now.total}{kept}, {duration(now.seconds_left)} left ({now.last})",
            now.done == now.total,
        )

    def recorded(self, text: str, share: float) -> None:
        left = (time.monotonic() - self._began) * (1.0 / max(share, 1e-9) - 1.0)
        self._show(f"recording: {100.0 * share:.0f} %, {duration(left)} left ({text})", share >= 1.0)

    def _show(self, text: str, finished: bool) -> None:
        if self._live:
            on_line(text + "\n" if finished else text)
        elif time.monotonic() - self._last > EVERY_S:
            self._last = time.monotonic()
            sys.stderr.write(text + "\n")
        sys.stderr.flush()
