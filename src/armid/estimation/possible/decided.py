"""Which parameters of a possible arm the data decide, and which prior or plausible arm do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.fit import Fit
from armid.estimation.identifiability import DETERMINED
from armid.estimation.possible.consistency import Unknowns
from armid.estimation.possible.prior import Prior
from armid.robot.robot import inertial_names

HALF = 0.5  # share from which a parameter counts as decided by the data


def data_share(
    fit: Fit, unknowns: Unknowns, x: Array, scale: Array, data: Array, beliefs: Array, prior: Prior | None
) -> Array:
    """How much of each parameter the data decide: 1 all, 0 nothing, from 0.5 on it counts as decided.

    Without a prior on it, a parameter is decided where it can be identified alone and its standard deviation is small:
    1 / (1 + (sigma / (0.3 size))^2), with size the larger of its value and, for links, what is typical of it; a product
    of inertia near zero can be well known. A parameter that torque shows only within groups has 0. With a prior on it
    the share is 1 - posterior variance / prior variance, if that is more.

    Args:
        fit: the unconstrained fit, whose standard deviations count.
        unknowns: the parameters.
        x: their values.
        scale: typical size of each.
        data: rows of unit variance for the unknowns.
        beliefs: the same of prior and plausible arm.
        prior: what is believed beforehand.
    """
    names = unknowns.names
    linkwise = {name for number in range(1, fit.robot.n_joints + 1) for name in inertial_names(number)}
    typical = np.where([name in linkwise for name in names], scale, 0.0)
    alone = {*unknowns.model.base.alone, *(term.name for term in unknowns.terms)}
    free = dict(zip(fit.names, fit.identifiability.classes, strict=True))
    sigma = dict(zip(fit.names, fit.sigma.tolist(), strict=True))
    share = np.zeros(len(names))
    for i, name in enumerate(names):
        size = DETERMINED * max(abs(float(x[i])), float(typical[i]))
        if name in alone and free.get(name, "undetermined") != "undetermined" and size > 0.0:
            share[i] = 1.0 / (1.0 + (sigma[name] / size) ** 2)
    return share if prior is None else np.maximum(share, _against(prior, unknowns, scale, data, beliefs))


def _against(prior: Prior, unknowns: Unknowns, scale: Array, data: Array, beliefs: Array) -> Array:
    """Part of the prior's variance that the data take away; 0 where the prior does not speak."""
    with one_blas_thread():
        rows = prior.rows(unknowns)[0] * scale
        told = np.linalg.norm(rows, axis=0) > 0.0
        before = np.sum(np.linalg.pinv(rows[:, told]) ** 2, axis=1)
        after = np.sum(np.linalg.pinv(np.vstack([data, beliefs]) * scale) ** 2, axis=1)
    result = np.zeros(len(scale))
    result[told] = np.clip(1.0 - after[told] / before, 0.0, 1.0)
    return result


def deciders(names: Sequence[str], share: Array, prior: Prior | None) -> str:
    """In a sentence, who decides what."""
    other = [name for name, part in zip(names, share, strict=True) if part < HALF]
    if not other:
        return f"The data decide all {len(names)} parameters."
    who = "a plausible arm decides" if prior is None else "prior and plausible arm decide"
    return (
        f"The data decide {len(names) - len(other)} of {len(names)} parameters by themselves; the others show only in "
        f"combinations or weakly, and within what the data say of those {who} {', '.join(other)}."
    )
