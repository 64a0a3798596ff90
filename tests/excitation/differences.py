"""Derivatives of a trajectory checked by central differences."""

import numpy as np


def assert_exact_derivatives(trajectory, step=1e-4, points=300, away_from=()):
    """Velocity and acceleration are the derivatives of position and velocity, to 1e-6 of their greatest values.

    Central differences of fourth order; points nearer than three steps to times in `away_from` are left out.
    """
    rng = np.random.default_rng(0)
    times = rng.uniform(3 * step, trajectory.duration - 3 * step, points)
    for moment in away_from:
        times = times[np.abs(times - moment) > 3 * step]
    assert len(times) > points / 2
    before2, before, here, after, after2 = (trajectory.at(times + k * step) for k in (-2, -1, 0, 1, 2))
    for order in (0, 1):
        slope = (8 * (after[order] - before[order]) - (after2[order] - before2[order])) / (12 * step)
        exact = here[order + 1]
        assert np.abs(slope - exact).max() <= 1e-6 * max(np.abs(exact).max(), 1e-3)
