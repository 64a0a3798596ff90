"""Exports: files for other programs, how each was proved, and what it cannot hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from armid.reporting.evidence import Evidence
from armid.reporting.html import Cell, Column, Row, table
from armid.reporting.numbers import listed, short
from armid.reporting.section import Section

TITLE = "Exports"


def exports(evidence: Evidence) -> Section | None:
    """A row per file."""
    if not evidence.exports:
        return None
    columns = [
        Column("file", words=True),
        Column("format", words=True),
        Column("differs by", "of the torque's range", "largest difference from the fit on random states"),
        Column("proved with", words=True),
        Column("cannot hold", words=True),
    ]
    body = table(columns, [_row(entry) for entry in evidence.exports], caption="exported files")
    return Section("exports", TITLE, _sentence(evidence.exports), body)


def _sentence(entries: tuple[Mapping[str, Any], ...]) -> str:
    kept = [entry for entry in entries if "reason" not in entry]
    if not kept:
        return "No file was written: none gave the fit’s torque when read back."
    names = listed([str(entry.get("format") or entry.get("file") or "?") for entry in kept])
    errors = [float(error) for entry in kept if (error := _proof(entry).get("error")) is not None]
    start = f"The identified model was written for other programs as {names}"
    if not errors:
        return f"{start}; no proof of the files is recorded."
    proved = "every file" if len(errors) == len(kept) else f"{len(errors)} of {len(kept)} files"
    words = f"{start}; {proved} gave the fit’s torque when read back, to {short(max(errors), 2)} of its range"
    refused = listed([str(entry.get("file", "?")) for entry in entries if "reason" in entry])
    return f"{words}; {refused} did not and was not kept." if refused else f"{words}."


def _proof(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    proof = entry.get("proof")
    return proof if isinstance(proof, Mapping) else {}


def _row(entry: Mapping[str, Any]) -> Row:
    if "reason" in entry:
        name, form = Cell(str(entry.get("file", "?")), code=True), Cell(str(entry.get("format", "–")))
        return Row((name, form, Cell("–", float("nan")), Cell("not kept"), Cell(str(entry["reason"]))), "not kept")
    proof = _proof(entry)
    error = proof.get("error")
    lost = [str(row.get("what", "")) for row in entry.get("cannot_hold") or () if isinstance(row, Mapping)]
    cells = (
        Cell(str(entry.get("file", "?")), code=True),
        Cell(str(entry.get("format", "–"))),
        Cell(short(error, 2), float("nan") if error is None else float(error)),
        Cell(str(proof.get("against") or "–")),
        Cell("; ".join(lost) or ("nothing is lost" if "cannot_hold" in entry else "–")),
    )
    return Row(cells)
