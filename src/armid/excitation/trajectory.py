"""What a trajectory is: exact positions, velocities and accelerations at any time, saved as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.errors import ArmidError, nearest
from armid.files import FieldError, convert, read_result, shown, write_result

FORMAT = "armid trajectory 1"


class TrajectoryError(ArmidError, ValueError):
    """A trajectory cannot be made from what was given.

    Attributes:
        field: the argument or key that is wrong; empty for the whole trajectory.
    """

    def __init__(self, field: str, problem: str) -> None:
        """Compose "field problem"."""
        self.field = field
        super().__init__(f"{field} {problem}" if field else problem)


class SamplingError(TrajectoryError):
    """A period is not a whole number of samples.

    Attributes:
        nearest_rate_hz: the rate nearest to the wanted one that fits the period.
        nearest_period: the period [s] nearest to the trajectory's that fits the rate.
    """

    def __init__(self, period: float, rate_hz: float) -> None:
        """Propose the nearest rate and the nearest period."""
        samples = max(1, round(period * rate_hz))
        self.nearest_rate_hz, self.nearest_period = samples / period, samples / rate_hz
        super().__init__(
            "rate_hz",
            f"{rate_hz:.10g} gives {period * rate_hz:.10g} samples in a period of {period:.10g} s, which must be "
            f"a whole number: use {self.nearest_rate_hz:.10g} Hz, or a period of {self.nearest_period:.10g} s "
            f"({samples} samples)",
        )


@dataclass(frozen=True, eq=False)
class Extrema:
    """Extremes per joint over continuous time.

    Attributes:
        lower, upper: position [rad or m].
        velocity: largest absolute velocity [rad/s or m/s].
        acceleration: largest absolute acceleration [rad/s^2 or m/s^2].
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array


class Trajectory(ABC):
    """Motion of all joints over time. Subclasses are frozen data classes whose fields are what the JSON file holds.

    A class registers itself with ``class Name(Trajectory, type_name="name")``.

    Attributes:
        joints: number of joints.
        duration: length [s]; one period if periodic.
        periodic: continues for ever with period `duration`.
    """

    joints: int
    duration: float
    periodic: ClassVar[bool] = False
    type_name: ClassVar[str] = ""
    types: ClassVar[dict[str, type[Trajectory]]] = {}

    def __init_subclass__(cls, *, type_name: str = "", **rest: Any) -> None:
        """Register the class under the name that its files carry."""
        super().__init_subclass__(**rest)
        if type_name:
            cls.type_name = type_name
            Trajectory.types[type_name] = cls

    def _freeze(self, joints: int, duration: float, **checked: Any) -> None:
        """Keep the checked fields, and what follows from them."""
        for name, value in {"joints": joints, "duration": duration, **checked}.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def _motion(self, times: Array) -> Motion:
        """Motion at `times`, which lie in [0, duration] unless the trajectory is periodic."""

    def at(self, times: ArrayLike) -> Motion:
        """Exact motion at any times [s]: q, qd, qdd, each (samples, joints).

        Before its start and after its end, a trajectory that is not periodic rests in its end postures.
        """
        wanted = numbers("times", times, 1)
        if self.periodic:
            return self._motion(wanted)
        within = np.clip(wanted, 0.0, self.duration)
        motion = self._motion(within)
        outside = (within != wanted)[:, None]
        return Motion(motion.q, np.where(outside, 0.0, motion.qd), np.where(outside, 0.0, motion.qdd))

    def sample(self, rate_hz: float) -> tuple[Array, Motion]:
        """Sample times [s] and motion at a steady rate, for one duration.

        A periodic trajectory gives one period without its last instant, which is the next period's first; the period
        must be a whole number of samples. Any other is sampled up to the first sample at or after its end.

        Raises:
            SamplingError: the period is not a whole number of samples.
        """
        rate = number("rate_hz", rate_hz, above=0.0)
        exact = self.duration * rate
        if not self.periodic:
            count = int(np.ceil(exact - 1e-9 * max(1.0, exact))) + 1
            times: Array = np.arange(count, dtype=np.float64) / rate
            return times, self.at(times)
        samples = round(exact)
        if samples < 1 or abs(exact - samples) > 1e-9 * max(1.0, exact):
            raise SamplingError(self.duration, rate)
        times = np.arange(samples, dtype=np.float64) * (self.duration / samples)
        return times, self.at(times)

    def to_plain(self) -> dict[str, Any]:
        """The trajectory as data for JSON, its kind under "type"."""
        content: Any = self  # every subclass is a data class
        return {"type": self.type_name, **{entry.name: getattr(self, entry.name) for entry in fields(content)}}

    @classmethod
    def from_plain(cls, data: object) -> Trajectory:
        """The trajectory that `to_plain` described, for `armid.files.checked`."""
        if not isinstance(data, Mapping):
            raise ValueError(f"must be a mapping with a type, not {shown(data)}")
        name = str(data.get("type"))[:80]
        if name not in Trajectory.types:
            valid = ", ".join(sorted(Trajectory.types))
            raise FieldError("type", f"is {shown(name)}{nearest(name, Trajectory.types)}; valid: {valid}")
        kind: Any = Trajectory.types[name]
        known = [entry.name for entry in fields(kind)]
        for key in data:
            if key not in ("type", *known):
                raise FieldError(str(key), f"is not a known key{nearest(str(key), known)}; valid: {', '.join(known)}")
        result = convert({key: value for key, value in data.items() if key != "type"}, kind)
        assert isinstance(result, Trajectory)
        return result


