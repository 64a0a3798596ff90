"""Who gets anything from the page's server, and what it says where its extra is missing."""

import asyncio
import importlib.util

import pytest

from armid.errors import MissingExtraError
from armid.studio import server
from armid.studio.server import Guard

HOST, COOKIE = "127.0.0.1:8000", "armid-studio-8000=secret"


async def _passed(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


def asked(kind="http", query="", method="GET", **headers):
    """What the guard answers: the first message that it, or the app behind it, sends."""
    sent = []

    async def send(message):
        sent.append(message)

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "path": "/arm", "query_string": query.encode(), "headers": given, "method": method}
    asyncio.run(Guard(_passed, "secret", 8000, largest=100)(scope, None, send))
    return sent[0]


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (403, {"host": HOST}),  # no token
        (403, {"host": HOST, "query": "token=wrong"}),
        (403, {"host": HOST, "cookie": "armid-studio-8000=wrong"}),
        (403, {"host": HOST, "cookie": "armid-studio-9=secret"}),  # of another studio
        (403, {"host": "evil.example:8000", "cookie": COOKIE}),  # a name that was made to lead here
        (403, {"host": HOST, "cookie": COOKIE, "origin": "http://evil.example"}),
        (403, {"cookie": COOKIE}),
        (200, {"host": HOST, "cookie": COOKIE}),
        (200, {"host": "localhost:8000", "cookie": COOKIE, "origin": "http://localhost:8000"}),
        (413, {"host": HOST, "cookie": COOKIE, "method": "POST", "content_length": "101"}),
        (413, {"host": HOST, "cookie": COOKIE, "method": "POST"}),  # of unknown length
        (200, {"host": HOST, "cookie": COOKIE, "method": "POST", "content_length": "100"}),
    ],
)
def test_only_those_who_know_the_token_get_in(status, request_):
    """From this machine's own names, with the token, and with no more than a file may have."""
    assert asked(**request_)["status"] == status


def test_the_token_leaves_the_address():
    """It becomes a cookie that no script and no other site can use."""
    answer = asked(host=HOST, query="token=secret")
    headers = dict(answer["headers"])
    assert answer["status"] == 303
    assert headers[b"location"] == b"/arm"
    assert headers[b"set-cookie"] == b"armid-studio-8000=secret; Path=/; HttpOnly; SameSite=Strict"


def test_sockets_of_other_sites_are_closed():
    """As other requests are: the page's own traffic goes over a socket."""
    assert asked("websocket", host=HOST)["type"] == "websocket.close"
    assert asked("websocket", host=HOST, cookie=COOKIE, origin="http://evil.example")["type"] == "websocket.close"


def test_without_its_extra_it_says_how_to_install_it(monkeypatch, tmp_path):
    """One sentence, before anything is made."""
    known = importlib.util.find_spec
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == "nicegui" else known(name))
    with pytest.raises(MissingExtraError, match=r"armid\[studio\]"):
        server.serve(tmp_path / "new", tell=print)
    assert not (tmp_path / "new").exists()
