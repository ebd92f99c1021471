"""`compiled` and `compiled_entry`: numba's njit, cached on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from zlib import crc32

import numba

P = ParamSpec("P")
R = TypeVar("R")

_NJIT: Any = numba.njit  # its type knows neither of the options about wrappers

#: The interpreter lock is released, division by zero is not checked, and no wrapper for C is made, which takes long.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only other compiled functions call, together with them."""
    made: Callable[P, R] = _NJIT(no_cpython_wrapper=True, **_OPTIONS)(function)
    return made


def compiled_entry(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls, at its first call, and keep the machine code on disk.

    It is kept beside the source or in the user's cache folder; where neither can be written, every process compiles
    for itself. Numba looks at the function's own file and closure to see whether the code is up to date, so the
    function must be closed over `source_number` of all files that are compiled into it.
    """
    made: Callable[P, R]
    try:
        made = _NJIT(cache=True, **_OPTIONS)(function)
    except (RuntimeError, OSError):  # numba found no place for its cache
        made = _NJIT(**_OPTIONS)(function)
    return made


def source_number(path: Path) -> int:
    """Return a number above 0 that changes with the text of a file, or of any Python file in a folder."""
    files = sorted(path.glob("*.py")) if path.is_dir() else [path]
    return 1 + crc32(b"".join(file.read_bytes() for file in files))
