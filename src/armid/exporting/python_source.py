"""The Python twin of the C header: one file that needs NumPy alone, vectorised over samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import Array
from armid.exporting.arm import Arm
from armid.exporting.numbers import Curve, numbers_of


def python_module(arm: Arm, banner: list[str]) -> bytes:
    """Text of the module; `banner` are sentences for its docstring."""
    numbers = numbers_of(arm)
    doc = "\n".join(banner).replace("\\", "\\\\").replace('"""', "'''")
    constants = {
        "JOINTS": repr(tuple(arm.robot.joint_names)),
        "PARENT": repr([int(p) for p in numbers.parent]),
        "SLIDES": repr([bool(p) for p in numbers.prismatic]),
        "ROTATION": _array(numbers.rotation),
        "TRANSLATION": _array(numbers.translation),
        "GRAVITY": _array(numbers.gravity),
        "INERTIA": _array(numbers.inertia),
        "REFLECTED": _array(numbers.reflected),
        "ROTORS": _rows([(r.carrier, r.joint, r.ratio, r.inertia, r.axis) for r in numbers.rotors]),
        "LINES": _rows(list(numbers.lines)),
        "LOAD": "None" if numbers.load is None else _array(numbers.load),
        "CURVES": _curves(numbers.curves),
        "LOSS": "None" if numbers.loss is None else _array(numbers.loss),
        "WEIGHT": "None" if numbers.weight is None else _array(numbers.weight),
        "SPRINGS": _rows(list(numbers.springs)),
        "TABLES": _rows(list(numbers.tables)),
    }
    lines = [f"{_COMMENTS[name]}{name} = {text}" for name, text in constants.items()]
    return (f'"""{doc}\n"""\n\nimport numpy as np\n\n' + "\n".join(lines) + "\n" + _CODE).encode()


_COMMENTS = dict.fromkeys(
    ("JOINTS", "SLIDES", "TRANSLATION", "GRAVITY", "LOSS", "TABLES"),
    "",
) | {
    "PARENT": "# link that each joint hangs on, -1 for the base\n",
    "ROTATION": "# joint frame at zero in the parent's\n",
    "INERTIA": "# per link, in its joint's frame: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin\n",
    "REFLECTED": "# inertia of the rotors that feel no link, in joint space\n",
    "ROTORS": "# rotors that feel the link they sit on: link, joint, gear ratio, inertia, axis\n",
    "LINES": "# linear friction: direction in joint space; viscous, Coulomb forwards; the same backwards; offset\n",
    "LOAD": "# links whose torque is the load of load-dependent friction\n",
    "CURVES": "# friction laws: joint, torque forwards and backwards at speed v, offset\n",
    "WEIGHT": "# links whose weight makes the load-proportional loss\n",
    "SPRINGS": "# joint, a, b, phi, stiffness, stiffness times free length\n",
}


def _array(values: Array) -> str:
    return "np.array(" + _plain(values) + ")"


def _rows(rows: Sequence[Sequence[object]]) -> str:
    inner = "".join("    (" + ", ".join(_plain(entry) for entry in row) + "),\n" for row in rows)
    return f"(\n{inner})" if rows else "()"


def _curves(curves: Sequence[Curve]) -> str:
    rows = []
    for joint, law, up, down, offset in curves:
        back = "" if law.even else "-"
        texts = [f"lambda v, load: {sign}({law.numpy_text(c, 'load')})" for sign, c in (("", up), (back, down))]
        rows.append(f"    ({joint}, {texts[0]}, {texts[1]}, {float(offset)!r}),  # {law.name}\n")
    return f"(\n{''.join(rows)})" if rows else "()"


def _plain(value: object) -> str:
    """A literal that reads back exactly."""
    if isinstance(value, np.ndarray):
        if value.ndim > 1:
            return "[\n" + "".join(f"    {_plain(row)},\n" for row in value) + "]"
        return "[" + ", ".join(repr(float(entry) + 0.0) for entry in value) + "]"
    if isinstance(value, tuple):
        return "(" + "".join(f"{_plain(entry)}, " for entry in value) + ")"
    return repr(value)


