"""What makes a trajectory informative: criteria on the information matrix, with their derivatives.

Each criterion is a cost to be minimised. The information matrix is G = sum_j w_j W_j' W_j / samples (plus what is known
already), with W the regressor of the parameters of interest and w_j the inverse variance of joint j's torque.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from armid.arrays import Array
from armid.errors import UnknownNameError
from armid.files import Unbounded

# Eigenvalues of an information matrix below this share of the largest are round-off.
_RANK = 1e-15


class Criterion(ABC):
    """A cost of the information matrix."""

    #: Whether the search should start from the D-optimal trajectory: costs of single eigenvalues have many bad minima.
    from_d_optimal = True

    @abstractmethod
    def cost(self, information: Array, samples: int) -> tuple[float, Array]:
        """The cost and its derivative with respect to the matrix (symmetric); (nan, nan) where it is singular."""


def _singular(information: Array) -> tuple[float, Array]:
    return np.nan, np.full_like(information, np.nan)


@dataclass(frozen=True)
class DOptimal(Criterion):
    """Minus log det G: the volume of the confidence ellipsoid (Swevers et al.; erratum SW-12). Units cancel."""

    from_d_optimal = False

    def cost(self, information: Array, samples: int) -> tuple[float, Array]:
        """The cost and its derivative."""
        scale = _column_scale(information)
        if scale is None:
            return _singular(information)
        factor, failed = dpotrf(information * np.outer(scale, scale), lower=1)
        if failed:
            return _singular(information)
        cost = -2.0 * float(np.sum(np.log(np.diag(factor) / scale)))
        root = dtrtri(factor, lower=1)[0] * scale
        return cost, -root.T @ root


@dataclass(frozen=True)
class AOptimal(Criterion):
    """Log of the trace of G⁻¹: the sum of the variances, in SI units."""

    def cost(self, information: Array, samples: int) -> tuple[float, Array]:
        """The cost and its derivative."""
        scale = _column_scale(information)
        if scale is None:
            return _singular(information)
        values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
        if values[0] <= _RANK * values[-1]:
            return _singular(information)
        covariance = (vectors * scale[:, None] / values) @ (vectors * scale[:, None]).T
        trace = float(np.trace(covariance))
        return np.log(trace), -covariance @ covariance / trace


@dataclass(frozen=True)
class EOptimal(Criterion):
    """Minus log of the smallest eigenvalue of G: the worst direction."""

    def cost(self, information: Array, samples: int) -> tuple[float, Array]:
        """The cost and its derivative."""
        values, vectors = np.linalg.eigh(information)
        if values[0] <= _RANK * values[-1]:
            return _singular(information)
        return -float(np.log(values[0])), -np.outer(vectors[:, 0], vectors[:, 0]) / values[0]


@dataclass(frozen=True)
class ConditionNumber(Criterion):
    """Log of the condition number of W, its columns scaled to unit length, or raw (ER-16 (15), RX-60)."""

    scaled: bool = True

    def cost(self, information: Array, samples: int) -> tuple[float, Array]:
        """The cost and its derivative."""
        scale = _column_scale(information) if self.scaled else np.ones(len(information))
        if scale is None:
            return _singular(information)
        matrix = information * np.outer(scale, scale)
        values, vectors = np.linalg.eigh(matrix)
        if values[0] <= _RANK * values[-1]:
            return _singular(information)
        top, bottom = vectors[:, -1], vectors[:, 0]
        bar = 0.5 * (np.outer(top, top) / values[-1] - np.outer(bottom, bottom) / values[0])
        result = bar * np.outer(scale, scale)
        if self.scaled:
            result -= np.diag(np.einsum("ij,ji->i", matrix, bar) / np.diag(information))
        return 0.5 * float(np.log(values[-1] / values[0])), result


@dataclass(frozen=True)
class ConditionAndSigma(Criterion):
    """lambda1 cond(W) + lambda2 / sigma_min(W) (Powerball (17); the paper does not give the weights, PB-18)."""

    lambda1: float = 1.0
    lambda2: float = 100.0

    def cost(self, information: Array, samples: int) -> tuple[float, Array]:
        """The cost and its derivative."""
        values, vectors = np.linalg.eigh(information)
        if values[0] <= _RANK * values[-1]:
            return _singular(information)
        condition = float(np.sqrt(values[-1] / values[0]))
        inverse_sigma = float(1.0 / np.sqrt(samples * values[0]))
        top = np.outer(vectors[:, -1], vectors[:, -1]) / values[-1]
        bottom = np.outer(vectors[:, 0], vectors[:, 0]) / values[0]
        bar = 0.5 * (self.lambda1 * condition * (top - bottom) - self.lambda2 * inverse_sigma * bottom)
        return self.lambda1 * condition + self.lambda2 * inverse_sigma, bar


CRITERIA: dict[str, Criterion] = {
    "d-optimal": DOptimal(),
    "a-optimal": AOptimal(),
    "e-optimal": EOptimal(),
    "condition": ConditionNumber(),
    "condition-raw": ConditionNumber(scaled=False),
    "condition-and-sigma": ConditionAndSigma(),
}


def criterion(name: str) -> Criterion:
    """The criterion called `name`."""
    if name not in CRITERIA:
        raise UnknownNameError("criterion", name, CRITERIA)
    return CRITERIA[name]


@dataclass(frozen=True)
class Conditioning:
    """Figures of an information matrix that people compare.

    Attributes:
        log_det: log det G.
        condition: condition number of W, columns scaled to unit length.
        condition_raw: condition number of W.
        sigma_min: smallest singular value of W.
        singular_values: of W with unit columns, largest first.
    """

    log_det: Unbounded
    condition: Unbounded
    condition_raw: Unbounded
    sigma_min: float
    singular_values: tuple[float, ...]

    def __post_init__(self) -> None:
        """A file does not say which infinity it means."""
        if self.log_det == np.inf:
            object.__setattr__(self, "log_det", -np.inf)


def conditioning(information: Array, samples: int) -> Conditioning:
    """Describe an information matrix of `samples` samples."""
    raw = np.maximum(np.linalg.eigvalsh(information), 0.0)
    scale = _column_scale(information)
    scaled = np.zeros(len(information))
    log_det = -np.inf
    if scale is not None:
        scaled = np.maximum(np.linalg.eigvalsh(information * np.outer(scale, scale)), 0.0)
        with np.errstate(divide="ignore"):
            log_det = float(np.sum(np.log(scaled)) - 2.0 * np.sum(np.log(scale)))
    return Conditioning(
        log_det=log_det,
        condition=_ratio(scaled),
        condition_raw=_ratio(raw),
        sigma_min=float(np.sqrt(samples * raw[0])),
        singular_values=tuple(np.sqrt(scaled[::-1]).tolist()),
    )


def _ratio(eigenvalues: Array) -> float:
    return float(np.sqrt(eigenvalues[-1] / eigenvalues[0])) if eigenvalues[0] > 0.0 else np.inf


def _column_scale(information: Array) -> Array | None:
    """Factors that give the columns of W unit length; None if a column is zero."""
    diagonal = np.diag(information)
    return 1.0 / np.sqrt(diagonal) if np.all(diagonal > 0.0) and np.all(np.isfinite(diagonal)) else None
