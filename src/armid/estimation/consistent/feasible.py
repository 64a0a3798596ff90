"""Least squares on the compact factor under physical consistency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.errors import UnknownNameError
from armid.estimation.consistent.conditions import Bounds, Unknowns
from armid.estimation.consistent.prior import Prior, base_precision
from armid.estimation.consistent.regularisation import (
    VAGUE,
    data_share,
    determined,
    most_plausible,
    other_rows,
    plausible_bodies,
    regularising_rows,
    typical_sizes,
)
from armid.estimation.consistent.semidefinite import Minimum, minimise
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.identifiability import Identifiability, identifiability, judged_again
from armid.estimation.least_squares import measured_noise
from armid.estimation.linear import NeedsTriangle, residual_squares, solve, solve_problem, solve_weighted, stacked
from armid.estimation.problem import EstimationError, Problem
from armid.notes import Note, note
from armid.robot.inertia import impossibility
from armid.robot.robot import Robot, inertial_names
from armid.signals.dataset import Dataset

MARGIN = 1e-5  # how far inside the possible a solution stays, as a share of the arm's typical link
RANGE = 1e7  # largest ratio between what the data and what the plausible arm say: noise-free data would exceed it
HEAVY = 2.0  # times its plausible mass from which a lighter link is looked for
TOLD = 3.0  # times its plausible mass from which a link is told
LIGHTER = (2.0, 3.0, 5.0)  # times its plausible mass that a link may then weigh, tried one after the other
EQUAL = 3.84  # rise of the squared misfit up to which arms fit equally well: 95 % of a chi-square with one degree
RANK = 1e-9  # singular values below this share of the largest leave their direction to prior and plausible arm


class NotFeasibleError(EstimationError):
    """No physically consistent parameters were found.

    Attributes:
        fit: the unconstrained fit, the last good result.
    """

    def __init__(self, message: str, fit: Fit) -> None:
        """Keep the fit."""
        self.fit = fit
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class FeasibleLeastSquares(Estimator):
    """Weighted least squares over all physically consistent arms, by semidefinite programming on the compact factor.

    Every link's pseudo-inertia, less the second moments of the rotors it carries, is positive definite; rotor inertias,
    friction and stiffness are not negative (Wensing, Kim, Slotine 2018). All standard parameters are unknowns. What
    neither data nor prior decide is taken near a plausible arm: the description's nominal inertias where it has
    consistent ones, else bodies of the arm's proportions, known to 3000 %. A link more than twice as heavy as
    plausible is made lighter where the data do not tell the difference, and told where it stays above three times.

    Attributes:
        noise: ``residual`` weighs joints by their residuals, ``measured`` by the noise the data sets state.
        prior: what is known about links beforehand.
        bounds: what else is known about links.
        margin: distance from the edge of the physically consistent, as a share of the arm's typical link.
    """

    name: ClassVar[str] = "feasible"
    about: ClassVar[str] = "weighted least squares over physically consistent arms"

    noise: str = "residual"
    prior: Prior | None = None
    bounds: Bounds | None = None
    margin: float = MARGIN

    def options(self) -> dict[str, Any]:
        """Its own options, as data."""
        prior = None if self.prior is None else self.prior.to_data()
        return super().options() | {"prior": prior, "bounds": None if self.bounds is None else self.bounds.to_data()}

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        free = self._unconstrained(self.problem(robot, data))
        return feasible_fit(free, prior=self.prior, bounds=self.bounds, margin=self.margin)

    def _unconstrained(self, problem: Problem) -> Fit:
        """The weighted fit without conditions; directions the data leave free stay at zero for now."""
        if self.noise not in ("residual", "measured"):
            raise UnknownNameError("noise", self.noise, ("residual", "measured"))
        if self.noise == "residual":
            factor, solution, weights = solve_weighted(problem, rank_tolerance=RANK)
        else:
            weights = 1.0 / measured_noise(problem) ** 2
            factor, solution = solve_problem(problem, weights, rank_tolerance=RANK)
        return self.finished(problem, factor, solution, weights)


def feasible_fit(fit: Fit, *, prior: Prior | None = None, bounds: Bounds | None = None, margin: float = MARGIN) -> Fit:
    """The physically consistent fit to the same data, from the factor and weights that a fit keeps.

    Args:
        fit: any fit.
        prior: what is known about links beforehand.
        bounds: what else is known about links.
        margin: see `FeasibleLeastSquares`.

    Raises:
        NotFeasibleError: nothing consistent was found; the error keeps `fit`.
    """
    unknowns = Unknowns(fit.torque_model.model, fit.terms, bounds)
    _check_known(unknowns, fit)
    with one_blas_thread():
        triangle, target = stacked(fit.factor, fit.weights, None)
        matrix = triangle @ unknowns.matrix
        bodies = plausible_bodies(fit, prior)
        scale = typical_sizes(unknowns, bodies, matrix, target)
        doubt = max(_inflation(fit, triangle), float(np.linalg.norm(matrix * scale, 2)) / RANGE)
        regularising = regularising_rows(unknowns, bodies, scale, prior)
    task = _Task(fit, prior, (triangle, target), (matrix / doubt, target / doubt), regularising, bodies, scale, margin)
    found = task.solve(unknowns)
    _check(found, fit, bounds)
    x, burdens = _not_too_heavy(task, unknowns, bounds, task.settled(unknowns, found.x))
    values = unknowns.matrix @ x
    squares = residual_squares(fit.factor, values)
    counts = np.maximum(np.array(fit.factor.counts), 1)
    share = data_share(fit, unknowns, x, scale, task.data[0], regularising[0], prior)
    notes = [
        *_growth(fit, squares),
        *_edges(unknowns, x, scale, margin),
        *burdens,
        *([] if prior is None else [prior.note()]),
        determined(unknowns.names, share, prior),
        note("estimation.limits_not_in_intervals", prior=prior is not None),
    ]
    covariance, judged = _uncertainty(fit, prior, values, doubt)
    known = fit.torque_model.model.known
    given = dict(zip(unknowns.names, x.tolist(), strict=True))
    own = {"margin": margin, "prior": None if prior is None else prior.to_data()}
    own |= {"bounds": None if bounds is None else bounds.to_data(), "solver_s": found.seconds}
    return replace(
        fit,
        values=values,
        covariance=covariance,
        identifiability=judged,
        residual_rms=np.sqrt(squares / counts),
        standard_parameters={name: given.get(name, known.get(name, 0.0)) for name in fit.torque_model.model.names},
        method=FeasibleLeastSquares.name,
        options={**fit.options, **own, "data_share": dict(zip(unknowns.names, share.round(4).tolist(), strict=True))},
        notes=(*fit.notes, *notes),
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """What is to be minimised: rows of the data in units of their honest standard deviations, and regularising."""

    fit: Fit
    prior: Prior | None
    factor: tuple[Array, Array]
    data: tuple[Array, Array]
    regularising: tuple[Array, Array]
    bodies: Array
    scale: Array
    margin: float

    def solve(self, unknowns: Unknowns) -> Minimum:
        """The best possible parameters."""
        rows, target = (np.concatenate(pair) for pair in zip(self.data, self.regularising, strict=True))
        return minimise(rows, target, unknowns.conditions, self.scale, margin=self.margin)

    def settled(self, unknowns: Unknowns, x: Array) -> Array:
        """The most plausible parameters that move like `x`."""
        if self.prior is None:
            x = _exactly(unknowns, x, *self.factor, self.scale, self.margin)
        strengths = [
            VAGUE if self.prior is None else self.prior.of_link(i + 1) or VAGUE for i in range(len(self.bodies))
        ]
        weights = [1.0 / strength**2 for strength in strengths]
        other = other_rows(unknowns, self.scale, self.prior)
        return most_plausible(unknowns, x, self.scale, self.bodies, weights, 1.0 / VAGUE**2, other)

    def misfit(self, x: Array) -> float:
        """Sum of the data's squares, in units of their variance."""
        return float(np.sum((self.data[0] @ x - self.data[1]) ** 2))

    def burdens(self, unknowns: Unknowns, x: Array) -> dict[int, float]:
        """How many times as heavy as plausible each link is, where no prior speaks of it."""
        told = () if self.prior is None else self.prior.links
        masses = {n: f"m{n}" for n in range(1, len(self.bodies) + 1) if n not in told}
        return {
            n: float(x[unknowns.names.index(name)] / self.bodies[n - 1, 3, 3])
            for n, name in masses.items()
            if name in unknowns.names
        }


