"""Compiled loops over blocks of samples: regressor, compact factor, inverse dynamics.

Nothing compiled depends on the robot: one compilation, cached on disk, serves every arm. What a robot is reaches the
loops as two tuples of plain arrays, `Tree` (kinematics) and `Columns` (which columns of the regressor are wanted
and how they follow from what the block primitives compute).
"""

from typing import NamedTuple

import numpy as np

from armid.dynamics.blocks import (
    BLOCK,
    STATE_ROWS,
    add_gram,
    add_moment_power,
    add_own_screw,
    add_scaled,
    base_state,
    carry,
    clear,
    compiled,
    copy,
    either,
    in_block,
    inertial_columns,
    inner,
    inward,
    load,
    memory,
    outward,
    own_columns,
    part,
    rate_of_momentum,
    rotor_moment,
    sine_cosine,
    slide,
    slide_screws,
    table,
)

# Kinds of local columns: functions of one coordinate u = weight . q alone.
(
    ACCELERATION,
    VELOCITY,
    SIGN,
    ONE,
    VELOCITY_UP,
    VELOCITY_DOWN,
    MOVING_UP,
    MOVING_DOWN,
    SPRING_STIFFNESS,
    SPRING_LENGTH,
    POSITION,
) = range(11)


class Tree(NamedTuple):
    """Kinematic tree of l links in joint frames, parents before children; n joints move them, others follow these."""

    parent: np.ndarray  # (l,) link the joint hangs on, -1 for the base
    slot: np.ndarray  # (l,) scratch slot of each link; a parent's last child takes over its slot
    path: np.ndarray  # (l, l) joints that move the link: its parent's, then its own
    depth: np.ndarray  # (l,) how many of them
    row: np.ndarray  # (l,) row of the motion of the link's own joint: 0 .. n-1, then those that follow
    own: np.ndarray  # (l, l) speed of its own joint per unit of that of each joint of the path
    plain: np.ndarray  # (l,) place in the path of a joint that moves the link by its own joint alone, -1 if none
    follow: np.ndarray  # (l - n, n) positions that follow the n joints': follow q + offset
    offset: np.ndarray  # (l - n,) [rad or m]
    prismatic: np.ndarray  # (l,) bool
    rotation: np.ndarray  # (l, 3, 3) joint frame at zero in the parent's joint frame
    translation: np.ndarray  # (l, 3) [m]
    gravity: np.ndarray  # (3,) [m/s^2]


class Columns(NamedTuple):
    """Wanted columns of the regressor, numbered 0 .. C-1."""

    position: np.ndarray  # (n, C) number of the column among those the joint sees, -1 if it does not
    used: np.ndarray  # (n,) how many columns each joint sees
    link_start: np.ndarray  # (l + 1,) range of each link in the next array
    link_column: np.ndarray  # (E,) inertial columns, link by link
    mix_start: np.ndarray  # (E + 1,) range of each inertial column in the next two arrays
    mix_row: np.ndarray  # joint-frame parameters that a column is a combination of
    mix_value: np.ndarray
    rotor_start: np.ndarray  # (l + 1,) range of each carrier link in the next four arrays
    rotor_column: np.ndarray
    rotor_joint: np.ndarray
    rotor_ratio: np.ndarray
    rotor_axis: np.ndarray  # (r, 3) in the carrier's joint frame
    local_column: np.ndarray
    local_kind: np.ndarray
    local_weight: np.ndarray  # (l, n)
    local_constant: np.ndarray  # (l, 4) factor; then a, b, phi of a spring, or the width of a smoothed sign (0: sharp)


class Places(NamedTuple):
    """Rows of memory that columns go to."""

    column: np.ndarray  # (n, C) row of each joint's columns; of those that it does not see, anything
    ten: np.ndarray  # (n, l, 10) row that takes one of the ten columns of a link's inertia as it comes, -1 if none does


