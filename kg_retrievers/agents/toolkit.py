"""KnowledgeGraphToolkit: the tools by which an agent reads a graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from inspect import signature
from typing import Annotated, Any, ParamSpec, TypeVar

import numpy as np
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import SkipJsonSchema

from kg_retrievers.agents import results
from kg_retrievers.agents.answers import TEXTS, answer_of, fact_of, refused, schema_of, told, value_of
from kg_retrievers.agents.bounds import (
    DEFAULT_TOKENS,
    LEAST_TOKENS,
    MOST_ITEMS,
    MOST_TOKENS,
    Entity,
    Limit,
    QuestionText,
    Relation,
    fit,
)
from kg_retrievers.agents.neighborhoods import described, neighbors_of, resolve, sort_by_words
from kg_retrievers.agents.results import shorten, shown
from kg_retrievers.chains.cited_answer import CheckedAnswerer, ExtractiveCitedAnswerer, LLMCitedAnswerer
from kg_retrievers.chains.evidence import AnswerInput, show_evidence
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.database.executor import Executor
from kg_retrievers.database.values import EntityNode, Relationship, triples_in
from kg_retrievers.errors import (
    BudgetError,
    EntityLinkingError,
    InvalidArgumentError,
    KGRetrieversError,
    NoEvidenceError,
    PatternError,
    PatternParseError,
    RefusalError,
    did_you_mean,
    listed,
    named_arguments,
)
from kg_retrievers.graph import KnowledgeGraph, Known, Path, Pattern, Term, Unknown, readable
from kg_retrievers.graph.cache import Cache
from kg_retrievers.graph.kinds import kind_members, kind_names
from kg_retrievers.graph.operations import MAX_CHAIN, Operation
from kg_retrievers.graph.parts import executor_of
from kg_retrievers.graph.validation import reasons
from kg_retrievers.graph.verbalize import as_data_lines, triple_lines
from kg_retrievers.index import GraphIndex, PartRequest, check_index, linker_of
from kg_retrievers.index.misspelt_names import near_entities
from kg_retrievers.methods import registry
from kg_retrievers.questions.prompts import parse_pattern

#: The most characters of an error.
MOST_OF_ERROR = 1_000

#: The tokens of evidence that a language model is shown.
EVIDENCE_TOKENS = 6_000

#: How many relations and types the descriptions of the tools name, and the most characters of each name.
NAMED_RELATIONS, NAMED_TYPES, NAME_LENGTH = 12, 8, 40

#: How many relations and types `relations_of` shows that are near to some words.
NEAR_RELATIONS, NEAR_TYPES = 15, 5

#: The most rows of a query.
MOST_ROWS = 200

#: How many of the names nearest to a text are examined, without and with a filter by type.
NEAR_NAMES, NEAR_NAMES_OF_TYPE = 16, 256

#: How many names `search_entities` shows that the text does not name.
NEAREST = 5

#: Kinds of unknowns in patterns that are no types: they, and single letters, stand for anything.
ANYTHING = ("thing", "entity")

# The arguments of the tools, beside those in `kg_retrievers.agents.bounds`.
_Text = Annotated[str, Field(max_length=1_000)]
_Words = Annotated[_Text, Field(description="What the relation means.")]
_Type = Annotated[_Text | SkipJsonSchema[None], Field(description="Only entities of this type.")]
_Entities = Annotated[list[Annotated[str, Field(min_length=1, max_length=1_000)]], Field(min_length=2, max_length=4)]
_Triples = Annotated[list[Annotated[list[_Text], Field(min_length=3, max_length=3)]], Field(max_length=20)]
_Conditions = Annotated[
    list[list[_Text | list[_Text]]],
    Field(max_length=20, description='Such as ["UNKNOWN year 1", "<", "1970"]; also =, !=, <=, >, >=, contains.'),
]
_Operation = Annotated[
    dict[str, Any] | SkipJsonSchema[None],
    Field(
        description='What is asked: {"kind": "count"}, {"kind": "exists"}, {"kind": "max", "by": ["UNKNOWN '
        'year 1"]}, also min; {"kind": "order", "by": [...], "limit": 3}. With "of": "count", how many "by" there are.'
    ),
]
_Target = Annotated[_Text | SkipJsonSchema[None], Field(description="The UNKNOWN that is asked for.")]
_Absent = Annotated[_Triples, Field(description="Triples that must not hold.")]
_Few = Annotated[int, Field(ge=1, le=100)]
_Start = Annotated[int, Field(ge=0, description="Facts to pass over.")]
_Hops = Annotated[int, Field(ge=1, le=MAX_CHAIN)]

#: The purpose of each tool. Placeholders: `relations`, `types` and `language`.
DESCRIPTIONS: Mapping[str, str] = TEXTS["tools"]


P = ParamSpec("P")
R = TypeVar("R")


def _checked(tool: Callable[P, R]) -> Callable[P, R]:
    """Check the types of the arguments of a tool that is called as a method.

    Raises:
        InvalidArgumentError: If they are of another type or out of range.
    """

    @wraps(tool)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        own, *given = signature(tool).bind(*args, **kwargs).arguments.items()
        try:
            checked = _arguments_of(call).model_validate(dict(given))
        except ValidationError as error:
            name = tool.__name__
            raise InvalidArgumentError(
                f"KnowledgeGraphToolkit.{name}: {reasons(error)} It takes {_takes(name)}."
            ) from None
        values: Any = {own[0]: own[1], **{field: getattr(checked, field) for field in type(checked).model_fields}}
        verb: Any = tool
        result: R = verb(**values)
        return result

    return call


@named_arguments
class KnowledgeGraphToolkit(BaseToolkit):
    """Tools by which an agent reads a graph.

    They are tools of LangChain, which LangGraph, LlamaIndex and MCP take, too.

    Each tool has the name of a method, which returns the result as a typed object. The message of a tool is the same as
    a text of at most `max_tokens`, in which everything from the graph stands in a frame, as data. Its artifact is the
    result as plain data. A mistake, a refusal or an unknown name is a message with the next step.

    Args:
        index: The indexed graph, or a view of it. The tools show nothing else.
        llm: Words the answers of `ask`, and helps the method to read questions.
        executor: The database in which `run_query` runs, by default the one of a connected graph. It runs any query
            that reads, so do not give one with a view that hides something. A view has none by default.
        runs_queries: Whether there is the tool `run_query`, if there is a database.
        method: The method of `ask`, by name, or a retriever over the index.
        max_tokens: The most tokens of a message, 500 to 8,000.

    Raises:
        InvalidArgumentError: If there is no such method, or an argument is of another type or out of range.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "director", "Spike Jonze"), ("Her", "starring", "Amy Adams")])
        >>> toolkit = KnowledgeGraphToolkit(GraphIndex.build(graph, default_embeddings()))
        >>> [tool.name for tool in toolkit.get_tools()][:4]
        ['search_entities', 'describe_entity', 'relations_of', 'facts']
        >>> toolkit.facts("Her", "starring").facts[0].text
        'Her -> starring -> Amy Adams'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid", frozen=True)

    index: GraphIndex
    llm: BaseChatModel | None = None
    executor: Any = None
    runs_queries: bool = True
    method: str | BaseKGRetriever = registry.DEFAULT.name
    max_tokens: int = Field(default=DEFAULT_TOKENS, ge=LEAST_TOKENS, le=MOST_TOKENS)

    _cache: Cache = PrivateAttr(default_factory=Cache)

    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseChatModel | None = None,
        executor: Any = None,
        runs_queries: bool = True,
        method: str | BaseKGRetriever = registry.DEFAULT.name,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> None:
        """Check the arguments."""
        who = type(self).__name__
        check_index(who, index)
        if isinstance(method, str):
            registry.find_method(method)
        if executor is not None:
            executor = executor_of(executor, who, "run")
        elif isinstance(index.reader, Executor):
            executor = index.reader
        fields: dict[str, Any] = {"index": index, "llm": llm, "executor": executor, "runs_queries": runs_queries}
        fields |= {"method": method, "max_tokens": max_tokens}
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InvalidArgumentError(f"{who}: {reasons(error)}") from None

    def get_tools(self) -> list[BaseTool]:
        """Return the tools.

        `run_query` is among them if there is a database in which it may run.
        """
        return [self._tool(name) for name in DESCRIPTIONS if name != "run_query" or self._has_queries]

    # --- the tools ----------------------------------------------------------------------------------------------------

    @_checked
    def search_entities(self, text: _Text = "", type: _Type = None, limit: _Few = 10) -> results.FoundEntities:
        """Find the entities that a text may mean, or the entities of a type.

        Raises:
            InvalidArgumentError: If neither is given, or there is no such type.
        """
        if not text.strip() and not type:
            raise InvalidArgumentError("search_entities: give a text, a type, or both.")
        kind, text, graph = self._kind(type) if type else None, text.strip(), self.index.whole.graph
        named, near = list[str](), list[str]()
        if text:
            named, near = self._named(text, NEAR_NAMES_OF_TYPE if kind else NEAR_NAMES)
            graph = self.index.part(PartRequest((*named, *near))).graph
        found = kind_members(graph, kind) if kind else None
        members: list[int] = [] if found is None else found.tolist()
        if kind and text:
            of_kind = {graph.entities[id] for id in members}
            named, near = ([key for key in keys if key in of_kind] for keys in (named, near))
        elif kind:
            named = [graph.entities[id] for id in members[:limit]]
        named = named[:limit]
        return results.FoundEntities(
            asked=text,
            entities=[self._entity(graph, key) for key in named],
            nearest=[self._entity(graph, key) for key in near[: min(NEAREST, limit - len(named))]],
            left_out=0 if text else len(members) - len(named),
            truncated=kind is not None and self.index.is_connected,
        )

    @_checked
    def describe_entity(self, entity: Entity) -> results.Neighbors:
        """Describe an entity.

        The result holds types, other names, its most telling facts, and counts of its relations.

        Raises:
            EntityLinkingError: If nothing has this name, or several entities have.
        """
        return described(self.index, resolve(self.index, entity))

    @_checked
    def relations_of(
        self, entity: _Text | SkipJsonSchema[None] = None, words: _Words = ""
    ) -> results.Neighbors | results.SchemaSummary:
        """Show the relations of an entity or of the graph.

        With words, the nearest relations come first.

        Raises:
            EntityLinkingError: If nothing has this name, or several entities have.
        """
        if not entity:
            return schema_of(self.index, words=words.strip(), most=(NEAR_RELATIONS, NEAR_TYPES))
        around = neighbors_of(self.index, resolve(self.index, entity), MOST_ITEMS, None)
        sides = sum((one.outgoing > 0) + (one.incoming > 0) for one in around.relations)
        one_each = around.model_copy(update={"facts": around.facts[:sides], "start": None, "left_out": 0})
        return sort_by_words(self.index, one_each, words.strip())

    @_checked
    def facts(
        self, entity: Entity, relation: Relation = None, limit: Limit = 50, start: _Start = 0
    ) -> results.Neighbors:
        """List the facts of an entity, as head or tail.

        Some facts of each relation come first.

        Raises:
            EntityLinkingError: If nothing has this name, or several entities have.
            InvalidArgumentError: If it has no fact of this relation, or not so many.
        """
        return neighbors_of(self.index, resolve(self.index, entity), limit, relation or None, start)

    @_checked
    def find_paths(self, entities: _Entities, max_hops: _Hops = 4, limit: _Few = 5) -> results.FoundPaths:
        """Find the shortest chains of facts that join each two of some entities.

        Raises:
            EntityLinkingError: If nothing has one of the given names, or several entities have it.
            NoEvidenceError: If no chain joins them.
        """
        keys = list(dict.fromkeys(resolve(self.index, one) for one in entities))
        if len(keys) < 2:
            raise InvalidArgumentError("find_paths: these are one entity. Name two.")
        connect = Operation("connect", max_hops=max_hops, limit=limit)
        pattern = Pattern.of(alone=[Known(key, entity=key) for key in keys], operation=connect)
        nothing = f"No chain of at most {max_hops} facts joins {listed(entities)}."
        documents = self._matches(pattern, limit, nothing)
        chains = [results.Chain(facts=_facts_of(document)) for document in documents]
        return results.FoundPaths(chains=chains, truncated=any(one.metadata["truncated"] for one in documents))

    @_checked
    def ask(self, question: QuestionText) -> results.Answer:
        """Answer a question, with the facts that the answer rests on.

        A refusal is an answer, too.
        """
        try:
            documents = self.retriever.invoke(question, on_refusal="raise")
        except RefusalError as refusal:
            return refused(question, refusal)
        return self._answer(question, documents)

    @_checked
    def run_pattern(
        self,
        triples: Annotated[_Triples, Field(min_length=1)],
        target: _Target = None,
        conditions: _Conditions = [],  # noqa: B006 - the arguments of a tool are not changed
        absent: _Absent = [],  # noqa: B006
        operation: _Operation = None,
    ) -> results.Answer:
        """Find all that fits a pattern, written as `parse_pattern` reads it.

        Its names and relations are exact.

        Raises:
            PatternError: If the pattern cannot be read, or names a relation or a type that the graph lacks, or if its
                target stands in no triple.
            EntityLinkingError: If it names an entity that the graph lacks, or that several entities are called.
        """
        written = {"triples": triples, "conditions": conditions, "absent": absent, "operation": operation}
        try:
            read = parse_pattern(json.dumps(written if target is None else written | {"target": target}))
        except PatternParseError as error:
            wrong = error.plain_message.partition(" Wanted one JSON object")[0]
            raise PatternError(f"run_pattern: {wrong}") from None
        pattern = self._exact(read)
        if target is not None and pattern.target is None:
            unknowns = listed([f"UNKNOWN {node.name}" for node in pattern.nodes if isinstance(node, Unknown)])
            raise PatternError(f"the target {shorten(target, 100)!r} stands in no triple; in triples are {unknowns}.")
        nothing = "Nothing in the graph fits the pattern. Check the direction of each triple."
        return self._answer("", self._matches(pattern, 1, nothing), with_llm=False)

    @_checked
    def run_query(self, query: _Text) -> results.QueryRows:
        """Run a query that only reads in the database.

        Raises:
            InvalidArgumentError: If there is no database.
            QuerySafetyError: If it does more than read.
            DatabaseError: If the database refuses it, or it takes too long.
        """
        if not self._has_queries:
            raise InvalidArgumentError(
                "run_query: there is no database to run a query in.", hint_python="Give executor= to the toolkit."
            )
        rows = self.executor.run(query, limit=MOST_ROWS)
        return results.QueryRows(
            columns=list(rows.columns),
            rows=[[_cell(cell, rows.labels) for cell in row] for row in rows.rows],
            facts=[fact_of(results.Fact, triple, rows.labels, None) for triple in triples_in(rows.rows)],
            truncated=rows.truncated,
        )

    # --- how they work ------------------------------------------------------------------------------------------------

    @property
    def _has_queries(self) -> bool:
        return self.runs_queries and self.executor is not None

    @property
    def retriever(self) -> BaseKGRetriever:
        """The retriever that `ask` asks.

        It is built once.
        """
        if not isinstance(self.method, str):
            return self.method
        method = registry.find_method(self.method)
        given = {"executor": self.executor} if method.runs_queries and self.executor is not None else {}

        def build() -> BaseKGRetriever:
            kind: Any = method.load_retriever()
            built: BaseKGRetriever = kind(self.index, llm=self.llm, **given)
            return built

        return self._cache.get("retriever", (), build)

    def _matches(self, pattern: Pattern, k: int, nothing: str) -> list[Document]:
        """Return the evidence that fits a pattern exactly.

        Raises:
            NoEvidenceError: If nothing fits, with the message `nothing`.
        """
        matcher: Any = registry.find_method("simgrag").load_retriever()
        made = self._cache.get("matcher", (), lambda: matcher(self.index, max_distance=0.0, direction="respect"))
        named = [node.text for node in pattern.nodes if isinstance(node, Known)]
        try:
            found: list[Document] = made.invoke("; ".join(named) or "all", pattern=pattern, k=k, on_refusal="raise")
        except NoEvidenceError:
            raise NoEvidenceError(nothing) from None
        return found

    def _answer(self, question: str, documents: list[Document], *, with_llm: bool = True) -> results.Answer:
        answerer = LLMCitedAnswerer(self.llm) if self.llm is not None and with_llm else ExtractiveCitedAnswerer()
        evidence = show_evidence(documents, "numbered", max_tokens=EVIDENCE_TOKENS)
        given = AnswerInput(question=question, documents=documents, evidence=evidence.text, citable=evidence.citable)
        checked = CheckedAnswerer(answerer, self.retriever.parse_answers) if with_llm else answerer
        return answer_of(checked.invoke(given), documents)

    def _named(self, text: str, k: int) -> tuple[list[str], list[str]]:
        """Return the keys of entities that a text names, and of names near to it.

        The text may misspell a name or give a part of it.
        """
        try:
            mentions = linker_of(self.index).link(text)
        except EntityLinkingError:
            mentions = []
        part = self.index.part(PartRequest(names=(text,), k=k, near=True))
        keys = part.graph.entities_named(text)
        keys += [candidate.entity for mention in mentions for candidate in mention.candidates]
        near = [entity.entity for entity in near_entities(part, [text])[0]]
        near += [part.graph.entities[id] for id in part.nearest_entities([text], k)[0].ids.tolist()]
        return list(dict.fromkeys(keys)), [key for key in dict.fromkeys(near) if key not in keys]

    def _kind(self, type: str) -> str:
        """Return the type that a text names.

        Raises:
            InvalidArgumentError: If the graph has no such type.
        """
        kinds = {readable(name).casefold(): name for name in kind_names(self.index.whole.graph)}
        wanted = readable(type).casefold()
        if wanted not in kinds:
            near = did_you_mean(wanted, kinds) or (f"it has {listed([*kinds.values()])}." if kinds else "it has none.")
            raise InvalidArgumentError(f"the graph has no type {shorten(type, 100)!r}; {near}")
        return kinds[wanted]

    def _entity(self, graph: KnowledgeGraph, key: str) -> results.FoundEntity:
        row = graph.adjacency.row(graph.entities.find(key))
        return results.FoundEntity(
            key=key,
            label=graph.label(key),
            types=graph.types_of(key)[:NAMED_TYPES],
            aliases=graph.aliases(key)[:NAMED_TYPES],
            facts=None if self.index.is_connected else row.stop - row.start,
        )

    def _exact(self, pattern: Pattern) -> Pattern:
        """Return a pattern with keys as entities and the graph's types as kinds.

        Raises:
            EntityLinkingError: If it names an entity that the graph lacks, or that several entities are called.
            PatternError: If it names a relation or a type that the graph lacks.
        """
        known = [node for node in pattern.nodes if isinstance(node, Known)]
        terms: dict[Term, Term] = {node: Known(node.text, entity=resolve(self.index, node.text)) for node in known}
        relations = [one.relation for one in (*pattern.triples, *pattern.absent) if isinstance(one.relation, Known)]
        texts = list(dict.fromkeys(relation.text for relation in relations))
        for text, near in zip(texts, self.index.nearest_relations(texts, 3) if texts else [], strict=True):
            if not len(near.ids) or near.distances[0] > 0:
                names = listed([self.index.graph.relations[id] for id in near.ids.tolist()]) or "none"
                raise PatternError(f"the graph has no relation {shorten(text, 100)!r}; the nearest are {names}.")
        types = {readable(name).casefold(): name for name in self.index.whole.graph.types_below}
        self._check_kinds(pattern, types)
        ends = (end for head, _, tail in (*pattern.triples, *pattern.absent) for end in (head, tail))
        for node in (*pattern.alone, *ends):
            if isinstance(node, Unknown) and node.type is not None:
                terms[node] = Unknown(node.name, types.get(readable(node.type).casefold()))
        return pattern.with_nodes(terms)

    def _check_kinds(self, pattern: Pattern, types: Mapping[str, str]) -> None:
        """Check the kinds of unknowns.

        Unknowns that stand for anything, or for tails of a relation without types, pass.

        Raises:
            PatternError: If the graph has types, and one of the kinds is none.
        """
        whole = self.index.whole
        bare = {readable(one.relation) for one in whole.graph.schema().relations if not one.tail_types}
        relations = {one.tail: one.relation for one in pattern.triples if isinstance(one.relation, Known)}
        for node in pattern.nodes:
            kind = node.type if isinstance(node, Unknown) else None
            if not kind or len(kind) == 1 or readable(kind).casefold() in (*types, *ANYTHING):
                continue
            relation = relations.get(node)
            if types and not (relation and readable(relation.text) in bare):
                [near] = whole.nearest_types([kind], 3)
                names = listed([whole.graph.types[id] for id in near.ids.tolist()])
                raise PatternError(
                    f"the graph has no type {shorten(kind, 100)!r}; the nearest are {names}. "
                    f"UNKNOWN {ANYTHING[0]} 1 stands for anything."
                )

    def _tool(self, name: str) -> BaseTool:
        verb = getattr(self, name)

        def run(**arguments: Any) -> tuple[str, dict[str, Any]]:
            try:
                result = fit(verb(**arguments), self.max_tokens, results.Result.in_words)
            except BudgetError:
                raise
            except KGRetrieversError as error:
                raise ToolException(error_text(name, error)) from error
            return result.in_words(), result.model_dump(mode="json", exclude_none=True)

        return StructuredTool(
            name=name,
            description=DESCRIPTIONS[name].format_map(self._words()).strip(),
            args_schema=_arguments(name),
            func=run,
            response_format="content_and_artifact",
            handle_tool_error=True,
            handle_validation_error=lambda error: wrong_arguments(name, error),
        )

    def _words(self) -> Mapping[str, str]:
        """Return the words of the descriptions for the graph, as data.

        These are its most frequent relations and types.
        """

        def make() -> dict[str, str]:
            graph = self.index.whole.graph
            facts = graph.relation_samples.facts
            relations = [graph.relations[one] for one in np.argsort(-facts, kind="stable").tolist()]
            sizes = {name: len(graph.type_entities(at)) for at, name in enumerate(graph.types)}
            types = sorted(sizes, key=lambda name: -sizes[name])
            dialect = getattr(self.executor, "dialect", "Cypher")
            return {
                "relations": _first(relations, NAMED_RELATIONS, "Relations"),
                "types": _first(types, NAMED_TYPES, "Types"),
                "language": "SPARQL" if dialect == "sparql" else "Cypher",
            }

        return self._cache.get("words", (), make)


