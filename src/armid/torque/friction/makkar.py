"""The six-parameter parent of the Powerball's law, which can show a Stribeck effect (Makkar et al., 2005)."""

from armid.registry import friction_laws
from armid.torque.friction.law import FrictionLaw, steepness

friction_laws.add("makkar")(
    FrictionLaw(
        name="makkar",
        title="g1 (tanh(g2 v) - tanh(g3 v)) + g4 tanh(g5 v) + g6 v, Makkar et al. (2005)",
        columns={"g1": "tanh(g2 * v) - tanh(g3 * v)", "g4": "tanh(g5 * v)", "g6": "v"},
        shapes={"g2": steepness, "g3": steepness, "g5": steepness},
        units={"g2": "s/rad", "g3": "s/rad", "g5": "s/rad", "g6": "N m s/rad"},
        order=("g1", "g2", "g3", "g4", "g5", "g6"),
        per_direction=False,
        contains=("hyperbolic",),
    )
)
