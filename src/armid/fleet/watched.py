"""What is watched from day to day: friction, offsets and load loss of each joint, and mass in the hand."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.dynamics.parameters import FRICTION
from armid.fleet.recording import payload_map
from armid.torque.model import TorqueModel

PAYLOAD = "payload"
#: Start of a parameter's name: kind of change, words, and whether changes are told as a share of the arm's own value.
KINDS = {
    "fv": ("friction", "viscous friction", True),
    "fc": ("friction", "Coulomb friction", True),
    "fo": ("offset", "torque offset", False),
    "fl": ("load", "load-proportional friction", True),
    "fr": ("friction", "root-law friction", True),
    "fe": ("friction", "Stribeck friction", True),
    "fa": ("friction", "asymmetric friction", False),
}
#: Other parameters, by what their names begin with; longer beginnings first.
OTHERS = {
    "Im": "rotor inertia of joint",
    "I": "inertia of link",
    **dict.fromkeys(("mx", "my", "mz"), "first moment of link"),
    "m": "mass of link",
}
DIRECTIONS = {"p": " in positive direction", "n": " in negative direction"}


@dataclass(frozen=True, eq=False)
class Watched:
    """One quantity that is followed.

    Attributes:
        name: of the parameter, or ``payload``.
        kind: of a change in it: ``friction``, ``offset``, ``load`` or ``payload``.
        what: words, with the joint.
        joint: index; None for the payload.
        unit: of the quantity.
        relative: whether changes are told as a share of the arm's own value.
        direction: how the arm's parameters change with it, (parameters,).
    """

    name: str
    kind: str
    what: str
    joint: int | None
    unit: str
    relative: bool
    direction: Array


def watched_of(model: TorqueModel) -> tuple[Watched, ...]:
    """All that is watched on this type of arm."""
    numbers = {parameter.name: parameter.number for parameter in model.model.parameters if parameter.kind == FRICTION}
    numbers |= {name: term.joint + 1 for term in model.terms for name in term.names}
    found = []
    for index, (name, unit) in enumerate(zip(model.names, model.units, strict=True)):
        kind = KINDS.get(name[:2])
        if name not in numbers or kind is None:
            continue
        joint = numbers[name] - 1
        words = f"{kind[1]} of joint {joint + 1}{DIRECTIONS.get(name[2:3], '')}"
        found.append(Watched(name, kind[0], words, joint, unit, kind[2], np.eye(len(model.names))[index]))
    mass = payload_map(model)[:, 0]
    if np.abs(mass).max(initial=0.0) > 1e-9:
        found.append(
            Watched(PAYLOAD, PAYLOAD, "mass in the hand (as if at the tool's origin)", None, "kg", False, mass)
        )
    return tuple(found)


def in_words(name: str) -> str:
    """What a parameter is: ``Izz2`` is an inertia of link 2; empty if there are no words for it."""
    found = re.fullmatch(r"([A-Za-z]+)(\d+)", name)
    if found is None:
        return ""
    letters, number = found[1], found[2]
    if letters[:2] in KINDS:
        return f"{KINDS[letters[:2]][1]} of joint {number}{DIRECTIONS.get(letters[2:3], '')}"
    return next((f"{words} {number}" for start, words in OTHERS.items() if letters.startswith(start)), "")


def scales(watched: tuple[Watched, ...], values: Array, mean: Array) -> Array:
    """Sizes by which changes are told: the arm's own value, not below a fifth of the type's; 1 where absolute."""
    own = np.array([abs(float(one.direction @ values)) for one in watched])
    usual = np.array([abs(float(one.direction @ mean)) for one in watched])
    return np.where([one.relative for one in watched], np.maximum(own, 0.2 * usual), 1.0)


def temperatures(watched: tuple[Watched, ...], felt: Array) -> Array:
    """Temperature that concerns each watched quantity, (days, watched), from that of the joints; NaN for none."""
    result = np.full((len(felt), len(watched)), np.nan)
    for k, one in enumerate(watched):
        if one.joint is not None and one.kind in ("friction", "load"):
            result[:, k] = felt[:, one.joint]
    return result
