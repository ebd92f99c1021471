"""`compiled` and `compiled_entry`: numba's njit, cached on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from zlib import crc32

import numba
from numba.extending import register_jitable

from kg_retrievers.graph import adjacency

P = ParamSpec("P")
R = TypeVar("R")

_NJIT: Any = numba.njit  # its type knows neither of the options about wrappers

#: The interpreter lock is released, division by zero is not checked, and no wrapper for C is made, which takes long.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

# Compiled functions call these as Python does. LLVM inlines them: each is one instruction or two.
for _function in (adjacency.label_of, adjacency.relation_of, adjacency.is_backward, adjacency.reversed_label):
    register_jitable(_function)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only other compiled functions call, together with them."""
    made: Callable[P, R] = _NJIT(no_cpython_wrapper=True, **_OPTIONS)(function)
    return made


def compiled_entry(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls, at its first call, and keep the machine code on disk.

    The code lies beside the source or in the user's cache folder; where neither can be written, every process compiles
    for itself. Numba compares the function's own file and closure to see whether the code is up to date, so the
    function must be closed over `source_checksum` of all files that are compiled into it.
    """
    made: Callable[P, R]
    try:
        made = _NJIT(cache=True, **_OPTIONS)(function)
    except (RuntimeError, OSError):  # numba found no place for its cache
        made = _NJIT(**_OPTIONS)(function)
    return made


def source_checksum(path: Path) -> int:
    """Return an integer above 0 that changes with the text of a file, or of any Python file in a folder.

    It also changes with `graph/adjacency.py`, whose functions any kernel may call.
    """
    files = sorted(path.glob("*.py")) if path.is_dir() else [path]
    files.append(Path(adjacency.__file__))
    return 1 + crc32(b"".join(file.read_bytes() for file in files))
