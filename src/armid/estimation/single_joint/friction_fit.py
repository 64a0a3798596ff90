"""Friction of one joint: points, the law that fits them, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import f as fisher

from armid.arrays import Array
from armid.estimation.single_joint.curves import CurveFit, FitError, curve_law, fit_curve
from armid.files import checked, plain
from armid.registry import friction_laws
from armid.torque.friction.exponential import DOUBLE, SINGLE
from armid.torque.friction.law import friction_law

LEVEL = 0.01  # largest p-value at which the law with more coefficients is called better
CLOSE = 6.0  # difference of the information criterion below which two laws are as good as each other


@dataclass(frozen=True, eq=False)
class FrictionPoints:
    """Mean friction torque of a joint at several speeds, joint side.

    Attributes:
        joint: name of the joint.
        speed: signed [rad/s or m/s], (points,).
        torque: mean torque [N m or N].
        error: its standard error.
        seconds: how long each speed was measured [s].
        method: how the points were found, in words.
        symmetric: positive speeds stand for both directions.
        offset: torque [N m or N] that does not change with direction, already taken out; 0 if none was.
        notes: what to know about them.
    """

    joint: str
    speed: Array
    torque: Array
    error: Array
    seconds: Array
    method: str
    symmetric: bool = False
    offset: float = 0.0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.speed)

    def part(self, sign: float) -> FrictionPoints:
        """The points of one direction."""
        mine = np.sign(self.speed) == sign
        columns = (self.speed[mine], self.torque[mine], self.error[mine], self.seconds[mine])
        return FrictionPoints(self.joint, *columns, self.method, self.symmetric, self.offset, self.notes)


@dataclass(frozen=True)
class LawComparison:
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


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """A friction law fitted to the points of one joint, joint side.

    Attributes:
        points: what was fitted.
        up: curve for positive speeds.
        backwards: curve for negative speeds; None where both directions were fitted together.
        comparisons: with other laws and ways to treat directions.
        reason: why this law, in words.
    """

    points: FrictionPoints
    up: CurveFit
    backwards: CurveFit | None = None
    comparisons: tuple[LawComparison, ...] = ()
    reason: str = ""

    @property
    def down(self) -> CurveFit:
        """Curve for negative speeds."""
        return self.backwards or self.up

    @property
    def joint(self) -> str:
        """Name of the joint."""
        return self.points.joint

    @property
    def law(self) -> str:
        """Name of the law, as in robot descriptions."""
        return DOUBLE.name if self.up.law == SINGLE.name else self.up.law

    @property
    def per_direction(self) -> bool:
        """Whether the directions have coefficients of their own."""
        return self.backwards is not None

    @property
    def chi2(self) -> float:
        """Sum of squared residuals over their errors."""
        return self.up.chi2 + (self.down.chi2 if self.per_direction else 0.0)

    @property
    def dof(self) -> int:
        """Points minus coefficients."""
        return self.up.dof + (self.down.dof if self.per_direction else 0)

    @property
    def coefficients(self) -> dict[str, float]:
        """As in robot descriptions: with `p` and `n` for the directions where they differ."""
        return self._named(self.up.coefficients, self.down.coefficients)

    @property
    def sigma(self) -> dict[str, float]:
        """Standard deviations of the coefficients; NaN where the points do not tell."""
        return self._named(self.up.sigma, self.down.sigma)

    def _named(self, up: Mapping[str, float], down: Mapping[str, float]) -> dict[str, float]:
        if not self.per_direction:
            return dict(up)
        return {f"{name}p": value for name, value in up.items()} | {f"{name}n": value for name, value in down.items()}

    def curve(self, speed: ArrayLike) -> Array:
        """Friction torque [N m] at signed speeds [rad/s]."""
        v = np.asarray(speed, dtype=float)
        return np.where(v >= 0.0, self.up.curve(v), self.down.curve(v))

    def standard_error(self, speed: ArrayLike) -> Array:
        """Standard deviation of the curve [N m]."""
        v = np.asarray(speed, dtype=float)
        return np.where(v >= 0.0, self.up.standard_error(v), self.down.standard_error(v))

    def band(self, speed: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Interval of the curve [N m], lower and upper end."""
        v = np.asarray(speed, dtype=float)
        up, down = self.up.band(v, level), self.down.band(v, level)
        return np.where(v >= 0.0, up[0], down[0]), np.where(v >= 0.0, up[1], down[1])

    def to_data(self) -> dict[str, Any]:
        """For JSON, with what follows from it; `friction_from_data` reads it."""
        names = ("joint", "law", "per_direction", "coefficients", "sigma")
        ratio = {"noise_ratio": float(np.sqrt(self.chi2 / self.dof))}
        return {**plain({name: getattr(self, name) for name in names}), **ratio, **plain(self)}


def friction_from_data(data: Mapping[str, Any]) -> FrictionFit:
    """The fit that `FrictionFit.to_data` described."""
    return checked(dict(data), FrictionFit, "friction")


