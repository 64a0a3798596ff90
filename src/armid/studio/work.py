"""Long work in a process of its own: it reports what it does, can be stopped, and needs no open page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from armid.errors import ArmidError
from armid.escaping import one_line
from armid.files import write_text
from armid.progress import Progress, progress_part, watch_progress

HISTORY = 200  # lines of a job that are kept
_STOP_S = 5.0  # that a process is given to end


class Work:
    """One job at a time, and what is known of the last one.

    Attributes:
        title: of the job, for people.
        state: ``idle``, ``running``, ``done``, ``stopped`` or ``failed``.
        text: what is being done.
        share: which share of it, 0 to 1.
        history: what was done so far.
        error: why it failed.
    """

    def __init__(self) -> None:
        """Nothing to do yet."""
        self.title, self.state, self.text, self.error, self.share = "", "idle", "", "", 0.0
        self.history: deque[str] = deque(maxlen=HISTORY)
        self._process: subprocess.Popen[str] | None = None

    @property
    def running(self) -> bool:
        """Whether a job is going on."""
        return self.state == "running"

    def start(self, title: str, folder: Path, task: str, **options: Any) -> None:
        """Begin a job.

        Args:
            title: for people.
            folder: of the run.
            task: one of `TASKS`.
            options: of the task, plain data.

        Raises:
            ArmidError: another one is going on.
        """
        if self.running:
            raise ArmidError(f"{self.title} is still going on: wait for its end, or stop it")
        self._process = None  # the end of an earlier job is not the end of this one
        self.title, self.state, self.text, self.error, self.share = title, "running", "starting", "", 0.0
        self.history.clear()
        command = [sys.executable, "-m", "armid.studio.work", str(folder), task, json.dumps(options)]
        # A session of its own, so that the processes that a design starts are stopped with it.
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, encoding="utf-8", start_new_session=True
        )
        threading.Thread(target=self._follow, args=(self._process,), daemon=True).start()

    def stop(self) -> None:
        """End the job, if one is going on; its finished stages stay."""
        process = self._process
        if process is None or not self.running:
            return
        self.state, self.text = "stopped", "stopped; what was finished is kept"
        _end(process, signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            _end(process, getattr(signal, "SIGKILL", signal.SIGTERM))

    def _follow(self, process: subprocess.Popen[str]) -> None:
        """Take what the process says, until its end."""
        assert process.stdout is not None
        assert process.stdin is not None
        with process.stdout as lines:
            for said in lines:
                if process is self._process and self.running:
                    self._take(json.loads(said))
        code = process.wait()
        process.stdin.close()
        if process is self._process and self.running:
            self.state = "done" if code == 0 else "failed"
            self.error = self.error or ("" if code == 0 else f"the process ended with {code}; see the terminal")
            self.text, self.share = ("done", 1.0) if code == 0 else (self.error, self.share)

    def _take(self, data: Any) -> None:
        self.error = str(data.get("error", self.error))
        self.share = float(data.get("share", self.share))
        text = one_line(str(data.get("text", self.text)))
        if text != self.text:
            self.history.append(text)
        self.text = text


def _end(process: subprocess.Popen[str], how: signal.Signals) -> None:
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, how)
        else:
            process.terminate()
    except ProcessLookupError:
        pass


def _stages(folder: Path, say: Progress, *, last: str | None = None, views: Sequence[str] = ()) -> None:
    """The procedure up to a stage, and the pictures of what it made."""
    from armid.run.procedure import run, run_stages, stages_of
    from armid.studio.folder import read_settings
    from armid.studio.views import make_view

    settings = read_settings(folder)
    names = [stage.name for stage in stages_of(settings)]
    ending = [*names[: names.index(last) + 1 if last in names else None], *views]
    done = 0

    def tell(text: str, share: float) -> None:
        say(text, (done + min(share, 1.0)) / len(ending))

    def ended(stage: Any) -> None:
        nonlocal done
        done += 1
        say(f"{stage.title}: {'unchanged' if stage.kept else f'{stage.seconds:.1f} s'}", done / len(ending))

    if last is None:
        run(settings, folder, progress=tell, tell=ended)
    else:
        run_stages(settings, folder, last=last, progress=tell, tell=ended)
    for view in views:
        say("drawing", done / len(ending))
        with progress_part(done / len(ending), (done + 1) / len(ending)):
            make_view(folder, view)
        done += 1


def _view(folder: Path, say: Progress, *, names: Sequence[str]) -> None:
    from armid.studio.views import make_view

    for name in names:
        make_view(folder, name)


def _payload(folder: Path, say: Progress, *, log: str) -> None:
    """What the arm carries, from a log with it."""
    from armid.estimation.fit import load_fit
    from armid.logs import read_log
    from armid.payload import identify_payload
    from armid.studio.folder import read_settings
    from armid.studio.views import make_view

    settings = read_settings(folder)
    found = identify_payload(load_fit(folder / "fit.json"), read_log(log, settings.recipe, effort=settings.effort))
    found.save(folder / "payload.json")
    write_text(folder / ".studio" / "payload.txt", found.summary())
    make_view(folder, "use")


#: What a process can be asked to do.
TASKS: dict[str, Callable[..., None]] = {"stages": _stages, "view": _view, "payload": _payload}


def main(arguments: Sequence[str]) -> int:
    """Do a task in this process; what happens is told on standard output, a line of JSON each."""
    folder, task, options = arguments
    out = sys.stdout
    sys.stdout = sys.stderr  # what others print is not ours

    def say(**data: Any) -> None:
        out.write(json.dumps(data) + "\n")
        out.flush()

    def progress(text: str, share: float) -> None:
        say(text=text, share=share)

    try:
        with watch_progress(progress):
            TASKS[task](Path(folder), progress, **json.loads(options))
    except ArmidError as error:
        say(error=str(error))
        return 2
    except OSError as error:
        say(error=f"{error.filename or 'the result'}: cannot be read or written ({error.strerror or error})")
        return 2
    return 0


def _end_with_parent() -> None:
    """Go when the studio has gone, even if it was killed: its end of our standard input is closed then."""
    while os.read(0, 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.exit(main(sys.argv[1:]))
