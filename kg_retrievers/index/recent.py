"""Recent: keeps what was read lately, so much of it and for so long."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kg_retrievers.graph.cache import LocalLock

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Keeps what was read lately by key: so much of it, and for so many seconds."""

    def __init__(self, most: int, seconds: float, size: Callable[[Value], int]) -> None:
        """Begin empty; `size` says how much a value is."""
        self._most, self._seconds, self._size_of = most, seconds, size
        self._values: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()
        self._size, self._lock = 0, LocalLock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle how much is kept, and none of it."""
        return type(self), (self._most, self._seconds, self._size_of)

    def get_all(self, keys: Sequence[Key]) -> dict[Key, Value]:
        """Return what is kept for some keys."""
        oldest, found = time.monotonic() - self._seconds, dict[Key, Value]()
        with self._lock:
            for key in keys:
                kept = self._values.get(key)
                if kept is not None and kept[0] > oldest:
                    found[key] = kept[1]
        return found

    def keep(self, values: Mapping[Key, Value]) -> None:
        """Keep values; the oldest go."""
        now = time.monotonic()
        with self._lock:
            for key, value in values.items():
                self._drop(key)
                self._values[key] = now, value
                self._size += 1 + self._size_of(value)
            while self._size > self._most:
                self._drop(next(iter(self._values)))

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._values.clear()
            self._size = 0

    def _drop(self, key: Hashable) -> None:
        if kept := self._values.pop(key, None):
            self._size -= 1 + self._size_of(kept[1])
