"""The kinds of picture that the papers show, drawn from arrays, all in the common look of `armid.theme`.

Each function opens its figure with a sentence made from the numbers; `what` is how that sentence begins, such as
"RX-60, verification". Friction, stiffness and warm-up curves are in `armid.estimation.single_joint.pictures`, the
pictures of a designed trajectory in `armid.excitation.pictures`, frame drawings in `armid.papers.frames`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from armid import theme
from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.robot.robot import Robot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_POINTS = 4000  # per curve: more cannot be seen
_TORQUE_ROW = 1.15
_LEAST_ERROR_PANEL, _MOST_ERROR_PANEL = 0.35, 1.0  # height of the error's panel, in heights of the torque's
_SERIES: tuple[dict[str, Any], ...] = (
    {"color": theme.PREDICTED, "linestyle": "-"},
    {"color": theme.RESIDUAL, "linestyle": (0, (5, 2))},
    {"color": "#009E73", "linestyle": (0, (1, 1.2))},
    {"color": "#CC79A7", "linestyle": (0, (6, 2, 1, 2))},
    {"color": theme.MEASURED, "linestyle": (0, (3, 1, 1, 1, 1, 1))},
    {"color": "#56B4E9", "linestyle": "-"},
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
    unit: str = "N m",
) -> Figure:
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
        unit: of the torque.
    """
    t, tau, model = (np.asarray(values, dtype=float) for values in (times, measured, predicted))
    error = tau - model
    rms, size = np.sqrt(np.mean(error**2, axis=0)), np.std(tau, axis=0)
    thin = _thinned(len(t))
    low, high = np.minimum(tau, model).min(axis=0), np.maximum(tau, model).max(axis=0)
    spans = 1.1 * np.maximum(high - low, 1e-12)
    needed = 2.2 * np.abs(error).max(axis=0) / spans  # so that the largest error just fits at the torque's scale
    shares = np.clip(needed, _LEAST_ERROR_PANEL, _MOST_ERROR_PANEL)
    ratios = [part for share in shares for part in (1.0, float(share))]
    figure = theme.new_figure(theme.MARGIN + _TORQUE_ROW * sum(ratios))
    axes = figure.subplots(2 * len(names), 1, sharex=True, height_ratios=ratios)
    for j, name in enumerate(names):
        upper, lower = axes[2 * j], axes[2 * j + 1]
        for axis in (upper, lower):
            theme.style(axis)
            if validation:
                axis.set_facecolor(theme.VALIDATION)
        upper.plot(t[thin], tau[thin, j], **theme.LINES["measured"])
        upper.plot(t[thin], model[thin, j], **{**theme.LINES["predicted"], "linestyle": (0, (4, 1.5))})
        lower.plot(t[thin], error[thin, j], **theme.LINES["residual"])
        middle, half = 0.5 * (low[j] + high[j]), 0.5 * spans[j]
        upper.set_ylim(middle - half, middle + half)
        lower.set_ylim(-half * shares[j], half * shares[j])
        upper.set_ylabel(f"{name}\n[{unit}]")
        lower.set_ylabel("error")
        against = "" if noise is None else f", {rms[j] / np.asarray(noise, dtype=float)[j]:.2f} × noise"
        theme.corner(upper, f"RMS {rms[j]:.3g} {unit}, {100 * rms[j] / max(size[j], 1e-300):.2g} %{against}")
        if needed[j] > _MOST_ERROR_PANEL:
            theme.corner(lower, f"largest {np.abs(error[:, j]).max():.3g}, cut off")
    _name_curves(axes[0], (("measured", theme.MEASURED), ("predicted", theme.PREDICTED), ("error", theme.RESIDUAL)))
    axes[-1].set_xlabel("time [s]")
    axes[-1].set_xlim(t[0], t[-1])
    figure.align_ylabels(axes)
    share = 100 * rms / np.maximum(size, 1e-300)
    worst = int(share.argmax())
    theme.say(
        figure,
        f"{what}: the model leaves {_listed(rms)} {_kept(unit)} RMS, at most {share[worst]:.2g} % of a joint's torque "
        f"({names[worst]}).",
    )
    return figure


