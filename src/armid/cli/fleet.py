"""`armid fleet identify` and `armid fleet simulate`: many arms of one type, many days."""

from __future__ import annotations

import argparse
from pathlib import Path

from armid.cli.arguments import arg
from armid.cli.options import SEED, Command, command, finish, output_folder, robot_arguments, robot_from
from armid.errors import ArmidError

SHOWN = 10  # lines about recordings that could not be used
_WORKERS = arg("--workers N", "processes to start", default=0)


@command(
    "identify",
    "estimate all arms and list those to look at",
    "Reduce the logs of each arm and day to a factor of some tens of kilobytes, add them up, estimate. Factors are "
    "kept in DIR: the next run reads only what is new, and an interrupted run goes on where it stopped. Exit code 1 if "
    "recordings could not be used.",
    arg("fleet FILE", "fleet file (YAML): robot, where the logs are, signals"),
    output_folder("folder of the results", required=True),
    _WORKERS,
    arg("--scheduler ADDRESS", "Dask scheduler to use, such as tcp://host:8786"),
    arg("--false-alarms RATE", "promised rate per arm and day for all tests together", default=1e-3),
    resumes=True,
)
def _identify(options: argparse.Namespace) -> int:
    from armid.fleet.description import load_fleet
    from armid.fleet.identify import identify_fleet

    if options.workers and options.scheduler:
        raise ArmidError("--workers and --scheduler: give one of them, workers to start or a scheduler that has some")
    folder = Path(options.output)
    result = identify_fleet(
        load_fleet(options.fleet),
        folder,
        workers=options.workers,
        scheduler=options.scheduler,
        false_alarms=options.false_alarms,
    )
    files = [str(folder / "fleet.json"), *(str(folder / arm.fit) for arm in result.arms if arm.fit)]
    wrote = f"wrote {folder / 'fleet.html'} (open it in a browser), {folder / 'fleet.json'} and {folder / 'robots'}"
    lines = [result.summary(SHOWN), f"{wrote}/NAME/fit.json"]
    return finish(options, {**result.to_data(), "files": files}, lines, good=result.good)


@command(
    "simulate",
    "a virtual fleet with spread between arms, temperature and planted faults",
    "Record a virtual fleet into DIR/logs/robot=…/date=…; DIR/fleet.yaml is ready for `armid fleet identify`, "
    "DIR/truth.json tells what was planted.",
    *robot_arguments(),
    arg("--robots N", "how many arms", int, required=True),
    arg("--days M", "how many days", int, required=True),
    output_folder("folder to write to", required=True),
    arg("--faults K", "faults to plant", default=0),
    arg("--poor SHARE", "share of arms that move little", default=0.0),
    arg("--points P", "postures per recording", default=8),
    arg("--rate HZ", "sample rate", default=100.0),
    SEED,
    _WORKERS,
    resumes=True,
)
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
    counts = (options.robots, "arm"), (options.days, "day"), (len(fleet.faults), "fault")
    lines = [f"{fleet.robot.name}: {', '.join(counted(*one) for one in counts)} planted", *map(str, fleet.notes)]
    lines.append(f"wrote {file}; next: armid fleet identify {file} -o {folder / 'result'}")
    return finish(options, {**fleet.to_data(), "files": [str(file), str(folder / "truth.json")]}, lines)


fleet = Command(
    "fleet",
    "many arms of one type, many days: identify them, find out which to look at",
    "Identify all arms of a fleet from their daily logs, on this machine or on a Dask cluster, learn across arms, and "
    "name those that need a look; or simulate a fleet to try it.",
    actions=(_identify, _simulate),
)
