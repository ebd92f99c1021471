"""SimGRAG: a pattern of the question, and the subgraphs most similar to it.

Y. Cai, Z. Guo, Y. Pei, W. Bian, W. Zheng: SimGRAG: Leveraging Similar Subgraphs for Knowledge Graphs Driven
Retrieval-Augmented Generation. Findings of ACL 2025, arXiv:2412.15272.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic
from typing import Any, ClassVar, Literal

from langchain_core.prompts import BasePromptTemplate
from pydantic import Field

from kg_retrievers.algorithms.bindings import Limits
from kg_retrievers.core.documents import top_answers
from kg_retrievers.core.prompts import AnswerPrompt
from kg_retrievers.core.replies import marked_answers
from kg_retrievers.core.retriever import MADE, BaseKGRetriever, Examples, LanguageModel, nothing_fetched
from kg_retrievers.core.stages import Body, Call, QuestionShape, RetrievalState, Stage, Steps
from kg_retrievers.errors import Hints
from kg_retrievers.graph import Evidence, Pattern
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.operations import AROUND, Operation
from kg_retrievers.graph.pattern import decide_revisits
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.simgrag.evidence import (
    NodeTypes,
    ambiguous_names,
    find_widening,
    match_evidence,
    match_query,
    operation_evidence,
    pin_seeds,
)
from kg_retrievers.methods.simgrag.matching import MAX, Match, MatchQuery, match_pattern
from kg_retrievers.methods.simgrag.matching.solving import double_budgets
from kg_retrievers.methods.simgrag.operations import (
    MAX_MATCHES,
    FindMatches,
    Search,
    nearest_matches,
    operate,
    typed_by_matches,
)
from kg_retrievers.methods.simgrag.prompts import ANSWER_PROMPT
from kg_retrievers.questions.around import evidence_around
from kg_retrievers.questions.carried_out import carried_out
from kg_retrievers.questions.fact_attributes import ValueIds
from kg_retrievers.questions.pattern_parts import cut_short, pattern_part
from kg_retrievers.questions.possible_entities import Distinct, PatternJoin, allowed_entities
from kg_retrievers.questions.reader import QuestionReader, ReaderFields, reader_arguments
from kg_retrievers.questions.reading import PatternGenerator, Reading, pattern_of

#: Appendix C.1: k(n) = k(r) = 16 on MetaQA, k(t) = 16. (On DBpedia, 16,384 and 512 serve better: figure 5.)
K_NODES = K_RELATIONS = K_TYPES = 16

#: Ours. The most entities of an unknown: above the degree of every hub of MetaQA (4,176).
MAX_BINDINGS = 10_000

#: Ours. The most adjacency entries that a search looks at.
MAX_SCANS = 50_000_000

#: Ours. The most seconds of a search: about ten times the slowest search of our benchmarks, with 43 million triples.
SECONDS = 10.0

#: The largest time budget: a year.
MAX_SECONDS = 366 * 24 * 3600.0

#: Appendix C.1, with the candidates that it takes on MetaQA.
PAPER: Mapping[str, Any] = {
    #: Appendix C.1. Table 3 compares 1, 2 and 3.
    "k": 3,
    #: Appendix C.1: k(n) = k(r) = 16, k(t) = 16.
    "k_nodes": 16,
    "k_relations": 16,
    "k_types": 16,
    #: Appendix C.1: "all nodes with such similar types as the candidate nodes". Equation 3 has no term for them. MetaQA
    #: has no types.
    "node_types": "candidates",
    #: Definition 1: the mapping of nodes is one-to-one.
    "distinct": "nodes",
    #: Section 4.2: "we do not consider the edge direction".
    "direction": "ignore",
    #: Algorithm 1: each mapping is a subgraph of its own.
    "ties": "break",
    #: Section 4.1: a language model writes every pattern.
    "asks_model": "always",
    "chooses": False,
    #: Equation 3: names mean the nearest ones of the graph.
    "checks_names": False,
    #: Appendix C.1. Table 3 compares 4, 8 and 12.
    "shots": 12,
}


class SimGRAGState(RetrievalState, total=False):
    """The state of SimGRAG's stages."""

    #: The pattern, as `Pattern.to_dict` writes it.
    pattern: dict[str, Any]


