"""From a fit to files that other programs use, each proved before it is kept; a sidecar says how, and what is lost."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from armid._version import __version__
from armid.display import short
from armid.dynamics.model import Motion
from armid.errors import ArmidError, DescriptionError
from armid.escaping import comment, comments, markdown
from armid.estimation.fit import Fit
from armid.exporting.arm import ExportError, IdentifiedArm, arm_of, fit_digest, linear_friction, random_states
from armid.exporting.exporter import (
    Content,
    Exporter,
    Job,
    LeftOut,
    Program,
    Proof,
    ProofError,
    exporters,
    left_out,
    relative_error,
)
from armid.exporting.own_file import READERS, own_file
from armid.files import file_hash, plain, write_result, write_text
from armid.monitoring.detector import ContactLimits, Detector
from armid.notes import Note, note
from armid.progress import report_progress

_log = logging.getLogger(__name__)
STATES = 200
_STAGE = ".export."
AGREEMENT, ROUNDED = 1e-7, 1e-2  # by which full and base parameters may differ: exact, and rounded angles
FORMAT = "armid export 1"
SIDECARS = ("EXPORT.json", "EXPORT.md")


@dataclass(frozen=True, eq=False)
class ExportedFile:
    """One written file.

    Attributes:
        file: its name.
        format: one of `exporters`.
        sha256: of its bytes.
        holds: what it holds, in words.
        cannot_hold: what it cannot.
        proof: its comparison with the fit.
        notes: what else to know.
        beside: files that were written because it needs them, such as those that an MJCF includes.
    """

    file: str
    format: str
    sha256: str
    holds: str
    cannot_hold: tuple[LeftOut, ...]
    proof: Proof
    notes: tuple[Note, ...]
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A file that was not kept: its name, its format, and why, in a sentence."""

    file: str
    format: str
    reason: str


