"""The dataset: motion and torque, ready to regress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array, Indices
from armid.display import short
from armid.dynamics.model import Motion
from armid.errors import DataShapeError
from armid.notes import Note
from armid.signals.filters import BLOCK, filtered, row_blocks


@dataclass(frozen=True, eq=False)
class Dataset:
    """Processed signals of one experiment, on the joint side.

    A filter that acted on the torque has to act on the regressor alike. So motion is kept at the full rate (`samples`
    rows), torque at the rows that are left (`rows`), and `kernel` says how each of those came about: row k belongs to
    sample ``rows[k]`` and is the sum over i of ``kernel[half + i]`` times the raw value at sample ``rows[k] + i``,
    -half <= i <= half. All of these samples exist: no row is touched by the ends.

    Attributes:
        joints: names.
        time: of the samples [s], (samples,).
        q, qd, qdd: position, velocity, acceleration, (samples, joints).
        torque: joint torque [N m or N] at `rows`, filtered by `kernel`, (rows, joints).
        rows: index of the sample each torque belongs to, increasing, (rows,).
        kernel: symmetric filter, odd length, sum 1; None where nothing was filtered.
        measured: joint torque [N m or N] of all samples before `kernel` acted, (samples, joints); None if not kept.
        use: rows to regress, (rows, joints); False where a torque is not to be trusted.
        torque_noise: standard deviation of the noise in `torque`, per joint [N m]; None if it was not measured.
        noise_covariance: the same with correlation between joints, (joints, joints); None if it was not measured.
        position_noise: standard deviation of the noise in `q` [rad]; None if it was not measured.
        periods: how many periods were averaged; 0 if none.
        pipeline: the steps that made it, as data.
        notes: what was found and chosen on the way.
        gravity: in the base frame [m/s^2], where the log says; None otherwise.
        gain_uncertainty: standard deviation of the scale of each joint's torque, as a share; empty for none.
        history: where the log came from.
    """

    joints: tuple[str, ...]
    time: Array
    q: Array
    qd: Array
    qdd: Array
    torque: Array
    rows: NDArray[np.int64]
    kernel: Array | None = None
    measured: Array | None = None
    use: NDArray[np.bool_] | None = None
    torque_noise: Array | None = None
    noise_covariance: Array | None = None
    position_noise: Array | None = None
    periods: int = 0
    pipeline: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[Note, ...] = ()
    gravity: tuple[float, float, float] | None = None
    gain_uncertainty: tuple[float, ...] = ()
    history: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the shapes."""
        samples, joints = self.q.shape if self.q.ndim == 2 else (0, 0)
        rows = np.asarray(self.rows)
        object.__setattr__(self, "rows", rows.astype(np.int64))
        shapes = {
            "time": (samples,),
            "qd": (samples, joints),
            "qdd": (samples, joints),
            "torque": (len(rows), joints),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise DataShapeError(f"{name} has the shape {getattr(self, name).shape}; {shape} is needed")
        if len(self.joints) != joints:
            raise DataShapeError(f"there are {len(self.joints)} joint names for {joints} columns")
        half = 0 if self.kernel is None else len(self.kernel) // 2
        if self.kernel is not None and (len(self.kernel) % 2 == 0 or not np.allclose(self.kernel, self.kernel[::-1])):
            raise DataShapeError("kernel must be symmetric and of odd length")
        if len(rows) and (rows[0] < half or rows[-1] + half >= samples or (np.diff(rows) <= 0).any()):
            raise DataShapeError("rows must increase and keep half a kernel from both ends")
        if self.use is not None and self.use.shape != self.torque.shape:
            raise DataShapeError(f"use has the shape {self.use.shape}; {self.torque.shape} is needed")

    def __repr__(self) -> str:
        """One line."""
        periods = f"mean of {self.periods} periods" if self.periods else ""
        rows = f"{len(self.rows)} rows of {len(self.time)} samples"
        return short(self, self.history.get("source", ""), f"{len(self.joints)} joints", rows, periods)

    def __len__(self) -> int:
        """Number of rows to regress."""
        return len(self.rows)

    @property
    def motion(self) -> Motion:
        """Positions, velocities and accelerations at the full rate."""
        return Motion(self.q, self.qd, self.qdd)

    def at_rows(self, samples: Array) -> Array:
        """Values of all samples, (samples, ...), as the rows see them: filtered as the torque was, (rows, ...)."""
        if self.kernel is None and len(self.rows) == len(samples):
            return samples
        return filtered(samples, self.kernel, self.rows)

    def part(self, which: slice | Indices) -> Dataset:
        """The data set of some of its rows, a slice or increasing indices, with the samples these are made of."""
        rows = self.rows[which]
        half = 0 if self.kernel is None else len(self.kernel) // 2
        span = slice(int(rows[0]) - half, int(rows[-1]) + half + 1) if len(rows) else slice(0, 0)
        return replace(
            self,
            time=self.time[span],
            q=self.q[span],
            qd=self.qd[span],
            qdd=self.qdd[span],
            torque=self.torque[which],
            rows=rows - span.start,
            measured=None if self.measured is None else self.measured[span],
            use=None if self.use is None else self.use[which],
        )

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[slice, Dataset]]:
        """All rows in parts made of about `size` samples, each with its place among the rows.

        A regressor computed part by part needs constant memory; neighbouring parts share the samples of one kernel.
        """
        for which, _ in row_blocks(self.rows, self.kernel, size):
            yield which, self.part(which)

    @property
    def rate_hz(self) -> float:
        """Sample rate of the motion."""
        return 1.0 / float(np.median(np.diff(self.time[:10_000])))
