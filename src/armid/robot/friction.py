"""Friction laws: torque that opposes motion, as a function of joint velocity and a few coefficients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.errors import UnknownNameError

Torque = Callable[[Array, Mapping[str, float]], Array]


@dataclass(frozen=True)
class FrictionLaw:
    """A named friction law.

    Attributes:
        name: as written in descriptions.
        coefficients: names of the coefficients, joint by joint.
        torque: friction torque [N m] at velocities [rad/s] for given coefficients.
        linear: whether the torque is linear in all coefficients.
    """

    name: str
    coefficients: tuple[str, ...]
    torque: Torque
    linear: bool = False


def _none(v: Array, c: Mapping[str, float]) -> Array:
    return np.zeros_like(v)


def _viscous(v: Array, c: Mapping[str, float]) -> Array:
    return c["fv"] * v


def _coulomb_viscous(v: Array, c: Mapping[str, float]) -> Array:
    """Swevers (3), ER-16 (3), Powerball (15)."""
    return c["fv"] * v + c["fc"] * np.sign(v)


def _stribeck(v: Array, c: Mapping[str, float]) -> Array:
    level = c["fc"] + (c["fs"] - c["fc"]) * np.exp(-np.square(v / c["vs"]))
    return c["fv"] * v + level * np.sign(v)


def _double_exponential(v: Array, c: Mapping[str, float]) -> Array:
    """PA-10 (18). A zero f4 or f6 switches its term off (joint 6 of Table II, erratum PA-9)."""
    speed = np.abs(v)
    rise = c["f3"] * np.exp(-speed / c["f4"]) if c["f4"] != 0.0 else 0.0
    with np.errstate(divide="ignore", over="ignore"):
        drop = c["f5"] * np.exp(-1.0 / (c["f6"] * speed)) if c["f6"] != 0.0 else 0.0
    return c["f1"] * v + (c["f2"] - rise - drop) * np.sign(v)


def _hyperbolic(v: Array, c: Mapping[str, float]) -> Array:
    """Powerball (16)."""
    return c["g1"] * np.tanh(c["g2"] * v) + c["g3"] * np.tanh(c["g4"] * v) + c["g5"] * v


LAWS: dict[str, FrictionLaw] = {
    law.name: law
    for law in (
        FrictionLaw("none", (), _none, linear=True),
        FrictionLaw("viscous", ("fv",), _viscous, linear=True),
        FrictionLaw("coulomb-viscous", ("fv", "fc"), _coulomb_viscous, linear=True),
        FrictionLaw("stribeck", ("fv", "fc", "fs", "vs"), _stribeck),
        FrictionLaw("double-exponential", ("f1", "f2", "f3", "f4", "f5", "f6"), _double_exponential),
        FrictionLaw("hyperbolic", ("g1", "g2", "g3", "g4", "g5"), _hyperbolic),
    )
}


def friction_law(name: str) -> FrictionLaw:
    """Return the law called `name`."""
    if name not in LAWS:
        raise UnknownNameError("friction law", name, LAWS)
    return LAWS[name]


@dataclass(frozen=True)
class Friction:
    """How friction of one joint is described: a law, and whether it has an offset and two directions."""

    law: FrictionLaw = LAWS["none"]
    offset: bool = False
    per_direction: bool = False

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """Names of the coefficients without the joint's number; `p` and `n` mark the direction."""
        names = self.law.coefficients
        if self.per_direction:
            names = tuple(f"{name}{sign}" for sign in "pn" for name in names)
        return (*names, "fo") if self.offset else names

    def torque(self, velocity: Array, coefficients: Mapping[str, float]) -> Array:
        """Friction torque [N m] at `velocity` [rad/s]."""
        if not self.per_direction:
            result = self.law.torque(velocity, coefficients)
        else:
            up = {name: coefficients[f"{name}p"] for name in self.law.coefficients}
            down = {name: coefficients[f"{name}n"] for name in self.law.coefficients}
            result = np.where(velocity >= 0.0, self.law.torque(velocity, up), self.law.torque(velocity, down))
        return result + coefficients["fo"] if self.offset else result
