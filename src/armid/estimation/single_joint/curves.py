"""Least-squares fits of curves: linear coefficients are projected out, shapes are searched from many starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2
from scipy.stats import t as student

from armid.arrays import Array, Mask
from armid.errors import ArmidError
from armid.torque.friction.exponential import SINGLE
from armid.torque.friction.law import FrictionLaw, Range, friction_law
from armid.torque.friction.shapes import search_shapes

MISFIT = 0.01  # probability below which the residuals say that stated errors are too small

# Mean torque against time while an arm gets warm (Powerball, Fig. 3); v stands for the time.
DECAY = FrictionLaw(
    name="decay",
    title="a + b exp(-t / T), Powerball, Fig. 3",
    columns={"a": "1", "b": "exp(-v / T)"},
    shapes={"T": lambda first, last: (0.02 * (last - first), 3.0 * (last - first))},
    units={"T": "s"},
    even=True,
    per_direction=False,
)


class FitError(ArmidError):
    """A curve cannot be fitted to the points."""


def curve_law(name: str) -> FrictionLaw:
    """A friction law, or one of the two other curves: ``single-exponential`` and ``decay``."""
    return {SINGLE.name: SINGLE, DECAY.name: DECAY}.get(name) or friction_law(name)


@dataclass(frozen=True, eq=False)
class CurveFit:
    """A fitted curve.

    Attributes:
        law: name of the law.
        coefficients: name to value.
        undetermined: coefficients that cannot be told from the points.
        chi2: sum of squared residuals, each divided by the point's standard error where those were given.
        dof: points minus coefficients.
        noise: standard deviation of the residuals; 1 if the points are as good as their stated errors.
        stated_errors: whether points came with standard errors.
        points: how many there were.
        reach: least and largest |x| among them.
        notes: what was found on the way, in words.
        root: (coefficients, rank) with root @ root.T the covariance of everything that can be told.
    """

    law: str
    coefficients: dict[str, float]
    undetermined: tuple[str, ...]
    chi2: float
    dof: int
    noise: float
    stated_errors: bool
    points: int
    reach: tuple[float, float]
    notes: tuple[str, ...]
    root: Array

    @cached_property
    def covariance(self) -> Array:
        """Of the coefficients in their order; NaN where a coefficient cannot be told from the points."""
        covariance: Array = self.root @ self.root.T
        unknown = [name in self.undetermined for name in self.coefficients]
        covariance[unknown] = np.nan
        covariance[:, unknown] = np.nan
        return covariance

    @property
    def sigma(self) -> dict[str, float]:
        """Standard deviation of each coefficient; NaN where the points do not tell it."""
        return dict(zip(self.coefficients, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Interval of one coefficient."""
        half = self._quantile(level) * self.sigma[name]
        return self.coefficients[name] - half, self.coefficients[name] + half

    def curve(self, x: ArrayLike) -> Array:
        """The fitted law at x."""
        return curve_law(self.law).torque(np.asarray(x, dtype=float), self.coefficients)

    def standard_error(self, x: ArrayLike) -> Array:
        """Standard deviation of the fitted curve at x."""
        slopes = curve_law(self.law).slopes(np.atleast_1d(np.asarray(x, dtype=float)), self.coefficients)
        result: Array = np.linalg.norm(slopes @ self.root, axis=1)
        return result.reshape(np.shape(x))

    def band(self, x: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Interval of the curve at x, lower and upper end."""
        middle, half = self.curve(x), self._quantile(level) * self.standard_error(x)
        return middle - half, middle + half

    def _quantile(self, level: float) -> float:
        """Factor of the interval: Student's, as long as the size of the noise comes from the residuals."""
        return float(student.ppf(0.5 + 0.5 * level, np.inf if self.stated_errors else max(self.dof, 1)))


def fit_curve(name: str, x: ArrayLike, y: ArrayLike, errors: ArrayLike | None = None) -> CurveFit:
    """Fit a law to points by weighted non-linear least squares.

    For given shapes the other coefficients follow from linear least squares (variable projection), so only one to three
    shapes are searched, on a logarithmic grid of what the points can show and from its best local minima on.

    With stated errors, the covariance follows from them; if the residuals are larger than chance allows (1 %), it is
    scaled up to what they say. Without, the residuals give the size of the noise.

    Args:
        name: of the law, see `curve_law`.
        x: speeds [rad/s] or times [s].
        y: torques [N m].
        errors: standard errors of y; None if unknown, then all points count alike.

    Raises:
        FitError: there are fewer different x than the law needs.
    """
    law = curve_law(name)
    at, values, weights = _checked(law, x, y, errors)
    reach = (float(np.abs(at[at != 0.0]).min(initial=np.inf)), float(np.abs(at).max()))
    ranges = law.ranges(*reach)

    def solve(shapes: Array) -> tuple[Array, Array]:
        """Linear coefficients (..., columns) and weighted residuals (..., points)."""
        speeds = np.broadcast_to(at, (*shapes.shape[:-1], len(at)))
        named = {name: shapes[..., k, None] for k, name in enumerate(law.shapes)}
        columns = law.column_values(speeds, named) * weights[:, None]
        size = np.linalg.norm(columns, axis=-2, keepdims=True)
        size = np.where(size > 0.0, size, 1.0)
        found = np.linalg.pinv(columns / size, rcond=1e-9) @ (values * weights) / size[..., 0, :]
        return found, np.einsum("...pc,...c->...p", columns, found) - values * weights

    shapes = search_shapes(law, ranges, lambda shapes: solve(shapes)[1])
    linear = solve(shapes)[0].tolist()
    known = {**dict(zip(law.shapes, shapes.tolist(), strict=True)), **dict(zip(law.columns, linear, strict=True))}
    coefficients = {name: known.get(name, 0.0) for name in law.coefficients}
    residual = weights * (values - law.torque(at, coefficients))
    total = float(residual @ residual)
    dof = len(at) - len(coefficients) + len(law.fixed)
    edge, notes = _edges(law, shapes, ranges)
    noise = float(np.sqrt(total / dof))
    scale = noise
    if errors is not None:
        scale = noise if chi2.sf(total, dof) < MISFIT else 1.0
        if scale > 1.0:
            notes.append(f"residuals are {noise:.2g} times the stated errors; intervals are widened by that")
    fixed = np.array([name in edge or name in law.fixed for name in coefficients])
    root, unknown = _root(law.slopes(at, coefficients) * weights[:, None], fixed)
    undetermined = tuple(name for name, one in zip(coefficients, unknown, strict=True) if one)
    about = (total, dof, noise, errors is not None, len(at), reach, tuple(notes))
    return CurveFit(name, coefficients, undetermined, *about, scale * root)


def _checked(law: FrictionLaw, x: ArrayLike, y: ArrayLike, errors: ArrayLike | None) -> tuple[Array, ...]:
    at, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    spread = np.ones_like(values) if errors is None else np.asarray(errors, dtype=float)
    weights = np.divide(1.0, spread, out=np.full(spread.shape, np.nan), where=spread > 0.0)
    if at.ndim != 1 or values.shape != at.shape or weights.shape != at.shape:
        raise FitError("points must be lists of the same length: x, y and their errors")
    if not (np.isfinite(at).all() and np.isfinite(values).all() and np.isfinite(weights).all()):
        raise FitError("points must be finite, with positive errors")
    different = np.unique([f"{value:.2e}" for value in at])
    count = len(law.coefficients) - len(law.fixed)
    if len(different) <= count:
        what = "times" if law is DECAY else "speeds"
        raise FitError(
            f"{law.name} has {count} coefficients and needs {count + 1} different {what}; there are {len(different)}"
        )
    return at, values, weights


def _edges(law: FrictionLaw, shapes: Array, ranges: tuple[Range, ...]) -> tuple[set[str], list[str]]:
    """Shapes at the end of what the points can show, which have no interval."""
    edge, notes = set(), []
    for name, value, (low, high) in zip(law.shapes, shapes, ranges, strict=True):
        if value < 1.001 * low or value > 0.999 * high:
            edge.add(name)
            notes.append(f"{name} is {'at most' if value < 1.001 * low else 'at least'} {value:.3g}: not determined")
    return edge, notes


def _root(jacobian: Array, fixed: Mask) -> tuple[Array, Mask]:
    """Root of the inverse of J^T J without fixed columns, and which coefficients cannot be told."""
    size = np.linalg.norm(jacobian, axis=0)
    used = ~fixed & (size > 0.0)
    root = np.zeros((jacobian.shape[1], int(used.sum())))
    unknown = fixed | (size == 0.0)
    if not used.any():
        return root, unknown
    _, singular, vectors = np.linalg.svd(jacobian[:, used] / size[used], full_matrices=False)
    told = singular > 1e-7 * singular[0]
    inverse = np.divide(1.0, singular, out=np.zeros_like(singular), where=told)
    root[used] = (vectors.T * inverse) / size[used, None]
    unknown[np.flatnonzero(used)[(np.abs(vectors[~told]) > 1e-3).any(axis=0)]] = True
    return root, unknown