def places_of(tree: Tree, columns: Columns, column: np.ndarray) -> Places:
    """Given the rows (n, C) of all columns: one of the ten in the joint's frame is written where it belongs at once."""
    ten = np.full((len(column), len(tree.parent), 10), -1)
    single = np.diff(columns.mix_start) == 1
    for i, joints in enumerate(tree.path):
        entries = np.arange(columns.link_start[i], columns.link_start[i + 1])
        first = columns.mix_start[entries]
        plain = single[entries] & (columns.mix_value[first] == 1.0)
        for joint in joints[: tree.depth[i]]:
            ten[joint, i, columns.mix_row[first[plain]]] = column[joint, columns.link_column[entries[plain]]]
    return Places(column, ten)


def packed_places(tree: Tree, columns: Columns, size: int) -> Places:
    """Each joint has `size` rows, its own columns first."""
    return places_of(tree, columns, columns.position + size * np.arange(len(columns.position))[:, None])


@inner
def _load_inputs(tree, q, qd, qdd, first, motion):
    for j in range(q.shape[1]):
        load(q, first, j, part(motion, 3 * j))
        load(qd, first, j, part(motion, 3 * j + 1))
        load(qdd, first, j, part(motion, 3 * j + 2))
    _follow(tree, motion)


@inner
def _follow(tree, motion):
    """Motion of the joints that follow others."""
    n = tree.follow.shape[1]
    for k in range(tree.follow.shape[0]):
        own, offset = part(motion, 3 * (n + k)), tree.offset[k]
        for b in range(BLOCK):
            own[b] = offset
        clear(part(own, 1), 2)
        for j in range(n):
            factor, other = tree.follow[k, j], part(motion, 3 * j)
            if factor != 0.0:
                for b in range(3 * BLOCK):
                    own[b] += factor * other[b]


@inner
def _move(tree, i, motion, state):
    """Bring the state of link i's slot from its parent to the link."""
    parent, slot, prismatic = tree.parent[i], tree.slot[i], tree.prismatic[i]
    kin, own = part(state, STATE_ROWS * slot), part(motion, 3 * tree.row[i])
    velocity, acceleration = part(own, 1), part(own, 2)
    if parent < 0:
        base_state(tree.gravity, kin)
    elif tree.slot[parent] != slot:
        copy(part(state, STATE_ROWS * tree.slot[parent]), kin, STATE_ROWS)
    if prismatic:
        clear(part(kin, 9), 1)
        for b in range(10 * BLOCK, 11 * BLOCK):
            kin[b] = 1.0
        velocity = acceleration = part(kin, 9)  # it does not turn
    else:
        sine_cosine(own, kin)
    outward(tree.rotation[i], tree.translation[i], kin, velocity, acceleration)
    if prismatic:
        slide(own, kin)


@inner
def _carry(tree, i, motion, state, screws):
    """Bring the screws of link i's slot, whose state is there, from its parent to the link."""
    slot, parent, prismatic = tree.slot[i], tree.parent[i], tree.prismatic[i]
    before, own = tree.depth[parent] if parent >= 0 else 0, part(screws, 6 * slot * screws.shape[1])
    if parent >= 0 and tree.slot[parent] != slot:
        copy(part(screws, 6 * tree.slot[parent] * screws.shape[1]), own, 6 * before)
    carry(tree.rotation[i], tree.translation[i], part(state, STATE_ROWS * slot), own, before)
    if prismatic:
        slide_screws(part(motion, 3 * tree.row[i]), own, before)
    for d in range(tree.depth[i]):
        if d >= before:
            clear(part(own, 6 * d), 6)
        if tree.own[i, d] != 0.0:
            add_own_screw(prismatic, tree.own[i, d], part(own, 6 * d))


@inner
def _combine(motion, weight, derivative, dst):
    """Weighted sum over joints of position (0), velocity (1) or acceleration (2)."""
    clear(dst, 1)
    for j in range(weight.shape[0]):
        if weight[j] != 0.0:
            add_scaled(weight[j], part(motion, 3 * j + derivative), dst)


