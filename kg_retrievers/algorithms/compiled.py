"""`compiled` and `compiled_entry`: numba's njit, cached on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only other compiled functions call: without a wrapper for Python, which takes long."""
    return _compiled(function, no_cpython_wrapper=True)


def compiled_entry(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls, at its first call; the interpreter lock is released while it runs."""
    return _compiled(function)


def _compiled(function: Callable[P, R], **options: bool) -> Callable[P, R]:
    """Compile with the machine code cached beside the source or in the user's cache folder.

    Where neither can be written, every process compiles for itself.
    """
    options |= {"nogil": True, "no_cfunc_wrapper": True}
    try:
        entry: Callable[P, R] = numba.njit(cache=True, error_model="numpy", **options)(function)  # type: ignore[call-overload]
    except (RuntimeError, OSError):  # numba found no place for its cache
        entry = numba.njit(error_model="numpy", **options)(function)  # type: ignore[call-overload]
    return entry
