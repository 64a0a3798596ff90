"""Laws that curves are fitted with: linear in some coefficients, shaped by the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.errors import UnknownNameError
from armid.torque.friction.law import friction_law

Columns = Callable[[Array, Array], Array]
Range = tuple[float, float]


@dataclass(frozen=True)
class Law:
    """A law y(x) whose coefficients are linear but for a few positive shapes.

    Attributes:
        name: as in robot descriptions, where it is a friction law.
        coefficients: names, in the order of the published formula.
        shapes: those that enter non-linearly, all positive.
        columns: (x, shapes) to the matrix (points, linear coefficients).
        gather: (linear coefficients, shapes) to all coefficients in order.
        ranges: (least and largest |x|) to the interval in which each shape can be seen in the data.
        value: (x, coefficients) to y.
        per_direction: fitted to each direction of motion on its own unless asked otherwise; None: a test decides.
        ordered: the two shapes are exchangeable; the first is at least twice the second, or their terms cancel.
    """

    name: str
    coefficients: tuple[str, ...]
    shapes: tuple[str, ...]
    columns: Columns
    gather: Callable[[Array, Array], Array]
    ranges: Callable[[float, float], tuple[Range, ...]]
    value: Callable[[Array, Mapping[str, float]], Array]
    per_direction: bool | None = None
    ordered: bool = False

    @property
    def least_points(self) -> int:
        """Different values of x needed: one more than there are coefficients."""
        return len(self.coefficients) + 1


def _line(v: Array, _: Array) -> Array:
    return np.column_stack([v, np.sign(v)])


def _stribeck(v: Array, shape: Array) -> Array:
    return np.column_stack([v, np.sign(v), np.sign(v) * np.exp(-np.square(v / shape[0]))])


def _stribeck_exponential(v: Array, shape: Array) -> Array:
    return np.column_stack([v, np.sign(v), -np.sign(v) * np.exp(-np.abs(v) / shape[0])])


def _second_exponential(v: Array, shape: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.column_stack([v, np.sign(v), -np.sign(v) * np.exp(-1.0 / (shape[0] * np.abs(v)))])


def _double_exponential(v: Array, shape: Array) -> Array:
    first = _stribeck_exponential(v, shape[:1])
    return np.column_stack([first, _second_exponential(v, shape[1:])[:, 2]])


def _hyperbolic(v: Array, shape: Array) -> Array:
    return np.column_stack([np.tanh(shape[0] * v), np.tanh(shape[1] * v), v])


def _makkar(v: Array, shape: Array) -> Array:
    steep, drop, level = np.tanh(np.multiply.outer(shape, v))
    return np.column_stack([steep - drop, level, v])


def _makkar_torque(v: Array, c: Mapping[str, float]) -> Array:
    """Makkar et al. (2005): g1 (tanh g2 v - tanh g3 v) + g4 tanh g5 v + g6 v."""
    drop = c["g1"] * (np.tanh(c["g2"] * v) - np.tanh(c["g3"] * v))
    return drop + c["g4"] * np.tanh(c["g5"] * v) + c["g6"] * v


def _decay(t: Array, shape: Array) -> Array:
    return np.column_stack([np.ones_like(t), np.exp(-t / shape[0])])


def _decay_value(t: Array, c: Mapping[str, float]) -> Array:
    return c["a"] + c["b"] * np.exp(-t / c["T"])


def _speeds(low: float, high: float) -> Range:
    """A velocity at which something bends: from the slowest measured speed to half the fastest."""
    return low, 0.5 * high


def _steepness(low: float, high: float) -> Range:
    """A factor g in tanh(g v): bending at the fastest speed at the latest, or saturated before the slowest."""
    return 1.0 / high, 8.0 / low


def _delay(low: float, high: float) -> Range:
    """A factor f in exp(-1 / (f v)): it must rise somewhere between the slowest and the fastest speed."""
    return 0.5 / high, 2.0 / low


def _torque(name: str) -> Callable[[Array, Mapping[str, float]], Array]:
    return friction_law(name).torque


LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        # Swevers (3), Powerball (15)
        Law(
            "coulomb-viscous",
            ("fv", "fc"),
            (),
            _line,
            lambda x, s: x,
            lambda low, high: (),
            _torque("coulomb-viscous"),
        ),
        Law(
            "stribeck",
            ("fv", "fc", "fs", "vs"),
            ("vs",),
            _stribeck,
            lambda x, s: np.array([x[0], x[1], x[1] + x[2], s[0]]),
            lambda low, high: (_speeds(low, high),),
            _torque("stribeck"),
        ),
        # PA-10 (18)
        Law(
            "double-exponential",
            ("f1", "f2", "f3", "f4", "f5", "f6"),
            ("f4", "f6"),
            _double_exponential,
            lambda x, s: np.array([x[0], x[1], x[2], s[0], x[3], s[1]]),
            lambda low, high: (_speeds(low, high), _delay(low, high)),
            _torque("double-exponential"),
            per_direction=True,
        ),
        # PA-10 (18) with f6 = 0, its second exponential switched off (erratum PA-9): Stribeck's law, nested in (18)
        Law(
            "single-exponential",
            ("f1", "f2", "f3", "f4", "f5", "f6"),
            ("f4",),
            _stribeck_exponential,
            lambda x, s: np.array([x[0], x[1], x[2], s[0], 0.0, 0.0]),
            lambda low, high: (_speeds(low, high),),
            _torque("double-exponential"),
            per_direction=True,
        ),
        # Powerball (16); the steep term first
        Law(
            "hyperbolic",
            ("g1", "g2", "g3", "g4", "g5"),
            ("g2", "g4"),
            _hyperbolic,
            lambda x, s: np.array([x[0], s[0], x[1], s[1], x[2]]),
            lambda low, high: (_steepness(low, high),) * 2,
            _torque("hyperbolic"),
            per_direction=False,
            ordered=True,
        ),
        # The six-parameter parent of Powerball (16), which can show a Stribeck effect
        Law(
            "makkar",
            ("g1", "g2", "g3", "g4", "g5", "g6"),
            ("g2", "g3", "g5"),
            _makkar,
            lambda x, s: np.array([x[0], s[0], s[1], x[1], s[2], x[2]]),
            lambda low, high: (_steepness(low, high),) * 3,
            _makkar_torque,
            per_direction=False,
        ),
        # Mean torque against time while an arm gets warm (Powerball, Fig. 3): a + b exp(-t / T)
        Law(
            "decay",
            ("a", "b", "T"),
            ("T",),
            _decay,
            lambda x, s: np.array([x[0], x[1], s[0]]),
            lambda low, high: ((0.02 * high, 3.0 * high),),
            _decay_value,
            per_direction=False,
        ),
    )
}

FRICTION_LAWS = tuple(name for name in LAWS if name not in ("decay", "single-exponential"))
FIXED_BY_NATURE = {"single-exponential": ("f5", "f6")}


def law(name: str) -> Law:
    """The law called `name`."""
    if name not in LAWS:
        raise UnknownNameError("law", name, LAWS)
    return LAWS[name]


def nested(small: str, large: str) -> bool:
    """Whether law `small` is law `large` with some terms switched off."""
    inside = {
        "coulomb-viscous": {"stribeck", "single-exponential", "double-exponential"},
        "single-exponential": {"double-exponential"},
        "hyperbolic": {"makkar"},
    }
    return small == large or large in inside.get(small, set())
