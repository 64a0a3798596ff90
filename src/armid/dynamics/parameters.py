"""Which parameters a robot's torque is linear in, how each enters, and the arrays that the compiled loops read."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass

import numpy as np

from armid.arrays import Array, Indices
from armid.dynamics import kernel
from armid.robot.inertia import INERTIAL_UNITS, change_of_frame
from armid.robot.parts import Friction
from armid.robot.robot import Robot, inertial_names

INERTIAL, ROTOR, FRICTION, SPRING = "inertial", "rotor", "friction", "spring"

# Local columns: how a coefficient acts along one coordinate. Names are those of the kernel.
_FRICTION_COLUMNS = {
    "fv": "velocity",
    "fc": "sign",
    "fo": "one",
    "fvp": "velocity_up",
    "fvn": "velocity_down",
    "fcp": "moving_up",
    "fcn": "moving_down",
}
LINEAR = ("none", "viscous", "coulomb-viscous")  # laws made of these columns
_FRICTION_UNITS = {"fv": ("N m s/rad", "N s/m"), "fc": ("N m", "N"), "fo": ("N m", "N")}  # revolute, prismatic


@dataclass(frozen=True, eq=False)
class Local:
    """A column that depends on one coordinate u = weight . q and acts along it.

    Attributes:
        kind: name of the function of u and its derivatives.
        weight: (n,) the coordinate's direction in joint space.
        constants: (4,) factor, then a, b, phi of a spring.
    """

    kind: str
    weight: Array
    constants: tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class CoupledRotor:
    """A rotor that feels the rotation of the link it sits on."""

    joint: int
    carrier: int
    ratio: float
    axis: Array


@dataclass(frozen=True, eq=False)
class Parameter:
    """One unknown of the linear model.

    Attributes:
        name: such as ``Ixx3``, ``Im3``, ``fv2``, ``ks1``.
        kind: inertial, rotor, friction or spring.
        number: number of the link, joint or spring it belongs to, from 1.
        unit: SI unit.
        column: how it enters: position 0-9 among the link's inertial parameters, a coupled rotor, or a local column.
    """

    name: str
    kind: str
    number: int
    unit: str
    column: int | CoupledRotor | Local


def linear_friction(friction: Friction) -> Friction:
    """The linear stand-in for a friction law: itself where the kernels have its columns, else viscous and Coulomb."""
    return friction if friction.law in LINEAR else Friction("coulomb-viscous", offset=friction.offset)


def parameters_of(robot: Robot) -> tuple[Parameter, ...]:
    """All parameters in their standard order: links, rotors, friction, springs."""
    return (*_links(robot), *_rotors(robot), *_frictions(robot), *_coupled_drives(robot), *_springs(robot))


def _links(robot: Robot) -> list[Parameter]:
    return [
        Parameter(name, INERTIAL, link, unit, position)
        for link in range(1, len(robot.links) + 1)
        for position, (name, unit) in enumerate(zip(inertial_names(link), INERTIAL_UNITS, strict=True))
    ]


def _rotors(robot: Robot) -> list[Parameter]:
    result = []
    for index, drive in enumerate(robot.drives if robot.rotors else ()):
        column: CoupledRotor | Local
        if drive.coupled and 0 < drive.carrier <= len(robot.links):
            column = CoupledRotor(index, drive.carrier - 1, drive.gear_ratio, drive.axis)
        else:
            column = Local("acceleration", np.eye(robot.n_joints)[index], (drive.gear_ratio**2, 0.0, 0.0, 0.0))
        result.append(Parameter(f"Im{index + 1}", ROTOR, index + 1, "kg m^2", column))
    return result


def _frictions(robot: Robot) -> list[Parameter]:
    result = []
    for index, described in enumerate(robot.friction):
        for name in linear_friction(described).coefficient_names:
            column = Local(_FRICTION_COLUMNS[name], np.eye(robot.n_joints)[index], (1.0, 0.0, 0.0, 0.0))
            full = f"{name[:2]}{index + 1}{name[2:]}"
            unit = _FRICTION_UNITS[name[:2]][robot.joints[index].prismatic]
            result.append(Parameter(full, FRICTION, index + 1, unit, column))
    return result


def _coupled_drives(robot: Robot) -> list[Parameter]:
    """Rotor inertia and friction of motors that move several joints, along the motor's own coordinate.

    The coordinate is scaled to its own joint: u_i = (R q)_i / R_ii, so that values are on the joint side.
    """
    if robot.coupling is None:
        return []
    result = []
    for index, row in enumerate(robot.coupling):
        if np.count_nonzero(row) < 2:
            continue
        weight = row / row[index]
        constants = (1.0, 0.0, 0.0, 0.0)
        if robot.rotors:
            column = Local("acceleration", weight, constants)
            result.append(Parameter(f"Imc{index + 1}", ROTOR, index + 1, "kg m^2", column))
        if robot.friction[index].law != "none":
            for name, kind in (("fvc", "velocity"), ("fcc", "sign")):
                unit = _FRICTION_UNITS[name[:2]][robot.joints[index].prismatic]
                result.append(
                    Parameter(f"{name}{index + 1}", FRICTION, index + 1, unit, Local(kind, weight, constants))
                )
    return result


def _springs(robot: Robot) -> list[Parameter]:
    result = []
    for number, spring in enumerate(robot.springs, start=1):
        weight = np.eye(robot.n_joints)[spring.joint - 1]
        constants = (1.0, spring.a, spring.b, spring.phi)
        for name, kind, unit in (("ks", "spring_stiffness", "N/m"), ("kl", "spring_length", "N")):
            result.append(Parameter(f"{name}{number}", SPRING, number, unit, Local(kind, weight, constants)))
    for number, linear in enumerate(robot.linear_springs, start=len(robot.springs) + 1):
        slides = all(robot.joints[j].prismatic for j in np.flatnonzero(linear.ratios))
        units = ("N/m", "N") if slides else ("N m/rad", "N m")
        for name, kind, factor, unit in (("ks", "position", 1.0, units[0]), ("kl", "one", -1.0, units[1])):
            column = Local(kind, linear.ratios, (factor, 0.0, 0.0, 0.0))
            result.append(Parameter(f"{name}{number}", SPRING, number, unit, column))
    return result


_KINDS = {
    name: getattr(kernel, name.upper())
    for name in (
        *("acceleration", "velocity", "sign", "one", "velocity_up", "velocity_down", "moving_up", "moving_down"),
        *("spring_stiffness", "spring_length", "position"),
    )
}


def tree_of(robot: Robot) -> kernel.Tree:
    """Kinematic tree in joint frames."""
    order, links, ratios = robot.outward, robot.links, robot.ratios
    count = len(links)
    parent = np.array([order.index(links[link].parent - 1) if links[link].parent else -1 for link in order])
    path, own = np.zeros((count, count), dtype=np.int64), np.zeros((count, count))
    depth, plain = np.zeros(count, dtype=np.int64), np.full(count, -1)
    placements = np.empty((count, 4, 4))
    for i, link in enumerate(order):
        joint, before = links[link], depth[parent[i]] if parent[i] >= 0 else 0
        inherited = path[parent[i], :before].tolist()
        joints = inherited + [j for j in np.flatnonzero(ratios[link]).tolist() if j not in inherited]
        depth[i] = len(joints)
        path[i, : len(joints)], own[i, : len(joints)] = joints, ratios[link, joints]
        if depth[i] > before and own[i, before] == 1.0 and not joint.prismatic:
            plain[i] = before
        placements[i] = (links[joint.parent - 1].link_frame if joint.parent else np.eye(4)) @ joint.placement
    return kernel.Tree(
        parent=parent,
        slot=_slots(parent),
        path=path,
        depth=depth,
        row=np.array(order),
        own=own,
        plain=plain,
        follow=np.ascontiguousarray(ratios[robot.n_joints :]),
        offset=np.array([follower.offset for follower in robot.dependent], dtype=float),
        prismatic=np.array([links[link].prismatic for link in order]),
        rotation=np.ascontiguousarray(placements[:, :3, :3]),
        translation=np.ascontiguousarray(placements[:, :3, 3]),
        gravity=np.array(robot.gravity, dtype=float),
    )


def _slots(parent: Indices) -> Indices:
    """Scratch slot of each link: the last child of a parent takes over the parent's, others get a new one."""
    slot = np.zeros(len(parent), dtype=np.int64)
    used = 0
    for i, p in enumerate(parent):
        if p >= 0 and i == np.flatnonzero(parent == p)[-1]:
            slot[i] = slot[p]
        else:
            slot[i] = used
            used += 1
    return slot


