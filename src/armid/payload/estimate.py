"""The payload as estimated: what it is, how sure that is, what it does to the torques, and whether it will do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armid._version import __version__
from armid.arrays import Array
from armid.errors import ArmidError
from armid.files import plain, write_text
from armid.payload.reference import ReferenceValue
from armid.robot.inertia import INERTIAL_NAMES, INERTIAL_UNITS, tensor, to_com
from armid.robot.schema import read_result

if TYPE_CHECKING:
    from armid.estimation.fit import Fit
    from armid.robot.robot import Robot

FORMAT = "armid payload 1"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What a payload has to be known to; the defaults are what industry asks for (Swevers et al. 2007).

    Attributes:
        mass: half of the 95 % interval, as a share of the mass.
        com_m: the same of the centre of mass, per axis [m].
    """

    mass: float = 0.05
    com_m: float = 0.01

    def __post_init__(self) -> None:
        """Refuse what nothing can meet."""
        for name, value in (("mass", self.mass), ("com_m", self.com_m)):
            if not (np.isfinite(value) and value > 0.0):
                raise ArmidError(f"the requirement {name} is {value:g}; it must be above zero")


@dataclass(frozen=True)
class Quantity:
    """One number about the payload.

    Attributes:
        name, unit: such as ``c_x`` in m.
        value: of the body that can exist.
        sigma: standard deviation.
        lower, upper: 95 % interval.
        determined: whether the data tell it, rather than what bodies are usually like.
    """

    name: str
    unit: str
    value: float
    sigma: float
    lower: float
    upper: float
    determined: bool

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "value": plain(self.value),
            "sigma": plain(self.sigma),
            "interval_95": [plain(self.lower), plain(self.upper)],
            "determined": self.determined,
            "unit": self.unit,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Quantity:
        """Inverse of `to_data`; null was not finite."""
        lower, upper = data["interval_95"]
        return cls(
            name=data["name"],
            unit=data["unit"],
            value=_number(data["value"], float("nan")),
            sigma=_number(data["sigma"], float("inf")),
            lower=_number(lower, -float("inf")),
            upper=_number(upper, float("inf")),
            determined=bool(data["determined"]),
        )


@dataclass(frozen=True)
class JointLoad:
    """What the payload does to one joint.

    Attributes:
        name: of the joint.
        moved: whether it moved fast enough to take part.
        rms_without: error of the arm's own model [N m], while moving; NaN where it did not move.
        rms_with: with the payload and the friction found with it [N m].
        noise: standard deviation of the measured torque's noise [N m]; NaN if not measured.
        payload_rms: torque of the payload itself [N m].
    """

    name: str
    moved: bool
    rms_without: float
    rms_with: float
    noise: float
    payload_rms: float


@dataclass(frozen=True)
class FrictionChange:
    """A friction coefficient with payload, and what the arm's fit has; sigma is that of the new value."""

    name: str
    unit: str
    value: float
    sigma: float
    before: float