def motion_figure(
    times: ArrayLike, motion: Motion, robot: Robot, *, what: str, commanded: Motion | None = None
) -> Figure:
    """Positions, velocities and accelerations over time within their limits (Swevers et al. Fig. 5, ER-16 Fig. 4).

    Args:
        times: [s], (samples,).
        motion: of all joints.
        robot: with the limits.
        what: how the sentence on top begins.
        commanded: what the drives were asked for, drawn dashed beneath.
    """
    t = np.asarray(times, dtype=float)
    thin = _thinned(len(t))
    limits = robot.limits
    bounds = [(limits.lower, limits.upper), (-limits.velocity, limits.velocity)]
    bounds += [(-limits.acceleration, limits.acceleration)]
    quantities = ("position", "velocity", "acceleration")
    figure, axes = theme.small_multiples(robot.joint_names, quantities, x_label="time [s]")
    for column, values in enumerate(motion):
        for j, joint in enumerate(robot.joints):
            axis, curve = axes[j, column], np.asarray(values)[:, j]
            if commanded is not None:
                axis.plot(t[thin], np.asarray(commanded[column])[thin, j], **theme.LINES["nominal"])
            axis.plot(t[thin], curve[thin], **theme.LINES["predicted" if commanded is None else "measured"])
            top, bottom = curve.max(), curve.min()
            room = 0.25 * max(top - bottom, 1e-3)  # a joint at rest is a line, not its rounding
            axis.set_ylim(bottom - room, top + room)
            for bound in (bounds[column][0][j], bounds[column][1][j]):
                if bottom - room < bound < top + room:
                    axis.axhline(bound, **theme.LINES["limit"])
            theme.corner(axis, f"{bottom:.2f} … {top:.2f}")
            axis.set_ylabel(("m" if joint.prismatic else "rad") + ("", "/s", "/s²")[column])
    axes[0, 0].set_xlim(t[0], t[-1])
    figure.align_ylabels(axes)
    speed = np.abs(motion.qd).max(axis=0)
    fastest = int(speed.argmax())
    unit = "m/s" if robot.joints[fastest].prismatic else "rad/s"
    theme.say(
        figure,
        f"{what}: {t[-1] - t[0]:.4g} s; {robot.joint_names[fastest]} is fastest with {speed[fastest]:.2f} {unit}"
        + (_margin_words(motion, bounds)),
    )
    return figure


