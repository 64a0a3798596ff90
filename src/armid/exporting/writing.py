"""From a fit to files that other programs use, each proved before it is kept."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from armid._version import __version__
from armid.dynamics.model import Motion
from armid.errors import ArmidError, UnknownNameError
from armid.estimation.consistent.regularisation import HALF
from armid.estimation.fit import Fit
from armid.exporting.arm import Arm, ExportError, arm_of, fit_digest, random_states
from armid.exporting.c_source import c_header
from armid.exporting.friction import LinearFriction, linear_friction
from armid.exporting.holds import FORMATS, Lost, holds, left_out
from armid.exporting.mjcf import mjcf
from armid.exporting.mujoco_proof import prove_mjcf
from armid.exporting.proof import Proof, ProofError, prove_c, prove_python, prove_urdf, prove_yaml, relative_error
from armid.exporting.python_source import python_module
from armid.exporting.result import SIDECARS, Export, ExportedFile, Refused
from armid.exporting.urdf import new_urdf, patched, source_urdf
from armid.exporting.yaml_file import dh_table, robot_file
from armid.progress import report_progress

_log = logging.getLogger(__name__)
STATES = 200
_STAGE = ".export."
AGREEMENT, ROUNDED = 1e-7, 1e-2  # by which full and base parameters may differ: exact, and rounded angles


def export(
    fit: Fit,
    formats: Sequence[str],
    folder: str | Path,
    *,
    urdf: str | Path | None = None,
    seed: int = 0,
    states: int = STATES,
    history: Mapping[str, Any] | None = None,
) -> Export:
    """Write a fit in other programs' formats, prove each file, and say what it cannot hold.

    A file whose proof fails is not kept and stands under `Export.refused`; the others are written.

    Args:
        fit: the fit; URDF and MJCF need one with links that can exist (method ``feasible``).
        formats: some of `FORMATS`.
        folder: where to write; made if it is not there.
        urdf: the robot's own URDF, where it is not found at the place the fit names.
        seed: of the random states.
        states: how many of them.
        history: more about the origin, for the sidecar.

    Raises:
        ExportError: the fit or a name will not do; nothing was written.
        ProofError: no file gives the fit's torque; nothing was written.
    """
    wanted = tuple(dict.fromkeys(formats))
    for name in wanted:
        if name not in FORMATS:
            raise UnknownNameError("format", name, FORMATS)
    if not wanted:
        raise ExportError(f"no format is named; there are: {', '.join(FORMATS)}")
    arm = arm_of(fit, complete=bool({"urdf", "mjcf"} & set(wanted)))
    motion = random_states(arm.robot, states, seed)
    notes, agreement = _agreement(arm, motion)
    work = _Work(arm, motion, linear_friction(arm, seed), _banner(arm), source_urdf_or_none(arm, wanted, urdf))
    files = work.contents(wanted)
    target = Path(folder)
    _check_not_inputs(target, files, work.urdf)
    origin = {
        "fit_sha256": fit_digest(fit),
        "method": fit.method,
        "parameters": "links" if arm.complete else "base",
        "seed": seed,
        "states": states,
        "full_against_base_parameters": agreement,
        **(history or {}),
    }
    if work.urdf is not None:
        origin["urdf"] = str(work.urdf)
        origin["urdf_sha256"] = hashlib.sha256(work.urdf.read_bytes()).hexdigest()
    return _written(target, files, work, Export(arm.robot.name, target, (), notes, origin))


def source_urdf_or_none(arm: Arm, wanted: Sequence[str], given: str | Path | None) -> Path | None:
    """The URDF to complete, where a format asks for one."""
    needed = "urdf" in wanted or ("yaml" in wanted and dh_table(arm.robot) is None)
    return source_urdf(arm.robot, given) if needed or given is not None else None


@dataclass(frozen=True, eq=False)
class _Content:
    """Bytes to be written; `form` is empty for a file that only goes with another, which `needs` it."""

    form: str
    content: bytes
    notes: tuple[str, ...] = ()
    needs: str = ""


@dataclass(frozen=True, eq=False)
class _Work:
    """What all formats share."""

    arm: Arm
    motion: Motion
    friction: LinearFriction
    banner: list[str]
    urdf: Path | None

    def contents(self, wanted: Sequence[str]) -> dict[str, _Content]:
        """Files by name."""
        arm, name = self.arm, self.arm.identifier
        files: dict[str, _Content] = {}
        for form in wanted:
            if form == "urdf":
                files[self.urdf_name] = self._urdf("urdf")
            elif form == "mjcf":
                content, notes = mjcf(arm, self.friction, self.banner)
                files[f"{name}.xml"] = _Content(form, content, tuple(notes))
            elif form == "c":
                files[f"{name}_dynamics.h"] = _Content(form, c_header(arm, self.banner))
            elif form == "python":
                files[f"{name}_dynamics.py"] = _Content(form, python_module(arm, self.banner))
            else:
                files |= self._yaml(files)
        return files

    @property
    def urdf_name(self) -> str:
        return f"{self.arm.identifier}.urdf" if self.urdf is None else self.urdf.name

    def _urdf(self, form: str) -> _Content:
        arm = self.arm
        content, notes = (
            new_urdf(arm, self.friction, self.banner) if self.urdf is None else patched(arm, self.friction, self.urdf)
        )
        if not np.allclose(arm.robot.gravity, (0.0, 0.0, -9.81), rtol=0.0, atol=1e-12):
            vector = " ".join(f"{value:.6g}" for value in arm.robot.gravity)
            notes.append(f"A URDF does not say where down is: this arm's gravity is {vector} m/s^2 in the base frame.")
        return _Content(form, content, tuple(notes))

    def _yaml(self, others: Mapping[str, _Content]) -> dict[str, _Content]:
        arm, beside, notes = self.arm, {}, []
        table = dh_table(arm.robot)
        if table is None and self.urdf_name not in others:
            if arm.complete:
                beside = {self.urdf_name: self._urdf("")}
            elif self.urdf is not None:
                beside = {self.urdf_name: _Content("", self.urdf.read_bytes())}
            else:
                raise ExportError(
                    f"{arm.robot.name}: has neither a DH table nor a URDF that its robot file could name; make the fit "
                    "with `armid identify --method feasible`, so that a URDF can be written"
                )
            notes.append(f"Its kinematics are those of {self.urdf_name}, which goes with it.")
        text = robot_file(
            arm,
            self.friction,
            self.banner,
            None if table is not None else self.urdf_name,
            in_joint_frames=table is None and self.urdf is None,
        )
        needs = "" if table is not None else self.urdf_name
        return {**beside, f"{arm.identifier}.yaml": _Content("yaml", text, tuple(notes), needs)}

    def prove(self, path: Path, form: str, lost: Sequence[Lost]) -> Proof:
        """Compare a file with the fit, less what it cannot hold."""
        try:
            return self._proved(path, form, lost)
        except ProofError:
            raise
        except (ArmidError, ValueError, RuntimeError, ArithmeticError, LookupError) as error:
            words = f"{type(error).__name__}: {error}".replace(f"{path.parent}/", "")
            raise ProofError(
                f"{path.name}: was not kept, because it cannot be used ({words}); please report this"
            ) from None

    def _proved(self, path: Path, form: str, lost: Sequence[Lost]) -> Proof:
        arm, motion = self.arm, self.motion
        torque = arm.torque(motion) - sum(row.torque for row in lost if row.torque is not None)
        if form == "urdf":
            return prove_urdf(path, arm, motion, torque, self._sizes)
        if form == "mjcf":
            return prove_mjcf(path, arm, motion, torque, self._sizes)
        if form == "yaml":
            return prove_yaml(path, motion, torque, self._sizes)
        every = self._every(torque)
        if form == "c":
            return prove_c(path, arm, motion, every, self._sizes)
        return prove_python(path, motion, every, self._sizes)

    @cached_property
    def _sizes(self) -> dict[str, Any]:
        return self.arm.sizes(self.motion)

    def _every(self, torque: Any) -> dict[str, Any]:
        """What a program must give, by armid's own dynamics."""
        arm, motion = self.arm, self.motion
        parts = arm.parts(motion)
        zero = np.zeros_like(motion.q)
        friction = ("friction", "friction of coupled motors", "offset", "load-proportional loss")
        return {
            "torque": torque,
            "gravity": arm.model.gravity_torque(motion.q, arm.values),
            "friction": sum((parts.get(cause, zero) for cause in friction), zero),
            "springs": parts.get("springs", zero) + parts.get("counterbalance", zero),
            "mass matrix": arm.model.mass_matrix(motion.q, arm.values).reshape(len(motion.q), -1),
        }


