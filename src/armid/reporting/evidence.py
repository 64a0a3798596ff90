"""What a report is made from, and how it is collected from the folder of a run."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from armid.errors import ArmidError
from armid.estimation.estimator import fingerprint
from armid.estimation.fit import Fit, load_fit
from armid.excitation.plan import Plan, load_plan
from armid.exporting.arm import fit_digest
from armid.files import checked, file_hash, parse_json, read_text
from armid.logs.files import read_copy
from armid.logs.log import Log
from armid.robot.parts import Friction
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.signals.pipeline import Pipeline, process
from armid.validation.judging import judge
from armid.validation.result import ReferenceRow, Validation, load_validation
from armid.validation.validating import against_reference

_log = logging.getLogger(__name__)
LOG_SUFFIXES = (".parquet", ".csv", ".mcap")
_EXTRAS = ("warmup", "audit", "payload", "tracking", "inspection")


@dataclass(frozen=True)
class StatedTruth:
    """Parameters of a virtual arm by name, and each joint's friction: law and coefficients."""

    parameters: Mapping[str, float]
    friction: tuple[tuple[Friction, Mapping[str, float]], ...]


@dataclass(frozen=True)
class Found:
    """A finding of the log doctor."""

    severity: str = ""
    code: str = ""
    joint: str | None = None
    what: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Examined:
    """What the log doctor says of a log."""

    findings: tuple[Found, ...] = ()


@dataclass(frozen=True)
class Inspection:
    """What is read of inspection.json: each log by its name."""

    logs: dict[str, Examined]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything a report can show; only the fit is needed.

    Attributes:
        fit: the identified model.
        check: its validation on other data.
        plan: the trajectory that was designed.
        logs: what was recorded, for training or validation.
        warmup, audit, payload, tracking: results of those commands, as data.
        inspection: what the log doctor says of each log, by its name under ``logs``.
        exports: what was written for other programs, one mapping per file.
        files: where it was read from.
        fit_file_sha256: hash of the fit's file; empty where it has none.
        left_out: results that were found but belong to another fit, in sentences.
    """

    fit: Fit
    check: Validation | None = None
    plan: Plan | None = None
    logs: tuple[Log, ...] = ()
    warmup: Mapping[str, Any] | None = None
    audit: Mapping[str, Any] | None = None
    payload: Mapping[str, Any] | None = None
    tracking: Mapping[str, Any] | None = None
    inspection: Mapping[str, Any] | None = None
    exports: tuple[Mapping[str, Any], ...] = ()
    files: tuple[str, ...] = ()
    fit_file_sha256: str = ""
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse parts of another robot or fit; a validation on training data is called what it is."""
        names = self.fit.robot.joint_names
        if self.check is not None and tuple(joint.name for joint in self.check.joints) != names:
            raise ArmidError(_other("validation", [joint.name for joint in self.check.joints], self.fit))
        if self.plan is not None and tuple(self.plan.joint_names) != names:
            raise ArmidError(_other("plan", self.plan.joint_names, self.fit))
        if self.check is not None:
            _refuse_other_fit(self.check, self.fit, self.fit_file_sha256)
            if not self.check.same_as_training and _on_training_data(self.check, self.fit):
                object.__setattr__(self, "check", judge(self.fit, replace(self.check, same_as_training=True)))

    @cached_property
    def virtual(self) -> bool:
        """Whether training data were simulated."""
        return any(entry.get("made_by") in ("virtual robot", "armid fleet simulate") for entry in self.origins)

    @cached_property
    def truth(self) -> StatedTruth | None:
        """What the virtual robot states of itself, where it recorded all training data; None else."""
        stated = [entry.get("truth") for entry in self.origins]
        same = bool(stated) and isinstance(stated[0], Mapping) and all(one == stated[0] for one in stated)
        return checked(stated[0], StatedTruth, "the fit's history") if same else None

    @cached_property
    def beside_truth(self) -> tuple[ReferenceRow, ...]:
        """Estimates beside the true values of a virtual arm; empty where they are not known."""
        if self.truth is None:
            return ()
        known = set(self.fit.torque_model.model.names)
        return against_reference(self.fit, {n: v for n, v in self.truth.parameters.items() if n in known})

    @property
    def origins(self) -> list[Mapping[str, Any]]:
        """Where the training data come from, as the fit notes it."""
        data = self.fit.history.get("data") or ()
        return [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, Sequence) else []

    @cached_property
    def datasets(self) -> tuple[tuple[Log, Dataset], ...]:
        """Logs with their processed data, by the pipeline of the validation or of the fit."""
        found = ((log, self._process(log)) for log in self.logs)
        return tuple((log, data) for log, data in found if data is not None)

    @cached_property
    def held_out(self) -> tuple[Dataset, ...] | None:
        """The data that the validation was made from, in its order; None if they are not all there."""
        if self.check is None:
            return None
        found = {fingerprint(data): data for _, data in self.datasets}
        wanted = self.check.data_sha256
        return tuple(found[key] for key in wanted) if wanted and all(key in found for key in wanted) else None

    @cached_property
    def training(self) -> tuple[tuple[Log, Dataset], ...]:
        """Logs that the fit was made from; all there are if none is known to be."""
        known = set(self.fit.history.get("data_sha256", ()))
        mine = tuple((log, data) for log, data in self.datasets if fingerprint(data) in known)
        return mine or self.datasets

    def _process(self, log: Log) -> Dataset | None:
        known = {*self.fit.history.get("data_sha256", ()), *(() if self.check is None else self.check.data_sha256)}
        pipelines = [self.fit.pipeline, *(() if self.check is None else (self.check.pipeline,))]
        first = None
        for steps in pipelines:
            try:
                data = process(log, Pipeline.from_data(steps) if steps else None, robot=self.fit.robot)
            except ArmidError as error:
                _log.info("%s: %s", log.info.source, error)
                continue
            if fingerprint(data) in known:
                return data
            first = data if first is None else first
        if first is None:
            _log.warning("%s: cannot be processed as the fit's data were; it is left out", log.info.source)
        return first


