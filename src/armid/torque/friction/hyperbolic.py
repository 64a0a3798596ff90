"""Smooth friction of the Powerball paper."""

from armid.registry import friction_laws
from armid.torque.friction.law import FrictionLaw, steepness

friction_laws.add("hyperbolic")(
    FrictionLaw(
        name="hyperbolic",
        title="g1 tanh(g2 v) + g3 tanh(g4 v) + g5 v, Powerball (16); the steep term first",
        columns={"g1": "tanh(g2 * v)", "g3": "tanh(g4 * v)", "g5": "v"},
        shapes={"g2": steepness, "g4": steepness},
        units={"g2": "s/rad", "g4": "s/rad", "g5": "N m s/rad"},
        order=("g1", "g2", "g3", "g4", "g5"),
        per_direction=False,
        ordered=True,
        auto=True,
    )
)