def _written(target: Path, files: Mapping[str, _Content], work: _Work, empty: Export) -> Export:
    """Write to a folder of its own inside `target`, prove, then move what is proved; on any failure nothing stays."""
    made = not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        for left in target.glob(f"{_STAGE}*"):  # by an export that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=_STAGE) as place:
            stage = Path(place)
            for name, file in files.items():
                (stage / name).write_bytes(file.content)
            done, refused = _proved(stage, files, work)
            result = replace(empty, files=done, refused=refused)
            result.save(stage)
            kept = [file.name for file in done]
            beside = [name for name in dict.fromkeys(files[name].needs for name in kept) if name and name not in kept]
            for name in SIDECARS:  # a sidecar always belongs to the files beside it, whenever this is interrupted
                (target / name).unlink(missing_ok=True)
            for name in (*kept, *beside, *reversed(SIDECARS)):
                (stage / name).replace(target / name)
    except BaseException as error:
        if made and target.is_dir() and not any(target.iterdir()):
            target.rmdir()
        if isinstance(error, OSError):
            raise ExportError(f"{target}: cannot be written ({error.strerror or error})") from None
        raise
    return result


def _proved(
    stage: Path, files: Mapping[str, _Content], work: _Work
) -> tuple[tuple[ExportedFile, ...], tuple[Refused, ...]]:
    """Files that give the fit's torque, and those that do not; raises where none does."""
    done: list[ExportedFile] = []
    refused: list[Refused] = []
    first: ProofError | None = None
    for name, file in sorted(files.items(), key=lambda item: bool(item[1].needs)):  # what is needed goes first
        if not file.form:
            continue
        if file.needs in [other.name for other in refused]:
            refused.append(Refused(name, file.form, f"{name}: was not kept, because it names {file.needs}"))
            continue
        report_progress(f"proving {name}", (len(done) + len(refused)) / len(files))
        lost = left_out(work.arm, file.form, work.friction, work.motion)
        try:
            proof = work.prove(stage / name, file.form, lost)
        except ProofError as error:
            first = first or error
            refused.append(Refused(name, file.form, str(error)))
            continue
        digest = hashlib.sha256(file.content).hexdigest()
        done.append(ExportedFile(name, file.form, digest, proof, tuple(lost), file.notes, holds(work.arm, file.form)))
    if first is not None and not done:
        raise first
    for other in refused:
        _log.warning("%s", other.reason)
    order = list(files)
    done.sort(key=lambda file: order.index(file.name))
    return tuple(done), tuple(refused)


