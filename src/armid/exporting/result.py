"""What an export wrote, how it was proved, and what is left out: the sidecar beside the files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from armid._version import __version__
from armid.exporting.exporter import LeftOut
from armid.exporting.proof import Proof
from armid.files import write_text

FORMAT = "armid export 1"
SIDECARS = ("EXPORT.json", "EXPORT.md")


@dataclass(frozen=True, eq=False)
class ExportedFile:
    """One written file.

    Attributes:
        name: without folder.
        form: one of `exporters`.
        sha256: of its bytes.
        proof: its comparison with the fit.
        lost: what it cannot hold.
        notes: what else to know, in sentences.
        holds: what it holds, in words.
    """

    name: str
    form: str
    sha256: str
    proof: Proof
    lost: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    holds: str

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "file": self.name,
            "format": self.form,
            "sha256": self.sha256,
            "holds": self.holds,
            "cannot_hold": [row.to_data() for row in self.lost],
            "proof": self.proof.to_data(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Refused:
    """A file that was not kept: its name, its format, and why, in a sentence."""

    name: str
    form: str
    reason: str

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {"file": self.name, "format": self.form, "reason": self.reason}


@dataclass(frozen=True, eq=False)
class Export:
    """What was written.

    Attributes:
        robot: name of the robot.
        folder: where it was written.
        files: the files.
        notes: what concerns all of them.
        history: version, hashes, seed, and how the fit's base and full parameters agree.
        refused: what was not kept, because its proof failed.
    """

    robot: str
    folder: Path
    files: tuple[ExportedFile, ...]
    notes: tuple[str, ...] = ()
    history: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()

    def summary(self) -> str:
        """For people; also the text of EXPORT.md."""
        lines = [f"# {self.robot}: exported", "", *self.notes, *([""] if self.notes else [])]
        for file in self.files:
            lines += [f"## {file.name}", "", f"Holds {file.holds}.", "", _proof_sentence(file.proof), ""]
            if file.lost:
                lines += ["Cannot hold:", "", *(f"- {row.sentence()}" for row in file.lost), ""]
            lines += [line for note in file.notes for line in (note, "")]
        if self.refused:
            old = "Any file of that name here is from an earlier export."
            lines += ["## Not kept", "", *(f"- {file.reason}. {old}" for file in self.refused)]
        return "\n".join(lines).rstrip()

    def to_data(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "format": FORMAT,
            "armid": __version__,
            "robot": self.robot,
            "files": [file.to_data() for file in self.files],
            "refused": [file.to_data() for file in self.refused],
            "notes": list(self.notes),
            "history": dict(self.history),
        }

    def save(self, folder: str | Path) -> None:
        """Write EXPORT.json and EXPORT.md into a folder."""
        write_text(Path(folder) / "EXPORT.json", json.dumps(self.to_data(), indent=1, ensure_ascii=False) + "\n")
        write_text(Path(folder) / "EXPORT.md", self.summary() + "\n")


def _proof_sentence(proof: Proof) -> str:
    if proof.error is None:
        return f"{proof.note[0].upper()}{proof.note[1:]}."
    return (
        f"Proved with {proof.against} on {proof.states} random states ({proof.note}): differs from the fit by at most "
        f"{proof.error:.1e} of the range of torque ({proof.tolerance:.2g} allowed)."
    )
