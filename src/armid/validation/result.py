"""The result of a validation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from armid._version import __version__
from armid.arrays import Array, Indices
from armid.files import write_text
from armid.robot.schema import read_result
from armid.validation.metrics import JointMetrics, plain
from armid.validation.reference import ReferenceRow
from armid.validation.residuals import ResidualAnalysis
from armid.validation.verdict import Thresholds

FORMAT = "armid validation 1"


@dataclass(frozen=True, eq=False)
class Series:
    """The compared torques, thinned out where they are long; (rows, joints) but `time` and `dataset`.

    Attributes:
        dataset: which data set a row is of.
        time: [s].
        velocity: [rad/s].
        measured, predicted: torque [N m].
        sigma: standard deviation of the prediction from the parameters' covariance [N m].
    """

    dataset: Indices
    time: Array
    velocity: Array
    measured: Array
    predicted: Array
    sigma: Array

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {item.name: plain(getattr(self, item.name)) for item in fields(self)}


@dataclass(frozen=True, eq=False)
class Validation:
    """What `validate` returns.

    Attributes:
        robot: name of the robot.
        joints: figures per joint.
        residuals: the look of the error per joint.
        relative_error: length of the error over length of the torque, all joints and rows, filtered as the data are.
        relative_error_moving: the same over the rows at which each joint moves.
        relative_error_raw: the same over all rows, before any filter; NaN if that torque was not kept.
        same_as_training: whether some of the data are those the fit was made from; then it proves nothing.
        good: the verdict.
        reasons: for the verdict, in sentences.
        advice: what to change next, in sentences.
        thresholds: by which it was judged.
        references: estimates beside reference values.
        series: the compared torques.
        pipeline: signal processing of the data.
        data_sha256: hashes of the data sets.
        sources: files of the data.
        fit_sha256: hashes of the data the fit was made from.
        options: of the command that made it.
    """

    robot: str
    joints: tuple[JointMetrics, ...]
    residuals: tuple[ResidualAnalysis, ...]
    relative_error: float
    relative_error_moving: float
    relative_error_raw: float
    same_as_training: bool
    good: bool
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    thresholds: Thresholds
    references: tuple[ReferenceRow, ...]
    series: Series
    pipeline: tuple[Mapping[str, Any], ...] = ()
    data_sha256: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    fit_sha256: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """``good`` or ``poor``."""
        return "good" if self.good else "poor"

    @property
    def within_2_sigma(self) -> tuple[int, int]:
        """How many references lie within two standard deviations of their estimate, and how many there are."""
        return sum(row.within_2_sigma for row in self.references), len(self.references)

    def summary(self) -> str:
        """A table and sentences for people."""
        head = f"{self.robot}: {self.verdict}; error {self.relative_error_moving:.2%} of the torque while moving"
        lines = [f"{head}, {self.relative_error:.2%} on all rows{_percent(', {} unfiltered', self.relative_error_raw)}"]
        if self.same_as_training:
            lines.append("THESE ARE TRAINING DATA: the figures prove nothing about other motion.")
        nominal = any(np.isfinite(joint.nominal_nrms_moving) for joint in self.joints)
        header = ["joint", "rms N m", "NRMS", "moving", "R2", "corr.", "× noise", *(["nominal"] if nominal else [])]
        rows = [header] + [_row(joint, nominal) for joint in self.joints]
        widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
        lines += ["  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
        if nominal:
            lines.append("nominal: NRMS moving of the file's own inertia with the friction that suits it best here")
        if self.references:
            inside, count = self.within_2_sigma
            good = [row.accuracy for row in self.references if np.isfinite(row.accuracy)]
            middle = f"; median accuracy {np.median(good):.1f} %" if good else ""
            lines.append(f"{inside} of {count} reference values lie within two standard deviations{middle}")
        return "\n".join([*lines, *self.reasons, *self.advice])

    def to_data(self) -> dict[str, Any]:
        """Everything, for JSON; ratios and errors are fractions."""
        return {
            "format": FORMAT,
            "armid": __version__,
            "robot": self.robot,
            "verdict": self.verdict,
            "relative_error": plain(self.relative_error),
            "relative_error_moving": plain(self.relative_error_moving),
            "relative_error_raw": plain(self.relative_error_raw),
            "joints": [joint.to_data() for joint in self.joints],
            "same_as_training": self.same_as_training,
            "reasons": list(self.reasons),
            "advice": list(self.advice),
            "thresholds": self.thresholds.to_data(),
            "references": [row.to_data() for row in self.references],
            "within_2_sigma": list(self.within_2_sigma),
            "residuals": [look.to_data() for look in self.residuals],
            "series": self.series.to_data(),
            "pipeline": [dict(step) for step in self.pipeline],
            "data_sha256": list(self.data_sha256),
            "sources": list(self.sources),
            "fit_sha256": list(self.fit_sha256),
            "options": dict(self.options),
        }

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_text(Path(path), json.dumps(self.to_data(), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Validation:
        """Inverse of `to_data`."""
        return cls(
            robot=data["robot"],
            joints=tuple(JointMetrics(**_numbers(joint)) for joint in data["joints"]),
            residuals=tuple(ResidualAnalysis(**_numbers(look)) for look in data["residuals"]),
            relative_error=_number(data["relative_error"]),
            relative_error_moving=_number(data["relative_error_moving"]),
            relative_error_raw=_number(data["relative_error_raw"]),
            same_as_training=bool(data["same_as_training"]),
            good=data["verdict"] == "good",
            reasons=tuple(data["reasons"]),
            advice=tuple(data["advice"]),
            thresholds=Thresholds(**data["thresholds"]),
            references=tuple(ReferenceRow(**_numbers(row)) for row in data["references"]),
            series=_series(data["series"]),
            pipeline=tuple(data["pipeline"]),
            data_sha256=tuple(data["data_sha256"]),
            sources=tuple(data["sources"]),
            fit_sha256=tuple(data["fit_sha256"]),
            options=data["options"],
        )


def load_validation(path: str | Path) -> Validation:
    """Read a validation that `Validation.save` wrote."""
    return read_result(path, "a validation", FORMAT, "armid validate", Validation.from_data)


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _numbers(data: Mapping[str, Any]) -> dict[str, Any]:
    """NaN for null, arrays for lists."""
    result = dict(data)
    for key, value in data.items():
        if value is None:
            result[key] = float("nan")
        elif isinstance(value, list):
            result[key] = np.array([_number(item) for item in value])
    return result


def _series(data: Mapping[str, Any]) -> Series:
    arrays = {name: np.array(values, dtype=np.float64) for name, values in data.items() if name != "dataset"}
    return Series(dataset=np.array(data["dataset"], dtype=np.int64), **arrays)


def _percent(text: str, value: float) -> str:
    return text.format(f"{value:.2%}") if np.isfinite(value) else ""


def _row(joint: JointMetrics, nominal: bool) -> list[str]:
    cells = [joint.name, f"{joint.rms:.3g}", f"{joint.nrms:.1%}", f"{joint.nrms_moving:.1%}", f"{joint.r2:.4f}"]
    cells += [f"{joint.correlation:.4f}", f"{joint.noise_ratio:.1f}"]
    cells += [f"{joint.nominal_nrms_moving:.1%}"] if nominal else []
    return ["–" if cell in ("nan", "nan%") else cell for cell in cells]
