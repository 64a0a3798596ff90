"""`armid fleet identify` and `armid fleet simulate`: many arms of one type, many days."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from armid.cli.options import add_json_option, add_robot_options, print_json, robot_from

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

    folder = Path(options.output)
    result = identify_fleet(
        load_fleet(options.fleet),
        folder,
        workers=options.workers,
        scheduler=options.scheduler,
        false_alarms=options.false_alarms,
    )
    if options.json:
        files = [str(folder / "fleet.json"), *(str(folder / arm.fit) for arm in result.arms if arm.fit)]
        print_json({**result.to_data(), "files": files})
    else:
        sys.stdout.write(
            f"{result.summary(SHOWN)}\nwrote {folder / 'fleet.html'} (open it in a browser), {folder / 'fleet.json'} "
            f"and {folder / 'robots'}/NAME/fit.json\n"
        )
    return 0 if result.good else 1


def _simulate(options: argparse.Namespace) -> int:
    from armid.fleet.simulate import simulate_fleet, virtual_fleet
    from armid.fleet.words import counted

    said = {"links": options.links, "gravity": options.gravity, "simplify": options.simplify}
    said["rotors"] = False if options.no_rotors else None
    fleet = virtual_fleet(
        robot_from(options),
        robots=options.robots,
        days=options.days,
        faults=options.faults,
        poor=options.poor,
        seed=options.seed,
        robot_options={key: value for key, value in said.items() if value is not None},
    )
    folder = Path(options.output)
    file = simulate_fleet(fleet, folder, points=options.points, rate_hz=options.rate, workers=options.workers)
    if options.json:
        print_json({**fleet.to_data(), "files": [str(file), str(folder / "truth.json")]})
    else:
        counts = (options.robots, "arm"), (options.days, "day"), (len(fleet.faults), "fault")
        notes = "".join(f"{note}\n" for note in fleet.notes)
        sys.stdout.write(
            f"{fleet.robot.name}: {', '.join(counted(*one) for one in counts)} planted\n{notes}"
            f"wrote {file}; next: armid fleet identify {file} -o {folder / 'result'}\n"
        )
    return 0
