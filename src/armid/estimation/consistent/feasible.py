"""Weighted least squares under physical consistency, with the friction that is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.consistent.conditions import Bounds, Unknowns
from armid.estimation.consistent.log_det import ConsistentEstimate, NotConsistentError, consistent_estimate
from armid.estimation.consistent.prior import Prior
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.identifiability import judged_again
from armid.estimation.least_squares import weighted_solution
from armid.estimation.linear import residual_squares, stacked
from armid.notes import Note, note
from armid.robot.inertia import impossibility
from armid.robot.robot import Robot, inertial_names
from armid.signals.dataset import Dataset

RANK = 1e-9  # singular values below this share of the largest leave their direction to prior and plausible arm
HALF = 0.5  # share from which a parameter counts as determined by the data


@dataclass(frozen=True, kw_only=True)
class ConsistentEstimator(Estimator):
    """An estimator of physically consistent arms.

    Attributes:
        prior: what is known about links beforehand.
        bounds: what else is known about links.
    """

    prior: Prior | None = None
    bounds: Bounds | None = None

    def options(self) -> dict[str, Any]:
        """Its own options, as data."""
        prior = None if self.prior is None else self.prior.to_data()
        return super().options() | {"prior": prior, "bounds": None if self.bounds is None else self.bounds.to_data()}


@dataclass(frozen=True, kw_only=True)
class ConsistentLeastSquares(ConsistentEstimator):
    """Weighted least squares over all physically consistent arms.

    Every link's pseudo-inertia, less the second moments of the rotors it carries, is positive definite; rotor inertias,
    friction and stiffness are not negative (Wensing, Kim, Slotine 2018). All standard parameters are unknowns; what
    neither data nor prior determine is taken near a plausible arm, see `armid.estimation.consistent.log_det`.

    Attributes:
        noise: ``residual`` weighs joints by their residuals, ``measured`` by the noise the data sets state.
    """

    name: ClassVar[str] = "feasible"
    about: ClassVar[str] = "weighted least squares over physically consistent arms, friction as given"

    noise: str = "residual"

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        free = self.finished(problem, *weighted_solution(problem, self.noise, rank_tolerance=RANK))
        return consistent_fit(free, prior=self.prior, bounds=self.bounds)


def consistent_fit(fit: Fit, *, prior: Prior | None = None, bounds: Bounds | None = None) -> Fit:
    """The physically consistent fit to the same data, from the factor and weights that a fit keeps.

    Args:
        fit: any fit.
        prior: what is known about links beforehand.
        bounds: what else is known about links.

    Raises:
        NotConsistentError: what is known beforehand contradicts itself.
    """
    unknowns = Unknowns(fit.torque_model.model, fit.terms, bounds)
    check_known(unknowns)
    with one_blas_thread():
        triangle, target = stacked(fit.factor, fit.weights, None)
        doubt = _inflation(fit, triangle)
        triangle, target = triangle / doubt, target / doubt
        size = float(np.linalg.norm(target))
        found = consistent_estimate(unknowns, triangle.T @ triangle, triangle.T @ target, size, prior)
        covariance = unknowns.matrix @ found.covariance @ unknowns.matrix.T
    squares = residual_squares(fit.factor, found.values)
    counts = np.maximum(np.array(fit.factor.counts), 1)
    own = {"prior": None if prior is None else prior.to_data()}
    own |= {"bounds": None if bounds is None else bounds.to_data()}
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return replace(
        fit,
        values=found.values,
        covariance=covariance,
        identifiability=judged_again(fit.identifiability, found.values, sigma),
        residual_rms=np.sqrt(squares / counts),
        standard_parameters=standard_parameters(fit.torque_model.model.names, unknowns, found),
        method=ConsistentLeastSquares.name,
        options={**fit.options, **own, "data_share": shares(found)},
        notes=(*fit.notes, *_growth(fit, squares), *consistency_notes(found, unknowns, prior)),
    )


def standard_parameters(names: Sequence[str], unknowns: Unknowns, found: ConsistentEstimate) -> dict[str, float]:
    """All standard parameters by name: found, known or zero."""
    values = {**unknowns.model.known, **dict(zip(found.names, found.x.tolist(), strict=True))}
    return {name: values.get(name, 0.0) for name in names}


def shares(found: ConsistentEstimate) -> dict[str, float]:
    """What share of each standard parameter the data tell, for a fit's options."""
    return dict(zip(found.names, found.share.round(4).tolist(), strict=True))


def consistency_notes(found: ConsistentEstimate, unknowns: Unknowns, prior: Prior | None) -> list[Note]:
    """What regularisation and prior did."""
    others = [name for name, share in zip(found.names, found.share, strict=True) if share < HALF]
    silent = [name[1:] for name, column in zip(found.names, unknowns.matrix.T, strict=True) if not column.any()]
    numbers = [int(name) for name in silent if name.isdigit()]
    return [
        *([] if prior is None else [prior.note()]),
        note("estimation.regularised", strength=found.strength, mass_factor=found.mass_factor),
        *([note("estimation.silent_masses", links=numbers)] if numbers and prior is None else []),
        note("estimation.determined", total=len(found.names), others=others, prior=prior is not None),
    ]


def check_known(unknowns: Unknowns) -> None:
    """Links whose parameters are all known are not for the solver; a link of zeros is neglected on purpose."""
    for number in range(1, len(unknowns.model.robot.links) + 1):
        link = unknowns.link(number)
        if not link.slopes.any() and link.constant.any():
            phi = [unknowns.model.known[name] for name in inertial_names(number)]
            if (reason := impossibility(phi)) is not None:
                raise NotConsistentError(f"the known values of link {number} are impossible: {reason}")


def _inflation(fit: Fit, triangle: Array) -> float:
    """How much wider the fit's intervals are than independent rows would make them; at least 1."""
    white = np.linalg.norm(np.linalg.pinv(triangle, rcond=RANK), axis=1)
    known = white > 0.0
    ratio = float(np.median(np.sqrt(np.diag(fit.covariance)[known]) / white[known])) if known.any() else 1.0
    return max(1.0, ratio)


def _growth(fit: Fit, squares: Array) -> list[Note]:
    counts = np.maximum(np.array(fit.factor.counts), 1)
    before = float(fit.weights @ (counts * fit.residual_rms**2))
    after = float(fit.weights @ squares)
    if before <= 0.0:
        return []
    return [note("estimation.consistency_cost", change=float(np.sqrt(after / before)) - 1.0)]
