"""Friction of no particular form: a smooth function of speed, the same in both directions (odd) or differing (even).

The function is a sum of bells over s = asinh(v / v0) / asinh(20), which runs from 0 at rest to 1 at the speed 20 v0,
the fastest of the data: fine where friction bends and nearly constant below the slowest speed of the data, so that
nothing can grow a spike at reversals. Beyond the fastest speed it fades, and the linear law remains; to the difference
of the directions, of which the linear law says nothing, belongs a part in proportion to speed.
"""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.registry import friction_laws
from armid.torque.friction.law import FrictionLaw

BEND = 0.05  # v0 as a share of the fastest speed
BELLS = 10
LENGTH = 0.6  # over which the function is correlated, in s


def _columns(prefix: str) -> dict[str, str]:
    span, step = float(np.arcsinh(1.0 / BEND)), 1.0 / (BELLS - 1)
    place = f"(log(v / v0 + sqrt((v / v0) ** 2 + 1)) / {span!r})"
    return {f"{prefix}{k + 1}": f"exp(-(({place} - {k * step!r}) / {step!r}) ** 2)" for k in range(BELLS)}


def _bend(slowest: float, fastest: float) -> tuple[float, float]:
    return BEND * fastest, BEND * fastest


ODD = FrictionLaw(
    name="smooth",
    title="any smooth function of speed, the same in both directions",
    columns=_columns("so"),
    shapes={"v0": _bend},
    units={"v0": "rad/s"},
)
EVEN = FrictionLaw(
    name="smooth-even",
    title="any smooth function of speed by which the directions differ",
    columns={**_columns("se"), "sev": f"{BEND!r} * v / v0"},
    shapes=ODD.shapes,
    units=ODD.units,
    even=True,
)
CURVE = FrictionLaw(
    name="curve",
    title="viscous and Coulomb friction and any smooth function of speed: what `identify` finds, as a law",
    columns={"fv": "v", "fc": "1", **ODD.columns},
    shapes=ODD.shapes,
    units={"fv": "N m s/rad", **ODD.units},
    contains=("coulomb-viscous",),
)
friction_laws.add(CURVE.name)(CURVE)
REST = FrictionLaw(
    name="rest",
    title="what friction may do below the slowest speed of the data",
    columns={"sr": "exp(-1.5 * (v / vr) ** 2)"},
    shapes={"vr": _bend},
    units={"vr": "rad/s"},
)


def prior_covariance(count: int = BELLS) -> Array:
    """Covariance of the coefficients for which the function has unit variance and a Matérn-3/2 correlation.

    Args:
        count: of the coefficients; those beyond the bells are independent, of unit variance.
    """
    places = np.linspace(0.0, 1.0, BELLS)
    distance = np.sqrt(3.0) * np.abs(places[:, None] - places) / LENGTH
    matern = (1.0 + distance) * np.exp(-distance)
    bells = np.exp(-(((np.linspace(0.0, 1.0, 50)[:, None] - places) * (BELLS - 1)) ** 2))
    result = np.eye(count)
    result[:BELLS, :BELLS] = matern / np.mean(np.einsum("ti,ij,tj->t", bells, matern, bells))
    return result
