"""`armid run ROBOT`: the whole procedure in one command."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import Argument, arg
from armid.cli.display import display
from armid.cli.options import ROBOTS, command, finish, output_folder
from armid.errors import ArmidError
from armid.run.settings import CHOICES, Choice

if TYPE_CHECKING:
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
    from pathlib import Path

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
    reached = outcome.numbers.get("until", {}).get("reached", True)
    return finish(options, outcome.to_data(), lines, good=outcome.check.verdict != "poor" and reached)