@inner
def _local_value(kind, constant, weight, motion, dst):
    """One local column: torque per unit of its parameter and per unit of weight."""
    factor = constant[0]
    if kind == ONE:
        for b in range(BLOCK):
            dst[b] = factor
        return
    if kind >= SPRING_STIFFNESS:
        _combine(motion, weight, np.int64(0), dst)
        a, b_, phi = constant[1], constant[2], constant[3]
        for b in range(BLOCK):
            lever = dst[b]
            if kind != POSITION:
                lever = a * b_ * np.sin(dst[b] - phi)
            if kind == SPRING_LENGTH:
                lever = -lever / np.sqrt(a * a + b_ * b_ - 2.0 * a * b_ * np.cos(dst[b] - phi))
            dst[b] = factor * lever
        return
    _combine(motion, weight, 2 if kind == ACCELERATION else 1, dst)
    if kind > VELOCITY:
        _signed(kind, constant[1], dst)
    for b in range(BLOCK):
        dst[b] *= factor


@inner
def _signed(kind, width, u):
    """Turn velocities into what friction has of their sign, smoothed over `width` unless it is zero, in place."""
    with_up = 1.0 if kind in (SIGN, VELOCITY_UP, MOVING_UP) else 0.0
    with_down = 1.0 if kind == VELOCITY_DOWN else -1.0 if kind in (SIGN, MOVING_DOWN) else 0.0
    speed = 1.0 if kind in (VELOCITY_UP, VELOCITY_DOWN) else 0.0
    if width > 0.0:
        for b in range(BLOCK):
            up = 0.5 + 0.5 * np.tanh(u[b] / width)
            u[b] = (with_up * up + with_down * (1.0 - up)) * (speed * u[b] + 1.0 - speed)
        return
    for b in range(BLOCK):
        up, down = 1.0 if u[b] > 0.0 else 0.0, 1.0 if u[b] < 0.0 else 0.0
        u[b] = (with_up * up + with_down * down) * (speed * u[b] + 1.0 - speed)


@inner
def _fill_inertial(tree, columns, places, i, state, screws, ten, dst, block):
    first, last, slot = columns.link_start[i], columns.link_start[i + 1], tree.slot[i]
    if first == last:
        return
    kin, blocks = part(state, STATE_ROWS * slot), dst.shape[1]
    for d in range(tree.depth[i]):
        joint = tree.path[i, d]
        at = places.ten[joint, i]
        m = either(dst, at[0] * blocks + block, ten, 0)
        mx = either(dst, at[1] * blocks + block, ten, 1)
        my = either(dst, at[2] * blocks + block, ten, 2)
        mz = either(dst, at[3] * blocks + block, ten, 3)
        xx = either(dst, at[4] * blocks + block, ten, 4)
        xy = either(dst, at[5] * blocks + block, ten, 5)
        yy = either(dst, at[6] * blocks + block, ten, 6)
        xz = either(dst, at[7] * blocks + block, ten, 7)
        yz = either(dst, at[8] * blocks + block, ten, 8)
        zz = either(dst, at[9] * blocks + block, ten, 9)
        if d == tree.plain[i]:
            own_columns(kin, m, mx, my, mz, xx, xy, yy, xz, yz, zz)
        else:
            screw = part(screws, 6 * (slot * screws.shape[1] + d))
            inertial_columns(kin, screw, m, mx, my, mz, xx, xy, yy, xz, yz, zz)
        for e in range(first, last):
            row, start = places.column[joint, columns.link_column[e]], columns.mix_start[e]
            if at[columns.mix_row[start]] == row:
                continue
            target = part(dst, row * blocks + block)
            clear(target, 1)
            for k in range(start, columns.mix_start[e + 1]):
                c = columns.mix_row[k]
                add_scaled(columns.mix_value[k], either(dst, at[c] * blocks + block, ten, c), target)


