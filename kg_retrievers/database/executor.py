"""Runs Cypher queries that only read, and reads parts of the graph, within time limits."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from kg_retrievers.database.part_queries import PartQueries
from kg_retrievers.database.rendering import TYPE_OF, has_label, key_of
from kg_retrievers.database.safety import CheckedQuery, check_read_only, limited
from kg_retrievers.database.schema import DatabaseSchema, Dialect, NodeLabel, backticked
from kg_retrievers.database.values import Rows, StoredNode, resolve
from kg_retrievers.deadline import deadline
from kg_retrievers.errors import DatabaseQueryError, DatabaseTimeoutError, InvalidArgumentError, first_of
from kg_retrievers.graph import GraphBuilder
from kg_retrievers.graph.building import Reading
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.parts import MOST_FACTS, MOST_OF_NAME, TIMEOUT, EntityPage, Facts, StoredEntity

#: How many seconds one page may take.
PAGE_TIMEOUT = 600.0

#: What `info` calls a database of each dialect.
NAMES: Mapping[Dialect, str] = {"ladybug": "LadybugDB", "neo4j": "Neo4j, or a database that speaks Bolt"}

#: How many keys, or properties that are left out, are named.
NAMES_SHOWN = 10

#: What to do with nodes that have no label.
_GIVE_LABEL = "Give them one, as by MATCH (n) WHERE size(labels(n)) = 0 SET n:Entity, and a key."

#: `Executor.run`.
Run = Callable[..., Rows]


def read_graph(run: Run, schema: DatabaseSchema, dialect: Dialect, page_size: int) -> GraphBuilder:
    """Read all triples, labels, types and aliases.

    A page begins where the one before ended, by key, so that each costs the same; where keys are indexed, no page costs
    more than its own rows. Nodes with equal keys become one entity, with the triples of all. A change made meanwhile
    may be read or not.

    Args:
        run: Runs a query.
        schema: What the database holds.
        dialect: Its Cypher.
        page_size: How many rows are read at a time.

    Raises:
        InvalidArgumentError: If there are nodes without a label, or without a text as key.
    """
    if dialect == "neo4j":  # LadybugDB has no such nodes
        (without,) = run(
            "MATCH (n) WHERE size(labels(n)) = 0 RETURN count(*) AS nodes", limit=1, timeout=PAGE_TIMEOUT
        ).column("nodes")
        if without:
            raise InvalidArgumentError(
                f"KnowledgeGraph.from_executor: {without} nodes have no label, by which nodes are read.",
                hint_python=f"{_GIVE_LABEL} Then make another executor.",
                hint_shell=_GIVE_LABEL,
            )
    rows = GraphBuilder()
    rows.reading = describe_reading(schema, dialect)
    read: dict[str, set[str]] = {}
    for label in schema.labels:
        keys = _read_entities(run, schema, label, page_size, rows)
        # An earlier label may hold the key: of the same node, whose triples were read then, or of another one.
        done = [earlier for earlier, its_keys in read.items() if not its_keys.isdisjoint(keys)]
        for start in range(0, len(keys), page_size):
            part = keys[start : start + page_size]
            ends = part[0], part[-1]
            for head, tail, type in _pages_of_triples(run, schema, dialect, label, done, ends, page_size):
                rows.add(head, schema.relation_of(type), tail)
        read[label.name] = set(keys)
    return rows


def describe_reading(schema: DatabaseSchema, dialect: Dialect) -> Reading:
    """Return what each part of a database is taken for, and which properties are left out: they are no facts."""
    reading = Reading(NAMES[dialect])
    keys = [f"{label.name}.{label.key}" for label in schema.labels]
    read = {name for name in (schema.label, schema.types, schema.aliases) if name is not None}
    of_nodes = [
        f"{label.name}.{name}" for label in schema.labels for name in label.properties if name not in {label.key, *read}
    ]
    of_relationships = [f"{relation.name}.{name}" for relation in schema.relations for name in relation.properties]
    reading.understood = {
        "keys": first_of(keys, NAMES_SHOWN),
        "labels": f"the property {schema.label}" if schema.label else "the keys",
        "types": f"the property {schema.types}" if schema.types else "the labels of nodes",
    }
    reading.leave_out(f"properties of nodes: {first_of(of_nodes, NAMES_SHOWN)}", len(of_nodes))
    reading.leave_out(f"properties of relationships: {first_of(of_relationships, NAMES_SHOWN)}", len(of_relationships))
    return reading


def _read_entities(run: Run, schema: DatabaseSchema, label: NodeLabel, page_size: int, rows: GraphBuilder) -> list[str]:
    """Add the entities of a label to the rows, and return their keys in the database's order."""
    node, key = f"(n:{backticked(label.name)})", f"n.{backticked(label.key)}"
    (nodes,), (with_key,) = (
        run(f"MATCH {node} {where} RETURN count(*) AS nodes", limit=1, timeout=PAGE_TIMEOUT).column("nodes")
        for where in ("", f"WHERE {key} > ''")
    )
    if with_key < nodes:
        raise InvalidArgumentError(
            f"KnowledgeGraph.from_executor: {nodes - with_key} of {nodes} nodes {label.name!r} have no text in "
            f"{label.key!r}, which holds their keys.",
            hint_python="Give them one, or make the executor with another key=...",
            hint_shell="Give them one, or name another property, by label if need be: --key LABEL=PROPERTY.",
        )
    held = (schema.label, schema.types, schema.aliases)
    names = [name for name in held if name is not None and name in label.properties]
    columns = ", ".join([f"{key} AS key", *(f"n.{backticked(name)}" for name in names)])
    keys, after, more = list[str](), "", True
    while more:
        query = f"MATCH {node} WHERE {key} > $after RETURN {columns} ORDER BY key"
        page = run(query, {"after": after}, limit=page_size, timeout=PAGE_TIMEOUT)
        for row in page.rows:
            keys.append(row[0])
            said: Mapping[Any, Any] = dict(zip(names, row[1:], strict=True))
            called = said.get(schema.label)
            is_first = isinstance(called, str) and called and row[0] not in rows.labels
            types = [label.name] if schema.types is None else said.get(schema.types)
            rows.describe(row[0], called if is_first else None, said.get(schema.aliases) or (), types or ())
        after, more = keys[-1] if keys else "", page.truncated
    return keys


