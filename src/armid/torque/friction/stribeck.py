"""Friction that fades with speed from a level at rest to Coulomb friction (Stribeck).

``fs`` is the whole level at rest: fv v + fc + (fs - fc) exp(-(v / vs)^2).
"""

from armid.registry import friction_laws
from armid.torque.friction.law import FrictionLaw, bending_speed

friction_laws.add("stribeck")(
    FrictionLaw(
        name="stribeck",
        title="fv v + fc + (fs - fc) exp(-(v / vs)^2): fs at rest fades to fc",
        columns={"fv": "v", "fc": "1 - exp(-(v / vs) ** 2)", "fs": "exp(-(v / vs) ** 2)"},
        shapes={"vs": bending_speed},
        units={"fv": "N m s/rad", "vs": "rad/s"},
        contains=("coulomb-viscous",),
        auto=True,
    )
)
