"""What the data at hand determine: each parameter, combinations only, or nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.estimation.linear import Solution, free_combinations

DETERMINED = 0.3  # relative standard deviation up to which a parameter counts as determined
POOR_CONDITION = 200.0  # column-scaled condition number above which data are called poor
FRICTION_ONLY = 0.9  # share of a direction's square that makes it one of friction coefficients alone
WEAK = 0.05  # singular values below this share of the largest belong to weak directions


@dataclass(frozen=True, eq=False)
class Identifiability:
    """What the data determine.

    Attributes:
        singular_values: of the weighted regressor with columns of unit length.
        condition: their ratio.
        classes: per parameter ``determined``, ``weak`` (standard deviation above 30 % of the value) or
            ``undetermined`` (the data leave it free).
        combinations: weakest directions in words, the weakest first.
        poor: whether estimates from these data are not to be trusted without a prior.
        verdict: in a sentence.
    """

    singular_values: Array
    condition: float
    classes: tuple[str, ...]
    combinations: tuple[str, ...]
    poor: bool
    verdict: str


def _condition_without_friction(names: tuple[str, ...], solution: Solution) -> float:
    """Condition number without directions that trade friction coefficients of the same joints against each other.

    Their sum, the friction torque, is well known all the same.
    """
    friction = np.array([name.startswith("f") for name in names])
    share = np.sum(solution.directions[:, friction] ** 2, axis=1)
    counted = solution.singular_values[share < FRICTION_ONLY]
    return float(solution.singular_values[0] / max(counted.min(initial=solution.singular_values[0]), 1e-300))


def identifiability(names: tuple[str, ...], solution: Solution, sigma: Array) -> Identifiability:
    """Judge a solution by the standard deviations `sigma` of its values."""
    free = np.sum(solution.directions[solution.rank :] ** 2, axis=0) > 0.1
    weak = solution.singular_values < WEAK * solution.singular_values[0]
    words = free_combinations(names, solution.directions[weak][::-1][:5])
    poor = _condition_without_friction(names, solution) > POOR_CONDITION or solution.rank < len(names)
    found = Identifiability(solution.singular_values, solution.condition, (), tuple(words), poor, "")
    return _judged(found, free, solution.values, sigma)


def judged_again(found: Identifiability, values: Array, sigma: Array) -> Identifiability:
    """The same data judged for other values, such as those of the nearest arm that can exist."""
    return _judged(found, np.array(found.classes) == "undetermined", values, sigma)


def _judged(found: Identifiability, free: NDArray[np.bool_], values: Array, sigma: Array) -> Identifiability:
    relative = np.where(values != 0.0, sigma / np.maximum(np.abs(values), 1e-300), np.inf)
    classes = np.where(free, "undetermined", np.where(relative <= DETERMINED, "determined", "weak"))
    count = int(np.sum(classes == "determined"))
    verdict = f"{count} of {len(classes)} parameters are determined (σ of 30 % or less); condition number "
    verdict += f"{found.condition:.3g}"
    if found.poor:
        verdict += (
            f", so the data are poor: least known is {found.combinations[0]}. Do not trust single values, or "
            "predictions for other motion; give a prior (--prior), or record a designed trajectory (armid design "
            "--given this fit)"
        )
    return replace(found, classes=tuple(classes.tolist()), verdict=verdict)
