"""RTDE, the data stream of Universal Robots' controllers, read row by row.

The receive interface of ur-rtde hands out the newest values, one quantity at a time: at 500 Hz on a busy machine about
a third of the rows was never seen, and some held values of two rows. A recording needs every row that was sent, so the
stream itself is read here. Protocol: Universal Robots, "Real-Time Data Exchange (RTDE) guide", version 2.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidError

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
