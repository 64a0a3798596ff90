"""An arm's fit from its factors: the same object that `armid identify` writes, without any data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from armid._version import __version__
from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.consistent.feasible import NotFeasibleError, feasible_fit
from armid.estimation.fit import Fit
from armid.estimation.identifiability import identifiability
from armid.estimation.linear import residual_squares, solve
from armid.fleet.description import Fleet
from armid.fleet.information import History
from armid.notes import as_note
from armid.torque.model import TorqueModel
from armid.validation.auditing import audit

RANK = 1e-9
METHOD = "fleet"
SAME = 1e-3  # growth of the weighted squares, whose noise is 1, up to which two fits are the same


def arm_fit(fleet: Fleet, history: History, extra: Array, notes: Sequence[str] = ()) -> Fit:
    """Weighted least squares on the sum of an arm's factors.

    Args:
        fleet: what all arms share.
        history: the days that count.
        extra: covariance of the parameters' usual changes from day to day, (parameters, parameters).
        notes: what was left out and why.
    """
    factors = [day.factor for day in history.days if day.factor is not None]
    factor = reduce(add, factors)
    weights = 1.0 / (history.noise**2 * history.inflation)
    solution = solve(factor, weights, rank_tolerance=RANK)
    with one_blas_thread():
        half = history.matrix @ extra
        middle = np.einsum("dpq,dqr->pr", half, history.matrix)
        covariance = solution.inverse + solution.inverse @ middle @ solution.inverse
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    counts = np.maximum(np.array(factor.counts), 1)
    known = fleet.fit
    terms = () if known is None else known.terms
    hashes = [sha for day in history.days for sha in day.about.get("files_sha256", {}).values()]
    dates = [day.date for day in history.days]
    said = (
        f"{len(dates)} days, {dates[0]} to {dates[-1]}; intervals account for residuals that are correlated in time "
        "and for what usually changes from day to day.",
        *notes,
    )
    return Fit(
        robot=fleet.robot,
        columns=factor.names,
        values=solution.values,
        covariance=covariance,
        terms=terms,
        load_values=None if known is None else known.load_values,
        known_torque=None,
        delay_s=np.zeros(fleet.robot.n_joints) if known is None else known.delay_s,
        residual_rms=np.sqrt(residual_squares(factor, solution.values) / counts),
        noise=None,
        standard_parameters=None,
        factor=factor,
        weights=weights,
        identifiability=identifiability(TorqueModel(fleet.robot, terms=terms).labels, solution, sigma),
        method=METHOD,
        options={"arm": history.name, "dates": dates, "slow_floor": fleet.slow_floor},
        pipeline=tuple(fleet.pipeline.to_data()),
        notes=tuple(as_note(one) for one in said),
        history={"armid": __version__, "data_sha256": hashes, "data": []},
    )


def possible_fit(fit: Fit) -> tuple[Fit, tuple[str, ...]]:
    """The physically possible fit to the same factors, and the audit's reasons why the free one is impossible.

    The audit of an arm whose possible fit is the free one needs no more work: it is possible.
    """
    try:
        found = feasible_fit(fit)
    except NotFeasibleError as error:
        return fit.with_notes(as_note(f"No physically consistent fit: {error}.")), tuple(audit(fit)[0].certificates)
    growth = fit.weights @ (residual_squares(fit.factor, found.values) - residual_squares(fit.factor, fit.values))
    if float(growth) < SAME:
        return found, ()
    verdict = audit(fit)[0]
    return found, () if verdict.possible else tuple(verdict.certificates) or ("no arm can have these values",)
