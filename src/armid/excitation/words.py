"""Sentences of the notes that a plan carries: what was assumed, and what was not checked."""

WORDS = {
    "assumed-limits": "limits of {fields}; nobody has published them, and stand-ins are kept",
    "assumed-shapes": "shapes of {links}; capsules of radius {radius:.3g} m from joint to joint stand in for them",
    "assumed-floor": "a floor at the base plane, for gravity points against z of the base; --floor Z sets its height",
    "assumed-tool-speed": "a tool speed limit of {limit:g} m/s, for none is stated; --tool-speed sets another",
    "unchecked-off": "{check}: left out on request",
    "unchecked-torque-limits": "torque of {joints}: no limit is known",
    "unchecked-torque-inertia": "torque: no inertia is known to foresee it with",
    "unchecked-hangs": "floor: the arm hangs ({angle:.0f} degrees off upright) at an unknown height; --floor Z sets it",
    "unchecked-below": "floor: the arm reaches below its base plane in every posture, so it is mounted at an unknown "
    "height; --floor Z sets it",
    "unchecked-weightless": "floor: without gravity nothing says where it is; --floor Z does",
    "unchecked-lengths": "{check}: no link has a shape or a length",
    "unchecked-touching": "self-collision of {links}: their shapes touch in nearly every posture",
    "unchecked-shapes": "shapes that could not be read: {names}",
}
