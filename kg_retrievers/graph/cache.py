"""Define how objects are copied and pickled.

Immutable objects are shared. Locks and caches are made again.
"""

from __future__ import annotations

import math
import os
import pickle
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any, Generic, Self, TypeVar
from weakref import WeakSet

from kg_retrievers.errors import InvalidArgumentError

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Immutable:
    """An object that does not change.

    `copy.copy` and `copy.deepcopy` return the object itself.
    """

    def __copy__(self) -> Self:
        """Return the object itself."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the object itself."""
        return self


def check_picklable(part: object, who: str, hint: str) -> None:
    """Check that a foreign part can be pickled with its holder.

    Somebody else wrote the part.

    Args:
        part: The part.
        who: The holder, for the message.
        hint: The remedy.

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
    """A reentrant lock, used in a `with` statement.

    A copy or a pickle of it is another lock.

    In a fork of the process, locks that threads of the parent held are free again, because those threads do not live
    there.
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
        """Replace the lock, unless it is free or the forking thread holds it."""
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
    """Keep a value for each name until its sources change.

    The cache is safe to share between threads.

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
        """Return the value of a name.

        It is made the first time, and again when it would be made from other objects.

        Args:
            name: The name of the value.
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


class Recent(Generic[Value]):
    """Keeps the values that came last, each for some seconds. Safe to share between threads.

    Args:
        most: How much is kept: each value counts 1, and its size.
        seconds: How long a value is kept.
        size: Returns the size of a value. By default, 0.

    Example:
        >>> recent = Recent[int](2)
        >>> recent.keep({"a": 1, "b": 2, "c": 3})
        >>> recent.get_all(["a", "b", "c"])
        {'b': 2, 'c': 3}
    """

    def __init__(self, most: int, seconds: float = math.inf, size: Callable[[Value], int] | None = None) -> None:
        """Begin empty."""
        self._most, self._seconds, self._size_of = most, seconds, size
        self._values: dict[Hashable, tuple[float, int, Value]] = {}
        self._size, self._lock = 0, LocalLock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as an empty one."""
        return type(self), (self._most, self._seconds, self._size_of)

    def get_all(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Return the values of the keys that have one."""
        oldest, found = time.monotonic() - self._seconds, dict[Key, Value]()
        with self._lock:
            for key in keys:
                kept = self._values.get(key)
                if kept is not None and kept[0] > oldest:
                    found[key] = kept[2]
        return found

    def keep(self, values: Mapping[Key, Value]) -> None:
        """Keep values, and drop the oldest."""
        now = time.monotonic()
        with self._lock:
            for key, value in values.items():
                self._drop(key)
                size = 1 + (self._size_of(value) if self._size_of else 0)
                self._values[key] = now, size, value
                self._size += size
            while self._size > self._most:
                self._drop(next(iter(self._values)))

    def get_or_make(self, keys: Sequence[Key], make: Callable[[list[Key]], Mapping[Key, Value]]) -> dict[Key, Value]:
        """Return the values of keys.

        Missing values are made in one call and kept.

        Example:
            >>> Recent[int](9).get_or_make(["a", "bc"], lambda keys: {key: len(key) for key in keys})
            {'a': 1, 'bc': 2}
        """
        found = self.get_all(keys)
        if missing := [key for key in dict.fromkeys(keys) if key not in found]:
            made = make(missing)
            self.keep(made)
            found |= made
        return found

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._values.clear()
            self._size = 0

    def _drop(self, key: Hashable) -> None:
        if kept := self._values.pop(key, None):
            self._size -= kept[1]