@inner
def _fill_rotors(tree, columns, place, i, motion, state, screws, ten, dst, block):
    slot, moment, own = tree.slot[i], part(ten, 0), part(ten, 3)
    kin = part(state, STATE_ROWS * slot)
    for r in range(columns.rotor_start[i], columns.rotor_start[i + 1]):
        c = columns.rotor_column[r]
        driven = columns.rotor_joint[r]
        velocity, acceleration = part(motion, 3 * driven + 1), part(motion, 3 * driven + 2)
        rotor_moment(columns.rotor_axis[r], columns.rotor_ratio[r], kin, velocity, acceleration, moment, own)
        copy(own, part(dst, place[driven, c] * dst.shape[1] + block), 1)
        for d in range(tree.depth[i]):
            j = tree.path[i, d]
            target = part(dst, place[j, c] * dst.shape[1] + block)
            if j != driven:
                clear(target, 1)
            add_moment_power(part(screws, 6 * (slot * screws.shape[1] + d)), moment, 1.0, target)


@inner
def _fill_local(columns, place, motion, ten, dst, block):
    value = part(ten, 0)
    for k in range(columns.local_column.shape[0]):
        _local_value(columns.local_kind[k], columns.local_constant[k], columns.local_weight[k], motion, value)
        for j in range(columns.local_weight.shape[1]):
            weight = columns.local_weight[k, j]
            if weight != 0.0:
                target = part(dst, place[j, columns.local_column[k]] * dst.shape[1] + block)
                for b in range(BLOCK):
                    target[b] = weight * value[b]


def scratch(tree: Tree) -> tuple[np.ndarray, ...]:
    """Memory for one block: motion of the joints, state and screws of each slot, ten rows, numbers of samples."""
    links, slots = len(tree.parent), int(tree.slot.max(initial=-1)) + 1
    shapes = (links, 3 * BLOCK), (slots, STATE_ROWS * BLOCK), (slots, links, 6 * BLOCK), (10 * BLOCK,)
    return *(memory(*shape) for shape in shapes), np.empty(BLOCK, dtype=np.int64)


@inner
def _pick(use, first, end, j, rows, count, number):
    """Leave the samples of a block out that joint j does not use; returns how many its `count` rows have left.

    Where most are used, the others become zero; where few are, they move to the beginning. `number` is scratch: of
    those that are used from its beginning on, of the others from its end on.
    """
    used, out = 0, 0
    for b in range(in_block(first, end)):
        used += 1 if use.shape[0] == 0 or use[j, first + b] != 0 else 0
    if used == BLOCK:
        return BLOCK
    used = 0
    for b in range(BLOCK):
        if first + b < end and (use.shape[0] == 0 or use[j, first + b] != 0):
            number[used] = b
            used += 1
        else:
            out += 1
            number[BLOCK - out] = b
    if 2 * used > BLOCK:
        for c in range(count):
            row = part(rows, c)
            for k in range(used, BLOCK):
                row[number[k]] = 0.0
        return BLOCK
    for c in range(count):
        row = part(rows, c)
        for k in range(used):
            row[k] = row[number[k]]
    return used


