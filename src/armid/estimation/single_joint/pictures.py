"""Pictures of single-joint experiments: friction curves, load-proportional loss, warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from armid import theme
from armid.arrays import Array
from armid.estimation.single_joint.friction_fit import FrictionFit
from armid.estimation.single_joint.load_friction import LoadFrictionFit
from armid.estimation.single_joint.warmup import WarmUpFit
from armid.figures import Block, Figure, Panel, band, bars, line

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_WIDE = 100.0  # ratio of fastest to slowest speed above which the axis is logarithmic on both sides
_HEIGHT = 130.0  # [px]


def friction_figure(fits: Sequence[FrictionFit], title: str = "", *, gear_ratios: Sequence[float] = ()) -> Picture:
    """Friction against speed in both directions, with the fitted curve and what it leaves (PA-10, Fig. 3 to 5).

    Args:
        fits: one per joint.
        title: what they are of.
        gear_ratios: of each joint; given, an axis on the right shows the torque at the motor.
    """
    blocks = []
    for fit in fits:
        p, torque, rest = fit.points, [], []
        for side in _sides(p.speed):
            curve, (low, high) = fit.curve(side), fit.band(side)
            torque += [band("predicted", side, low, high), line("predicted", side, curve)]
            rest.append(band("predicted", side, low - curve, high - curve))
        torque.append(line("measured", p.speed, p.torque, mode="markers", size=3.5))
        rest.append(bars("residual", p.speed, p.torque - fit.curve(p.speed), 1.96 * p.error))
        noise = f"{np.sqrt(fit.chi2 / fit.dof):.2g} × noise"
        panels = [
            Panel("", torque, name="friction torque [N m]", corner=fit.law, x_title="speed [rad/s]"),
            Panel("", rest, name="points less curve [N m]", corner=noise, x_title="speed [rad/s]"),
        ]
        blocks.append(Block(fit.joint, [panels], (_HEIGHT,)))
    worst = max(fits, key=lambda fit: fit.chi2 / fit.dof)
    picture = Figure("friction", blocks).draw(
        f"Friction{f' of {title}' if title else ''}: the curves leave at most "
        f"{np.sqrt(worst.chi2 / worst.dof):.2g} times the noise of the points ({worst.joint}); bars and bands are "
        "95 % intervals."
    )
    speeds = np.concatenate([fit.points.speed for fit in fits])
    for axis, ratio in zip(picture.axes[::2], gear_ratios, strict=False):
        motor = axis.secondary_yaxis(
            "right", functions=(partial(np.multiply, 1.0 / ratio), partial(np.multiply, ratio))
        )
        motor.tick_params(labelsize=theme.TICK, colors=theme.TEXT)
        motor.set_ylabel("at the motor", fontsize=theme.TICK, color=theme.TEXT)
    for axis in picture.axes:
        _speed_axis(axis, speeds)
    return picture


def load_friction_figure(fits: Sequence[LoadFrictionFit], title: str = "") -> Picture:
    """Load-proportional loss against the load, at the motor's axis, with its line (PA-10, Fig. 6)."""
    blocks = []
    for fit in fits:
        load = np.array([fit.load.min(), fit.load.max()])
        traces = [
            line("measured", fit.load, fit.loss, mode="markers", size=2.0, faint=True),
            line("predicted", load, fit.slope * load + fit.offset),
        ]
        half = 0.5 * (fit.slope_interval[1] - fit.slope_interval[0])
        corner = f"slope {fit.slope:.4f} ± {half:.4f}"
        panel = Panel("loss [N m]", traces, corner=corner, x_title="load torque at the motor [N m]")
        blocks.append(Block(fit.joint, [[panel]], (192.0,)))
    lossy = [fit for fit in fits if fit.present]
    words = "no joint loses torque in proportion to its load."
    if lossy:
        most = max(lossy, key=lambda fit: fit.slope)
        words = f"{len(lossy)} of {len(fits)} joints lose torque in proportion to their load, {most.joint} most: "
        words += f"{100 * most.slope:.1f} %."
    return Figure("stiffness", blocks, across=2).draw(_after(title, words))


def warmup_figure(fits: Sequence[WarmUpFit], title: str = "") -> Picture:
    """Mean |torque| per cycle against time with its exponential (Powerball, Fig. 3)."""
    blocks = []
    for fit in fits:
        t = np.linspace(0.0, float(fit.time[-1]), 200)
        traces = [
            line("measured", fit.time, fit.means, mode="markers", size=3.0),
            band("predicted", t, *fit.fit.band(t)),
            line("predicted", t, fit.fit.curve(t)),
        ]
        words = f"−{100 * fit.drop:.1f} %, time constant {fit.time_constant:.0f} s" if fit.significant else "no change"
        panel = Panel("", traces, name="mean |torque| per cycle [N m]", corner=words, x_title="time [s]")
        blocks.append(Block(fit.joint, [[panel]], (_HEIGHT,)))
    most = max(fits, key=lambda fit: fit.drop)
    words = f"warming up takes up to {100 * most.drop:.1f} % off the mean torque ({most.joint})."
    return Figure("warm-up", blocks).draw(_after(title, words))


def _after(title: str, words: str) -> str:
    return f"{title}: {words}" if title else words


def _sides(speed: Array) -> list[Array]:
    """Speeds to draw curves at, negative and positive apart."""
    sides = []
    for sign in (-1.0, 1.0):
        mine = np.abs(speed[np.sign(speed) == sign])
        if len(mine):
            even = np.linspace(mine.min(), mine.max(), 120)
            sides.append(np.sort(sign * np.concatenate([np.geomspace(mine.min(), mine.max(), 120), even])))
    return sides


def _speed_axis(axis: Any, speeds: Array) -> None:
    """Logarithmic where speeds differ widely, on both sides of standstill where there are both."""
    slowest, fastest = float(np.abs(speeds).min()), float(np.abs(speeds).max())
    if fastest / slowest < _WIDE:
        return
    if speeds.min() > 0.0:
        axis.set_xscale("log")
        return
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_xscale("symlog", linthresh=slowest, linscale=0.8)
    decades = 10.0 ** np.arange(np.ceil(np.log10(slowest) - 0.05), np.log10(fastest) + 1e-9)
    axis.xaxis.set_major_locator(FixedLocator([*(-decades[::-1]), *decades]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_xlim(-1.3 * fastest, 1.3 * fastest)
