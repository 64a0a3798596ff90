"""`armid run ROBOT`: the whole procedure in one command."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from armid.cli.display import Display
from armid.cli.options import add_json_option, print_json
from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.run.stages import Done


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "run",
        help="the whole procedure, from the model to the report",
        description="Model, design, warm-up, excitation, inspection, identification, validation on another motion, "
        "audit, export and report: on the virtual robot, or with --log on your own recordings. Run it again to go on "
        "after an interruption; stages whose inputs have not changed are not repeated. Exit code 1 if the validation "
        "fails.",
    )
    command.add_argument("robot", metavar="ROBOT", nargs="?", help="library name or a .yaml, .urdf, .xml file")
    command.add_argument("-o", "--output", metavar="DIR", help="folder of the run (default: run-ROBOT)")
    command.add_argument("--settings", metavar="FILE", help="YAML file with any of the options below; flags count more")
    _add_choices(command)
    add_json_option(command)
    return command


def _add_choices(command: argparse.ArgumentParser) -> None:
    from armid.run.settings import CHOICES, default_of

    for choice in CHOICES:
        flag = f"--{choice.name.replace('_', '-')}"
        about, default = choice.metadata, default_of(choice)
        text = about["help"] + ("" if default in (None, (), False) else f" (default: {_shown(default)})")
        if about["kind"] is bool:
            command.add_argument(flag, action="store_true", default=None, help=text)
        else:
            number: dict[str, Any] = {"nargs": "+"} if about["many"] else {}
            name = about["metavar"] or choice.name.upper()
            command.add_argument(flag, type=about["kind"], metavar=name, help=text, **number)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from pathlib import Path

    from armid.run.procedure import run
    from armid.run.settings import CHOICES, load_settings, make_settings

    given = {c.name: getattr(options, c.name) for c in CHOICES}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    if options.settings:
        settings = load_settings(options.settings, robot=options.robot, **given)
    elif options.robot is None:
        raise ArmidError("name a ROBOT, or a settings file that does: armid run pa10")
    else:
        settings = make_settings({"robot": options.robot, **given})
    folder = options.output or f"run-{Path(settings.robot).stem}"
    display = None if options.quiet or options.json else _Display()
    outcome = run(
        settings,
        folder,
        progress=None if display is None else display.now,
        tell=None if display is None else display.ended,
    )
    if options.json:
        print_json(outcome.to_data())
    else:
        from armid.run.verdict import in_words

        said = dict(in_words(outcome.numbers))
        width = max(len(name) for name in said)
        lines = [f"  {name:<{width}}  {value}" for name, value in said.items()]
        lines += [f"  {line}" for line in outcome.note.splitlines()]
        verdict = "good" if outcome.good else "poor: the report says what to change"
        sys.stdout.write("\n".join([f"validation: {verdict}", *lines, f"report: {outcome.report}"]) + "\n")
    return 0 if outcome.good else 1


class _Display:
    """One line per stage, and what is being done where the terminal can show it."""

    def __init__(self) -> None:
        self._stage = Display(stay=False)

    def now(self, text: str, share: float) -> None:
        if share == 0.0:
            self._stage.clear()
            self._stage = Display(stay=False, most=text == "warm-up")
        self._stage(text, share)

    def ended(self, stage: Done) -> None:
        self._stage.clear()
        self._stage = Display(stay=False)
        state = "unchanged" if stage.kept else f"{stage.seconds:.1f} s"
        sys.stderr.write(f"{stage.title}: {state}\n")
        sys.stderr.flush()


def _shown(value: Any) -> str:
    return (
        " ".join(map(str, value))
        if isinstance(value, tuple)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
