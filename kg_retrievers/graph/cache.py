"""How objects are copied and pickled: immutable ones are shared, locks and caches are made anew."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import Any, Self, TypeVar
from weakref import WeakSet

from kg_retrievers.errors import InvalidArgumentError

T = TypeVar("T")


class Immutable:
    """An object that does not change, so that `copy.copy` and `copy.deepcopy` return the object itself."""

    def __copy__(self) -> Self:
        """Return the object itself."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the object itself."""
        return self


def check_picklable(part: object, who: str, hint: str) -> None:
    """Check that a part that somebody else wrote can be pickled together with what holds it.

    Args:
        part: The part.
        who: What holds it, for the message.
        hint: What to do instead.

    Raises:
        InvalidArgumentError: If it holds something that no process can hand to another, such as a lock or a connection.
    """
    with suppress(pickle.PicklingError, AttributeError):  # a local class: another pickler, as cloudpickle, may take it
        try:
            pickle.dumps(part)
        except TypeError as cause:
            kind = type(part).__name__
            raise InvalidArgumentError(f"{who}: {kind} cannot be pickled ({cause}).", hint_python=hint) from cause


class LocalLock:
    """A reentrant lock, used in a `with` statement; a copy or a pickle of it is another lock.

    In a fork of the process, what threads of the parent held is free again: those threads do not live there.
    """

    def __init__(self) -> None:
        """Start unlocked."""
        self._lock = RLock()
        _LOCKS.add(self)

    def __enter__(self) -> None:
        """Wait for the lock."""
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        """Let others have it."""
        self._lock.release()

    def __reduce__(self) -> tuple[type[LocalLock], tuple[()]]:
        """Copy and pickle as another lock."""
        return LocalLock, ()

    def free_after_fork(self) -> None:
        """Make the lock anew, unless it is free or the thread that forked holds it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = RLock()


#: All locks of this process.
_LOCKS: WeakSet[LocalLock] = WeakSet()


def _free_locks() -> None:
    for lock in list(_LOCKS):
        lock.free_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)


class Cache:
    """Keeps a value for each name as long as what it was made from stays the same; safe to share between threads.

    A copy or a pickle of it is empty, so that the object that holds it can be copied and pickled.

    Example:
        >>> cache, words = Cache(), ["a", "b"]
        >>> cache.get("count", (words,), lambda: len(words))
        2
    """

    def __init__(self) -> None:
        """Start empty."""
        self._lock = LocalLock()
        self._values: dict[str, tuple[tuple[object, ...], Any]] = {}

    def get(self, name: str, made_from: tuple[object, ...], make: Callable[[], T]) -> T:
        """Return the value of a name; make it the first time, and again when it would be made from other objects.

        Args:
            name: What the value is called.
            made_from: The objects that it is made from, compared by identity.
            make: Makes it. No other thread makes a value of this cache meanwhile.
        """
        with self._lock:
            kept = self._values.get(name)
            if kept is None or [*map(id, kept[0])] != [*map(id, made_from)]:
                kept = self._values[name] = made_from, make()
            value: T = kept[1]
            return value

    def __reduce__(self) -> tuple[type[Cache], tuple[()]]:
        """Copy and pickle as an empty one."""
        return Cache, ()
