"""Numba's compiler as armid's kernels use it: it says what takes time at first use, and takes half of it."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numba
from numba.core.compiler import Compiler

_log = logging.getLogger(__name__)
_ROOM = 2**17  # values on the stack: 1 MB, for which CPython takes 2 MB


class _Compiler(Compiler):
    """Compiles one function, and those it calls within."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile without collecting garbage: of what a compiler makes, most lives until it is done."""
        _announce()
        collecting = gc.isenabled()
        gc.disable()
        try:
            return _with_room(super().compile_extra, func)
        finally:
            if collecting:
                gc.enable()


class _Apart(_Compiler):
    """For functions whose arrays never share memory that is written: their loops need no second, slow version."""

    def define_pipelines(self) -> Any:
        """Say so to LLVM, as Numba does for its own parallel loops."""
        if hasattr(self.state.flags, "noalias"):
            self.state.flags.noalias = True
        return super().define_pipelines()  # type: ignore[no-untyped-call]


@cache
def _announce() -> None:
    """Once: nothing was found in the cache."""
    _log.warning("compiling kernels, once (about 10 s; cached for later runs)")


def _with_room(call: Callable[..., Any], *given: Any) -> Any:
    """Call from a frame so large that all deeper ones fit into the memory CPython takes for it.

    Up to 3.13 it takes 16 kB for the next frames where the last are full, and gives them back as they end: calls
    that cross such an end, as those of a deep recursion by the hundred thousand, take many times longer (gh-142183).
    """
    return call(*given)


_with_room.__code__ = _with_room.__code__.replace(co_stacksize=_ROOM)

#: `numba.njit` with this compiler; `njit_apart` for arrays that never share memory which the function writes.
njit: Any = partial(numba.njit, pipeline_class=_Compiler)
njit_apart: Any = partial(numba.njit, pipeline_class=_Apart)
