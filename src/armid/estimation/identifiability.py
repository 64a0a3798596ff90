"""What the data at hand determine: each parameter, combinations only, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import Array, Mask
from armid.estimation.linear import Solution, condition_of, free_combinations
from armid.torque.friction.smooth import EVEN, ODD, REST
from armid.torque.friction.term import FrictionTerm

DETERMINED = 0.3  # relative standard deviation up to which a parameter counts as determined
POOR_CONDITION = 200.0  # column-scaled condition number above which data are called poor
FRICTION_ONLY = 0.9  # share of a direction's square that makes it one of friction coefficients alone
WEAK = 0.05  # singular values below this share of the largest belong to weak directions


@dataclass(frozen=True, eq=False)
class Identifiability:
    """What the data determine.

    Attributes:
        singular_values: of the weighted regressor with columns of unit length.
        classes: per column ``determined``, ``weak`` (standard deviation above 30 % of the value), ``undetermined``
            (the data leave it free) or ``curve`` (a coefficient of smooth friction, which means nothing alone).
        combinations: weakest directions in words, the weakest first.
        poor: whether estimates from these data are not to be trusted without a prior.
    """

    singular_values: Array
    classes: tuple[str, ...]
    combinations: tuple[str, ...]
    poor: bool

    @property
    def condition(self) -> float:
        """Column-scaled condition number: the ratio of the singular values."""
        return condition_of(self.singular_values)

    @property
    def counts(self) -> tuple[int, int]:
        """How many parameters are determined, and how many there are; coefficients of curves are none."""
        return self.classes.count("determined"), len(self.classes) - self.classes.count("curve")

    @property
    def verdict(self) -> str:
        """In a sentence."""
        return self.in_words()

    def in_words(self, *, had_prior: bool = False) -> str:
        """In a sentence; advice is not what was done already."""
        count, total = self.counts
        verdict = f"{count} of {total} parameters are determined (σ of 30 % or less); condition number "
        verdict += f"{self.condition:.3g}"
        if not self.poor:
            return verdict
        prior = "give a better prior" if had_prior else "give a prior (--prior)"
        return (
            f"{verdict}, so the data are poor: least known is {next(iter(self.combinations), 'not known')}. Do not "
            f"trust single values, or predictions for other motion; {prior}, or record a designed trajectory (armid "
            "design --given this fit)"
        )


def identifiability(
    names: Sequence[str], solution: Solution, sigma: Array, terms: Sequence[FrictionTerm] = ()
) -> Identifiability:
    """Judge a solution by the standard deviations `sigma` of its values; `terms` are the friction terms among them."""
    free = (np.sum(solution.directions[solution.rank :] ** 2, axis=0) > 0.1) | (solution.scale == 0.0)
    weak = solution.singular_values < WEAK * solution.singular_values[0]
    words = free_combinations(names, solution.directions[weak][::-1][:5])
    curves = {name for term in terms if term.law in (ODD.name, EVEN.name, REST.name) for name in term.names}
    curve = np.array([name in curves for name in names])
    poor = _condition_without_friction(names, curve, solution) > POOR_CONDITION or solution.rank < len(names)
    classes = _classes(free, curve, solution.values, sigma)
    return Identifiability(solution.singular_values, classes, tuple(words), poor)


def judged_again(found: Identifiability, values: Array, sigma: Array) -> Identifiability:
    """The same data judged for other values, such as those of the nearest physically consistent arm."""
    kinds = np.array(found.classes)
    return replace(found, classes=_classes(kinds == "undetermined", kinds == "curve", values, sigma))


def _classes(free: Mask, curve: Mask, values: Array, sigma: Array) -> tuple[str, ...]:
    relative = np.where(values != 0.0, sigma / np.maximum(np.abs(values), 1e-300), np.inf)
    classes = np.where(free, "undetermined", np.where(relative <= DETERMINED, "determined", "weak"))
    classes = np.where(curve, "curve", classes)
    return tuple(classes.tolist())


def _condition_without_friction(names: Sequence[str], curve: Mask, solution: Solution) -> float:
    """Condition number without directions that trade friction coefficients of the same joints against each other.

    Their sum, the friction torque, is well known all the same.
    """
    friction = curve | np.array([name.startswith("f") for name in names])
    share = np.sum(solution.directions[:, friction] ** 2, axis=1)
    counted = solution.singular_values[share < FRICTION_ONLY]
    return float(solution.singular_values[0] / max(counted.min(initial=solution.singular_values[0]), 1e-300))
