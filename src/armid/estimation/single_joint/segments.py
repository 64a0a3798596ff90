"""Parts of a log in which one joint moves at constant speed while the others rest."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from armid.arrays import Array

BLOCK_S = 0.2  # over which speeds are averaged to find out whether they change
STEADY = 0.03  # relative change of speed inside a steady part
LEAST_S = 1.0  # shortest steady part
REST = 0.05  # of the moving joint's speed that others may have


@dataclass(frozen=True)
class Segment:
    """Rows of a log with constant speed.

    Attributes:
        start, stop: first row and the one after the last.
        speed: mean, signed [rad/s or m/s].
    """

    start: int
    stop: int
    speed: float


def constant_velocity_segments(
    time: Array, position: Array, joint: int, command: Array | None = None, *, least_s: float = LEAST_S
) -> list[Segment]:
    """Parts in which joint `joint` (from 0) moves at constant speed for at least `least_s` and the others rest.

    With velocity commands, the parts are those of constant command; otherwise blocks of 0.2 s whose mean speeds, from
    the positions, agree within 3 % or the noise. Gaps in time end a part.

    Args:
        time: [s], (samples,).
        position: (samples, joints), joint side.
        joint: index of the joint.
        command: velocity commands (samples, joints), or None.
        least_s: shortest part.
    """
    if len(time) < 3:
        return []
    step = float(np.median(np.diff(time)))
    runs = _commanded(time, command, joint, step) if command is not None else _steady(time, position, joint, step)
    found = []
    for start, stop in runs:
        if time[stop - 1] - time[start] < least_s - 1.5 * step:
            continue
        moved = (position[stop - 1] - position[start]) / (time[stop - 1] - time[start])
        speed = float(moved[joint])
        others = np.delete(np.abs(moved), joint)
        if speed != 0.0 and not (others > REST * abs(speed)).any():
            found.append(Segment(start, stop, speed))
    return found


def _commanded(time: Array, command: Array, joint: int, step: float) -> list[tuple[int, int]]:
    mine = command[:, joint]
    change = (mine[1:] != mine[:-1]) | (np.diff(time) > 3.0 * step)
    edges = np.concatenate([[0], np.flatnonzero(change) + 1, [len(time)]])
    still = np.abs(np.delete(command, joint, axis=1)).max(axis=1, initial=0.0) == 0.0
    return [(int(a), int(b)) for a, b in pairwise(edges) if mine[a] != 0.0 and still[a:b].all()]


def _steady(time: Array, position: Array, joint: int, step: float) -> list[tuple[int, int]]:
    """Runs of blocks with the same mean speed, without knowledge of the command."""
    size = max(2, round(BLOCK_S / step))
    edges = np.arange(0, len(time), size)
    if len(edges) < 4:
        return []
    span = np.diff(time[edges])
    gap = np.maximum.reduceat(np.diff(time, append=time[-1]), edges)[:-1] > 3.0 * step
    speed = np.diff(position[edges, joint]) / np.maximum(span, 1e-12)
    # Noise of block speeds from their second differences, which steady motion and slow changes do not have.
    noise = float(np.median(np.abs(np.diff(speed, 2)))) / 0.6745 / np.sqrt(6.0) if len(speed) > 4 else 0.0
    runs, first = [], 0
    for k in range(1, len(speed) + 1):
        part = speed[first:k]
        middle = float(np.median(part))
        bound = max(STEADY * abs(middle), 4.0 * noise)
        if k < len(speed) and not gap[k - 1] and not gap[k] and abs(speed[k] - middle) <= bound:
            continue
        if abs(middle) > 6.0 * noise and not gap[first:k].any() and np.abs(part - middle).max() <= bound:
            runs.append((int(edges[first]), int(edges[k])))
        first = k
    return runs
