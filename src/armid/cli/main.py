"""Entry point: parses arguments, runs a command, turns errors into one sentence and an exit code."""

from __future__ import annotations

import atexit
import gc
import logging
import multiprocessing
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from armid._version import __version__
from armid.cli import about, design, fits, friction, procedure, recordings, robots, single_joint, use
from armid.cli.arguments import Parser
from armid.cli.display import SILENT_S, Display
from armid.cli.options import Command
from armid.errors import ArmidError, ArmidWarning
from armid.progress import watch_progress

DONE, NEGATIVE, BAD_INPUT = 0, 1, 2
_COMMANDS: tuple[Command, ...] = (
    *(robots.robots, robots.new, robots.model, design.design),
    *(recordings.simulate, recordings.record, recordings.recipe, recordings.inspect),
    *(fits.identify, fits.validate, fits.predict, fits.audit, use.payload, use.gains, use.observe, use.track),
    *(use.export, procedure.report, procedure.run, procedure.fleet, single_joint.warmup, procedure.studio, fits.update),
    *(friction.friction, friction.load_friction, about.reproduce, about.datasets, about.check, about.completion),
)


def parser() -> Parser:
    """The whole command line."""
    result = Parser(
        prog="armid",
        description="Find out how a robot arm really moves: from a description and recorded motion to a dynamic model.",
        epilog="`armid COMMAND --help` explains a command. Start with: armid robots; armid model pa10",
    )
    result.add_argument("--version", action="version", version=f"armid {__version__}")
    commands = result.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_to(commands)
    result.set_defaults(root=result)  # for `armid completion`
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run armid with `arguments` (default: the process's own); returns the exit code."""
    atexit.register(gc.freeze)  # at the end of the process, nothing is searched for garbage any more
    os.environ.setdefault("MUJOCO_GL", "disable")  # nothing is rendered: MuJoCo need not start a process to look around
    try:
        options = parser().parse_args(arguments)
    except ArmidError as error:
        return _refused(error)
    _speak(options.quiet)
    silent = options.quiet or getattr(options, "json", False)
    try:
        with Display(after_s=SILENT_S, stay=False) as shown, watch_progress(None if silent else shown):
            code: int = options.run(options)
        sys.stdout.flush()
    except ArmidError as error:
        return _refused(error)
    except BrokenPipeError:
        # The reader of our output has gone (`armid model pa10 | head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        place, reason = error.filename or "the result", error.strerror or error
        return _refused(f"{place}: cannot be read or written ({reason})")
    except MemoryError as error:
        return _refused(f"this needs more memory than there is ({error}); ask for less at once")
    except KeyboardInterrupt:
        start = "\r\x1b[K" if sys.stderr.isatty() else ""
        on = "; the same command goes on from here" if options.run.command.resumes else ""
        sys.stderr.write(f"{start}armid: interrupted{on}\n")
        for process in multiprocessing.active_children():  # left by an interruption in their start; all would wait
            process.terminate()
        return 130
    return code


def _refused(problem: object) -> int:
    """Say what is wrong; the exit code."""
    sys.stderr.write(f"armid: error: {problem}\n")
    return BAD_INPUT


def _speak(quiet: bool) -> None:
    """Warnings and notes go to standard error, one line each, or nowhere."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("armid: %(message)s"))
    log = logging.getLogger("armid")
    log.handlers = [logging.NullHandler() if quiet else handler]
    log.propagate = False
    warnings.simplefilter("ignore" if quiet else "always", ArmidWarning)
    said: set[str] = set()  # a file may be read many times

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if str(message) not in said:
            said.add(str(message))
            sys.stderr.write(f"armid: warning: {message}\n")

    warnings.showwarning = show
