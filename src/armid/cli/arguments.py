"""What commands take: arguments declared one by one, filled in when asked for, and errors of one sentence."""

from __future__ import annotations

import argparse
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from armid.errors import ArmidError, nearest

_SHOWN = 12  # so many choices are listed where none is near
_NUMBERS = {int: "a whole number", float: "a number"}
_LARGEST = 1e18  # numbers beyond it, infinite ones and those that are none are slips
#: Least and most of numbers with a unit; seconds up to four months.
_RANGES = {"HZ": (1e-3, 1e6), "S": (0.0, 1e7), "SHARE": (0.0, 1.0), "NM": (0.0, 1e6), "V": (0.0, 1e2), "G": (-1e2, 1e2)}
_NEGATIVE = re.compile(r"-\.?\d")  # a number, not an option
_REQUIRED = "the following arguments are required: "
_SURPLUS = "unrecognized arguments: "
_READ = ("FILE", "FIT", "LOG", "PATH", "PLAN", "ROBOT")  # stand for files that a command reads


@dataclass(frozen=True)
class Argument:
    """An argument or option of a command, as `arg` declares it.

    Attributes:
        names: of an option, or the one of an argument.
        settings: for argparse.
        old: earlier spellings, still understood.
        values: words and ``module:name`` of what lists them, see `offered`.
        file: ``read``, ``written`` or ``folder`` (written to); empty where it names no file.
        least, most: range of the numbers that are taken.
    """

    names: tuple[str, ...]
    settings: Mapping[str, Any]
    old: tuple[str, ...] = ()
    values: str = ""
    file: str = ""
    least: float = -math.inf
    most: float = math.inf

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Enter it; what argparse has no place for stays with its action."""
        action = parser.add_argument(*self.names, **self.settings)
        vars(action)["declared"] = self
        for name in self.old:
            hidden = {"dest": action.dest, "default": argparse.SUPPRESS, "help": argparse.SUPPRESS}
            vars(parser.add_argument(name, **{**self.settings, **hidden}))["declared"] = self


def arg(
    spec: str, help: str, kind: type | None = None, default: Any = None, *, file: str = "", **more: Any
) -> Argument:
    """Declare an argument: ``arg("--rate HZ", "sample rate", default=150.0)``, ``arg("logs LOG...", "log files")``.

    Args:
        spec: names of an option, or the attribute of an argument in small letters; then what people give in capitals:
            ``X Y Z`` for three values, ``[X]`` for none or one, ``X...`` for one or more, ``[X...]`` for any number.
            An option without it is a switch.
        help: ``{values}`` in it is replaced by the values when the help is shown; a default is added.
        kind: int or float; that of the default if there is one.
        default: value where nothing is given.
        file: ``written`` or ``folder`` for what the command writes.
        more: `old`, `values`, `least`, `most` (see `Argument`; units have their own), and settings of argparse.
    """
    words = spec.split()
    names = tuple(word for word in words if word[0] == "-" or word.islower())
    shown = [word for word in words if word not in names]
    old, values = tuple(more.pop("old", "").split()), more.pop("values", "")
    given = {end: more.pop(end) for end in ("least", "most") if end in more}
    settings: dict[str, Any] = {"help": help, "default": default, **more}
    if not shown and "action" not in settings:
        return Argument(names, {**settings, "action": "store_true"}, old)
    if kind is not None or isinstance(default, int | float):
        settings["type"] = kind or type(default)
    if len(shown) > 1:
        return Argument(names, {**settings, "nargs": len(shown), "metavar": tuple(shown)}, old, values, **given)
    name = shown[0].strip("[].")
    number = {"...]": "*", "...": "+", "]": "?"}.get(shown[0].removeprefix(f"[{name}").removeprefix(name))
    settings |= {"metavar": name} | ({} if number is None else {"nargs": number})
    least, most = _RANGES.get(name, (-math.inf, math.inf))
    ends = {"least": least, "most": most, **given}
    return Argument(names, settings, old, values, file or ("read" if name in _READ else ""), **ends)


def offered(values: str) -> list[str]:
    """Words, and the names that ``module:name`` lists (a mapping, a sequence, or a function that returns one)."""
    found: list[str] = []
    for word in values.split():
        module, colon, name = word.partition(":")
        there = getattr(import_module(module), name) if colon else [word]
        found += map(str, there() if callable(there) and not isinstance(there, Iterable) else there)
    return found


class _Formatter(argparse.HelpFormatter):
    """Help with the values and defaults there are."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text, default = action.help or "", action.default
        declared = vars(action).get("declared")
        if declared is not None and "{values}" in text:
            text = text.replace("{values}", ", ".join(offered(declared.values)).replace("%", "%%"))
        unsaid = default is None or default is False or default == [] or default == argparse.SUPPRESS
        if declared is None or unsaid or "(default" in text:
            return text
        return f"{text} (default: {default:g})" if isinstance(default, float) else f"{text} (default: {default})"


