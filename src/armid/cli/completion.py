"""`armid completion SHELL`: a script that lets the shell complete commands, options, robots and files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

_BASH = """\
_armid() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands} --help --version"
    else
        case "$command" in
{cases}
        esac
    fi
    COMPREPLY=( $(compgen -W "$words" -- "$word") )
    if [ "$COMP_CWORD" -gt 1 ] && [ "${{word#-}}" = "$word" ]; then
        COMPREPLY+=( $(compgen -f -- "$word") )
    fi
}}
complete -o filenames -F _armid armid
"""
_SHELLS = ("bash", "zsh", "fish")


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "completion",
        help="print a completion script for your shell",
        description='Print a script for tab completion. bash, zsh: eval "$(armid completion bash)" (or zsh) in '
        "~/.bashrc or ~/.zshrc; fish: armid completion fish > ~/.config/fish/completions/armid.fish",
    )
    command.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.cli.main import parser

    words = dict(_words(parser()))
    if options.shell == "fish":
        sys.stdout.write("\n".join(_fish(words)) + "\n")
    else:
        zsh = "autoload -U +X bashcompinit && bashcompinit\n" if options.shell == "zsh" else ""
        cases = "\n".join(f'            {name}) words="{" ".join(items)}" ;;' for name, items in words.items())
        sys.stdout.write(zsh + _BASH.format(commands=" ".join(words), cases=cases))
    return 0


def _words(top: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    """Each command with what can follow it: its options, its own commands, and names where one is asked for."""
    for name, command in _commands(top).items():
        options = [text for action in command._actions for text in action.option_strings if text.startswith("--")]
        yield name, [*options, *_commands(command), *_names(name, command)]


def _names(name: str, command: argparse.ArgumentParser) -> list[str]:
    """What there is to choose from for the arguments of a command: data sets, papers, robots, or its own choices."""
    if name == "datasets":
        from armid.logs.public import public_logs

        return list(public_logs())
    if name == "reproduce":
        from armid.papers.reproduce import PAPERS

        return [*PAPERS, "all"]
    plain = [a for a in command._actions if not a.option_strings and not isinstance(a, argparse._SubParsersAction)]
    if any(action.dest in ("robot", "name") for action in plain):
        from armid.robot import library_names

        return list(library_names())
    return [str(choice) for action in plain for choice in action.choices or ()]


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Sub-commands of a parser; argparse keeps them in an action."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def _fish(words: dict[str, list[str]]) -> Iterator[str]:
    yield f"complete -c armid -n __fish_use_subcommand -f -a '{' '.join(words)}'"
    for name, items in words.items():
        here = f"-n '__fish_seen_subcommand_from {name}'"
        yield from (f"complete -c armid {here} -l {item[2:]}" for item in items if item.startswith("--"))
        if plain := [item for item in items if not item.startswith("--")]:
            yield f"complete -c armid {here} -a '{' '.join(plain)}'"