def _pages_of_triples(
    run: Run,
    schema: DatabaseSchema,
    dialect: Dialect,
    label: NodeLabel,
    done: Collection[str],
    ends: Sequence[str],
    page_size: int,
) -> Iterator[tuple[str, str, str]]:
    """Yield head, tail and type of relationships.

    Their heads have the label, none of the labels that are `done`, and keys from the first to the last of `ends`.
    """
    head, tail, type = f"a.{backticked(label.key)}", key_of("b", schema, dialect), f"{TYPE_OF[dialect]}(r)"
    within = f"{head} >= $first AND {head} <= $last"
    within += "".join(f" AND NOT {has_label('a', name, dialect)}" for name in done)
    beyond = f"{head} > $head OR {head} = $head AND ({tail} > $tail OR {tail} = $tail AND {type} > $type)"
    match = f"MATCH (a:{backticked(label.name)})-[r]->(b) WHERE {within}"
    result = f"RETURN {head} AS head, {tail} AS tail, {type} AS type ORDER BY head, tail, type"
    query, parameters = f"{match} {result}", {"first": ends[0], "last": ends[1]}
    while True:
        page = run(query, parameters, limit=page_size, timeout=PAGE_TIMEOUT)
        yield from page.rows
        if not page.truncated:
            return
        query = f"{match} AND ({beyond}) {result}"
        parameters |= dict(zip(("head", "tail", "type"), page.rows[-1], strict=True))


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
    """Reads parts of a graph by queries of one language, as `PartReader` does without a timeout of its own."""

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


#: How many rows a query returns by default.
LIMIT = 1000

#: How each engine sorts by a column: LadybugDB refuses to sort by nodes, relationships, paths and lists.
SORT_KEYS: dict[Dialect, str] = {"ladybug": "CAST({} AS STRING)", "neo4j": "{}"}


