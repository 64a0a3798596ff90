"""The result of a validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array, Indices
from armid.display import html_table, short
from armid.errors import ArmidError
from armid.files import MaybeNaN, plain, read_result, write_result
from armid.notes import Note
from armid.validation.metrics import JointMetrics
from armid.validation.residuals import ResidualAnalysis

FORMAT = "armid validation 1"
COVERAGE = 0.75  # least share of moving rows inside the 95 % interval of a sample: five times as many outside as stated


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What counts as a good prediction.

    A joint is good when its error while moving is at most a tenth of the torque's spread (computed torque then leaves
    the feedback a tenth of the work), or at most twice the noise (where torque is small, noise is all one can ask for;
    Swevers' Table 1 has ratios up to 2).

    Attributes:
        nrms_moving: largest rms error over the torque's standard deviation, moving.
        noise_ratio: largest rms error over the noise; a joint needs one of the two.
    """

    nrms_moving: float = 0.10
    noise_ratio: float = 2.0


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


@dataclass(frozen=True)
class ReferenceRow:
    """One parameter beside its reference.

    Attributes:
        name: of the parameter.
        value, sigma: estimate and its standard deviation.
        reference: what others say.
        accuracy: 100 (1 - |difference| / |reference|) [%], PA-10; NaN for a reference of zero.
        within_2_sigma: whether the reference lies within two standard deviations.
    """

    name: str
    value: float
    sigma: float
    reference: float
    accuracy: MaybeNaN
    within_2_sigma: bool


