"""Compile functions with numba's njit and our options, and give compiled code the memory of arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar
from zlib import crc32

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable
from numba.np import arrayobj

from kg_retrievers.graph import Adjacency, adjacency

P = ParamSpec("P")
R = TypeVar("R")

#: Widens an integer in compiled code. A literal or a narrower integer as argument would compile a function once more.
wide: Callable[[int], int] = np.int64  # type: ignore[assignment]

# Numba has types for some of what it offers.
_NJIT: Any = numba.njit
_TYPES: Any = types
_make_array: Any = arrayobj.make_array
_unpack_tuple: Any = cgutils.unpack_tuple

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

    Numba keeps the code in `NUMBA_CACHE_DIR`, next to the source, or in the user's cache folder. If it can write none
    of them, every process compiles for itself. Numba compiles again if the function's own file or closure changes. A
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


def _pointers(_: Any, arrays: Any) -> Any:
    """Return a named tuple with a pointer to the first item of each of its arrays. Only for compiled code.

    Compiled code counts a reference to each array whenever it hands it on, and an array is seven arguments of a call. A
    pointer is one and has no count. It takes one index and checks no bounds. The caller must hold the arrays.
    """
    members = [_TYPES.CPointer(kind.dtype) if isinstance(kind, types.Array) else kind for kind in arrays.types]
    made = _TYPES.BaseTuple.from_types(members, arrays.instance_class)

    def read(context: Any, builder: Any, _: Any, values: Any) -> Any:
        parts = zip(arrays.types, _unpack_tuple(builder, values[0]), strict=True)
        found = [
            _make_array(kind)(context, builder, part).data if isinstance(kind, types.Array) else part
            for kind, part in parts
        ]
        return context.make_tuple(builder, made, found)

    return made(arrays), read


pointers: Any = intrinsic(_pointers)


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
    of, entities, triples = pointers(adjacency), len(adjacency.indptr) - 1, len(adjacency.backward_triples)
    return Graph(of.indptr, of.first_triples, of.neighbors, of.labels, of.backward_triples, entities, triples)


def source_checksum(folder: Path) -> int:
    """Return an integer that changes with the text of any Python file in a folder."""
    return crc32(b"".join(file.read_bytes() for file in sorted(folder.glob("*.py"))))