class Executor(Immutable, ABC):
    """Runs queries that only read, and reads parts of the graph as a `PartReader`. Safe to use from several threads.

    A copy, deep or not, is the executor itself: it is safe to share, and its connections cannot be copied. A pickle
    holds what another process needs to connect again.
    """

    #: How many seconds the database has, after the timeout, to say itself that it stopped the query.
    _grace: ClassVar[float] = 0.0

    #: Which Cypher it understands, or SPARQL.
    dialect: ClassVar[Dialect]

    @abstractmethod
    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        """Return what the database held when this was first called, or what it holds now if `refresh`."""

    def run(
        self,
        query: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        limit: int = LIMIT,
        timeout: float = TIMEOUT,
    ) -> Rows:
        """Run a query that only reads.

        Args:
            query: The query. It is checked first, and sorted by its columns so that the rows are always the same.
            parameters: The values of its parameters.
            limit: How many rows are returned; 1 or more. One more is fetched, to know whether there are more.
            timeout: How many seconds it may take, above 0.

        Raises:
            CypherSafetyError: If the query may do more than read.
            InvalidArgumentError: If `limit`, `timeout` or a parameter is out of range or of another type.
            DatabaseQueryError: If the database refuses the query.
            DatabaseMemoryError: If the query needs more memory than it may take.
            DatabaseCrashError: If the query ended the process of the database.
            DatabaseTimeoutError: If the query was stopped.
            DatabaseCancelledError: If its caller no longer waits for it.
            DatabaseLoginError: If the database does not accept the credentials.
            DatabaseUnavailableError: If the database cannot be reached.
        """
        self._check_most("run", limit)
        with self._within(timeout, "run"):
            return self._run(query, parameters or {}, limit, timeout)

    @abstractmethod
    def read_graph(self, page_size: int) -> GraphBuilder:
        """Read the whole graph, `page_size` rows at a time; for `KnowledgeGraph.from_executor`."""

    @abstractmethod
    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        """Return how many facts there are; None where the database would look at all of them to say it."""

    @abstractmethod
    def close(self) -> None:
        """Close the database. A closed executor cannot be used again."""

    @abstractmethod
    def _run(self, query: str, parameters: Mapping[str, Any], limit: int, timeout: float) -> Rows:
        """Check a query, and run it until the deadline."""

    @abstractmethod
    def _queries(self, timeout: float) -> Queries:
        """Return the reader of parts in the language of the database."""

    def __enter__(self) -> Self:
        """Return the executor itself."""
        return self

    def __exit__(self, *error: object) -> None:
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
            return sorted({*self.schema(refresh=refresh).relation_names.values()})

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
        with self._within(timeout, "facts_of"):
            return self._queries(timeout).facts_of(wanted, relations, limit)

    def facts_between(self, keys: Sequence[str], *, limit: int = MOST_FACTS, timeout: float = TIMEOUT) -> Facts:
        """Read the facts whose head and tail are both among some entities."""
        wanted = self._checked("facts_between", keys, limit)
        with self._within(timeout, "facts_between"):
            return self._queries(timeout).facts_between(wanted, limit)

    def describe(self, keys: Sequence[str], *, timeout: float = TIMEOUT) -> list[StoredEntity]:
        """Describe those of the entities that the database has, sorted by key."""
        wanted = self._checked("describe", keys, 1)
        with self._within(timeout, "describe"):
            return self._queries(timeout).describe(wanted)

    def entities_named(
        self, names: Sequence[str], *, limit: int = MOST_OF_NAME, timeout: float = TIMEOUT
    ) -> dict[str, list[str]]:
        """Return the keys of the entities whose key, label or alias is exactly one of some names.

        Cost in Cypher: the index of each label's key and of its property of labels. Without an index, and for aliases,
        it is a pass over the nodes of the label.
        """
        wanted = [name for name in self._checked("entities_named", names, limit) if name]  # "" is no name
        with self._within(timeout, "entities_named"):
            found = self._queries(timeout).entities_named(wanted, limit)
        return {name: found.get(name, []) for name in dict.fromkeys(names)}

    def sample_facts(self, relations: Sequence[str], count: int, *, timeout: float = TIMEOUT) -> Facts:
        """Read some facts of each of some relations, those that the database finds first."""
        wanted = self._checked("sample_facts", relations, count)
        with self._within(timeout, "sample_facts"):
            return self._queries(timeout).sample_facts(wanted, count)

    def entities_after(self, position: str, page_size: int, *, timeout: float = TIMEOUT) -> EntityPage:
        """Read a page of all entities; see `PartReader.entities_after`."""
        self._checked("entities_after", [position], page_size)
        with self._within(timeout, "entities_after"):
            return self._queries(timeout).entities_after(position, page_size)

    def _checked(self, what: str, texts: Sequence[str], limit: int) -> list[str]:
        """Return texts each once, without those that no database holds."""
        who = f"{type(self).__name__}.{what}"
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise InvalidArgumentError(f"{who}: wanted a list of texts, got {texts!r:.200}.")
        self._check_most(what, limit)
        return [text for text in dict.fromkeys(texts) if not _HALVES.search(text)]


