"""The queries of the state, checks of the names in them and of their results, and their rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypeVar, cast

from langchain_core.runnables import RunnableLambda
from pydantic import Field, with_config
from typing_extensions import TypedDict

from kg_retrievers.core.stages import EXACT, Confidence, RetrievalState, check_types
from kg_retrievers.database.executor import Executor
from kg_retrievers.database.grammar import SyntaxNode, alias_of, read, variables_of
from kg_retrievers.database.safety import check_read_only
from kg_retrievers.database.schema import DatabaseSchema
from kg_retrievers.database.sparql.schema import SparqlSchema
from kg_retrievers.database.tokens import Token, refusal
from kg_retrievers.database.values import EntityNode, Rows, triples_in
from kg_retrievers.deadline import await_foreign_function
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.graph.parts import PartReader
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.sg_rag.operations import RunQuery
from kg_retrievers.methods.sg_rag.writers import MAX_STATED

Input = TypeVar("Input")
Output = TypeVar("Output")

#: Functions whose values hold relationships if their arguments do.
HOLDING = ("coalesce", "collect", "head", "last", "relationships", "rels", "tail")

#: The next step after a query of another form.
_FORM = 'Write a query as {"query": text, "parameters": {name: value}}, or as its text alone.'


@with_config(EXACT)
class BoundQuery(TypedDict):
    """A further query of an operation: for a count that more rows than are fetched have, or for all of a share.

    A query for all of a share has its operation and its pattern, as "attributed", if its facts are wanted.
    """

    query: str
    parameters: dict[str, Any]
    operation: NotRequired[dict[str, Any]]
    attributed: NotRequired[dict[str, Any]]


@with_config(EXACT)
class FactsQuery(BoundQuery):
    """The query for the facts of some targets, whose keys its parameter `shown` takes."""

    shown: str


#: A query of the state: its text, its parameters, its writer, how sure the writer is, the words of the question left
#: over, the relations that came nearest, the example that its template is from, and whether unknowns may be entities
#: that its pattern names only since nothing else is found. With an operation, its rows are bindings: see `bound_by`.
#: "facts" is the query for their facts, "count" and "whole" are each a `BoundQuery`, and "side" says which unknown it
#: finds for "compare". "attributed" is the pattern, if its attributes are read. With an operation about whole entities,
#: its rows are facts around them, and "around" is the pattern. "turned" holds triples of its pattern that were turned,
#: as they were written. "truncated" is as in a `Pattern`.
CypherQuery = TypedDict(
    "CypherQuery",
    {
        "query": str,
        "parameters": NotRequired[dict[str, Any]],
        "from": NotRequired[str],
        "confidence": NotRequired[Confidence],
        "unplaced": NotRequired[list[str]],
        "nearest": NotRequired[list[str]],
        "lacking": NotRequired[list[str]],
        "truncated": NotRequired[bool],
        "example": NotRequired[dict[str, Any]],
        "widened": NotRequired[bool],
        "operation": NotRequired[dict[str, Any]],
        "target": NotRequired[str],
        "facts": NotRequired[FactsQuery],
        "count": NotRequired[BoundQuery],
        "whole": NotRequired[BoundQuery],
        "around": NotRequired[dict[str, Any]],
        "attributed": NotRequired[dict[str, Any]],
        "side": NotRequired[str],
        "turned": NotRequired[list[list[Any]]],
    },
)
with_config(EXACT)(CypherQuery)


class CypherState(RetrievalState, total=False):
    """The state of the stages of `CypherRetriever`."""

    #: `[{"query": text, "parameters": {name: value}, "from": writer}, ...]`, run in this order until one has rows.
    #: Queries of templates also have "example": `{"question": text, "distance": float}`. Queries of an operation have
    #: it as "operation", and "facts": the query for the facts that it rests on.
    cypher: Annotated[list[CypherQuery], Field(max_length=MAX_STATED)]


def read_queries(cypher: object) -> Any:
    """Return queries as the state holds them, from the input of `check_inputs`.

    Raises:
        InvalidArgumentError: If they have another form.
    """
    rows = [cypher] if isinstance(cypher, str | Mapping) else cypher
    if isinstance(rows, list | tuple):
        rows = [{"query": row} if isinstance(row, str) else row for row in rows]
    try:
        return check_types(CypherState, {"cypher": rows}, "CypherRetriever")["cypher"]
    except InvalidArgumentError as error:
        raise InvalidArgumentError(error.message, hint_python=_FORM) from None


def complete_query(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query that a caller gives, with all of its keys and as JSON holds it.

    Raises:
        InvalidArgumentError: If JSON does not hold its parameters.
    """
    full = {"query": None, "parameters": {}, "from": "given", **query}
    try:
        copied: dict[str, Any] = json.loads(json.dumps(full, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"CypherRetriever: parameters must be JSON-safe, but {error}.", hint_python=_FORM
        ) from error
    return copied


def checked_executor(executor: Any) -> Executor | None:
    """Return an executor that has all that the retriever calls, or None.

    Raises:
        ValueError: If it lacks something.
    """
    if executor is not None and not all(hasattr(executor, name) for name in ("run", "schema", "dialect")):
        raise ValueError("wanted an executor, such as LadybugExecutor(path) or Neo4jExecutor(uri)")
    checked: Executor | None = executor
    return checked


def cancellable(function: Callable[[Input], Output]) -> RunnableLambda[Input, Output]:
    """Return a function that asks a database as a runnable. If its async call is cancelled, so are its queries."""

    async def in_background(input: Input) -> Output:
        return await await_foreign_function(function, input)

    return RunnableLambda(function, in_background)


def checked_text(query: str, parameters: Mapping[str, Any], schema: DatabaseSchema, *, shows_facts: bool) -> str:
    """Check a query and return the query to run.

    It must only read, and only use names of the database. If wanted, it must return facts.

    Raises:
        QuerySafetyError: If not.
    """
    if isinstance(schema, SparqlSchema):
        return _checked_sparql(query, parameters, schema, shows_facts=shows_facts)
    text = check_read_only(
        query,
        labels=[*(label.name for label in schema.labels), *schema.type_labels],
        relations=[relation.name for relation in schema.relations],
        parameters=parameters,
    ).text
    if shows_facts:
        check_shows_facts(text)
    return text


def _checked_sparql(query: str, parameters: Mapping[str, Any], schema: SparqlSchema, *, shows_facts: bool) -> str:
    from kg_retrievers.database.sparql import safety  # they need an extra
    from kg_retrievers.database.sparql.executor import fact_columns
    from kg_retrievers.database.sparql.tokens import refusal as sparql_refusal

    checked = safety.check_read_only(query, parameters=parameters, namespaces=schema.vocabulary.names.namespaces)
    if shows_facts and not fact_columns(checked.columns):
        reason = ", which returns no fact: return the head, relation and tail of each AS ?h0 ?r0 ?t0, ?h1 ?r1 ?t1, ..."
        raise sparql_refusal(query, checked.tokens[0], reason)
    return query.strip()


def check_shows_facts(query: str) -> None:
    """Check that a query returns a relationship or a path.

    Raises:
        CypherSafetyError: If not, so that there would be no evidence.
    """
    tokens, root = read(query)
    facts = {name for node in root.walk() if node.rule == "relationship" for name in variables_of(tokens, node)}
    for node in root.walk():
        if node.rule == "pattern" and node.inside[0].rule == "variable":
            facts.add(tokens[node.start].name)
        elif node.rule in ("column", "clause") and facts.intersection(_whole(tokens, node)):
            facts.update(alias_of(tokens, node))
    for part in root.inside[0].inside:
        columns = part.inside[-1].inside[0]
        if tokens[columns.start].text != "*" and facts.isdisjoint(_whole(tokens, columns)):
            reason = ", which returns no relationship: name each one, as in -[r0:TYPE]->, and return them all"
            raise refusal(query, tokens[columns.start], reason)


def _whole(tokens: Sequence[Token], node: SyntaxNode) -> Iterator[str]:
    """Yield the variables that stand for their whole value: not for a property of it, or a function of it."""
    if node.rule == "variable":
        yield tokens[node.start].name
    elif node.rule == "call" and tokens[node.start].name.lower() not in HOLDING:
        return
    elif node.rule != "value" or not node.find("name"):
        for inner in node.inside:
            yield from _whole(tokens, inner)


class LackingRowsError(Exception):
    """The rows of a query name entities or facts that a part of a connected graph lacks."""

    def __init__(self, keys: Collection[str], facts: Collection[Triple]) -> None:
        """Take the missing entities and facts."""
        super().__init__("The rows name what the part of the graph lacks.")
        self.keys, self.facts = keys, facts


class RowCache:
    """Runs each query once.

    Args:
        run: Runs a query.
    """

    def __init__(self, run: RunQuery) -> None:
        """Begin empty."""
        self._run = run
        self._rows: dict[str, Rows] = {}
        self._looked_up: set[str | Triple] = set()

    def run(self, index: GraphIndex, query: Mapping[str, Any], most: int) -> Rows:
        """Return the rows of a query.

        Raises:
            LackingRowsError: If they name entities or facts that a part of a connected graph lacks, unless these were
                looked for already.
        """
        key = repr((query["query"], query["parameters"], most))
        if key not in self._rows:
            self._rows[key] = self._run(query, most)
        rows = self._rows[key]
        if index.reader is None:
            return rows
        facts = {triple for row in rows.rows for triple in triples_in(row)} - self._looked_up
        keys = {key for row in rows.rows for value in row for key in _keys_in(value)} - self._looked_up
        self._looked_up.update(facts, keys)
        if index.holding(keys, facts) is not index:
            raise LackingRowsError(keys, facts)
        return rows


def _keys_in(value: Any) -> Iterator[str]:
    """Yield the keys of nodes in a value of a row. Any text may be one."""
    if isinstance(value, EntityNode | str):
        yield value.key if isinstance(value, EntityNode) else value
    elif isinstance(value, list):
        for part in value:
            yield from _keys_in(part)


def checked_reader(reader: PartReader) -> Executor:
    """Return the reader of a connected graph as an executor of queries.

    Raises:
        InvalidArgumentError: If it runs none.
    """
    try:
        return cast("Executor", checked_executor(reader))
    except ValueError:
        raise InvalidArgumentError(
            f"CypherRetriever: {reader!r:.100} reads a connected graph, but runs no queries.",
            hint_python="Give what runs them as executor=, such as Neo4jExecutor(uri).",
        ) from None


def check_view(index: GraphIndex, executor: Executor | None) -> None:
    """Refuse a view of a connected graph if another executor runs the queries, which would see more than it.

    Raises:
        InvalidArgumentError: If so.
    """
    if getattr(index.reader, "is_view", False) and executor not in (None, index.reader):
        raise InvalidArgumentError(
            "CypherRetriever: its queries would see all facts of the database, but the index is a view of some.",
            hint_python="Leave executor= out.",
        )