@compiled
def fill(tree, columns, places, q, qd, qdd, tau, use, begin, end, rows, grams, motion, state, screws, ten, number):
    """Write the wanted columns for samples [begin, end) to `rows`, or add each joint's Gram matrix to `grams`.

    Column c of joint j goes to ``rows[places.column[j, c]]``, (blocks, BLOCK); what a joint does not see is not
    written, and the last block is filled up as if at rest. `begin` is a multiple of BLOCK. Where `rows` has one block,
    each block of samples goes there. The last five are `scratch`; afterwards they are those of the last block.

    Where `grams` (n, S, S) is not empty, `rows` has one block and S rows for each joint, S a multiple of `TILE`: its
    [wanted columns | torque], whose Gram matrix that is, and zeros; only the lower tiles are written. Samples of a
    joint whose `use` (n, N) is zero are left out; an empty `use` takes all.
    """
    size = grams.shape[1]
    for first in range(begin, end, BLOCK):
        block = first // BLOCK if rows.shape[1] > 1 else 0
        _load_inputs(tree, q, qd, qdd, first, motion)
        for i in range(tree.parent.shape[0]):
            _move(tree, i, motion, state)
            _carry(tree, i, motion, state, screws)
            _fill_inertial(tree, columns, places, i, state, screws, ten, rows, block)
            _fill_rotors(tree, columns, places.column, i, motion, state, screws, ten, rows, block)
        _fill_local(columns, places.column, motion, ten, rows, block)
        for j in range(grams.shape[0]):
            own, used = part(rows, j * size), columns.used[j]
            load(tau, first, j, part(own, used))
            add_gram(table(rows, j * size), used + 1, _pick(use, first, end, j, own, used + 1, number), grams[j])


@inner
def _wrench(columns, i, phi, rotor, motion, state, ten, wrench, tau):
    """Force and moment that move link i and the rotors it carries; what these do to the joints they drive to `tau`."""
    rate_of_momentum(phi, state, wrench)
    for r in range(columns.rotor_start[i], columns.rotor_start[i + 1]):
        driven = columns.rotor_joint[r]
        velocity, acceleration = part(motion, 3 * driven + 1), part(motion, 3 * driven + 2)
        moment, own, size = part(ten, 0), part(ten, 3), rotor[r]
        rotor_moment(columns.rotor_axis[r], columns.rotor_ratio[r], state, velocity, acceleration, moment, own)
        add_scaled(size, own, part(tau, driven))
        for b in range(3 * BLOCK):
            wrench[3 * BLOCK + b] += size * moment[b]


@inner
def _inward(tree, motion, states, wrenches, ten, tau):
    """Carry wrenches from the last link to the base; what each joint bears of them goes to `tau`."""
    still = part(ten, 0)
    clear(still, 1)
    for i in range(tree.parent.shape[0] - 1, -1, -1):
        prismatic, own, parent = tree.prismatic[i], part(wrenches, 6 * i), tree.parent[i]
        for d in range(tree.depth[i]):
            if tree.own[i, d] != 0.0:
                add_scaled(tree.own[i, d], part(own, 2 if prismatic else 5), part(tau, tree.path[i, d]))
        if parent >= 0:
            shift, state = part(motion, 3 * tree.row[i]) if prismatic else still, part(states, STATE_ROWS * i)
            inward(tree.rotation[i], tree.translation[i], state, shift, own, part(wrenches, 6 * parent))


@compiled
def inverse_dynamics(
    tree, columns, phi, rotor, local, q, qd, qdd, begin, end, out, tau, motion, states, screws, ten, _
):
    """Torque for samples [begin, end) to `out` (N, n); phi (l, 10) in joint frames, rotor and local in column order.

    Each link has a scratch slot of its own (`tree.slot` is 0 .. l-1): its wrench goes to its parent's. The last six
    are scratch: (n, BLOCK), and `scratch`.
    """
    n, links = out.shape[1], tree.parent.shape[0]
    for first in range(begin, end, BLOCK):
        _load_inputs(tree, q, qd, qdd, first, motion)
        clear(part(tau, 0), n)
        for i in range(links):
            _move(tree, i, motion, states)
            _wrench(columns, i, phi[i], rotor, motion, part(states, STATE_ROWS * i), ten, part(screws, 6 * i), tau)
        _inward(tree, motion, states, screws, ten, tau)
        value = part(ten, 0)
        for k in range(local.shape[0]):
            _local_value(columns.local_kind[k], columns.local_constant[k], columns.local_weight[k], motion, value)
            for j in range(n):
                if columns.local_weight[k, j] != 0.0:
                    add_scaled(local[k] * columns.local_weight[k, j], value, part(tau, j))
        for b in range(in_block(first, end)):
            for j in range(n):
                out[first + b, j] = tau[j, b]