class Parser(argparse.ArgumentParser):
    """An ArgumentParser for armid and, through it, for each of its commands, whose arguments come when asked for."""

    def __init__(self, *, declared: Sequence[Argument] = (), more: Callable[[], str] | None = None, **options: Any):
        super().__init__(formatter_class=_Formatter, **options)
        self._declared, self._more, self._greedy = list(declared), more, list[str]()

    def fill(self) -> Parser:
        """Enter the declared arguments."""
        while self._declared:
            self._declared.pop(0).add_to(self)
        return self

    def format_help(self) -> str:
        """Help of a command, with what only it needs to know."""
        if self._more is not None:
            self.epilog = self._more()
        self.fill()
        return super().format_help()

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse; a command reports its own unknown options, before anything that may be missing."""
        if args is None:
            import sys

            args = sys.argv[1:]
        self.fill()
        options = [self._option_string_actions.get(str(word)) for word in args]
        self._greedy = [option.option_strings[-1] for option in options if option and option.nargs in ("+", "*")]
        for word in self._unknown(args):
            self.error(self._about_option(word))
        found, surplus = super().parse_known_args(args, namespace)
        if surplus:
            self.error(_SURPLUS + " ".join(surplus))
        return found, surplus

    def error(self, message: str) -> NoReturn:
        """End with code 2 and one sentence."""
        message = " ".join(message.split())
        if message.startswith(_REQUIRED):
            names = message.removeprefix(_REQUIRED)
            message = f"{names.replace(', ', ' and ')} {'are' if ', ' in names else 'is'} missing"
            if self._greedy:
                message += f" (it stands before {self._greedy[-1]}, which takes all words after it)"
        elif message.startswith(_SURPLUS):
            message = f"{reprlib.repr(message.removeprefix(_SURPLUS))} is more than is taken"
        else:
            message = re.sub(r"^argument ([^:]+): ", r"\1: ", message)
        link = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{self.prog}: error: {message}{link} `{self.prog} --help`\n")

    def files(self, options: argparse.Namespace, kind: str) -> list[str]:
        """Files of a kind (``read``, ``written``, ``folder``) that the options of this command name."""
        found: list[str] = []
        for action in self._actions:
            declared, value = vars(action).get("declared"), getattr(options, action.dest, None)
            if declared is not None and declared.file == kind and value:
                found += value if isinstance(value, list) else [value]
        return found

    def _unknown(self, args: Sequence[str]) -> Iterator[str]:
        """Options among `args` that are none of this parser's; those of a sub-command are its own affair."""
        nested = bool(commands_of(self))
        words = [str(word) for word in args]
        if {"-h", "--help"} & set(words):
            return
        for word in words:
            if word == "--" or (nested and not word.startswith("-")):
                return
            if len(word) < 2 or not word.startswith("-") or " " in word or _NEGATIVE.match(word):
                continue
            name = word.partition("=")[0] if word.startswith("--") else word[:2]
            if not any(known.startswith(name) for known in self._option_string_actions):
                yield word.partition("=")[0]

    def _about_option(self, word: str) -> str:
        shown = reprlib.repr(word)[1:-1]
        if any(word in command.fill()._option_string_actions for command in commands_of(self).values()):
            return f"{shown} is an option of commands and stands after one, as in `{self.prog} COMMAND {shown}`"
        own = [name[2:] for name in self._option_string_actions if name.startswith("--")]  # dashes are alike in all
        hint = nearest(word.lstrip("-")[:80], own).replace("mean '", "mean '--")
        return f"option {shown} is not known{hint}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A choice that there is."""
        if action.choices is None or value in action.choices:
            return
        what = str("/".join(action.option_strings) or action.metavar or action.dest)
        what = what.lower() if isinstance(action, argparse._SubParsersAction) else what
        choices = [str(choice) for choice in action.choices]
        hint = nearest(str(value)[:80], choices)
        there = f"; there are: {', '.join(choices)}" if not hint and len(choices) <= _SHOWN else ""
        self.error(f"{what} {reprlib.repr(str(value))} is not known{hint}{there}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """A value of the right type; numbers are finite."""
        if action.type not in _NUMBERS:
            return super()._get_value(action, arg_string)
        name = action.option_strings[-1] if action.option_strings else action.metavar or action.dest
        try:
            value = super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            self.error(f"{name}: {reprlib.repr(arg_string)} is not {_NUMBERS[action.type]}")
        declared = vars(action).get("declared")
        if not abs(value) <= _LARGEST:
            self.error(f"{name}: {reprlib.repr(arg_string)} is not a number of any use here")
        if declared is not None and not declared.least <= value <= declared.most:
            limit = f"least {declared.least:g}" if value < declared.least else f"most {declared.most:g}"
            raise ArmidError(f"{name} {arg_string}: must be at {limit}")
        return value


def commands_of(parser: argparse.ArgumentParser) -> dict[str, Parser]:
    """Sub-commands of a parser; argparse keeps them in an action."""
    found: Iterable[Any] = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: command for action in found for name, command in action.choices.items()}
