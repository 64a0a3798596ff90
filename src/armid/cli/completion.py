"""`armid completion SHELL`: a script that lets the shell complete commands, options, their values and files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from armid.cli.arguments import commands_of

# Names of variables avoid those that mean something to zsh (words, path).
_BASH = """\
_armid() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" place="" flag="" options="" offer="" files="" before="" nth=0 i
    local IFS=$' \\t\\n' line=$'\\n'
    for (( i = 1; i < COMP_CWORD; i++ )); do
        case "${{place:+$place }}${{COMP_WORDS[i]}}" in
            {places}) place="${{place:+$place }}${{COMP_WORDS[i]}}" ;;
        esac
    done
    for (( i = COMP_CWORD - 1; i > 0; i-- )); do
        [ "${{COMP_WORDS[i]}}" = "=" ] || nth=$(( nth + 1 ))
        case "${{COMP_WORDS[i]}}" in -[a-z-]*) flag="${{COMP_WORDS[i]}}"; break ;; esac
    done
    [ "$word" = "=" ] && word=""
    case "$place" in
{commands}
    esac
    case "$word" in
        -*) offer="$options" files="" ;;
        *) case "$place $flag $nth" in
{values}
        esac ;;
    esac
    case "$word" in *,*) before="${{word%,*}}," ;; esac
    offer="${{offer// /$line}}" offer="${{offer//+/\\\\ }}" IFS="$line"
    COMPREPLY=( $(compgen -P "$before" -W "$offer" -- "${{word##*,}}") )
    if [ -n "$files" ]; then
        COMPREPLY+=( $(compgen -f -- "$word") )
    fi
}}
complete -o filenames -F _armid armid
"""
# zsh understands bash's script once both of its completion systems are there, which many have not started.
_ZSH = """\
(( $+functions[compdef] )) || { autoload -U compinit && compinit; }
autoload -U +X bashcompinit && bashcompinit
"""
_SHELLS = ("bash", "zsh", "fish")
_FORMATS = "urdf mjcf c python yaml"

#: What the value of an option can be, written down because a shell cannot wait for the packages that know it; by
#: command and option where commands differ; a plus stands for a space. Files go as well for those in `_OR_FILE`.
VALUES: Mapping[str, str] = {
    "--method": "feasible wls ols svd ml robust tls iv abc de",
    "--friction": "auto linear root stribeck asymmetry load",
    "--criterion": "d-optimal a-optimal e-optimal condition condition-raw condition-and-sigma",
    "--parameters": "all inertial payload",
    "--controller": "pid feedforward computed-torque nominal",
    "--law": "auto double-exponential hyperbolic stribeck coulomb-viscous makkar",
    "--simplify": "published none",
    "--view": "barycentric modified-newton-euler",
    "--effort": "joint+torque motor+torque current none",
    "design --to": "csv ros urscript",
    "export --to": _FORMATS,
    "run --to": f"{_FORMATS} none",
    "run --track": "pa10-figure none",
}
_OR_FILE = ("run --track", "--recipe", "--robot")
_NO_FILE = ("NAME=VALUE", "ADDRESS", "TEXT", "N", "NAME", "LIST", "SET")  # stand for no file, though they are words


@dataclass(frozen=True)
class Taken:
    """What can stand at a place: `words` to offer, and whether files can be named; `count` values, 0 for any number."""

    words: tuple[str, ...]
    files: bool
    count: int = 1


@dataclass(frozen=True)
class Place:
    """A command, or an action of one: its options, what each takes (None: nothing), and what can stand alone."""

    options: Mapping[tuple[str, ...], Taken | None]
    alone: Taken


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "completion",
        help="print a completion script for your shell",
        description='Print a script for tab completion. bash, zsh: eval "$(armid completion bash)" (or zsh) at the end '
        "of ~/.bashrc or ~/.zshrc; fish: armid completion fish > ~/.config/fish/completions/armid.fish",
    )
    command.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.cli.main import parser

    places = dict(_places(parser()))
    if options.shell == "fish":
        sys.stdout.write("\n".join(_fish(places)) + "\n")
    else:
        sys.stdout.write((_ZSH if options.shell == "zsh" else "") + _bash(places))
    return 0


def _places(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, Place]]:
    """The program itself (no name), each command, and each action of a command ("fleet identify")."""
    nested = commands_of(parser)
    plain = [a for a in parser._actions if not a.option_strings and not isinstance(a, argparse._SubParsersAction)]
    names = (*nested, *_names(name, plain))
    only_names = name in ("datasets", "reproduce") or all(action.choices is not None for action in plain)
    given = {tuple(a.option_strings): _value(name, a) for a in parser._actions if a.option_strings}
    yield name, Place(given, Taken(names, files=not only_names))
    for word, command in nested.items():
        yield from _places(command, f"{name} {word}".strip())


def _names(place: str, plain: list[argparse.Action]) -> list[str]:
    """What there is to choose from for the arguments of a command: data sets, papers, robots, or its own choices."""
    if place == "datasets":
        from armid.logs.public import public_logs

        return list(public_logs())
    if place == "reproduce":
        from armid.papers.bench import PAPERS

        return [*PAPERS, "all"]
    if any(action.dest in ("robot", "name") for action in plain):
        return _robots()
    own = ["pa10-figure"] if place == "track" else []
    return own + [str(choice) for action in plain for choice in action.choices or ()]


def _robots() -> list[str]:
    from armid.robot import library_names

    return list(library_names())


def _value(place: str, action: argparse.Action) -> Taken | None:
    """What an option takes; None for nothing, or for a number that may be left out."""
    if action.nargs in (0, "?"):
        return None
    count = 0 if action.nargs in ("+", "*") else action.nargs if isinstance(action.nargs, int) else 1
    flag = action.option_strings[-1]
    key = f"{place} {flag}" if f"{place} {flag}" in VALUES else flag
    if action.choices is not None:
        return Taken(tuple(str(choice) for choice in action.choices), files=False, count=count)
    if flag == "--recipe":
        from armid.logs.recipe import recipe_names

        return Taken(recipe_names(), files=True, count=count)
    if flag == "--robot":
        return Taken(tuple(_robots()), files=True, count=count)
    if key in VALUES and action.metavar != "FILE":
        return Taken(tuple(VALUES[key].split()), files=key in _OR_FILE, count=count)
    return Taken((), files=action.type not in (int, float) and action.metavar not in _NO_FILE, count=count)


def _bash(places: Mapping[str, Place]) -> str:
    commands, values = [], []
    for name, place in places.items():
        flags = " ".join(text for texts in place.options for text in texts if text.startswith("--"))
        alone, files = " ".join(place.alone.words), "1" if place.alone.files else ""
        if not alone and not files:
            alone = "$options"  # nothing can stand here but options
        commands.append(f'        "{name}") options="{flags}"; offer="{alone}" files="{files}" ;;')
        for texts, taken in place.options.items():
            if taken is not None:
                nth = ' "*' if taken.count == 0 else f' "[1-{taken.count}]' if taken.count > 1 else ' 1"'
                cases = "|".join(f'"{name} {text}{nth}' for text in texts)
                files = "1" if taken.files else ""
                values.append(f'            {cases}) offer="{" ".join(taken.words)}" files="{files}" ;;')
    names = "|".join(f'"{name}"' for name in places if name)
    return _BASH.format(places=names, commands="\n".join(commands), values="\n".join(values))


def _fish(places: Mapping[str, Place]) -> Iterator[str]:
    for name, place in places.items():
        here = f"-n '{_fish_condition(name, places)}'"
        if not place.alone.files:
            yield f"complete -c armid {here} -f"
        if place.alone.words:
            yield f"complete -c armid {here} -a '{_fish_words(place.alone)}'"
        for texts, taken in place.options.items():
            flags = " ".join(f"-l {text[2:]}" if text.startswith("--") else f"-s {text[1:]}" for text in texts)
            takes = "" if taken is None else " -r" if taken.files else " -x"
            words = f" -a '{_fish_words(taken)}'" if taken is not None and taken.words else ""
            yield f"complete -c armid {here} {flags}{takes}{words}"


def _fish_words(taken: Taken) -> str:
    return " ".join(taken.words).replace("+", "\\ ")


def _fish_condition(name: str, places: Mapping[str, Place]) -> str:
    """That the words typed so far lead to a place; a name can be a command and an action of another one."""
    if not name:
        return "__fish_use_subcommand"
    parts = [f"__fish_seen_subcommand_from {word}" for word in name.split()]
    within = [other.removeprefix(f"{name} ") for other in places if other.startswith(f"{name} ")]
    if within:
        parts.append(f"not __fish_seen_subcommand_from {' '.join(within)}")
    outer = sorted({other.split()[0] for other in places if other.endswith(f" {name}")})
    if outer:
        parts.append(f"not __fish_seen_subcommand_from {' '.join(outer)}")
    return "; and ".join(parts)
