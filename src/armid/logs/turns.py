"""Whole turns of joints whose position is told within one: where it wraps, and the motion without that."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array, Indices

TURN = 2.0 * np.pi
NEAR_TURN = 0.02  # of a turn, by which a jump of whole turns may differ from them
SMOOTH = 0.5  # steps of the motion without whole turns, nearly all of which must be smaller for turns to be told [rad]


def find_turns(column: Array) -> tuple[Indices, Array]:
    """First rows after jumps of a joint's position by whole turns, and how many turns; however often it wraps.

    Without the turns, such a step must be about as long as those before and after it.
    """
    known = np.flatnonzero(np.isfinite(column))
    step = np.diff(column[known])
    turns = np.round(step / TURN)
    wraps = np.flatnonzero(turns)
    rest = step - TURN * turns
    if not len(wraps) or (usual := float(np.quantile(np.abs(rest), 0.995))) > SMOOTH:
        return wraps[:0], turns[:0]
    around = 0.5 * (rest[np.maximum(wraps - 1, 0)] + rest[np.minimum(wraps + 1, len(rest) - 1)])
    wraps = wraps[np.abs(rest[wraps] - around) < max(NEAR_TURN * TURN, usual)]
    return known[wraps + 1], turns[wraps]


def unwound(position: Array) -> tuple[Array, dict[int, dict[int, float]]]:
    """Positions (samples, joints) with whole turns undone; and these, by row and joint [rad]."""
    found: dict[int, dict[int, float]] = {}
    result = position
    for joint, column in enumerate(position.T):
        rows, turns = find_turns(column)
        if len(rows):
            result = np.array(result) if result is position else result
            shift = np.zeros(len(column))
            shift[rows] = TURN * turns
            result[:, joint] -= np.cumsum(shift)
        for row, size in zip(rows.tolist(), (TURN * turns).tolist(), strict=True):
            found.setdefault(row, {})[joint] = size
    return result, found
