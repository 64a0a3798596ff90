"""What can go wrong when signals are processed."""

from __future__ import annotations

import numpy as np

from armid.errors import ArmidError


class SignalError(ArmidError):
    """A step cannot work with its options or with the log.

    Attributes:
        step: name of the step or function.
        problem: what is wrong, with which value, and what to do.
    """

    def __init__(self, step: str, problem: str) -> None:
        """Compose "step: problem"."""
        self.step, self.problem = step, problem
        super().__init__(f"{step}: {problem}")


def check_cutoff(step: str, cutoff_hz: float, rate_hz: float, name: str = "cutoff_hz") -> None:
    """Refuse a cut-off frequency that is not between 0, or what a filter can hold, and half the sample rate."""
    if not 1e-5 * rate_hz < cutoff_hz < 0.5 * rate_hz:
        between = f"above {1e-5 * rate_hz:g} and below {0.5 * rate_hz:g} Hz, half the sample rate"
        raise SignalError(step, f"{name} is {cutoff_hz:g}; it must be {between}")


def check_whole(step: str, name: str, value: object) -> int:
    """An option that must be a whole number from 1."""
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise SignalError(step, f"{name} is {value!r}; use a whole number from 1")
    return int(value)


def plural(count: int, noun: str) -> str:
    """Such as "1 sample", "3 samples"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