def error_text(name: str, error: KGRetrieversError) -> str:
    """Return the message of a tool's error, and the next step, as data.

    A long text keeps its beginning and its end.
    """
    refusal = told(error)
    text = f"{name}: {refusal.reason.removeprefix(f'{name}: ')} Next step: {refusal.next_step}"
    return as_data_lines(text if len(text) <= MOST_OF_ERROR else f"{text[:500]} ... {text[-400:]}")


def wrong_arguments(name: str, error: Any) -> str:
    """Return the fault of a tool's arguments, the arguments that it takes, and the next step."""
    wrong = shorten(reasons(error), MOST_OF_ERROR)
    return as_data_lines(f"{name}: {wrong} It takes {_takes(name)}. Next step: Correct this, and call {name} again.")


def no_such_tool(name: str, tools: Sequence[str]) -> str:
    """Return the message about a tool that does not exist."""
    near = did_you_mean(name[:100], tools) or f"there are {listed(tools)}."
    return as_data_lines(f"there is no tool {name!r:.100}; {near}")


def read_result(name: str, artifact: Mapping[str, Any]) -> results.Result:
    """Return the typed result of a tool from the artifact of its message."""
    kind: TypeAdapter[results.Result] = TypeAdapter(
        signature(getattr(KnowledgeGraphToolkit, name), eval_str=True).return_annotation
    )
    return kind.validate_python(artifact)


