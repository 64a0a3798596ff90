"""Which of two laws describes the points better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.stats import f as fisher

from armid.estimation.single_joint.curves import FitError
from armid.estimation.single_joint.laws import nested

LEVEL = 0.01


class Fitted(Protocol):
    """Anything fitted to points by least squares."""

    @property
    def law(self) -> str:
        """Name of the law."""

    @property
    def chi2(self) -> float:
        """Sum of squared (weighted) residuals."""

    @property
    def dof(self) -> int:
        """Points minus coefficients."""


@dataclass(frozen=True)
class Comparison:
    """One law against another on the same points.

    Attributes:
        law, other: names; `law` has at least as many coefficients.
        nested: `other` is `law` with terms switched off, so that F has its usual meaning; otherwise F is a yardstick
            and `law` must also win by the Bayesian information criterion.
        statistic: F, the gain per extra coefficient over what is left per degree of freedom (with equally many
            coefficients, the ratio of residual sums).
        p_value: probability of such an F if `other` were right.
        bic_gain: by how much the information criterion of `law` is lower; positive speaks for `law`.
        better: whether `law` is really better.
    """

    law: str
    other: str
    nested: bool
    statistic: float
    p_value: float
    bic_gain: float
    better: bool

    def sentence(self) -> str:
        """The outcome in words."""
        how = "nested" if self.nested else "not nested, F is a yardstick"
        verdict = "is better than" if self.better else "is no better than"
        numbers = f"F = {self.statistic:.3g}, p = {self.p_value:.2g}, {how}"
        return f"{self.law} {verdict} {self.other} ({numbers}; information criterion {self.bic_gain:+.1f})"

    def to_data(self) -> dict[str, Any]:
        """As JSON-able data."""
        return {**vars(self), "statistic": min(self.statistic, 1e300)}


def bic(fit: Fitted, points: int) -> float:
    """Bayesian information criterion n log(chi2 / n) + p log n; the size of the noise is taken as unknown."""
    return points * float(np.log(max(fit.chi2, 1e-300) / points)) + (points - fit.dof) * float(np.log(points))


def better_law(fit: Fitted, other: Fitted, points: int, level: float = LEVEL) -> Comparison:
    """Compare two fits to the same points; the one with more coefficients must prove itself.

    Args:
        fit: one fit.
        other: the other one.
        points: number of points both were fitted to.
        level: largest p-value at which the law with more coefficients is called better.
    """
    large, small = (fit, other) if fit.dof <= other.dof else (other, fit)
    if large.dof < 1:
        raise FitError(f"{large.law} has as many coefficients as there are points; measure more speeds")
    extra = small.dof - large.dof
    inside = nested(small.law, large.law) and extra > 0
    left = max(large.chi2, 1e-300)
    if extra > 0:
        statistic = max(0.0, (small.chi2 - large.chi2) / extra) / (left / large.dof)
        p_value = float(fisher.sf(statistic, extra, large.dof))
    else:
        statistic = small.chi2 / left
        p_value = float(fisher.sf(statistic, small.dof, large.dof))
    gain = bic(small, points) - bic(large, points)
    better = p_value < level and (inside or gain > 0.0)
    return Comparison(large.law, small.law, inside, float(statistic), p_value, gain, bool(better))
