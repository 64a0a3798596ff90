"""Progress for people: one line that updates on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
import time

SILENT_S = 2.0  # work that is shorter shows nothing
TICK_S = 0.5  # between updates of the clock
EVERY_S = 30.0  # between lines where there is no terminal


class Display:
    """Text, share done and remaining time of one piece of work on standard error.

    Used as a context, it keeps its clock running on a terminal between calls.

    Args:
        what: stands before every text.
        after_s: how long the work lasts before anything is shown [s].
        stay: whether the last line stays on the terminal.
        most: whether the work may end before its share is 1, so that the remaining time is a bound.
        silent: whether nothing is shown at all.
    """

    def __init__(
        self, what: str = "", *, after_s: float = 0.0, stay: bool = True, most: bool = False, silent: bool = False
    ) -> None:
        self.most, self._what, self._after_s, self._stay, self._silent = most, what, after_s, stay, silent
        self._began = self._phase = time.monotonic()
        self._printed = 0.0
        self._now: tuple[str, float] | None = None
        self._shown, self._ended, self._lock = False, threading.Event(), threading.Lock()

    def __call__(self, text: str, share: float) -> None:
        """Show what is done and which share of it."""
        with self._lock:
            if self._now is not None and share < self._now[1]:
                self._phase = time.monotonic()  # another phase, whose share starts at 0 again
            self._now = (text, share)
            self._show()
            if share >= 1.0:
                self._now, self._phase = None, time.monotonic()  # what follows is timed from here
                self._clear()

    def __enter__(self) -> Display:
        if sys.stderr.isatty() and not self._silent:
            threading.Thread(target=self._tick, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.clear()

    def clear(self) -> None:
        """Remove the line, so that results or an error stand alone."""
        with self._lock:
            self._now = None
            self._clear()

    def line(self, text: str, *, timed: bool = True) -> None:
        """Write a line that stays; what follows is timed by itself, unless `timed` is False."""
        self.clear()
        if timed:
            self._began = self._phase = time.monotonic()
            self._printed = 0.0
        if not self._silent:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def _tick(self) -> None:
        while not self._ended.wait(TICK_S):
            with self._lock:
                self._show()

    def _show(self) -> None:
        seconds = time.monotonic() - self._began
        if self._now is None or seconds < self._after_s or self._silent:
            return
        text, share = self._now
        line = f"{self._what}{text}  {100 * share:.0f} %  {duration(seconds)}"
        if 0.0 < share < 1.0:
            so_far, bound = time.monotonic() - self._phase, "at most" if self.most else "about"
            line += f", {bound} {duration(so_far / share * (1.0 - share))} left"
        last = share >= 1.0 and self._stay
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns
            sys.stderr.write(f"\r\x1b[K{line[: width - 1]}" + ("\n" if last else ""))
            self._shown = not last
        elif last or seconds - self._printed > EVERY_S:
            self._printed = seconds
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def _clear(self) -> None:
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def display(options: argparse.Namespace, what: str = "", *, stay: bool = True, most: bool = False) -> Display:
    """Progress of long work, silent where the user wants none."""
    return Display(what, stay=stay, most=most, silent=options.quiet or options.json)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