def _takes(name: str) -> str:
    return listed([*_arguments(name).model_fields])


def _arguments(name: str) -> type[BaseModel]:
    """Return the arguments of a tool as a model."""
    return _arguments_of(getattr(KnowledgeGraphToolkit, name))


@cache
def _arguments_of(tool: Callable[..., Any]) -> type[BaseModel]:
    parameters = [*signature(tool, eval_str=True).parameters.values()][1:]
    fields: dict[str, Any] = {
        one.name: (one.annotation, ... if one.default is one.empty else one.default) for one in parameters
    }
    return create_model(tool.__name__, __config__=ConfigDict(extra="forbid", coerce_numbers_to_str=True), **fields)


def _first(names: Sequence[str], most: int, title: str) -> str:
    more = f"; {len(names) - most:,} more" if len(names) > most else ""
    return f"{title}: {', '.join(shown(shorten(name, NAME_LENGTH)) for name in names[:most])}{more}." if names else ""


def _facts_of(document: Document) -> list[results.Fact]:
    metadata = document.metadata
    triples = metadata["triples"][:MOST_ITEMS]
    sources = metadata.get("sources") or [None] * len(triples)
    attributes = metadata.get("attributes") or [None] * len(triples)
    return [
        fact_of(results.Fact, triple, metadata["labels"], where, sets)
        for triple, where, sets in zip(triples, sources, attributes, strict=False)
    ]


def _cell(value: Any, labels: Mapping[str, str]) -> Any:
    """Return a value of a row as plain data.

    An entity becomes its name, and facts become words.
    """
    if isinstance(value, EntityNode):
        return labels.get(value.key, value.key)
    if isinstance(value, Relationship | Path):
        return "; ".join(triple_lines(triples_in(value), lambda key: labels.get(key, key)))
    if isinstance(value, Mapping):
        return json.dumps({name: _cell(part, labels) for name, part in value.items()}, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return value_of([_cell(part, labels) for part in value])
    return value
