"""What a step of a pipeline is: options as data, known by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.errors import DescriptionError, UnknownNameError
from armid.files import checked, plain, shown
from armid.logs.log import Log, LogError
from armid.notes import Note
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.signals.problems import SignalError

Notes = tuple[Note, ...]
NEEDS_GAIN = (
    "is a current; give the gains [N m/A] as current_gain in the recipe, as drives.current_gain of the robot, or as "
    "gains of the step CurrentToTorque"
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step; its fields are its options. Steps are a `Preparation` or a `Strategy`."""

    registry: ClassVar[dict[str, type[Step]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the step known by its name, unless it is abstract."""
        super().__init_subclass__(**kwargs)
        if ABC not in cls.__bases__:
            Step.registry[cls.__name__] = cls

    def to_data(self) -> dict[str, Any]:
        """Name and options, ready for JSON or YAML."""
        return {"step": type(self).__name__, **plain(self)}


@dataclass(frozen=True, kw_only=True)
class Preparation(Step, ABC):
    """A step from log to log."""

    @abstractmethod
    def apply(self, log: Log, robot: Robot | None) -> tuple[Log, Notes]:
        """The changed log, and what is worth telling."""


@dataclass(frozen=True, kw_only=True)
class Strategy(Step, ABC):
    """The last step, from log to dataset."""

    @abstractmethod
    def dataset(self, log: Log) -> Dataset:
        """The dataset; its `notes` say what was found and chosen, its `pipeline` holds this step alone."""

    def made(self, log: Log, motion: Motion, torque: Array, **more: Any) -> Dataset:
        """A data set of this step from what it made of a log; further entries of `Dataset` by name."""
        entries = {"time": log.time, "rows": np.arange(len(torque)), "pipeline": (self.to_data(),), **more}
        info = log.info
        return Dataset(
            info.joints,
            q=motion.q,
            qd=motion.qd,
            qdd=motion.qdd,
            torque=torque,
            gravity=info.gravity,
            gain_uncertainty=info.gain_uncertainty,
            history=info.history,
            **entries,
        )

    def reach(self, rate_hz: float) -> int:
        """Samples from an end, or from a hole, at which the motion is not what it would be without; 0 if all are good.

        Args:
            rate_hz: sample rate of the motion.
        """
        return 0


def step_from_data(data: Step | str | Mapping[str, Any]) -> Step:
    """A step from its name, or from a mapping with its name under ``step`` and options beside it.

    Raises:
        UnknownNameError: there is no such step or option; the message names the nearest.
        SignalError: an option is of another type.
    """
    if isinstance(data, Step):
        return data
    options = {"step": data} if isinstance(data, str) else dict(data) if isinstance(data, Mapping) else {}
    name = options.pop("step", None)
    if not isinstance(name, str):
        raise SignalError("pipeline", f"{shown(data)} names no step; write a mapping such as {{step: LowPass}}")
    if name not in Step.registry:
        raise UnknownNameError("step", name, sorted(Step.registry))
    kind = Step.registry[name]
    valid = [f.name for f in fields(kind)]
    for key in options:
        if key not in valid:
            raise UnknownNameError(f"option of {name}", str(key), valid)
    try:
        return checked(plain(options), kind, name)
    except DescriptionError as error:
        raise SignalError(name, f"{error.field} {error.problem}") from None
    except RecursionError:
        raise SignalError(name, "has options that are nested too deeply") from None


def required_effort(log: Log) -> Array:
    """Joint torque of the log, or an error that names what is missing."""
    effort, source = log.info.effort, log.info.source
    if effort == "joint torque" and log.info.side == "joint":
        return log["effort"]
    ways = {
        "current": NEEDS_GAIN,
        "none": "is missing; identification needs a measured torque or current",
    }
    moved = "is not on the joint side; give the ratios (step ToJointSide) or a robot with gear ratios or a coupling"
    raise LogError(source, "effort", ways.get(effort, moved))


def required_position(log: Log) -> Array:
    """Joint positions of the log, or an error that names what is missing."""
    if "position" not in log:
        raise LogError(
            log.info.source, "position", f"is not in the log (there are: {', '.join(log.channels)}); it is needed"
        )
    positions = log["position"]
    for name, column in zip(log.joints, positions.T, strict=True):
        if not np.isfinite(column).any():
            raise LogError(log.info.source, f"position.{name}", "holds no number; leave the joint out or add it")
    return positions
