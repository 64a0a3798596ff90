"""Pictures of tracking: path and Cartesian error (PA-10, Fig. 7), joint torques total and feedback (Fig. 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from armid import theme
from armid.arrays import Array
from armid.control.tracking import Tracking, TrackingComparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 2000
_WORDS = {"pid": "PID", "feedforward": "feed-forward", "computed-torque": "computed torque"}


def path_figure(comparison: TrackingComparison) -> Figure:
    """The path of the tool with its error enlarged, worst and best run, and the error of all runs over time."""
    from matplotlib.ticker import FuncFormatter

    runs = [run for run in comparison.runs if run.completed]
    ordered = sorted(runs, key=lambda run: run.mean_tool_error)
    best, worst = ordered[0], ordered[-1]
    figure = theme.new_figure(6.4)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.25, 1.0))
    for column, run in enumerate((worst, best) if worst is not best else (best,)):
        _path(figure.add_subplot(grid[0, column]), run)
    axis = figure.add_subplot(grid[1, :])
    theme.style(axis)
    for run in runs:
        rows = _thinned(run)
        time = run.time[rows] - run.time[run.window.start]
        axis.plot(time, 1e3 * np.maximum(run.tool_error[rows], 1e-6), **_line(run), label=_name(run))
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_xlabel("time on the path [s]", fontsize=theme.LABEL, color=theme.TEXT)
    axis.set_ylabel("tool error [mm]", fontsize=theme.LABEL, color=theme.TEXT)
    axis.legend(fontsize=theme.TICK, frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    ratio = worst.mean_tool_error / best.mean_tool_error
    theme.say(
        figure,
        f"Along {comparison.path} the tool of {comparison.robot} is {1e3 * best.mean_tool_error:.2g} mm off in the "
        f"mean with {_name(best)}, {ratio:.0f} times less than the {1e3 * worst.mean_tool_error:.2g} mm of "
        f"{_name(worst)}.",
    )
    return figure


def torque_figure(run: Tracking) -> Figure:
    """Torque sent to each joint and the part of it that is feedback, on the same scale."""
    figure, axes = theme.small_multiples(run.joints, ("torque [N m]",), x_label="time on the path [s]")
    rows = _thinned(run)
    time = run.time[rows] - run.time[run.window.start]
    share = run.feedback_rms / run.torque_rms
    for (axis,), joint in zip(axes, range(len(run.joints)), strict=True):
        axis.plot(time, run.torque[rows, joint], **theme.LINES["predicted"])
        axis.plot(time, run.feedback[rows, joint], **theme.LINES["residual"])
        theme.corner(axis, f"feedback {100 * share[joint]:.2g} % of {run.torque_rms[joint]:.3g} N m rms")
    for shift, word, colour in ((64.0, "total", theme.PREDICTED), (92.0, "feedback", theme.RESIDUAL)):
        place = {"xy": (0.0, 1.01), "xycoords": "axes fraction", "xytext": (shift, 2.0), "textcoords": "offset points"}
        axes[0, 0].annotate(word, fontsize=theme.LABEL, color=colour, va="bottom", **place)
    theme.say(
        figure,
        f"{_sentence_name(run)}: feedback makes up {100 * run.feedback_share:.2g} % of the torque (rms, all joints), "
        "the model the rest.",
    )
    return figure


def error_figure(comparison: TrackingComparison) -> Figure:
    """Errors of all joints over time, one line per controller."""
    runs = [run for run in comparison.runs if run.completed]
    joints = runs[0].joints
    figure, axes = theme.small_multiples(joints, ("position error [°]",), x_label="time on the path [s]")
    for run in runs:
        rows = _thinned(run)
        time = run.time[rows] - run.time[run.window.start]
        error = np.degrees(run.desired - run.measured)[rows]
        for (axis,), joint in zip(axes, range(len(joints)), strict=True):
            axis.plot(time, error[:, joint], **_line(run), label=_name(run))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=theme.TICK, frameon=False)
    best = min(runs, key=lambda run: run.max_joint_error)
    worst = joints[int(best.joint_error.argmax())]
    theme.say(
        figure,
        f"No joint is more than {np.degrees(best.max_joint_error):.2g}° off with {_name(best)} (worst: {worst}).",
    )
    return figure


def _path(axis: Any, run: Tracking) -> None:
    """Desired and reached path in the plane in which the path is largest, the error enlarged to be seen."""
    theme.style(axis)
    rows = _thinned(run)
    desired, reached = run.tool_desired[rows, :3, 3], run.tool_measured[rows, :3, 3]
    span = np.ptp(desired, axis=0)
    a, b = (int(k) for k in np.sort(np.argsort(span)[-2:]))
    factor = _enlargement(0.04 * float(span.max()) / max(run.mean_tool_error, 1e-9))
    shown = desired + factor * (reached - desired)
    axis.plot(1e3 * desired[:, a], 1e3 * desired[:, b], **theme.LINES["nominal"])
    axis.plot(1e3 * shown[:, a], 1e3 * shown[:, b], **theme.LINES["measured"])
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_xlabel(f"{'xyz'[a]} [mm]", fontsize=theme.LABEL, color=theme.TEXT)
    axis.set_ylabel(f"{'xyz'[b]} [mm]", fontsize=theme.LABEL, color=theme.TEXT)
    how = f"error × {factor:g}" if factor != 1.0 else "true to scale"
    axis.set_title(f"{_name(run)}\ndesired dashed, reached black, {how}", loc="left", fontsize=theme.LABEL)


def _enlargement(wanted: float) -> float:
    """1, 2, 5, 10, 20 ... not above what is wanted."""
    if wanted <= 1.0:
        return 1.0
    decade = 10.0 ** np.floor(np.log10(wanted))
    return float(max(step * decade for step in (1.0, 2.0, 5.0) if step * decade <= wanted))


def _line(run: Tracking) -> dict[str, Any]:
    if run.controller == "pid":
        return theme.LINES["measured"]
    if "nominal" in run.title:
        return theme.LINES["nominal"]
    if run.controller == "feedforward":
        return {**theme.LINES["residual"], "linewidth": 0.9}
    return theme.LINES["predicted"]


def _name(run: Tracking) -> str:
    if run.controller == "pid":
        return "PID"
    model = "nominal model" if "nominal" in run.title else "identified model"
    return f"{_WORDS.get(run.controller, run.controller)}, {model}"


def _sentence_name(run: Tracking) -> str:
    name = _name(run)
    return name[0].upper() + name[1:]


def _thinned(run: Tracking) -> Array:
    rows = np.arange(run.window.start, run.window.stop)
    return np.asarray(rows[:: max(1, len(rows) // MOST_POINTS)])
