"""SG-RAG: a Cypher query written for the question, whose rows are subgraphs.

A. O. M. Saleh, G. Tür, Y. Saygın: SG-RAG: Multi-Hop Question Answering With Large Language Models Through Knowledge
Graphs. ICNLSP 2024 (ACL Anthology, not on arXiv).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable
from pydantic import Field, PlainValidator

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.prompts import AnswerPrompt
from kg_retrievers.core.retriever import MADE, BaseKGRetriever, Examples, LanguageModel
from kg_retrievers.core.stages import Body, Call, QuestionShape, Stage, Steps
from kg_retrievers.database.executor import LIMIT, Executor, ExecutorView, no_queries
from kg_retrievers.database.values import Rows
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph import Evidence, Pattern
from kg_retrievers.graph.operations import AROUND, Operation
from kg_retrievers.graph.parts import MAX_TIMEOUT, TIMEOUT
from kg_retrievers.index import GraphIndex, QuestionEntity, linker_of, question_entities
from kg_retrievers.methods.sg_rag.operations import (
    MAX_ROWS,
    RunQuery,
    Subgraph,
    find_around,
    operate,
    operate_with_attributes,
    subgraphs_of,
)
from kg_retrievers.methods.sg_rag.prompts import ANSWER_PROMPT
from kg_retrievers.methods.sg_rag.queries import (
    CypherQuery,
    CypherState,
    LackingRowsError,
    RowCache,
    cancellable,
    check_view,
    checked_executor,
    checked_reader,
    checked_text,
    complete_query,
    read_queries,
)
from kg_retrievers.methods.sg_rag.writers import CascadeCypherWriter
from kg_retrievers.questions.pattern_parts import cut_short, pattern_part
from kg_retrievers.questions.reader import ReaderFields, reader_arguments

#: Each preset by its name.
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        #: Section 4.1: "the triplets from the same subgraph are grouped together", and each record is a subgraph.
        "ties": "break",
        #: Section 4.1: all records that the query returns, up to `max_rows`.
        "k": 1000,
        #: Section 4.1: "(Subject, Relation, Object)".
        "style": "triples",
    },
}


class CypherRetriever(ReaderFields, BaseKGRetriever):
    """Write a Cypher or SPARQL query for the question and run it.

    The rows of the query hold the evidence and the answers. The executor decides the language: SPARQL for a
    `SparqlExecutor`, otherwise Cypher.

    The query comes from the template of an example that is near (`TemplateCypherWriter`). Otherwise it comes from the
    pattern that `QuestionReader` reads from the words of the question, or by a language model if neither is sure: see
    `CascadeCypherWriter`. Every query must only read, including queries that a caller gives: see `check_read_only`. A
    workflow can be interrupted before `run_cypher`, so that a person approves or edits `cypher`.

    If a name is ambiguous, or the nearest template finds nothing, the retriever tries up to `MAX_QUERIES` queries in
    order until one returns rows: queries for the other entities, and queries of the next nearest templates. In the
    details, "tried" is the number of queries that ran, and "example" the example of the template. If a caller gives
    queries, or a person puts them into the state, only these run. The score is 1: a subgraph fits the query or does
    not. If a pattern has an operation, one query returns all bindings, from which the operation is computed as in
    memory. Another query returns the facts that it rests on.

    A row is a subgraph: the relationships and paths in it, in stored direction. Its answer stands in the column
    `target`, or in the first column if there is no `target`: a node, or the key of one.

    Differs from the paper: templates come from examples with answers or patterns, not from a person. Names are
    parameters. A triple that several subgraphs share is shown once, with the first of them, unless each is a Document
    (`preset="paper"`). "rows" of the details counts the subgraphs.

    Cost: no call of the language model, or one or two if it is asked. Then one to `MAX_QUERIES` queries. Without
    `executor`, the graph is loaded into an embedded database the first time, and again in each copy of the retriever:
    6 s for 134,000 triples.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, Question, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "starring", "Amy Adams")]
        >>> facts += [("Arrival", "directed_by", "Denis Villeneuve"), ("Arrival", "starring", "Amy Adams")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> example = Question("Who directed films with Amy Adams?", answers=("Spike Jonze", "Denis Villeneuve"))
        >>> retriever = CypherRetriever.from_index(index, examples=[example])
        >>> print(retriever.invoke("Who directed films with Amy Adams?")[0].page_content)
        Arrival -> starring -> Amy Adams
        Arrival -> directed by -> Denis Villeneuve
        Her -> starring -> Amy Adams
        Her -> directed by -> Spike Jonze
    """

    state_class: ClassVar[type] = CypherState
    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"one entity", "several entities"})
    operations: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS

    #: From `{"question", "seed_entities", "entities", "executor"}` to the queries of the state.
    writer: Runnable[Any, list[dict[str, Any]]] = MADE
    #: Runs the queries, on a database that holds the indexed graph. None for the executor of a connected graph, or for
    #: a database that is made from the graph when needed.
    executor: Annotated[Executor | None, PlainValidator(checked_executor)] = None
    #: The content of one Document.
    granularity: Literal["subgraph", "triple"] = "subgraph"
    #: How the facts of a Document are written.
    style: DocumentStyle = "triples"
    #: "merge": all rows are one piece of evidence, whose answers are complete. "break": each row is one.
    ties: Literal["merge", "break"] = "merge"
    #: The most rows of a query. If there are more, the evidence is marked as truncated.
    max_rows: int = Field(default=LIMIT, ge=1, le=MAX_ROWS, strict=True)
    #: The most seconds that a query may take.
    timeout: float = Field(default=TIMEOUT, gt=0, le=MAX_TIMEOUT, strict=True)
    #: The prompt for answering, with the placeholders `question` and `evidence`.
    answer_prompt: AnswerPrompt = ANSWER_PROMPT

    def with_index(self, index: GraphIndex) -> Self:
        """As in the base. The other graph is loaded into a database of its own when a query first runs.

        Raises:
            InvalidArgumentError: If `executor` is set, whose database holds this retriever's graph.
        """
        if self.executor is not None and index.origin is not self.index.origin:
            raise InvalidArgumentError(
                f"{type(self).__name__}: its executor holds the graph that it was built on, and no other. Build it "
                "without executor=; each graph is then loaded into a database of its own."
            )
        return super().with_index(index)

    @classmethod
    def fields_made_from(
        cls, index: GraphIndex, llm: LanguageModel, examples: Examples, model: Any, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make the writer of queries, unless another one is given.

        The language model writes the pattern if neither an example nor the words of the question are sure. It is shown
        the examples nearest to the question. An example needs a pattern or answers.

        Raises:
            InvalidArgumentError: If a model is given, `writer` together with `llm` or `examples`, or `executor`
                together with a view of a graph in a database.
        """
        check_view(index, fields.get("executor"))
        super().fields_made_from(index, llm, examples, model, fields)
        if fields.get("writer") is None:
            return {"writer": CascadeCypherWriter(index, llm=llm, examples=examples, **reader_arguments(fields))}
        cls._check_made_once("writer", llm, examples)
        return {}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, write the queries, run them."""
        calls_model = getattr(self.writer, "calls_model", True)
        return (
            Stage("link_entities", self._link_entities, ("seed_entities",)),
            Stage("write_cypher", Steps(self._write), ("cypher",), calls_model),
            Stage("run_cypher", cancellable(self._run_cypher), ("answers", "documents")),
        )

    def _write(self, state: CypherState) -> Body[dict[str, Any]]:
        asked = yield Call(self._writer_input, state)
        queries = yield Call(self.writer, asked)
        written: dict[str, Any] = yield Call(self._written, queries)
        return written

    @property
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        """The prompts of the writer, if it has some, and the one for answering."""
        return {**getattr(self.writer, "prompts", {}), "answer": self.answer_prompt}

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """As in the base. Each query must only read, only use names of the database, and return relationships.

        `cypher` is a list of `{"query", "parameters"}`, or one of them, or the text of a query. A caller who gives a
        query is sure of it: its confidence is None.
        """
        cypher = inputs.get("cypher")
        if cypher is None:
            return super().check_inputs(inputs)
        checked = super().check_inputs({**inputs, "cypher": read_queries(cypher)})
        return checked | {"cypher": [_without_confidence(self._checked_query(query)) for query in checked["cypher"]]}

    def _link_entities(self, state: CypherState) -> dict[str, Any]:
        try:
            return {"seed_entities": _keys(self._entities(state["question"]))}
        except EntityLinkingError:  # a query may ask for all entities of a kind
            return {"seed_entities": []}

    def _entities(self, question: str) -> list[QuestionEntity]:
        """Return the entities that a question names, kept for the last question, since two stages ask."""
        linker = linker_of(self.index)
        return self._cache.get("entities", (self.index, question), lambda: question_entities(linker, question))

    def _writer_input(self, state: CypherState) -> dict[str, Any]:
        """Return the input of the writer, with the entities as they were found, unless a caller gave others."""
        question, seeds = state["question"], state["seed_entities"]
        try:
            entities = self._entities(question)
        except EntityLinkingError:
            entities = []
        if _keys(entities) != seeds:
            entities = question_entities(linker_of(self.index), question, seeds)
        return {"question": question, "seed_entities": seeds, "entities": entities, "executor": self.database}

    def _written(self, cypher: object) -> dict[str, Any]:
        """Check a writer's queries, unless it checks them itself, by an attribute `checks_queries`.

        The executor checks in any case that a query only reads.
        """
        if getattr(self.writer, "checks_queries", False):
            return {"cypher": cypher}
        queries = super().check_inputs({"cypher": read_queries(cypher)})["cypher"]
        return {"cypher": [self._checked_query(query) for query in queries]}

    def _checked_query(self, query: Mapping[str, Any]) -> dict[str, Any]:
        full = complete_query(query)
        if isinstance(self.database, ExecutorView):
            raise no_queries()
        schema = self.database.schema()
        operation = Operation.from_dict(full["operation"]) if "operation" in full else None
        shows_facts = operation is None or operation.kind in ("exists", *AROUND)
        text = checked_text(full["query"], full["parameters"], schema, shows_facts=shows_facts)
        for name in ("facts", "count", "whole"):
            if further := full.get(name):
                checked_text(further["query"], further["parameters"], schema, shows_facts=name == "facts")
        return {**full, "query": text}

    def _run_cypher(self, state: CypherState) -> dict[str, Any]:
        """Run the queries, each once. Over a part of a connected graph, fetch their rows' entities and facts."""
        cached = RowCache(lambda query, most: self._rows(state, query, most))
        index = self.index.holding(state.get("seed_entities") or ())
        while True:
            try:
                return self.over(index)._answer(state, partial(cached.run, index))
            except LackingRowsError as lacking:
                index = index.holding(lacking.keys, lacking.facts)

    def _answer(self, state: CypherState, run: RunQuery) -> dict[str, Any]:
        """Run the queries in order until one has rows. If the first has an operation, run all that have the same."""
        operation = state["cypher"][0].get("operation") if state["cypher"] else None
        queries = [query for query in state["cypher"] if query.get("operation") == operation]
        evidence = (self._found if operation is None else self._operate)(state, queries, run)
        return self.results(state, evidence)

    def _found(self, state: CypherState, queries: Sequence[CypherQuery], run: RunQuery) -> list[Evidence]:
        for tried, written in enumerate(queries, 1):
            rows = run(written, self.max_rows)
            details = {**self._details(state, written), "tried": tried, "rows": len(rows)}
            subgraphs = subgraphs_of(rows, self.graph)
            groups = [[one] for one in subgraphs] if self.ties == "break" else [subgraphs] * bool(subgraphs)
            truncated = rows.truncated or written.get("truncated", False)
            if found := [self._evidence(group, truncated, details) for group in groups]:
                return [replace(one, confidence=written.get("confidence")) for one in found]
        return []

    def _rows(self, state: CypherState, written: Mapping[str, Any], most: int) -> Rows:
        why = {name: written.get(name, ()) for name in ("unplaced", "nearest", "lacking")}
        self.check_confidence(state, written.get("confidence"), **why, truncated=written.get("truncated", False))
        return self.database.run(written["query"], written["parameters"], limit=most, timeout=self.timeout)

    def _details(self, state: CypherState, written: Mapping[str, Any]) -> dict[str, Any]:
        seeds = state.get("seed_entities") or []
        return {**_without_confidence(written), "entities": [[self.graph.label(key), key] for key in seeds]}

    def _operate(self, state: CypherState, queries: Sequence[CypherQuery], run: RunQuery) -> list[Evidence]:
        """Return the result of an operation as one piece of evidence, or none if the graph does not say."""
        if Operation.from_dict(queries[0]["operation"]).kind in AROUND:
            told = self._details(state, queries[0])
            around = find_around(queries, run, self.index, state["k"], self.max_rows)
            confidence = queries[0].get("confidence")
            return [replace(one, confidence=confidence, details={**told, **one.details}) for one in around]
        written: Any = queries[0].get("attributed")
        if written is not None:
            part = pattern_part(self.index, Pattern.from_dict(written))
            if part.truncated:
                raise cut_short("what facts say")
            found = operate_with_attributes(queries, run, part)
        else:
            found = operate(queries, run, self.graph, self.max_rows)
        if found is None:
            return []
        query, evidence = found
        return [
            replace(
                evidence,
                truncated=evidence.truncated or query.get("truncated", False),
                confidence=query.get("confidence"),
                details={**self._details(state, query), **evidence.details},
            )
        ]

    def _evidence(self, group: Sequence[Subgraph], truncated: bool, details: Mapping[str, Any]) -> Evidence:
        return Evidence(
            triples=tuple(dict.fromkeys(triple for subgraph in group for triple in subgraph.triples)),
            score=1.0,
            answers=tuple(dict.fromkeys(key for subgraph in group for key in subgraph.answers)),
            truncated=truncated,
            details=details if self.ties == "merge" else {**details, "row": group[0].row},
        )

    @property
    def database(self) -> Executor:
        """The executor that runs the queries: `executor`, or the executor of a connected graph.

        For another graph, a database is made from it the first time.

        Raises:
            InvalidArgumentError: If the reader of a connected graph runs no queries, or is a view used with an
                `executor`.
            MissingExtraError: If there is no `executor` and the extra `ladybug` is not installed.
        """
        check_view(self.index, self.executor)
        if self.executor is not None:
            return self.executor
        if self.index.reader is not None:
            return checked_reader(self.index.reader)
        graph = self.graph

        def make() -> Executor:
            from kg_retrievers.database.ladybug import LadybugExecutor  # it needs an extra

            return LadybugExecutor.from_graph(graph)

        return self._cache.get("database", (graph,), make)


def _without_confidence(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if name != "confidence"}


def _keys(entities: Sequence[QuestionEntity]) -> list[str]:
    return list(dict.fromkeys(key for entity in entities for key in entity.entities[: entity.best]))
