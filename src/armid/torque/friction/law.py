"""What a friction law is: coefficients, and a column of torque for each of those that are linear."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.registry import friction_laws
from armid.torque.expression import Expression

Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class FrictionLaw:
    """Torque that opposes motion, linear in some coefficients and shaped by the others.

    The drive overcomes sign(qd) times the sum of coefficient times column, with the columns written as formulas in the
    speed v = |qd| > 0 [rad/s or m/s] and the shapes. From them follow the torque, its C and NumPy text, what the
    virtual robot does, and what is fitted; a law that no formula can express overrides
    `column_values` and the two texts.

    Attributes:
        name: as written in descriptions and on the command line.
        title: what it is, in a line, with its source.
        columns: formula of each linear coefficient.
        shapes: the other coefficients, all positive, each with a function of the slowest and the fastest speed of some
            data that gives the interval in which such data can show it.
        units: of the coefficients, for a joint that turns; N m where nothing is said.
        order: all coefficients in the order of the published formula; columns first if not given.
        even: the torque does not change its sign with the velocity.
        per_direction: fitted to each direction of motion on its own unless asked otherwise; None: a test decides.
        ordered: the two shapes are exchangeable; the first is at least twice the second, or their terms cancel.
        contains: laws that are this one with terms switched off.
        fixed: coefficients that are zero by definition.
        auto: whether `armid friction` tries it unasked.
    """

    name: str
    title: str
    columns: Mapping[str, str]
    shapes: Mapping[str, Callable[[float, float], Range]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    even: bool = False
    per_direction: bool | None = None
    ordered: bool = False
    contains: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    auto: bool = False

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of all coefficients, without the joint's number."""
        return self.order or (*self.columns, *self.shapes)

    @property
    def linear(self) -> bool:
        """Whether the torque is linear in all coefficients."""
        return not self.shapes

    @cached_property
    def formulas(self) -> dict[str, Expression]:
        """The columns, ready to be evaluated."""
        return {name: Expression(text, ("v", "load", "weight", *self.shapes)) for name, text in self.columns.items()}

    @cached_property
    def loaded(self) -> bool:
        """Whether the torque depends on the joint's load."""
        return any("load" in formula.used for formula in self.formulas.values())

    @cached_property
    def weighted(self) -> bool:
        """Whether the torque depends on the weight that the joint carries."""
        return any("weight" in formula.used for formula in self.formulas.values())

    @property
    def viscous(self) -> str | None:
        """Name of the coefficient that is proportional to speed, which grease changes; None without."""
        return next((name for name, text in self.columns.items() if text == "v"), None)

    def unit(self, name: str, *, prismatic: bool = False) -> str:
        """Unit of a coefficient; forces and metres for a joint that slides."""
        unit = self.units.get(name, "N m")
        return unit.replace("N m", "N").replace("rad", "m") if prismatic else unit

    def column_values(
        self,
        velocity: Array,
        shapes: Mapping[str, float | Array],
        load: Array | None = None,
        weight: Array | None = None,
    ) -> Array:
        """Columns (samples, linear coefficients) at velocities [rad/s] and, where they count, torques [N m].

        Args:
            velocity: of the joint.
            shapes: by name.
            load: rigid-body torque of the joint; formulas see its size.
            weight: torque that holds the arm against gravity.
        """
        if (self.loaded and load is None) or (self.weighted and weight is None):
            raise ValueError(f"the friction {self.name!r} needs the load torque")
        v = np.asarray(velocity, dtype=float)
        values: dict[str, Any] = {"v": np.abs(v), **shapes}
        if load is not None:
            values["load"] = np.abs(load)
        if weight is not None:
            values["weight"] = weight
        way = np.sign(v)
        result = np.empty((*v.shape, len(self.columns)))
        for k, formula in enumerate(self.formulas.values()):
            column = formula(**values)
            result[..., k] = column if self.even else np.where(v == 0.0, 0.0, way * column)
        return result

    def torque(self, velocity: Array, coefficients: Mapping[str, float], load: Array | None = None) -> Array:
        """Friction torque [N m] at velocities [rad/s]."""
        shapes = {name: coefficients[name] for name in self.shapes}
        columns = self.column_values(velocity, shapes, load)
        result: Array = np.zeros(columns.shape[:-1])
        for k, name in enumerate(self.columns):
            result += coefficients[name] * columns[..., k]
        return result

    def slopes(self, velocity: Array, coefficients: Mapping[str, float]) -> Array:
        """Derivative of the torque by each coefficient, (samples, coefficients); 0 for a term that is switched off."""
        v = np.asarray(velocity, dtype=float)
        shapes = {name: coefficients[name] for name in self.shapes}
        known = dict(zip(self.columns, np.moveaxis(self.column_values(v, shapes), -1, 0), strict=True))
        for name, value in shapes.items():
            step = 1e-5 * abs(value)
            sides = [self.torque(v, {**coefficients, name: value + sign * step}) for sign in (1.0, -1.0)]
            known[name] = (sides[0] - sides[1]) / (2.0 * step) if step else np.zeros_like(v)
        return np.stack([known.get(name, np.zeros_like(v)) for name in self.coefficients], axis=-1)

    def ranges(self, slowest: float, fastest: float) -> tuple[Range, ...]:
        """Interval of each shape that data between two speeds can show."""
        return tuple(limits(slowest, fastest) for limits in self.shapes.values())

    def c_text(self, coefficients: Mapping[str, float], load: str = "0.0") -> str:
        """C99 expression of the torque at speed ``v`` > 0; uses exp, tanh, sqrt, log, atan and pow at most."""
        return self._text(coefficients, load, "c")

    def numpy_text(self, coefficients: Mapping[str, float], load: str = "0.0") -> str:
        """NumPy expression of the torque at speeds ``v`` > 0."""
        return self._text(coefficients, load, "numpy")

    def _text(self, coefficients: Mapping[str, float], load: str, language: str) -> str:
        words = {"v": "v", "load": load, **{name: repr(float(coefficients[name])) for name in self.shapes}}
        parts = []
        for name, formula in self.formulas.items():
            value = float(coefficients[name])
            if value != 0.0:
                parts.append(f"{value!r} * {formula.c(words) if language == 'c' else formula.numpy(words)}")
        return " + ".join(parts) or "0.0 * v"


def friction_law(name: str) -> FrictionLaw:
    """The law called `name`, armid's own or one that was added."""
    law: FrictionLaw = friction_laws[name]
    return law


def bending_speed(slowest: float, fastest: float) -> Range:
    """Range of a speed at which something bends: from the slowest measured speed to half the fastest."""
    return slowest, 0.5 * fastest


def steepness(slowest: float, fastest: float) -> Range:
    """Range of g in tanh(g v): bending at the fastest speed at the latest, or saturated before the slowest."""
    return 1.0 / fastest, 8.0 / slowest


def delay(slowest: float, fastest: float) -> Range:
    """Range of f in exp(-1 / (f v)): it must rise somewhere between the slowest and the fastest speed."""
    return 0.5 / fastest, 2.0 / slowest
