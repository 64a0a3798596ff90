"""What commands share: their declaration, arguments that several take, checks before long work, and how they end."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import armid
from armid.cli.arguments import Argument, Parser, arg
from armid.errors import ArmidError
from armid.escaping import lines
from armid.progress import report_progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from armid.logs.log import LogStream

JSON = arg("--json", "one JSON object on standard output")
QUIET = arg("--quiet", "no warnings and notes")
SEED = arg("--seed N", "of everything random", default=0, least=0)
FIT = arg("fit FIT", "fit, written by `armid identify`")
ROBOTS = "armid.robot:library_names"
GRAVITY = arg("--gravity X Y Z", "gravity in the base frame, m/s^2 (mounting)", float, least=-100.0, most=100.0)
ROBOT_CHANGES = (
    arg("--links N", "use only the first N links", int),
    arg("--no-rotors", "leave rotor inertias out"),
    GRAVITY,
    arg(
        "--simplify SET",
        "zeros by symmetry: {values} (default: published where there are any)",
        values="published none",
    ),
)
ARM_CHOICE = (
    arg("--joints NAME...", "the arm's joints in a URDF or MJCF of more than the arm; the rest is locked"),
    arg("--from LINK", "or the link that the arm's joints hang on", dest="from_link"),
    arg("--to LINK", "and the one they carry", dest="to_link"),
)
HOW_TO_READ = (
    arg("--recipe FILE", "what the columns of LOG mean: a recipe or its name", values="armid.logs.recipe:recipe_names"),
    arg("--effort KIND", "what was measured, for logs that do not say it: {values}", values="armid.logs.log:EFFORTS"),
)
LOGS = (arg("logs LOG...", "log files, or recipes (.yaml) that name files"), *HOW_TO_READ)
LOGS_OR_VIRTUAL = (
    arg("logs [LOG...]", "log files, or recipes (.yaml) that name files (default: drive the virtual robot)"),
    *HOW_TO_READ,
)
JOINTS = arg("--joints N...", "numbers or names of joints, such as 3,4,5,6 (default: all)", old="--joint")
PICTURES = arg("--pictures DIR", "draw the result into this folder", file="pictures")


def robot_arguments(also: str = "") -> tuple[Argument, ...]:
    """ROBOT and the options that change it; `also` is what else may stand there."""
    about = f"library name (see `armid robots`) or a .yaml, .urdf, .xml file{also}"
    return (arg("robot ROBOT", about, values=ROBOTS), *ROBOT_CHANGES)


def output(what: str, metavar: str = "FILE") -> Argument:
    """-o FILE."""
    return arg(f"-o --output {metavar}", what, file="written")


def output_folder(what: str, default: str | None = None, *, required: bool = False) -> Argument:
    """-o DIR."""
    return arg("-o --output DIR", what, default=default, required=required, file="folder")


@dataclass(frozen=True)
class Command:
    """A command of the program, as `command` declares it.

    Attributes:
        name: of the command.
        help: a line for `armid --help`.
        description: what it does, for its own help.
        arguments: what it takes, --json and --quiet aside.
        run: does it and returns the exit code.
        epilog: stands below its help; a function makes it when the help is shown.
        json: whether it has --json.
        old: an earlier name, still understood.
        resumes: whether the same command goes on after an interruption.
        actions: commands of its own, which one of has to be named.
    """

    name: str
    help: str
    description: str
    arguments: tuple[Argument, ...] = ()
    run: Callable[[argparse.Namespace], int] | None = None
    epilog: str | Callable[[], str] = ""
    json: bool = True
    old: str = ""
    resumes: bool = False
    actions: tuple[Command, ...] = ()

    def add_to(self, commands: Any) -> None:
        """Enter it among the commands of a parser."""
        declared = () if self.actions else (*self.arguments, *((JSON,) if self.json else ()), QUIET)
        about = {"epilog": self.epilog} if isinstance(self.epilog, str) else {"more": self.epilog}
        made: Parser = commands.add_parser(
            self.name, help=self.help, description=self.description, declared=declared, **about
        )
        if self.old:
            commands.choices[self.old] = made
        made.set_defaults(run=Bound(self, made))
        if self.actions:
            actions = made.add_subparsers(title="actions", metavar="ACTION", required=True)
            for action in self.actions:
                action.add_to(actions)


class Bound(NamedTuple):
    """A command and the parser that has read its options."""

    command: Command
    parser: Parser

    def __call__(self, options: argparse.Namespace) -> int:
        """Run it, if what it will write can be written."""
        check_files(self.parser, options)
        assert self.command.run is not None  # a command with actions: one of them is bound
        return self.command.run(options)


def command(
    name: str, help: str, description: str, *arguments: Argument, **more: Any
) -> Callable[[Callable[[argparse.Namespace], int]], Command]:
    """Decorator: make a function the command `name`; see `Command` for what `more` can say."""
    return lambda run: Command(name, help, description, arguments, run, **more)


def finish(
    options: argparse.Namespace,
    data: Mapping[str, Any],
    text: str | Iterable[str],
    files: Sequence[str | Path] | None = None,
    *,
    good: bool = True,
) -> int:
    """Print a result, as JSON or for people, and the files that were written; returns the exit code."""
    report_progress("done", 1.0)
    if options.json:
        from armid.files import plain

        whole = plain(dict(data) if files is None else {**data, "files": [str(file) for file in files]})
        sys.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    else:
        said = [text] if isinstance(text, str) else list(text)
        sys.stdout.write(lines("\n".join([*said, *(f"wrote {file}" for file in files or ())])) + "\n")
    return 0 if good else 1


def written(*asked: tuple[str | Path | None, Callable[[Any], Any]]) -> list[str]:
    """Call what writes a file with its name, for each that was asked for; returns the names."""
    for path, write in asked:
        if path:
            write(path)
    return [str(path) for path, _ in asked if path]


def picture(options: argparse.Namespace, name: str, figure: Callable[[], Figure]) -> tuple[Path | None, Any]:
    """For `written`: a figure, drawn into the folder of --pictures where there is one."""
    from armid import theme

    return Path(options.pictures) / name if options.pictures else None, lambda path: theme.save(figure(), path)


def robot_from(options: argparse.Namespace) -> armid.Robot:
    """The robot that the options describe."""
    return armid.load_robot(
        options.robot,
        links=options.links,
        rotors=not options.no_rotors,
        gravity=options.gravity,
        simplify=options.simplify,
        **arm_choice(options),
    )


def arm_choice(options: argparse.Namespace) -> dict[str, Any]:
    """What `ARM_CHOICE` says, for `load_robot`; nothing for commands without it, whose --joints mean others."""
    if not hasattr(options, "from_link"):
        return {}
    return {"joints": words(options.joints), "between": (options.from_link, options.to_link)}


def logs_from(options: argparse.Namespace, names: Sequence[str] | None = None) -> list[armid.Log]:
    """The logs that were named, see `armid.logs.read_logs`."""
    return armid.read_logs(options.logs if names is None else names, options.recipe, effort=options.effort)


def streams_from(options: argparse.Namespace) -> list[LogStream]:
    """The same, for work that need not have a log in memory as a whole."""
    from armid.logs.files import open_logs

    return open_logs(options.logs, options.recipe, effort=options.effort)


def words(given: Sequence[str] | None) -> list[str]:
    """What an option lists with commas or blanks between."""
    return [word.strip() for text in given or () for word in text.split(",") if word.strip()]


def joints_from(robot: armid.Robot, given: Sequence[str]) -> list[int]:
    """Indices, from 0, of the joints that numbers (from 1) or names say."""
    from armid.experiment.drive import joint_number

    return [joint_number(robot, word) for word in words(given)]


def motion_from(path: str) -> armid.Plan | armid.Trajectory:
    """A plan, or a bare trajectory."""
    from armid.excitation.trajectory import load_trajectory
    from armid.files import read_text

    return load_trajectory(path) if '"armid trajectory' in read_text(path)[:200] else armid.load_plan(path)


def fit_from(options: argparse.Namespace) -> armid.Fit:
    """The fit that was named."""
    return armid.load_fit(options.fit)


def hashes(paths: Sequence[str]) -> dict[str, str]:
    """SHA-256 of files, by name."""
    from armid.files import file_hash

    return {str(path): file_hash(Path(path)) for path in paths if Path(path).is_file()}


def kept_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options that decide about a result, for its file."""
    return {key: value for key, value in vars(options).items() if key not in ("run", "root", "json", "quiet", "output")}


