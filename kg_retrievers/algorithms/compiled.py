"""`compiled`: numba's njit, cached on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call and release the interpreter lock while running.

    The machine code is cached beside the source or in the user's cache folder, so that later processes start fast;
    where neither can be written, every process compiles for itself.
    """
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except (RuntimeError, OSError):  # numba found no place for its cache
        return numba.njit(nogil=True)(function)
