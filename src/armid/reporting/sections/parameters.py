"""The identified parameters: expression, value with interval, class."""

from __future__ import annotations

import numpy as np

from armid.estimation.fit import Fit
from armid.estimation.identifiability import DETERMINED
from armid.reporting.evidence import Evidence
from armid.reporting.html import Cell, Column, Row, paragraph, table
from armid.reporting.numbers import percent, plus_minus, short
from armid.reporting.section import Section

TITLE = "Base parameters"


def parameters(evidence: Evidence) -> Section:
    """All parameters, those that the data do not determine marked."""
    fit = evidence.fit
    columns = [
        Column("name", words=True),
        Column("value ± 95 %", "", "estimate and half of its 95 % interval"),
        Column("σ", "", "standard deviation, in the unit of the value", aside=True),
        Column("σ / |value|", "", "relative standard deviation"),
        Column("class", words=True, hint="determined: σ at most 30 % of the value; weak: more; undetermined: free"),
        Column("stands for", words=True, hint="the combination of link parameters that the motion reveals"),
    ]
    body = table(columns, _rows(fit), caption="identified parameters", stacked=True)
    for note in fit.notes:
        if note.code == "estimation.limits_not_in_intervals":
            body += paragraph(str(note), "remark")
    return Section("parameters", TITLE, _sentence(fit), body)


def _sentence(fit: Fit) -> str:
    classes = fit.identifiability.classes
    count = sum(name == "determined" for name in classes)
    relative = _relative(fit)
    order = np.argsort(-np.where(np.isfinite(relative), relative, np.inf))
    words = f"The data determine {count} of {len(fit.names)} parameters"
    if count < len(fit.names):
        least = [fit.names[k] for k in order if classes[k] != "determined"]
        shown = ", ".join(least[:4]) + (f" and {len(least) - 4} more" if len(least) > 4 else "")
        return f"{words}; the other{'s are' if len(least) > 1 else ' is'} {shown}."
    return f"{words}; {fit.names[order[0]]} is known least, to {percent(float(relative[order[0]]))}."


def _relative(fit: Fit) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    size = np.abs(fit.values)
    return np.divide(fit.sigma, size, out=np.full(len(size), np.inf), where=size > 0.0)


def _rows(fit: Fit) -> list[Row]:
    lower, upper = fit.interval()
    relative, units = _relative(fit), fit.torque_model.units
    rows = []
    for i, name in enumerate(fit.names):
        kind = fit.identifiability.classes[i]
        value, sigma = float(fit.values[i]), float(fit.sigma[i])
        share = percent(float(relative[i])) if relative[i] < 10.0 else ">1000\u00a0%"
        rows.append(
            Row(
                (
                    Cell(name, code=True),
                    Cell(f"{plus_minus(value, 0.5 * float(upper[i] - lower[i]))} {_together(units[i])}", value),
                    Cell(short(sigma, 2), sigma),
                    Cell(share, float(min(relative[i], 1e9)), float(min(relative[i] / DETERMINED, 1.0))),
                    Cell(kind, float(("determined", "weak", "undetermined").index(kind))),
                    Cell(fit.expression(name), code=True),
                ),
                "" if kind == "determined" else f"{kind}: the data do not tell it",
            )
        )
    return rows


def _together(unit: str) -> str:
    """A unit that no line end divides."""
    return pretty(unit).replace(" ", "\u00a0")


def pretty(unit: str) -> str:
    """A unit with a raised exponent."""
    return unit.replace("^2", "²").replace("^0.5", "½")
