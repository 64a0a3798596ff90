"""Results of tracking: errors of joints and tool, torque and its feedback part, timing; and their pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid import theme
from armid.arrays import Array
from armid.control.controllers import Gains
from armid.display import short
from armid.experiment.drive import Timing
from armid.figures import Block, Figure, Panel, line
from armid.files import plain, write_result
from armid.notes import Note

FORMAT = "armid tracking 1"
TOLD = ("torque_rms", "feedback_rms", "feedback_share", "timing", "computing")  # also of runs broken off
SAVED_HZ = 100.0  # at most, of saved series


@dataclass(frozen=True)
class Computing:
    """How long a controller computed per cycle, on this machine.

    Attributes:
        mean_s, worst_s: [s].
        within: share of the cycles in which it took less than the cycle.
    """

    mean_s: float
    worst_s: float
    within: float

    @classmethod
    def of(cls, seconds: Array, cycle_s: float) -> Computing:
        """From the seconds of each cycle."""
        return cls(float(seconds.mean()), float(seconds.max()), float(np.mean(seconds < cycle_s)))


@dataclass(frozen=True, eq=False)
class Tracking:
    """One run of one controller. Figures are of the path itself, without run-in and run-out.

    Attributes:
        controller: short name.
        title: what it was, in words.
        path: name of the path.
        joints: names.
        time: [s] from the start of the run-in, (cycles,).
        desired, measured: joint positions (cycles, joints) [rad or m].
        torque, feedback: commanded torque and its feedback part (cycles, joints) [N m].
        tool_desired, tool_measured: tool frames (cycles, 4, 4).
        window: rows of the path itself.
        completed: False if the run was broken off since the error became too large.
        timing: how steady the arm kept its cycle.
        computing: how long the controller took.
    """

    controller: str
    title: str
    path: str
    joints: tuple[str, ...]
    time: Array
    desired: Array
    measured: Array
    torque: Array
    feedback: Array
    tool_desired: Array
    tool_measured: Array
    window: slice
    completed: bool
    timing: Timing
    computing: Computing

    @property
    def joint_error(self) -> Array:
        """Largest error of each joint [rad or m]; infinite where the run was broken off."""
        if not self.completed:
            return np.full(len(self.joints), np.inf)
        return np.asarray(np.abs(self.desired - self.measured)[self.window].max(axis=0))

    @property
    def max_joint_error(self) -> float:
        """Largest error of any joint [rad or m]."""
        return float(self.joint_error.max())

    @property
    def tool_error(self) -> Array:
        """Distance between tool and path (cycles,) [m], run-in and run-out included."""
        return np.asarray(np.linalg.norm(self.tool_desired[:, :3, 3] - self.tool_measured[:, :3, 3], axis=1))

    @property
    def mean_tool_error(self) -> float:
        """Mean distance between tool and path [m]; infinite where the run was broken off."""
        return float(self.tool_error[self.window].mean()) if self.completed else float("inf")

    @property
    def max_tool_error(self) -> float:
        """Largest distance between tool and path [m]."""
        return float(self.tool_error[self.window].max()) if self.completed else float("inf")

    @property
    def torque_rms(self) -> Array:
        """RMS of the commanded torque per joint [N m]."""
        return np.asarray(np.sqrt(np.mean(self.torque[self._rows] ** 2, axis=0)))

    @property
    def feedback_rms(self) -> Array:
        """RMS of its feedback part per joint [N m]."""
        return np.asarray(np.sqrt(np.mean(self.feedback[self._rows] ** 2, axis=0)))

    @property
    def feedback_share(self) -> float:
        """RMS of the feedback over RMS of the torque, all joints together."""
        return float(np.linalg.norm(self.feedback_rms) / np.linalg.norm(self.torque_rms))

    @property
    def _rows(self) -> slice:
        return self.window if self.completed else slice(None)

    def figures(self) -> dict[str, Any]:
        """The numbers, for JSON; null where a run was broken off."""
        done = self.completed
        return {
            "controller": self.controller,
            "title": self.title,
            "completed": done,
            "max_joint_error": self.max_joint_error if done else None,
            "joint_error": self.joint_error.tolist() if done else None,
            "mean_cartesian_error": self.mean_tool_error if done else None,
            "max_cartesian_error": self.max_tool_error if done else None,
            **{name: plain(getattr(self, name)) for name in TOLD},
        }

    def summary(self) -> str:
        """One line for people."""
        if not self.completed:
            return f"{self.title} along {self.path}: broken off after {self.time[-1]:.2f} s, the error became too large"
        return (
            f"{self.title} along {self.path}: joints within {np.degrees(self.max_joint_error):.3g}°, tool within "
            f"{1e3 * self.mean_tool_error:.3g} mm in the mean and {1e3 * self.max_tool_error:.3g} mm at most, feedback "
            f"{100 * self.feedback_share:.3g} % of the torque"
        )

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_result(path, "armid tracking run 1", {"path": self.path, **self.to_data()})

    def to_data(self) -> dict[str, Any]:
        """Numbers and series of at most 100 Hz, for JSON."""
        cycle = float(self.time[1] - self.time[0]) if len(self.time) > 1 else 1.0
        step = max(1, round(1.0 / (SAVED_HZ * cycle)))
        arrays = {
            name: getattr(self, name)[::step]
            for name in ("time", "desired", "measured", "torque", "feedback", "tool_error")
        }
        arrays |= {name: getattr(self, name)[::step, :3, 3] for name in ("tool_desired", "tool_measured")}
        series = {name: np.round(values, 9).tolist() for name, values in arrays.items()}
        window = [float(self.time[0] + cycle * edge) for edge in (self.window.start, self.window.stop)]
        return {**self.figures(), "window_s": window, "series": series}


@dataclass(frozen=True, eq=False)
class TrackingComparison:
    """Several controllers on the same path, with the same bandwidth.

    Attributes:
        robot: name of the arm.
        path: name of the path.
        cycle_s: of all controllers [s].
        gains: of all controllers.
        runs: one per controller.
        options: how it was made, seeds included.
        notes: what was left out.
    """

    robot: str
    path: str
    cycle_s: float
    gains: Gains
    runs: tuple[Tracking, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        return short(self, f"{self.robot} along {self.path}", *(run.title for run in self.runs))

    def run(self, controller: str) -> Tracking:
        """The first run whose controller or title begins with `controller`."""
        return next(run for run in self.runs if run.controller == controller or run.title.startswith(controller))

    def summary(self) -> str:
        """A table for people."""
        header = ("", "joint max [°]", "tool mean [mm]", "tool max [mm]", "feedback", "compute [µs]")
        rows = [header, *(_cells(run) for run in self.runs)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
        bandwidth = " ".join(f"{value:.3g}" for value in self.gains.bandwidth_hz)
        lines = [
            f"{self.robot} along {self.path}, cycle {1e3 * self.cycle_s:g} ms; bandwidth {bandwidth} Hz "
            f"({self.gains.rule})"
        ]
        for row in rows:
            rest = "  ".join(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
            lines.append(f"  {row[0]:<{widths[0]}}  {rest}")
        return "\n".join([*lines, *map(str, self.notes)])

    def to_data(self) -> dict[str, Any]:
        """Everything, for JSON; angles in rad, lengths in m, shares as fractions."""
        own = {name: getattr(self, name) for name in ("robot", "path", "cycle_s", "options", "notes")}
        return dict(plain({**own, "gains": self.gains.to_data(), "runs": [run.to_data() for run in self.runs]}))

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_result(path, FORMAT, self.to_data())


def _cells(run: Tracking) -> tuple[str, ...]:
    if not run.completed:
        return run.title, "broken off", f"at {run.time[-1]:.2f} s", "", "", f"{1e6 * run.computing.mean_s:.0f}"
    return (
        run.title,
        f"{np.degrees(run.max_joint_error):.3g}",
        f"{1e3 * run.mean_tool_error:.3g}",
        f"{1e3 * run.max_tool_error:.3g}",
        f"{100 * run.feedback_share:.3g} %",
        f"{1e6 * run.computing.mean_s:.0f}",
    )


MOST_POINTS = 2000
_WORDS = {"pid": "PID", "feedforward": "feed-forward", "computed-torque": "computed torque"}


def path_figure(comparison: TrackingComparison) -> theme.Picture:
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
    result: theme.Picture = figure
    return result


def torque_figure(run: Tracking) -> theme.Picture:
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


def error_figure(comparison: TrackingComparison) -> theme.Picture:
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
