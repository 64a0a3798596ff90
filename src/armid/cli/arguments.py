"""The command line's own errors: one sentence that names the nearest option or command and where to read on."""

from __future__ import annotations

import argparse
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from armid.errors import nearest

_SHOWN = 12  # so many choices are told where none is near
_NUMBERS = {int: "a whole number", float: "a number"}
_NEGATIVE = re.compile(r"-\.?\d")  # a number, not an option
_REQUIRED = "the following arguments are required: "
_SURPLUS = "unrecognized arguments: "


class Parser(argparse.ArgumentParser):
    """An ArgumentParser for armid and, through it, for each of its commands.

    Attributes:
        more_help: makes the help's last paragraph when somebody asks for it: names that other packages may add.
    """

    more_help: Callable[[], str] | None = None

    def format_help(self) -> str:
        """The help."""
        if self.more_help is not None:
            self.epilog = self.more_help()
        return super().format_help()

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parse; a command tells its own unknown options, before anything that may be missing."""
        if args is None:
            import sys

            args = sys.argv[1:]
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
        elif message.startswith(_SURPLUS):
            message = f"{reprlib.repr(message.removeprefix(_SURPLUS))} is more than is taken"
        else:
            message = re.sub(r"^argument ([^:]+): ", r"\1: ", message)
        link = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{self.prog}: error: {message}{link} `{self.prog} --help`\n")

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
        if any(word in command._option_string_actions for command in commands_of(self).values()):
            return f"{shown} is an option of commands and stands after one, as in `{self.prog} COMMAND {shown}`"
        own = [name[2:] for name in self._option_string_actions if name.startswith("--")]  # dashes are alike in all
        hint = nearest(word.lstrip("-")[:80], own).replace("mean '", "mean '--")
        return f"option {shown} is not known{hint}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A choice that there is."""
        if action.choices is None or value in action.choices:
            return
        what = str(action.metavar or "/".join(action.option_strings) or action.dest)
        is_command = isinstance(action, argparse._SubParsersAction)
        what = what.lower() if is_command else what
        self.error(_about_choice(what, str(value), [str(choice) for choice in action.choices]))

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """A value of the right type."""
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            if action.type not in _NUMBERS:
                raise
            name = action.option_strings[-1] if action.option_strings else action.metavar or action.dest
            self.error(f"{name}: {reprlib.repr(arg_string)} is not {_NUMBERS[action.type]}")


def _about_choice(what: str, value: str, choices: Sequence[str]) -> str:
    if hint := nearest(value[:80], choices):
        return f"{what} {reprlib.repr(value)} is not known{hint}"
    there = f"; there are: {', '.join(choices)}" if len(choices) <= _SHOWN else ""
    return f"{what} {reprlib.repr(value)} is not known{there}"


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Sub-commands of a parser; argparse keeps them in an action."""
    found: Iterable[Any] = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: command for action in found for name, command in action.choices.items()}
