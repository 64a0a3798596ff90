"""Friction in addition to viscous and Coulomb friction, one coefficient each, among which a search chooses."""

from armid.errors import UnknownNameError
from armid.registry import friction_laws
from armid.torque.friction.law import FrictionLaw
from armid.torque.friction.smooth import EVEN, ODD
from armid.torque.friction.stribeck import EXCESS

ROOT = FrictionLaw(
    name="root",
    title="viscous friction that grows less than the speed, sign(v) sqrt|v|",
    columns={"fr": "sqrt(v)"},
    units={"fr": "N m (s/rad)^0.5"},
)
ASYMMETRY = FrictionLaw(
    name="asymmetry",
    title="viscous friction that differs by direction, |v|",
    columns={"fa": "v"},
    units={"fa": "N m s/rad"},
    even=True,
)
LOAD = FrictionLaw(
    name="load",
    title="Coulomb friction in proportion to the load, sign(v) |load torque|",
    columns={"fl": "load"},
    units={"fl": "1"},
)

GAIN = FrictionLaw(
    name="gain",
    title="torque in proportion to the weight that the joint carries, PA-10 (19)",
    columns={"gw": "weight"},
    units={"gw": "1"},
    even=True,
)

#: By the names that the command line uses: among these a search chooses.
ADDED = {law.name: law for law in (ROOT, EXCESS, ASYMMETRY, LOAD)}
#: By the names that `FrictionTerm` uses.
TERMS = {**ADDED, **{law.name: law for law in (GAIN, ODD, EVEN)}}


def friction_choice(text: str) -> str | tuple[str, ...]:
    """What words like those of ``--friction`` ask for: a law by its name, or names in `ADDED` to choose among.

    Args:
        text: ``auto`` for all of `ADDED`; the name of a friction law; or names in `ADDED`, with commas between them
            (``stribeck`` among others is short for its excess).

    Raises:
        UnknownNameError: a word is none of these.
    """
    if text == "auto":
        return tuple(ADDED)
    if text in friction_laws:
        return text
    names = tuple(EXCESS.name if word == "stribeck" else word for word in text.split(","))
    for name in names:
        if name not in ADDED:
            raise UnknownNameError("friction", name, ("auto", "linear", *friction_laws, *ADDED))
    return names
