"""Write Cypher for questions by patterns.

The patterns come from any generator, from the templates that examples give, or from the question reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice, product, takewhile
from typing import Any, ClassVar, Literal, Self

import numpy as np
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

from kg_retrievers.core.retriever import on_index
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.database.executor import Executor, ExecutorView
from kg_retrievers.database.rendering import render
from kg_retrievers.database.schema import DatabaseSchema
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, PatternError, StaleIndexError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Term, Unknown
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.kinds import kind_facts
from kg_retrievers.graph.operations import AROUND, Operation
from kg_retrievers.graph.pattern import PatternTriple, decide_revisits
from kg_retrievers.index import GraphIndex, QuestionEntity, linker_of
from kg_retrievers.index.question_keys import tell_unmatched
from kg_retrievers.methods.sg_rag.operations import INDEX_AGAIN_ON_SHELL
from kg_retrievers.questions.around import patterns_around
from kg_retrievers.questions.carried_out import Directions, Edge, carried_out
from kg_retrievers.questions.examples import ExamplePatternGenerator, FilledExample
from kg_retrievers.questions.labelling import MAX_HOPS, label_examples
from kg_retrievers.questions.operations import bound_by, part_of, whole_of
from kg_retrievers.questions.pattern_parts import INDEX_GRAPH, cut_short, pattern_part
from kg_retrievers.questions.possible_entities import absent_candidates, allowed_entities
from kg_retrievers.questions.reader import QuestionReader
from kg_retrievers.questions.reading import PatternGenerator, Reading, pattern_of

#: The most queries for one question, each for other entities that a name may mean, or by another template. Of 400 of
#: PathQuestion's 3-hop examples, by the templates of other ones, the first 1, 2, 3, 5, 10 and 20 queries answer 54, 68,
#: 75, 78, 79 and 80 %.
MAX_QUERIES = 5

#: The most queries of the state: chains between entities have several lengths.
MAX_STATED = 64

#: Masked questions that are nearer to each other than this differ only in their entities.
SAME_QUESTION = 0.01

Queries = list[dict[str, Any]]


class PatternCypherWriter(GeneratorRunnable[Mapping[str, Any], Queries]):
    """Write the pattern of a generator as Cypher, with entities as parameters.

    The writer replaces unknown relations and unlinked entities by the nearest ones in the graph, and leaves out unknown
    types. A triple that can only point the other way in the graph is turned. If a name may mean several entities, the
    first query is for all that fit it equally well, and one query follows for each further entity. If neither the
    pattern nor the words of the question tell whether unknowns may be entities that the pattern names (see
    `decide_revisits`), further queries, with "widened", let them.

    Args:
        index: The indexed graph.
        generator: From `{"question", "seed_entities", "entities"}` to a `Pattern` or `Reading`.

    Raises:
        InvalidArgumentError: If `generator` is no Runnable.
    """

    #: The queries come from patterns, which only use names of the graph.
    checks_queries: ClassVar[bool] = True

    def __init__(self, index: GraphIndex, generator: PatternGenerator) -> None:
        """Take the index and the generator."""
        if not isinstance(generator, Runnable):
            raise InvalidArgumentError(
                f"{type(self).__name__}: wanted a generator of patterns, but got {generator!r:.100}. "
                "Make one: ExamplePatternGenerator(index, examples)."
            )
        self.index, self.generator = index, generator
        self.prompts = getattr(generator, "prompts", {})
        self.calls_model = getattr(generator, "calls_model", True)
        self._directions = Directions(index)

    def with_index(self, index: GraphIndex) -> Self:
        """Return the writer over another graph, with its generator."""
        moved = copy(self)
        moved.index, moved.generator = index, on_index(self.generator, index)
        moved._directions = Directions(index)
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Queries]:
        """Call the generator, and write its pattern."""
        read = yield Call(self.generator, {name: input[name] for name in ("question", "seed_entities", "entities")})
        return self._written(pattern_of(read), input)

    def _written(self, pattern: Pattern, input: Mapping[str, Any]) -> Queries:
        queries = self.write(pattern, input["executor"], input["entities"], input["question"])
        is_around = pattern.operation is not None and pattern.operation.kind in AROUND
        return list(islice(queries, MAX_STATED if is_around else MAX_QUERIES))

    def write(
        self, pattern: Pattern, executor: Executor, entities: Sequence[QuestionEntity] = (), question: str = ""
    ) -> Iterator[dict[str, Any]]:
        """Yield `{"query", "parameters", "from"}` for a pattern, the likeliest first, then wider ones.

        They also have the pattern's "confidence", "unplaced", "nearest", "lacking" and "truncated", and its
        "operation". With an operation, a query returns bindings, "facts" is the query for their facts, and "side" the
        unknown that it finds for "compare". Names in a pattern with an operation mean the nearest ones alone, and its
        triples point as they do unless it says otherwise. "turned" holds triples that can only be meant the other way
        round: see `carried_out`.

        Raises:
            PatternError: If the pattern names something and the graph is empty.
            EntityLinkingError: If it asks for more than a list, and names an entity that the graph lacks.
            LowConfidenceError: If it asks for more than a list, and names a relation that the graph lacks.
            SearchBudgetError: If its conditions leave more keys than a query takes.
            StaleIndexError: If the database lacks a relation of the graph.
        """
        linked = {entity.term.text: entity.entities[: entity.best] for entity in entities}
        carried = carried_out(self.index, pattern, linked)
        for query in self._write(carried.pattern, executor, entities, question):
            yield {**query, **carried.details}

    def _write(
        self, pattern: Pattern, executor: Executor, entities: Sequence[QuestionEntity], question: str
    ) -> Iterator[dict[str, Any]]:
        operation = pattern.operation
        if pattern.attributes and operation is None:
            operation = Operation("list" if pattern.target else "exists")
        if operation is not None and operation.kind in AROUND:
            yield from self._write_around(pattern, operation, executor, entities)
            return
        if operation is not None and pattern.directed is None:
            pattern = replace(pattern, directed=True)
        pattern = self._in_names_of_graph(pattern)
        self._check_relations(pattern, executor.schema())
        if operation is None or operation.kind != "compare":
            yield from self._write_part(pattern, operation, executor, entities, question, bool(pattern.attributes))
            return
        for side in operation.by:
            part, has_attributes = part_of(pattern, side), bool(pattern.attributes)
            for query in self._write_part(part, operation, executor, entities, question, has_attributes):
                yield {**query, "side": side}

    @property
    def _types(self) -> dict[str, list[str]]:
        """The names of the types below each type, itself included."""
        graph = self.index.graph
        return {name: [graph.types[one] for one in sorted(below)] for name, below in graph.types_below.items()}

    def _write_around(
        self, pattern: Pattern, operation: Operation, executor: Executor, entities: Sequence[QuestionEntity]
    ) -> Iterator[dict[str, Any]]:
        """Yield the queries for the facts around whole entities."""
        pinned: dict[Known, Known] = {}
        for node in pattern.alone:
            if isinstance(node, Known):
                pinned[node] = replace(node, entity=self._choices(node, entities)[0][0])
        pattern = pattern.with_nodes(pinned)
        stated = {"operation": operation.to_dict(), "around": replace(pattern, confidence=None).to_dict()}
        for part in map(self._in_names_of_graph, patterns_around(pattern)):
            written = {**_query(executor, part, types=self._types), "from": pattern.source or "given", **stated}
            yield written | _understanding(pattern)

    def _write_part(
        self,
        pattern: Pattern,
        operation: Operation | None,
        executor: Executor,
        entities: Sequence[QuestionEntity],
        question: str,
        has_attributes: bool,
    ) -> Iterator[dict[str, Any]]:
        """Yield the queries for a pattern, or for a side of a comparison, of which another one may have attributes."""
        known = [node for node in pattern.nodes if isinstance(node, Known)]
        choices = [self._choices(node, entities)[: 1 if operation else None] for node in known]
        of_unknowns, of_absent = self._limits(pattern)
        likeliest = _likeliest([len(of_node) for of_node in choices], MAX_QUERIES)
        for widened, chosen in product((False, True), likeliest):
            keys = {node: of_node[rank] for node, of_node, rank in zip(known, choices, chosen, strict=True)}
            turned = self._turned(pattern, keys)
            revisits = decide_revisits(turned, question)
            if widened and revisits.certain:
                continue
            drawn = replace(turned, revisits=revisits.allowed or widened, directed=bool(pattern.directed))
            of_known = {**of_absent, **keys}
            write = partial(
                _query,
                executor,
                entities=of_known,
                direction=_direction(pattern),
                types=self._types,
                attributes=self.index.reader is executor,
            )
            counts = not isinstance(executor, ExecutorView)  # which sees what it counts
            queries = _rendered(drawn, operation, of_unknowns, partial(write, drawn), has_attributes, counts)
            written = {**queries, "from": pattern.source or "given"}
            if operation and operation.kind == "share":
                whole = self._in_names_of_graph(whole_of(replace(drawn, operation=operation)))
                limits, _ = self._limits(whole)  # the other triples do not limit it
                if whole.attributes:
                    written["whole"] = _rendered(whole, operation, limits, partial(write, whole), True, counts)
                else:
                    written["whole"] = write(whole, allowed=limits, bindings={"target": str(pattern.target)})
            yield written | _understanding(pattern) | ({"widened": True} if widened else {})

    def _limits(self, pattern: Pattern) -> tuple[dict[str, list[str]], dict[Known, list[str]]]:
        """Return `key_limits`. Over a connected graph, they are of the facts around the entities of the pattern.

        Raises:
            SearchBudgetError: If these facts cannot be fetched, or not all of them.
        """
        if not (pattern.conditions or pattern.absent):
            return key_limits(self.index, pattern)
        part = pattern_part(self.index, pattern, hints=INDEX_GRAPH)
        if part.truncated:
            raise cut_short("what fits the conditions", INDEX_GRAPH)
        return key_limits(part, pattern)

    def _in_names_of_graph(self, pattern: Pattern) -> Pattern:
        graph = self.index.graph
        pattern = _with_kinds(graph, pattern)

        def node(term: Term) -> Term:
            return replace(term, type=None) if term.type is not None and term.type not in graph.types_below else term

        def relation(term: Term) -> Term:
            if isinstance(term, Unknown) or term.text in graph.relations:
                return term
            nearest = self.index.nearest_relations([term.text], 1)[0].ids.tolist()
            if not nearest:
                raise PatternError(f"{type(self).__name__}: the graph is empty, it has nothing like {term.text!r}.")
            return Known(graph.relations[nearest[0]])

        def absent_node(term: Term) -> Term:
            return node(term) if term in pattern.nodes else term

        triples = tuple(PatternTriple(node(head), relation(name), node(tail)) for head, name, tail in pattern.triples)
        absent = tuple(
            PatternTriple(absent_node(head), relation(name), absent_node(tail)) for head, name, tail in pattern.absent
        )
        if (triples, absent) == (pattern.triples, pattern.absent) and all(node(one) is one for one in pattern.alone):
            return pattern
        different = tuple((node(one), node(other)) for one, other in pattern.different)
        alone = tuple(map(node, pattern.alone))
        return replace(pattern, triples=triples, absent=absent, different=different, alone=alone)

    def _check_relations(self, pattern: Pattern, schema: DatabaseSchema) -> None:
        for _, relation, _ in (*pattern.triples, *pattern.absent):
            if isinstance(relation, Known):
                try:
                    schema.type_of(relation.text)
                except InvalidArgumentError as cause:
                    raise StaleIndexError(
                        f"{type(self).__name__}: the indexed graph has the relation {relation.text!r}, the database "
                        "has not. One of them has changed, or they hold different graphs.",
                        hint_python="Read the schema again, by schema(refresh=True) of the executor, or index the "
                        "graph of this database again.",
                        hint_shell=INDEX_AGAIN_ON_SHELL,
                    ) from cause

    def _choices(self, node: Known, entities: Sequence[QuestionEntity]) -> list[list[str]]:
        """Return the entities that a node may be, the likeliest first. Those that fit equally well are one choice."""
        if node.entity is not None:
            return [[node.entity]]
        graph = self.index.graph
        for entity in entities:
            if entity.term.text == node.text:
                return [list(entity.entities[: entity.best]), *([key] for key in entity.entities[entity.best :])]
        if named := graph.entities_named(node.text) or [node.text] * (node.text in graph.entities):
            return [named]
        nearest = self.index.nearest_entities([node.text], MAX_QUERIES)[0].ids.tolist()
        if not nearest:
            raise PatternError(f"{type(self).__name__}: the graph is empty, it has nothing like {node.text!r}.")
        return [[graph.entities[id]] for id in nearest]

    def _turned(self, pattern: Pattern, keys: Mapping[Known, Sequence[str]]) -> Pattern:
        """Return the pattern with the triples turned that can only be there the other way round, if it lets them."""
        if pattern.directed is not None:
            return pattern
        graph = self.index.graph
        edges = {
            position: Edge(head, [graph.relations.find(relation.text)], tail)
            for position, (head, relation, tail) in enumerate(pattern.triples)
            if isinstance(relation, Known)
        }
        ids = {node: [graph.entities.find(key) for key in of_node] for node, of_node in keys.items()}
        turned = dict(zip(edges, self._directions.correct(list(edges.values()), ids), strict=True))
        if not any(turned.values()):
            return pattern
        triples = tuple(
            triple._replace(head=triple.tail, tail=triple.head) if turned.get(position) else triple
            for position, triple in enumerate(pattern.triples)
        )
        return replace(pattern, triples=triples)


def _with_kinds(graph: KnowledgeGraph, pattern: Pattern) -> Pattern:
    """Return a pattern in which facts say the kinds of unknowns, if relations such as "instance of" do so."""
    if len(graph.types) or not pattern.typed:
        return pattern
    triples, untyped = list(pattern.triples), dict[Term, Term]()
    for node in pattern.nodes:
        if isinstance(node, Unknown) and node.type is not None and (said := kind_facts(graph, node.type)):
            untyped[node] = replace(node, type=None)
            relation, kind = said
            triples.append(PatternTriple(untyped[node], Known(relation), Known(node.type, entity=kind)))
    if not untyped:
        return pattern

    def renamed(some: Sequence[PatternTriple]) -> tuple[PatternTriple, ...]:
        return tuple(PatternTriple(untyped.get(h, h), relation, untyped.get(t, t)) for h, relation, t in some)

    different = tuple((untyped.get(one, one), untyped.get(other, other)) for one, other in pattern.different)
    alone = tuple(node for node in pattern.alone if node not in untyped)
    return replace(pattern, triples=renamed(triples), absent=renamed(pattern.absent), alone=alone, different=different)


def _direction(pattern: Pattern) -> Literal["ignore", "respect"]:
    """Return whether the directions of triples count: as the pattern says, otherwise if all relations are known."""
    if pattern.directed is not None:
        return "respect" if pattern.directed else "ignore"
    return "ignore" if any(isinstance(relation, Unknown) for _, relation, _ in pattern.triples) else "respect"


def _understanding(pattern: Pattern) -> dict[str, Any]:
    """Return a pattern's confidence, the parts that it leaves out, and its source, as far as it says so."""
    said, written = ("confidence", "unplaced", "nearest", "lacking", "truncated"), pattern.to_dict()
    return {name: written[name] for name in said if name in written}


