"""What keeps an entity out of the rows of a question's queries.

The first of these holds, in this order:

1. A query further down the list has the entity, and one before it has rows, so that it does not run.
2. The query that runs has it, but a limit cuts it off, or its rank is above k, or another one wins the operation.
3. It has the entity once a condition or the direction of a relationship is left out.
4. Facts are lacking.

What a query asks for is read from its text (`asked`), whoever wrote it. Of SPARQL, and of Cypher with other clauses
than MATCH or with paths of several hops, nothing is said of 3 and 4. "too_far" cannot occur; "not_linked" and
"below_min_confidence" are for all methods the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document

from kg_retrievers.core.obstacles import Lift, Obstacle, Why, shown_fact
from kg_retrievers.database.executor import Executor
from kg_retrievers.database.schema import DatabaseSchema
from kg_retrievers.database.sparql.schema import SparqlSchema
from kg_retrievers.database.values import Rows
from kg_retrievers.errors import SearchBudgetError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.sg_rag.asked import ONE, Arrow, Asked, naming, of_one, read_asked, rewritten, used
from kg_retrievers.methods.sg_rag.operations import MAX_ROWS
from kg_retrievers.methods.sg_rag.subgraphs import subgraphs_of
from kg_retrievers.questions.missing_facts import AskedEdge, missing_facts

#: The stage that runs the queries.
STAGE = "run_cypher"

#: A query of the state.
Query = Mapping[str, Any]

#: Runs the last stage, with another k and perhaps other fields, and returns its Documents.
Answer = Callable[[Mapping[str, Any], Mapping[str, Any]], Sequence[Document]]


class Limits(NamedTuple):
    """The fields of the retriever of these names."""

    timeout: float
    max_rows: int
    max_bindings: int


def find_obstacle(
    graph: KnowledgeGraph, database: Executor, limits: Limits, answer: Answer, entity: str, state: Mapping[str, Any]
) -> Obstacle | None:
    """Return the first thing that keeps an entity out of the answers; None where nobody can tell.

    Args:
        graph: The graph.
        database: The database that is asked.
        limits: How much may be taken from it.
        answer: Runs the last stage.
        entity: The key of the entity.
        state: What the stages wrote.

    Cost: each query of the state once, without its limit of rows, and one for each of its conditions.
    """
    queries: Sequence[Query] = state.get("cypher") or ()
    return _Case(graph, database, limits, answer, entity, state).obstacle(queries) if queries else None


class _Case:
    """An entity that is no answer."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        database: Executor,
        limits: Limits,
        answer: Answer,
        entity: str,
        state: Mapping[str, Any],
    ) -> None:
        self.graph, self.database, self.answer, self.entity, self.state = graph, database, answer, entity, state
        self.timeout, self.max_rows, self.max_bindings = limits
        self.label = repr(self.graph.label(entity))
        self.schema: DatabaseSchema = database.schema()

    def obstacle(self, queries: Sequence[Query]) -> Obstacle | None:
        """Return the first thing that keeps the entity out."""
        rows = [self._rows(_plain(query)) for query in queries]
        having = [at for at, of_query in enumerate(rows) if self._has(of_query)]
        ran = next((at for at, of_query in enumerate(rows) if of_query.rows), 0)
        operation = queries[ran].get("operation")
        if having and operation and (operation["kind"] == "compare" or ran in having):
            return self._operation(queries, having[0])
        if having:
            return self._cut_off(rows[ran]) if ran in having else self._later(queries, ran, having[0])
        found = (self._condition(queries, at) or self._missing(queries, at) for at in range(ran, len(queries)))
        return next((obstacle for obstacle in found if obstacle is not None), None)

    # --- what queries return ------------------------------------------------------------------------------------------

    def _rows(self, query: Query, most: int = MAX_ROWS) -> Rows:
        return self.database.run(query["query"], query["parameters"], limit=most, timeout=self.timeout)

    def _has(self, rows: Rows) -> bool:
        return self._position(rows) is not None

    def _position(self, rows: Rows) -> int | None:
        """Return the position of the first row with the entity as an answer, from 1."""
        found = (row.row for row in subgraphs_of(rows, self.graph) if self.entity in row.answers)
        return next(found, None)

    # --- rows that are left out ---------------------------------------------------------------------------------------

    def _later(self, queries: Sequence[Query], ran: int, later: int) -> Obstacle:
        """Return the obstacle of a query that does not run, since one before it has rows."""
        text = f"Query number {later + 1} has {self.label}, but number {ran + 1} has rows, and none after it runs."
        lift = Lift(inputs={"cypher": [_given(queries[later])]})
        why: Why = "excluded" if queries[later].get("widened") else "outscored"
        if why == "excluded":
            text += " It differs in that an unknown may be an entity that the question names."
        return Obstacle(why, STAGE, text, lift, {"query": later + 1, "ran": ran + 1})

    def _cut_off(self, rows: Rows) -> Obstacle | None:
        """Return the limit that cuts off a row of the query that runs."""
        position = self._position(rows)
        assert position is not None
        if position > self.max_rows:
            text = f"{self.label} is in row {position} of the query; max_rows is {self.max_rows}."
            return Obstacle("pruned", STAGE, text, Lift(fields={"max_rows": position}), {"row": position})
        if (rank := self._rank({})) is not None:
            text = f"{self.label} is in Document {rank}, in the order of the query, and k is {self.state['k']}."
            return Obstacle("outscored", STAGE, text, Lift(inputs={"k": rank}), {"rank": rank, "row": position})
        if self._rank({"granularity": "subgraph"}) is None:
            return None
        text = f"{self.label} is in row {position}, whose facts stand in Documents of others (granularity)."
        return Obstacle("pruned", STAGE, text, Lift(fields={"granularity": "subgraph"}), {"row": position})

    def _rank(self, fields: Mapping[str, Any]) -> int | None:
        documents = self.answer({**self.state, "k": MAX_ROWS}, fields)
        return next((one.metadata["rank"] for one in documents if self.entity in one.metadata["answers"]), None)

    # --- the operation ------------------------------------------------------------------------------------------------

    def _operation(self, queries: Sequence[Query], at: int) -> Obstacle:
        """Return why an operation does not choose an entity that its query has."""
        kind, lift = queries[at]["operation"]["kind"], Lift(inputs={"cypher": [_plain(queries[at])]})
        try:
            documents = self.answer(self.state, {})
        except SearchBudgetError as error:
            return self._cut_operation(error.message, lift)
        value = documents[0].metadata["value"] if documents else None
        if kind in ("count", "exists", "compare"):
            text = f"The question is read to ask for {kind!r}, and {self.label} stands in none of the facts shown."
            return Obstacle("excluded", STAGE, text, lift, {"value": value})
        own = self._own_value(queries[at])
        details = {"value": value, "own": own}
        if own is None:
            text = f"The query has {self.label}, but no value of it that {kind!r} takes."
            return Obstacle("excluded", STAGE, text, lift, details)
        text = f"The query has {self.label}, but of {kind!r} it has {own}; what is chosen has {value}."
        return Obstacle("outscored", STAGE, text, lift, details)

    def _cut_operation(self, why: str, plain: Lift) -> Obstacle:
        """Return the obstacle of an operation that is not carried out, since it has more bindings than it takes."""
        lift = plain if self.max_bindings >= MAX_ROWS else Lift(fields={"max_bindings": MAX_ROWS})
        return Obstacle("pruned", STAGE, why, lift, {"max_bindings": self.max_bindings})

    def _own_value(self, query: Query) -> Any:
        """Return what the operation gives for the entity alone; None where it gives nothing, or this cannot tell."""
        asked = self._asked(query)
        if asked is None:
            return None
        one = of_one(asked.query, asked.target, self.schema, self.database.dialect)
        alone = {**query, "query": one, "parameters": {**asked.parameters, ONE: self.entity}}
        documents = self.answer({**self.state, "cypher": [alone]}, {})
        return documents[0].metadata["value"] if documents else None

    # --- conditions ---------------------------------------------------------------------------------------------------

    def _asked(self, query: Query) -> Asked | None:
        if isinstance(self.schema, SparqlSchema):
            return None
        return read_asked(query["query"], query["parameters"], self.schema)

    def _condition(self, queries: Sequence[Query], at: int) -> Obstacle | None:
        """Return the first condition of a query that excludes the entity, or the direction of its relationships.

        All are left out first, and then put back one after the other.
        """
        asked = self._asked(_plain(queries[at]))
        if asked is None or not self._fits(asked, asked.conditions, directions=False):
            return None
        if not self._fits(asked, asked.conditions):
            text = f"The query has {self.label} only if a fact is taken the other way round."
            lift = _lift(queries, at, _changed(queries[at], (), directions=False))
            return Obstacle("excluded", STAGE, text, lift, {})
        for position, condition in enumerate(asked.conditions):
            if not self._fits(asked, asked.conditions[position + 1 :]):
                text = f"The query has {self.label} only without its condition {condition}."
                lift = _lift(queries, at, _changed(queries[at], (condition,)))
                return Obstacle("excluded", STAGE, text, lift, {"condition": condition})
        return None

    def _fits(self, asked: Asked, left_out: Sequence[str], *, directions: bool = True) -> bool:
        """Return whether the entity is a target of a query without some conditions."""
        query = rewritten(asked.query, left_out, directions=directions)
        one = of_one(query, asked.target, self.schema, self.database.dialect)
        parameters = used(one, {**asked.parameters, ONE: self.entity})
        return bool(self._rows({"query": one, "parameters": parameters}, 1).rows)

    # --- facts --------------------------------------------------------------------------------------------------------

    def _missing(self, queries: Sequence[Query], at: int) -> Obstacle | None:
        """Return the facts that a query asks for and the graph lacks."""
        asked = self._asked(_plain(queries[at]))
        allowed = None if asked is None else self._allowed(asked)
        if asked is None or allowed is None:
            return None
        edges = [self._edge(arrow) for arrow in asked.arrows]
        if not all(edge.relations for edge in edges):
            return None
        lacking = missing_facts(self.graph, edges, allowed, asked.target)
        if not lacking.facts:
            return None
        shown = "; ".join(shown_fact(self.graph, fact) for fact in lacking.facts)
        text = f"{self.label} is in no row, since the graph lacks what the query asks for: {shown}."
        details = {
            "lacking": [list(fact) for fact in lacking.facts],
            "stand_ins": sorted(lacking.stand_ins.values()),
            "query": at + 1,
        }
        lift = replace(_lift(queries, at, _given(queries[at])), facts=lacking.facts)
        return Obstacle("no_such_edge", STAGE, text, lift, details)

    def _allowed(self, asked: Asked) -> dict[Hashable, Array] | None:
        """Return the entities that the nodes of a query may be; None where it names what the graph has not got."""
        find = self.graph.entities.find
        allowed: dict[Hashable, Array] = {asked.target: np.array([find(self.entity)])}
        for node, (_, by_key, texts) in asked.named.items():
            keys = texts if by_key else [key for text in texts for key in self.graph.entities_named(text)]
            ids = sorted({id for key in keys if (id := find(key)) >= 0})
            if not ids:
                return None
            allowed[node] = np.array(ids)
        return allowed

    def _edge(self, arrow: Arrow) -> AskedEdge:
        find, count = self.graph.relations.find, len(self.graph.relations)
        of_types = [find(self.schema.relation_of(type)) for type in arrow.types]
        relations = [relation for relation in of_types if relation >= 0] if arrow.types else list(range(count))
        return AskedEdge(arrow.head, relations, arrow.tail, arrow.directed)


