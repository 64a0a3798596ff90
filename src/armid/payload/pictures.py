"""The payload's picture: torque of the arm with it, measured and predicted (Swevers et al., Fig. 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armid.errors import ArmidError
from armid.figures import Block, Figure, Panel, line, span

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from armid.payload.estimate import PayloadEstimate

_DASHED = {"linestyle": (0, (4, 1.5))}


def payload_figure(payload: PayloadEstimate) -> Picture:
    """Measured torque, predicted with payload, predicted for the arm alone; errors beside it at the same scale."""
    series = payload.series
    if series is None:
        raise ArmidError("this payload was read from a file, which holds no series; estimate it anew to draw it")
    rows = [j for j, moved in enumerate(series.moving) if moved]
    breaks = np.flatnonzero(np.diff(series.time) <= 0.0) + 1
    time = np.insert(series.time - series.time[0], breaks, np.nan)
    blocks = []
    for j in rows:
        joint = payload.joints[j]
        measured, loaded, bare = (
            np.insert(values[:, j], breaks, np.nan) for values in (series.measured, series.with_payload, series.without)
        )
        low, high = span(np.concatenate([measured, loaded, bare]), 0.05)
        half = max(0.5 * (high - low), float(np.nanmax(np.abs(measured - bare))))
        middle = 0.5 * (low + high)
        torque = [line("nominal", time, bare), line("measured", time, measured)]
        torque.append(line("predicted", time, loaded, style=_DASHED))
        errors = [line("nominal", time, measured - bare), line("residual", time, measured - loaded)]
        ends = ([middle - half, middle + half], [-half, half])
        corner = f"RMS {joint.rms_without:.3g} → {joint.rms_with:.3g}"
        panels = [
            Panel("", torque, name="torque [N m]", y_range=ends[0], x_title="time [s]"),
            Panel("", errors, name="error [N m]", y_range=ends[1], x_title="time [s]", corner=corner),
        ]
        blocks.append(Block(joint.name.replace("_", " "), [panels], (130.0,)))
    mass = payload.quantity("m")
    half_mass = 0.5 * (mass.upper - mass.lower)
    taken = [1.0 - payload.joints[j].rms_with / payload.joints[j].rms_without for j in rows]
    return Figure("payload", blocks).draw(
        f"A payload of {mass.value:.4g} ± {half_mass:.2g} kg explains {100 * min(taken):.0f} to "
        f"{100 * max(taken):.0f} % of what the model of the arm alone (grey) misses; measured black, with payload blue."
    )