@dataclass(frozen=True, eq=False)
class Export:
    """What was written.

    Attributes:
        robot: name of the robot.
        folder: where it was written.
        files: the files.
        refused: what was not kept, because its proof failed.
        notes: what concerns all of them.
        history: version, hashes, seed, and how the fit's base and full parameters agree.
    """

    robot: str
    folder: Path = field(repr=False)
    files: tuple[ExportedFile, ...] = ()
    refused: tuple[Refused, ...] = ()
    notes: tuple[Note, ...] = ()
    history: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all files, those beside others included."""
        return tuple(dict.fromkeys(name for file in self.files for name in (file.file, *file.beside)))

    def __repr__(self) -> str:
        return short(
            self, self.robot, *(file.file for file in self.files), *(f"not {one.file}" for one in self.refused)
        )

    def summary(self) -> str:
        """For people; also the text of EXPORT.md."""
        lines = [f"# {markdown(self.robot)}: exported", "", *map(_said, self.notes), *([""] if self.notes else [])]
        for file in self.files:
            lines += [f"## {markdown(file.file)}", "", f"Holds {file.holds}.", "", _proof_sentence(file.proof), ""]
            if file.beside:
                lines += [f"Needs, and came with: {', '.join(map(markdown, file.beside))}.", ""]
            if file.cannot_hold:
                lines += ["Cannot hold:", "", *(f"- {markdown(row.sentence())}" for row in file.cannot_hold), ""]
            lines += [line for note in file.notes for line in (_said(note), "")]
        if self.refused:
            old = "Any file of that name here is from an earlier export."
            lines += ["## Not kept", "", *(f"- {markdown(file.reason)}. {old}" for file in self.refused)]
        return "\n".join(lines).rstrip()

    def to_data(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {"format": FORMAT, "armid": __version__, **plain(self)}

    def save(self, folder: str | Path) -> None:
        """Write EXPORT.json and EXPORT.md into a folder."""
        write_result(Path(folder) / "EXPORT.json", FORMAT, plain(self))
        write_text(Path(folder) / "EXPORT.md", self.summary() + "\n")


def _said(said: Note) -> str:
    return markdown(str(said))


def _proof_sentence(proof: Proof) -> str:
    if proof.error is None:
        return f"{proof.note[0].upper()}{proof.note[1:]}."
    return (
        f"Proved with {proof.against} on {proof.states} random states ({proof.note}): differs from the fit by at most "
        f"{proof.error:.1e} of the range of torque ({proof.tolerance:.2g} allowed)."
    )


def export(
    fit: Fit,
    formats: Sequence[str],
    folder: str | Path,
    *,
    urdf: str | Path | None = None,
    mjcf: str | Path | None = None,
    limits: ContactLimits | None = None,
    seed: int = 0,
    states: int = STATES,
    history: Mapping[str, Any] | None = None,
) -> Export:
    """Write a fit in other programs' formats, prove each file, and say what it cannot hold.

    A file whose proof fails is not kept and stands under `Export.refused`; the others are written.

    Args:
        fit: the fit; URDF and MJCF need one that is physically consistent (method ``feasible``).
        formats: names of `exporters`.
        folder: where to write; made if it is not there.
        urdf: the robot's own URDF, where it is not found at the place the fit names.
        mjcf: the robot's own MJCF, in the same way.
        limits: of contacts, as `observe` calibrates them, for the detector of programs (``c``, ``python``).
        seed: of the random states.
        states: how many of them.
        history: more about the origin, for the sidecar.

    Raises:
        ExportError: the fit or a name will not do; nothing was written.
        ProofError: no file gives the fit's torque; nothing was written.
    """
    wanted = tuple(dict.fromkeys(formats))
    chosen = {name: exporters[name]() for name in wanted}
    if not wanted:
        raise ExportError(f"no format is named; there are: {', '.join(exporters)}")
    arm = arm_of(fit, complete=any(exporter.links for exporter in chosen.values()))
    motion = random_states(arm.robot, states, seed)
    notes, agreement = _agreement(arm, motion)
    given = {"urdf": urdf, "mjcf": mjcf}
    reads = [kind for kind in READERS if given[kind] is not None] + [form.reads(arm.robot) for form in chosen.values()]
    own = {kind: own_file(arm.robot, kind, given[kind]) for kind in READERS if kind in reads}
    if own.get("urdf") is None or wanted != ("urdf",):
        arm.robot.refuse_undriven("this arm is exported only to urdf, by completing its own file", passive=False)
    if limits is not None:
        if not any(isinstance(form, Program) for form in chosen.values()):
            raise ExportError(f"{', '.join(wanted)}: cannot hold limits of contacts; export to c or python as well")
        Detector(fit, limits)  # refuses those of another arm
    job = Job(arm, motion, linear_friction(arm, seed), _banner(arm), **own, formats=wanted, limits=limits)
    files = [_File(name, form, content) for form in wanted for name, content in chosen[form].files(job).items()]
    target = Path(folder)
    _check_not_inputs(target, [file.name for file in files], own)
    origin = {
        "fit_sha256": fit_digest(fit),
        "method": fit.method,
        "parameters": "links" if arm.complete else "base",
        "seed": seed,
        "states": states,
        "full_against_base_parameters": agreement,
        **(history or {}),
    }
    for kind, source in own.items():
        if source is not None:
            origin |= {kind: str(source), f"{kind}_sha256": file_hash(source)}
    return _written(target, files, job, Export(arm.robot.name, target, notes=notes, history=origin))


class _File(NamedTuple):
    """A file to be written, and the format that it belongs to."""

    name: str
    form: str
    content: Content


def _prove(exporter: Exporter, path: Path, job: Job, lost: Sequence[LeftOut]) -> Proof:
    """Compare a file with the fit, less what it cannot hold."""
    torque = job.torque - sum(row.torque for row in lost if row.torque is not None)
    try:
        return exporter.prove(path, job, torque)
    except ProofError:
        raise
    except DescriptionError as error:
        raise ProofError(f"{path.name}: was not kept: {error}") from None
    except (ArmidError, ValueError, RuntimeError, ArithmeticError, LookupError) as error:
        words = f"{type(error).__name__}: {error}".replace(f"{path.parent}/", "")
        raise ProofError(
            f"{path.name}: was not kept, because it cannot be used ({words}); please report this"
        ) from None


def _written(target: Path, files: Sequence[_File], job: Job, empty: Export) -> Export:
    """Write to a folder of its own inside `target`, prove, then move what is proved; on any failure nothing stays."""
    made = not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        for left in target.glob(f"{_STAGE}*"):  # by an export that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=target, prefix=_STAGE) as place:
            stage = Path(place)
            for file in files:
                (stage / file.name).parent.mkdir(parents=True, exist_ok=True)
                (stage / file.name).write_bytes(file.content.content)
            done, refused = _proved(stage, files, job)
            result = replace(empty, files=done, refused=refused)
            result.save(stage)
            for name in SIDECARS:  # a sidecar always belongs to the files beside it, whenever this is interrupted
                (target / name).unlink(missing_ok=True)
            for name in (*result.names, *reversed(SIDECARS)):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (stage / name).replace(target / name)
    except BaseException as error:
        if made and target.is_dir() and not any(target.iterdir()):
            target.rmdir()
        if isinstance(error, OSError):
            raise ExportError(f"{target}: cannot be written ({error.strerror or error})") from None
        raise
    return result


def _proved(stage: Path, files: Sequence[_File], job: Job) -> tuple[tuple[ExportedFile, ...], tuple[Refused, ...]]:
    """Files that give the fit's torque, and those that do not; raises where none does."""
    done: list[ExportedFile] = []
    refused: list[Refused] = []
    first: ProofError | None = None
    for name, form, made in sorted(files, key=lambda file: bool(file.content.needs)):  # what is needed goes first
        if not made.proved:
            continue
        missing = [other.file for other in refused if other.file in made.needs]
        if missing:
            refused.append(Refused(name, form, f"{name}: was not kept, because it names {missing[0]}"))
            continue
        report_progress(f"proving {name}", (len(done) + len(refused)) / len(files))
        exporter = exporters[form]()
        lost = left_out(exporter, job)
        try:
            proof = _prove(exporter, stage / name, job, lost)
        except ProofError as error:
            first = first or error
            refused.append(Refused(name, form, str(error)))
            continue
        digest = hashlib.sha256(made.content).hexdigest()
        beside = tuple(other.name for other in files if other.name in made.needs and not other.content.proved)
        detector = "" if job.limits is None or not isinstance(exporter, Program) else "; detector of contacts"
        about = exporter.holds(job.arm) + detector, tuple(lost), proof, made.notes, beside
        done.append(ExportedFile(name, form, digest, *about))
    if first is not None and not done:
        raise first
    for other in refused:
        _log.warning("%s", other.reason)
    order = [file.name for file in files]
    done.sort(key=lambda file: order.index(file.file))
    return tuple(done), tuple(refused)


