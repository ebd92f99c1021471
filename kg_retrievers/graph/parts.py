"""Define parts of a graph that stays in its database.

A part is the facts for one question. The module also defines its reader.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

from kg_retrievers.deadline import deadline
from kg_retrievers.errors import DatabaseTimeoutError, InvalidArgumentError
from kg_retrievers.graph.attributes import AttributeCondition
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.types import Triple

#: How many facts, or entities of one name, are read, and how many seconds that may take, by default.
MOST_FACTS, MOST_OF_NAME, TIMEOUT = 1000, 100, 30.0


class Said(NamedTuple):
    """A database's further statements about a fact.

    They go beyond its head, relation and tail.

    Args:
        attributes: Its sets of attributes, as `kg_retrievers.graph.attributes.attribute_set` writes them.
        datatype: The datatype of its tail, if that is a literal of one.
        is_value: Whether it is a property of its head, which is not read with its tail.
    """

    attributes: tuple[str, ...] = ()
    datatype: str = ""
    is_value: bool = False


class Facts(NamedTuple):
    """Some facts of a graph.

    Args:
        triples: The facts in stored direction, each once, sorted by head, relation and tail.
        truncated: True if there are more facts than were asked for.
        entities: Descriptions that came with the facts, sorted by key: of entities that were asked about, perhaps of
            others. `describe` gives the others.
        said: The further statements about facts.
    """

    triples: list[Triple]
    truncated: bool
    entities: Sequence[StoredEntity] = ()
    said: Mapping[Triple, Said] = MappingProxyType({})


class StoredEntity(NamedTuple):
    """An entity as the database describes it.

    Args:
        key: Its key.
        label: Its label, or the key if it has none.
        aliases: Its further names.
        types: Its types.
    """

    key: str
    label: str
    aliases: list[str]
    types: list[str]


class EntityPage(NamedTuple):
    """Some entities of a graph, and the start of the next ones.

    Args:
        entities: The entities, each once, sorted by key. Any page may hold fewer than were asked for.
        position: The argument of `entities_after` to read on, in this process or another. None if these are the last
            ones.
    """

    entities: list[StoredEntity]
    position: str | None


#: The longest timeout: a day. (Milliseconds must fit into 32 bits.)
MAX_TIMEOUT = 24 * 3600.0

#: The remedy for a query that was stopped.
RAISE_TIMEOUT = {
    "hint_python": "Make it smaller, or raise timeout.",
    "hint_shell": "Make it smaller, or give it longer: --field timeout=SECONDS.",
}

#: The characters that UTF-8 cannot write. No database has them.
HALVES = re.compile(r"[\ud800-\udfff]")


#: Conditions on the facts of relations.
Limits = Mapping[str, Sequence[AttributeCondition]]


class Queries(Protocol):
    """Read parts of a graph by queries of one language.

    It is like `PartReader`, without a timeout of its own.
    """

    def facts_of(self, keys: list[str], relations: Sequence[str] | None, limit: int, limits: Limits) -> Facts:
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


class PartReader(Immutable, ABC):
    """Reads parts of a graph, each by a few bounded queries.

    The queries only read, and their rows are bounded.

    The entities of equal keys are one entity, as in `KnowledgeGraph`. Results are the same each time while the database
    does not change. If there are more facts than `limit`, the first ones in the order of the database are read.

    Args of all methods:
        limit: The most facts, 1 or more. One more is fetched, to know whether there are more.
        timeout: How many seconds all queries of the call may take together, above 0.

    All methods raise what `Executor.run` raises, never a part of an answer instead.
    """

    #: How many seconds the database has, after the timeout, to say itself that it stopped the query.
    _grace: ClassVar[float] = 0.0

    #: Whether `facts_of` looks at limits.
    takes_limits: ClassVar[bool] = False

    @abstractmethod
    def relations(self, *, refresh: bool = False, timeout: float = TIMEOUT) -> list[str]:
        """Return the names of relations as they stand in triples, sorted.

        `refresh` reads them again.
        """

    @abstractmethod
    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        """Return how many facts there are.

        None if the database would look at all of them to count.
        """

    @abstractmethod
    def _queries(self, timeout: float) -> Queries:
        """Return the reader of parts in the language of the database."""

    def _within(self, timeout: float, what: str) -> AbstractContextManager[None]:
        """Let all waits of this block end after a timeout, which is checked."""
        if not 0 < timeout <= MAX_TIMEOUT:
            who = f"{type(self).__name__}.{what}"
            raise InvalidArgumentError(f"{who}: timeout is {timeout}, not in (0, {MAX_TIMEOUT:.0f}] seconds.")
        return deadline(timeout + self._grace, partial(self._too_long, timeout))

    def _too_long(self, timeout: float) -> DatabaseTimeoutError:
        told = f"{type(self).__name__}: the query took longer than {timeout:g} s and was stopped."
        return DatabaseTimeoutError(told, **RAISE_TIMEOUT)

    def _check_most(self, what: str, most: int) -> None:
        if type(most) is not int or most < 1:
            raise InvalidArgumentError(f"{type(self).__name__}.{what}: {most!r} are asked for. Ask for at least 1.")

    def facts_of(
        self,
        keys: Sequence[str],
        *,
        relations: Sequence[str] | None = None,
        limits: Limits | None = None,
        limit: int = MOST_FACTS,
        timeout: float = TIMEOUT,
    ) -> Facts:
        """Read the facts whose head or tail is one of some entities.

        Args:
            keys: The keys of the entities. Keys that are not in the database have no facts.
            relations: The relations that the facts may have. None for any. The database may lack some.
            limits: The conditions on facts of some relations, by relation, if the reader `takes_limits`. Facts stay if
                the database cannot tell whether they satisfy them.
            limit: The most facts.
            timeout: The most seconds.
        """
        wanted = self._checked("facts_of", keys, limit)
        with self._within(timeout, "facts_of"):
            return self._queries(timeout).facts_of(wanted, relations, limit, limits or {})

    def facts_between(self, keys: Sequence[str], *, limit: int = MOST_FACTS, timeout: float = TIMEOUT) -> Facts:
        """Read the facts whose head and tail are both among some entities."""
        wanted = self._checked("facts_between", keys, limit)
        with self._within(timeout, "facts_between"):
            return self._queries(timeout).facts_between(wanted, limit)

    def describe(self, keys: Sequence[str], *, timeout: float = TIMEOUT) -> list[StoredEntity]:
        """Describe the entities that the database has, sorted by key."""
        wanted = self._checked("describe", keys, 1)
        with self._within(timeout, "describe"):
            return self._queries(timeout).describe(wanted)

    def entities_named(
        self, names: Sequence[str], *, limit: int = MOST_OF_NAME, timeout: float = TIMEOUT
    ) -> dict[str, list[str]]:
        """Return the keys of the entities that have one of some names exactly.

        A name is a key, a label or an alias.

        For each of the names, in their order, the keys are sorted. If there are more than `limit`, the first `limit`
        are returned.

        Cost in Cypher: the index of each label's key and of its property of labels. Without an index, and for aliases,
        it is a pass over the nodes of the label.
        """
        wanted = [name for name in self._checked("entities_named", names, limit) if name]  # "" is no name
        with self._within(timeout, "entities_named"):
            found = self._queries(timeout).entities_named(wanted, limit)
        return {name: found.get(name, []) for name in dict.fromkeys(names)}

    def sample_facts(self, relations: Sequence[str], count: int, *, timeout: float = TIMEOUT) -> Facts:
        """Read some facts of each of some relations.

        They are the facts that the database finds first.

        Args:
            relations: The relations. The database may lack some.
            count: The most facts of each relation, 1 or more.
            timeout: The most seconds.

        Returns:
            The facts, truncated if there are more of any of the relations.
        """
        wanted = self._checked("sample_facts", relations, count)
        with self._within(timeout, "sample_facts"):
            return self._queries(timeout).sample_facts(wanted, count)

    def entities_after(self, position: str, page_size: int, *, timeout: float = TIMEOUT) -> EntityPage:
        """Read a page of all entities.

        An entity that is added or removed meanwhile may be on a page or not. All others are on one page exactly.

        Args:
            position: The start of the page: the position of the page before, or "" for the first one.
            page_size: The most entities, 1 or more.
            timeout: The most seconds.
        """
        self._checked("entities_after", [position], page_size)
        with self._within(timeout, "entities_after"):
            return self._queries(timeout).entities_after(position, page_size)

    def _checked(self, what: str, texts: Sequence[str], limit: int) -> list[str]:
        """Return texts each once, without texts that no database holds."""
        who = f"{type(self).__name__}.{what}"
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidArgumentError(f"{who}: wanted a list of texts, got {texts!r:.200}.")
        self._check_most(what, limit)
        return [text for text in dict.fromkeys(texts) if not HALVES.search(text)]


def executor_of(source: Any, who: str, method: str) -> Any:
    """Return an executor as it is, or a `Neo4jExecutor` for a driver of neo4j.

    A store that holds a driver will do, too.

    Such stores are LangChain's `Neo4jGraph` and LlamaIndex's `Neo4jPropertyGraphStore`, or the index of one. Keys are
    "key", "id", "name" or "title", the first that the nodes of a label have.

    Args:
        source: The executor, driver or store.
        who: Begins the message of the error.
        method: The method by which an executor is known, as it is needed.

    Raises:
        InvalidArgumentError: If it is none of them.
        MissingExtraError: If the extra `neo4j` is not installed.
    """
    if hasattr(source, method):
        return source
    if (driver := driver_of(source)) is None:
        raise InvalidArgumentError(
            f"{who}: wanted an executor, such as LadybugExecutor(path), a driver of neo4j, Neo4jGraph of LangChain or "
            f"Neo4jPropertyGraphStore of LlamaIndex, but got {source!r:.100}."
        )
    import kg_retrievers  # its names are loaded when they are used

    store = getattr(source, "property_graph_store", source)
    return kg_retrievers.Neo4jExecutor(driver=driver, database=getattr(store, "_database", None), key=None)


def driver_of(source: Any) -> Any:
    """Return the driver of neo4j that an object is or holds.

    None if it has none.
    """
    store = getattr(source, "property_graph_store", source)
    held = (store, getattr(store, "_driver", None))
    return next((one for one in held if hasattr(one, "session") and hasattr(one, "execute_query")), None)