def fit_friction(
    points: FrictionPoints, law_name: str = "auto", *, per_direction: bool | None = None, prefer: str = ""
) -> FrictionFit:
    """Fit a friction law to the points of one joint.

    Args:
        points: mean torques at several speeds.
        law_name: `auto` takes the simplest law whose information criterion is within 6 of the lowest, among those
            that say so: coulomb-viscous, stribeck, double-exponential (PA-10 (18)) and hyperbolic (Powerball (16)).
        per_direction: separate coefficients for the two directions; None: as in the papers, (18) separate, (16)
            together, others separate if an F-test says that the directions differ.
        prefer: law that `auto` takes rather than the simplest one if it is within those 6, such as the one in the
            robot's description.

    Raises:
        FitError: there are too few speeds for the law.
    """
    if law_name != "auto":
        fit, compared = _fit(points, law_name, per_direction)
        return FrictionFit(points, fit.up, fit.backwards, compared, "it was asked for")
    fits, problems = [], []
    for name in (name for name in friction_laws if friction_law(name).auto):
        for separate in (False, True) if per_direction is None else (per_direction,):
            try:
                fits.append(_fit(points, name, separate)[0])
            except FitError as error:
                problems.append(str(error))
    if not fits:
        raise FitError(problems[0])
    fits.sort(key=lambda fit: bic(fit, len(points)))
    close = [fit for fit in fits if bic(fit, len(points)) - bic(fits[0], len(points)) < CLOSE]
    best = min(close, key=lambda fit: (fit.law != prefer, -fit.dof))
    fits.remove(best)
    fits.insert(0, best)
    others = [fit for k, fit in enumerate(fits[1:], 1) if fit.law not in {f.law for f in fits[:k]}]
    compared = tuple(better_law(best, fit, len(points)) for fit in others)
    return FrictionFit(points, best.up, best.backwards, compared, _reason(best, others, len(points), prefer))


def _fit(
    points: FrictionPoints, name: str, per_direction: bool | None
) -> tuple[FrictionFit, tuple[LawComparison, ...]]:
    """A fit of one law, with the comparison that decided about directions."""
    both = not points.symmetric and all((np.sign(points.speed) == sign).any() for sign in (1.0, -1.0))
    wanted = friction_law(name).per_direction if per_direction is None else per_direction
    if not both or wanted is False:
        return FrictionFit(points, _curve(points, name)), ()
    separate = FrictionFit(points, _curve(points.part(1.0), name), _curve(points.part(-1.0), name))
    if wanted:
        return separate, ()
    together = FrictionFit(points, _curve(points, name))
    compared = better_law(separate, together, len(points))
    return (separate if compared.better else together), (compared,)


def _curve(points: FrictionPoints, name: str) -> CurveFit:
    """A fitted curve; (18) loses its second exponential where the points do not need it (erratum PA-9)."""
    try:
        fit = fit_curve(name, points.speed, points.torque, points.error)
    except FitError as error:
        raise FitError(f"{points.joint}: {error}") from None
    if name != DOUBLE.name:
        return fit
    plain = fit_curve(SINGLE.name, points.speed, points.torque, points.error)
    return fit if better_law(fit, plain, len(points)).better else plain


def _reason(best: FrictionFit, others: Sequence[FrictionFit], points: int, prefer: str) -> str:
    how = "each direction on its own" if best.per_direction else "both directions together"
    if not others:
        return f"no other law has few enough coefficients for these points; {how}"
    gain = bic(others[0], points) - bic(best, points)
    if gain < 0.0:
        why = "the described law" if best.law == prefer else "the simplest law that does"
        return f"{why}, {how}; {others[0].law} is no better (information criterion lower by {-gain:.1f} only)"
    return f"lowest information criterion, {how}; {others[0].law} comes next, higher by {gain:.1f}"


def bic(fit: CurveFit | FrictionFit, points: int) -> float:
    """Bayesian information criterion n log(chi2 / n) + p log n; the size of the noise is taken as unknown."""
    return points * float(np.log(max(fit.chi2, 1e-300) / points)) + (points - fit.dof) * float(np.log(points))


def better_law(fit: CurveFit | FrictionFit, other: CurveFit | FrictionFit, points: int) -> LawComparison:
    """Compare two fits to the same points; the one with more coefficients must prove itself.

    Args:
        fit: one fit.
        other: the other one.
        points: number of points both were fitted to.
    """
    large, small = (fit, other) if fit.dof <= other.dof else (other, fit)
    if large.dof < 1:
        raise FitError(f"{large.law} has as many coefficients as there are points; measure more speeds")
    extra = small.dof - large.dof
    inside = _nested(small.law, large.law) and extra > 0
    left = max(large.chi2, 1e-300)
    if extra > 0:
        statistic = max(0.0, (small.chi2 - large.chi2) / extra) / (left / large.dof)
        p_value = float(fisher.sf(statistic, extra, large.dof))
    else:
        statistic = small.chi2 / left
        p_value = float(fisher.sf(statistic, small.dof, large.dof))
    gain = bic(small, points) - bic(large, points)
    better = p_value < LEVEL and (inside or gain > 0.0)
    return LawComparison(large.law, small.law, inside, float(statistic), p_value, gain, bool(better))


def _nested(small: str, large: str) -> bool:
    """Whether law `small` is law `large` with some terms switched off."""
    return small == large or small in curve_law(large).contains
