"""Base parameters: the combinations of parameters that a motion can reveal, by exact rank decisions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from armid.arrays import Array, Indices
from armid.display import short
from armid.dynamics.expressions import Group, readable_groups
from armid.dynamics.model import Model, Motion
from armid.dynamics.parameters import FRICTION, INERTIAL, ROTOR, SPRING
from armid.errors import ArmidError
from armid.robot.robot import Joint, Robot

# A column is zero if it is this small against the largest of its kind: cos(pi/2) is 6e-17, not 0.
_ZERO = 1e-11
# A column depends on others if this little of it is left after they are projected out.
_DEPENDENT = 1e-9
# Coefficients of a grouping below this are round-off.
_ROUND_OFF = 1e-9

# Which parameters of a link are kept, and which are expressed by others where they can be, for each direction of the
# joint's axis in the link's frame. With z it is the usual choice (Khalil): Iyy, mz and m go into other groups.
_KEPT = {
    "x": ("Iyy", "Ixy", "Ixz", "Iyz", "Ixx", "my", "mz"),
    "y": ("Ixx", "Ixy", "Ixz", "Iyz", "Iyy", "mx", "mz"),
    "z": ("Ixx", "Ixy", "Ixz", "Iyz", "Izz", "mx", "my"),
    "slide": ("m", "mx", "my", "mz"),
}
_ABSORBED = {
    "x": ("Izz", "mx", "m"),
    "y": ("Izz", "my", "m"),
    "z": ("Iyy", "mz", "m"),
    "slide": ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"),
}


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Identifiable combinations of a model's unknown parameters.

    Attributes:
        model: the model.
        names: the unknown parameters, in standard order.
        kept: the parameters that name the groups, in standard order; their columns span all others.
        matrix: (groups, unknowns); base values are ``matrix @ unknown values``.
        no_effect: parameters that never show in any torque.
        weakest_kept: what is left of the weakest kept column after projecting the others out, relative to its size.
        strongest_absorbed: the same for the absorbed column that comes nearest to being kept; the two leave a gap.
    """

    model: Model
    names: tuple[str, ...]
    kept: tuple[str, ...]
    matrix: Array
    no_effect: tuple[str, ...]
    weakest_kept: float
    strongest_absorbed: float

    def __repr__(self) -> str:
        return short(self, self.model.robot.name, f"{len(self.kept)} of {len(self.names)} parameters")

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups in words, one for each kept parameter."""
        parameters = {parameter.name: parameter for parameter in self.model.parameters}
        robot = self.model.robot.for_rank()
        return readable_groups(robot, parameters, self.names, self.kept, self.matrix, self._regroup)

    def groups_of(self, *kinds: str) -> tuple[Group, ...]:
        """Groups of the given kinds: inertial, rotor, friction, spring."""
        return tuple(group for group in self.groups if group.kind in kinds)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the groups for people and files: with ``R`` (regrouped) where others belong to the kept one."""
        several = np.count_nonzero(self.matrix, axis=1) > 1
        return tuple(f"{name}R" if more else name for name, more in zip(self.kept, several, strict=True))

    @property
    def count(self) -> int:
        """Number of inertial and rotor groups."""
        kinds = {parameter.name: parameter.kind for parameter in self.model.parameters}
        return sum(kinds[name] in (INERTIAL, ROTOR) for name in self.kept)

    @cached_property
    def alone(self) -> tuple[str, ...]:
        """Parameters that can be identified on their own."""
        free = self.matrix.astype(bool)
        single = free.sum(axis=1) == 1
        columns = [int(np.flatnonzero(row)[0]) for row in free[single]]
        return tuple(self.names[c] for c in columns if free[:, c].sum() == 1)

    @cached_property
    def combined(self) -> tuple[str, ...]:
        """Parameters that can be identified only together with others."""
        rest = {*self.alone, *self.no_effect}
        return tuple(name for name in self.names if name not in rest)

    def _regroup(self, robot: Robot) -> Array:
        """Grouping coefficients for a robot of the same structure."""
        motion = random_motion(robot, max(48, 3 * len(self.kept)) // robot.n_joints + 2, np.random.default_rng(3))
        stacked = Model(robot).regressor(*motion, self.names).reshape(-1, len(self.names))
        return _coefficients(stacked, np.array([self.names.index(name) for name in self.kept]))

    def disagreement(self, seed: int = 1) -> float:
        """Largest difference of torque between grouped and full model on random motion, relative to the torque."""
        rng = np.random.default_rng(seed)
        motion = random_motion(self.model.robot, 64, rng)
        values = rng.normal(size=len(self.names))
        full = self.model.regressor(*motion, self.names) @ values
        grouped = self.model.regressor(*motion, self.kept) @ (self.matrix @ values)
        return float(np.abs(full - grouped).max() / np.abs(full).max())


def random_motion(robot: Robot, samples: int, rng: np.random.Generator) -> Motion:
    """Random states that excite everything: any angle (or ±1 m), velocities and accelerations around 1 rad/s(^2)."""
    span = np.where([joint.prismatic for joint in robot.joints], 1.0, np.pi)
    shape = (samples, robot.n_joints)
    return Motion(span * rng.uniform(-1.0, 1.0, shape), rng.normal(size=shape), rng.normal(size=shape))


def base_parameters(model: Model, seed: int = 0) -> BaseParameters:
    """Find the base parameters of a model numerically, on random motion.

    Columns are taken in a fixed order of preference, so that groups come out in the form the literature prints; a
    column that depends on the ones before it is absorbed into their groups. Rounded angles of the description count as
    the exact angles they stand for.
    """
    exact = Model(model.robot.for_rank())
    names = model.unknown
    if not names:
        raise ArmidError(f"{model.robot.source}: no parameter is unknown; keep some links, rotors or friction")
    samples = max(64, 4 * len(names) // model.robot.n_joints)
    motion = random_motion(exact.robot, samples, np.random.default_rng(seed))
    stacked = exact.regressor(*motion, names).reshape(-1, len(names))
    stacked = np.asarray(np.linalg.qr(stacked, mode="r"))  # says the same of its columns in fewer rows
    size = np.linalg.norm(stacked, axis=0)
    kinds = {parameter.name: parameter.kind for parameter in model.parameters}
    zero = _zero_columns(names, kinds, size)
    order = [names.index(name) for name in _preference(exact, names)]
    chosen, weakest, strongest = _choose(
        stacked[:, ~zero] / size[~zero], [int(np.sum(~zero[:i])) for i in order if not zero[i]]
    )
    alive = np.flatnonzero(~zero)
    kept = np.sort(alive[chosen])
    matrix = np.zeros((len(kept), len(names)))
    matrix[:, alive] = _grouping(stacked, kept, alive, size)
    return BaseParameters(
        model=model,
        names=names,
        kept=tuple(names[i] for i in kept),
        matrix=matrix,
        no_effect=tuple(name for name, is_zero in zip(names, zero, strict=True) if is_zero),
        weakest_kept=weakest,
        strongest_absorbed=strongest,
    )


def _zero_columns(names: tuple[str, ...], kinds: dict[str, str], size: Array) -> NDArray[np.bool_]:
    """Columns that are zero up to round-off, against the largest of their kind; they would raise the rank if scaled."""
    zero = np.zeros(len(names), dtype=bool)
    for kind in (INERTIAL, ROTOR, FRICTION, SPRING):
        mask = np.array([kinds[name] == kind for name in names])
        if mask.any():
            zero |= mask & (size <= _ZERO * size[mask].max())
    return zero


def _preference(model: Model, names: tuple[str, ...]) -> list[str]:
    """All names, the ones to be kept first."""
    robot = model.robot
    first, last = [], []
    for link, joint in enumerate(robot.links, start=1):
        direction = _direction(joint)
        first += [f"{name}{link}" for name in _KEPT[direction]]
        last += [f"{name}{link}" for name in _ABSORBED[direction]]
        last += [f"{name}{link}" for name in ("mx", "my", "mz", "m") if f"{name}{link}" not in first + last]
    other = [p.name for kind in (ROTOR, FRICTION, SPRING) for p in model.parameters if p.kind == kind]
    wanted = set(names)
    return [name for name in dict.fromkeys([*first, *other, *last]) if name in wanted]


def _direction(joint: Joint) -> str:
    if joint.prismatic:
        return "slide"
    axis_in_link = joint.link_frame[2, :3]
    return "xyz"[int(np.argmax(np.abs(axis_in_link)))]


def _choose(columns: Array, order: list[int]) -> tuple[list[int], float, float]:
    """Indices of independent columns, taken in `order`, by Gram-Schmidt with reorthogonalisation; unit columns.

    Beside them what is left of the weakest one, and of the strongest that is none.
    """
    found = np.empty((min(columns.shape), columns.shape[0]))
    kept: list[int] = []
    weakest, strongest = 1.0, 0.0
    for index in order:
        rest, basis = columns[:, index].copy(), found[: len(kept)]
        for _ in range(2):
            rest -= (basis @ rest) @ basis
        left = float(np.linalg.norm(rest))
        if left > _DEPENDENT:
            found[len(kept)] = rest / left
            kept.append(index)
            weakest = min(weakest, left)
        else:
            strongest = max(strongest, left)
    return kept, weakest, strongest


def _grouping(stacked: Array, kept: Indices, alive: Indices, size: Array) -> Array:
    """Coefficients (kept, alive) that express every living column by the kept ones."""
    scaled = stacked / np.where(size > 0.0, size, 1.0)
    coefficients = _coefficients(scaled, kept)[:, alive]
    coefficients *= size[alive] / size[kept][:, None]
    coefficients[np.abs(coefficients) < _ROUND_OFF * np.abs(coefficients).max(axis=0, initial=0.0)] = 0.0
    nearest = np.round(coefficients)
    return np.where(np.abs(coefficients - nearest) < _ROUND_OFF, nearest, coefficients)


def _coefficients(stacked: Array, kept: Indices) -> Array:
    """Least-squares coefficients (kept, all) that express every column by the kept ones."""
    others = np.setdiff1d(np.arange(stacked.shape[1]), kept)
    triangle = np.asarray(np.linalg.qr(stacked[:, np.concatenate([kept, others])], mode="r"))[: len(kept)]
    result = np.zeros((len(kept), stacked.shape[1]))
    result[np.arange(len(kept)), kept] = 1.0
    result[:, others] = solve_triangular(triangle[:, : len(kept)], triangle[:, len(kept) :])
    return result
