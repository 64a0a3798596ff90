"""The compact factor: all that linear estimation needs to know about a log, in a few small matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armid.arrays import Array, Indices, read_only
from armid.display import short
from armid.dynamics import kernel
from armid.dynamics.blocks import BLOCK, TILE, memory
from armid.dynamics.model import Model, Motion
from armid.dynamics.threads import one_blas_thread, over_samples, parts_of
from armid.errors import DataShapeError

Bytes = NDArray[np.uint8]
_ALL = np.zeros((0, 0), dtype=np.uint8)  # no sample is left out
_QR_ROWS = 4096  # samples that the triangular factor takes in at a time


@dataclass(frozen=True, eq=False)
class CompactFactor:
    """Sufficient statistics of regressor and torque, joint by joint; factors of other data can be added.

    For each joint there is one matrix of the columns it sees, followed by its torque: either the Gram matrix
    [W_j | tau_j]^T [W_j | tau_j], or the triangular factor whose Gram matrix that is. Gram matrices are faster and good
    for column-scaled condition numbers up to about 2e5; triangular factors keep full precision, for rank decisions.

    Attributes:
        names: parameters, in the order of the columns.
        columns: for each joint the indices of the parameters it sees.
        matrices: for each joint the matrix described above.
        samples: number of samples.
        triangular: whether the matrices are triangular factors.
        counts: number of samples each joint took part in; all of them, if not given.
    """

    names: tuple[str, ...]
    columns: tuple[Indices, ...]
    matrices: tuple[Array, ...]
    samples: int
    triangular: bool = False
    counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Fill in the counts."""
        if not self.counts:
            object.__setattr__(self, "counts", (self.samples,) * len(self.matrices))

    def __repr__(self) -> str:
        return short(self, f"{len(self.matrices)} joints", f"{len(self.names)} parameters", f"{self.samples} samples")

    def __add__(self, other: CompactFactor) -> CompactFactor:
        """The factor of both data sets together."""
        same = self.names == other.names and self.triangular == other.triangular
        if not same or [m.shape for m in self.matrices] != [m.shape for m in other.matrices]:
            raise DataShapeError("compact factors of different parameters, robots or kinds cannot be added")
        pairs = zip(self.matrices, other.matrices, strict=True)
        if self.triangular:
            matrices = tuple(triangle(np.vstack(pair)) for pair in pairs)
        else:
            matrices = tuple(mine + theirs for mine, theirs in pairs)
        counts = tuple(mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True))
        samples = self.samples + other.samples
        return CompactFactor(self.names, self.columns, matrices, samples, self.triangular, counts)

    def gram(self, joint: int) -> Array:
        """Gram matrix of one joint's columns and torque."""
        matrix = self.matrices[joint]
        return matrix.T @ matrix if self.triangular else matrix

    def normal_equations(self, weights: ArrayLike | None = None) -> tuple[Array, Array, float]:
        """Sums over joints, weighted by `weights` (1 / noise variance per joint; default 1): W'W, W'tau, tau'tau."""
        weight = np.ones(len(self.matrices)) if weights is None else np.asarray(weights, dtype=float)
        if weight.shape != (len(self.matrices),):
            raise DataShapeError(
                f"weights have shape {weight.shape}; one for each of {len(self.matrices)} joints is needed"
            )
        matrix = np.zeros((len(self.names), len(self.names)))
        vector, power = np.zeros(len(self.names)), 0.0
        for joint, columns in enumerate(self.columns):
            gram = weight[joint] * self.gram(joint)
            matrix[columns[:, None], columns] += gram[:-1, :-1]
            vector[columns] += gram[:-1, -1]
            power += float(gram[-1, -1])
        return matrix, vector, power

    def by_joint(self, weights: Array) -> Array:
        """The part of W'tau, weighted as in `normal_equations`, that each joint's torque makes: (names, joints)."""
        parts = np.zeros((len(self.names), len(self.matrices)))
        for joint, columns in enumerate(self.columns):
            parts[columns, joint] = weights[joint] * self.gram(joint)[:-1, -1]
        return parts


