"""Reads parts of a graph behind any executor, and bounds how long that takes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import ClassVar, Protocol, Self, TypeVar

from kg_retrievers.database.schema import DatabaseSchema
from kg_retrievers.deadline import deadline
from kg_retrievers.errors import DatabaseTimeoutError, InvalidArgumentError, StaleSchemaError
from kg_retrievers.graph.parts import MOST_FACTS, MOST_OF_NAME, TIMEOUT, EntityPage, Facts, StoredEntity

Part = TypeVar("Part")

#: The longest timeout: a day. (Milliseconds must fit into 32 bits.)
MAX_TIMEOUT = 24 * 3600.0

#: What to do about a query that was stopped.
RAISE_TIMEOUT = {
    "hint_python": "Make it smaller, or raise timeout.",
    "hint_shell": "Make it smaller, or give it longer: --field timeout=SECONDS.",
}

#: What UTF-8 cannot write: no database has it.
_HALVES = re.compile(r"[\ud800-\udfff]")


class Queries(Protocol):
    """Reads parts of a graph by queries of one language; see `PartReader` for what the methods do."""

    def facts_of(self, keys: list[str], relations: Sequence[str] | None, limit: int) -> Facts:
        """Read the facts of some entities."""

    def facts_between(self, keys: list[str], limit: int) -> Facts:
        """Read the facts between some entities."""

    def sample_facts(self, relations: Sequence[str], count: int) -> Facts:
        """Read some facts of relations."""

    def describe(self, keys: list[str]) -> list[StoredEntity]:
        """Describe entities."""

    def entities_named(self, names: list[str], limit: int) -> dict[str, list[str]]:
        """Find the entities with a key, a label or an alias."""

    def entities_after(self, position: str, page_size: int) -> EntityPage:
        """Read a page of all entities."""


class GraphParts(ABC):
    """Reads parts of a graph, within a timeout and with checked arguments; see `PartReader`."""

    #: How many seconds the database has, after the timeout, to say itself that it stopped the query.
    _grace: ClassVar[float] = 0.0

    @abstractmethod
    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        """Return what the database holds."""

    @abstractmethod
    def close(self) -> None:
        """Close the database."""

    @abstractmethod
    def _queries(self, timeout: float) -> Queries:
        """Return what reads parts."""

    def __enter__(self) -> Self:
        """Return the executor itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _within(self, timeout: float, what: str) -> AbstractContextManager[None]:
        """Let all waits of this block end after a timeout, which is checked."""
        if not 0 < timeout <= MAX_TIMEOUT:
            who = f"{type(self).__name__}.{what}"
            raise InvalidArgumentError(f"{who}: timeout is {timeout}, not in (0, {MAX_TIMEOUT:.0f}] seconds.")
        return deadline(timeout + self._grace, partial(self._too_long, timeout))

    def _too_long(self, timeout: float) -> DatabaseTimeoutError:
        who = type(self).__name__
        return DatabaseTimeoutError(
            f"{who}: the query took longer than {timeout:g} s and was stopped.", **RAISE_TIMEOUT
        )

    def _check_most(self, what: str, most: int) -> None:
        if type(most) is not int or most < 1:
            raise InvalidArgumentError(f"{type(self).__name__}.{what}: {most!r} are asked for. Ask for at least 1.")

    def relations(self, *, refresh: bool = False, timeout: float = TIMEOUT) -> list[str]:
        """Return the names of relations as they stand in triples, sorted; `refresh` reads the schema anew."""
        with self._within(timeout, "relations"):
            return sorted({found.relation or found.name for found in self.schema(refresh=refresh).relations})

    def facts_of(
        self,
        keys: Sequence[str],
        *,
        relations: Sequence[str] | None = None,
        limit: int = MOST_FACTS,
        timeout: float = TIMEOUT,
    ) -> Facts:
        """Read the facts whose head or tail is one of some entities; see `PartReader.facts_of`."""
        wanted = self._checked("facts_of", keys, limit)
        return self._read_part("facts_of", timeout, lambda: self._queries(timeout).facts_of(wanted, relations, limit))

    def facts_between(self, keys: Sequence[str], *, limit: int = MOST_FACTS, timeout: float = TIMEOUT) -> Facts:
        """Read the facts whose head and tail are both among some entities."""
        wanted = self._checked("facts_between", keys, limit)
        return self._read_part("facts_between", timeout, lambda: self._queries(timeout).facts_between(wanted, limit))

    def describe(self, keys: Sequence[str], *, timeout: float = TIMEOUT) -> list[StoredEntity]:
        """Describe those of the entities that the database has, sorted by key."""
        wanted = self._checked("describe", keys, 1)
        return self._read_part("describe", timeout, lambda: self._queries(timeout).describe(wanted))

    def entities_named(
        self, names: Sequence[str], *, limit: int = MOST_OF_NAME, timeout: float = TIMEOUT
    ) -> dict[str, list[str]]:
        """Return the keys of the entities whose key, label or alias is exactly one of some names.

        Cost in Cypher: the index of each label's key and of its property of labels. Without an index, and for aliases,
        it is a pass over the nodes of the label.
        """
        wanted = [name for name in self._checked("entities_named", names, limit) if name]  # "" is no name
        found = self._read_part("entities_named", timeout, lambda: self._queries(timeout).entities_named(wanted, limit))
        return {name: found.get(name, []) for name in dict.fromkeys(names)}

    def sample_facts(self, relations: Sequence[str], count: int, *, timeout: float = TIMEOUT) -> Facts:
        """Read some facts of each of some relations, those that the database finds first."""
        wanted = self._checked("sample_facts", relations, count)
        return self._read_part("sample_facts", timeout, lambda: self._queries(timeout).sample_facts(wanted, count))

    def entities_after(self, position: str, page_size: int, *, timeout: float = TIMEOUT) -> EntityPage:
        """Read a page of all entities; see `PartReader.entities_after`."""
        self._checked("entities_after", [position], page_size)
        return self._read_part(
            "entities_after", timeout, lambda: self._queries(timeout).entities_after(position, page_size)
        )

    def _read_part(self, what: str, timeout: float, read: Callable[[], Part]) -> Part:
        """Read a part; once more, with a new schema, where the database has changed since its schema was read."""
        with self._within(timeout, what):
            try:
                return read()
            except StaleSchemaError:
                self.schema(refresh=True)
                return read()

    def _checked(self, what: str, texts: Sequence[str], limit: int) -> list[str]:
        """Return texts each once, without those that no database holds."""
        who = f"{type(self).__name__}.{what}"
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidArgumentError(f"{who}: wanted a list of texts, got {texts!r:.200}.")
        self._check_most(what, limit)
        return [text for text in dict.fromkeys(texts) if not _HALVES.search(text)]
