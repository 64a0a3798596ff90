"""Friction of the PA-10 paper: exponentials that rise at slow and fall at fast speed."""

from armid.registry import friction_laws
from armid.torque.friction.law import FrictionLaw, bending_speed, delay

DOUBLE = FrictionLaw(
    name="double-exponential",
    title="f1 v + f2 - f3 exp(-v / f4) - f5 exp(-1 / (f6 v)), PA-10 (18); a zero f4 or f6 switches its term off",
    columns={"f1": "v", "f2": "1", "f3": "-exp(-v / f4)", "f5": "-exp(-1 / (f6 * v))"},
    shapes={"f4": bending_speed, "f6": delay},
    units={"f1": "N m s/rad", "f4": "rad/s", "f6": "s/rad"},
    order=("f1", "f2", "f3", "f4", "f5", "f6"),
    per_direction=True,
    contains=("coulomb-viscous", "single-exponential"),
    auto=True,
)
friction_laws.add(DOUBLE.name)(DOUBLE)

# (18) with its second exponential switched off (erratum PA-9); descriptions write it as double-exponential.
SINGLE = FrictionLaw(
    name="single-exponential",
    title="f1 v + f2 - f3 exp(-v / f4), PA-10 (18) with f5 = f6 = 0",
    columns={name: DOUBLE.columns[name] for name in ("f1", "f2", "f3")},
    shapes={"f4": bending_speed},
    units=DOUBLE.units,
    order=DOUBLE.order,
    per_direction=True,
    contains=("coulomb-viscous",),
    fixed=("f5", "f6"),
)