@dataclass(frozen=True, eq=False, repr=False)
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
        thresholds: by which it was judged.
        references: estimates beside reference values.
        series: the compared torques.
        pipeline: signal processing of the data.
        data_sha256: hashes of the data sets.
        sources: files of the data.
        fit_sha256: hashes of the data the fit was made from.
        options: of the command that made it.
        verdict: ``good``, ``usable`` (within the limits of `usable_for`) or ``poor``.
        usable_for: what a usable model is good for, in a few words each.
        reasons: for the verdict, the worst first.
        advice: what to change next.
    """

    robot: str
    joints: tuple[JointMetrics, ...]
    residuals: tuple[ResidualAnalysis, ...]
    relative_error: MaybeNaN
    relative_error_moving: MaybeNaN
    relative_error_raw: MaybeNaN
    same_as_training: bool
    thresholds: Thresholds
    references: tuple[ReferenceRow, ...]
    series: Series
    pipeline: tuple[Mapping[str, Any], ...] = ()
    data_sha256: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    fit_sha256: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    verdict: str = "poor"
    usable_for: tuple[str, ...] = ()
    reasons: tuple[Note, ...] = ()
    advice: tuple[Note, ...] = ()

    @property
    def moving(self) -> list[int]:
        """Joints that move and whose torque varies."""
        return [j for j, joint in enumerate(self.joints) if np.isfinite(joint.nrms_moving)]

    @property
    def failing(self) -> list[int]:
        """Joints whose error while moving misses both limits."""
        limits, joints = self.thresholds, self.joints
        above = [j for j in self.moving if joints[j].nrms_moving > limits.nrms_moving]
        return [j for j in above if not joints[j].noise_ratio <= limits.noise_ratio]

    @property
    def uncovered(self) -> list[int]:
        """Joints whose error leaves the stated interval of a sample too often."""
        return [j for j in self.moving if self.joints[j].coverage < COVERAGE]

    @property
    def bad(self) -> list[int]:
        """Joints whose torque is not predicted as it should be."""
        return sorted({*self.failing, *self.uncovered})

    @property
    def good(self) -> bool:
        """Whether nothing speaks against the model."""
        return self.verdict == "good"

    @property
    def in_words(self) -> str:
        """The verdict with what the model is usable for."""
        return f"usable for {', '.join(self.usable_for)}" if self.usable_for else self.verdict

    @property
    def within_2_sigma(self) -> tuple[int, int]:
        """How many references lie within two standard deviations of their estimate, and how many there are."""
        return sum(row.within_2_sigma for row in self.references), len(self.references)

    def summary(self) -> str:
        """A table and sentences for people."""
        head = f"{self.robot}: {self.in_words}; error {self.relative_error_moving:.2%} of the torque while moving"
        lines = [f"{head}, {self.relative_error:.2%} on all rows{_percent(', {} unfiltered', self.relative_error_raw)}"]
        lines += map(str, self.reasons)
        if self.same_as_training:
            lines.append("THESE ARE TRAINING DATA: the figures prove nothing about other motion.")
        rows = self._rows()
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        lines += ["  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
        if "nominal" in rows[0]:
            lines.append("nominal: NRMS moving of the file's own inertia with friction of the same training data")
        if self.references:
            inside, count = self.within_2_sigma
            good = [row.accuracy for row in self.references if np.isfinite(row.accuracy)]
            middle = f"; median accuracy {np.median(good):.1f} %" if good else ""
            lines.append(f"{inside} of {count} reference values lie within two standard deviations{middle}")
        return "\n".join([*lines, *map(str, self.advice)])

    def _rows(self) -> list[list[str]]:
        """The table of joints, its header first."""
        nominal = any(np.isfinite(joint.nominal_nrms_moving) for joint in self.joints)
        header = ["joint", "rms N m", "NRMS", "moving", "R2", "reversing N m", "at rest N m", "inside", "× noise"]
        header += ["nominal"] if nominal else []
        return [header, *(_row(joint, nominal) for joint in self.joints)]

    def __repr__(self) -> str:
        """One line."""
        error = f"error {self.relative_error_moving:.2%} of the torque while moving"
        return short(self, self.robot, self.in_words, error)

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = self._rows()
        return html_table(f"{self.robot}: {self.in_words}", rows[0], rows[1:], [*self.reasons, *self.advice])

    def plot(self) -> Any:
        """Measured and predicted torque of each joint, the error below the torque; a matplotlib figure."""
        from armid.figures import ROLES, Figure, torque_block

        first = self.series.dataset == 0
        time, measured, predicted = (getattr(self.series, key)[first] for key in ("time", "measured", "predicted"))
        blocks = [
            torque_block(joint.name, "N m", time, measured[:, j], predicted[:, j], corner=f"NRMS {joint.nrms:.1%}")
            for j, joint in enumerate(self.joints)
        ]
        legend = {role: ROLES[role] for role in ("measured", "predicted", "residual")}
        return Figure("torque", blocks, legend=legend, held_out=True).draw()

    def to_data(self) -> dict[str, Any]:
        """Everything, for JSON; ratios and errors are fractions."""
        return {**plain(self), "good": self.good, "within_2_sigma": list(self.within_2_sigma)}

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_result(path, FORMAT, self.to_data())


def load_validation(path: str | Path) -> Validation:
    """Read a validation that `Validation.save` wrote."""
    check = read_result(path, Validation, "a validation", FORMAT, "armid validate")
    names = [joint.name for joint in check.joints]
    rows = {getattr(check.series, field.name).shape[:1] for field in fields(Series)}
    shapes = {getattr(check.series, key).shape[1:] for key in ("velocity", "measured", "predicted", "sigma")}
    if [look.name for look in check.residuals] != names or len(rows) != 1 or () in rows or shapes != {(len(names),)}:
        raise ArmidError(f"{path}: its joints, residuals and series differ; write it again with armid validate")
    return check


def _percent(text: str, value: float) -> str:
    return text.format(f"{value:.2%}") if np.isfinite(value) else ""


def _row(joint: JointMetrics, nominal: bool) -> list[str]:
    cells = [joint.name, f"{joint.rms:.3g}", f"{joint.nrms:.1%}", f"{joint.nrms_moving:.1%}", f"{joint.r2:.4f}"]
    cells += [f"{joint.rms_reversals:.3g}", f"{joint.rms_standstill:.3g}"]
    cells += [f"{joint.coverage:.0%}", f"{joint.noise_ratio:.1f}"]
    cells += [f"{joint.nominal_nrms_moving:.1%}"] if nominal else []
    return ["–" if cell in ("nan", "nan%") else cell for cell in cells]
