"""Live recording: rows from a controller into a log, looked at while they come; what is there is kept in any case."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidError, UnknownNameError
from armid.experiment.rtde import PORT, RtdeConnection, RtdeError
from armid.logs import Log, LogInfo, write_log
from armid.logs.write import check_target
from armid.progress import report_progress
from armid.signals.doctor import Examination, examine

JOINTS = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")
#: Channels of a log and the fields of a UR controller that they hold.
FIELDS = {
    "position": "actual_q",
    "velocity": "actual_qd",
    "current": "actual_current",
    "temperature": "joint_temperatures",
    "command": "target_q",
}
LIVE = ("gaps", "irregular-timestamps", "rate-differs", "stale-rows", "saturated", "dead-channel", "not-a-number")
LOOK_S, WINDOW_S = 5.0, 20.0  # how often the newest rows are looked at, and how many of them
AGAIN_S = 0.2  # between attempts to connect again


@dataclass(frozen=True)
class Gap:
    """Rows that are missing: when [s], for how long [s], how many, and whether the connection was down."""

    time_s: float
    seconds: float
    rows: int
    dropped: bool


@dataclass(frozen=True, eq=False)
class LiveRecording:
    """What was recorded.

    Attributes:
        log: the rows, time from 0.
        gaps: where rows are missing.
        examination: what the log doctor finds in it.
        ended: why it ended: ``complete``, ``interrupted``, ``connection lost`` or ``controller restarted``.
    """

    log: Log
    gaps: tuple[Gap, ...]
    examination: Examination
    ended: str

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        seconds = float(self.log.time[-1])
        rate = (len(self.log) - 1) / seconds if seconds > 0.0 else None
        counts = {"rows": len(self.log), "seconds": seconds, "rate_hz": rate}
        return {**counts, "ended": self.ended, "gaps": list(self.gaps), **self.examination.as_data()}


def record(
    address: str,
    path: str | Path,
    *,
    seconds: float | None = None,
    rate_hz: float | None = None,
    robot: str = "",
    patience_s: float = 10.0,
    tell: Callable[[str], None] | None = None,
) -> LiveRecording:
    """Record from a controller until the time is over, an interruption (Ctrl-C) or the end of the connection.

    A connection that drops is made again; the rows that were not sent meanwhile are a gap, which is named. However it
    ends, what has come is written.

    Args:
        address: ``ur://HOST`` or ``ur://HOST:PORT``.
        path: the log to write: Parquet, CSV or MCAP.
        seconds: how long, by the controller's clock (default: until it is interrupted).
        rate_hz: rows per second (default: the controller's own).
        robot: its name, for the log.
        patience_s: how long to try to connect again.
        tell: is told, while it goes on, what the log doctor sees; once each.

    Raises:
        ArmidError: the address cannot be recorded from, or nothing came.
    """
    check_target(path)  # before the first row: nothing is recorded that could not be kept
    session = _Session(address, rate_hz, patience_s, tell or (lambda text: None))
    ended = session.run(seconds)
    if not session.parts:
        raise ArmidError(f"{address}: no row came ({ended})")
    log = session.log(robot)
    write_log(log, path)
    return LiveRecording(log, session.gaps(), examine(log), ended)


class _Session:
    """The rows so far, and the connection they come from."""

    def __init__(self, address: str, rate_hz: float | None, patience_s: float, tell: Callable[[str], None]) -> None:
        self.address, self.patience_s, self.tell = address, patience_s, tell
        self.host, self.port = _host(address)
        self.rate_hz, self.parts, self.drops = rate_hz, list[Array](), list[int]()
        self.count, self.said, self.looked = 0, set[tuple[str, str | None]](), 0.0
        self.controller: tuple[int, ...] = ()

    def run(self, seconds: float | None) -> str:
        """Receive until something ends it; says what."""
        patience_s = 0.0
        try:
            while True:
                with self._connection(patience_s) as connection:
                    if ended := self._receive(connection, seconds):
                        return ended
                self.drops.append(self.count)
                self.tell("the connection dropped; connecting again")
                patience_s = self.patience_s
        except KeyboardInterrupt:
            return "interrupted"
        except RtdeError:
            if not self.parts:
                raise
            return "connection lost"

    def _connection(self, patience_s: float) -> RtdeConnection:
        """A connection, tried for so long."""
        until = time.monotonic() + patience_s
        while True:
            try:
                made = RtdeConnection(self.host, ("timestamp", *FIELDS.values()), port=self.port, rate_hz=self.rate_hz)
            except RtdeError:
                if time.monotonic() >= until:
                    raise
                time.sleep(AGAIN_S)
            else:
                self.rate_hz, self.controller = made.rate_hz, made.controller
                return made

    def _receive(self, connection: RtdeConnection, seconds: float | None) -> str:
        """Take rows until the connection is lost (an empty text) or the recording has ended."""
        while True:
            try:
                rows = connection.rows()
            except OSError:
                return ""
            if self.count and rows[0, 0] < self.parts[-1][-1, 0]:
                return "controller restarted"
            start = self.parts[0][0, 0] if self.count else rows[0, 0]
            if seconds is not None:
                rows = rows[rows[:, 0] - start < seconds - 0.5 / connection.rate_hz]
            if len(rows):
                self.parts.append(rows)
                self.count += len(rows)
            length = self.parts[-1][-1, 0] - start
            if seconds is not None and length >= seconds - 1.6 / connection.rate_hz:
                return "complete"
            self._look(length, seconds)

    def _look(self, length: float, seconds: float | None) -> None:
        """Show progress, and now and then what the log doctor sees in the newest rows."""
        report_progress(f"{self.count} rows, {length:.0f} s", 0.0 if seconds is None else min(1.0, length / seconds))
        if length - self.looked < LOOK_S:
            return
        self.looked = length
        recent = self.log("", last=int(WINDOW_S * (self.rate_hz or 1.0)))
        for finding in examine(recent).findings:
            if finding.code in LIVE and (finding.code, finding.joint) not in self.said:
                self.said.add((finding.code, finding.joint))
                self.tell(f"{finding.code}{f' ({finding.joint})' if finding.joint else ''}: {finding.what}")

    def log(self, robot: str, last: int = 0) -> Log:
        """The rows, or the last of them, as a log."""
        parts, left = [], last or self.count
        for part in reversed(self.parts):
            parts.append(part[-left:])
            left -= len(part)
            if left <= 0:
                break
        rows = np.concatenate(parts[::-1])
        places = {name: slice(1 + 6 * k, 7 + 6 * k) for k, name in enumerate(FIELDS)}
        version = ".".join(map(str, self.controller))
        history = {"recorded_from": self.address, "controller": version, "drops": len(self.drops)}
        info = LogInfo(JOINTS, "current", rate_hz=self.rate_hz, robot=robot, source=self.address, history=history)
        channels = {name: rows[:, place] for name, place in places.items()}
        return Log(rows[:, 0] - self.parts[0][0, 0], channels, info)

    def gaps(self) -> tuple[Gap, ...]:
        """Steps of the controller's clock in which rows are missing."""
        stamps = np.concatenate([part[:, 0] for part in self.parts])
        missing = np.round(np.diff(stamps) * (self.rate_hz or 1.0)).astype(int) - 1
        return tuple(
            Gap(float(stamps[k] - stamps[0]), float(stamps[k + 1] - stamps[k]), int(missing[k]), k + 1 in self.drops)
            for k in np.flatnonzero(missing > 0)
        )


def _host(address: str) -> tuple[str, int]:
    """Host and port of an address."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or PORT
    except ValueError as error:
        raise ArmidError(f"{address}: is no address ({error}); write ur://HOST") from None
    if parts.scheme == "ros":
        raise ArmidError(f"{address}: ROS is recorded by `ros2 bag record`, whose files armid reads")
    if parts.scheme != "ur":
        raise UnknownNameError("address", address, ("ur://HOST", "ur://HOST:PORT"))
    if not host:
        raise ArmidError(f"{address}: names no host; write ur://HOST")
    return host, port
