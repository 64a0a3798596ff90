"""Running compiled loops over threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from armid.dynamics.blocks import BLOCK

_MINIMUM = 16 * BLOCK  # samples per thread below which a second thread does not pay
_count = 0


def available_threads() -> int:
    """Threads in use: as set, else the processors this process may use."""
    if _count:
        return _count
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_threads(count: int) -> None:
    """Use `count` threads in the numeric core; 0 returns to all available processors."""
    global _count
    _count = max(0, count)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread for a while: on small matrices two are slower, on a busy machine many times so."""
    result: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return result


@cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes milliseconds, so it is done once."""
    return ThreadpoolController()


def over_samples(loop: Callable[[int, int, int], None], samples: int) -> None:
    """Call ``loop(part, begin, end)`` for ranges that cover all samples, in parallel where it pays."""
    parts = parts_of(samples)
    blocks = -(-samples // BLOCK)
    bounds = [min(samples, BLOCK * (blocks * part // parts)) for part in range(parts + 1)]
    if parts == 1:
        loop(0, 0, samples)
        return
    with ThreadPoolExecutor(parts) as pool:
        for future in [pool.submit(loop, part, bounds[part], bounds[part + 1]) for part in range(parts)]:
            future.result()


def parts_of(samples: int) -> int:
    """How many parts `over_samples` makes."""
    return max(1, min(available_threads(), samples // _MINIMUM))