def tool_path_figure(paths: Mapping[str, ArrayLike], *, what: str, arm: ArrayLike | None = None) -> Figure:
    """Paths of the tool in space, one panel each (RX-60 IV.A, Swevers et al. Fig. 6, ER-16 Fig. 5, PA-10 Fig. 7).

    Args:
        paths: name and positions [m], (samples, 3), of each.
        what: how the sentence on top begins.
        arm: points [m], (points, 3), of the arm in one posture, base first; drawn into every panel.
    """
    columns = 1 if len(paths) == 1 else 2 if len(paths) <= 4 else 3
    rows = -(-len(paths) // columns)
    width, height = theme.WIDTH, 0.6 + rows * (5.6 if columns == 1 else 4.0 if columns == 2 else 2.7)
    figure = theme.new_figure(height, width)
    lengths = {}
    for number, (name, positions) in enumerate(paths.items(), start=1):
        path = np.asarray(positions, dtype=float)
        axis: Any = figure.add_subplot(rows, columns, number, projection="3d")
        if arm is not None:
            points = np.asarray(arm, dtype=float)
            axis.plot(*points.T, color=theme.NOMINAL, linewidth=2.5, marker="o", markersize=3.0)
        axis.plot(*path[_thinned(len(path))].T, **theme.LINES["predicted"])
        axis.plot(*path[:1].T, color=theme.MEASURED, marker="o", markersize=4.0, linestyle="none")
        theme.style_space(axis, "m")
        spans = [float(np.diff(getattr(axis, f"get_{letter}lim")())[0]) for letter in "xyz"]
        axis.set_box_aspect(spans, zoom=1.15 if columns == 1 and spans[2] <= max(spans[:2]) else 1.0)
        if columns > 1:
            axis.set_title(name, loc="left", fontsize=theme.LABEL, color=theme.TEXT, pad=0.0)
        if columns == 3:
            _few_ticks(axis)
        lengths[name] = float(np.sum(np.linalg.norm(np.diff(path, axis=0), axis=1)))
    longest = max(lengths, key=lambda name: lengths[name])
    if len(paths) == 1:
        size = np.ptp(np.asarray(paths[longest], dtype=float), axis=0)
        words = f"{lengths[longest]:.3g} m through a space of {size[0]:.2g} × {size[1]:.2g} × {size[2]:.2g} m"
        theme.say(figure, f"{what}: the tool travels {words}; the dot is its start.")
    else:
        least = min(lengths, key=lambda name: lengths[name])
        words = f"from {lengths[least]:.3g} m ({least}) to {lengths[longest]:.3g} m ({longest})"
        theme.say(figure, f"{what}: the tool travels {words}; dots are the starts.")
    return figure


def evolution_figure(
    curves: Mapping[str, ArrayLike],
    *,
    what: str,
    x_label: str = "iteration",
    y_label: str = "objective F [–]",
    published: float | None = None,
    logarithmic: bool = True,
) -> Figure:
    """How the objective falls, one line per method; several runs of one method as median and range (ER-16 Fig. 6).

    Args:
        curves: best objective after every iteration, (iterations,) or (runs, iterations), starting at iteration 0.
        what: how the sentence on top begins.
        x_label: of the horizontal axis.
        y_label: of the vertical axis.
        published: the paper's final value, a dashed line.
        logarithmic: scale of the objective.
    """
    figure = theme.new_figure(4.2)
    axis = figure.subplots()
    theme.style(axis)
    last, start = {}, {}
    for (name, values), look in zip(curves.items(), _SERIES, strict=False):
        runs = np.atleast_2d(np.asarray(values, dtype=float))
        x, middle = np.arange(runs.shape[1]), np.median(runs, axis=0)
        if len(runs) > 1:
            band = {"color": look["color"], "alpha": theme.INTERVAL_ALPHA, "linewidth": 0}
            axis.fill_between(x, runs.min(axis=0), runs.max(axis=0), **band)
        axis.plot(x, middle, linewidth=1.3, label=f"{name}: {middle[-1]:.3g}", **look)
        last[name], start[name] = float(middle[-1]), float(middle[0])
    if published is not None:
        axis.axhline(published, label=f"published: {published:.4g}", **theme.LINES["nominal"])
    if logarithmic:
        theme.log_scale(axis)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.legend(fontsize=theme.LABEL, frameon=False, labelcolor=theme.TEXT, loc="upper right")
    best = min(last, key=lambda name: last[name])
    several = any(np.ndim(values) > 1 for values in curves.values())
    spread = "; lines are medians, bands the range over seeds" if several else ""
    theme.say(
        figure,
        f"{what}: the objective falls from {start[best]:.3g} to {last[best]:.3g} with {best}{spread}.",
    )
    return figure


def spectrum_figure(
    frequency_hz: ArrayLike,
    amplitude: ArrayLike,
    names: Sequence[str],
    *,
    what: str,
    unit: str = "rad",
    lines_hz: Sequence[float] = (),
    floor: ArrayLike | None = None,
) -> Figure:
    """Amplitude spectrum of measured signals, one joint per panel (Swevers et al. Fig. 7).

    Args:
        frequency_hz: (lines,).
        amplitude: (lines, joints), in `unit`.
        names: of the joints.
        what: how the sentence on top begins.
        unit: of the amplitude.
        lines_hz: the excited frequencies, marked.
        floor: noise level per joint, in `unit`.
    """
    f, values = np.asarray(frequency_hz, dtype=float), np.asarray(amplitude, dtype=float)
    excited = np.array([int(np.argmin(np.abs(f - line))) for line in lines_hz], dtype=int)
    figure, axes = theme.small_multiples(names, ("amplitude",), x_label="frequency [Hz]", row_height=1.0)
    least = 0.5 * float(values[values > 0.0].min(initial=1e-12 + values.max()))
    for j in range(len(names)):
        axis = axes[j, 0]
        axis.plot(f, np.maximum(values[:, j], least), **theme.LINES["measured"])
        axis.plot(f[excited], values[excited, j], "o", color=theme.PREDICTED, markersize=4.0)
        if floor is not None:
            axis.axhline(float(np.asarray(floor)[j]), **theme.LINES["nominal"])
        axis.set_yscale("log")
        axis.set_ylabel(unit)
    axes[0, 0].set_xlim(0.0, f[-1])
    figure.align_ylabels(axes)
    rest = np.delete(values, excited, axis=0)
    words = f"{what}: spectrum up to {f[-1]:.3g} Hz"
    if len(excited) and len(rest):
        below = float(np.median(values[excited]) / max(float(np.median(rest)), 1e-300))
        words += f"; the {len(excited)} excited lines (dots) stand a factor {float(f'{below:.2g}'):g} above the rest"
    theme.say(figure, f"{words}.")
    return figure


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
) -> Figure:
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
    figure = theme.new_figure(4.0)
    axis = figure.subplots()
    theme.style(axis)
    look: dict[str, Any] = {"markersize": 4.0, "elinewidth": 1.0, "capsize": 2.0, "linestyle": "none"}
    if published is not None:
        bars = None if published_errors is None else 2.0 * np.asarray(published_errors, dtype=float)
        grey = {**look, "color": theme.NOMINAL, "marker": "s", "label": "published"}
        axis.errorbar(place - 0.18, np.asarray(published, dtype=float), bars, **grey)
    axis.errorbar(place, estimate, 2.0 * sigma, color=theme.PREDICTED, marker="o", label="ours, ± 2σ", **look)
    words = f"{what}: {len(names)} parameters with 2σ intervals"
    if truth is not None:
        true = np.asarray(truth, dtype=float)
        axis.plot(place + 0.18, true, "x", color=theme.MEASURED, markersize=5.0, label="truth of the virtual robot")
        inside = int(np.sum(np.abs(estimate - true) <= 2.0 * sigma))
        words += f"; {inside} of {len(names)} contain the truth"
    spread = np.abs(estimate).max() / max(float(np.median(np.abs(estimate))), 1e-300)
    if spread > 30.0:
        axis.set_yscale("symlog", linthresh=max(float(np.median(np.abs(estimate))), 1e-6))
    axis.axhline(0.0, color=theme.TEXT, linewidth=0.6)
    axis.set_xticks(place, names, rotation=45 if len(names) > 8 else 0, ha="right" if len(names) > 8 else "center")
    axis.set_ylabel(f"value [{unit}]" if unit else "value")
    axis.legend(fontsize=theme.LABEL, frameon=False, labelcolor=theme.TEXT)
    theme.say(figure, f"{words}.")
    return figure


