"""The payload: what the arm carries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from armid.reporting.evidence import Evidence
from armid.reporting.html import Cell, Column, Row, bullets, table
from armid.reporting.numbers import plus_minus, short, spaced
from armid.reporting.section import Section
from armid.reporting.sections.parameters import pretty


def payload(evidence: Evidence) -> Section | None:
    """A table of the load's quantities with intervals."""
    data = evidence.payload
    if not data:
        return None
    entries = [entry for entry in data.get("quantities") or () if isinstance(entry, Mapping) and "value" in entry]
    rows = [_row(entry) for entry in entries if entry["value"] is not None]
    columns = [Column("quantity", words=True), Column("value ± 95 %"), Column("unit", words=True)]
    body = table(columns, rows, caption="the load") if rows else ""
    body += bullets(spaced(str(words)) for words in data.get("reasons") or ())
    return Section("payload", "Payload", _sentence(data, entries), body)


def _sentence(data: Mapping[str, Any], entries: list[Mapping[str, Any]]) -> str:
    known = next((entry for entry in entries if entry.get("name") in ("m", "mass")), None)
    if known is not None and isinstance(known.get("sigma"), float):
        mass = f"{plus_minus(float(known['value']), 1.96 * known['sigma'])} kg"
    elif isinstance(data.get("mass"), int | float):
        mass = f"{short(float(data['mass']))} kg"
    else:
        return "A load was identified; its mass is not stated."
    verdict = data.get("verdict")
    return f"The arm carries {mass}{f'; the estimate is {verdict}' if isinstance(verdict, str) else ''}."


def _row(entry: Mapping[str, Any]) -> Row:
    value, sigma = float(entry["value"]), entry.get("sigma")
    shown = short(value) if sigma is None else plus_minus(value, 1.96 * float(sigma))
    cells = (Cell(str(entry.get("name", "?")), code=True), Cell(shown, value), Cell(pretty(str(entry.get("unit", "")))))
    return Row(cells, "" if entry.get("determined", True) else "the data do not determine it")
