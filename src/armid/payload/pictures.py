"""The payload's picture: torque of the arm with it, measured and predicted (Swevers et al., Fig. 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armid import theme
from armid.errors import ArmidError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from armid.payload.estimate import PayloadEstimate

_ROW = 1.35


def payload_figure(payload: PayloadEstimate) -> Figure:
    """Measured torque, predicted with payload, predicted for the arm alone; errors beside it at the same scale."""
    series = payload.series
    if series is None:
        raise ArmidError("this payload was read from a file, which holds no series; estimate it anew to draw it")
    rows = [j for j, moved in enumerate(series.moving) if moved]
    names = [payload.joints[j].name.replace("_", " ") for j in rows]
    columns = ("torque [N m]", "error [N m]")
    figure, axes = theme.small_multiples(names, columns, x_label="time [s]", row_height=_ROW)
    time = series.time - series.time[0]
    breaks = np.flatnonzero(np.diff(time) <= 0.0) + 1
    time = np.insert(time, breaks, np.nan)
    for (left, right), j in zip(axes, rows, strict=True):
        measured, loaded, bare = (
            np.insert(values[:, j], breaks, np.nan) for values in (series.measured, series.with_payload, series.without)
        )
        left.plot(time, bare, **theme.LINES["nominal"])
        left.plot(time, measured, **theme.LINES["measured"])
        left.plot(time, loaded, **{**theme.LINES["predicted"], "linestyle": (0, (4, 1.5))})
        right.plot(time, measured - bare, **theme.LINES["nominal"])
        right.plot(time, measured - loaded, **theme.LINES["residual"])
        low, high = left.get_ylim()
        span = max(high - low, 2.0 * float(np.nanmax(np.abs(measured - bare))))
        middle = 0.5 * (low + high)
        left.set_ylim(middle - 0.5 * span, middle + 0.5 * span)
        right.set_ylim(-0.5 * span, 0.5 * span)
        joint = payload.joints[j]
        theme.corner(right, f"RMS {joint.rms_without:.3g} → {joint.rms_with:.3g}")
    mass = payload.quantity("m")
    half = 0.5 * (mass.upper - mass.lower)
    taken = [1.0 - payload.joints[j].rms_with / payload.joints[j].rms_without for j in rows]
    theme.say(
        figure,
        f"A payload of {mass.value:.4g} ± {half:.2g} kg explains {100 * min(taken):.0f} to {100 * max(taken):.0f} % of "
        "what the model of the arm alone (grey) misses; measured black, with payload blue.",
    )
    return figure