def gather(folder: str | Path, read: Mapping[str, Log] | None = None) -> Evidence:
    """Collect what is in the folder of a run: plan.json, fit.json, validation.json, logs, and further results.

    Args:
        folder: of the run.
        read: logs of the folder that were read already, by file name.

    Raises:
        ArmidError: there is no fit.json in it, or a file is damaged.
    """
    home = Path(folder)
    if not home.is_dir():
        raise ArmidError(f"{folder}: is no folder; give the folder of a run, or a fit")
    if not (home / "fit.json").is_file():
        raise ArmidError(f"{folder}: holds no fit.json; give a folder that armid run has written, or a fit")
    fit = load_fit(home / "fit.json")
    files = ["fit.json"]

    def there(name: str) -> Path | None:
        path = home / name
        if not path.is_file():
            return None
        files.append(name)
        return path

    check, plan = there("validation.json"), there("plan.json")
    extras = {name: load_mapping(path) for name in _EXTRAS if (path := there(f"{name}.json")) is not None}
    logs = {path.name: (read or {}).get(path.name) or read_copy(path) for path in _logs_in(home)}
    files += logs
    own, left_out = file_hash(home / "fit.json"), []
    if extras.get("tracking") and own not in file_hashes(extras["tracking"]).values():
        del extras["tracking"]
        files.remove("tracking.json")
        left_out.append("tracking.json is of another fit and is not shown: repeat armid track.")
    exports, stale = exports_in(home / "exports", fit)
    return Evidence(
        fit=fit,
        check=None if check is None else load_validation(check),
        plan=None if plan is None else load_plan(plan),
        logs=tuple(logs.values()),
        exports=tuple(exports),
        files=tuple(files),
        fit_file_sha256=own,
        left_out=(*left_out, *stale),
        **extras,
    )


