"""A plan: the trajectory of an experiment, how informative it is, and what it guarantees."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid._version import __version__
from armid.errors import ArmidError, in_words
from armid.excitation.certificate import Certificate, Margin
from armid.excitation.criteria import Conditioning
from armid.excitation.trajectory import Trajectory, trajectory_from_data
from armid.files import read_text, write_text

FORMAT = "armid plan 1"
# JSON has no infinity: null stands for it, here in figures of an information matrix that is singular.
_UNSEEN = {"log_det": -np.inf, "condition": np.inf, "condition_raw": np.inf}


@dataclass(frozen=True, eq=False)
class Plan:
    """What `design` returns.

    Attributes:
        robot: name of the robot it is for.
        joint_names: its joints, in order.
        trajectory: the motion of one period.
        rate_hz: rate the experiment is to be sampled with.
        criterion: name of the criterion.
        value: its cost (minus log det for d-optimal, log of the condition number for condition).
        parameters: columns whose information counted.
        conditioning: figures of the information matrix.
        certificate: margins to all limits.
        seconds: time the search took.
        options: everything needed to repeat it, the seed included; ``stopped`` where an interruption ended the search.
    """

    robot: str
    joint_names: tuple[str, ...]
    trajectory: Trajectory
    rate_hz: float
    criterion: str
    value: float
    parameters: tuple[str, ...]
    conditioning: Conditioning
    certificate: Certificate
    seconds: float
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def certified(self) -> bool:
        """Whether all limits are kept."""
        return self.certificate.holds

    def summary(self) -> str:
        """A few lines for people."""
        c = self.conditioning
        lines = [
            f"{self.robot}: {self.trajectory.duration:g} s, {len(self.parameters)} parameters, {self.criterion}",
            f"condition number {c.condition:.3g} (raw {c.condition_raw:.3g}), log det {c.log_det:.2f}, "
            f"smallest singular value {c.sigma_min:.3g}",
        ]
        lines += [
            f"{m.quantity:<14} margin {m.text:>9}  "
            + (f"(joint {m.joint}; {m.guarantee})" if m.joint else f"({m.guarantee})")
            for m in self.certificate.margins
        ]
        if "stopped" in self.options:
            lines.append(f"the search was stopped {self.options['stopped']}; a longer one may find a better plan")
        lines.append("all limits are kept" if self.certified else "LIMITS ARE BROKEN: do not run this plan")
        return "\n".join(lines)

    def to_data(self) -> dict[str, Any]:
        """The plan as JSON-able data."""
        content = {
            "format": FORMAT,
            "armid": __version__,
            "robot": self.robot,
            "joint_names": list(self.joint_names),
            "trajectory": self.trajectory.to_data(),
            "rate_hz": self.rate_hz,
            "criterion": self.criterion,
            "value": self.value,
            "parameters": list(self.parameters),
            "conditioning": asdict(self.conditioning),
            "certified": self.certified,
            "margins": [asdict(margin) for margin in self.certificate.margins],
            "seconds": self.seconds,
            "options": dict(self.options),
        }
        return {name: _plain(value) for name, value in content.items()}

    def save(self, path: str | Path) -> None:
        """Write the plan to a JSON file."""
        write_text(Path(path), json.dumps(self.to_data(), indent=2, allow_nan=False) + "\n")


def load_plan(path: str | Path) -> Plan:
    """Read a plan written by `Plan.save`."""
    if Path(path).is_dir():
        raise ArmidError(f"{path}: is a folder; give a plan written by `armid design`")
    text = read_text(Path(path))
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise ArmidError(f"{path}: format is {data['format']!r}; this version of armid reads {FORMAT!r}")
        conditioning = {**_UNSEEN, **{k: v for k, v in data["conditioning"].items() if v is not None}}
        conditioning["singular_values"] = tuple(conditioning["singular_values"])
        margins = [{**margin, "margin": _or_infinite(margin["margin"])} for margin in data["margins"]]
        return Plan(
            robot=data["robot"],
            joint_names=tuple(data["joint_names"]),
            trajectory=trajectory_from_data(data["trajectory"]),
            rate_hz=data["rate_hz"],
            criterion=data["criterion"],
            value=_or_infinite(data["value"]),
            parameters=tuple(data["parameters"]),
            conditioning=Conditioning(**conditioning),
            certificate=Certificate(tuple(Margin(**margin) for margin in margins)),
            seconds=data["seconds"],
            options=data["options"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ArmidError(f"{path}: is not a plan ({in_words(error)}); give one written by `armid design`") from None


def _plain(value: Any) -> Any:
    """Data that JSON can hold: arrays as lists, null for what is not finite."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _or_infinite(value: float | None) -> float:
    return np.inf if value is None else value
