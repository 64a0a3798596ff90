"""Where searches run: in this process, or in others that end with their parent and never see its Ctrl-C."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from multiprocessing import connection, resource_tracker
from multiprocessing.synchronize import Event
from types import FrameType
from typing import Any

from armid.dynamics.threads import set_threads
from armid.excitation.problem import end_when

#: A search: what it finds within so many seconds (processes share no clock). It can be sent to other processes.
Job = Callable[[float], Any]
#: Takes the number of a job, its result, and whether an interruption cut it short.
Take = Callable[[int, Any, bool], None]
#: Runs jobs, numbered from `first`, until a deadline, and hands over each result.
RunAll = Callable[[Sequence[Job], int, float, Take], None]
_POLL_S = 0.2  # between looks for an interruption


@contextmanager
def workers(count: int, compile_first: Callable[[], None]) -> Iterator[RunAll]:
    """Run jobs here, or in `count` processes; these find what `compile_first` compiles in the cache.

    On an interruption all jobs end with what they have, and KeyboardInterrupt is raised.
    """
    if count <= 1:
        yield _run_here
        return
    compile_first()
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with _main_module_hidden(), interruptions_held():
        pool = ProcessPoolExecutor(count, context, initializer=_prepare_worker, initargs=(stop,))
        for _ in range(count):
            pool.submit(int)  # starts the processes while the main module is hidden
    try:
        yield partial(_run_in_pool, pool, stop)
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare_worker(stop: Event) -> None:
    """One thread per process; an interruption is the parent's affair, which then asks for what there is."""
    set_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_when(stop.is_set)
    end_with_parent()


def end_with_parent() -> None:
    """Let this process go when its parent has gone: a killed one can stop nobody, but the pipe it held is closed."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        assert parent is not None
        connection.wait([parent.sentinel])
        os._exit(1)

    if parent is not None:
        threading.Thread(target=watch, daemon=True).start()


def stop_workers(pool: ProcessPoolExecutor, begun: Iterable[Future[Any]] = (), grace_s: float = 3.0) -> None:
    """End a pool after an interruption: what is begun has a moment to end, then the processes are stopped."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    try:
        wait([one for one in begun if one.running()], grace_s)
    finally:
        for process in processes:
            process.terminate()


def _run_here(jobs: Sequence[Job], first: int, deadline: float, take: Take) -> None:
    for index, job in enumerate(jobs, start=first):
        if index > 0 and time.monotonic() > deadline:
            break
        take(index, job(deadline - time.monotonic()), False)


def _run_in_pool(
    pool: ProcessPoolExecutor,
    stop: Event,
    jobs: Sequence[Job],
    first: int,
    deadline: float,
    take: Take,
) -> None:
    left = deadline - time.monotonic()
    with _interruptions() as interrupted:
        pending: dict[Future[Any], int] = {pool.submit(job, left): index for index, job in enumerate(jobs, start=first)}
        while pending:
            done, _ = wait(pending, _POLL_S, return_when=FIRST_COMPLETED)
            cut_short = stop.is_set()
            for future in done:
                take(pending.pop(future), future.result(), cut_short)
            if interrupted:
                stop.set()
            if interrupted or time.monotonic() > deadline:
                for future in [future for future in pending if future.cancel()]:
                    del pending[future]
    if interrupted:
        raise KeyboardInterrupt


@contextmanager
def interruptions_held() -> Iterator[None]:
    """Interruptions wait until the end of this; processes started here never see any, not even while they start."""
    if not hasattr(signal, "pthread_sigmask"):  # not on Windows
        yield
        return
    resource_tracker.ensure_running()  # its own start would end the holding
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interruptions() -> Iterator[list[int]]:
    """Interruptions are noted in a list: raised anywhere, they could leave the pool's locks taken. A second is raised.

    A program with its own way to take interruptions keeps it, as does one that searches in another thread.
    """
    noted: list[int] = []

    def take(number: int, frame: FrameType | None) -> None:
        if noted:
            signal.default_int_handler(number, frame)
        noted.append(number)

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    mine = usual and threading.current_thread() is threading.main_thread()
    if mine:
        signal.signal(signal.SIGINT, take)
    try:
        yield noted
    finally:
        if mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Keep new processes from running the user's script again: our workers need nothing of it."""
    main = sys.modules["__main__"]
    names: tuple[str, ...] = ("__file__", "__spec__")
    hidden = {name: main.__dict__.pop(name) for name in names if name in main.__dict__}
    main.__dict__["__spec__"] = None
    try:
        yield
    finally:
        main.__dict__.pop("__spec__", None)
        main.__dict__.update(hidden)
