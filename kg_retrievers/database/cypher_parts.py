"""Reads parts of a graph, for all executors that run Cypher."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from kg_retrievers.database.part_queries import PartQueries
from kg_retrievers.database.schema import DatabaseSchema, Dialect
from kg_retrievers.errors import InvalidArgumentError, StaleSchemaError
from kg_retrievers.graph.parts import MOST_FACTS, MOST_OF_NAME, TIMEOUT, EntityPage, Facts, StoredEntity

Part = TypeVar("Part")

#: What UTF-8 cannot write: no database has it.
_HALVES = re.compile(r"[\ud800-\udfff]")


class CypherParts(ABC):
    """Reads parts of a graph, for all executors that run Cypher; see `PartReader`."""

    @property
    @abstractmethod
    def dialect(self) -> Dialect:
        """Which Cypher it understands."""

    @abstractmethod
    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        """Return what the database holds."""

    @abstractmethod
    def _within(self, timeout: float, what: str) -> AbstractContextManager[None]:
        """Let all waits of this block end after a timeout, which is checked."""

    @abstractmethod
    def _rows(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Sequence[Sequence[Any]]:
        """Run a query of this package's own, and return its rows as plain values."""

    def relations(self, *, refresh: bool = False, timeout: float = TIMEOUT) -> list[str]:
        """Return the names of relations as they stand in triples, sorted; `refresh` reads the schema anew."""
        with self._within(timeout, "relations"):
            return sorted({found.relation or found.name for found in self.schema(refresh=refresh).relations})

    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        """Return how many relationships there are, a number that the databases keep."""
        with self._within(timeout, "count_facts"):
            if not self.schema().relations:
                return 0
            rows = self._rows("MATCH ()-[r]->() RETURN count(r) AS facts", {}, 1, timeout)
            return int(rows[0][0])

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

        Cost: the index of each label's key and of its property of labels, where there are such; without one, and for
        aliases, which no index of Cypher holds one by one, a pass over the nodes of the label.
        """
        wanted = [name for name in self._checked("entities_named", names, limit) if name]  # "" is no name
        found = self._read_part("entities_named", timeout, lambda: self._queries(timeout).named(wanted, limit))
        return {name: found.get(name, []) for name in dict.fromkeys(names)}

    def sample_facts(self, relations: Sequence[str], count: int, *, timeout: float = TIMEOUT) -> Facts:
        """Read some facts of each of some relations, those that the database finds first."""
        wanted = self._checked("sample_facts", relations, count)
        return self._read_part("sample_facts", timeout, lambda: self._queries(timeout).sample(wanted, count))

    def entities_after(self, position: str, page_size: int, *, timeout: float = TIMEOUT) -> EntityPage:
        """Read a page of all entities, label by label and by key; see `PartReader.entities_after`."""
        self._checked("entities_after", [position], page_size)
        label, key = _place_in(position)
        return self._read_part("entities_after", timeout, lambda: self._queries(timeout).page(label, key, page_size))

    def _queries(self, timeout: float) -> PartQueries:
        def run(query: str, parameters: dict[str, Any], most: int) -> Sequence[Sequence[Any]]:
            return self._rows(query, parameters, most, timeout)

        return PartQueries(self.schema(), self.dialect, run)

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
        if limit < 1:
            raise InvalidArgumentError(f"{who}: {limit} are asked for. Ask for at least 1.")
        return [text for text in dict.fromkeys(texts) if not _HALVES.search(text)]


def _place_in(position: str) -> tuple[str, str]:
    """Return the label and the key behind which a page begins."""
    if not position:
        return "", ""
    try:
        label, key = json.loads(position)
    except (ValueError, TypeError):
        label = key = None
    if not isinstance(label, str) or not isinstance(key, str):
        raise InvalidArgumentError(
            f'entities_after: position is {position!r:.200}. Give "", or the position of the page before.'
        )
    return label, key
