"""What long work tells, and how the command line shows it."""

import io
import re
import sys

import pytest

from armid.cli import display
from armid.cli.main import main
from armid.progress import progress_part, report_progress, watch_progress
from tests.validation.arms import write_files


class Terminal(io.StringIO):
    """Standard error of somebody who sits in front of it."""

    def isatty(self):
        return True


def visible(text):
    """The lines that a terminal shows in the end."""
    return [line.split("\r\x1b[K")[-1] for line in text.split("\n")]


def test_parts_of_the_whole():
    """Shares told inside a part count as that part, also one in another; outside nobody listens."""
    heard = []
    with watch_progress(lambda text, share: heard.append((text, share))):
        report_progress("a", 0.1)
        with progress_part(0.2, 0.6):
            report_progress("b", 0.5)
            with progress_part(0.5, 1.0):
                report_progress("c", 0.5)
        report_progress("d", 1.0)
    report_progress("e", 0.0)
    with progress_part(0.0, 0.5):
        report_progress("f", 0.0)
    assert [text for text, _ in heard] == ["a", "b", "c", "d"]
    assert [share for _, share in heard] == pytest.approx([0.1, 0.4, 0.5, 1.0])


def test_the_line_says_what_is_left(monkeypatch):
    """A quarter done after 10 s: about 30 s are left; at the end the line is gone."""
    now, terminal = [100.0], Terminal()
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(display.sys, "stderr", terminal)
    show = display.Display(after_s=2.0, stay=False)
    now[0] = 101.0
    show("reading", 0.1)
    assert terminal.getvalue() == ""  # short work shows nothing
    now[0] = 110.0
    show("thinking", 0.25)
    assert visible(terminal.getvalue()) == ["thinking  25 %  10 s, about 30 s left"]
    show("done", 1.0)
    assert visible(terminal.getvalue()) == [""]


def test_a_new_phase_is_timed_by_itself(monkeypatch):
    """Half of a second phase done in 2 s: 2 s are left, whatever the first took; a bound is called one."""
    now, terminal = [0.0], Terminal()
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(display.sys, "stderr", terminal)
    show = display.Display(most=True)
    for now[0], share in ((30.0, 0.9), (40.0, 0.1), (42.0, 0.5)):
        show("recording", share)
    assert visible(terminal.getvalue()) == ["recording  50 %  42 s, at most 2 s left"]


def test_what_follows_a_finished_phase_is_timed_by_itself(monkeypatch):
    """A phase that told its end and half of the next, 2 s later: 2 s are left."""
    now, terminal = [100.0], Terminal()
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(display.sys, "stderr", terminal)
    show = display.Display(after_s=2.0)
    for now[0], share in ((110.0, 0.5), (140.0, 1.0), (142.0, 0.5)):
        show("reading", share)
    assert visible(terminal.getvalue())[-1] == "reading  50 %  42 s, about 2 s left"


def test_without_a_terminal_a_line_now_and_then(monkeypatch):
    """A file gets whole lines, half a minute apart, and no control characters."""
    now, file = [0.0], io.StringIO()
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(display.sys, "stderr", file)
    show = display.Display()
    for second in range(100):
        now[0] = float(second)
        show("working", second / 100.0)
    assert len(file.getvalue().splitlines()) == 3
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", file.getvalue())


@pytest.mark.parametrize("flags", [(), ("--quiet",)])
def test_identify_shows_progress(tmp_path, monkeypatch, capsys, flags):
    """On a terminal the passes over friction are followed; nothing of it remains, and --quiet is quiet."""
    files, terminal = write_files(tmp_path), Terminal()
    monkeypatch.setattr(sys.modules["armid.cli.main"], "SILENT_S", 0.0)
    monkeypatch.setattr(display.sys, "stderr", terminal)
    code = main(["identify", str(files / "planar.yaml"), str(files / "train.csv"), *flags])
    assert code == 0
    text = terminal.getvalue()
    assert ("friction as random effects, pass 2" in text) == (not flags)
    assert bool(re.search(r"\d+ %  \d+ s, about \d+ s left", text)) == (not flags)
    assert not re.search(r"\d %", "".join(visible(text)))
    assert "friction auto" in capsys.readouterr().out
