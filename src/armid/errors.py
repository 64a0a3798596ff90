"""Errors and warnings of armid. Each message is one sentence that names the thing and the way out."""

import reprlib
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from armid.escaping import one_line


class ArmidError(Exception):
    """Base of all errors that a user can cause and mend."""

    def __str__(self) -> str:
        """One line, whatever the names in it are."""
        return one_line(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes as message and attributes: constructors of subclasses take other arguments."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[ArmidError], message: tuple[Any, ...]) -> ArmidError:
    """The error of another process."""
    error = kind.__new__(kind)
    error.args = message
    return error


class SourceError(ArmidError):
    """What was read cannot be used.

    Attributes:
        source: file or library name.
        field: path of the field inside it, such as ``kinematics.rows[2]``; empty for the whole file.
        problem: what is wrong and what to do.
    """

    def __init__(self, source: str, field: str, problem: str) -> None:
        """Compose "source: field: problem"."""
        self.source, self.field, self.problem = source, field, problem
        super().__init__(": ".join(part for part in (source, field, problem) if part))


class DescriptionError(SourceError):
    """A robot description cannot be used."""


class UnknownNameError(ArmidError):
    """A name is not among the valid ones.

    Attributes:
        name: the name that was given.
        valid: the names there are.
    """

    def __init__(self, what: str, name: str, valid: Iterable[str]) -> None:
        """Say what kind of thing `name` should have been, the nearest valid name and all of them."""
        self.name, self.valid = name, tuple(valid)
        shown, hint = reprlib.repr(name), nearest(name[:80], self.valid)
        link = " There are" if hint else "; there are"
        super().__init__(f"{what} {shown} is not known{hint}{link}: {', '.join(self.valid)}")


class DataShapeError(ArmidError):
    """Arrays of motion or torque do not fit the robot or each other."""


class MissingExtraError(ArmidError):
    """An optional dependency is needed.

    Attributes:
        extra: name of the extra to install.
    """

    def __init__(self, what: str, extra: str) -> None:
        """Say what needs it and how to install it."""
        self.extra = extra
        super().__init__(f"the extra {extra!r} is needed for {what}; install it with: pip install 'armid[{extra}]'")


class ArmidWarning(UserWarning):
    """Something the user should know, but that does not stop the work."""


class ImpossibleInertiaWarning(ArmidWarning):
    """A link of a description has inertial parameters that no body can have."""


class RoundedAngleWarning(ArmidWarning):
    """A description holds angles that were rounded, such as 1.5708 for a right angle."""


def nearest(name: str, valid: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ", did you mean ...?" for the closest valid name that is at least as like as `cutoff`, or nothing."""
    close = get_close_matches(name, list(valid), n=1, cutoff=cutoff)
    return f", did you mean {close[0]!r}?" if close else ""