def check_files(parser: Parser, options: argparse.Namespace) -> None:
    """Find out before long work whether what the options name can be written, and that it replaces no input."""
    read = parser.files(options, "read")
    for path in parser.files(options, "written"):
        check_output(path, read)
    for path in parser.files(options, "folder"):
        check_folder(path)
    for path in parser.files(options, "pictures"):
        check_pictures(path)


def check_output(path: str | None, inputs: Sequence[str] = ()) -> None:
    """Find out whether a result can be written, and that it does not replace an input."""
    if not path:
        return
    if any(Path(path).resolve() == Path(given).resolve() for given in inputs):
        raise ArmidError(f"{path}: is read, so it cannot be written too; choose another name for -o")
    if Path(path).is_dir():
        raise ArmidError(f"{path}: is a folder; name a file for -o")
    if not Path(path).absolute().parent.is_dir():
        raise ArmidError(f"{path}: cannot be written (there is no folder {Path(path).parent})")
    _check_allowed(path, Path(path).absolute())


def check_folder(path: str | Path) -> None:
    """Find out whether a folder, which may have to be made, can be written to."""
    there = Path(path).absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise ArmidError(f"{path}: cannot be a folder ({there} is a file); name another one")
    _check_allowed(path, there)


def check_pictures(folder: str | None) -> None:
    """Find out whether pictures can be drawn into a folder, which is made if it is missing."""
    if not folder:
        return
    from armid import theme

    theme.need_matplotlib()
    check_folder(folder)
    Path(folder).mkdir(parents=True, exist_ok=True)


def _check_allowed(path: str | Path, there: Path) -> None:
    """Refuse what the user has no right to write: a file that is there, or anything in its folder."""
    folder = there if there.is_dir() else there.parent
    if there.exists() and not os.access(there, os.W_OK):
        raise ArmidError(f"{path}: cannot be written (you may not change {there}); choose another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ArmidError(f"{path}: cannot be written (you may not write to {folder}); choose another place")