class Fetched(NamedTuple):
    """What came from a database: columns, and rows with nodes, relationships and paths in their stored forms."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


#: Runs a query: its text, its parameters, the most rows to fetch, the most seconds.
Fetch = Callable[[str, dict[str, Any], int, float], Fetched]


class DatabaseExecutor(Executor):
    """Checks a query in Cypher, has it run, and turns its rows into values by entity key."""

    _schema: DatabaseSchema | None = None

    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        """Return what the database holds; see `Executor.schema`."""
        if self._schema is None or refresh:
            self._schema = self._read_schema()
        return self._schema

    def _run(self, query: str, parameters: Mapping[str, Any], limit: int, timeout: float) -> Rows:
        who = type(self).__name__
        values = {name: _parameter(who, name, value) for name, value in parameters.items()}
        counts = frozenset((name, value if isinstance(value, int) else None) for name, value in values.items())
        bounded = _checked(query, counts, limit, self.dialect)
        used = {name: values[name] for name in bounded.parameters}
        schema = self.schema()
        columns, stored = self._fetch(bounded.text, used, limit + 1, timeout)
        if bounded.columns is not None:
            columns = [name or of_engine for name, of_engine in zip_longest(bounded.columns, columns, fillvalue="")]
        try:
            rows, labels = resolve(stored[:limit], schema, self._find_nodes)
        except RecursionError as cause:
            reason = "It returns lists or maps that are nested too deep."
            message = f"{who}.run: {reason} The query was: {query:.1000}"
            raise DatabaseQueryError(message, query, reason) from cause
        return Rows(tuple(columns), rows, len(stored) > limit, labels)

    def read_graph(self, page_size: int) -> GraphBuilder:
        """Read the whole graph, `page_size` rows at a time; for `KnowledgeGraph.from_executor`."""
        return read_graph(self.run, self.schema(), self.dialect, page_size)

    @abstractmethod
    def _read_schema(self) -> DatabaseSchema:
        """Read what the database holds."""

    @abstractmethod
    def _fetch(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        """Run a checked query and fetch `most` rows of it at most."""

    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        """Return how many relationships there are, a number that the databases keep."""
        with self._within(timeout, "count_facts"):
            if not self.schema().relations:
                return 0
            rows = self._rows("MATCH ()-[r]->() RETURN count(r) AS facts", {}, 1, timeout)
            return int(rows[0][0])

    def _queries(self, timeout: float) -> PartQueries:
        def run(query: str, parameters: dict[str, Any], most: int) -> Sequence[Sequence[Any]]:
            return self._rows(query, parameters, most, timeout)

        return PartQueries(self.schema(), self.dialect, run)

    def _rows(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Sequence[Sequence[Any]]:
        return self._fetch(query, parameters, most, timeout).rows

    @abstractmethod
    def _find_nodes(self, ids: list[Hashable]) -> Iterable[StoredNode]:
        """Read nodes by the database's own ids."""


@lru_cache(maxsize=1024)  # reading a query takes as long as running it does
def _checked(query: str, parameters: frozenset[tuple[str, int | None]], limit: int, dialect: Dialect) -> CheckedQuery:
    """Return the query that is sent. This is the one call that checks whether a query only reads."""
    return limited(check_read_only(query, parameters=dict(parameters)), limit, sort_key=SORT_KEYS[dialect])


#: The kinds of values, of which a list holds one; None stands among all.
_KINDS = (bool, int | float, str, type(None))


def _parameter(who: str, name: str, value: Any, *, in_list: bool = False) -> Any:
    """Return the value of a parameter, if every database takes it and reads it as the same value."""
    match value:
        case _ if not isinstance(name, str):
            pass
        case None | bool() | float():
            return value
        case int() if -(2**63) <= value < 2**63:
            return value
        case str() if not _HALVES.search(value):
            return value
        case list() | tuple() if not in_list:
            parts = [_parameter(who, name, part, in_list=True) for part in value]
            kinds = {next(kind for kind in _KINDS if isinstance(part, kind)) for part in parts}
            if len(kinds - {type(None)}) <= 1:  # LadybugDB fails on others, or changes them silently
                return parts
        case Mapping() if not in_list and all(isinstance(part, str) and not _HALVES.search(part) for part in value):
            # In one order, since LadybugDB takes the names from the last in a list and the values as they come.
            return {part: _parameter(who, name, value[part]) for part in sorted(value)}
    raise InvalidArgumentError(
        f"{who}.run: the parameter ${name} holds {value!r:.200}. Wanted a name that is a text, and None, a bool, "
        "number (integers of 64 bits) or text (without halves of surrogate pairs), a list of these, all of one kind, "
        "or a dictionary of these."
    )
