"""Doing the same to many things: in this process, in worker processes, or on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from itertools import islice
from typing import Any, TypeVar

from armid._version import __version__
from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError, MissingExtraError
from armid.excitation.pool import interruptions_held
from armid.fleet.day import ArmDay, Store
from armid.fleet.description import Fleet
from armid.fleet.partitions import Partition
from armid.fleet.reduce import reduce_partition
from armid.progress import report_progress, watch_progress

FAILURES = 20  # times a task may lose its worker before it is given up
MISSING_S = 20.0  # how long a worker may be missing before another is started
WAIT_S = 0.02  # between looks for results
STARTS = 4  # attempts to start workers
CONNECT_S = 10.0
HERE = "127.0.0.1"  # nothing listens to the network; pages of Dask come with a scheduler of your own
MEMORY = "1.5GB"  # limit per worker process at which Dask starts it anew; the work itself needs far less
#: Dask lets workers give memory back after every array; to take it again each time costs a third of the work.
ALLOCATION = {"MALLOC_TRIM_THRESHOLD_": 512 << 20, "MALLOC_MMAP_THRESHOLD_": 256 << 20}
AHEAD = 4  # tasks per worker that are handed out beforehand; more only fill the scheduler's memory
LEAST_AHEAD = 32

Shared = TypeVar("Shared", Fleet, None)
Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine:
    """Where the work is done; open it with `engine`."""

    def __init__(self, client: Any = None, cluster: Any = None) -> None:
        """Keep the Dask client; None to work in this process.

        Args:
            client: of the cluster.
            cluster: processes of our own, which are started anew if they die.
        """
        self._client, self._cluster = client, cluster
        self._wanted = 0 if cluster is None else len(cluster.worker_spec)
        self._complete = time.monotonic()

    def each(
        self, function: Callable[[Shared, Item], Result], fleet: Shared, items: Iterable[Item]
    ) -> Iterator[tuple[int, Result]]:
        """``function(fleet, item)`` of all items, as they are finished, each with its index; `fleet` may be None.

        A worker that dies takes nothing with it but what it was just doing, which another does again.
        """
        if self._client is None:
            for index, item in enumerate(items):
                # As in a worker: one thread, and what single tasks report does not stand in the way of the whole.
                with watch_progress(None), one_blas_thread():
                    result = function(fleet, item)
                yield index, result
            return
        from distributed import as_completed

        # Every task carries the fleet: data scattered to workers would be lost with the last worker that holds them.
        key, number = "" if fleet is None else fleet.key(), {}
        waiting = iter(enumerate(items))

        def handed_out(count: int) -> list[Any]:
            tasks = []
            for index, item in islice(waiting, count):
                task = self._client.submit(_with_known, function, fleet, key, item, pure=False, retries=2)
                number[task.key] = index
                tasks.append(task)
            return tasks

        ahead = max(LEAST_AHEAD, AHEAD * len(self._client.scheduler_info(n_workers=-1)["workers"]))
        finished = as_completed(handed_out(ahead))
        while not finished.is_empty():
            while not finished.has_ready():
                self._revive()
                time.sleep(WAIT_S)
            task = next(finished)
            result, index = task.result(), number.pop(task.key)
            task.release()
            for more in handed_out(1):
                finished.add(more)
            yield index, result

    def _revive(self) -> None:
        """Start workers in the place of those that have been missing for a while.

        Dask starts a worker anew that dies at work, but not one that dies while it is being started.
        """
        now = time.monotonic()
        if self._cluster is None or self._there() >= self._wanted:
            self._complete = now
        elif now - self._complete > MISSING_S:
            self._cluster.scale(len(self._cluster.worker_spec) + self._wanted - self._there())
            self._complete = now

    def _there(self) -> int:
        return len(self._cluster.scheduler_info["workers"])


@contextmanager
def engine(workers: int = 0, scheduler: str | None = None) -> Iterator[Engine]:
    """Open a place to work.

    Args:
        workers: processes to start on this machine; 0 to work in this process.
        scheduler: address of a Dask scheduler to use instead.

    Raises:
        MissingExtraError: Dask is not installed.
        ArmidError: the scheduler cannot be reached, or has no workers.
    """
    if workers < 0:
        raise ArmidError(f"--workers {workers}: must be 0 or more")
    if workers == 0 and scheduler is None:
        yield Engine()
        return
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtraError("several workers", "fleet") from None
    spawned = {**dask.config.get("distributed.nanny.pre-spawn-environ"), **ALLOCATION}
    settings = {"distributed.scheduler.allowed-failures": FAILURES, "distributed.nanny.pre-spawn-environ": spawned}
    with dask.config.set(settings):
        if scheduler is not None:
            with _connected(Client, scheduler) as client:
                yield Engine(client)
            return
        with _started(LocalCluster, workers) as cluster, Client(cluster) as client:
            yield Engine(client, cluster)


def _started(kind: Any, workers: int) -> Any:
    """Processes of our own; where one dies while it is started, Dask gives all of them up; they are started again."""
    for attempt in range(STARTS):
        try:
            with interruptions_held():
                return kind(
                    n_workers=workers,
                    threads_per_worker=1,
                    memory_limit=MEMORY,
                    silence_logs=50,
                    host=HERE,
                    dashboard_address=f"{HERE}:0",
                    worker_dashboard_address=f"{HERE}:0",
                    scheduler_kwargs={"dashboard": False},
                )
        except RuntimeError as error:
            if attempt == STARTS - 1:
                reason = f"workers die while they are started ({error})"
                raise ArmidError(f"--workers {workers}: {reason}; try fewer, or look at the machine's memory") from None
    raise AssertionError


def arm_days(fleet: Fleet, partitions: Sequence[Partition], store: Store, place: Engine) -> tuple[list[str], int]:
    """Reduce all partitions into the store.

    What the store holds is not computed again, and each new arm-day is stored as soon as it is there, by this process:
    workers need to see the logs, not the store.

    Returns:
        Keys of the arm-days, in the order of the partitions, and how many were there before.
    """
    options = fleet.key()
    keys = [partition.key(options) for partition in partitions]
    todo = [(key, partition) for key, partition in zip(keys, partitions, strict=True) if not store.has(key)]
    for done, (_, day) in enumerate(place.each(_reduced, fleet, todo), start=1):
        store.put(day)
        tell_part("reading logs", done, len(todo), len(keys), f"{day.robot}, {day.date}")
    return keys, len(keys) - len(todo)


def tell_part(stage: str, done: int, todo: int, total: int, last: str) -> None:
    """Report that so many of the things to do are done; the rest of all is known from before."""
    known = f", {total - todo} known from before" if total > todo else ""
    report_progress(f"{stage}: {total - todo + done} of {total}{known} ({last})", done / todo)


def _reduced(fleet: Fleet, item: tuple[str, Partition]) -> ArmDay:
    key, partition = item
    return reduce_partition(fleet, partition, key)


_KNOWN: dict[str, Any] = {}


def _with_known(function: Callable[[Shared, Item], Result], fleet: Shared, key: str, item: Item) -> Result:
    """Call with the first fleet of this key that the process has seen: one object, so that its model is made once."""
    if key not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[key] = fleet
    return function(_KNOWN[key], item)


@contextmanager
def _connected(client: Any, address: str) -> Iterator[Any]:
    try:
        made = client(address, timeout=CONNECT_S)
    except (OSError, ValueError, TypeError) as error:  # the last without a certificate
        raise ArmidError(f"--scheduler {address}: cannot be reached ({error}); is it running?") from None
    with made:
        if not made.scheduler_info(n_workers=-1)["workers"]:
            raise ArmidError(f"--scheduler {address}: has no workers; start some with: dask worker {address}")
        _check_installation(made, address)
        yield made


def _check_installation(client: Any, address: str) -> None:
    """Whether the workers have this version of armid; asked by a function that they have in any case."""
    advice = f"install armid[fleet] {__version__} where they run"
    try:
        found = set(client.run(metadata.version, "armid").values())
    except ModuleNotFoundError:
        raise ArmidError(f"--scheduler {address}: a worker has no armid; {advice}") from None
    if found != {__version__}:
        raise ArmidError(f"--scheduler {address}: its workers have armid {', '.join(sorted(found))}; {advice}")