def _logs_in(home: Path) -> Iterator[Path]:
    """Logs for training and validation: NAME.parquet, NAME-2.parquet and so on, or .csv, .mcap."""
    for stem in ("training", "validation"):
        for number in range(1, 1000):
            names = [f"{stem}{'' if number == 1 else f'-{number}'}{end}" for end in LOG_SUFFIXES]
            path = next((home / name for name in names if (home / name).is_file()), None)
            if path is None:
                break
            yield path


def exports_in(folder: Path, fit: Fit) -> tuple[list[dict[str, Any]], list[str]]:
    """What EXPORT.json in a folder says of its files, where they were made from this fit; else why they are not shown.

    Files without this sidecar are of unknown origin: an interrupted export leaves such.
    """
    sidecar = folder / "EXPORT.json"
    if not sidecar.is_file():
        return [], []
    data = load_mapping(sidecar)
    history = data.get("history")
    if not isinstance(history, Mapping) or history.get("fit_sha256") != fit_digest(fit):
        return [], ["The files in exports are of another fit and are not shown: repeat armid export."]
    lists = [data.get(name) for name in ("files", "refused")]
    return [dict(entry) for part in lists if isinstance(part, list) for entry in part if isinstance(entry, Mapping)], []


def file_hashes(result: Mapping[str, Any]) -> dict[str, str]:
    """Hashes of the files that a result was made from, by name, as commands note them among its options."""
    options = result.get("options")
    found = options.get("files_sha256") if isinstance(options, Mapping) else None
    return {str(name): str(digest) for name, digest in found.items()} if isinstance(found, Mapping) else {}


def _refuse_other_fit(check: Validation, fit: Fit, own: str) -> None:
    """Raise where a validation was made with another fit: from other data, or from the same data in another way."""
    again = "validate this fit (armid validate) and give that"
    trained = tuple(fit.history.get("data_sha256", ()))
    if tuple(check.fit_sha256) != trained:
        one, two = (", ".join(digest[:12] for digest in found) or "none" for found in (check.fit_sha256, trained))
        raise ArmidError(f"the validation is of a fit from other data (SHA-256 {one}; this fit's: {two}); {again}")
    hashes = file_hashes({"options": check.options})
    stated = hashes.get(str(check.options.get("fit", "fit.json")))
    if own and stated and stated != own:
        raise ArmidError(
            f"the validation is of another fit from the same data (its file has SHA-256 {stated[:12]}, this one "
            f"{own[:12]}); {again}"
        )


def _on_training_data(check: Validation, fit: Fit) -> bool:
    """Whether a validation used data, or files, that the fit was made from."""
    known = fit.history.get("files_sha256")
    files = set(known.values()) if isinstance(known, Mapping) else set()
    same = files & set(file_hashes({"options": check.options}).values())
    if any({"rows", "seconds"} & set(data) for data in fit.history.get("data", ())):
        same = set()  # parts of files: `validate` has compared them
    return bool(same or set(check.data_sha256) & set(fit.history.get("data_sha256", ())))


def load_mapping(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        data = parse_json(read_text(path))
    except ValueError as error:
        raise ArmidError(f"{path}: is not JSON ({error}); repeat the command that wrote it") from None
    if not isinstance(data, dict):
        raise ArmidError(f"{path}: holds no JSON object; repeat the command that wrote it")
    return data


def _other(what: str, joints: Sequence[str], fit: Fit) -> str:
    return (
        f"the {what} is of the joints {', '.join(joints)}; the fit is of {', '.join(fit.robot.joint_names)}: "
        "give those of one robot"
    )


def units_of(robot: Robot, joint: int) -> tuple[str, str]:
    """Units of a joint's torque and speed: those of a force and a line where it slides."""
    return ("N", "m/s") if robot.joints[joint].prismatic else ("N m", "rad/s")


def reach_of(robot: Robot) -> float:
    """How far an arm can reach at most: the sum of the distances between neighbouring frames [m]."""
    parts = [np.linalg.norm(j.placement[:3, 3]) + np.linalg.norm(j.link_frame[:3, 3]) for j in robot.links]
    return float(sum(parts) + np.linalg.norm(robot.tool[:3, 3])) or 1.0
