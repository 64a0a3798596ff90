"""Live recording: rows from a controller into a log, looked at while they come; what is there is kept in any case.

RTDE, the data stream of Universal Robots' controllers, is read row by row. The receive interface of ur-rtde hands out
the newest values, one quantity at a time: at 500 Hz on a busy machine about a third of the rows was never seen, and
some held values of two rows. A recording needs every row that was sent, so the stream itself is read here. Protocol:
Universal Robots, "Real-Time Data Exchange (RTDE) guide", version 2.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidError, UnknownNameError
from armid.logs import Log, LogInfo, write_log
from armid.logs.csv_file import RTDE_FIELDS, RtdeTable, write_rows
from armid.logs.files import check_target
from armid.logs.table import ordered
from armid.progress import report_progress
from armid.signals.doctor import Examination, examine

PORT = 30004
VERSION = 2
_VERSION, _CONTROLLER, _OUTPUTS, _START, _DATA = b"VvOSU"
_SIZES = {"DOUBLE": 1, "VECTOR3D": 3, "VECTOR6D": 6}  # numbers of a field, by its type
_OTHERS = 100  # packages of other kinds that may come before an answer
_BUFFER = 1 << 22  # bytes that wait in the kernel while rows are looked at


class RtdeError(ArmidError):
    """A controller cannot be recorded from."""


class RtdeConnection:
    """A controller that sends rows of numbers; use it in a `with` block.

    Attributes:
        controller: version of its software: major, minor, bugfix, build.
        rate_hz: at which it sends.
        columns: numbers of a row that belong to each field, by its name.
    """

    def __init__(
        self,
        host: str,
        fields: Sequence[str],
        *,
        port: int = PORT,
        rate_hz: float | None = None,
        timeout_s: float = 5.0,
    ) -> None:
        """Connect, agree on what is sent, and start.

        Args:
            host: name or address of the controller.
            fields: what is wanted, as the guide names it; numbers only.
            port: of the controller.
            rate_hz: rows per second (default: 500, or 125 of a controller before version 5).
            timeout_s: how long an answer may take.

        Raises:
            RtdeError: it is not there, speaks another language, or does not know a field.
        """
        self.name, self._waiting = f"{host}:{port}", b""
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except (OSError, UnicodeError) as error:
            raise RtdeError(f"{self.name}: cannot be reached ({error}); is it the controller's address?") from None
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            self._agree(fields, rate_hz)
        except BaseException as error:
            self._socket.close()
            if isinstance(error, OSError):
                raise RtdeError(f"{self.name}: broke off before the first row ({error})") from None
            raise

    def __enter__(self) -> RtdeConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def rows(self) -> Array:
        """All rows (rows, numbers) that have come since the last call, waiting for the first.

        Raises:
            OSError: the connection is lost, or silent for too long.
        """
        found: list[bytes] = []
        while not found:
            found = [body[1:] for kind, body in self._packages() if kind == _DATA]
        width = 8 * sum(len(range(*place.indices(1 << 16))) for place in self.columns.values())
        if any(len(body) != width for body in found):
            raise RtdeError(f"{self.name}: sends rows of another length than it said")
        return np.frombuffer(b"".join(found), dtype=">f8").reshape(len(found), -1).astype(np.float64)

    def _agree(self, fields: Sequence[str], rate_hz: float | None) -> None:
        if self._asked(_VERSION, struct.pack(">H", VERSION)) != b"\x01":
            raise RtdeError(f"{self.name}: refuses version {VERSION} of the RTDE protocol; update its software")
        answer = self._asked(_CONTROLLER)
        self.controller: tuple[int, ...] = struct.unpack(">4I", answer) if len(answer) == 16 else (0, 0, 0, 0)
        self.rate_hz = rate_hz or (500.0 if self.controller[0] >= 5 else 125.0)
        kinds = self._asked(_OUTPUTS, struct.pack(">d", self.rate_hz) + ",".join(fields).encode())[1:]
        types = kinds.decode("ascii", "replace").split(",")
        for field, kind in zip(fields, types, strict=False):
            if kind not in _SIZES:
                raise RtdeError(f"{self.name}: does not send {field} as numbers ({kind[:40]!r}); update its software")
        if len(types) != len(fields):
            raise RtdeError(f"{self.name}: knows {len(types)} of {len(fields)} fields; update its software")
        ends = np.cumsum([0, *(_SIZES[kind] for kind in types)]).tolist()
        self.columns = {field: slice(*ends[k : k + 2]) for k, field in enumerate(fields)}
        if self._asked(_START) != b"\x01":
            raise RtdeError(f"{self.name}: does not start to send; is another client in its way?")

    def _asked(self, kind: int, body: bytes = b"") -> bytes:
        """The answer to a package of some kind, which is of the same kind; warnings and texts before it are skipped."""
        self._socket.sendall(struct.pack(">HB", 3 + len(body), kind) + body)
        skipped = 0
        while skipped < _OTHERS:
            for found, answer in self._packages(most=1):
                if found == kind:
                    return answer
                skipped += 1
        raise RtdeError(f"{self.name}: does not answer as an RTDE server does")

    def _packages(self, most: int | None = None) -> list[tuple[int, bytes]]:
        """Kind and body of whole packages, at most so many; reads where none is waiting."""
        result: list[tuple[int, bytes]] = []
        while not result:
            at = 0
            while len(self._waiting) - at >= 3 and len(result) != most:
                size, kind = struct.unpack_from(">HB", self._waiting, at)
                if size < 3:
                    raise RtdeError(f"{self.name}: does not speak RTDE")
                if len(self._waiting) - at < size:
                    break
                result.append((kind, self._waiting[at + 3 : at + size]))
                at += size
            self._waiting = self._waiting[at:]
            if not result:
                more = self._socket.recv(1 << 16)
                if not more:
                    raise ConnectionResetError("it was closed by the controller")
                self._waiting += more
        return result


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
    force: bool = False,
    tell: Callable[[str], None] | None = None,
) -> LiveRecording:
    """Record from a controller until the time is over, an interruption (Ctrl-C) or the end of the connection.

    A connection that drops is made again; the rows that were not sent meanwhile are a gap, which is named. However it
    ends, what has come is written. While it goes on, the rows are in a file beside it, ``NAME.part.csv``: a log that
    is there even if the program is killed.

    Args:
        address: ``ur://HOST`` or ``ur://HOST:PORT``.
        path: the log to write: Parquet, CSV or MCAP.
        seconds: how long, by the controller's clock (default: until it is interrupted).
        rate_hz: rows per second (default: the controller's own).
        robot: its name, for the log.
        patience_s: how long to try to connect again.
        force: overwrite an existing log; without it one is refused, since no recording can be made again.
        tell: is told, while it goes on, what the log doctor sees; once each.

    Raises:
        ArmidError: the address cannot be recorded from, the log exists already, or nothing came.
    """
    path = check_target(path)  # before the first row: nothing is recorded that could not be kept
    if path.exists() and not force:
        raise ArmidError(f"{path}: exists already; choose another name with -o or overwrite it with --force")
    part = path.with_suffix(".part.csv")
    if part.exists():
        raise ArmidError(f"{part}: holds rows of a recording that was killed, or still goes on; read it, then move it")
    session = _Session(address, rate_hz, patience_s, tell or (lambda text: None))
    session.robot, session.part = robot, part
    ended = session.run(seconds)
    if not session.parts:
        raise ArmidError(f"{address}: no row came ({ended})")
    log = session.log()
    write_log(log, path)
    part.unlink(missing_ok=True)
    return LiveRecording(log, session.gaps(), examine(log), ended)


class _Session:
    """The rows so far, and the connection they come from."""

    def __init__(self, address: str, rate_hz: float | None, patience_s: float, tell: Callable[[str], None]) -> None:
        self.address, self.patience_s, self.tell = address, patience_s, tell
        self.robot, self.part, self.kept = "", Path(), True
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
                made = RtdeConnection(
                    self.host, ("timestamp", *RTDE_FIELDS.values()), port=self.port, rate_hz=self.rate_hz
                )
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
                self._keep(len(rows))
            length = self.parts[-1][-1, 0] - start
            if seconds is not None and length >= seconds - 1.6 / connection.rate_hz:
                return "complete"
            self._look(length, seconds)

    def _keep(self, count: int) -> None:
        """The newest rows into the file beside the log; where the disk refuses, they are in memory only."""
        log = self.log(last=count)
        try:
            if count == self.count:
                write_log(log, self.part)
            elif self.kept:
                with self.part.open("a", encoding="utf-8", newline="") as file:
                    write_rows(log, ordered(log.channels), file)
        except (OSError, ArmidError) as error:
            self.kept = False
            self.tell(f"{self.part}: cannot be written ({error}); the rows are kept in memory only")

    def _look(self, length: float, seconds: float | None) -> None:
        """Show progress, and now and then what the log doctor sees in the newest rows."""
        report_progress(f"{self.count} rows, {length:.0f} s", 0.0 if seconds is None else min(1.0, length / seconds))
        if length - self.looked < LOOK_S:
            return
        self.looked = length
        recent = self.log(last=int(WINDOW_S * (self.rate_hz or 1.0)))
        for finding in examine(recent).findings:
            if finding.code in LIVE and (finding.code, finding.joint) not in self.said:
                self.said.add((finding.code, finding.joint))
                self.tell(f"{finding.code}{f' ({finding.joint})' if finding.joint else ''}: {finding.what}")

    def log(self, last: int = 0) -> Log:
        """The rows, or the last of them, as a log."""
        parts, left = [], last or self.count
        for part in reversed(self.parts):
            parts.append(part[-left:])
            left -= len(part)
            if left <= 0:
                break
        rows = np.concatenate(parts[::-1])
        places = {name: slice(1 + 6 * k, 7 + 6 * k) for k, name in enumerate(RTDE_FIELDS)}
        version = ".".join(map(str, self.controller))
        history = {"recorded_from": self.address, "controller": version, "drops": len(self.drops)}
        info = LogInfo(
            RtdeTable.joints, "current", rate_hz=self.rate_hz, robot=self.robot, source=self.address, history=history
        )
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
