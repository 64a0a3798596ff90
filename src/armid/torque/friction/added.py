"""Friction in addition to viscous and Coulomb friction."""

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
    title="torque in proportion to the weight that the joint carries, PA-10 (19)",
    columns={"gw": "weight"},
    units={"gw": "1"},
    even=True,
)

#: By the names that `FrictionTerm` uses.
TERMS = {law.name: law for law in (LOAD, GAIN, ODD, EVEN, REST)}
