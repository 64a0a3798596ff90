"""From a Robot to the plain arrays that the compiled loops read."""

from __future__ import annotations

from collections.abc import Sequence, Sized

import numpy as np

from armid.arrays import Array, Indices
from armid.dynamics import kernel
from armid.dynamics.parameters import CoupledRotor, Local, Parameter
from armid.robot.inertia import change_of_frame
from armid.robot.robot import Robot

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
    moved = robot.ratios != 0.0
    local: list[tuple[int, Local]] = []
    for c, parameter in enumerate(wanted):
        column = parameter.column
        if isinstance(column, CoupledRotor):
            rotors[column.carrier].append((c, column))
            seen[:, c] = moved[list(robot.path_to(column.carrier + 1))].any(axis=0)
            seen[column.joint, c] = True
        elif isinstance(column, Local):
            local.append((c, column))
            seen[column.weight != 0.0, c] = True
        else:
            link = parameter.number - 1
            inertial[link].append((c, mixes[link][:, column]))
            seen[:, c] = moved[list(robot.path_to(link + 1))].any(axis=0)
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
