"""Least-squares fits of curves: linear coefficients are projected out, shapes are searched from many starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2
from scipy.stats import t as student

from armid.arrays import Array
from armid.errors import ArmidError
from armid.estimation.single_joint.laws import FIXED_BY_NATURE, Law, law
from armid.estimation.single_joint.projection import Projection

Flags = NDArray[np.bool_]

MISFIT = 0.01  # probability below which the residuals say that stated errors are too small


class FitError(ArmidError):
    """A curve cannot be fitted to the points."""


@dataclass(frozen=True, eq=False)
class CurveFit:
    """A fitted curve.

    Attributes:
        law: name of the law.
        coefficients: name to value; with an offset, `fo` is the last.
        covariance: of the coefficients in that order; NaN where a coefficient cannot be told from the points.
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
    coefficients: Mapping[str, float]
    covariance: Array
    chi2: float
    dof: int
    noise: float
    stated_errors: bool
    points: int
    reach: tuple[float, float]
    notes: tuple[str, ...]
    root: Array

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
        return _value(law(self.law), np.asarray(x, dtype=float), self.coefficients)

    def standard_error(self, x: ArrayLike) -> Array:
        """Standard deviation of the fitted curve at x."""
        slopes = _slopes(law(self.law), np.atleast_1d(np.asarray(x, dtype=float)), self.coefficients)
        result: Array = np.linalg.norm(slopes @ self.root, axis=1)
        return result.reshape(np.shape(x))

    def band(self, x: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Interval of the curve at x, lower and upper end."""
        middle, half = self.curve(x), self._quantile(level) * self.standard_error(x)
        return middle - half, middle + half

    def _quantile(self, level: float) -> float:
        """Factor of the interval: Student's, as long as the size of the noise comes from the residuals."""
        return float(student.ppf(0.5 + 0.5 * level, np.inf if self.stated_errors else max(self.dof, 1)))

    def to_data(self) -> dict[str, Any]:
        """As JSON-able data."""
        sigma = {name: value if np.isfinite(value) else None for name, value in self.sigma.items()}
        return {
            "law": self.law,
            "coefficients": dict(self.coefficients),
            "sigma": sigma,
            "root": self.root.tolist(),
            "chi2": self.chi2,
            "dof": self.dof,
            "noise": self.noise,
            "stated_errors": self.stated_errors,
            "points": self.points,
            "reach": list(self.reach),
            "notes": list(self.notes),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> CurveFit:
        """The fit that `to_data` described."""
        root = np.array(data["root"], dtype=float).reshape(len(data["coefficients"]), -1)
        unknown = np.array([data["sigma"][name] is None for name in data["coefficients"]])
        same = {name: data[name] for name in ("law", "chi2", "dof", "noise", "stated_errors", "points")}
        return cls(
            **same,
            coefficients=dict(data["coefficients"]),
            covariance=_blanked(root, unknown),
            reach=(data["reach"][0], data["reach"][1]),
            notes=tuple(data["notes"]),
            root=root,
        )


def fit_curve(
    name: str, x: ArrayLike, y: ArrayLike, errors: ArrayLike | None = None, *, offset: bool = False
) -> CurveFit:
    """Fit a law to points by weighted non-linear least squares.

    For given shapes the other coefficients follow from linear least squares (variable projection), so only one to three
    shapes are searched, on a logarithmic grid of what the points can show and from its best local minima on.

    With stated errors, the covariance follows from them; if the residuals are larger than chance allows (1 %), it is
    scaled up to what they say. Without, the residuals give the size of the noise.

    Args:
        name: of the law.
        x: speeds [rad/s] or times [s].
        y: torques [N m].
        errors: standard errors of y; None if unknown, then all points count alike.
        offset: add a constant `fo`.

    Raises:
        FitError: there are fewer different x than the law needs.
    """
    chosen = law(name)
    at, values, weights = _checked(chosen, x, y, errors, offset)
    reach = (float(np.abs(at[at != 0.0]).min(initial=np.inf)), float(np.abs(at).max()))
    problem = Projection(chosen, at, values * weights, weights, offset)
    ranges = chosen.ranges(*(reach if name != "decay" else (0.0, float(np.ptp(at)))))
    shape = problem.search(ranges)
    found = problem.solve(shape)[0]
    gathered = chosen.gather(found[: len(found) - offset], shape)
    names = (*chosen.coefficients, *(("fo",) if offset else ()))
    coefficients = dict(zip(names, [*gathered.tolist(), *found[len(found) - offset :].tolist()], strict=True))
    residual = weights * (values - _value(chosen, at, coefficients))
    total, free = float(residual @ residual), len(names) - len(FIXED_BY_NATURE.get(name, ()))
    dof = len(at) - free
    edge, notes = _edges(chosen, shape, ranges)
    fixed = np.array([n in edge or n in FIXED_BY_NATURE.get(name, ()) for n in names])
    noise = float(np.sqrt(total / dof))
    scale = noise
    if errors is not None:
        scale = noise if chi2.sf(total, dof) < MISFIT else 1.0
        if scale > 1.0:
            notes.append(f"residuals are {noise:.2g} times the stated errors; intervals are widened by that")
    root, unknown = _root(_slopes(chosen, at, coefficients) * weights[:, None], fixed)
    return CurveFit(
        name,
        coefficients,
        _blanked(scale * root, unknown),
        total,
        dof,
        noise,
        errors is not None,
        len(at),
        reach,
        tuple(notes),
        scale * root,
    )


def _checked(chosen: Law, x: ArrayLike, y: ArrayLike, errors: ArrayLike | None, offset: bool) -> tuple[Array, ...]:
    at, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    spread = np.ones_like(values) if errors is None else np.asarray(errors, dtype=float)
    weights = np.divide(1.0, spread, out=np.full(spread.shape, np.nan), where=spread > 0.0)
    if at.ndim != 1 or values.shape != at.shape or weights.shape != at.shape:
        raise FitError("points must be lists of the same length: x, y and their errors")
    if not (np.isfinite(at).all() and np.isfinite(values).all() and np.isfinite(weights).all()):
        raise FitError("points must be finite, with positive errors")
    different = np.unique([f"{value:.2e}" for value in at])
    needed = chosen.least_points + offset - len(FIXED_BY_NATURE.get(chosen.name, ()))
    if len(different) < needed:
        what = "times" if chosen.name == "decay" else "speeds"
        raise FitError(
            f"{chosen.name} has {needed - 1} coefficients and needs {needed} different {what}; "
            f"there are {len(different)}"
        )
    return at, values, weights


def _value(chosen: Law, x: Array, coefficients: Mapping[str, float]) -> Array:
    return chosen.value(x, coefficients) + coefficients.get("fo", 0.0)


def _slopes(chosen: Law, x: Array, coefficients: Mapping[str, float]) -> Array:
    """Derivative of the law by each coefficient, central differences, (points, coefficients)."""
    result = np.empty((len(x), len(coefficients)))
    for k, (name, value) in enumerate(coefficients.items()):
        step = 1e-5 * abs(value) if value else 0.0  # a zero stands for a term that is switched off
        high, low = ({**coefficients, name: value + sign * step} for sign in (1.0, -1.0))
        rise = _value(chosen, x, high) - _value(chosen, x, low)
        result[:, k] = rise / (2.0 * step) if step else 0.0
    return result


def _edges(chosen: Law, shape: Array, ranges: tuple[tuple[float, float], ...]) -> tuple[set[str], list[str]]:
    """Shapes at the end of what the points can show, which have no interval."""
    edge, notes = set(), []
    for name, value, (low, high) in zip(chosen.shapes, shape, ranges, strict=True):
        if value < 1.001 * low or value > 0.999 * high:
            edge.add(name)
            notes.append(f"{name} is {'at most' if value < 1.001 * low else 'at least'} {value:.3g}: not to be told")
    return edge, notes


def _root(jacobian: Array, fixed: Flags) -> tuple[Array, Flags]:
    """Root of the inverse of J^T J without fixed columns, and which coefficients cannot be told."""
    size = np.linalg.norm(jacobian, axis=0)
    used = ~fixed & (size > 0.0)
    root = np.zeros((jacobian.shape[1], int(used.sum())))
    unknown = fixed | (size == 0.0)
    if not used.any():
        return root, unknown
    _, singular, vectors = np.linalg.svd(jacobian[:, used] / size[used], full_matrices=False)
    seen = singular > 1e-7 * singular[0]
    inverse = np.divide(1.0, singular, out=np.zeros_like(singular), where=seen)
    root[used] = (vectors.T * inverse) / size[used, None]
    unknown[np.flatnonzero(used)[(np.abs(vectors[~seen]) > 1e-3).any(axis=0)]] = True
    return root, unknown


def _blanked(root: Array, unknown: Flags) -> Array:
    covariance: Array = root @ root.T
    covariance[unknown] = np.nan
    covariance[:, unknown] = np.nan
    return covariance
