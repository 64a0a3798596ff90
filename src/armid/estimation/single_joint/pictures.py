"""Pictures of single-joint experiments: friction curves, load-proportional loss, warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armid import theme
from armid.arrays import Array
from armid.estimation.single_joint.friction_fit import FrictionFit
from armid.estimation.single_joint.stiffness import StiffnessFit
from armid.estimation.single_joint.warmup import WarmUpFit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDE = 100.0  # ratio of fastest to slowest speed above which the axis is logarithmic on both sides
_ROW = 1.35


def draw(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as FOLDER/NAME.png."""
    path = folder / f"{name}.png"
    theme.save(figure, path)
    return path


def friction_figure(fits: Sequence[FrictionFit], title: str = "") -> Figure:
    """Friction against speed in both directions, with the fitted curve and what it leaves (PA-10, Fig. 3 to 5)."""
    names = [fit.joint for fit in fits]
    columns = ("friction torque [N m]", "points less curve [N m]")
    figure, axes = theme.small_multiples(names, columns, x_label="speed [rad/s]", row_height=_ROW)
    slowest = min(float(np.abs(fit.points.speed).min()) for fit in fits)
    fastest = max(float(np.abs(fit.points.speed).max()) for fit in fits)
    for (left, right), fit in zip(axes, fits, strict=True):
        p = fit.points
        for side in _sides(p.speed, p.symmetric):
            curve, (low, high) = fit.curve(side), fit.band(side)
            left.fill_between(side, low, high, color=theme.PREDICTED, alpha=theme.INTERVAL_ALPHA, linewidth=0)
            left.plot(side, curve, **theme.LINES["predicted"])
            band = {"color": theme.PREDICTED, "alpha": theme.INTERVAL_ALPHA, "linewidth": 0}
            right.fill_between(side, low - curve, high - curve, **band)
        left.plot(p.speed, p.torque, ".", color=theme.MEASURED, markersize=3.5)
        _error_bars(right, p.speed, p.torque - fit.curve(p.speed), 1.96 * p.error)
        ratio = float(np.sqrt(fit.chi2 / fit.dof))
        theme.corner(left, fit.law)
        theme.corner(right, f"{ratio:.2g} × noise")
    for axis in axes.flat:
        _speed_axis(axis, slowest, fastest, any(fit.points.speed.min() < 0.0 for fit in fits))
    worst = max(fits, key=lambda fit: fit.chi2 / fit.dof)
    level = float(np.sqrt(worst.chi2 / worst.dof))
    what = f"Friction of {title}" if title else "Friction"
    theme.say(
        figure,
        f"{what}: the curves leave at most {level:.2g} times the noise of the points ({worst.joint}); "
        "bars and bands are 95 % intervals.",
    )
    return figure


def stiffness_figure(fits: Sequence[StiffnessFit], title: str = "") -> Figure:
    """Load-proportional loss against the load, at the motor's axis, with its line (PA-10, Fig. 6)."""
    columns = min(2, len(fits))
    rows = -(-len(fits) // columns)
    figure = theme.new_figure(theme.MARGIN + 2.0 * rows)
    from matplotlib.ticker import MaxNLocator

    axes = figure.subplots(rows, columns, squeeze=False)
    for axis, fit in zip(axes.flat, fits, strict=False):
        theme.style(axis)
        axis.plot(fit.load, fit.loss, ".", color=theme.MEASURED, markersize=2.0, alpha=0.4)
        load = np.linspace(fit.load.min(), fit.load.max(), 2)
        axis.plot(load, fit.slope * load + fit.offset, **theme.LINES["predicted"])
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.set_title(fit.joint, loc="left", fontsize=theme.LABEL, color=theme.TEXT)
        half = 0.5 * (fit.slope_interval[1] - fit.slope_interval[0])
        theme.corner(axis, f"slope {fit.slope:.4f} ± {half:.4f}")
    for axis in axes.flat[len(fits) :]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("load torque at the motor [N m]")
    for axis in axes[:, 0]:
        axis.set_ylabel("loss [N m]")
    lossy = [fit for fit in fits if fit.present]
    what = f"{title}: " if title else ""
    if lossy:
        most = max(lossy, key=lambda fit: fit.slope)
        words = f"{len(lossy)} of {len(fits)} joints lose torque in proportion to their load, {most.joint} most: "
        theme.say(figure, f"{what}{words}{100 * most.slope:.1f} %.")
    else:
        theme.say(figure, f"{what}no joint loses torque in proportion to its load.")
    return figure


def warmup_figure(fits: Sequence[WarmUpFit], title: str = "") -> Figure:
    """Mean |torque| per cycle against time with its exponential (Powerball, Fig. 3)."""
    figure, axes = theme.small_multiples(
        [fit.joint for fit in fits], ("mean |torque| per cycle [N m]",), x_label="time [s]", row_height=_ROW
    )
    for (axis,), fit in zip(axes, fits, strict=True):
        t = np.linspace(0.0, float(fit.time[-1]), 200)
        low, high = fit.fit.band(t)
        axis.plot(fit.time, fit.means, ".", color=theme.MEASURED, markersize=3.0)
        axis.fill_between(t, low, high, color=theme.PREDICTED, alpha=theme.INTERVAL_ALPHA, linewidth=0)
        axis.plot(t, fit.fit.curve(t), **theme.LINES["predicted"])
        words = f"−{100 * fit.drop:.1f} %, time constant {fit.time_constant:.0f} s" if fit.seen else "no change seen"
        theme.corner(axis, words)
    most = max(fits, key=lambda fit: fit.drop)
    what = f"{title}: " if title else ""
    theme.say(figure, f"{what}warming up takes up to {100 * most.drop:.1f} % off the mean torque ({most.joint}).")
    return figure


def _sides(speed: Array, symmetric: bool) -> list[Array]:
    """Speeds to draw curves at, negative and positive apart."""
    sides = []
    for sign in (-1.0, 1.0):
        mine = np.abs(speed[np.sign(speed) == sign])
        if len(mine):
            even = np.linspace(mine.min(), mine.max(), 120)
            sides.append(np.sort(sign * np.concatenate([np.geomspace(mine.min(), mine.max(), 120), even])))
    return sides


def _error_bars(axis: Any, x: Array, y: Array, half: Array) -> None:
    axis.errorbar(x, y, half, fmt=".", color=theme.RESIDUAL, markersize=3.0, elinewidth=0.6, capsize=0)


def _speed_axis(axis: Any, slowest: float, fastest: float, both: bool) -> None:
    if fastest / slowest < _WIDE:
        return
    if not both:
        axis.set_xscale("log")
        return
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_xscale("symlog", linthresh=slowest, linscale=0.8)
    decades = 10.0 ** np.arange(np.ceil(np.log10(slowest) - 0.05), np.log10(fastest) + 1e-9)
    axis.xaxis.set_major_locator(FixedLocator([*(-decades[::-1]), *decades]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_xlim(-1.3 * fastest, 1.3 * fastest)