def compact_factor(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    torque: ArrayLike,
    parameters: Sequence[str] | None = None,
    *,
    use: ArrayLike | None = None,
    triangular: bool = False,
) -> CompactFactor:
    """Compact factor of one data set, all arrays (samples, joints); memory does not grow with a regressor.

    Args:
        model: the model.
        q: positions.
        qd: velocities.
        qdd: accelerations.
        torque: measured torques.
        parameters: names of the columns (default: the model's unknown parameters).
        use: which torques count, (samples, joints); all of them, if not given.
        triangular: keep triangular factors instead of Gram matrices.
    """
    names = model.unknown if parameters is None else tuple(parameters)
    motion = model.motion(q, qd, qdd)
    tau = np.ascontiguousarray(torque, dtype=np.float64)
    if tau.shape != motion.q.shape:
        raise DataShapeError(f"torque has shape {tau.shape}; it must be {motion.q.shape}, as the motion")
    layout = model.columns(names)
    columns = tuple(np.flatnonzero(row >= 0) for row in layout.position)
    mask = _ALL if use is None else np.array(np.transpose(use), dtype=bool, order="C").view(np.uint8)
    if use is not None and mask.T.shape != tau.shape:
        raise DataShapeError(f"use has shape {mask.T.shape}; it must be {tau.shape}, as the torque")
    if triangular:
        matrices = _triangles(model, names, columns, motion, tau, mask)
    else:
        grams = zip(joint_grams(model, layout, motion, tau, mask), layout.used, strict=True)
        matrices = tuple(mirrored(gram[: count + 1, : count + 1]) for gram, count in grams)
    if not all(np.isfinite(matrix).all() for matrix in matrices):
        raise DataShapeError(
            f"the data are not finite from sample {_first_bad(*motion, tau)} on; remove or repair them"
        )
    counts = () if use is None else tuple(int(np.count_nonzero(row)) for row in mask)
    return CompactFactor(names, columns, matrices, len(tau), triangular, counts)


def accumulate(
    model: Model,
    blocks: Iterable[tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]],
    parameters: Sequence[str] | None = None,
    *,
    triangular: bool = False,
) -> CompactFactor:
    """Compact factor of a stream of (q, qd, qdd, torque) blocks, in constant memory."""
    total: CompactFactor | None = None
    names = None if parameters is None else tuple(parameters)
    for block in blocks:
        factor = compact_factor(model, *block, names, triangular=triangular)
        total = factor if total is None else total + factor
    if total is None:
        raise DataShapeError("there are no data: the stream of blocks is empty")
    return total


def joint_grams(model: Model, layout: kernel.Columns, motion: Motion, torque: Array, use: Bytes = _ALL) -> Array:
    """Gram matrix of each joint's columns and torque, the torque last; an empty `use` (joints, samples) takes all.

    Each is the first rows and columns of one (joints, size, size); above its diagonal there may be anything.
    """
    samples, joints = torque.shape
    size = -(-(int(layout.used.max()) + 1) // TILE) * TILE
    places, parts = kernel.packed_places(model.tree, layout, size), np.zeros((parts_of(samples), joints, size, size))
    rows = memory(len(parts), joints * size, 1, BLOCK)
    given = model.tree, layout, places, *read_only(*motion, torque), use

    def part(number: int, begin: int, end: int) -> None:
        kernel.fill(*given, begin, end, rows[number], parts[number], *kernel.scratch(model.tree))

    over_samples(part, samples)
    return np.asarray(parts[0] if len(parts) == 1 else parts.sum(axis=0))


def mirrored(lower: Array) -> Array:
    """Symmetric matrix from its lower triangle."""
    lower = np.tril(lower)
    return np.asarray(lower + np.tril(lower, -1).T)


def _triangles(
    model: Model, names: tuple[str, ...], columns: Sequence[Indices], motion: Motion, tau: Array, use: Bytes
) -> tuple[Array, ...]:
    triangles = [np.zeros((len(seen) + 1, len(seen) + 1)) for seen in columns]
    # Two BLAS threads on small matrices are slower than one.
    with one_blas_thread():
        for first in range(0, len(tau), _QR_ROWS):
            rows = slice(first, first + _QR_ROWS)
            regressor = model.regressor(motion.q[rows], motion.qd[rows], motion.qdd[rows], names)
            for j, seen in enumerate(columns):
                stacked = np.column_stack([regressor[:, j, seen], tau[rows, j]])
                if len(use):
                    stacked = stacked[use[j, rows] > 0]
                triangles[j] = triangle(np.vstack([triangles[j], stacked]))
    return tuple(triangles)


def _first_bad(*arrays: Array) -> int:
    """Index of the first sample that holds a number that is not finite."""
    bad = np.any([~np.isfinite(array).all(axis=1) for array in arrays], axis=0)
    return int(np.argmax(bad))


def triangle(matrix: Array) -> Array:
    """Triangular factor; short data are padded so that all factors of a joint have one shape."""
    upper = np.asarray(np.linalg.qr(matrix, mode="r"))
    missing = matrix.shape[1] - upper.shape[0]
    return np.vstack([upper, np.zeros((missing, matrix.shape[1]))]) if missing > 0 else upper