def _check_not_inputs(target: Path, files: Mapping[str, _Content], urdf: Path | None) -> None:
    for name in files:
        if urdf is not None and (target / name).resolve() == urdf.resolve():
            raise ExportError(
                f"{target / name}: is the URDF that is read, so it cannot be written too; name another -o"
            )
        if (target / name).is_dir():
            raise ExportError(f"{target / name}: is a folder; move it, or name another -o")


def _agreement(arm: Arm, motion: Motion) -> tuple[tuple[str, ...], float]:
    """How the full parameters agree with what the fit predicts; words where that needs any."""
    error = relative_error(arm.torque(motion), arm.fit.predict(motion, sigma=False).torque)
    rounded = arm.robot.nominal_joints is not None
    if error > (ROUNDED if rounded else AGREEMENT):
        raise ExportError(
            f"the links of the fit of {arm.robot.name} give another torque than its base parameters (by {error:.2g} of "
            "its range); make the fit anew"
        )
    notes = []
    if error > 1e-9:
        why = ", because the description's angles are rounded" if rounded else ""
        notes.append(
            f"Links and base parameters of the fit differ by {error:.1e} of the range of torque{why}; "
            "the links are written."
        )
    if not arm.complete:
        notes.append(
            "The fit has base parameters only: torques are those of the fit, but masses and inertias in these files "
            "are no single links' (`armid identify --method feasible` gives links)."
        )
    elif masses := _masses(arm):
        notes.append(masses)
    return tuple(notes), error


def _masses(arm: Arm) -> str:
    """Which links' masses the data decide, in a sentence; nothing where the fit does not tell."""
    shares = arm.fit.options.get("data_share")
    if not isinstance(shares, Mapping):
        return ""
    links = [(number, joint.link_name) for number, joint in enumerate(arm.robot.joints, start=1)]
    measured = [name for number, name in links if float(shares.get(f"m{number}") or 0.0) >= HALF]
    choice = "one possible choice that agrees with what the data tell of combinations"
    if not measured:
        return f"No link's mass is decided by the data: the masses in these files are {choice}."
    if len(measured) == len(links):
        return "The mass of every link is decided by the data."
    verb = "mass is" if len(measured) == 1 else "masses are"
    return f"Only of {', '.join(measured)} the {verb} decided by the data: the other masses are {choice}."


def _banner(arm: Arm) -> list[str]:
    lines = [
        f"Dynamics of {arm.robot.name}, identified by armid {__version__} (method {arm.fit.method}).",
        f"Joints: {', '.join(arm.robot.joint_names)}.",
        f"Fit: SHA-256 {fit_digest(arm.fit)}.",
        "Written and checked by `armid export`; EXPORT.md beside it says how, and what is left out.",
    ]
    if not arm.complete:
        lines.append("Base parameters with zeros in place of the others: torques are right, single links mean nothing.")
    return [line.replace("*/", "* /") for line in lines]
