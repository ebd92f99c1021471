"""Parts of a graph that stays in its database: what one question needs, and what reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.types import Triple

#: How many facts, or entities of one name, are read, and how many seconds that may take, by default.
MOST_FACTS, MOST_OF_NAME, TIMEOUT = 1000, 100, 30.0


class Said(NamedTuple):
    """What a database says of a fact in addition to its head, relation and tail.

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
            others. `describe` tells of those that are not among them.
        said: What else is said of facts.
    """

    triples: list[Triple]
    truncated: bool
    entities: Sequence[StoredEntity] = ()
    said: Mapping[Triple, Said] = MappingProxyType({})


class StoredEntity(NamedTuple):
    """An entity as the database describes it.

    Args:
        key: Its key.
        label: Its label; the key where it has none.
        aliases: Its further names.
        types: Its types.
    """

    key: str
    label: str
    aliases: list[str]
    types: list[str]


class EntityPage(NamedTuple):
    """Some entities of a graph, and where the next ones begin.

    Args:
        entities: The entities, each once, sorted by key; fewer than were asked for, perhaps, on any page.
        position: What `entities_after` takes to read on, in this process or another; None if these are the last ones.
    """

    entities: list[StoredEntity]
    position: str | None


class PartReader(Protocol):
    """Reads parts of a graph, each by a few queries that only read, of which the rows are bounded.

    The entities of equal keys are one entity, as in `KnowledgeGraph`. Results are the same each time while the database
    does not change. Where there are more facts than `limit`, the first ones in the order of the database are read.

    Args of all methods:
        limit: The most facts, 1 or more; one more is fetched, to know whether there are more.
        timeout: How many seconds all queries of the call may take together, above 0.

    All methods raise what `Executor.run` raises, never a part of an answer instead.
    """

    def relations(self, *, refresh: bool = False, timeout: float = TIMEOUT) -> list[str]:
        """Return the names of relations as they stand in triples, sorted; `refresh` reads them anew."""

    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        """Return how many facts there are; None if the database would look at all of them to count."""

    def facts_of(
        self,
        keys: Sequence[str],
        *,
        relations: Sequence[str] | None = None,
        limit: int = MOST_FACTS,
        timeout: float = TIMEOUT,
    ) -> Facts:
        """Read the facts whose head or tail is one of some entities.

        Args:
            keys: The keys of the entities; those that are not in the database have no facts.
            relations: The relations that the facts may have; None for any. The database may lack some.
            limit: The most facts.
            timeout: The most seconds.
        """

    def facts_between(self, keys: Sequence[str], *, limit: int = MOST_FACTS, timeout: float = TIMEOUT) -> Facts:
        """Read the facts whose head and tail are both among some entities."""

    def describe(self, keys: Sequence[str], *, timeout: float = TIMEOUT) -> list[StoredEntity]:
        """Describe those of the entities that the database has, sorted by key."""

    def entities_named(
        self, names: Sequence[str], *, limit: int = MOST_OF_NAME, timeout: float = TIMEOUT
    ) -> dict[str, list[str]]:
        """Return the keys of the entities whose key, label or alias is exactly one of some names.

        Returns:
            For each of the names, in their order, the keys sorted; the first `limit` of them, where there are more.
        """

    def sample_facts(self, relations: Sequence[str], count: int, *, timeout: float = TIMEOUT) -> Facts:
        """Read some facts of each of some relations, those that the database finds first.

        Args:
            relations: The relations; the database may lack some.
            count: The most facts of each relation, 1 or more.
            timeout: The most seconds.

        Returns:
            The facts; truncated if there are more of any of the relations.
        """

    def entities_after(self, position: str, page_size: int, *, timeout: float = TIMEOUT) -> EntityPage:
        """Read a page of all entities.

        What is added or removed meanwhile may be on a page or not; all else is on one page exactly.

        Args:
            position: Where the page begins: the position of the page before, or "" for the first one.
            page_size: The most entities, 1 or more.
            timeout: The most seconds.
        """


def executor_of(source: Any, who: str, method: str) -> Any:
    """Return an executor as it is, and a `Neo4jExecutor` for a driver of neo4j or a store that holds one.

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
    """Return the driver of neo4j that something is or holds; None if it has none."""
    store = getattr(source, "property_graph_store", source)
    held = (store, getattr(store, "_driver", None))
    return next((one for one in held if hasattr(one, "session") and hasattr(one, "execute_query")), None)
