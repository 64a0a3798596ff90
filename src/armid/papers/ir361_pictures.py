"""Pictures that only the IR 361 paper shows: exact differentiation, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armid import theme
from armid.arrays import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def differentiation_figure(
    time: Array, position: Array, exact: Array, differences: Array, true: Array, *, frequency_hz: float
) -> Figure:
    """A noisy sinusoid, its spectrum with the window, and its velocity in two ways (Swevers et al., Fig. 3).

    Args:
        time: [s], (samples,), one period.
        position: measured [rad].
        exact: velocity by the discrete Fourier transform [rad/s].
        differences: velocity by central differences [rad/s].
        true: velocity [rad/s].
        frequency_hz: the line that the window keeps.
    """
    figure = theme.new_figure(5.2)
    axes = figure.subplots(2, 2)
    for axis in axes.flat:
        theme.style(axis)
    (measured, spectrum), (velocity, error) = axes
    measured.plot(time, position, **theme.LINES["measured"])
    measured.set_ylabel("position [rad]")
    measured.set_xlabel("time [s]")
    amplitude = 2.0 / len(position) * np.abs(np.fft.rfft(position))
    lines = np.arange(len(amplitude)) / (time[1] - time[0]) / len(time)
    shown = (lines > 0.0) & (lines <= 10.0)
    spectrum.vlines(lines[shown], 1e-6, amplitude[shown], color=theme.MEASURED, linewidth=1.0)
    kept = int(np.argmin(np.abs(lines - frequency_hz)))
    spectrum.plot(lines[kept], amplitude[kept], "o", color=theme.PREDICTED, markersize=5.0)
    place = {"xytext": (8.0, -2.0), "textcoords": "offset points", "fontsize": theme.LABEL, "color": theme.PREDICTED}
    spectrum.annotate("kept, times jω", (lines[kept], amplitude[kept]), **place)
    theme.log_scale(spectrum)
    spectrum.set_ylim(0.3 * float(np.median(amplitude[shown])), 2.5 * float(amplitude[kept]))
    spectrum.set_ylabel("amplitude [rad]")
    spectrum.set_xlabel("frequency [Hz]")
    velocity.plot(time, differences, color=theme.NOMINAL, linewidth=0.5)
    velocity.plot(time, exact, **theme.LINES["predicted"])
    velocity.set_ylabel("velocity [rad/s]")
    velocity.set_xlabel("time [s]")
    theme.corner(velocity, "grey: central differences; blue: exact")
    error.plot(time, exact - true, **theme.LINES["residual"])
    error.set_ylabel("error of the exact one [rad/s]")
    error.set_xlabel("time [s]")
    by_dft, by_hand = (float(np.sqrt(np.mean((one - true) ** 2))) for one in (exact, differences))
    theme.corner(error, f"RMS {by_dft:.2g} rad/s")
    theme.say(
        figure,
        f"Exact differentiation: noise outside the one line that holds motion is cut off, so that the velocity's error "
        f"is {by_dft:.2g} rad/s instead of {by_hand:.2g} rad/s by central differences.",
    )
    return figure