class _TrajectoryFile(msgspec.Struct):
    trajectory: Trajectory


def save_trajectory(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory to a JSON file; the file is either complete or not there."""
    write_result(path, FORMAT, {"trajectory": trajectory})


def load_trajectory(path: str | Path) -> Trajectory:
    """Read a trajectory that `save_trajectory` wrote."""
    return read_result(path, _TrajectoryFile, "a trajectory", FORMAT, "save_trajectory").trajectory


def number(field: str, value: Any, *, above: float | None = None, least: float | None = None) -> float:
    """A finite number, greater than `above` or at least `least`."""
    single = numbers(field, value, 0)
    if above is not None and not single > above:
        raise TrajectoryError(field, f"is {single:g}; it must be greater than {above:g}")
    if least is not None and not single >= least:
        raise TrajectoryError(field, f"is {single:g}; it must be at least {least:g}")
    return float(single)


def whole(field: str, value: Any, least: int) -> int:
    """A whole number, at least `least`."""
    single = number(field, value, least=least)
    if single != int(single):
        raise TrajectoryError(field, f"is {single:g}; it must be a whole number")
    return int(single)


def numbers(field: str, value: Any, ndim: int, shape: tuple[int | None, ...] | None = None) -> Array:
    """A read-only array of finite numbers with `ndim` dimensions, of `shape` where that is not None."""
    kinds = (
        "a number",
        "a list of numbers",
        "a table of numbers (rows of equal length)",
        "a list of tables of numbers",
    )
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty((), dtype=object)
    if array.ndim == ndim and array.size == 0:
        array = array.astype(float)
    if array.dtype.kind not in "iuf" or array.ndim != ndim:
        raise TrajectoryError(field, f"must be {kinds[ndim]}")
    if not np.all(np.isfinite(array)):
        raise TrajectoryError(field, "must be finite everywhere")
    if shape is not None and any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise TrajectoryError(field, f"has shape {array.shape}; it must be ({wanted})")
    array = array.astype(np.float64)
    array.flags.writeable = False
    return array


def per_joint(field: str, value: ArrayLike, joints: int) -> Array:
    """One number for each joint; a single number serves all."""
    array = np.asarray(value)
    return numbers(field, np.full(joints, array) if array.ndim == 0 else array, 1, (joints,))
