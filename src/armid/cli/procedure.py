"""`armid run`, `report`, `fleet` and `studio`: the whole procedure, for one arm and for many."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import armid
from armid.cli.arguments import Argument, arg
from armid.cli.display import display
from armid.cli.options import (
    HOW_TO_READ,
    ROBOTS,
    SEED,
    Command,
    check_output,
    command,
    finish,
    logs_from,
    output_folder,
    robot_arguments,
    robot_from,
)
from armid.errors import ArmidError
from armid.progress import progress_part
from armid.run.settings import CHOICES, Choice

if TYPE_CHECKING:
    from armid.reporting import Evidence
    from armid.run.stages import Done

_VALUES = {
    "method": "armid.estimation:estimators",
    "friction": "auto linear armid.registry:friction_laws",
    "criterion": "armid.excitation.criteria:CRITERIA",
    "to": "armid.exporting:exporters none",
    "simplify": "published none",
    "recipe": "armid.logs.recipe:recipe_names",
    "track": "pa10-figure none",
}
_OLD = {"no_warmup": "--no-warm-up"}


def _flag(choice: Choice) -> Argument:
    """The option of a setting; without a default of its own, so that a settings file is not overruled by it."""
    flag, default = f"--{choice.name.replace('_', '-')}", choice.default
    told = " ".join(map(str, default)) if isinstance(default, tuple) else default
    text = choice.help if default in (None, (), False) else f"{choice.help} (default: {told})"
    more: dict[str, Any] = {"values": _VALUES.get(choice.name, ""), "old": _OLD.get(choice.name, "")}
    if choice.kind is bool:
        return arg(flag, text, **more)
    return arg(f"{flag} {choice.metavar}{'...' if choice.many else ''}", text, choice.kind, **more)


@command(
    "run",
    "the whole procedure, from the model to the report",
    "Model, design, warm-up, excitation, inspection, identification, validation on another motion, audit, export and "
    "report: on the virtual robot, or with --log on your own recordings. Run it again to go on after an interruption; "
    "stages whose inputs have not changed are not repeated. Exit code 1 for a poor verdict.",
    arg("robot [ROBOT]", "library name or a .yaml, .urdf, .xml file", values=ROBOTS),
    output_folder("folder of the run (default: run-ROBOT)"),
    arg("--settings FILE", "YAML file with any of the options below; flags count more"),
    *map(_flag, CHOICES),
    resumes=True,
)
def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.run.outcome import in_words
    from armid.run.procedure import run
    from armid.run.settings import SETTINGS, load_settings, make_settings

    given = {choice.name: getattr(options, choice.name) for choice in CHOICES}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    kept = Path(options.output or "") / SETTINGS
    if options.settings is None and options.robot is None and options.output and kept.is_file():
        options.settings = str(kept.resolve())
    if options.settings:
        settings = load_settings(options.settings, robot=options.robot, **given)
    elif options.robot is None:
        raise ArmidError("name a ROBOT, a settings file, or with -o the folder of an earlier run: armid run pa10")
    else:
        settings = make_settings({"robot": options.robot, **given})
    folder = options.output or f"run-{Path(settings.robot).stem}"
    with display(options, stay=False) as shown:

        def ended(stage: Done) -> None:
            shown.line(f"{stage.title}: {'unchanged' if stage.kept else f'{stage.seconds:.1f} s'}")

        outcome = run(settings, folder, progress=shown, tell=ended)
    said = dict(in_words(outcome.numbers))
    width = max(len(name) for name in said)
    lines = [*map(str, outcome.check.reasons), f"validation: {outcome.check.in_words}"]
    lines += [f"  {name:<{width}}  {value}" for name, value in said.items()]
    lines += [*(f"  {line}" for line in outcome.note.splitlines()), f"report: {outcome.report}"]
    goal = outcome.numbers.get("until", {"reached": True})
    if settings.log and not goal["reached"]:
        lines.append(f"next motion to record: {outcome.folder / goal['plan']}; run again with its log among --log")
    return finish(options, outcome.to_data(), lines, good=outcome.check.verdict != "poor" and goal["reached"])


@command(
    "report",
    "show a fit, its evidence and its warnings on one page",
    "Write one HTML page that needs no network: verdict, torque on other data, errors, friction, parameters, links, "
    "excitation, a replay of the motion, signals and warnings.",
    arg("fit FIT", "fit (JSON), or the folder of a run (see `armid run`)"),
    arg("-o --output FILE", "page to write (default: report.html beside FIT)", file="written"),
    arg("--validation FILE", "validation, written by `armid validate`"),
    arg("--plan FILE", "plan, written by `armid design`"),
    arg("--warmup FILE", "result of `armid warmup`", old="--warm-up"),
    arg("--title TEXT", "of the page"),
    arg(
        "--log LOG...",
        "what was recorded: adds spectra and nominal torque; without --validation it is validated on",
        default=[],
        action="extend",
        dest="logs",
    ),
    *HOW_TO_READ,
)
def report(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.reporting import build
    from armid.reporting.page import plotly_script

    given = Path(options.fit)
    path = Path(options.output) if options.output else (given if given.is_dir() else given.parent) / "report.html"
    check_output(str(path))
    plotly_script()  # whether it is there, before long work
    with progress_part(0.0, 0.4):
        evidence = _evidence(given, options)
    with progress_part(0.4, 1.0):
        page = build(evidence, title=options.title)
    page.save(path)
    size, named = path.stat().st_size, ("name", "title", "sentence", "empty")
    sections = [{name: getattr(section, name) for name in named} for section in page.sections]
    data = {"title": page.title, "sections": sections, "bytes": size, "files": [str(path)]}
    wrote = f"wrote {path} ({size / 1e6:.1f} MB, {len(sections)} sections)"
    return finish(options, data, [page.sections[0].sentence, wrote])


def _evidence(given: Path, options: argparse.Namespace) -> Evidence:
    """What was named, beside what the folder of a run holds."""
    from armid.files import file_hash
    from armid.reporting import Evidence, gather
    from armid.reporting.evidence import load_mapping

    if given.is_dir():
        found = gather(given)
    else:
        found = Evidence(fit=armid.load_fit(given), files=(given.name,), fit_file_sha256=file_hash(given))
    changes: dict[str, Any] = {}
    if options.validation:
        changes["check"] = armid.load_validation(options.validation)
    if options.plan:
        changes["plan"] = armid.load_plan(options.plan)
    if options.warmup:
        changes["warmup"] = load_mapping(Path(options.warmup))
    if options.logs:
        changes["logs"] = (*found.logs, *logs_from(options))
        if found.check is None and not options.validation:
            changes["check"] = armid.validate(found.fit, changes["logs"], allow_training=True)
    names = [Path(item).name for item in (options.validation, options.plan, options.warmup, *options.logs) if item]
    return replace(found, **changes, files=(*found.files, *names))


SHOWN = 10  # lines about recordings that could not be used
_WORKERS = arg("--workers N", "processes to start", default=0, least=0, most=256)


@command(
    "identify",
    "estimate all arms and list those to look at",
    "Reduce the logs of each arm and day to a factor of some tens of kilobytes, add them up, estimate. Factors are "
    "kept in DIR: the next run reads only what is new, and an interrupted run goes on where it stopped. Exit code 1 if "
    "recordings could not be used.",
    arg("fleet FILE", "fleet file (YAML): robot, where the logs are, signals; or the folder that holds fleet.yaml"),
    output_folder("folder of the results (default: result, beside the fleet file)"),
    _WORKERS,
    arg("--scheduler ADDRESS", "Dask scheduler to use, such as tcp://host:8786"),
    arg(
        "--false-alarms RATE",
        "per arm and day, for all tests together; withdrawn where it cannot be kept",
        default=1e-3,
    ),
    resumes=True,
)
def _identify(options: argparse.Namespace) -> int:
    from armid.fleet.description import load_fleet
    from armid.fleet.identify import identify_fleet

    if options.workers and options.scheduler:
        raise ArmidError("--workers and --scheduler: give one of them, workers to start or a scheduler that has some")
    fleet = load_fleet(options.fleet)
    folder = Path(options.output or Path(fleet.source).parent / "result")
    result = identify_fleet(
        fleet,
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
    "DIR/truth.json lists what was planted.",
    *robot_arguments(),
    arg("--robots N", "how many arms", int, required=True),
    arg("--days M", "how many days", int, required=True),
    output_folder("folder to write to", required=True),
    arg("--faults K", "faults to plant; 0 for none", default=0),
    arg("--poor SHARE", "share of arms that move little", default=0.0),
    arg("--points P", "postures per recording", default=8),
    arg("--rate HZ", "sample rate", default=100.0),
    SEED,
    _WORKERS,
    resumes=True,
)
def _simulate(options: argparse.Namespace) -> int:
    from armid.fleet.simulate import simulate_fleet, virtual_fleet
    from armid.signals.problems import plural

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
    lines = [f"{fleet.robot.name}: {', '.join(plural(*one) for one in counts)} planted", *map(str, fleet.notes)]
    lines.append(f"wrote {file}; next: armid fleet identify {folder}")
    return finish(options, {**fleet.to_data(), "files": [str(file), str(folder / "truth.json")]}, lines)


fleet = Command(
    "fleet",
    "many arms of one type, many days: identify them, find out which to look at",
    "Identify all arms of a fleet from their daily logs, on this machine or on a Dask cluster, learn across arms, and "
    "name those that need attention; or simulate a fleet to try it.",
    actions=(_identify, _simulate),
)


@command(
    "studio",
    "the whole procedure as a page in the browser",
    "Arm, motion, recording, model, evidence and use, one screen each, on the folder of `armid run -o FOLDER`: page "
    "and command line go on with each other's work. The page is for this machine alone. Ctrl-C ends it.",
    arg("folder [FOLDER]", "folder of the run (default: studio); made if it is not there"),
    arg("--port N", "port to listen on (default: any that is free)", int, 0, least=0, most=65535),
    arg("--no-browser", "print the address, open nothing"),
    json=False,
)
def studio(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.studio.server import serve

    def tell(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()

    serve(Path(options.folder or "studio"), port=options.port, browser=not options.no_browser, tell=tell)
    return 0
