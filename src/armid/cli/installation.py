"""`armid check` and `armid completion SHELL`: the installation."""

from __future__ import annotations

import argparse
import sys
import zlib
from typing import Any

from armid.cli.arguments import Argument, Parser, arg, commands_of, offered
from armid.cli.options import command, finish

_SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


@command(
    "check",
    "the state of the installation",
    "Say which extras are installed, whether the numeric kernels are compiled and right, which BLAS is used, and "
    "whether MuJoCo can simulate and draw. Exit code 1 if something that is installed does not work.",
)
def check(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.run.installation import examine_installation

    found = examine_installation()
    width = max(len(item.name) for item in found)
    marks = {"ok": "ok", "absent": "--", "broken": "!!"}
    good = all(item.good for item in found)
    lines = (f"{marks[item.state]} {item.name:<{width}}  {item.detail}" for item in found)
    return finish(options, {"good": good, "items": [vars(item) for item in found]}, lines, good=good)


@command(
    "completion",
    "print a completion script for your shell",
    'Print a script for tab completion. bash, zsh: eval "$(armid completion bash)" (or zsh) at the end of ~/.bashrc or '
    "~/.zshrc; fish: armid completion fish > ~/.config/fish/completions/armid.fish",
    arg("shell SHELL", ", ".join(_SHELLS), choices=_SHELLS),
    json=False,
)
def completion(options: argparse.Namespace) -> int:
    """Run the command."""
    import shtab

    _complete(options.root)
    sys.stdout.write(shtab.complete(options.root, options.shell) + "\n")
    return 0


def _complete(parser: Parser) -> None:
    """Give every action of a parser and its commands what shtab needs: names to choose from, or that it is a file."""
    for action in parser.fill()._actions:
        declared: Argument | None = vars(action).get("declared")
        if declared is None or action.nargs == 0 or action.choices is not None:
            continue
        words = [word for word in offered(declared.values) if " " not in word]  # which no shell keeps as one
        if declared.file and words:
            vars(action)["complete"] = _words_or_files(words)
        elif declared.file:
            vars(action)["complete"] = _files()
        elif words:
            action.choices = words
    for nested in commands_of(parser).values():
        _complete(nested)


def _files() -> dict[str, Any]:
    import shtab

    return dict(shtab.FILE)


def _words_or_files(words: list[str]) -> dict[str, Any]:
    """Completion of names, or of a file."""
    line = " ".join(words)
    name = f"_armid_file_{zlib.crc32(line.encode()):x}"
    script = f'{name}() {{\n  compgen -W "{line}" -- "$1"\n  compgen -f -- "$1"\n}}'
    return {
        **_files(),
        "bash": name,
        "zsh": f"{{compadd {line}; _files}}",
        "fish": f"{line} {_files()['fish']}",
        "preamble": {"bash": script},
    }
