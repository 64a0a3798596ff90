"""Friction as part of a fit's model: a law on a joint, with its shapes given."""

from __future__ import annotations

from dataclasses import dataclass

from armid.arrays import Array
from armid.errors import UnknownNameError
from armid.registry import friction_laws
from armid.torque.friction.law import FrictionLaw
from armid.torque.friction.smooth import EVEN, ODD, REST

LOAD = FrictionLaw(
    name="load",
    title="Coulomb friction in proportion to the load, sign(v) |load torque|",
    columns={"fl": "load"},
    units={"fl": "1"},
)
GAIN = FrictionLaw(
    name="gain",
    title="torque in proportion to the weight that the joint carries",  # PA-10 (19)
    columns={"gw": "weight"},
    units={"gw": "1"},
    even=True,
)

#: By the names that `FrictionTerm` uses.
TERMS = {law.name: law for law in (LOAD, GAIN, ODD, EVEN, REST)}


@dataclass(frozen=True)
class FrictionTerm:
    """Friction of one joint beyond the model's own; its torque is linear in its coefficients.

    Attributes:
        law: name of a friction law, or of one in `TERMS`.
        joint: index, from 0.
        shapes: of the law, in its order.
    """

    law: str
    joint: int
    shapes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the law."""
        if self.law not in TERMS and self.law not in friction_laws:
            raise UnknownNameError("friction term", self.law, (*TERMS, *friction_laws))
        if len(self.shapes) != len(self.formula.shapes):
            raise ValueError(f"{self.law} has {len(self.formula.shapes)} shapes, not {len(self.shapes)}")

    def __str__(self) -> str:
        """Law and shapes: stribeck friction, vs = 0.12 rad/s."""
        pairs = zip(self.formula.shapes, self.shapes, strict=True)
        return ", ".join([f"{self.law} friction", *(f"{n} = {x:.4g} {self.formula.unit(n)}" for n, x in pairs)])

    @property
    def formula(self) -> FrictionLaw:
        """The law itself."""
        law: FrictionLaw = TERMS[self.law] if self.law in TERMS else friction_laws[self.law]
        return law

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its coefficients with the joint's number: ``fl2``, or ``g1_2`` where a name ends in a digit."""
        return tuple(
            f"{name}_{self.joint + 1}" if name[-1].isdigit() else f"{name}{self.joint + 1}"
            for name in self.formula.columns
        )

    @property
    def units(self) -> tuple[str, ...]:
        """Units of its coefficients."""
        return tuple(self.formula.unit(name) for name in self.formula.columns)

    @property
    def loaded(self) -> bool:
        """Whether it depends on the load."""
        return self.formula.loaded

    def columns(self, velocity: Array, load: Array | None, weight: Array | None = None) -> Array:
        """Columns (samples, coefficients) for velocities [rad/s], load torques and weight [N m] of its joint."""
        shapes = dict(zip(self.formula.shapes, self.shapes, strict=True))
        return self.formula.column_values(velocity, shapes, load, weight)
