"""The dynamics of a robot, batched over samples and linear in its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array, read_only
from armid.display import short
from armid.dynamics import kernel
from armid.dynamics.blocks import BLOCK, memory
from armid.dynamics.parameters import Parameter, columns_of, frame_changes, parameters_of, tree_of
from armid.dynamics.threads import over_samples
from armid.errors import ArmidError, DataShapeError, DescriptionError, UnknownNameError, nearest
from armid.robot.robot import Robot

if TYPE_CHECKING:
    from armid.dynamics.base import BaseParameters


class Motion(NamedTuple):
    """Joint positions, velocities and accelerations, each (samples, joints), contiguous."""

    q: Array
    qd: Array
    qdd: Array


class Model:
    """Torque of a robot as a linear function of its parameters: tau = W(q, qd, qdd) theta.

    Positions are in rad (m for prismatic joints), torques in N m (N). Arrays are (samples, joints).

    Attributes:
        robot: the robot.
        parameters: all parameters in standard order, known and zero ones included.
        names: their names.
    """

    def __init__(self, robot: Robot) -> None:
        """Prepare the model of `robot`."""
        self.robot = robot
        self.parameters: tuple[Parameter, ...] = parameters_of(robot)
        self.names: tuple[str, ...] = tuple(parameter.name for parameter in self.parameters)
        self._index = {name: i for i, name in enumerate(self.names)}
        self._tree = tree_of(robot)
        self._layout = lru_cache(maxsize=8)(self._columns)
        self._check_known()

    def __repr__(self) -> str:
        """One line."""
        return short(self, self.robot.name, f"{len(self.parameters)} parameters, {len(self.unknown)} unknown")

    def __reduce__(self) -> tuple[type[Model], tuple[Robot]]:
        """For other processes: the robot says it all."""
        return Model, (self.robot,)

    def _check_known(self) -> None:
        """Known values must belong to a parameter; a rotor's may stay when rotors are left out."""
        for name in self.robot.known:
            if name not in self._index and not (name.startswith("Im") and not self.robot.rotors):
                problem = f"{name!r} is no parameter of this robot{nearest(name, self.names)}"
                raise DescriptionError(self.robot.source, "known", problem)

    @property
    def known(self) -> dict[str, float]:
        """Parameters that need no estimation: zeros, stated values, known rotor inertias."""
        known = dict.fromkeys((name for name in self.names if name in self.robot.zero), 0.0)
        for index, drive in enumerate(self.robot.drives if self.robot.rotors else ()):
            if drive.rotor_inertia is not None:
                known[f"Im{index + 1}"] = drive.rotor_inertia
        return {**known, **{name: value for name, value in self.robot.known.items() if name in self._index}}

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the parameters to be estimated, in standard order."""
        known = self.known
        return tuple(name for name in self.names if name not in known)

    @cached_property
    def base(self) -> BaseParameters:
        """The identifiable combinations of the unknown parameters."""
        from armid.dynamics.base import base_parameters

        return base_parameters(self)

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, parameters: Sequence[str] | None = None) -> Array:
        """The matrix W: torque per unit of each parameter.

        Args:
            q: positions (samples, joints).
            qd: velocities.
            qdd: accelerations.
            parameters: names of the wanted columns, in any order (default: all).

        Returns:
            Array (samples, joints, parameters): a view of memory ordered by parameter, joint, sample.
        """
        motion = self.motion(q, qd, qdd)
        columns = self.columns(parameters)
        samples, joints = motion.q.shape
        rows = memory(columns.position.shape[1], joints, -(-samples // BLOCK), BLOCK)
        over_samples(lambda _, a, b: self.fill(columns, motion, a, b, rows), samples)
        return _by_sample(rows, samples)

    def fill(self, columns: kernel.Columns, motion: Motion, begin: int, end: int, rows: Array) -> None:
        """Write columns for samples [begin, end) to zeros, `rows` (columns, joints, blocks, BLOCK)."""
        self._writer(columns, rows)(motion, begin, end)

    def _writer(self, columns: kernel.Columns, rows: Array) -> Callable[[Motion, int, int], None]:
        """What `fill` does, prepared for many calls of one thread."""
        count, joints = rows.shape[:2]
        rows, place = rows.reshape(-1, *rows.shape[2:]), np.arange(count * joints).reshape(count, joints)
        places = kernel.places_of(self._tree, columns, np.ascontiguousarray(place.T))
        use, grams, scratch = np.zeros((0, 0), dtype=np.uint8), np.zeros((0, 0, 0)), kernel.scratch(self._tree)

        def write(motion: Motion, begin: int, end: int) -> None:
            given = read_only(*motion, motion.q)
            kernel.fill(self._tree, columns, places, *given, use, begin, end, rows, grams, *scratch)

        return write

    def regressor_blocks(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        parameters: Sequence[str] | None = None,
        *,
        size: int = 4 * BLOCK,
    ) -> Iterator[Array]:
        """The regressor piece by piece, in constant memory that fits into the processor's cache.

        Yields:
            Arrays (up to `size` samples, joints, parameters); each is overwritten by the next.
        """
        motion = self.motion(q, qd, qdd)
        columns = self.columns(parameters)
        samples, joints = motion.q.shape
        rows = memory(columns.position.shape[1], joints, -(-size // BLOCK), BLOCK)
        write = self._writer(columns, rows)
        for first in range(0, samples, size):
            part = Motion(*(array[first : first + size] for array in motion))
            count = len(part.q)
            write(part, 0, count)
            yield _by_sample(rows, count)

    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, values: ArrayLike | Mapping[str, float]
    ) -> Array:
        """Torque (samples, joints) that produces the motion, for parameter `values` (standard order, or by name).

        Friction, springs and known counterbalances are included.
        """
        return self.linear_torque(q, qd, qdd, values) + self.counterbalance_torque(q)

    def linear_torque(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, values: ArrayLike | Mapping[str, float]
    ) -> Array:
        """The product W theta (samples, joints), many times faster than by way of W."""
        return self._torque(self.motion(q, qd, qdd), self._tree, self.vector(values), local=True)

    def counterbalance_torque(self, q: ArrayLike) -> Array:
        """Known torque (samples, joints) of tabulated counterbalances; it holds its end values outside the table."""
        positions = self._positions(q)
        result = np.zeros_like(positions)
        for table in self.robot.counterbalances:
            result[:, table.joint - 1] += np.interp(positions[:, table.joint - 1], table.position, table.torque)
        return result

    def gravity_torque(self, q: ArrayLike, values: ArrayLike | Mapping[str, float]) -> Array:
        """Torque (samples, joints) that holds the links against gravity."""
        positions = self._positions(q)
        still = Motion(positions, np.zeros_like(positions), np.zeros_like(positions))
        return self._torque(still, self._tree, self.vector(values), local=False)

    def coriolis_torque(self, q: ArrayLike, qd: ArrayLike, values: ArrayLike | Mapping[str, float]) -> Array:
        """Coriolis and centrifugal torque (samples, joints), rotors included."""
        motion = self.motion(q, qd, np.zeros_like(q, dtype=float))
        return self._torque(motion, self._weightless, self.vector(values), local=False)

    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, values: ArrayLike | Mapping[str, float]) -> Array:
        """The matrix C (samples, joints, joints) of Christoffel symbols: C qd is the Coriolis torque, M' - 2 C is skew.

        The torque b(q, v) is quadratic in v, so that C(q, u) v = (b(u + v) - b(u) - b(v)) / 2.
        """
        motion = self.motion(q, qd, np.zeros_like(q, dtype=float))
        at_velocity = self.coriolis_torque(motion.q, motion.qd, values)
        result = np.empty((*motion.q.shape, motion.q.shape[1]))
        for j, unit in enumerate(np.eye(motion.q.shape[1])):
            both = self.coriolis_torque(motion.q, motion.qd + unit, values)
            alone = self.coriolis_torque(motion.q, np.broadcast_to(unit, motion.q.shape), values)
            result[:, :, j] = 0.5 * (both - at_velocity - alone)
        return result

    def mass_matrix(self, q: ArrayLike, values: ArrayLike | Mapping[str, float]) -> Array:
        """Joint-space mass matrix (samples, joints, joints), rotors included."""
        positions, vector = self._positions(q), self.vector(values)
        still, result = np.zeros_like(positions), np.empty((*positions.shape, positions.shape[1]))
        for j, unit in enumerate(np.eye(positions.shape[1])):
            motion = self.motion(positions, still, np.broadcast_to(unit, positions.shape))
            result[:, :, j] = self._torque(motion, self._weightless, vector, local=False)
        return np.asarray(0.5 * (result + result.transpose(0, 2, 1)))

    def forward_dynamics(
        self, q: ArrayLike, qd: ArrayLike, torque: ArrayLike, values: ArrayLike | Mapping[str, float]
    ) -> Array:
        """Acceleration (samples, joints) caused by joint torques, friction and springs included."""
        motion = self.motion(q, qd, np.zeros_like(q, dtype=float))
        applied = self._positions(torque)
        bias = self.inverse_dynamics(*motion, values)
        mass = self.mass_matrix(motion.q, values)
        try:
            return np.asarray(np.linalg.solve(mass, (applied - bias)[..., None])[..., 0], dtype=float)
        except np.linalg.LinAlgError:
            raise ArmidError(f"{self.robot.name}: the mass matrix is singular for these parameter values") from None

    def vector(self, values: ArrayLike | Mapping[str, float]) -> Array:
        """Parameter values in standard order; names left out of a mapping take their known value or zero."""
        if not isinstance(values, Mapping):
            vector = np.asarray(values, dtype=float)
            if vector.shape != (len(self.names),):
                raise DataShapeError(f"parameter values have shape {vector.shape}; {len(self.names)} are needed")
            return vector
        result = np.zeros(len(self.names))
        for name, value in {**self.known, **values}.items():
            if name not in self._index:
                raise UnknownNameError("parameter", name, self.names)
            result[self._index[name]] = value
        return result

    def motion(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Motion:
        """Check shapes and make the arrays contiguous."""
        arrays = [np.ascontiguousarray(array, dtype=np.float64) for array in (q, qd, qdd)]
        for array in arrays:
            if array.ndim != 2 or array.shape[1] != self.robot.n_joints or array.shape != arrays[0].shape:
                shapes = ", ".join(str(a.shape) for a in arrays)
                raise DataShapeError(
                    f"motion has shapes {shapes}; all must be (samples, {self.robot.n_joints}) for {self.robot.name}"
                )
        return Motion(*arrays)

    def _positions(self, q: ArrayLike) -> Array:
        """One checked array (samples, joints)."""
        return self.motion(q, q, q).q

    def columns(self, parameters: Sequence[str] | None = None) -> kernel.Columns:
        """Layout of the wanted columns for the compiled loops."""
        return self._layout(self.names if parameters is None else tuple(parameters))

    @property
    def tree(self) -> kernel.Tree:
        """Kinematics for the compiled loops."""
        return self._tree

    def _columns(self, names: tuple[str, ...]) -> kernel.Columns:
        for name in names:
            if name not in self._index:
                raise UnknownNameError("parameter", name, self.names)
        return columns_of(self.robot, [self.parameters[self._index[name]] for name in names])

    @cached_property
    def _weightless(self) -> kernel.Tree:
        return self._tree._replace(gravity=np.zeros(3))

    @cached_property
    def _frame_changes(self) -> Array:
        return frame_changes(self.robot)

    def _split(self, vector: Array) -> tuple[Array, Array, Array, kernel.Columns]:
        """Parameter values as the loops want them: inertia in joint frames, rotors, local columns."""
        columns = self.columns()
        links = vector[: 10 * len(self.robot.links)].reshape(-1, 10)
        phi = np.ascontiguousarray(np.einsum("nij,nj->ni", self._frame_changes, links)[self.robot.outward])
        return phi, vector[columns.rotor_column], vector[columns.local_column], columns

    def _torque(self, motion: Motion, tree: kernel.Tree, vector: Array, *, local: bool) -> Array:
        phi, rotor, extra, columns = self._split(vector)
        if not local:
            inertia = columns.local_kind == kernel.ACCELERATION
            extra = np.where(inertia, extra, 0.0)
        out, tree = np.empty_like(motion.q), tree._replace(slot=np.arange(len(tree.slot)))
        given = tree, columns, phi, rotor, extra, *read_only(*motion)

        def part(_: int, begin: int, end: int) -> None:
            tau = memory(motion.q.shape[1], BLOCK)
            kernel.inverse_dynamics(*given, begin, end, out, tau, *kernel.scratch(tree))

        over_samples(part, len(motion.q))
        return out


def _by_sample(rows: Array, samples: int) -> Array:
    """View (samples, joints, parameters) of rows (parameters, joints, blocks, BLOCK), its base."""
    strides = (rows.itemsize, rows.strides[1], rows.strides[0])
    shape = (samples, rows.shape[1], rows.shape[0])
    return np.ndarray(shape, dtype=rows.dtype, buffer=rows, strides=strides)
