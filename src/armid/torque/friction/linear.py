"""Linear friction: none, viscous, viscous and Coulomb; and the linear friction nearest to any other."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.registry import friction_laws
from armid.torque.friction.law import FrictionLaw

friction_laws.add("none")(FrictionLaw(name="none", title="no friction", columns={}))
friction_laws.add("viscous")(
    FrictionLaw(
        name="viscous", title="in proportion to the speed, fv v", columns={"fv": "v"}, units={"fv": "N m s/rad"}
    )
)
friction_laws.add("coulomb-viscous")(
    FrictionLaw(
        name="coulomb-viscous",
        title="fv v + fc, Swevers (3), ER-16 (3), Powerball (15)",
        columns={"fv": "v", "fc": "1"},
        units={"fv": "N m s/rad"},
        auto=True,
    )
)


def nearest_linear(speed: Array, torque: Array) -> tuple[float, float]:
    """Viscous and Coulomb friction, neither negative, that come nearest to a torque over speeds (least squares)."""
    from scipy.optimize import nnls  # which names of laws alone should not have to load

    viscous, coulomb = nnls(np.column_stack([speed, np.ones_like(speed)]), torque)[0].tolist()
    return viscous, coulomb