def frame_changes(robot: Robot) -> Array:
    """(links, 10, 10): inertial parameters in the joint frame from those in the link frame, in the links' order."""
    return np.array([change_of_frame(joint.link_frame) for joint in robot.links])


def columns_of(robot: Robot, wanted: Sequence[Parameter]) -> kernel.Columns:
    """Layout of the wanted columns of the regressor, in the order given."""
    n = robot.n_joints
    mixes = frame_changes(robot)
    seen = np.zeros((n, len(wanted)), dtype=bool)
    inertial: list[list[tuple[int, Array]]] = [[] for _ in robot.links]
    rotors: list[list[tuple[int, CoupledRotor]]] = [[] for _ in robot.links]
    moves = [(robot.ratios[list(robot.path_to(link + 1))] != 0.0).any(axis=0) for link in range(len(robot.links))]
    local: list[tuple[int, Local]] = []
    for c, parameter in enumerate(wanted):
        column = parameter.column
        if isinstance(column, CoupledRotor):
            rotors[column.carrier].append((c, column))
            seen[:, c] = moves[column.carrier]
            seen[column.joint, c] = True
        elif isinstance(column, Local):
            local.append((c, column))
            seen[column.weight != 0.0, c] = True
        else:
            link = parameter.number - 1
            inertial[link].append((c, mixes[link][:, column]))
            seen[:, c] = moves[link]
    return kernel.Columns(
        position=np.where(seen, np.cumsum(seen, axis=1) - 1, -1),
        used=seen.sum(axis=1),
        **_inertial_arrays([inertial[link] for link in robot.outward]),
        **_rotor_arrays(robot, [rotors[link] for link in robot.outward]),
        **_local_arrays(n, local),
    )