def _check_not_inputs(target: Path, names: Sequence[str], own: Mapping[str, Path | None]) -> None:
    for name in names:
        for kind, path in own.items():
            if path is not None and (target / name).resolve() == path.resolve():
                raise ExportError(
                    f"{target / name}: is the {kind.upper()} that is read, so it cannot be written too; name another -o"
                )
        if (target / name).is_dir():
            raise ExportError(f"{target / name}: is a folder; move it, or name another -o")


def _agreement(arm: IdentifiedArm, motion: Motion) -> tuple[tuple[Note, ...], float]:
    """How the full parameters agree with what the fit predicts, and what is to know of that and of the masses."""
    error = relative_error(arm.torque(motion), arm.fit.predict(motion, sigma=False).torque)
    rounded = arm.robot.nominal_joints is not None
    if error > (ROUNDED if rounded else AGREEMENT):
        raise ExportError(
            f"the links of the fit of {arm.robot.name} give another torque than its base parameters (by {error:.2g} of "
            "its range); identify again"
        )
    notes = [note("exporting.agreement", error=error, rounded=rounded)] if error > 1e-9 else []
    if not arm.complete:
        notes.append(note("exporting.base_only"))
    else:
        measured = [joint.link_name for k, joint in enumerate(arm.robot.joints, 1) if f"m{k}" in arm.fit.determined]
        notes.append(note("exporting.masses", determined=measured, links=arm.robot.n_joints))
    return tuple(notes), error


def _banner(arm: IdentifiedArm) -> list[str]:
    lines = [
        f"Dynamics of {comment(arm.robot.name)}, identified by armid {__version__} (method {comment(arm.fit.method)}).",
        f"Joints: {comments(arm.robot.joint_names)}.",
        f"Fit: SHA-256 {fit_digest(arm.fit)}.",
        "Written and checked by `armid export`; EXPORT.md beside it says how, and what is left out.",
    ]
    if not arm.complete:
        lines.append("Base parameters with zeros in place of the others: torques are right, single links mean nothing.")
    return lines
