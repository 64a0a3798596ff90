"""Results of tracking: errors of joints and tool, torque and its feedback part, timing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid._version import __version__
from armid.arrays import Array
from armid.control.gains import Gains
from armid.experiment.drive import Timing
from armid.files import write_text

FORMAT = "armid tracking 1"
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
        return np.linalg.norm(self.tool_desired[:, :3, 3] - self.tool_measured[:, :3, 3], axis=1)

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
        return np.sqrt(np.mean(self.torque[self._rows] ** 2, axis=0))

    @property
    def feedback_rms(self) -> Array:
        """RMS of its feedback part per joint [N m]."""
        return np.sqrt(np.mean(self.feedback[self._rows] ** 2, axis=0))

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
            "torque_rms": self.torque_rms.tolist(),
            "feedback_rms": self.feedback_rms.tolist(),
            "feedback_share": self.feedback_share,
            "timing": vars(self.timing),
            "computing": vars(self.computing),
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
        data = {"format": "armid tracking run 1", "armid": __version__, "path": self.path, **self.to_data()}
        write_text(Path(path), json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n")

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
        notes: findings in sentences.
    """

    robot: str
    path: str
    cycle_s: float
    gains: Gains
    runs: tuple[Tracking, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

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
        return "\n".join([*lines, *self.notes])

    def to_data(self) -> dict[str, Any]:
        """Everything, for JSON; angles in rad, lengths in m, shares as fractions."""
        return {
            "format": FORMAT,
            "armid": __version__,
            "robot": self.robot,
            "path": self.path,
            "cycle_s": self.cycle_s,
            "gains": self.gains.to_data(),
            "runs": [run.to_data() for run in self.runs],
            "options": dict(self.options),
            "notes": list(self.notes),
        }

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        write_text(Path(path), json.dumps(self.to_data(), ensure_ascii=False, allow_nan=False) + "\n")


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