def _thinned(samples: int) -> slice:
    return slice(None, None, max(1, samples // _MOST_POINTS))


def _kept(unit: str) -> str:
    """A unit that no line is broken in."""
    return unit.replace(" ", "\u00a0")


def _listed(values: Array) -> str:
    return " / ".join(f"{value:.3g}" for value in values)


def _margin_words(motion: Motion, bounds: Sequence[tuple[Array, Array]]) -> str:
    """Whether the motion stays within the limits that are known."""
    known = [np.isfinite(bound).any() for pair in bounds for bound in pair]
    if not any(known):
        return "; no limits are known."
    broken = [
        quantity
        for quantity, values, (low, high) in zip(("position", "velocity", "acceleration"), motion, bounds, strict=True)
        if np.any(values > high) or np.any(values < low)  # comparisons with NaN are false
    ]
    return f"; LIMITS OF {' AND '.join(broken).upper()} ARE BROKEN." if broken else "; all limits are kept."


def _name_curves(axis: Any, names: Sequence[tuple[str, str]]) -> None:
    """Say once, above the first panel, which colour is which."""
    for k, (name, colour) in enumerate(names):
        place = {"xy": (0.0, 1.01), "xycoords": "axes fraction", "xytext": (58.0 * k, 1.0)}
        axis.annotate(name, textcoords="offset points", fontsize=theme.LABEL, color=colour, va="bottom", **place)


def _few_ticks(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    for name in "xyz":
        getattr(axis, f"{name}axis").set_major_locator(MaxNLocator(3))
