"""Reducing many partitions: in this process, in worker processes, or on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from armid.errors import ArmidError, MissingExtraError
from armid.fleet.day import ArmDay
from armid.fleet.description import Fleet
from armid.fleet.partitions import Partition
from armid.fleet.reduce import reduce_partition
from armid.fleet.store import Store

FAILURES = 20  # times a task may lose its worker before it is given up
CONNECT_S = 10.0
MEMORY = "1.5GB"  # limit per worker process at which Dask starts it anew; the work itself needs far less


@dataclass(frozen=True)
class Progress:
    """How far the reduction is.

    Attributes:
        done: partitions that are finished, those kept from earlier runs included.
        total: partitions in all.
        kept: of those, from earlier runs.
        seconds_left: until the end, if it goes on like this; None before anything is known.
        last: the newest arm-day.
    """

    done: int
    total: int
    kept: int
    seconds_left: float | None
    last: ArmDay


def arm_days(
    fleet: Fleet,
    partitions: Sequence[Partition],
    store: Store,
    *,
    workers: int = 0,
    scheduler: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[ArmDay]:
    """All arm-days, in the order of the partitions.

    What the store holds is not computed again, and each new arm-day is stored as soon as it is there, by this process:
    workers need to see the logs, not the store.

    Args:
        fleet: what all share.
        partitions: what to reduce.
        store: of finished arm-days.
        workers: processes to start; 0 to work in this process.
        scheduler: address of a Dask scheduler to use instead.
        progress: told after each partition.
    """
    options = fleet.key()
    keys = [partition.key(options) for partition in partitions]
    found: dict[str, ArmDay] = {key: day for key in keys if (day := store.get(key)) is not None}
    todo = [(key, partition) for key, partition in zip(keys, partitions, strict=True) if key not in found]
    kept, began = len(found), time.monotonic()
    for number, day in enumerate(_reduced(fleet, todo, workers, scheduler), start=1):
        store.put(day)
        found[day.key] = day
        if progress is not None:
            left = (time.monotonic() - began) / number * (len(todo) - number)
            progress(Progress(kept + number, len(keys), kept, left, day))
    return [found[key] for key in keys]


def _reduced(
    fleet: Fleet, todo: Sequence[tuple[str, Partition]], workers: int, scheduler: str | None
) -> Iterator[ArmDay]:
    """Arm-days as they are finished."""
    if not todo:
        return
    if workers == 0 and scheduler is None:
        for key, partition in todo:
            yield reduce_partition(fleet, partition, key)
        return
    with _client(workers, scheduler) as client:
        from distributed import as_completed

        shared = client.scatter(fleet, broadcast=True)
        tasks = [
            client.submit(reduce_partition, shared, partition, key, key=f"armid-{key}", retries=2, pure=False)
            for key, partition in todo
        ]
        for task in as_completed(tasks):
            yield task.result()
            task.release()


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Any]:
    """A Dask client: of the user's cluster, or of processes on this machine."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtraError("several workers", "fleet") from None
    with dask.config.set({"distributed.scheduler.allowed-failures": FAILURES}):
        if scheduler is not None:
            try:
                client = Client(scheduler, timeout=CONNECT_S)
            except (OSError, ValueError) as error:
                raise ArmidError(f"--scheduler {scheduler}: cannot be reached ({error}); is it running?") from None
            with client:
                yield client
            return
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, memory_limit=MEMORY, dashboard_address=None, silence_logs=40
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
