"""Friction of one joint: points, the law that fits them, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.errors import UnknownNameError
from armid.estimation.single_joint.compare import Comparison, better_law, bic
from armid.estimation.single_joint.curves import CurveFit, FitError, fit_curve
from armid.estimation.single_joint.laws import FRICTION_LAWS, law

AUTO = ("coulomb-viscous", "stribeck", "double-exponential", "hyperbolic")
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


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """A friction law fitted to the points of one joint, joint side.

    Attributes:
        points: what was fitted.
        up: curve for positive speeds.
        down: curve for negative speeds; the same one where both directions were fitted together.
        comparisons: with other laws and ways to treat directions.
        reason: why this law, in words.
    """

    points: FrictionPoints
    up: CurveFit
    down: CurveFit
    comparisons: tuple[Comparison, ...] = ()
    reason: str = ""

    @property
    def joint(self) -> str:
        """Name of the joint."""
        return self.points.joint

    @property
    def law(self) -> str:
        """Name of the law, as in robot descriptions."""
        return _public(self.up.law)

    @property
    def per_direction(self) -> bool:
        """Whether the directions have coefficients of their own."""
        return self.up is not self.down

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
        if not self.per_direction:
            return dict(self.up.coefficients)
        pairs = ((self.up, "p"), (self.down, "n"))
        return {f"{name}{sign}": value for fit, sign in pairs for name, value in fit.coefficients.items()}

    @property
    def sigma(self) -> dict[str, float]:
        """Standard deviations of the coefficients; NaN where the points do not tell."""
        if not self.per_direction:
            return self.up.sigma
        pairs = ((self.up, "p"), (self.down, "n"))
        return {f"{name}{sign}": value for fit, sign in pairs for name, value in fit.sigma.items()}

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
        """As JSON-able data; `friction_from_data` reads it."""
        p = self.points
        lists = {name: getattr(p, name).tolist() for name in ("speed", "torque", "error", "seconds")}
        sigma = {name: value if np.isfinite(value) else None for name, value in self.sigma.items()}
        return {
            "joint": p.joint,
            "law": self.law,
            "per_direction": self.per_direction,
            "coefficients": self.coefficients,
            "sigma": sigma,
            "reason": self.reason,
            "noise_ratio": float(np.sqrt(self.chi2 / self.dof)),
            "comparisons": [comparison.to_data() for comparison in self.comparisons],
            "points": {**lists, "method": p.method, "symmetric": p.symmetric, "offset": p.offset, "notes": [*p.notes]},
            "up": self.up.to_data(),
            "down": self.down.to_data() if self.per_direction else None,
        }


def friction_from_data(data: Mapping[str, Any]) -> FrictionFit:
    """The fit that `FrictionFit.to_data` described."""
    p = data["points"]
    same: dict[str, Any] = {name: p[name] for name in ("method", "symmetric", "offset")}
    same |= {name: np.array(p[name], dtype=float) for name in ("speed", "torque", "error", "seconds")}
    points = FrictionPoints(joint=data["joint"], **same, notes=tuple(p["notes"]))
    up = CurveFit.from_data(data["up"])
    down = up if data["down"] is None else CurveFit.from_data(data["down"])
    comparisons = tuple(Comparison(**comparison) for comparison in data["comparisons"])
    return FrictionFit(points, up, down, comparisons, data["reason"])


def fit_friction(
    points: FrictionPoints, law_name: str = "auto", *, per_direction: bool | None = None, prefer: str = ""
) -> FrictionFit:
    """Fit a friction law to the points of one joint.

    Args:
        points: mean torques at several speeds.
        law_name: `auto` takes the simplest law whose information criterion is within 6 of the lowest, among
            coulomb-viscous, stribeck, double-exponential (PA-10 (18)) and hyperbolic (Powerball (16)).
        per_direction: separate coefficients for the two directions; None: as in the papers, (18) separate, (16)
            together, others separate if an F-test says that the directions differ.
        prefer: law that `auto` takes rather than the simplest one if it is within those 6, such as the one in the
            robot's description.

    Raises:
        FitError: there are too few speeds for the law.
    """
    if law_name != "auto":
        if law_name not in FRICTION_LAWS:
            raise UnknownNameError("friction law", law_name, ("auto", *FRICTION_LAWS))
        fit, compared = _fit(points, law_name, per_direction)
        return FrictionFit(points, fit.up, fit.down, compared, "it was asked for")
    fits, problems = [], []
    for name in AUTO:
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
    return FrictionFit(points, best.up, best.down, compared, _reason(best, others, len(points), prefer))


def _fit(points: FrictionPoints, name: str, per_direction: bool | None) -> tuple[FrictionFit, tuple[Comparison, ...]]:
    """A fit of one law, with the comparison that decided about directions."""
    both = not points.symmetric and all((np.sign(points.speed) == sign).any() for sign in (1.0, -1.0))
    wanted = law(name).per_direction if per_direction is None else per_direction
    if not both or wanted is False:
        curve = _curve(points, name)
        return FrictionFit(points, curve, curve), ()
    separate = FrictionFit(points, _curve(points.part(1.0), name), _curve(points.part(-1.0), name))
    if wanted:
        return separate, ()
    curve = _curve(points, name)
    together = FrictionFit(points, curve, curve)
    compared = better_law(separate, together, len(points))
    return (separate if compared.better else together), (compared,)


def _curve(points: FrictionPoints, name: str) -> CurveFit:
    """A fitted curve; (18) loses its second exponential where the points do not need it (erratum PA-9)."""
    try:
        fit = fit_curve(name, points.speed, points.torque, points.error)
    except FitError as error:
        raise FitError(f"{points.joint}: {error}") from None
    if name != "double-exponential":
        return fit
    plain = fit_curve("single-exponential", points.speed, points.torque, points.error)
    return fit if better_law(fit, plain, len(points)).better else plain


def _public(name: str) -> str:
    return "double-exponential" if name == "single-exponential" else name


def _reason(best: FrictionFit, others: Sequence[FrictionFit], points: int, prefer: str) -> str:
    how = "each direction on its own" if best.per_direction else "both directions together"
    if not others:
        return f"no other law has few enough coefficients for these points; {how}"
    gain = bic(others[0], points) - bic(best, points)
    if gain < 0.0:
        why = "the described law" if best.law == prefer else "the simplest law that does"
        return f"{why}, {how}; {others[0].law} is no better (information criterion lower by {-gain:.1f} only)"
    return f"lowest information criterion, {how}; {others[0].law} comes next, higher by {gain:.1f}"
