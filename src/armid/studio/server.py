"""The server of the page: this machine alone, and only for those who know the token in the address."""

from __future__ import annotations

import hmac
import logging
import secrets
import socket
from collections.abc import Callable
from http.cookies import SimpleCookie
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from armid.errors import ArmidError, MissingExtraError

HOST = "127.0.0.1"
_REFUSED = b"Open the address that `armid studio` has printed: it holds a token."


class Guard:
    """ASGI middleware: other hosts' pages, requests without the token and files that are too large get nothing."""

    def __init__(self, app: Any, token: str, port: int, largest: int) -> None:
        """Stand before `app`."""
        self.app, self.token, self.largest = app, token, largest
        self.cookie = f"armid-studio-{port}"
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on what may pass."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        origin = headers.get("origin", "").removeprefix("http://")
        if headers.get("host") not in self.hosts or (origin and origin not in self.hosts):
            await self._answer(scope, send, 403, _REFUSED)
        elif given and hmac.compare_digest(given.encode(), self.token.encode()) and scope["type"] == "http":
            cookie = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            more = [(b"set-cookie", cookie.encode()), (b"location", scope["path"].encode("ascii", "ignore") or b"/")]
            await self._answer(scope, send, 303, b"", more)
        elif not self._known(headers.get("cookie", "")):
            await self._answer(scope, send, 403, _REFUSED)
        elif scope.get("method") == "POST" and not self._fits(headers):
            await self._answer(scope, send, 413, b"the file is too large")
        else:
            await self.app(scope, receive, send)

    def _known(self, cookies: str) -> bool:
        found = SimpleCookie(cookies).get(self.cookie)
        return found is not None and hmac.compare_digest(found.value.encode(), self.token.encode())

    def _fits(self, headers: dict[str, str]) -> bool:
        length = headers.get("content-length", "")
        return length.isdigit() and int(length) <= self.largest

    @staticmethod
    async def _answer(
        scope: Any, send: Any, status: int, body: bytes, more: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        head = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *(more or [])]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": body})


def serve(folder: Path, *, port: int = 0, browser: bool = True, tell: Callable[[str], None]) -> None:
    """Serve the page until it is interrupted.

    Args:
        folder: of the run; made if it is not there.
        port: 0 for any that is free.
        browser: open the page.
        tell: told the address.

    Raises:
        MissingExtraError: NiceGUI is not installed.
        ArmidError: the folder cannot be made, or the port is taken.
    """
    if find_spec("nicegui") is None:
        raise MissingExtraError("the studio", "studio")
    from armid.reporting.page import plotly_script
    from armid.studio.folder import LARGEST_UPLOAD, Studio

    plotly_script()  # whether it is there
    studio, port, token = Studio(folder), _free(port), secrets.token_urlsafe(24)
    from nicegui import app, ui

    from armid.studio.screens import add_screens

    add_screens(studio)
    app.add_middleware(Guard, token=token, port=port, largest=LARGEST_UPLOAD)
    app.on_startup(lambda: tell(f"http://{HOST}:{port}/?token={token}"))
    app.on_shutdown(studio.work.stop)
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    ui.run(
        host=HOST, port=port, title="armid studio", dark=None, reload=False, show_welcome_message=False, favicon="🦾",
        reconnect_timeout=60.0, uvicorn_logging_level="critical",  # a page that leaves while it loads is no error
        show=f"/?token={token}" if browser else False, language="en-US",
    )  # fmt: skip


def _free(port: int) -> int:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except OSError as error:
            raise ArmidError(f"port {port} cannot be used ({error.strerror}); give another with --port") from None
        return int(tried.getsockname()[1])
