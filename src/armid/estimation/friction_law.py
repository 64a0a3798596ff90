"""A friction law asked for by name: its shapes by variable projection, so that the rest of the problem is linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import Array, Indices
from armid.dynamics.parameters import LINEAR
from armid.dynamics.threads import one_blas_thread
from armid.estimation.estimator import Estimator
from armid.estimation.problem import EstimationError, Problem
from armid.progress import report_progress
from armid.robot.parts import Friction
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.friction.law import FrictionLaw, Range, friction_law
from armid.torque.friction.shapes import search_shapes
from armid.torque.friction.term import FrictionTerm

MOST_ROWS = 6000  # of a joint that the search for its shapes looks at
GRID = {1: 24, 2: 10, 3: 6}
SWEEPS = 2  # over the joints, whose shapes depend on each other through the links
RIDGE = 1e-9  # of a scaled column's square


def with_friction_law(
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

                shapes[index] = search_shapes(law, joint.ranges, residuals, grid=GRID, starts=2)
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
