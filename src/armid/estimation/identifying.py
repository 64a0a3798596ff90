"""The main job in one call: friction of any form, estimates, and a physically consistent arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from armid.errors import UnknownNameError
from armid.estimation.consistent.log_det import NotConsistentError
from armid.estimation.consistent.prior import Prior
from armid.estimation.estimator import Estimator, estimators
from armid.estimation.fit import Fit
from armid.estimation.friction_law import with_friction_law
from armid.estimation.least_squares import PriorLeastSquares, WeightedLeastSquares
from armid.estimation.problem import EstimationError
from armid.notes import note
from armid.progress import progress_part
from armid.registry import friction_laws
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.known import KnownTorque


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
        method: one of `estimators`; None for ``mixed``, or ``feasible`` with a friction that is given, or ``wls`` where
            nothing consistent can be found.
        friction: ``auto`` finds its form from the data (method ``mixed``), ``linear`` keeps to the description (its
            nearest viscous and Coulomb friction); the name of a friction law puts that one on every joint. None for
            the method's usual one.
        prior: what is known beforehand; for the methods ``mixed``, ``feasible`` and ``wls``.
        known: values of parameters that are not to be estimated.
        known_torque: torque known beforehand.
    """
    check_method(method, friction)
    if method is None:
        method = "mixed" if friction in (None, "auto") else "feasible"
        shared: dict[str, Any] = {"friction": friction, "prior": prior, "known": known, "known_torque": known_torque}
        try:
            return identify(robot, data, method=method, **shared)
        except NotConsistentError as error:
            fit = identify(
                robot, data, method="wls", **{**shared, "friction": None if friction == "auto" else friction}
            )
            return fit.with_notes(note("estimation.not_consistent", reason=str(error)))
    friction = friction or ("auto" if estimators[method].finds_friction else "linear")
    estimator = _estimator(method, prior, {"known": dict(known or {}) or None, "known_torque": known_torque})
    if friction in ("auto", "linear"):
        fit = estimator.fit(robot, data)
    else:
        fit = _with_friction_law(robot, data, estimator, friction)
    return replace(fit, options={**fit.options, "friction": friction})


def check_method(method: str | None, friction: str | None) -> None:
    """Refuse a method or friction that `identify` does not know, or that do not go together, before long work."""
    finds = method is None or estimators[method].finds_friction
    if friction not in (None, "auto", "linear") and friction not in friction_laws:
        raise UnknownNameError("friction", str(friction), ("auto", "linear", *friction_laws))
    if friction == "auto" and not finds:
        raise EstimationError(f"the method {method} does not find the form of friction; use mixed, or name a law")
    if method is not None and finds and friction not in (None, "auto"):
        raise EstimationError(f"the method {method} finds the form of friction itself; leave {friction!r} out")


def _with_friction_law(robot: Robot, data: Dataset | Sequence[Dataset], estimator: Estimator, law: str) -> Fit:
    """Shapes of the law with weighted least squares, then the estimate by the method."""
    first = WeightedLeastSquares(known=estimator.known, known_torque=estimator.known_torque)
    with progress_part(0.0, 0.9):
        robot, terms = with_friction_law(robot, data, law, first)
    fit = replace(estimator, terms=terms).fit(robot, data)
    names = robot.joint_names
    shaped = (note("estimation.friction_law", joint=names[term.joint], law=str(term)) for term in terms if term.shapes)
    return fit.with_notes(*shaped)


def _estimator(method: str, prior: Prior | None, options: Mapping[str, Any]) -> Estimator:
    kind = estimators[method]
    if prior is None:
        return kind(**options)
    if kind is WeightedLeastSquares:
        return PriorLeastSquares(prior=prior, **options)
    if "prior" not in {field.name for field in fields(kind)}:
        raise EstimationError(f"a prior works with the methods mixed, feasible and wls, not with {method}")
    return kind(**{**options, "prior": prior})
