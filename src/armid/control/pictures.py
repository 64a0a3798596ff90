"""Pictures of tracking: path and Cartesian error (PA-10, Fig. 7), joint torques total and feedback (Fig. 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from armid import theme
from armid.arrays import Array
from armid.control.tracking import Tracking, TrackingComparison
from armid.figures import Block, Figure, Panel, line

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

MOST_POINTS = 2000
_WORDS = {"pid": "PID", "feedforward": "feed-forward", "computed-torque": "computed torque"}


def path_figure(comparison: TrackingComparison) -> Picture:
    """The path of the tool with its error enlarged, worst and best run, and the error of all runs over time."""
    runs = [run for run in comparison.runs if run.completed]
    ordered = sorted(runs, key=lambda run: run.mean_tool_error)
    best, worst = ordered[0], ordered[-1]
    figure: Any = theme.new_figure(6.4)
    grid = figure.add_gridspec(2, 2, height_ratios=(1.25, 1.0))
    for column, run in enumerate((worst, best) if worst is not best else (best,)):
        _path(figure.add_subplot(grid[0, column]), run)
    axis = figure.add_subplot(grid[1, :])
    theme.style(axis)
    for run in runs:
        rows = _thinned(run)
        error = 1e3 * np.maximum(run.tool_error[rows], 1e-6)
        axis.plot(_time(run, rows), error, **theme.LINES[_role(run)], label=_name(run))
    theme.log_scale(axis)
    axis.set_xlabel("time on the path [s]")
    axis.set_ylabel("tool error [mm]")
    axis.legend(fontsize=theme.TICK, frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    ratio = worst.mean_tool_error / best.mean_tool_error
    theme.say(
        figure,
        f"Along {comparison.path} the tool of {comparison.robot} is {1e3 * best.mean_tool_error:.2g} mm off in the "
        f"mean with {_name(best)}, {ratio:.0f} times less than the {1e3 * worst.mean_tool_error:.2g} mm of "
        f"{_name(worst)}.",
    )
    return figure


def torque_figure(run: Tracking) -> Picture:
    """Torque sent to each joint and the part of it that is feedback, on the same scale."""
    rows, share = _thinned(run), run.feedback_rms / run.torque_rms
    blocks = []
    for joint, name in enumerate(run.joints):
        curves = (("predicted", run.torque), ("residual", run.feedback))
        traces = [line(role, _time(run, rows), values[rows, joint]) for role, values in curves]
        corner = f"feedback {100 * share[joint]:.2g} % of {run.torque_rms[joint]:.3g} N m rms"
        panel = Panel("", traces, name="torque [N m]", corner=corner, x_title="time on the path [s]")
        blocks.append(Block(name, [[panel]], (91.0,)))
    name = _name(run)
    return Figure("torque", blocks, legend={"predicted": "total", "residual": "feedback"}).draw(
        f"{name[0].upper()}{name[1:]}: feedback makes up {100 * run.feedback_share:.2g} % of the torque (rms, all "
        "joints), the model the rest."
    )


def error_figure(comparison: TrackingComparison) -> Picture:
    """Errors of all joints over time, one line per controller."""
    runs = [run for run in comparison.runs if run.completed]
    blocks = []
    for joint, name in enumerate(runs[0].joints):
        traces = []
        for run in runs:
            rows, role = _thinned(run), _role(run)
            error = np.degrees(run.desired - run.measured)[rows, joint]
            traces.append(line(role, _time(run, rows), error, name=_name(run)))
        panel = Panel("", traces, name="position error [°]", x_title="time on the path [s]")
        blocks.append(Block(name, [[panel]], (91.0,)))
    best = min(runs, key=lambda run: run.max_joint_error)
    worst = best.joints[int(best.joint_error.argmax())]
    return Figure("errors", blocks, legend={_role(run): _name(run) for run in runs}).draw(
        f"No joint is more than {np.degrees(best.max_joint_error):.2g}° off with {_name(best)} (worst: {worst})."
    )


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
    axis.set_xlabel(f"{'xyz'[a]} [mm]")
    axis.set_ylabel(f"{'xyz'[b]} [mm]")
    how = f"error × {factor:g}" if factor != 1.0 else "true to scale"
    axis.set_title(f"{_name(run)}\ndesired dashed, reached black, {how}", loc="left", fontsize=theme.LABEL)


def _enlargement(wanted: float) -> float:
    """1, 2, 5, 10, 20 ... not above what is wanted."""
    if wanted <= 1.0:
        return 1.0
    decade = 10.0 ** np.floor(np.log10(wanted))
    return float(max(step * decade for step in (1.0, 2.0, 5.0) if step * decade <= wanted))


def _role(run: Tracking) -> str:
    """What a controller's line looks like."""
    if run.controller == "pid" or "nominal" in run.title:
        return "measured" if run.controller == "pid" else "nominal"
    return "residual" if run.controller == "feedforward" else "predicted"


def _name(run: Tracking) -> str:
    if run.controller == "pid":
        return "PID"
    model = "nominal model" if "nominal" in run.title else "identified model"
    return f"{_WORDS.get(run.controller, run.controller)}, {model}"


def _thinned(run: Tracking) -> Array:
    rows = np.arange(run.window.start, run.window.stop)
    return np.asarray(rows[:: max(1, len(rows) // MOST_POINTS)])


def _time(run: Tracking, rows: Array) -> Array:
    """Time on the path [s]."""
    return np.asarray(run.time[rows] - run.time[run.window.start])
