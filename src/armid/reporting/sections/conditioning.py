"""How well the data separate the parameters: singular values and correlations."""

from __future__ import annotations

import numpy as np

from armid.estimation.fit import Fit
from armid.reporting.evidence import Evidence
from armid.reporting.figure import Block, Figure, Panel, line
from armid.reporting.html import bullets, paragraph
from armid.reporting.numbers import short
from armid.reporting.section import Section

TITLE = "What the data separate"


def conditioning(evidence: Evidence) -> Section:
    """Singular values beside the correlation matrix."""
    fit = evidence.fit
    judged = fit.identifiability
    values = np.asarray(judged.singular_values, dtype=float)
    index = np.arange(1, len(values) + 1)
    shown = np.maximum(values, 1e-8 * float(values.max(initial=1e-300)))
    singular = Figure(
        name="singular",
        blocks=[
            Block(
                "",
                [
                    [
                        Panel(
                            "[–]",
                            [line("predicted", index, shown, mode="lines+markers", size=5, log=True)],
                            x_title="singular value of the scaled regressor, largest first",
                            x_range=[0.5, len(values) + 0.5],
                            log="y",
                            corner=f"condition number {short(judged.condition)}",
                        )
                    ]
                ],
                (200.0,),
            )
        ],
        caption="singular values of the weighted regressor with columns of unit length",
    )
    heat = Figure(
        name="correlation",
        blocks=[Block("", [[Panel("", heat=_matrix(fit))]], (_size(len(fit.names)),))],
        caption="correlation between the estimates",
    )
    body = singular.html() + paragraph("Correlation between the estimates:", "remark") + heat.html()
    if judged.combinations:
        body += paragraph("Least known combinations, the weakest first:") + bullets(
            words.replace("- ", "− ") for words in judged.combinations
        )
    return Section("conditioning", TITLE, _sentence(fit), body, (singular, heat))


def _sentence(fit: Fit) -> str:
    judged = fit.identifiability
    start = f"The condition number is {short(judged.condition)}"
    start += ", so the data are poor" if judged.poor else ""
    matrix = np.abs(fit.correlation - np.diag(np.diag(fit.correlation)))
    if len(fit.names) < 2:
        return f"{start}."
    i, j = np.unravel_index(int(np.argmax(matrix)), matrix.shape)
    strong = int(np.sum(np.triu(matrix, 1) > 0.9))
    pair = f"the strongest correlation is {fit.correlation[i, j]:+.2f}, between {fit.names[i]} and {fit.names[j]}"
    pairs = "no pair of estimates is" if strong == 0 else "1 pair is" if strong == 1 else f"{strong} pairs are"
    return f"{start}; {pairs} correlated above 0.9; {pair}.".replace("-", "\N{MINUS SIGN}")


def _matrix(fit: Fit) -> dict[str, object]:
    return {"names": list(fit.names), "values": np.round(np.clip(fit.correlation, -1.0, 1.0), 2).tolist()}


def _size(count: int) -> float:
    """Height of the heat map [px]."""
    return float(min(max(260, 11 * count + 20), 640))
