"""`compiled` and `compiled_entry`: numba's njit, cached on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from zlib import crc32

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, register_jitable

from kg_retrievers.algorithms.code_cache import code_cache
from kg_retrievers.graph import adjacency

P = ParamSpec("P")
R = TypeVar("R")

#: All functions that `compiled_entry` has made so far.
ENTRIES: list[Any] = []

_NJIT: Any = numba.njit  # its type knows neither of the options about wrappers

#: The interpreter lock is released, division by zero is not checked, and no wrapper for C is made, which takes long.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# Compiled functions call these as Python does. LLVM inlines them: each is one instruction or two.
for _function in (adjacency.label_of, adjacency.relation_of, adjacency.is_backward, adjacency.reversed_label):
    register_jitable(_function)
for _of_entries in (adjacency.half_of, adjacency.triple_of):  # given arrays, whose references need not be counted
    register_jitable(_nrt=False)(_of_entries)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only other compiled functions call, together with them."""
    made: Callable[P, R] = _NJIT(no_cpython_wrapper=True, **_OPTIONS)(function)
    return made


def non_allocating(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function as `compiled` does, one that makes no array: it counts no references to those it is given.

    Whoever calls from Python holds the arrays meanwhile; the function must return none. A function that is given many
    arrays at once spends much of its time counting: without, searches of `methods/simgrag/matching` take 0.4 to 1.0
    times as long, 0.8 on average, and so does `methods/g_retriever/solver.py`. `numba.extending.register_jitable`
    documents the option. `compiled_entry` takes it as `allocates=False`.
    """
    made: Callable[P, R] = _NJIT(no_cpython_wrapper=True, _nrt=False, **_OPTIONS)(function)
    return made


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function as a part of each compiled function that calls it: a phase of a kernel, with a name.

    A call costs more than most phases do, where all arrays of a search are handed on.
    """
    made: Callable[P, R] = _NJIT(inline="always", no_cpython_wrapper=True, **_OPTIONS)(function)
    return made


def compiled_entry(function: Callable[P, R], *, allocates: bool = True) -> Callable[P, R]:
    """Compile a function that Python calls, at its first call, and keep the machine code on disk.

    The code lies in the user's cache folder, or beside the source; where neither can be written, every process compiles
    for itself. Numba compares the function's own file and closure to see whether the code is up to date, so the
    function must be closed over `sources`, the `source_checksum` of all files that are compiled into it.

    Args:
        function: The function.
        allocates: Whether it makes arrays; False for one that calls what is `non_allocating`.
    """
    options = _OPTIONS if allocates else {**_OPTIONS, "_nrt": False}
    made: Any = _NJIT(**options)(function)
    made._cache = code_cache(function)
    ENTRIES.append(made)
    entry: Callable[P, R] = made
    return entry


def _prefetch(_: Any, array: Any, position: Any) -> Any:
    """Begin to load an item of an array into the cache, for code that reads it soon; the position must exist."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        insert: Any = cgutils.get_or_insert_function
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        load = insert(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(load, [place, number(0), number(3), number(1)])  # to read, often, data
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Any = intrinsic(_prefetch)


def source_checksum(path: Path) -> int:
    """Return an integer above 0 that changes with the text of a file, or of any Python file in a folder.

    It also changes with `graph/adjacency.py`, whose functions any kernel may call.
    """
    files = sorted(path.glob("*.py")) if path.is_dir() else [path]
    files.append(Path(adjacency.__file__))
    return 1 + crc32(b"".join(file.read_bytes() for file in files))
