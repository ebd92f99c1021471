"""Run Cypher queries that only read, and read parts of the graph.

All work keeps to time limits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date
from functools import lru_cache, partial
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple, Self

from kg_retrievers.database.part_queries import ID_OF, MOST_READ, PartQueries, relationships_of
from kg_retrievers.database.properties import Recorder, attribute_names, node_attributes, properties_of
from kg_retrievers.database.rendering import TYPE_OF, ViewWriter, has_label, key_of
from kg_retrievers.database.safety import CheckedQuery, check_read_only, limited
from kg_retrievers.database.schema import DatabaseSchema, Dialect, NodeLabel, backticked, facts_in, no_keys, unread
from kg_retrievers.database.values import Relationship, Rows, StoredNode, resolve
from kg_retrievers.errors import DatabaseQueryError, InvalidArgumentError, SearchBudgetError, first_of, named_arguments
from kg_retrievers.graph import GraphBuilder
from kg_retrievers.graph.attributes import AttributeCondition, Where, conditions, read_attribute_set, satisfies
from kg_retrievers.graph.building import Reading
from kg_retrievers.graph.cache import Recent
from kg_retrievers.graph.parts import HALVES, TIMEOUT, PartReader
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader
from kg_retrievers.graph.readers.text_files import Attributes

#: How many seconds one page may take.
PAGE_TIMEOUT = 600.0

#: Of how many nodes the properties are counted.
MOST_COUNTED = 100_000

#: How many facts are examined to count the facts of a view.
MOST_SEEN = 20_000

#: The most combinations of labels of nodes without a key.
MOST_LABELS = 1000

#: How many queries a view remembers that it wrote.
RENDERED = 10_000

#: What `info` calls a database of each dialect.
NAMES: Mapping[Dialect, str] = {"ladybug": "LadybugDB", "neo4j": "Neo4j, or a database that speaks Bolt"}

#: How many keys are named.
NAMES_SHOWN = 10

#: `Executor.run`.
Run = Callable[..., Rows]


class _WholeGraph:
    """Reads all nodes and relationships with their properties.

    Nodes come with their names and types.

    A page begins after the last key of the page before it, so that each costs the same. If keys are indexed, no page
    costs more than its own rows. Nodes with equal keys become one entity, with the triples of all. A change made
    meanwhile may be read or not. Nodes without a key, and their relationships, are counted in the builder's `reading`.

    Args:
        run: Runs a query.
        schema: The schema of the database.
        dialect: Its Cypher.
        page_size: How many rows are read at a time.
    """

    def __init__(self, run: Run, schema: DatabaseSchema, dialect: Dialect, page_size: int) -> None:
        """Keep the arguments, and look up the types of keys."""
        self._run, self._dialect, self._page_size = run, dialect, page_size
        self._schema = replace(schema, labels=tuple(map(self._typed_by_all, schema.labels)))

    def read(self, attributes: Attributes) -> GraphBuilder:
        """Read everything.

        Args:
            attributes: Whether properties become facts and attributes of facts.

        Raises:
            InvalidArgumentError: If there are nodes, and none has a key.
        """
        schema, builder = self._schema, GraphBuilder()
        builder.reading = describe_reading(self._run, schema, self._dialect, PAGE_TIMEOUT)
        reader = AttributeReader(builder, attributes, "KnowledgeGraph.from_executor")
        read, repeated = set[str](), 0
        for label in schema.labels:
            keys, done = dict[str | int, None](), set[str]()
            for key, labels, said in self._nodes(label):
                before = [one for one in schema.labels if one.name < label.name and one.name in labels]
                earlier = [one.name for one in before if said.get(one.key) is not None]
                done.update(earlier)
                if not earlier:  # its triples were not read yet
                    keys[key] = None
                    repeated += str(key) in read
                    read.add(str(key))
                    reader.add_node(str(key), node_attributes(said, label, labels, schema))
            ordered = [*keys]
            for start in range(0, len(ordered), self._page_size):
                some = ordered[start : start + self._page_size]
                for head, relation, tail, said in self._triples(label, done, some[0], some[-1]):
                    if tail:
                        reader.add_edge(head, relation, tail, said)
        if builder.reading.left_out and not read:
            raise no_keys("KnowledgeGraph.from_executor", schema.labels)
        if repeated:
            shown = f"{repeated:,}, each taken as that node"
            builder.reading.understood["nodes with the key of another node"] = shown
        reader.finish()
        return builder

    def _typed_by_all(self, label: NodeLabel) -> NodeLabel:
        """Return a label whose keys count as texts if their types differ from the schema."""
        key = f"n.{backticked(label.key)}"

        def count(where: str, **parameters: Any) -> int:
            query = f"MATCH (n:{backticked(label.name)}) WHERE {key} {where} RETURN count(*) AS nodes"
            return int(self._run(query, parameters, limit=1, timeout=PAGE_TIMEOUT).rows[0][0])

        is_typed = count("IS NOT NULL") == count(">= $least", least=label.least)
        return label if is_typed else replace(label, properties={**label.properties, label.key: "ANY"})

    def _nodes(self, label: NodeLabel) -> Iterator[tuple[str | int, list[str], dict[str, Any]]]:
        """Yield key, labels and properties of a label's nodes, in database order."""
        order = {"key": label.key_order("n", self._dialect), "place": ID_OF[self._dialect].format("n")}
        labels = "NULL" if self._dialect == "ladybug" else "labels(n)"
        further = f"{labels} AS labels, {properties_of('n', [label.properties], self._dialect)} AS said"
        match, where = f"MATCH (n:{backticked(label.name)})", f"{order['key']} > $least AND {order['key']} >= $first"
        for key, _, names, said in self._pages(match, where, order, further, least=label.least, first=label.least):
            yield key, names or [label.name], dict(said or {})

    def _triples(
        self, label: NodeLabel, done: Collection[str], first: str | int, last: str | int
    ) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
        """Yield head, relation, tail and properties of relationships.

        The tail is empty if it has no key.

        Their heads have the label, no key by the labels that are `done`, and keys from the first to the last.
        """
        schema, dialect = self._schema, self._dialect
        head, tail = label.key_order("a", dialect), f"coalesce({key_of('b', schema, dialect)}, '')"
        order = {"head": head, "tail": tail, "type": f"{TYPE_OF[dialect]}(r)", "place": ID_OF[dialect].format("r")}
        where = f"{head} >= $first AND {head} <= $last"
        for name, key in ((one.name, one.key) for one in schema.labels if one.name in done):
            where += f" AND NOT ({has_label('a', name, dialect)} AND a.{backticked(key)} IS NOT NULL)"
        for types, said, _ in relationships_of(schema, dialect, label):
            match = f"MATCH (a:{backticked(label.name)})-[r{types}]->(b)"
            for key, end, type, _, found in self._pages(match, where, order, f"{said} AS said", first=first, last=last):
                yield str(key), schema.relation_of(type), end, dict(found or {})

    def _pages(
        self, match: str, where: str, order: Mapping[str, str], further: str, **parameters: Any
    ) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query page by page.

        Args:
            match: Its MATCH.
            where: Its conditions. The first column is `$first` or above.
            order: The columns that it is sorted by, which differ in each row, and their expressions.
            further: The further columns.
            parameters: Its parameters.
        """
        beyond = ""
        for name, expression in reversed([*order.items()]):
            beyond = f"({expression} > ${name}{f' OR {expression} = ${name} AND {beyond}' if beyond else ''})"
        columns = ", ".join(f"{expression} AS {name}" for name, expression in order.items())
        result = f"RETURN {columns}, {further} ORDER BY {', '.join(order)}"
        query = f"{match} WHERE {where} {result}"
        while True:
            page = self._run(query, parameters, limit=self._page_size, timeout=PAGE_TIMEOUT)
            yield from page.rows
            if not page.truncated:
                return
            query = f"{match} WHERE {where} AND {beyond} {result}"
            parameters |= dict(zip(order, page.rows[-1], strict=False)) | {"first": page.rows[-1][0]}


def describe_reading(run: Run, schema: DatabaseSchema, dialect: Dialect, timeout: float) -> Reading:
    """Return the reading of each part of a database.

    It also says how much of the part no graph holds.
    """
    reading = Reading(NAMES[dialect])
    keys = [f"{label.name}.{label.key}" for label in schema.labels]
    reading.understood = {
        "keys": first_of(keys, NAMES_SHOWN),
        "types": f"the property {schema.types}" if schema.types else "the labels of nodes",
    }
    if not schema.labels and dialect == "ladybug":
        return reading

    def lacks(name: str) -> str:
        if not schema.labels:
            return "true"
        unlabelled = "" if dialect == "ladybug" else f" OR size(labels({name})) = 0"
        return f"coalesce({key_of(name, schema, dialect)}, '') = ''{unlabelled}"

    labels = "label(n)" if dialect == "ladybug" else "labels(n)"
    query = f"MATCH (n) WHERE {lacks('n')} RETURN {labels} AS labels, count(*) AS nodes"
    for names, nodes in run(query, limit=MOST_LABELS, timeout=timeout).rows:
        called = ":".join(sorted([names] if isinstance(names, str) else names)) or "no label"
        reading.leave_out(f"nodes without a key: {called}", nodes)
    if reading.left_out and schema.relations:
        query = f"MATCH (a)-[r]->(b) WHERE {lacks('a')} OR {lacks('b')} RETURN count(r) AS found"
        reading.leave_out("relationships of nodes without a key", run(query, timeout=timeout).rows[0][0])
    for match, held, what in (
        ("(x)", schema.labels, "node attribute {!r} with nested values or vectors"),
        ("()-[x]->()", schema.relations, "edge attribute {!r} with vectors"),
    ):
        if names := sorted({name for some in held for name in unread(some.properties)}):
            counts = ", ".join(f"count(x.{backticked(name)}) AS c{place}" for place, name in enumerate(names))
            (found,) = run(f"MATCH {match} RETURN {counts}", limit=1, timeout=timeout).rows
            for name, count in zip(names, found, strict=True):
                reading.leave_out(what.format(name), count)
    return reading


#: How many rows a query returns by default.
LIMIT = 1000

#: How each engine sorts by a column: LadybugDB refuses to sort by nodes, relationships, paths and lists.
SORT_KEYS: dict[Dialect, str] = {"ladybug": "CAST({} AS STRING)", "neo4j": "{}"}


@named_arguments
class Executor(PartReader):
    """Runs queries that only read, and reads parts of the graph as a `PartReader`. Safe to use from several threads.

    A copy, deep or not, is the executor itself: it is safe to share, and its connections cannot be copied. A pickle
    holds the values that another process needs to connect again.
    """

    #: Which Cypher it understands, or SPARQL.
    dialect: ClassVar[Dialect]

    @abstractmethod
    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        """Return the contents of the database as of the first call.

        With `refresh`, return its contents now.
        """

    def run(
        self, query: str, parameters: Mapping[str, Any] | None = None, *, limit: int = LIMIT, timeout: float = TIMEOUT
    ) -> Rows:
        """Run a query that only reads.

        Args:
            query: The query. It is checked first, and sorted by its columns so that the rows are always the same.
            parameters: The values of its parameters.
            limit: How many rows are returned, 1 or more. One more is fetched, to know whether there are more.
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
    def read_graph(self, page_size: int, attributes: Attributes = "facts") -> GraphBuilder:
        """Read the whole graph, `page_size` rows at a time.

        It serves `KnowledgeGraph.from_executor`.
        """

    @abstractmethod
    def reading(self, *, timeout: float = TIMEOUT) -> Reading:
        """Return the reading of each part of the database.

        It also says how much of the part no graph holds.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the database. A closed executor cannot be used again."""

    @abstractmethod
    def _run(self, query: str, parameters: Mapping[str, Any], limit: int, timeout: float) -> Rows:
        """Check a query, and run it until the deadline."""

    def __enter__(self) -> Self:
        """Return the executor itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()

    def relations(self, *, refresh: bool = False, timeout: float = TIMEOUT) -> list[str]:
        """Return the names of relations as they stand in triples, sorted.

        `refresh` reads the schema again.
        """
        with self._within(timeout, "relations"):
            schema = self.schema(refresh=refresh)
            return sorted({*schema.relation_names.values(), *schema.value_relations})


class Fetched(NamedTuple):
    """The result that came from a database.

    It has columns, and rows with nodes, relationships and paths in their stored forms.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