def _given(query: Query) -> dict[str, Any]:
    """Return a query as a caller gives it, who is sure of it."""
    return {name: value for name, value in query.items() if name != "confidence"}


def _lift(queries: Sequence[Query], at: int, instead: Query) -> Lift:
    """Return the lift by which another query runs in the place of one, alone or with the other side of a comparison."""
    if "side" not in instead:
        return Lift(inputs={"cypher": [instead]})
    return Lift(inputs={"cypher": [instead if at == place else _given(query) for place, query in enumerate(queries)]})


def _plain(query: Query) -> dict[str, Any]:
    """Return the query for the facts of all that an operation takes; a query without operation as it is."""
    facts = query.get("facts")
    if facts is None:
        return {"query": query["query"], "parameters": query["parameters"]}
    text, shown, own = facts["query"], facts["shown"], dict(query["parameters"])
    if shown not in own:
        text = rewritten(text, naming(text, shown))
    elif not isinstance(own[shown], list):  # the query for facts compares it with a list
        own[shown] = [own[shown]]
    return {"query": text, "parameters": used(text, {**facts["parameters"], **own})}


def _changed(query: Query, left_out: Sequence[str], *, directions: bool = True) -> dict[str, Any]:
    """Return a query without some conditions or directions, and so its query for facts."""
    facts, left = query.get("facts"), list(left_out)
    if facts is not None:
        kept = naming(facts["query"], facts["shown"])
        of_facts = [one for one in left_out if one not in kept]
        shown = rewritten(facts["query"], of_facts, directions=directions)
        facts = {**facts, "query": shown, "parameters": used(shown, facts["parameters"])}
        if len(of_facts) < len(left):
            left += naming(query["query"], facts["shown"])
    text = rewritten(query["query"], left, directions=directions)
    changed = {**_given(query), "query": text, "parameters": used(text, query["parameters"])}
    return changed if facts is None else {**changed, "facts": facts}
