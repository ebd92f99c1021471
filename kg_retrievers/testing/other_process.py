"""A second process, spawned with another hash seed, in which the contract asks retrievers again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from multiprocessing import get_context
from types import ModuleType
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")

#: The most seconds that a call in the other process may take. It loads the test file first.
TIMEOUT = 300


def call_in_other_process(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in the other process, and pass on its result or exception.

    The process starts with the first call and serves all later ones, so that a test run pays once for its imports. With
    pytest-xdist there is one for each worker.

    Args:
        function: The function. It goes there by its name, so that its module must be importable or loaded there.
        *arguments: Its arguments. They are pickled.
    """
    try:
        return _other_process().submit(function, *arguments).result(TIMEOUT)
    except BrokenProcessPool:
        _other_process.cache_clear()  # the next call starts another one
        raise


def load_test_file(path: str, name: str) -> None:
    """Load a test file under the name of its module in the test run, so that its objects can be unpickled."""
    if name in sys.modules:
        return
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as a Python module.")
    package = name.partition(".")[0]
    if package not in sys.modules and find_spec(package) is None:
        sys.modules[package] = ModuleType(package)  # as pytest does: unpickling wants it
    sys.modules[name] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


@cache
def _other_process() -> ProcessPoolExecutor:
    process = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    with patch.dict(os.environ, PYTHONHASHSEED=seed):
        process.submit(os.getpid).result(TIMEOUT)  # starts it, with this seed
    return process