#: Runs a query: its text, its parameters, the most rows to fetch, the most seconds.
Fetch = Callable[[str, dict[str, Any], int, float], Fetched]


class DatabaseExecutor(Executor):
    """Check a Cypher query, have it run, and key its rows by entity."""

    takes_limits = True
    _schema: DatabaseSchema | None = None

    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        """Return the contents of the database.

        See `Executor.schema`.
        """
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

    def read_graph(self, page_size: int, attributes: Attributes = "facts") -> GraphBuilder:
        """Read the whole graph, `page_size` rows at a time.

        It serves `KnowledgeGraph.from_executor`.
        """
        return _WholeGraph(self.run, self.schema(), self.dialect, page_size).read(attributes)

    def reading(self, *, timeout: float = TIMEOUT) -> Reading:
        """Return the reading of each part of the database.

        See `Executor.reading`.
        """
        return describe_reading(self.run, self.schema(), self.dialect, timeout)

    @abstractmethod
    def _read_schema(self) -> DatabaseSchema:
        """Read the contents of the database."""

    @abstractmethod
    def _fetch(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        """Run a checked query and fetch `most` rows of it at most."""

    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        """Return how many relationships and properties of nodes there are.

        None if there are too many nodes to examine.

        Databases keep the number of relationships. A list counts once.
        """
        with self._within(timeout, "count_facts"):
            schema = self.schema()

            def count(query: str) -> int:
                return int(self._rows(query, {}, 1, timeout)[0][0])

            facts = count("MATCH ()-[r]->() RETURN count(r) AS facts") if schema.relations else 0
            if schema.value_relations and count("MATCH (n) RETURN count(n) AS nodes") > MOST_COUNTED:
                return None
            for label in schema.labels:
                if names := facts_in(label, schema):
                    counts = " + ".join(f"count(n.{backticked(name)})" for name in names)
                    facts += count(f"MATCH (n:{backticked(label.name)}) RETURN {counts} AS facts")
            return facts

    def _queries(self, timeout: float, wanted: Sequence[AttributeCondition] = ()) -> PartQueries:
        return PartQueries(self.schema(), self.dialect, partial(self._rows, timeout=timeout), wanted)

    def view(self, where: Where, as_of: date | str | None, validity: tuple[str, str]) -> ExecutorView:
        """Return a reader of only the facts whose attributes satisfy conditions.

        It serves `GraphIndex.view`.

        Raises:
            InvalidArgumentError: As of `KnowledgeGraph.view`, but not if no fact satisfies the conditions. An attribute
                is known if the schema has it. The schema of a large Neo4j database holds the attributes of a sample.
        """
        return ExecutorView(self, where, as_of, validity)

    def _rows(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Sequence[Sequence[Any]]:
        return self._fetch(query, parameters, most, timeout).rows

    @abstractmethod
    def _find_nodes(self, ids: list[Hashable]) -> Iterable[StoredNode]:
        """Read nodes by the database's own ids."""


class ExecutorView(PartReader):
    """Reads only the facts that satisfy conditions, and their entities.

    An entity without any fact is read, too, as a view of a graph in memory keeps it. The only queries that run are the
    queries that `render` writes for the schema of the view.

    Args:
        executor: Reads all facts.
        where: As of `KnowledgeGraph.view`, and so are the next two.
        as_of: A day on which the facts hold.
        validity: The names of the attributes that say when a fact holds.
    """

    #: So that a connected graph asks for nothing that this does not tell.
    is_view = True
    takes_limits = True

    def __init__(
        self, executor: DatabaseExecutor, where: Where, as_of: date | str | None, validity: tuple[str, str]
    ) -> None:
        """Check the conditions."""
        self._executor, self._made_with = executor, (where, as_of, validity)
        self._wanted = conditions(attribute_names(executor.schema()), where, as_of, validity)
        self._rendered: Recent[bool] = Recent(RENDERED)
        self.dialect = executor.dialect

    def __repr__(self) -> str:
        """The database."""
        return f"<view of {self._executor!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the executor and the conditions."""
        return type(self), (self._executor, *self._made_with)

    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        """Return the contents of the database.

        Patterns are written so that `run` can tell which rows are visible.
        """
        writer = partial(
            ViewWriter,
            dialect=self.dialect,
            wanted=self._wanted,
            note=lambda query: self._rendered.keep({query: True}),
        )
        return replace(self._executor.schema(refresh=refresh), pattern_writer=writer)

    def run(
        self, query: str, parameters: Mapping[str, Any] | None = None, *, limit: int = LIMIT, timeout: float = TIMEOUT
    ) -> Rows:
        """Run a query that `render` wrote for this view.

        The result has only rows of which all facts are visible.

        Raises:
            InvalidArgumentError: If it is another query.
            SearchBudgetError: If too many rows are hidden. All others are as of `Executor.run`.
        """
        if not self._rendered.get_all([query]):
            raise no_queries()
        most = limit
        with self._within(timeout, "run"):
            while True:
                found = self._executor.run(query, parameters, limit=most, timeout=timeout)
                rows = tuple(row for row in found.rows if all(map(self._shows, row)))
                if len(rows) >= limit or not found.truncated:
                    is_cut = found.truncated or len(rows) > limit
                    return replace(found, rows=rows[:limit], truncated=is_cut, labels={})
                if most >= MOST_READ:
                    raise SearchBudgetError(
                        "The index is a view of a database, which shows too few of the facts that a query finds first.",
                        hint_python="Ask for less, or narrow a copy of the graph: "
                        "KnowledgeGraph.from_executor(executor).view(...).",
                    )
                most = min(4 * most, MOST_READ)

    def _shows(self, value: Any) -> bool:
        """Tell whether a value of a row is no hidden fact."""
        if not isinstance(value, Relationship):
            return True
        said = Recorder()
        AttributeReader(said, "facts", "GraphIndex.view").add_edge(*value.triple, dict(value.properties))
        return any(satisfies(read_attribute_set(one), self._wanted) for sets in said.said.values() for one in sets)

    def relations(self, *, refresh: bool = False, timeout: float = TIMEOUT) -> list[str]:
        """Return the relations of visible facts, sorted.

        `refresh` reads the schema again.
        """
        found = self.sample_facts(self._executor.relations(refresh=refresh, timeout=timeout), 1, timeout=timeout)
        return sorted({triple.relation for triple in found.triples})

    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        """Return how many visible facts there are.

        None if there are too many facts to examine.
        """
        count = self._executor.count_facts(timeout=timeout)
        if count is None or count > MOST_SEEN:
            return None
        found = self.sample_facts(self._executor.relations(timeout=timeout), max(count, 1), timeout=timeout)
        return None if found.truncated else len(found.triples)

    def _within(self, timeout: float, what: str) -> AbstractContextManager[None]:
        return self._executor._within(timeout, what)

    def _queries(self, timeout: float) -> PartQueries:
        return self._executor._queries(timeout, self._wanted)


def no_queries() -> InvalidArgumentError:
    """Return the error of a query that a view of a database cannot narrow."""
    return InvalidArgumentError(
        "A view of a database runs only the queries that it writes itself, since others would see all facts.",
        hint_python="Ask a question, or run the query over a copy of what the view shows: "
        "LadybugExecutor.from_graph(KnowledgeGraph.from_executor(executor).view(...)).",
    )


@lru_cache(maxsize=1024)  # reading a query takes as long as running it does
def _checked(query: str, parameters: frozenset[tuple[str, int | None]], limit: int, dialect: Dialect) -> CheckedQuery:
    """Return the query that is sent. This is the one call that checks whether a query only reads."""
    return limited(check_read_only(query, parameters=dict(parameters)), limit, sort_key=SORT_KEYS[dialect])


#: The kinds of values. A list holds values of one kind. None stands among all.
_KINDS = (bool, int | float, str, type(None))


def _parameter(who: str, name: str, value: Any, *, in_list: bool = False) -> Any:
    """Return the value of a parameter if every database takes it and reads it alike."""
    match value:
        case _ if not isinstance(name, str):
            pass
        case None | bool() | float():
            return value
        case int() if -(2**63) <= value < 2**63:
            return value
        case str() if not HALVES.search(value):
            return value
        case list() | tuple() if not in_list:
            parts = [_parameter(who, name, part, in_list=True) for part in value]
            kinds = {next(kind for kind in _KINDS if isinstance(part, kind)) for part in parts}
            if len(kinds - {type(None)}) <= 1:  # LadybugDB fails on others, or changes them silently
                return parts
        case Mapping() if not in_list and all(isinstance(part, str) and not HALVES.search(part) for part in value):
            # In one order, since LadybugDB takes the names from the last in a list and the values as they come.
            return {part: _parameter(who, name, value[part]) for part in sorted(value)}
    raise InvalidArgumentError(
        f"{who}.run: the parameter ${name} holds {value!r:.200}. Wanted a name that is a text, and None, a bool, "
        "number (integers of 64 bits) or text (without halves of surrogate pairs), a list of these, all of one kind, "
        "or a dictionary of these."
    )
