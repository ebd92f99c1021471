"""`compiled` and `compiled_entry`: numba's njit with our options; `pointer`: an array's memory, for compiled code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar
from zlib import crc32

import numba
import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from kg_retrievers.graph import Adjacency, adjacency
from kg_retrievers.graph.columns import Array

P = ParamSpec("P")
R = TypeVar("R")

#: Widens an integer in compiled code. A literal or a narrower integer as argument would compile a function once more.
wide: Callable[[int], int] = np.int64  # type: ignore[assignment]

_NJIT: Any = numba.njit

#: The interpreter lock is released, division by zero is not checked, and no wrapper for C is made, which takes long.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# Compiled functions call these as Python does. LLVM inlines them: each is one instruction or two.
for _function in (
    adjacency.label_of,
    adjacency.relation_of,
    adjacency.is_backward,
    adjacency.reversed_label,
    adjacency.half_of,
    adjacency.triple_of,
):
    register_jitable(_function)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only other compiled functions call, together with them."""
    made: Callable[P, R] = _NJIT(no_cpython_wrapper=True, **_OPTIONS)(function)
    return made


def compiled_entry(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls, at its first call, and keep the machine code on disk.

    Numba keeps the code in `NUMBA_CACHE_DIR`, beside the source, or in the user's cache folder. If it can write none of
    them, every process compiles for itself. Numba compiles again if the function's own file or closure changes. A
    function that calls code of other files must therefore be closed over their `source_checksum`.
    """
    try:
        made: Callable[P, R] = _NJIT(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # no folder can be written
        made = _NJIT(**_OPTIONS)(function)
    return made


class Pointer(Protocol):
    """Numbers in memory, for compiled code."""

    def __getitem__(self, position: int, /) -> int:
        """Return a number."""

    def __setitem__(self, position: int, number: int, /) -> None:
        """Set a number."""


class FloatPointer(Protocol):
    """Floats in memory, for compiled code."""

    def __getitem__(self, position: int, /) -> float:
        """Return a number."""

    def __setitem__(self, position: int, number: float, /) -> None:
        """Set a number."""


def pointer(array: Array) -> Any:
    """Return a pointer to the first item of an array; only for compiled code.

    Compiled code counts a reference to each array whenever it hands it on, and an array is seven arguments of a call. A
    pointer is one and has no count. It takes one index and checks no bounds. The caller must hold the array.
    """
    raise NotImplementedError("only compiled code can call this")


@overload(pointer, strict=False)
def _typed_pointer(array: Any) -> Any:
    def read(array: Any) -> Any:
        address = array.ctypes
        return address

    kind: Any = types.CPointer
    typed = _NJIT(locals={"address": kind(array.dtype)}, no_cpython_wrapper=True, **_OPTIONS)(read)
    return lambda array: typed(array)


class Graph(NamedTuple):
    """Pointers to the columns of an adjacency, and its sizes."""

    indptr: Pointer
    first_triples: Pointer
    neighbors: Pointer
    labels: Pointer
    backward_triples: Pointer
    entities: int
    triples: int


@compiled
def graph_pointers(adjacency: Adjacency) -> Graph:
    """Return pointers to an adjacency."""
    return Graph(
        pointer(adjacency.indptr),
        pointer(adjacency.first_triples),
        pointer(adjacency.neighbors),
        pointer(adjacency.labels),
        pointer(adjacency.backward_triples),
        len(adjacency.indptr) - 1,
        len(adjacency.backward_triples),
    )


def source_checksum(folder: Path) -> int:
    """Return an integer that changes with the text of any Python file in a folder."""
    return crc32(b"".join(file.read_bytes() for file in sorted(folder.glob("*.py"))))