@dataclass(frozen=True, eq=False)
class Series:
    """Torque over time, (rows,) and (rows, joints); pictures are drawn from it.

    Attributes:
        time: [s]; each log begins anew.
        measured, with_payload, without: [N m].
        moving: which joints take part.
    """

    time: Array
    measured: Array
    with_payload: Array
    without: Array
    moving: tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """What `identify_payload` returns; positions and inertias are in the robot's tool frame.

    Attributes:
        robot: name of the robot.
        parameters: ten inertial parameters about the tool frame's origin; a body with them can exist.
        free: the same without physical limits.
        covariance: of these; the arm's own uncertainty and that of the torque's scale included.
        quantities: mass, centre of mass, inertia about it.
        about_frame: the ten `parameters` with intervals.
        friction: of joints that moved, with payload and before.
        joints: torque errors with and without payload.
        arm_share: share of the mass's variance that comes from the arm's own fit.
        gain: standard deviation of the torque's scale that was taken into account, as a share.
        loaded_values, loaded_covariance: the fit's values with the payload attached, in the order of its names.
        fit_sha256: data the fit was made from, by hash; tells whether a fit is the one.
        data_sha256: the same of the logs with payload.
        reference: comparison with a known payload; empty without.
        requirement: what was asked for.
        good: the verdict.
        reasons: for a poor one.
        notes, advice: what was found, and what would help.
        series: torque over time; None after loading.
        pipeline: signal processing, as data.
        options: of the command.
        history: versions and hashes.
    """

    robot: str
    parameters: Array
    free: Array
    covariance: Array
    quantities: tuple[Quantity, ...]
    about_frame: tuple[Quantity, ...]
    friction: tuple[FrictionChange, ...]
    joints: tuple[JointLoad, ...]
    arm_share: float
    gain: float
    loaded_values: Array
    loaded_covariance: Array
    fit_sha256: tuple[str, ...]
    data_sha256: tuple[str, ...]
    reference: tuple[ReferenceValue, ...]
    requirement: Requirement
    good: bool
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    advice: tuple[str, ...]
    series: Series | None = None
    pipeline: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    history: Mapping[str, Any] = field(default_factory=dict)

    @property
    def mass(self) -> float:
        """[kg]."""
        return float(self.parameters[0])

    @property
    def com(self) -> Array:
        """Centre of mass in the tool frame [m]."""
        return to_com(self.parameters)[1]

    @property
    def inertia(self) -> Array:
        """Inertia tensor (3, 3) about the centre of mass [kg m^2]."""
        return to_com(self.parameters)[2]

    @property
    def inertia_about_frame(self) -> Array:
        """Inertia tensor (3, 3) about the tool frame's origin [kg m^2]."""
        return tensor(self.parameters)

    def quantity(self, name: str) -> Quantity:
        """One of `quantities`, such as ``m`` or ``c_x``."""
        return next(quantity for quantity in self.quantities if quantity.name == name)

    def apply(self, fit: Fit) -> Fit:
        """The fit of the arm with this payload attached, to predict, control and export."""
        from armid.payload.attach import loaded_fit

        return loaded_fit(fit, self)

    def apply_to_robot(self, robot: Robot) -> Robot:
        """The description with this payload: in its nominal inertia, and on its virtual arm."""
        from armid.payload.attach import loaded_robot

        return loaded_robot(robot, self.parameters)

    def summary(self) -> str:
        """A page for people."""
        from armid.payload.words import summary

        return summary(self)

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_text(Path(path), json.dumps(self.to_data(), indent=1, ensure_ascii=False) + "\n")

    def to_data(self) -> dict[str, Any]:
        """Everything but the series, for JSON."""
        mass, com, inertia = to_com(self.parameters)
        return {
            "format": FORMAT,
            "armid": __version__,
            "robot": self.robot,
            "mass": mass,
            "com": com.tolist(),
            "inertia": inertia.tolist(),
            "inertia_about_frame": self.inertia_about_frame.tolist(),
            "verdict": "good" if self.good else "poor",
            "reasons": list(self.reasons),
            "quantities": [quantity.to_data() for quantity in self.quantities],
            "about_frame": [quantity.to_data() for quantity in self.about_frame],
            "parameters": self.parameters.tolist(),
            "parameter_names": list(INERTIAL_NAMES),
            "parameter_units": list(INERTIAL_UNITS),
            "free": self.free.tolist(),
            "covariance": self.covariance.tolist(),
            "joints": [{key: plain(value) for key, value in vars(joint).items()} for joint in self.joints],
            "friction": [vars(change) for change in self.friction],
            "arm_share": self.arm_share,
            "gain": self.gain,
            "reference": [row.to_data() for row in self.reference],
            "within_2_sigma": [sum(row.within_2_sigma for row in self.reference), len(self.reference)],
            "requirement": vars(self.requirement),
            "notes": list(self.notes),
            "advice": list(self.advice),
            "loaded_values": self.loaded_values.tolist(),
            "loaded_covariance": self.loaded_covariance.tolist(),
            "fit_sha256": list(self.fit_sha256),
            "data_sha256": list(self.data_sha256),
            "pipeline": [dict(step) for step in self.pipeline],
            "options": dict(self.options),
            "history": dict(self.history),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> PayloadEstimate:
        """Inverse of `to_data`."""
        joints: list[dict[str, Any]]
        rows: list[dict[str, Any]]
        joints = [{key: float("nan") if value is None else value for key, value in j.items()} for j in data["joints"]]
        rows = [{**row, "sigmas": _number(row["sigmas"], float("inf"))} for row in data["reference"]]
        arrays: dict[str, Any] = {name: np.array(data[name], dtype=float) for name in _ARRAYS}
        texts: dict[str, Any] = {name: tuple(data[name]) for name in _TEXTS}
        return cls(
            robot=data["robot"],
            quantities=tuple(Quantity.from_data(entry) for entry in data["quantities"]),
            about_frame=tuple(Quantity.from_data(entry) for entry in data["about_frame"]),
            friction=tuple(FrictionChange(**entry) for entry in data["friction"]),
            joints=tuple(JointLoad(**entry) for entry in joints),
            arm_share=float(data["arm_share"]),
            gain=float(data["gain"]),
            reference=tuple(ReferenceValue(**row) for row in rows),
            requirement=Requirement(**data["requirement"]),
            good=data["verdict"] == "good",
            pipeline=tuple(data["pipeline"]),
            options=data["options"],
            history=data["history"],
            **arrays,
            **texts,
        )


_ARRAYS = ("parameters", "free", "covariance", "loaded_values", "loaded_covariance")
_TEXTS = ("fit_sha256", "data_sha256", "reasons", "notes", "advice")


def load_payload(path: str | Path) -> PayloadEstimate:
    """Read what `PayloadEstimate.save` wrote."""
    return read_result(path, "a payload", FORMAT, "armid payload -o", PayloadEstimate.from_data)


def _number(value: float | None, missing: float) -> float:
    return missing if value is None else float(value)
