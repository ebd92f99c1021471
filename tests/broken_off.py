"""Writing that is broken off: a disk that is full, and a process that is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

#: For a program: `die_at(step)` kills its process at the so-manieth call of the system that has to do with files.
DIE_AT = """
import os, signal
def die_at(step):
    steps = 0
    def dying(function):
        def call(*args, **kwargs):
            nonlocal steps
            steps += 1
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)
        return call
    for name in ("fsync", "replace", "open", "truncate", "unlink", "close", "stat", "scandir", "listdir"):
        setattr(os, name, dying(getattr(os, name)))
"""


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """Let no file of this process become longer, as on a disk that is full."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
