"""Numba's compiler as armid's kernels use it: it says what takes time at first use, and takes less of it.

Libraries of code, their cache and the look-up of types are inner parts of Numba: a new version may need changes here.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import BuiltinFunctionType, FunctionType, SimpleNamespace
from typing import Any

import numba
from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.typing.context import BaseContext

_log = logging.getLogger(__name__)
_ROOM = 2**17  # values on the stack: 1 MB, for which CPython takes 2 MB
_find_call_type: Any = types.BaseFunction.get_call_type
_find_value_type: Any = BaseContext.resolve_value_type
_options: list[str] = []  # of the functions that are being compiled, the innermost last


class _Cache(FunctionCache):
    """Machine code on disk, until what it was made from changes: Numba looks at the kernel's own file alone."""

    def _index_key(self, *given: Any) -> Any:
        return super()._index_key(*given), _sources(self._py_func)  # type: ignore[no-untyped-call]


def _sources(function: FunctionType) -> tuple[Any, ...]:
    """Time and size of this file and of all whose functions a kernel calls; numbers that stand outside of them."""
    parts, numbers = [function], set()
    for part in parts:
        for name in part.__code__.co_names:
            one = part.__globals__.get(name)
            called = getattr(one, "py_func", getattr(one, "_defn", None))  # of a compiled function, of an intrinsic
            if isinstance(called, FunctionType) and called not in parts:
                parts.append(called)
            elif isinstance(one, int | float):
                numbers.add((part.__module__, name, one))
    files = sorted({__file__, *(part.__code__.co_filename for part in parts)})
    return *((stat.st_mtime, stat.st_size) for stat in map(os.stat, files)), *sorted(numbers)


class _Optimised(JITCodeLibrary):
    """Machine code of a kernel and all it calls: LLVM goes over it once, as a whole.

    Numba lets LLVM go over every function first, and twice over the whole, for the sake of references it counts.
    """

    def add_ir_module(self, ir_module: Any) -> None:
        """With vectors as wide as the processor has them: LLVM takes half of that on those of Intel, out of caution."""
        for function in ir_module.functions:
            if function.blocks:
                set.add(function.attributes, '"prefer-vector-width"="512"')  # its own `add` knows no such words
        super().add_ir_module(ir_module)  # type: ignore[no-untyped-call]

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        match self._codegen._module_pass_manager():
            case passes, builder:
                passes.run(self._final_module, builder)
            case _:  # Numba up to 0.61
                super()._optimize_final_module()  # type: ignore[no-untyped-call]


class _Linked(_Optimised):
    """LLVM's text of one function, as its callers link it."""

    @property
    def codegen(self) -> Any:
        """Without machine code there is no environment to set."""
        return SimpleNamespace(set_env=lambda *_: None)

    def _optimize_final_module(self) -> None:
        """Leave it to the callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None."""
        self._ensure_finalized()  # type: ignore[no-untyped-call]
        return 0


class _Compiler(Compiler):
    """Compiles one function, and those it calls within."""

    library: type[JITCodeLibrary] = _Optimised

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile without collecting garbage: of what a compiler makes, most lives until it is done."""
        _announce()
        if all(hasattr(JITCodeLibrary, name) for name in dir(self.library)):
            self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
        collecting = gc.isenabled()
        gc.disable()
        try:
            with _remembered_types(f"{type(self).__name__} {self.state.flags.summary()}"):
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


class _Within(_Compiler):
    """For functions that compiled ones alone call: they are optimised there, and have no machine code of their own."""

    library = _Linked


class _ApartWithin(_Apart, _Within):
    """Both."""


@contextmanager
def _remembered_types(options: str) -> Iterator[None]:
    """Look the type of an operator, and of its result for given types, up once, not wherever one stands.

    With a result goes the code that makes it, which may differ with `options` of the compiler.
    """
    _options.append(options)
    if len(_options) == 1:
        types.BaseFunction.get_call_type = _call_type  # type: ignore[method-assign]
        BaseContext.resolve_value_type = _value_type  # type: ignore[method-assign]
    try:
        yield
    finally:
        _options.pop()
        if not _options:
            types.BaseFunction.get_call_type = _find_call_type  # type: ignore[method-assign]
            BaseContext.resolve_value_type = _find_value_type  # type: ignore[method-assign]


def _call_type(self: Any, context: Any, args: tuple[Any, ...], kws: Any) -> Any:
    if kws:
        return _find_call_type(self, context, args, kws)
    known, key = self.__dict__.setdefault("_armid_known", {}), (_options[-1], args)
    if key not in known:
        found = _find_call_type(self, context, args, kws)
        known[key] = found, self._impl_keys[found.args]
    found, self._impl_keys[found.args] = known[key]  # the code too: with other options it may have been replaced
    return found


def _value_type(self: Any, value: Any) -> Any:
    if not isinstance(value, BuiltinFunctionType):
        return _find_value_type(self, value)
    known = self.__dict__.setdefault("_armid_known", {})
    if value not in known:
        known[value] = _find_value_type(self, value)
    return known[value]


@cache
def _announce() -> None:
    """Once: nothing was found in the cache."""
    _log.warning("compiling kernels, once (5 to 30 s; cached for later runs)")


def _with_room(call: Callable[..., Any], *given: Any) -> Any:
    """Call from a frame so large that all deeper ones fit into the memory CPython takes for it.

    Up to 3.13 it takes 16 kB for the next frames where the last are full, and gives them back as they end: calls
    that cross such an end, as those of a deep recursion by the hundred thousand, take many times longer (gh-142183).
    """
    return call(*given)


_with_room.__code__ = _with_room.__code__.replace(co_stacksize=_ROOM)


def _njit(*, cache: bool = False, **options: Any) -> Callable[[FunctionType], Any]:
    def compiled(function: FunctionType) -> Any:
        dispatcher = numba.njit(function, cache=cache, **options)
        if cache:
            dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
        return dispatcher

    return compiled


#: `numba.njit` with this compiler and cache; `within`: for functions that are never called from Python; `apart`: for
#: arrays that never share memory which the function writes.
njit: Any = partial(_njit, pipeline_class=_Compiler)
njit_apart: Any = partial(_njit, pipeline_class=_Apart)
njit_within: Any = partial(_njit, pipeline_class=_Within, no_cpython_wrapper=True, no_cfunc_wrapper=True)
njit_apart_within: Any = partial(njit_within, pipeline_class=_ApartWithin)