def _starts(lists: Sequence[Sized]) -> Indices:
    return np.concatenate([[0], np.cumsum([len(entries) for entries in lists])]).astype(np.int64)


def _inertial_arrays(inertial: list[list[tuple[int, Array]]]) -> dict[str, np.ndarray]:
    flat = [entry for entries in inertial for entry in entries]
    rows = [np.flatnonzero(mix) for _, mix in flat]
    return {
        "link_start": _starts(inertial),
        "link_column": np.array([c for c, _ in flat], dtype=np.int64),
        "mix_start": _starts(rows),
        "mix_row": np.concatenate([np.zeros(0, dtype=np.int64), *rows]),
        "mix_value": np.concatenate([np.zeros(0), *(mix[row] for (_, mix), row in zip(flat, rows, strict=True))]),
    }


def _rotor_arrays(robot: Robot, rotors: list[list[tuple[int, CoupledRotor]]]) -> dict[str, np.ndarray]:
    flat = [entry for entries in rotors for entry in entries]
    axes = [robot.links[rotor.carrier].link_frame[:3, :3] @ rotor.axis for _, rotor in flat]
    return {
        "rotor_start": _starts(rotors),
        "rotor_column": np.array([c for c, _ in flat], dtype=np.int64),
        "rotor_joint": np.array([rotor.joint for _, rotor in flat], dtype=np.int64),
        "rotor_ratio": np.array([rotor.ratio for _, rotor in flat], dtype=float),
        "rotor_axis": np.array(axes, dtype=float).reshape(-1, 3),
    }


def _local_arrays(n: int, local: list[tuple[int, Local]]) -> dict[str, np.ndarray]:
    return {
        "local_column": np.array([c for c, _ in local], dtype=np.int64),
        "local_kind": np.array([_KINDS[column.kind] for _, column in local], dtype=np.int64),
        "local_weight": np.array([column.weight for _, column in local], dtype=float).reshape(-1, n),
        "local_constant": np.array([column.constants for _, column in local], dtype=float).reshape(-1, 4),
    }
