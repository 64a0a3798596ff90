"""The main job in one call: choose friction, estimate, and return an arm that can exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armid.errors import MissingExtraError, UnknownNameError
from armid.estimation.box_search import BeeColony, DifferentialEvolution
from armid.estimation.consistent.feasible import FeasibleLeastSquares, NotFeasibleError, feasible_fit
from armid.estimation.consistent.prior import Prior, PriorLeastSquares
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.friction_choice import FrictionSearch
from armid.estimation.instruments import InstrumentalVariables
from armid.estimation.least_squares import OrdinaryLeastSquares, SingularValueSolution, WeightedLeastSquares
from armid.estimation.maximum_likelihood import MaximumLikelihood
from armid.estimation.problem import EstimationError
from armid.estimation.robust import RobustLeastSquares
from armid.estimation.total import TotalLeastSquares
from armid.progress import progress_part, report_progress
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.friction.added import added_friction
from armid.torque.known import KnownTorque

METHODS: dict[str, type[Estimator]] = {
    kind.name: kind
    for kind in (
        FeasibleLeastSquares,
        WeightedLeastSquares,
        OrdinaryLeastSquares,
        SingularValueSolution,
        MaximumLikelihood,
        RobustLeastSquares,
        TotalLeastSquares,
        InstrumentalVariables,
        BeeColony,
        DifferentialEvolution,
    )
}


def identify(
    robot: Robot,
    data: Dataset | Sequence[Dataset],
    *,
    method: str | None = None,
    friction: str = "auto",
    prior: Prior | None = None,
    known: Mapping[str, float] | None = None,
    known_torque: KnownTorque | None = None,
) -> Fit:
    """Parameters of a robot from data, by the ways that suit most people.

    Args:
        robot: the robot.
        data: one data set or several.
        method: one of `METHODS`; None for ``feasible``, or ``wls`` where nothing possible can be found.
        friction: ``auto`` chooses terms and delays of each joint by held-out data, ``linear`` keeps to the description;
            or kinds of terms to choose among, with commas: ``stribeck,load``.
        prior: what is believed beforehand; for the methods ``feasible`` and ``wls``.
        known: values of parameters that are not to be estimated.
        known_torque: torque known beforehand.
    """
    if method is None:
        shared: dict[str, Any] = {"friction": friction, "prior": prior, "known": known, "known_torque": known_torque}
        try:
            return identify(robot, data, method="feasible", **shared)
        except (NotFeasibleError, MissingExtraError) as error:
            fit = identify(robot, data, method="wls", **shared)
            return fit.with_notes(f"No physically possible arm was sought or found ({error}): method wls.")
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    plan = _Plan(method, prior, dict(known or {}), known_torque)
    if friction == "linear":
        return plan.final(robot, data, {})
    kinds = added_friction(friction)
    search = FrictionSearch(estimator=plan.first(), kinds=kinds, dissipative=method != "feasible")
    try:
        with progress_part(0.0, 0.9):
            found = search.fit(robot, data)
    except EstimationError:
        if method != "feasible":
            raise
        fit = plan.final(robot, data, {})  # a possible arm may be found where the data alone leave things open
        return fit.with_notes("The data are too poor to choose a friction law: the description's is used.")
    report_progress("estimating with the chosen friction", 0.9)
    if method in ("wls", "feasible"):
        return found if method == "wls" else feasible_fit(found, prior=prior)
    extra = {"terms": found.terms, "delay_s": tuple(found.delay_s), "load_values": found.load_values}
    told = ("Torque lags", *(f"{name}: " for name in robot.joint_names))
    reasons = [note for note in found.notes if note.startswith(told)]
    return plan.final(robot, data, extra).with_notes(*reasons)


@dataclass(frozen=True)
class _Plan:
    """How to estimate, in two steps: what chooses friction, and what gives the result."""

    method: str
    prior: Prior | None
    known: Mapping[str, float]
    known_torque: KnownTorque | None

    def first(self) -> Estimator:
        """The linear estimator that friction is chosen with."""
        if self.prior is not None:
            return PriorLeastSquares(prior=self.prior, known=self.known or None, known_torque=self.known_torque)
        return WeightedLeastSquares(known=self.known or None, known_torque=self.known_torque)

    def final(self, robot: Robot, data: Dataset | Sequence[Dataset], extra: Mapping[str, Any]) -> Fit:
        """The estimate with given friction terms."""
        if self.prior is not None and self.method == "wls":
            return self.first().fit(robot, data)
        if self.prior is not None and self.method != "feasible":
            raise EstimationError(f"a prior works with the methods feasible and wls, not with {self.method}")
        kind = METHODS[self.method]
        own: dict[str, Any] = {"prior": self.prior} if self.prior is not None else {}
        estimator = kind(known=self.known or None, known_torque=self.known_torque, **own, **dict(extra))
        return estimator.fit(robot, data)
