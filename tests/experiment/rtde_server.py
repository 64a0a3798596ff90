"""A small RTDE server, as a UR controller's: handshake, recipes, data at a fixed rate, and faults on demand."""

import contextlib
import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass, field

import numpy as np

FORMS = {"DOUBLE": "d", "VECTOR6D": "6d", "INT32": "i"}
VECTORS = ("actual_q", "actual_qd", "actual_current", "target_q", "target_moment", "joint_temperatures")
KNOWN = {"timestamp": "DOUBLE", "robot_mode": "INT32"} | dict.fromkeys(VECTORS, "VECTOR6D")


def reading(name, at):
    """The value of a field at a controller's time; each row is another one."""
    if name in VECTORS:
        return tuple(np.sin(0.7 * at + 0.1 * VECTORS.index(name) + np.arange(6)))
    return (at,) if name == "timestamp" else (7,)


@dataclass(eq=False)
class RtdeServer:
    """Serves one client at a time while its `with` block lasts.

    Attributes:
        rate: rows per second, unless the client asks for another.
        version: of the protocol that it accepts.
        controller: version of its software.
        unknown: fields that it does not know.
        drop_after: rows after which the connection is closed once; the clock goes on for `away` seconds.
        stop_after: rows after which it closes for good.
        fast: whether rows come as fast as they can.
        silent: whether it does not start to send.
        sent: timestamps of all rows that were sent.
    """

    rate: float = 500.0
    version: int = 2
    controller: tuple = (5, 11, 1, 0)
    unknown: tuple = ()
    drop_after: int | None = None
    away: float = 0.3
    stop_after: int | None = None
    fast: bool = False
    silent: bool = False
    place: tuple = ("127.0.0.1", 0)
    sent: list = field(default_factory=list)

    def __enter__(self):
        self._listener = socket.create_server(self.place)
        self._listener.settimeout(0.05)
        self.address = f"ur://127.0.0.1:{self._listener.getsockname()[1]}"
        self._end, self._start = threading.Event(), time.monotonic()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join(5.0)
        self._listener.close()

    def _serve(self):
        while not self._end.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            with client, contextlib.suppress(OSError):
                client.settimeout(5.0)
                self._talk(client)
            if self.drop_after is not None and len(self.sent) >= self.drop_after:
                self.drop_after = None
                self._end.wait(self.away)

    def _talk(self, client):
        """Answer until data are wanted, then send them."""
        fields = []
        with client.makefile("rb") as stream:
            while len(head := stream.read(3)) == 3:
                size, kind = struct.unpack(">HB", head)
                body, answer = stream.read(size - 3), b"\x01"
                if kind == ord("V"):
                    answer = struct.pack(">B", struct.unpack(">H", body)[0] == self.version)
                elif kind == ord("v"):
                    answer = struct.pack(">4I", *self.controller)
                elif kind == ord("O"):
                    self.rate = struct.unpack(">d", body[:8])[0] or self.rate
                    fields = body[8:].decode().strip(",").split(",")
                    types = ["NOT_FOUND" if name in self.unknown else KNOWN.get(name, "NOT_FOUND") for name in fields]
                    answer = b"\x01" + ",".join(types).encode()
                elif kind == ord("S"):
                    answer = struct.pack(">B", not self.silent)
                self._send(client, "M", b"\x05hello\x04test\x03")  # controllers talk in between
                self._send(client, chr(kind), answer)
                if kind == ord("S") and not self.silent:
                    self._stream(client, fields)
                    return

    def _stream(self, client, fields):
        form = struct.Struct(">B" + "".join(FORMS[KNOWN[name]] for name in fields))
        row = round((time.monotonic() - self._start) * self.rate)
        if self.fast and self.sent:
            row = round((self.sent[-1] + self.away) * self.rate)
        while not self._end.is_set():
            row += 1
            if not self.fast:
                time.sleep(max(0.0, self._start + row / self.rate - time.monotonic()))
            at = row / self.rate
            self._send(client, "U", form.pack(1, *(value for name in fields for value in reading(name, at))))
            self.sent.append(at)
            if len(self.sent) in (self.drop_after, self.stop_after):
                client.shutdown(socket.SHUT_WR)
                if len(self.sent) == self.stop_after:
                    self._end.set()
                    self._listener.close()
                return

    @staticmethod
    def _send(client, kind, body):
        client.sendall(struct.pack(">HB", 3 + len(body), ord(kind)) + body)


if __name__ == "__main__":  # in a process of its own, for clients that keep Python's lock while they connect
    with RtdeServer(place=(sys.argv[1], int(sys.argv[2]))) as server:
        print("ready", flush=True)
        sys.stdin.read()
    print(*(round(at * server.rate) for at in server.sent))