class SimGRAGRetriever(ReaderFields, BaseKGRetriever):
    """Write a small pattern of the question and find the subgraphs nearest to it.

    The distance of a subgraph is its graph semantic distance (GSD, equation 3): the sum of the L2 distances between the
    embeddings of the pattern's texts and of the names that they match, over its known nodes and its triples with a
    known relation. It is 0 or more, and 0 if all texts are names of the graph. The score is 1 / (1 + GSD), in (0, 1].
    Among the candidates (`k_nodes` names per node, `k_relations` relations per relation) the search is exact, unless a
    limit marks its result as truncated: see `kg_retrievers.methods.simgrag.matching`.

    Differs from the paper:

    - Results that differ only in the entities of the unknowns are one piece of evidence, so that "all films of this
      director" are complete (`ties="merge"`).
    - Two unknowns may share an entity, since one person can both write and direct. Each pattern decides whether an
      unknown may be an entity that it names (`distinct="auto"`). "widened" in the details marks matches found only
      because it may.
    - A typed node adds the distance by which its entity's type is farther than the nearest type of the graph. An entity
      without type adds nothing.
    - Embeddings are unit vectors. A name that a text equals is at distance 0, and all others are at `EXACT_NAME_MARGIN`
      at least.
    - The language model writes a pattern only if neither an example nor the zero-shot generator is sure: see
      `QuestionReader`.

    `preset="paper"` has none of these differences, except the unit vectors and the distances of names.

    Cost: no call of the language model, one if it is asked, two if its first reply cannot be used. The search is linear
    in the edges around the candidates for a pattern without cycles.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "starring", "Rooney Mara")]
        >>> graph = KnowledgeGraph.from_triples(facts)
        >>> retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> document = retriever.invoke("Who directed Her?")[0]
        >>> document.metadata["triples"], document.metadata["answers"]
        ([['Her', 'directed_by', 'Spike Jonze']], ['Spike Jonze'])
    """

    state_class: ClassVar[type] = SimGRAGState
    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"one entity", "several entities"})
    operations: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": PAPER}

    #: From `{"question", "seed_entities"}` to a Pattern.
    pattern_generator: PatternGenerator = MADE
    #: The content of one Document.
    granularity: Literal["subgraph", "triple"] = "subgraph"
    #: How many names are candidates for a known node.
    k_nodes: int = Field(default=K_NODES, ge=1)
    #: How many relations are candidates for a known relation.
    k_relations: int = Field(default=K_RELATIONS, ge=1)
    #: How many types are candidates for a node's type. Types are ignored if the graph has none.
    k_types: int = Field(default=K_TYPES, ge=1)
    #: The effect of a node's type. "distance": it adds to the distance how much farther than the nearest type the
    #: entity's type is. "candidates": an unknown is an entity of one of the `k_types` nearest types, at no distance.
    #: "ignore": nothing.
    node_types: NodeTypes = "distance"
    #: Whether a pattern that a model or a person writes may only use names of the graph. If not, the nearest names
    #: stand for others, unless it has an operation, conditions, absent triples or attributes.
    checks_names: bool = True
    #: Which nodes must be different entities, see `match_pattern`. "auto": "none" if the pattern may revisit entities
    #: that it names, otherwise "known", see `decide_revisits`.
    distinct: Literal["auto", "known", "nodes", "none"] = "auto"
    #: Whether a triple fits an edge of the pattern either way, if the pattern does not say so itself. See
    #: `match_pattern`. With an operation it does not, unless the pattern says so.
    direction: Literal["ignore", "respect"] = "ignore"
    #: Whether equal results are one, see `match_pattern`.
    ties: Literal["merge", "break"] = "merge"
    #: Subgraphs with a larger GSD are not evidence. None for no limit.
    max_distance: float | None = Field(default=None, ge=0)
    #: The most entities of one unknown node in one piece of evidence.
    max_bindings: int = Field(default=MAX_BINDINGS, ge=1, le=MAX)
    #: The most adjacency entries to look at. Beyond, the evidence is marked as truncated.
    max_scans: int = Field(default=MAX_SCANS, ge=1, le=MAX)
    #: The most seconds to look for the best subgraphs. After this time, the subgraphs found so far are completed and
    #: marked as truncated. The results found within the limit do not depend on time. None for no limit.
    max_seconds: float | None = Field(default=SECONDS, gt=0, le=MAX_SECONDS)
    #: The prompt for answering, with the placeholders `question` and `evidence`.
    answer_prompt: AnswerPrompt = ANSWER_PROMPT
    #: Reads the answers from a reply to `answer_prompt`.
    parse_answers: Callable[[str], list[str]] = marked_answers

    @classmethod
    def fields_made_from(
        cls, index: GraphIndex, llm: LanguageModel, examples: Examples, model: Any, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make the cascade of pattern generators, unless another generator is given.

        The language model writes the pattern if neither an example nor the zero-shot generator is sure, or always
        (`asks_model`), unless it chooses one (`chooses`). It is shown the examples nearest to the question (`shots`).
        An example needs a pattern.

        Raises:
            InvalidArgumentError: If a model is given, or `pattern_generator` together with `llm` or `examples`.
        """
        super().fields_made_from(index, llm, examples, model, fields)
        if fields.get("pattern_generator") is None:
            reader = QuestionReader(index, llm=llm, examples=examples, **reader_arguments(fields))
            return {"pattern_generator": reader}
        cls._check_made_once("pattern_generator", llm, examples)
        return {}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Generate the pattern, then match subgraphs to it."""
        calls_model = getattr(self.pattern_generator, "calls_model", True)
        return (
            Stage("generate_pattern", Steps(self._generate_pattern), ("pattern",), calls_model),
            Stage("match_subgraphs", self._match_subgraphs, ("answers", "documents")),
        )

    def _generate_pattern(self, state: SimGRAGState) -> Body[dict[str, Any]]:
        read: Pattern | Reading = yield Call(self.pattern_generator, state)
        return {"pattern": pattern_of(read).to_dict()}

    def part(self, state: Mapping[str, Any]) -> GraphIndex:
        """As in the base. Once there is a pattern, the part of a connected graph that matching it needs."""
        if "pattern" not in state:
            return super().part(state)
        seeds = state.get("seed_entities") or ()
        return pattern_part(self.index, Pattern.from_dict(state["pattern"]), seeds, self.k_nodes)

    @property
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        """The prompts of the pattern generator, if it has some, and the one for answering."""
        return {**getattr(self.pattern_generator, "prompts", {}), "answer": self.answer_prompt}

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """As in the base. A pattern may be a `Pattern` or its dictionary, and is read like a model's.

        A caller who gives a pattern is sure of it: its confidence is None, and it is not truncated.
        """
        if (pattern := inputs.get("pattern")) is not None:
            read = pattern if isinstance(pattern, Pattern) else Pattern.from_dict(pattern)
            inputs = {**inputs, "pattern": replace(read, confidence=None, truncated=False).to_dict()}
        return super().check_inputs(inputs)

    def _match_subgraphs(self, state: SimGRAGState) -> dict[str, Any]:
        """Run the stage that writes `answers` and `documents`."""
        pattern = Pattern.from_dict(state["pattern"])
        why = pattern.unplaced, pattern.nearest, pattern.lacking, pattern.truncated
        self.check_confidence(state, pattern.confidence, *why, reading=state["pattern"])
        pattern = pin_seeds(pattern, state.get("seed_entities") or [], self.graph)
        if self.index.truncated and (pattern.operation or pattern.absent or pattern.attributes):
            raise cut_short(repr(pattern.operation.kind) if pattern.operation else "what is absent")
        evidence = self.match(pattern, state["k"], question=state["question"])
        if self.index.narrowed and not _means_nearest(pattern):  # another relation may fit better than a far one
            evidence = [one if one.score == 1 else replace(one, truncated=True) for one in evidence]
        if pattern.truncated:
            evidence = [replace(one, truncated=True) for one in evidence]
        if not evidence and (self.index.narrowed or pattern.truncated):
            raise nothing_fetched(type(self).__name__)
        documents = self.documents_from(evidence, state["k"], state["question"])
        return {"answers": top_answers(evidence), "documents": documents}

    def match(self, pattern: Pattern, k: int | None = None, *, question: str = "") -> list[Evidence]:
        """Return the k pieces of evidence nearest to a pattern, best first.

        With `distinct="auto"`, words of the question may exclude the entities that it names, see `decide_revisits`.

        Raises:
            PatternError: If nothing in the pattern is known.
            EntityLinkingError: If it names an entity that the graph lacks, see `checks_names`.
            LowConfidenceError: If it names a relation or a type that the graph lacks.
        """
        carried = carried_out(self.index, pattern, check_names=self.checks_names)
        found = self._match(carried.pattern, self.k if k is None else k, question)
        return [replace(one, details={**one.details, **carried.details}) for one in found]

    def nearest_match(self, pattern: Pattern, *, question: str = "") -> Match | None:
        """Return the best match, by ids, of a pattern without operation and attributes, or None.

        Raises:
            PatternError: As of `match`, and so are the other errors.
        """
        carried = carried_out(self.index, pattern, check_names=self.checks_names)
        return next(iter(self._nearest(carried.pattern, 1, question)[0]), None)

    def _match(self, pattern: Pattern, k: int, question: str) -> list[Evidence]:
        if pattern.operation is not None and pattern.operation.kind in AROUND:
            return evidence_around(self.index, pattern, k)
        if pattern.operation is not None or pattern.attributes:
            asked = pattern.operation or Operation("list" if pattern.target else "exists")
            return self._operate(replace(pattern, operation=asked), question)
        found, widened, query = self._nearest(pattern, k, question)
        ambiguous = ambiguous_names(self.index, pattern, query) if found else []
        evidence = [match_evidence(self.graph, pattern, match, ties=self.ties, ambiguous=ambiguous) for match in found]
        for number, match in enumerate(found):
            if match.truncated and max(map(len, match.entities)) == self.max_bindings:
                limit = {"limit": f"max_bindings={self.max_bindings} of simgrag"}
                evidence[number] = replace(evidence[number], details={**evidence[number].details, **limit})
        evidence[:widened] = [replace(one, details={**one.details, "widened": True}) for one in evidence[:widened]]
        best = [replace(one, confidence=pattern.confidence) for one in evidence if one.score == evidence[0].score]
        return best + evidence[len(best) :]

    def _nearest(self, pattern: Pattern, k: int, question: str) -> tuple[list[Match], int, MatchQuery]:
        """Return the result of `_found` for a pattern without operation and attributes, and the query of the search."""
        query = self.query(pattern, nearest=_means_nearest(pattern))
        found, widened = self._found(pattern, query, k, question, ties=self.ties)
        return nearest_matches(found) if pattern.typed else found, widened, query

    def _operate(self, pattern: Pattern, question: str) -> list[Evidence]:
        """Return the result of a pattern's operation as one piece of evidence, or none if the graph does not say."""

        def find(part: Pattern, only: Mapping[str, Array] | None = None) -> list[Match]:
            query = self.query(part, nearest=True, only=only)
            return self._found(part, query, MAX_MATCHES, question, ties="merge")[0]

        directed = self.respects_direction(pattern)

        values = ValueIds(self.graph)

        def bind(part: Pattern, wanted: Sequence[str], *, facts: bool = False) -> tuple[Array, bool]:
            return self._bindings(part, wanted, question, find, values, directed=directed, facts=facts)

        result = operate(replace(pattern, directed=directed), self.index, Search(bind, find, values, self._advice))
        return [] if result is None else [operation_evidence(self.graph, pattern, result, ties=self.ties)]

    def _bindings(
        self,
        part: Pattern,
        wanted: Sequence[str],
        question: str,
        find: FindMatches,
        values: ValueIds,
        *,
        directed: bool,
        facts: bool = False,
    ) -> tuple[Array, bool]:
        """Return the combinations of some unknowns in a pattern's nearest subgraphs, and whether a limit cut them."""
        if self.distinct == "auto":
            revisits = decide_revisits(part, question)
            tries: list[Distinct] = ["none" if revisits.allowed else "known"]
            tries += [] if revisits.certain else ["none"]
        else:
            tries = [self.distinct]
        ends = inf if self.max_seconds is None else monotonic() + self.max_seconds
        limits = Limits(self.max_scans, ends)
        join_of = partial(PatternJoin, self.index, part, directed=directed, limits=limits, values=values)
        join = join_of(max_distance=self.max_distance)
        for distinct in tries:
            if len(rows := join.bindings(wanted, distinct, facts=facts)):
                break
        typed = part.triples and any(node.type is not None for node in part.nodes)
        if not len(rows) and not join.truncated and typed and (only := typed_by_matches(part, find, self._advice)):
            join = join_of(only=only)
            rows = join.bindings(wanted, tries[-1], facts=facts)
        return rows, join.truncated

    @property
    def _advice(self) -> Hints:
        return double_budgets(self.max_scans, self.max_seconds)

    def _found(
        self, pattern: Pattern, query: MatchQuery, k: int, question: str, *, ties: Literal["merge", "break"]
    ) -> tuple[list[Match], int]:
        """Return the matches, and how many of the first are found only because an unknown may be a named entity."""

        def find(distinct: Literal["known", "nodes", "none"], max_distance: float) -> list[Match]:
            return match_pattern(
                self.graph.adjacency,
                len(self.graph.relations),
                query,
                k=k,
                distinct=distinct,
                direction="respect" if self.respects_direction(pattern) else "ignore",
                ties=ties,
                max_distance=max_distance,
                max_bindings=self.max_bindings,
                max_scans=self.max_scans,
                max_seconds=self.max_seconds,
            )

        limit = float("inf") if self.max_distance is None else self.max_distance
        if self.distinct != "auto":
            return find(self.distinct, limit), 0
        found, widened = find_widening(find, decide_revisits(pattern, question), limit)
        return found[:k], widened

    def query(self, pattern: Pattern, *, nearest: bool = False, only: Mapping[str, Array] | None = None) -> MatchQuery:
        """Return the query for the matcher: each text of a pattern with its candidates.

        Args:
            pattern: The pattern.
            nearest: Whether names and relations mean the nearest ones alone, as with an operation, with conditions,
                with absent triples and if types count. A farther name would answer if these exclude the entity that was
                asked for.
            only: The ids of the entities that some unknowns may be, by name, in addition to the pattern's conditions.

        Raises:
            PatternError: If nothing in the pattern is known, or it pins an entity that is not in the graph.
        """
        allowed = allowed_entities(self.index, pattern, directed=self.respects_direction(pattern), only=only or {})
        return match_query(
            pattern,
            self.index,
            k_nodes=self.k_nodes,
            k_relations=self.k_relations,
            k_types=self.k_types,
            allowed=allowed,
            nearest=nearest,
            node_types=self.node_types,
        )

    def respects_direction(self, pattern: Pattern) -> bool:
        """Tell whether the directions of a pattern's triples count."""
        if pattern.directed is not None:
            return pattern.directed
        return self.direction == "respect" or pattern.operation is not None


def _means_nearest(pattern: Pattern) -> bool:
    """Tell whether names and relations of a pattern mean the nearest ones alone."""
    return bool(pattern.operation or pattern.conditions or pattern.absent or pattern.typed or pattern.attributes)
