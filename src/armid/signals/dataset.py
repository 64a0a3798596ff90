"""The dataset: motion and torque, ready to regress. Samples of long logs, made piece by piece, stay in a file."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array, Indices
from armid.display import short
from armid.dynamics.model import Motion
from armid.errors import DataShapeError
from armid.logs.log import Log, LogStream, concatenate
from armid.notes import Note, note
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


PIECE = 262_144  # samples that are processed at a time
WHOLE = 2 * PIECE  # up to so many are processed as a whole
SEAM = 1  # more samples at the ends of pieces that no row uses: derivatives reach over them
_SAMPLES = ("q", "qd", "qdd", "measured")


class Stored:
    """Rows of numbers in a temporary file, to be read like an array: by slices and increasing indices."""

    def __init__(self, columns: int) -> None:
        """Begin with none."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  it goes with the object
        weakref.finalize(self, self._file.close)
        self.shape = (0, columns)
        self.ndim, self.dtype = 2, np.dtype(np.float64)

    def append(self, rows: Array) -> None:
        """Add rows at the end."""
        self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(rows, dtype=np.float64).tobytes())
        self.shape = (self.shape[0] + len(rows), self.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> Array:
        if isinstance(which, slice):
            start, stop, step = which.indices(len(self))
            if step == 1:
                return self._read(start, stop)
            which = np.arange(start, stop, step)
        index = np.asarray(which)
        parts, first = [np.empty((0, self.shape[1]))], 0
        while first < len(index):
            last = max(int(np.searchsorted(index, index[first] + PIECE)), first + 1)
            part = index[first:last]
            parts.append(self._read(int(part[0]), int(part[-1]) + 1)[part - part[0]])
            first = last
        return np.concatenate(parts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._read(0, len(self)).astype(dtype or np.float64)

    def _read(self, start: int, stop: int) -> Array:
        self._file.seek(8 * start * self.shape[1])
        data = self._file.read(8 * max(stop - start, 0) * self.shape[1])
        return np.frombuffer(data).reshape(-1, self.shape[1])


def whole_or_stream(stream: LogStream) -> Log | LogStream:
    """The log where it is short enough to be processed as a whole, else the stream."""
    parts, count = [], 0
    for block in stream.blocks():
        parts.append(block)
        count += len(block)
        if count > WHOLE:
            return stream
    return concatenate(parts)


def pieces(stream: LogStream) -> Iterator[Log]:
    """The log in pieces of `PIECE` samples; what is left at the end joins the last one."""
    waiting: Log | None = None
    for block in stream.blocks(PIECE):
        both = block if waiting is None else concatenate([waiting, block])
        if len(both) >= 2 * PIECE:
            yield both.rows(slice(0, PIECE))
            both = both.rows(slice(PIECE, None))
        waiting = both
    if waiting is not None:
        yield waiting


def joined(stream: LogStream, processed: Callable[[Log], Dataset]) -> Dataset:
    """One dataset of all pieces, each of which `processed` turns into one; rows are those of the pieces."""
    stores: dict[str, Stored] = {}
    kept: dict[str, list[Any]] = {name: [] for name in ("time", "rows", "torque", "use", "torque_noise")}
    first: Dataset | None = None
    done = count = 0
    for piece in pieces(stream):
        data = processed(piece)
        if first is None:
            first = data.part(slice(0, 1))
            stores = {name: Stored(len(data.joints)) for name in _SAMPLES}
        half = (0 if data.kernel is None else len(data.kernel) // 2) + SEAM
        inside = (data.rows >= half) & (data.rows < len(data.time) - half)
        kept["rows"].append(done + data.rows[inside])
        kept["time"].append(data.time)
        kept["torque"].append(data.torque[inside])
        kept["use"].append((np.ones(data.torque.shape, dtype=bool) if data.use is None else data.use)[inside])
        kept["torque_noise"].append(np.zeros(0) if data.torque_noise is None else data.torque_noise)
        for name, store in stores.items():
            store.append(getattr(data, name))
        done, count = done + len(data.time), count + 1
    assert first is not None
    noise = kept.pop("torque_noise")
    entries: dict[str, Any] = {name: np.concatenate(parts) for name, parts in kept.items()}
    entries |= {name: cast(Array, store) for name, store in stores.items()}
    entries["torque_noise"] = np.sqrt(np.mean(np.square(noise), axis=0)) if len(noise[0]) else None
    said = note("signals.long", samples=done, pieces=count)
    return replace(first, notes=(*first.notes, said), **entries)
