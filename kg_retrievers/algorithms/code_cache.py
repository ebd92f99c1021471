"""Where the machine code of compiled functions is kept, and the message while it is made."""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import stat
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

import numba
from numba.core import caching

_LOGGER = logging.getLogger(__name__)


class CodeCache(caching.FunctionCache):
    """Keeps machine code in one folder for all environments of a user, and says when there is none yet.

    Where `NUMBA_CACHE_DIR` is set, the code lies there. Where the folder of the user cannot be written, or others may
    write there, it lies where numba puts it: beside the source.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature; None where it is not there, so that it will be made."""
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        return _announce() if found is None else found


class NoCache(caching.NullCache):
    """Keeps nothing, where no folder can be written."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Return None, so that machine code will be made."""
        return _announce()


class UserFolder(caching._CacheLocator):
    """Says where the machine code of a function lies.

    The folder depends on the versions of the package and of numba, the name of a file on the module and on all sources
    that are compiled into it. So neither two environments nor two working copies disturb each other.
    """

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        """Take the function, and the file that it stands in."""
        self._function, self._file = function, Path(file)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Self | None:
        """Return the locator of a function; None where its folder cannot be written, or others may write there."""
        locator = cls(function, file)
        try:
            locator.ensure_cache_path()
            locator.get_source_stamp()
        except (OSError, RuntimeError):  # the home is read-only, missing or unknown
            return None
        return locator

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(user_folder() / _versions())

    def ensure_cache_path(self) -> None:
        """Make the folder, for the user alone.

        Raises:
            OSError: If it cannot be written, or may hold code that others put there: it is loaded as it is.
        """
        folder = Path(self.get_cache_path())
        for level in (folder.parent, folder):
            level.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_private(level)
        super().ensure_cache_path()  # type: ignore[no-untyped-call]

    def get_source_stamp(self) -> str:
        """Return what changes with the source."""
        return hashlib.sha256(self._file.read_bytes()).hexdigest()

    def get_disambiguator(self) -> str:
        """Return what tells the function apart from others with its name, and from its earlier forms."""
        closed_over = inspect.getclosurevars(self._function).nonlocals
        described = f"{self._function.__module__} {closed_over.get('sources')} {self.get_source_stamp()}"
        return hashlib.sha256(described.encode()).hexdigest()[:16]


class _Code(caching.CompileResultCacheImpl):
    """What numba keeps of a compiled function, in the folder of the user if possible."""

    _locator_classes = [  # noqa: RUF012 - as in the base
        caching.UserProvidedCacheLocator,
        UserFolder,
        caching.InTreeCacheLocator,
        caching.UserWideCacheLocator,
    ]


CodeCache._impl_class = _Code


def code_cache(function: Callable[..., Any]) -> CodeCache | NoCache:
    """Return where the machine code of a function is kept."""
    try:
        return CodeCache(function)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError):  # no folder can be written
        return NoCache()


def user_folder() -> Path:
    """Return the folder in which a user's programs keep what can be made again, for this package.

    Raises:
        RuntimeError: If the user has no home.
    """
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return Path(base) / "kg-retrievers" / "Cache" if base else Path.home() / ".kg-retrievers"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kg-retrievers"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "kg-retrievers"  # relative ones are to be ignored


def _check_private(folder: Path) -> None:
    """Check that a folder belongs to the user and that nobody else may write there; Windows keeps homes private."""
    if sys.platform == "win32":
        return
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{folder} belongs to another user, or others may write there.")


@cache
def _versions() -> str:
    """Return the versions that machine code depends on as the name of a folder; numba tells processors apart."""
    try:
        own = version("kg-retrievers")
    except PackageNotFoundError:
        own = "0"
    return f"compiled-{own}-numba-{numba.__version__}"


@cache  # once a process
def _announce() -> None:
    """Say that machine code is made, since this takes so long."""
    _LOGGER.warning(
        "Compiling once for this machine: about half a minute. The command kg-retrievers warm-up does it beforehand."
    )