_CODE = '''

def inverse_dynamics(q, qd, qdd):
    """Torque that makes the motion; arrays (samples, joints), or (joints,) for one sample."""
    q, qd, qdd, shape = _samples(q, qd, qdd)
    torque = _newton_euler(INERTIA, GRAVITY, q, qd, qdd, True) + _friction(q, qd, qdd) + _springs(q)
    return torque.reshape(shape)


def gravity(q):
    """Torque that holds the links against gravity."""
    q, shape = _samples(q)
    return _newton_euler(INERTIA, GRAVITY, q, np.zeros_like(q), np.zeros_like(q), False).reshape(shape)


def friction(q, qd, qdd):
    """Torque against friction, offsets included."""
    q, qd, qdd, shape = _samples(q, qd, qdd)
    return _friction(q, qd, qdd).reshape(shape)


def springs(q):
    """Torque of springs and counterbalances."""
    q, shape = _samples(q)
    return _springs(q).reshape(shape)


def mass_matrix(q):
    """Inertia in joint space (samples, joints, joints), rotors included."""
    q, shape = _samples(q)
    still = np.zeros_like(q)
    columns = [
        _newton_euler(INERTIA, np.zeros(3), q, still, np.broadcast_to(unit, q.shape), True)
        for unit in np.eye(q.shape[1])
    ]
    return np.stack(columns, axis=-1).reshape(*shape, q.shape[1])


def _samples(*arrays):
    arrays = [np.asarray(array, dtype=float) for array in arrays]
    for array in arrays:
        if array.ndim not in (1, 2) or array.shape[-1] != len(JOINTS) or array.shape != arrays[0].shape:
            raise ValueError(f"motion must be arrays (samples, {len(JOINTS)}) of one shape, not {array.shape}")
    return (*(np.atleast_2d(array) for array in arrays), arrays[0].shape)


def _cross(a, b):
    x, y, z = np.moveaxis(a, -1, 0)
    u, v, w = np.moveaxis(np.broadcast_to(b, a.shape), -1, 0)
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


def _newton_euler(inertia, gravity, q, qd, qdd, rotors):
    """Recursive Newton-Euler in joint frames."""
    samples, joints = q.shape
    zero = np.zeros((samples, 3))
    frames, places, spins, turns, moves, forces, moments = ([] for _ in range(7))
    torque = np.zeros((samples, joints))
    for i, parent in enumerate(PARENT):
        w, a = (zero, zero) if parent < 0 else (spins[parent], turns[parent])
        move = np.broadcast_to(-gravity, zero.shape) if parent < 0 else moves[parent]
        frame = np.broadcast_to(ROTATION[i], (samples, 3, 3))
        place = np.broadcast_to(TRANSLATION[i], zero.shape)
        if SLIDES[i]:
            place = place + q[:, i, None] * ROTATION[i][:, 2]
        else:
            c, s = np.cos(q[:, i, None]), np.sin(q[:, i, None])
            frame = np.stack([frame[..., 0] * c + frame[..., 1] * s, frame[..., 1] * c - frame[..., 0] * s,
                              frame[..., 2]], axis=-1)
        move = move + _cross(a, place) + _cross(w, _cross(w, place))
        w, a, move = (np.einsum("sij,si->sj", frame, vector) for vector in (w, a, move))
        speed, change = qd[:, i], qdd[:, i]
        crossed = np.stack([w[:, 1] * speed, -w[:, 0] * speed, change], axis=-1)
        if SLIDES[i]:
            move = move + crossed * np.array([2.0, 2.0, 1.0])
        else:
            a = a + crossed
            w = w + np.stack([0.0 * speed, 0.0 * speed, speed], axis=-1)
        m, h = inertia[i, 0], np.broadcast_to(inertia[i, 1:4], zero.shape)
        tensor = inertia[i][[[4, 5, 7], [5, 6, 8], [7, 8, 9]]]
        forces.append(m * move + _cross(a, h) + _cross(w, _cross(w, h)))
        moments.append(a @ tensor + _cross(w, w @ tensor) + _cross(h, move))
        for values, value in ((frames, frame), (places, place), (spins, w), (turns, a), (moves, move)):
            values.append(value)
    if rotors:
        torque += qdd @ REFLECTED
        for carrier, joint, ratio, value, axis in ROTORS:
            axis = np.asarray(axis)
            spin = qdd[:, joint, None] * axis + qd[:, joint, None] * _cross(spins[carrier], axis)
            moments[carrier] = moments[carrier] + ratio * value * spin
            torque[:, joint] += ratio * value * (ratio * qdd[:, joint] + turns[carrier] @ axis)
    for i in reversed(range(joints)):
        torque[:, i] += (forces[i] if SLIDES[i] else moments[i])[:, 2]
        parent = PARENT[i]
        if parent >= 0:
            force, moment = (np.einsum("sij,sj->si", frames[i], vector) for vector in (forces[i], moments[i]))
            forces[parent] = forces[parent] + force
            moments[parent] = moments[parent] + moment + _cross(places[i], force)
    return torque


def _friction(q, qd, qdd):
    torque = np.zeros_like(q)
    for weight, viscous_up, coulomb_up, viscous_down, coulomb_down, offset in LINES:
        u = qd @ np.asarray(weight)
        level = np.where(u > 0.0, viscous_up * u + coulomb_up, np.where(u < 0.0, viscous_down * u - coulomb_down, 0.0))
        torque += (level + offset)[:, None] * np.asarray(weight)
    load = None if LOAD is None else _newton_euler(LOAD, GRAVITY, q, qd, qdd, False)
    for joint, up, down, offset in CURVES:
        v, mine = qd[:, joint], None if load is None else np.abs(load[:, joint])
        with np.errstate(all="ignore"):
            level = np.where(v > 0.0, up(v, mine), np.where(v < 0.0, down(-v, mine), 0.0))
        torque[:, joint] += level + offset
    if LOSS is not None:
        weight = _newton_euler(WEIGHT, GRAVITY, q, np.zeros_like(q), np.zeros_like(q), False)
        torque += LOSS[:, 0] * weight + LOSS[:, 1]
    return torque


def _springs(q):
    torque = np.zeros_like(q)
    for joint, a, b, phi, stiffness, force in SPRINGS:
        angle = q[:, joint] - phi
        length = np.sqrt(a * a + b * b - 2.0 * a * b * np.cos(angle))
        torque[:, joint] += a * b * np.sin(angle) * (stiffness - force / length)
    for joint, position, value in TABLES:
        torque[:, joint] += np.interp(q[:, joint], position, value)
    return torque
'''