def _not_too_heavy(task: _Task, unknowns: Unknowns, bounds: Bounds | None, x: Array) -> tuple[Array, list[Note]]:
    """Lighter links where those of `x` are implausibly heavy and the data do not tell the difference, else a note.

    At the edge of the possible the data may ask for an inertia that only a very heavy link has, by less than their own
    noise. Arms count as equally good by the likelihood ratio of one parameter.
    """
    burdens = task.burdens(unknowns, x)
    if max(burdens.values(), default=0.0) <= HEAVY:
        return x, []
    for most in LIGHTER:
        lighter = _no_heavier(task, unknowns, bounds, burdens, most)
        if lighter is not None and task.misfit(lighter) <= task.misfit(x) + EQUAL:
            return lighter, _heavy(task, task.burdens(unknowns, lighter))
    return x, _heavy(task, burdens)


def _heavy(task: _Task, burdens: dict[int, float]) -> list[Note]:
    return [
        note("estimation.heavy_link", link=number, mass=times * float(task.bodies[number - 1, 3, 3]), times=times)
        for number, times in burdens.items()
        if times > TOLD
    ]


def _no_heavier(
    task: _Task, unknowns: Unknowns, bounds: Bounds | None, burdens: dict[int, float], most: float
) -> Array | None:
    """The parameters if no link may weigh more than `most` times what is plausible; bounds the user states go first."""
    stated = {} if bounds is None else dict(bounds.mass or {})
    limits: dict[int, tuple[float, float]] = {}
    while heavy := {number for number, times in burdens.items() if times > most} - {*limits, *stated}:
        limits |= {number: (0.0, most * float(task.bodies[number - 1, 3, 3])) for number in heavy}
        narrow = Unknowns(unknowns.model, unknowns.terms, replace(bounds or Bounds(), mass={**limits, **stated}))
        found = task.solve(narrow)
        if not found.good:
            return None
        x = task.settled(narrow, found.x)
        burdens = task.burdens(narrow, x)
    return x if limits else None


