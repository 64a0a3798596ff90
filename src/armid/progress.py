"""What long work tells while it goes on: a text and the share that is done, to whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[str, float], None]

_LISTENER: ContextVar[Progress | None] = ContextVar("armid progress", default=None)


@contextmanager
def watch_progress(listener: Progress | None) -> Iterator[None]:
    """Call `listener` with text and share (0 to 1) of what is done inside; None: nobody listens."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report_progress(text: str, share: float) -> None:
    """Say what is being done and which share of the work, 0 to 1, is behind."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(text, share)


@contextmanager
def progress_part(first: float, last: float) -> Iterator[None]:
    """What is told inside is that part of the whole: a share of 0 counts as `first`, one of 1 as `last`."""
    outer = _LISTENER.get()
    if outer is None:
        yield
        return
    whole = outer  # for the closure: never None

    def inner(text: str, share: float) -> None:
        whole(text, first + share * (last - first))

    with watch_progress(inner):
        yield
