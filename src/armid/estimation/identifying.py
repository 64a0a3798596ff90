"""The main job in one call: choose friction, estimate, and return a physically consistent arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from armid.errors import MissingExtraError
from armid.estimation.consistent.feasible import NotFeasibleError, feasible_fit
from armid.estimation.consistent.prior import Prior
from armid.estimation.estimator import Estimator, estimators
from armid.estimation.fit import Fit
from armid.estimation.friction_choice import FrictionSearch
from armid.estimation.friction_law import with_friction_law
from armid.estimation.least_squares import PriorLeastSquares, WeightedLeastSquares
from armid.estimation.problem import EstimationError
from armid.notes import note
from armid.progress import progress_part, report_progress
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.friction.added import friction_choice
from armid.torque.known import KnownTorque

FRICTION_NOTES = ("estimation.delay", "estimation.friction_chosen")  # of a search, that tell what it chose


def identify(
    robot: Robot,
    data: Dataset | Sequence[Dataset],
    *,
    method: str | None = None,
    friction: str | None = None,
    prior: Prior | None = None,
    known: Mapping[str, float] | None = None,
    known_torque: KnownTorque | None = None,
) -> Fit:
    """Parameters of a robot from data, by the ways that suit most people.

    Args:
        robot: the robot.
        data: one data set or several; see `armid.process` and `armid.signals.process_logs`.
        method: one of `estimators`; None for ``feasible``, or ``wls`` where nothing consistent can be found.
        friction: ``auto`` chooses terms and delays of each joint by held-out data, ``linear`` keeps to the description
            (its nearest viscous and Coulomb friction); the name of a friction law puts that one on every joint; kinds
            of terms to choose among stand with commas: ``stribeck,load``. None for the method's usual one.
        prior: what is known beforehand; for the methods ``feasible`` and ``wls``.
        known: values of parameters that are not to be estimated.
        known_torque: torque known beforehand.
    """
    if method is None:
        shared: dict[str, Any] = {"friction": friction, "prior": prior, "known": known, "known_torque": known_torque}
        try:
            return identify(robot, data, method="feasible", **shared)
        except (NotFeasibleError, MissingExtraError) as error:
            fit = identify(robot, data, method="wls", **shared)
            return fit.with_notes(note("estimation.not_consistent", reason=str(error)))
    kind = estimators[method]
    friction = friction or kind.friction
    if kind.finds_friction:
        if friction not in ("auto", "linear"):
            raise EstimationError(f"the method {method} finds the form of friction itself; leave {friction!r} out")
        friction = "linear"
    options: dict[str, Any] = {"known": dict(known or {}) or None, "known_torque": known_torque}
    if friction == "linear":
        fit = _estimator(method, prior, options).fit(robot, data)
    elif isinstance(kinds := friction_choice(friction), str):
        fit = _with_friction_law(robot, data, method, kinds, prior, options)
    else:
        fit = _with_chosen_friction(robot, data, method, kinds, prior, options)
    return replace(fit, options={**fit.options, "friction": friction})


def check_method(method: str | None, friction: str | None) -> None:
    """Refuse a method or friction that `identify` does not know, before long work.

    Raises:
        UnknownNameError: there is none of that name.
    """
    if method is not None:
        estimators[method]
    if friction not in (None, "linear"):
        friction_choice(str(friction))


def _with_friction_law(
    robot: Robot,
    data: Dataset | Sequence[Dataset],
    method: str,
    law: str,
    prior: Prior | None,
    options: Mapping[str, Any],
) -> Fit:
    """Shapes of the law with weighted least squares, then the estimate by the method."""
    estimator = _estimator(method, prior, options)
    with progress_part(0.0, 0.9):
        robot, terms = with_friction_law(robot, data, law, _estimator("wls", None, options))
    fit = replace(estimator, terms=terms).fit(robot, data)
    names = robot.joint_names
    shaped = (note("estimation.friction_law", joint=names[term.joint], law=str(term)) for term in terms if term.shapes)
    return fit.with_notes(*shaped)


def _with_chosen_friction(
    robot: Robot,
    data: Dataset | Sequence[Dataset],
    method: str,
    kinds: tuple[str, ...],
    prior: Prior | None,
    options: Mapping[str, Any],
) -> Fit:
    """Friction chosen with weighted least squares, then the estimate by the method."""
    estimator = _estimator(method, prior, options)  # first, since it may refuse the prior
    first = _estimator("wls", prior, options)
    search = FrictionSearch(estimator=first, kinds=kinds, dissipative=method != "feasible")
    try:
        with progress_part(0.0, 0.9):
            found = search.fit(robot, data)
    except EstimationError:
        if method != "feasible":
            raise
        fit = estimator.fit(robot, data)  # a consistent arm may be found where the data alone leave things open
        return fit.with_notes(note("estimation.friction_too_poor"))
    report_progress("estimating with the chosen friction", 0.9)
    if method in ("wls", "feasible"):
        return found if method == "wls" else feasible_fit(found, prior=prior)
    chosen = replace(estimator, terms=found.terms, delay_s=tuple(found.delay_s), load_values=found.load_values)
    return chosen.fit(robot, data).with_notes(*(one for one in found.notes if one.code in FRICTION_NOTES))


def _estimator(method: str, prior: Prior | None, options: Mapping[str, Any]) -> Estimator:
    kind = estimators[method]
    if prior is None:
        return kind(**options)
    if kind is WeightedLeastSquares:
        return PriorLeastSquares(prior=prior, **options)
    if "prior" not in {field.name for field in fields(kind)}:
        raise EstimationError(f"a prior works with the methods feasible and wls, not with {method}")
    return kind(**{**options, "prior": prior})
