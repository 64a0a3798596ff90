"""Table 3 of the KR 15 as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armid import theme
from armid.arrays import Array
from armid.papers.kr15_bench import Printed
from armid.payload.body import QUANTITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def table_figure(values: Array, sigmas: Array, told: Printed) -> Figure:
    """Each experiment's estimate with its 95 % interval, beside the reference and the published mean and spread.

    Args:
        values: (experiments, quantities).
        sigmas: the same.
        told: Table 3.
    """
    from matplotlib.ticker import MaxNLocator

    figure = theme.new_figure(6.4)
    axes = figure.subplots(4, 3)
    order = (0, None, None, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    runs = np.arange(1, len(values) + 1)
    for axis, i in zip(axes.flat, order, strict=True):
        if i is None:
            axis.set_visible(False)
            continue
        theme.style(axis)
        name, unit = QUANTITIES[i]
        width = 2.0 * told.sigma[i]
        axis.axhspan(told.mean[i] - width, told.mean[i] + width, color=theme.FAINT, alpha=0.6, linewidth=0)
        axis.axhline(told.mean[i], color="white", linewidth=1.4)
        axis.axhline(told.reference[i], **theme.LINES["nominal"])
        bars = {"fmt": ".", "color": theme.PREDICTED, "markersize": 4.0, "elinewidth": 0.8, "capsize": 0}
        axis.errorbar(runs, values[:, i], 1.96 * sigmas[:, i], **bars)
        axis.set_title(f"{name} [{unit}]".replace("^2", "²"), loc="left", fontsize=theme.LABEL, color=theme.TEXT)
        theme.corner(axis, f"σ {values[:, i].std(ddof=1):.2g}, published {told.sigma[i]:g}")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.yaxis.set_major_locator(MaxNLocator(4))
    for axis in axes[-1]:
        axis.set_xlabel("experiment")
    away = np.abs(values.mean(axis=0) - told.reference) / values.std(axis=0, ddof=1)
    ratio = float(np.median(told.sigma / values.std(axis=0, ddof=1)))
    theme.say(
        figure,
        f"KR 15, Table 3: {int(np.sum(away <= 2.0))} of 10 reference values (dashed) are within 2 σ of single "
        f"experiments, which spread {ratio:.2g} times less than the published ones (grey: mean ± 2 σ).",
    )
    return figure
