"""The main job in one call: friction of any form, estimates, and a physically consistent arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from armid.arrays import Array, Indices
from armid.dynamics.parameters import LINEAR
from armid.dynamics.threads import one_blas_thread
from armid.errors import UnknownNameError
from armid.estimation.consistent.log_det import NotConsistentError
from armid.estimation.consistent.prior import Prior
from armid.estimation.estimator import Estimator, estimators, fingerprint
from armid.estimation.fit import Fit
from armid.estimation.least_squares import PriorLeastSquares, WeightedLeastSquares
from armid.estimation.problem import EstimationError, Problem
from armid.notes import note
from armid.progress import progress_part, report_progress
from armid.registry import friction_laws
from armid.robot.parts import Friction
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.friction.law import FrictionLaw, Range, friction_law
from armid.torque.friction.shapes import search_shapes
from armid.torque.friction.term import FrictionTerm
from armid.torque.known import KnownTorque

MOST_ROWS = 6000  # of a joint that the search for its shapes looks at
GRID = {1: 24, 2: 10, 3: 6}
SWEEPS = 2  # over the joints, whose shapes depend on each other through the links
RIDGE = 1e-9  # of a scaled column's square


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

    Raises:
        LogError: torques that no drive of the arm has, such as those in another unit.
        EstimationError: a fit of the same data as prior.
    """
    from armid.signals.doctor.robot import check_torque

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
    for dataset in [data] if isinstance(data, Dataset) else data:
        check_torque(dataset, robot)
        if prior is not None and fingerprint(dataset) in prior.data_sha256:
            raise EstimationError(
                f"{prior.source}: was identified from this very log, which as a prior would count twice and make "
                "intervals too narrow; give the fit of another log, or leave the prior out"
            )
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
        robot, terms = _shaped(robot, data, law, first)
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


def _shaped(
    robot: Robot, data: Dataset | Sequence[Dataset], name: str, estimator: Estimator
) -> tuple[Robot, tuple[FrictionTerm, ...]]:
    """The robot with another friction law on all its joints, and the terms that stand for it where it has shapes.

    The shapes are those with the least weighted sum of squares, all linear parameters of the arm being the best for
    them (variable projection), within what the speeds of the data can show. Each direction has the same coefficients.

    Args:
        robot: the robot; offsets stay as described.
        data: to find shapes from.
        name: of the law.
        estimator: linear; it gives the weights of the joints.
    """
    law = friction_law(name)
    if robot.coupling is not None and name not in LINEAR:
        raise EstimationError(
            f"{robot.name} has motors that move several joints, whose friction is linear; use auto or linear"
        )
    if name in LINEAR:
        return replace(robot, friction=tuple(Friction(name, one.offset) for one in robot.friction)), ()
    linear = tuple(Friction("coulomb-viscous", one.offset) for one in robot.friction)
    weights = estimator.fit(replace(robot, friction=linear), data).weights
    bare = replace(robot, friction=tuple(Friction("none", one.offset) for one in robot.friction))
    problem = replace(estimator, terms=()).problem(bare, data)
    joints = _joints(problem, law, weights)
    shapes = [np.sqrt(np.prod(joint.ranges, axis=1)) for joint in joints]
    with one_blas_thread():
        grams = [joint.gram(shape) for joint, shape in zip(joints, shapes, strict=True)]
        for sweep in range(SWEEPS if law.shapes else 0):
            for index, joint in enumerate(joints):
                share = (sweep + index / len(joints)) / SWEEPS
                report_progress(f"{name} friction of {robot.joint_names[index]}", share)
                rest = np.sum([gram for k, gram in enumerate(grams) if k != index], axis=0)

                def residuals(shape: Array, joint: _Joint = joint, rest: Array | float = rest) -> Array:
                    return np.array([_least_error(rest + joint.gram(shape))])

                every = partial(np.apply_along_axis, residuals, -1)
                shapes[index] = search_shapes(law, joint.ranges, every, grid=GRID, starts=2)
                grams[index] = joint.gram(shapes[index])
    return bare, tuple(FrictionTerm(name, k, tuple(shape.tolist())) for k, shape in enumerate(shapes))


@dataclass(frozen=True, eq=False)
class _Joint:
    """Rows of one joint: its columns of the arm without friction and its torque, and where to find its velocities."""

    index: int
    law: FrictionLaw
    ranges: tuple[Range, ...]
    rows: Array
    places: tuple[tuple[Dataset, Indices], ...]

    def gram(self, shapes: Array) -> Array:
        """Squares and products of columns and torque after the best linear coefficients of the law."""
        named = dict(zip(self.law.shapes, shapes.tolist(), strict=True))
        parts = [
            part.at_rows(self.law.column_values(part.qd[:, self.index], named))[rows] for part, rows in self.places
        ]
        basis = np.linalg.qr(np.concatenate(parts))[0]
        taken = basis.T @ self.rows
        return np.asarray(self.rows.T @ self.rows - taken.T @ taken)


def _joints(problem: Problem, law: FrictionLaw, weights: Array) -> list[_Joint]:
    """Some rows of every joint, in one pass over the data."""
    stride = max(1, sum(len(dataset) for dataset in problem.data) // MOST_ROWS)
    found: list[list[tuple[Array, Array, Dataset, Indices]]] = [[] for _ in weights]
    for block in problem.blocks():
        for index, weight in enumerate(weights):
            use = np.flatnonzero(block.use[:, index])[::stride]
            rows = np.column_stack([block.regressor[use, index], block.torque[use, index]])
            found[index].append((np.sqrt(weight) * rows, np.abs(block.velocity[use, index]), block.part, use))
    result = []
    for index, entries in enumerate(found):
        stacked, speeds, parts, places = zip(*entries, strict=True)
        speed = np.concatenate(speeds)
        reach = max(float(speed.min(initial=np.inf)), 1e-6), max(float(speed.max(initial=0.0)), 1e-5)
        pairs = tuple(zip(parts, places, strict=True))
        result.append(_Joint(index, law, law.ranges(*reach), np.concatenate(stacked), pairs))
    return result


def _least_error(gram: Array) -> float:
    """Root of the least sum of squares, the torque standing last."""
    matrix, vector = gram[:-1, :-1], gram[:-1, -1]
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix / np.outer(scale, scale) + RIDGE * np.eye(len(vector))
    found = np.linalg.solve(scaled, vector / scale)
    return float(np.sqrt(max(gram[-1, -1] - found @ (vector / scale), 0.0)))
