"""The kinds of picture that the papers show, drawn from arrays, all in the common look of `armid.theme`.

Each function opens its figure with a sentence made from the numbers; `what` is how that sentence begins, such as
"RX-60, verification". Friction, stiffness and warm-up curves are in `armid.estimation.single_joint.pictures`, the
pictures of a designed trajectory in `armid.excitation.pictures`, frame drawings in `armid.papers.frames`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid import theme
from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.excitation.pictures import motion_panels
from armid.figures import Block, Figure, Panel, bars, level, line, thinned, torque_block
from armid.robot.robot import Robot

_MOST_POINTS = 4000  # per curve: more cannot be seen
_SERIES: tuple[dict[str, Any], ...] = (
    {"color": theme.PREDICTED, "linestyle": "-"},
    {"color": theme.RESIDUAL, "linestyle": (0, (5, 2))},
    {"color": "#009E73", "linestyle": (0, (1, 1.2))},
    {"color": "#CC79A7", "linestyle": (0, (6, 2, 1, 2))},
)


def torque_figure(
    times: ArrayLike,
    measured: ArrayLike,
    predicted: ArrayLike,
    names: Sequence[str],
    *,
    what: str,
    validation: bool = False,
    noise: ArrayLike | None = None,
) -> theme.Picture:
    """Measured and predicted torque with the error below at the same scale, one joint after the other.

    (RX-60 Fig. 4; Swevers et al. Fig. 8, 10, 13; ER-16 Fig. 7, 9; Powerball Fig. 8.)

    Args:
        times: [s], (samples,).
        measured: [N m], (samples, joints).
        predicted: the same, by the model.
        names: of the joints.
        what: how the sentence on top begins.
        validation: data that were not used for identification; a pale band behind the axes says so.
        noise: standard deviation of the torque per joint, for the ratio in the corner.
    """
    t, tau, model = (np.asarray(values, dtype=float) for values in (times, measured, predicted))
    rms, size = np.sqrt(np.mean((tau - model) ** 2, axis=0)), np.maximum(np.std(tau, axis=0), 1e-300)
    thin, blocks = thinned(len(t), _MOST_POINTS), []
    for j, name in enumerate(names):
        against = "" if noise is None else f", {rms[j] / np.asarray(noise, dtype=float)[j]:.2f} × noise"
        corner = f"RMS {rms[j]:.3g} N m, {100 * rms[j] / size[j]:.2g} %{against}"
        block = torque_block(name, "N m", t[thin], tau[thin, j], model[thin, j], corner=corner, tall=110.0)
        upper, lower, largest = block.panels[0][0], block.panels[1][0], np.abs(tau[:, j] - model[:, j]).max()
        if lower.y_range is not None and largest > lower.y_range[1]:
            cut = replace(lower, corner=f"largest {largest:.3g}, cut off")
            block = replace(block, panels=[[upper], [cut]])
        blocks.append(block)
    share = 100 * rms / size
    worst = int(share.argmax())
    legend = {"measured": "measured", "predicted": "predicted", "residual": "error"}
    return Figure("torque", blocks, legend=legend, held_out=validation).draw(
        f"{what}: the model leaves {' / '.join(f'{value:.3g}' for value in rms)} N\u00a0m RMS, at most "
        f"{share[worst]:.2g} % of a joint's torque ({names[worst]})."
    )


def motion_figure(times: ArrayLike, motion: Motion, robot: Robot, *, what: str) -> theme.Picture:
    """Positions, velocities and accelerations over time within their limits (Swevers et al. Fig. 5, ER-16 Fig. 4).

    Args:
        times: [s], (samples,).
        motion: of all joints.
        robot: with the limits.
        what: how the sentence on top begins.
    """
    t = np.asarray(times, dtype=float)
    thin, limits = thinned(len(t), _MOST_POINTS), robot.limits
    rates = [(-bound, bound) for bound in (limits.velocity, limits.acceleration)]
    bounds = [(limits.lower, limits.upper), *rates]
    broken = [
        quantity
        for quantity, values, (low, high) in zip(("position", "velocity", "acceleration"), motion, bounds, strict=True)
        if np.any(values > high) or np.any(values < low)  # comparisons with NaN are false
    ]
    margin = f"LIMITS OF {' AND '.join(broken).upper()} ARE BROKEN" if broken else "joints stay inside their limits"
    if not np.isfinite(bounds).any():
        margin = "no limits are known"
    speed = np.abs(motion.qd).max(axis=0)
    fastest = int(speed.argmax())
    unit = "m/s" if robot.joints[fastest].prismatic else "rad/s"
    panels = motion_panels(robot, t[thin], Motion(*(np.asarray(part)[thin] for part in motion)))
    return replace(panels, legend={"predicted": "motion", "limit": "limit"}).draw(
        f"{what}: {t[-1] - t[0]:.4g} s; {robot.joint_names[fastest]} is fastest with {speed[fastest]:.2f} {unit}; "
        f"{margin}."
    )


def tool_path_figure(paths: Mapping[str, ArrayLike], *, what: str) -> theme.Picture:
    """Paths of the tool in space, one panel each (RX-60 IV.A, Swevers et al. Fig. 6, ER-16 Fig. 5, PA-10 Fig. 7).

    Args:
        paths: name and positions [m], (samples, 3), of each.
        what: how the sentence on top begins.
    """
    from matplotlib.ticker import MaxNLocator

    columns = 1 if len(paths) == 1 else 2 if len(paths) <= 4 else 3
    rows = -(-len(paths) // columns)
    figure = theme.new_figure(0.6 + rows * {1: 5.6, 2: 4.0, 3: 2.7}[columns])
    lengths = {}
    for number, (name, positions) in enumerate(paths.items(), start=1):
        path = np.asarray(positions, dtype=float)
        axis: Any = figure.add_subplot(rows, columns, number, projection="3d")
        axis.plot(*path[thinned(len(path), _MOST_POINTS)].T, **theme.LINES["predicted"])
        axis.plot(*path[:1].T, color=theme.MEASURED, marker="o", markersize=4.0, linestyle="none")
        theme.style_space(axis, "m")
        spans = [float(np.diff(getattr(axis, f"get_{letter}lim")())[0]) for letter in "xyz"]
        axis.set_box_aspect(spans, zoom=1.15 if columns == 1 and spans[2] <= max(spans[:2]) else 1.0)
        if columns > 1:
            axis.set_title(name, loc="left", fontsize=theme.LABEL, color=theme.TEXT, pad=0.0)
        for letter in "xyz" if columns == 3 else "":
            getattr(axis, f"{letter}axis").set_major_locator(MaxNLocator(3))
        lengths[name] = float(np.sum(np.linalg.norm(np.diff(path, axis=0), axis=1)))
    least, longest = (choose(lengths, key=lambda name: lengths[name]) for choose in (min, max))
    x, y, z = np.ptp(np.asarray(paths[longest], dtype=float), axis=0)
    words = f"{lengths[longest]:.3g} m through a space of {x:.2g} × {y:.2g} × {z:.2g} m; the dot is its start"
    if len(paths) > 1:
        words = f"from {lengths[least]:.3g} m ({least}) to {lengths[longest]:.3g} m ({longest}); dots are the starts"
    theme.say(figure, f"{what}: the tool travels {words}.")
    return figure


def evolution_figure(curves: Mapping[str, ArrayLike], *, what: str, published: float) -> theme.Picture:
    """How the objective falls, one line per method; several runs of one method as median and range (ER-16 Fig. 6).

    Args:
        curves: best objective after every iteration, (iterations,) or (runs, iterations), starting at iteration 0.
        what: how the sentence on top begins.
        published: the paper's final value, a dashed line.
    """
    figure = theme.new_figure(4.2)
    axis = figure.subplots()
    theme.style(axis)
    middles = {}
    for (name, values), look in zip(curves.items(), _SERIES, strict=False):
        runs = np.atleast_2d(np.asarray(values, dtype=float))
        x, middles[name] = np.arange(runs.shape[1]), np.median(runs, axis=0)
        if len(runs) > 1:
            band = {"color": look["color"], "alpha": theme.INTERVAL_ALPHA, "linewidth": 0}
            axis.fill_between(x, runs.min(axis=0), runs.max(axis=0), **band)
        axis.plot(x, middles[name], linewidth=1.3, label=f"{name}: {middles[name][-1]:.3g}", **look)
    axis.axhline(published, label=f"published: {published:.4g}", **theme.LINES["nominal"])
    theme.log_scale(axis)
    axis.set_xlabel("iteration")
    axis.set_ylabel("objective F [–]")
    axis.legend(fontsize=theme.LABEL, frameon=False, labelcolor=theme.TEXT, loc="upper right")
    best = min(middles, key=lambda name: middles[name][-1])
    several = any(np.ndim(values) > 1 for values in curves.values())
    spread = "; lines are medians, bands the range over seeds" if several else ""
    first, last = middles[best][0], middles[best][-1]
    theme.say(figure, f"{what}: the objective falls from {first:.3g} to {last:.3g} with {best}{spread}.")
    return figure


def spectrum_figure(
    frequency_hz: Array, amplitude: Array, names: Sequence[str], *, what: str, lines_hz: Sequence[float]
) -> theme.Picture:
    """Amplitude spectrum of measured positions, one joint per panel (Swevers et al. Fig. 7).

    Args:
        frequency_hz: (lines,).
        amplitude: (lines, joints) [rad].
        names: of the joints.
        what: how the sentence on top begins.
        lines_hz: the excited frequencies, marked.
    """
    f, excited = frequency_hz, [int(np.argmin(np.abs(frequency_hz - one))) for one in lines_hz]
    shown = np.maximum(amplitude, 0.5 * float(amplitude[amplitude > 0.0].min()))
    blocks = []
    for j, name in enumerate(names):
        traces = [line("measured", f, shown[:, j]), line("predicted", f[excited], shown[excited, j], mode="markers")]
        panel = Panel("rad", traces, "amplitude", x_range=[0.0, float(f[-1])], x_title="frequency [Hz]", log="y")
        blocks.append(Block(name, [[panel]], (96.0,)))
    below = float(np.median(amplitude[excited]) / max(float(np.median(np.delete(amplitude, excited, axis=0))), 1e-300))
    return Figure("spectrum", blocks).draw(
        f"{what}: spectrum up to {f[-1]:.3g} Hz; the {len(excited)} excited lines (dots) stand a factor "
        f"{float(f'{below:.2g}'):g} above the rest."
    )


def estimates_figure(
    names: Sequence[str],
    values: ArrayLike,
    errors: ArrayLike,
    *,
    what: str,
    truth: ArrayLike | None = None,
    published: ArrayLike | None = None,
    published_errors: ArrayLike | None = None,
    unit: str = "",
) -> theme.Picture:
    """Estimates with their 2 sigma intervals beside the truth of the virtual robot and the published values.

    Args:
        names: of the parameters.
        values: estimates.
        errors: their standard deviations.
        what: how the sentence on top begins.
        truth: what the virtual robot really has.
        published: what the paper prints (of another arm, so not the truth).
        published_errors: the paper's standard deviations.
        unit: of all values.
    """
    estimate, sigma = np.asarray(values, dtype=float), np.asarray(errors, dtype=float)
    place = np.arange(len(names), dtype=float)
    traces = [level(0.0, "axis"), bars("predicted", place, estimate, 2.0 * sigma)]
    legend = {"predicted dots": "ours, ± 2σ"}
    words = f"{what}: {len(names)} parameters with 2σ intervals"
    if published is not None:
        spread = np.zeros(len(names)) if published_errors is None else 2.0 * np.asarray(published_errors, dtype=float)
        traces.append(bars("nominal", place - 0.18, published, spread))
        legend["nominal dots"] = "published"
    if truth is not None:
        traces.append(line("measured", place + 0.18, truth, mode="markers", size=6.0))
        legend["measured dots"] = "truth of the virtual robot"
        words += f"; {int(np.sum(np.abs(estimate - truth) <= 2.0 * sigma))} of {len(names)} contain the truth"
    panel = Panel(f"value [{unit}]" if unit else "value", traces, x_range=[-0.6, len(names) - 0.4])
    picture = Figure("estimates", [Block("", [[panel]], (300.0,))], legend=legend).draw(f"{words}.")
    axis, middle = picture.axes[0], float(np.median(np.abs(estimate)))
    if np.abs(estimate).max() > 30.0 * max(middle, 1e-300):
        axis.set_yscale("symlog", linthresh=max(middle, 1e-6))
    axis.set_xticks(place, names, rotation=45 if len(names) > 8 else 0, ha="right" if len(names) > 8 else "center")
    return picture


def flow_figure(steps: Mapping[str, tuple[str, Sequence[str]]], *, what: str) -> theme.Picture:
    """A flow chart: one box per step from top to bottom, an arrow from each that it needs (Swevers et al. Fig. 2).

    Args:
        steps: title and needs of each, by name, in the order in which they run.
        what: whose steps they are.
    """
    figure = theme.new_figure(0.5 * len(steps) + 0.6)
    axis = figure.add_subplot()
    axis.set(xlim=(0.0, 1.0), ylim=(-len(steps), 0.0))
    axis.axis("off")
    row = {name: -k - 0.5 for k, name in enumerate(steps)}
    for name, (title, needs) in steps.items():
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": theme.NOMINAL}
        axis.text(0.25, row[name], f"{name}: {title}", va="center", fontsize=8, bbox=box)
        for need in needs:
            bend = "arc3,rad=0.4" if row[need] > row[name] else "arc3,rad=-0.5"
            arrow: dict[str, Any] = {"arrowstyle": "->", "color": theme.MEASURED, "connectionstyle": bend}
            axis.annotate("", (0.235, row[name]), (0.235, row[need]), arrowprops=arrow)
    theme.say(figure, f"{what}: {len(steps)} steps; arrows lead to what needs a result.")
    return figure