def _likeliest(counts: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Return the first choices of one rank from each of several lists, by the sum of the ranks.

    Example:
        >>> _likeliest([3, 1, 2], 4)
        [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1)]
    """
    chosen: list[tuple[int, ...]] = [()]
    for count in counts:  # the beginnings of first choices are first choices too
        longer = ((*ranks, rank) for ranks in chosen for rank in range(min(count, most)))
        chosen = sorted(longer, key=lambda ranks: (sum(ranks), ranks))[:most]
    return chosen


class TemplateCypherWriter(PatternCypherWriter):
    """Fill the templates of the nearest example questions (SG-RAG, section 4.1).

    The template is the pattern of an example. If it has none, it is the pattern of the walk whose answers come closest
    to the example's: see `label_examples`. `ExamplePatternGenerator` finds the nearest example. If the question differs
    from examples only in its entities, only the templates of these examples are filled. If they lead nowhere, there is
    no answer.

    A query has two ranks: its template's rank among the nearest different templates, and the rank of its entities among
    all that the question may name. Queries with the lowest sums come first. Of equal ones, the query of the nearest
    template comes first. Wider queries come last. "example" of each query names the example of its template, by the
    text of the question and its distance: see `FilledExample`.

    Args:
        index: The indexed graph.
        examples: Questions with patterns or answers.
        max_hops: The most relations of a walk.

    Raises:
        InvalidArgumentError: If no example has a pattern, or an answer that a walk reaches.
    """

    generator: ExamplePatternGenerator

    def __init__(self, index: GraphIndex, examples: Sequence[Question], *, max_hops: int = MAX_HOPS) -> None:
        """Give each example a template."""
        linker = linker_of(index)
        labelled = label_examples(index, examples, max_hops=max_hops, linker=linker)
        if not any(example.pattern for example in labelled):
            raise InvalidArgumentError(
                f"{type(self).__name__}: none of {len(labelled)} examples has a pattern, or an answer within "
                f"{max_hops} relations of an entity that it names." + tell_unmatched(index, labelled)
            )
        super().__init__(index, ExamplePatternGenerator(index, labelled, linker=linker))

    def body(self, input: Mapping[str, Any]) -> Body[Queries]:
        """Fill the nearest templates, and write them."""
        asked = {name: input[name] for name in ("question", "seed_entities", "entities")}
        examples = yield Call(self._nearest, asked)
        found: dict[str, tuple[tuple[bool, int], dict[str, Any]]] = {}
        for template_rank, example in enumerate(examples):
            shown = {"question": example.text, "distance": round(example.distance, 2)}
            queries = self.write(example.pattern, input["executor"], input["entities"], input["question"])
            for rank, query in enumerate(islice(queries, MAX_QUERIES - template_rank)):
                same = json.dumps([query["query"], query["parameters"], query.get("operation"), query.get("side")])
                order = query.get("widened", False), template_rank + rank
                found.setdefault(same, (order, {**query, "example": shown}))
        return [query for _, query in sorted(found.values(), key=lambda pair: pair[0])][:MAX_QUERIES]

    def _nearest(self, input: Mapping[str, Any]) -> list[FilledExample]:
        """Return the nearest of the examples, of `MAX_QUERIES` different templates at most."""
        found = self.generator.nearest(input)
        first = next(found)
        if first.distance < SAME_QUESTION:
            found = takewhile(lambda example: example.distance < SAME_QUESTION, found)
        return [first, *islice(found, MAX_QUERIES - 1)]


class CascadeCypherWriter(PatternCypherWriter):
    """Write the readings of `QuestionReader` as Cypher.

    If an example is near, `TemplateCypherWriter` fills the templates of the nearest examples.

    Args:
        index: The indexed graph.
        llm: The language model that reads the question if nothing else is sure, if there is one.
        examples: Questions with patterns or answers, if there are some.
        **reader: Further arguments of `QuestionReader`.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or no example has a pattern, or an answer that a walk
            reaches.
    """

    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
        **reader: Any,
    ) -> None:
        """Make the reader and the templates."""
        self.templates = None if examples is None else TemplateCypherWriter(index, examples)
        known = self.templates.generator if self.templates else None
        super().__init__(index, QuestionReader(index, llm=llm, examples=known, **reader))

    def with_index(self, index: GraphIndex) -> Self:
        """Return the writer over another graph, with the templates of the same examples."""
        moved = super().with_index(index)
        moved.templates = self.templates and self.templates.with_index(index)
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Queries]:
        """Read the question, and write its pattern, or fill the nearest templates."""
        reading: Reading = yield Call(self.generator, input)
        if self.templates and reading.pattern.source == "examples":
            filled: Queries = yield Call(self.templates, input)
            return filled
        return self._written(reading.pattern, input)


def _query(executor: Executor, pattern: Pattern, **options: Any) -> dict[str, Any]:
    """Return a pattern as a query with its parameters: see `render`."""
    text, parameters = render(pattern, executor.schema(), executor.dialect, **options)
    return {"query": text, "parameters": parameters}


def _rendered(
    pattern: Pattern,
    operation: Operation | None,
    allowed: Mapping[str, Sequence[str]],
    write: Callable[..., dict[str, Any]],
    has_attributes: bool,
    counts: bool,
) -> dict[str, Any]:
    """Return the query for the facts of a pattern, or for the bindings that an operation takes.

    The query for bindings brings the query for "facts", whose parameter "shown" takes the keys of some targets.

    Args:
        pattern: The pattern.
        operation: Its operation.
        allowed: The keys that unknowns may have.
        write: Writes the pattern, with `allowed`, `bindings` and `counts` open: see `render`.
        has_attributes: Whether the facts are wanted, for their attributes.
        counts: Whether the database can count.
    """
    if operation is None:
        return write(allowed=allowed)
    stated: dict[str, Any] = {"operation": operation.to_dict()}
    if has_attributes:
        nodes = (node.name for node in pattern.nodes if isinstance(node, Unknown))
        bindings = {f"e{number}": name for number, name in enumerate(nodes)}
        stated["attributed"] = replace(pattern, confidence=None).to_dict()
        return write(allowed=allowed, bindings=bindings, facts=bool(bindings)) | stated
    if operation.kind == "exists":
        return write(allowed=allowed) | stated
    stated |= {"target": pattern.target} if operation.group else {}
    target = {"target": str(pattern.target)}
    bound = target if operation.kind == "compare" else bound_by(replace(pattern, operation=operation))
    written = write(allowed=allowed, bindings=bound) | stated
    if counts and operation.kind == "count" and not operation.group:
        written["count"] = write(allowed=allowed, bindings=bound, counts=True)
    if pattern.triples:
        names = [node.name if isinstance(node, Unknown) else None for node in pattern.nodes]
        facts = write(allowed={**allowed, bound["target"]: []})
        written["facts"] = facts | {"shown": f"n{names.index(bound['target'])}"}
    return written


def key_limits(index: GraphIndex, pattern: Pattern) -> tuple[dict[str, list[str]], dict[Known, list[str]]]:
    """Return the keys that the conditions of a pattern leave, as the matcher in memory reads them.

    The first are the keys of unknowns with a condition, or in absent triples alone, by name. The second are the keys of
    the known nodes of absent triples. Entities that no fact of a triple's relation holds are left out, so that few keys
    are left of a large graph.

    Args:
        index: The indexed graph.
        pattern: The pattern, with relations of the graph.
    """
    graph = index.graph
    names = {node.name for node in pattern.nodes if isinstance(node, Unknown)}
    conditions = tuple(condition for condition in pattern.conditions if condition.unknown in names)
    allowed = allowed_entities(index, replace(pattern, absent=(), conditions=conditions), directed=False)
    unknowns = {name: _keys(graph, _in_place(graph, pattern, name, ids)) for name, ids in allowed.items()}
    candidates = absent_candidates(index, pattern)
    absent = {node: _keys(graph, ids) for node, ids in candidates.items() if isinstance(node, Known)}
    unknowns |= {node.name: _keys(graph, ids) for node, ids in candidates.items() if isinstance(node, Unknown)}
    return unknowns, absent


def _in_place(graph: KnowledgeGraph, pattern: Pattern, name: str, entities: Array) -> Array:
    """Return the entities that an end of a fact is, for each known relation next to an unknown."""
    unknown = next(node for node in pattern.nodes if isinstance(node, Unknown) and node.name == name)
    for head, relation, tail in pattern.triples:
        if isinstance(relation, Known) and unknown in (head, tail):
            label = label_of(graph.relations.find(relation.text), False)
            entries, heads = graph.adjacency.entries_labelled(label)
            entities = np.intersect1d(entities, np.append(heads, graph.adjacency.neighbors[entries]))
    return entities


def _keys(graph: KnowledgeGraph, entities: Array) -> list[str]:
    return [graph.entities[entity] for entity in entities.tolist()]