def _uncertainty(fit: Fit, prior: Prior | None, values: Array, doubt: float) -> tuple[Array, Identifiability]:
    """Covariance and identifiability of the unconstrained problem; with a prior they count it in."""
    if prior is None:
        return fit.covariance, judged_again(fit.identifiability, values, fit.sigma)
    try:
        solution = solve(fit.factor, fit.weights / doubt**2, prior=base_precision(fit.torque_model, prior))
    except NeedsTriangle:
        return fit.covariance, fit.identifiability
    sigma = np.sqrt(np.diag(solution.inverse))
    return solution.inverse, identifiability(fit.names, replace(solution, values=values), sigma)


def _exactly(unknowns: Unknowns, x: Array, triangle: Array, target: Array, scale: Array, margin: float) -> Array:
    """The parameters moved onto the unconstrained solution, where that is possible: beyond the solver's precision."""
    with one_blas_thread():
        length = np.linalg.norm(triangle, axis=0)
        if not length.all() or np.linalg.cond(triangle / length) > 1.0 / RANK:
            return x
        wanted = np.linalg.solve(triangle / length, target) / length
        moved = x + scale * np.linalg.lstsq(unknowns.matrix * scale, wanted - unknowns.matrix @ x)[0]
    for condition in unknowns.conditions:
        unit = condition.unit(scale)
        if np.linalg.eigvalsh(condition.matrix(moved) / np.outer(unit, unit))[0] < margin:
            return x
    return np.asarray(moved)


def _inflation(fit: Fit, triangle: Array) -> float:
    """How much wider the fit's intervals are than independent rows would make them; at least 1."""
    white = np.linalg.norm(np.linalg.pinv(triangle, rcond=RANK), axis=1)
    known = white > 0.0
    ratio = float(np.median(fit.sigma[known] / white[known])) if known.any() else 1.0
    return max(1.0, ratio)


def _check_known(unknowns: Unknowns, fit: Fit) -> None:
    """Links whose parameters are all known are not for the solver; a link of zeros is neglected on purpose."""
    for number in range(1, fit.robot.n_joints + 1):
        link = unknowns.link(number)
        if not link.slopes.any() and link.constant.any():
            phi = [unknowns.model.known[name] for name in inertial_names(number)]
            reason = impossibility(phi)
            if reason is not None:
                raise NotFeasibleError(f"the known values of link {number} are impossible: {reason}", fit)


def _check(found: Minimum, fit: Fit, bounds: Bounds | None) -> None:
    if found.good:
        return
    if "Infeasible" in found.status:
        cause = "the known values and bounds contradict each other" if bounds else "the known values are impossible"
        way = "free some of them, or use `armid audit` on the description"
    else:
        cause = f"the solver gave up ({found.status})"
        way = "try a prior, a larger margin (1e-4), or fewer friction terms"
    raise NotFeasibleError(f"no physically consistent parameters were found: {cause}; {way}", fit)


def _growth(fit: Fit, squares: Array) -> list[Note]:
    counts = np.maximum(np.array(fit.factor.counts), 1)
    before = float(fit.weights @ (counts * fit.residual_rms**2))
    after = float(fit.weights @ squares)
    if before <= 0.0:
        return []
    return [note("estimation.consistency_cost", change=float(np.sqrt(after / before)) - 1.0)]


def _edges(unknowns: Unknowns, x: Array, scale: Array, margin: float) -> list[Note]:
    """Conditions that the solution meets without slack."""
    names = []
    for condition in unknowns.conditions:
        unit = condition.unit(scale)
        least = float(np.linalg.eigvalsh(condition.matrix(x) / np.outer(unit, unit))[0])
        if least < 3.0 * margin:
            names.append(condition.name)
    active = list(dict.fromkeys(names))
    return [note("estimation.limits_active", names=active) if active else note("estimation.limits_inactive")]
