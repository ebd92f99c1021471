"""KGRetriever: return the answer of a sure reading, and the facts that most likely hold the answer otherwise.

A method of this package, not on arXiv. SimGRAG's matcher answers the readings of `QuestionReader`. The facts around the
question's entities are found as in the other methods, and the facts near in meaning as in KAPING.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import Any, ClassVar, Literal

import numpy as np
from langchain_core.prompts import BasePromptTemplate
from pydantic import Field

from kg_retrievers.core.documents import DocumentStyle, documents_of, evidence_of
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.retriever import MADE, BaseKGRetriever, Examples, LanguageModel, nothing_fits
from kg_retrievers.core.stages import MAX_K, Body, Call, QuestionShape, RetrievalState, Stage, Steps
from kg_retrievers.errors import (
    EntityLinkingError,
    InvalidArgumentError,
    LowConfidenceError,
    NoEvidenceError,
    PatternError,
    RefusalError,
    SearchBudgetError,
)
from kg_retrievers.graph import Evidence, Pattern, Triple, Unknown, verbalize
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import LONE_ENTITIES, approximate_tokens, lone_entities_of, words_with
from kg_retrievers.index import GraphIndex
from kg_retrievers.index.hints import tell_language
from kg_retrievers.index.question_keys import tell_unmatched
from kg_retrievers.methods.kg.ranking import (
    FEATURES,
    READINGS,
    Candidates,
    FoundFacts,
    gather,
    likelihoods,
)
from kg_retrievers.methods.registry import trained_retriever
from kg_retrievers.methods.simgrag.retriever import SimGRAGRetriever
from kg_retrievers.questions.labelling import label_examples
from kg_retrievers.questions.reader import QuestionReader, ReaderFields, reader_arguments
from kg_retrievers.questions.reading import Reading, pattern_of

#: The tokens of the evidence of a question.
MAX_TOKENS = 500

#: As many Documents as single facts may need.
K = 1_000

#: How many steps around the entities of a question facts are looked for.
MAX_HOPS = 2

#: The most entities of a neighbourhood, ten times as many as for other methods: the ranker chooses among their facts,
#: and PageRank, which would choose among the entities, takes longer.
MAX_NODES = 20_000

#: Graphs of at most so many facts are searched whole for facts near in meaning. The vectors of their texts take
#: `4 * dimension` bytes each, and are made with the first question.
EVERYWHERE = 20_000

#: Larger graphs are searched whole only for questions without an entity, up to this size. Beyond, facts around the
#: names nearest to the question stand for them.
EMBEDDED = 200_000

#: How many names stand for the entities of a question without any.
NAMES = 5

#: The most equally good matches of the likeliest reading that are shown, such as matches of entities with one name.
TIES = 3

#: The cosine of a question without an entity and a fact, or a name, below which the graph says nothing about it. A
#: guess.
NEAR = 0.5

#: The most facts of a reading among the further ones.
MOST_FACTS = 200

#: The fewest tokens of a fact, so that no more than the budget may hold are looked at.
FEWEST_TOKENS = 4


class KGState(RetrievalState, total=False):
    """The state of the stages."""

    #: The readings of the question, the likeliest first, as `Pattern.to_dict` writes them.
    readings: list[dict[str, Any]]
    #: The matches of the first reading, as metadata of Documents. Empty if the reading is not sure.
    found: list[dict[str, Any]]
    #: The reason why no reading gives an answer. Empty if one does.
    why: str


class KGRetriever(ReaderFields, BaseNeighborhoodRetriever):
    """Find the answer if the question is understood, and the best evidence for a budget of tokens.

    The first Document is the evidence of the likeliest reading, with its answers and confidence, if it reaches
    `min_confidence`. Up to two more hold equally good matches, such as matches of another entity with the same name.
    The last one holds further facts, the likeliest to hold the answer first, and proposes no answers. These are the
    facts of other readings, the facts around the entities of the question, and facts anywhere in the graph whose texts
    are near to the question (in graphs of up to `EVERYWHERE` facts, or up to `EMBEDDED` if the question names no
    entity). A logistic regression over their origins, fitted on other graphs, ranks them (`FEATURES`).
    `details["parts"]` names the origin of each. Without a sure reading there is only this Document, with the confidence
    of the likeliest reading. `details["why"]` then says why the reading is not taken.

    The texts of all Documents together have at most `max_tokens` tokens, unless a single fact or the table of an
    operation has more. Facts beyond are left out. The answers of a sure reading are always complete.

    Cost: the cost of `SimGRAGRetriever`, plus matching up to three more readings and ranking the other facts.

    Raises:
        EntityLinkingError: If no entity is found in the question, and no fact is near to it.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> for document in KGRetriever.from_index(index).invoke("Who directed Her?"):
        ...     print(document.page_content, document.metadata["answers"])
        Her -> directed by -> Spike Jonze ['Spike Jonze']
        Her -> has genre -> Drama []
    """

    state_class: ClassVar[type] = KGState
    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"one entity", "several entities", "open"})
    operations: ClassVar[bool] = True

    #: Reads the question, and finds the subgraphs that fit its readings.
    matcher: SimGRAGRetriever = MADE
    #: The retriever of a trained model, whose facts join in.
    trained: BaseKGRetriever | None = None
    #: The most tokens of all Documents together. A single fact or a table of results may have more.
    max_tokens: int = Field(default=MAX_TOKENS, ge=FEWEST_TOKENS, strict=True)
    #: Counts the tokens of a text, see `verbalize`.
    count_tokens: Callable[[str], int] = approximate_tokens
    #: The most Documents. There are at most four if each holds a subgraph.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: Always the neighbourhood of the question's entities, or the whole of a small graph.
    scope: Literal["neighborhood"] = "neighborhood"
    #: The content of one Document.
    granularity: Literal["subgraph", "triple"] = "subgraph"
    #: How the facts of a Document are written.
    style: DocumentStyle = "triples"
    #: How many steps a fact is away from the entities of the question, at most.
    max_hops: int = Field(default=MAX_HOPS, ge=1)
    max_nodes: int | None = Field(default=MAX_NODES, ge=1)

    @classmethod
    def fields_made_from(
        cls, index: GraphIndex, llm: LanguageModel, examples: Examples, model: Any, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make the matcher, unless one is given, and the retriever of a trained model.

        Examples need a pattern, or answers that a walk reaches: see `label_examples`.

        Raises:
            InvalidArgumentError: If `matcher` is given together with `llm` or `examples`, or no example can be used.
        """
        made: dict[str, Any] = {} if model is None else {"trained": trained_retriever(index, model)}
        if fields.get("matcher") is None:
            labelled = None if examples is None else label_examples(index, examples)
            if labelled is not None and not any(one.pattern for one in labelled):
                raise InvalidArgumentError(
                    f"{cls.__name__}: none of {len(labelled)} examples has a pattern, or an answer near an entity that "
                    f"it names.{tell_unmatched(index, labelled)}"
                )
            reader = reader_arguments(fields)
            return made | {"matcher": SimGRAGRetriever.from_index(index, llm=llm, examples=labelled, **reader)}
        cls._check_made_once("matcher", llm, examples)
        return made

    def model_post_init(self, context: Any) -> None:
        """Check that the matcher and the trained retriever are on the same graph.

        Raises:
            InvalidArgumentError: If not, or if the matcher gives single facts.
        """
        super().model_post_init(context)
        for one in filter(None, (self.matcher, self.trained)):
            if not self.index.has_graph_of(one.index):
                raise InvalidArgumentError(
                    f"{type(self).__name__}: its {type(one).__name__} is on another graph or view. Build both on one "
                    "index."
                )
        if self.matcher.granularity != "subgraph":
            raise InvalidArgumentError(f'{type(self).__name__}: its matcher needs granularity="subgraph".')

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Read the question, match the likeliest reading, rank further facts."""
        calls_model = getattr(self.matcher.pattern_generator, "calls_model", True)
        return (
            Stage("read_question", Steps(self._read), ("readings",), calls_model),
            Stage("match_reading", self._match_reading, ("found", "why")),
            Stage("rank_facts", self._rank_facts, ("answers", "documents")),
        )

    @property
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        """The prompts of the reader, if it has some, and the one for answering."""
        return {**self.matcher.prompts, "answer": self.answer_prompt}

    def part(self, state: Mapping[str, Any]) -> GraphIndex:
        """Fetch the part of a connected graph that the reader, the matcher and the ranker need."""
        if "readings" not in state:
            return self.matcher.part(state)
        if "found" not in state:
            return self.matcher.part({**state, "pattern": state["readings"][0]}) if state["readings"] else self.index
        sure = [*map(evidence_of, state["found"])]
        facts = [triple for one in sure for triple in one.triples]
        keys = [key for one in sure for key in (*one.answers, *lone_entities_of(one))]
        around = self.index.part(self.part_request(tuple(sorted(self._entities(state, sure)[0]))))
        return around.holding([*keys, *(key for one in facts for key in (one.head, one.tail))], facts)

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """As in the base. Readings may be `Pattern`s or their dictionaries, and are read like a model's.

        A caller who gives readings is sure of the first one: its confidence is None.
        """
        if (given := inputs.get("readings")) is not None:
            if not isinstance(given, list | tuple):
                raise InvalidArgumentError(
                    f"{type(self).__name__}: readings is a list of patterns, but got {given!r:.100}."
                )
            read = [one if isinstance(one, Pattern) else Pattern.from_dict(one) for one in given]
            first = [replace(one, confidence=None, truncated=False) for one in read[:1]]
            inputs = {**inputs, "readings": [one.to_dict() for one in (*first, *read[1:])]}
        return super().check_inputs(inputs)

    def _read(self, state: KGState) -> Body[dict[str, Any]]:
        reader = self.matcher.pattern_generator
        try:
            read: Pattern | Reading = yield Call(reader, state)
            others = read.alternatives if isinstance(read, Reading) else ()
            patterns = [pattern_of(read), *others]
        except RefusalError:
            patterns = [] if not isinstance(reader, QuestionReader) else (yield Call(reader.guesses, state))
        return {"readings": [pattern.to_dict() for pattern in patterns]}

    def _match_reading(self, state: KGState) -> dict[str, Any]:
        """Run the stage that writes `found` and `why`."""
        if not state["readings"]:
            return {"found": [], "why": self._why_unread(state)}
        asked = {"min_confidence": self.min_confidence, **state, "pattern": state["readings"][0], "k": TIES + 1}
        try:
            documents = self.matcher.stages[-1].run.invoke(asked)["documents"]
        except RefusalError as refusal:
            foreign = tell_language(state["question"])
            only = f" {foreign} Only English is understood by default." if foreign else ""
            return {"found": [], "why": f"{_sentence(refusal)}{only}"}
        why = "" if documents else _sentence(NoEvidenceError(nothing_fits(state["question"], state["readings"][0])))
        rows = [one.metadata for one in documents]
        ties = [row for row in rows if row["score"] == rows[0]["score"]]
        cut = {"truncated": True} if len(ties) > TIES else {}
        return {"found": [{**row, **cut} for row in ties[:TIES]], "why": why}

    def _why_unread(self, state: KGState) -> str:
        try:
            self._check_read(state)
            self.link(state["question"], state.get("seed_entities") or ())
        except (EntityLinkingError, LowConfidenceError) as error:
            return _sentence(error)
        return "No reading of the question is sure."

    def _check_read(self, state: KGState) -> None:
        """Check that the reader knows the form of a question without a reading, if it is ours and needs no model.

        Raises:
            LowConfidenceError: If not.
        """
        reader = self.matcher.pattern_generator
        if not state["readings"] and isinstance(reader, QuestionReader) and not reader.calls_model:
            with suppress(EntityLinkingError, SearchBudgetError):
                reader.invoke(state)

    def _rank_facts(self, state: KGState) -> dict[str, Any]:
        """Run the stage that writes `answers` and `documents`."""
        sure, shown, left = [*map(evidence_of, state["found"])], list[Evidence](), self.max_tokens
        for position, one in enumerate(sure):
            cut, tokens = self._cut(one, left // (len(sure) - position))
            if not shown or tokens <= left:
                shown.append(cut)
                left -= tokens
        evidence = [*shown, *self._further(state, sure, left)]
        if not evidence:
            self._check_read(state)
            self.link(state["question"])  # which names near entities if none is found
            raise NoEvidenceError(f"{type(self).__name__}: {nothing_fits(state['question'], None)}")
        found = self.results(state, evidence)
        for document in found["documents"]:  # a cut neighbourhood says nothing of them
            if "parts" not in document.metadata["details"]:
                document.metadata["truncated"] = any(one.truncated for one in shown)
        return found

    def _further(self, state: KGState, sure: Sequence[Evidence], left: int) -> Iterator[Evidence]:
        """Yield the facts beyond the sure evidence, as one piece of evidence or one for each, within the budget."""
        seeds, masked = self._entities(state, sure)
        found = list(self._found(state, sure, seeds))
        candidates = self._compared(gather(found), state["question"], masked, seeds)
        shares = likelihoods(candidates.features)
        held = {triple for one in sure for triple in one.triples}
        order = np.argsort(-shares, kind="stable")[: len(held) + max(left, 0) // FEWEST_TOKENS]
        ranked = zip(self.facts_of(candidates.ids[order]), order.tolist(), strict=True)
        pairs = [(fact, row) for fact, row in ranked if fact not in held]
        count = self._fitting_in([fact for fact, _ in pairs], left)
        count = count or int(not sure and bool(pairs))  # one fact at least
        confidence = next((row.get("confidence") or 0.0 for row in state["readings"]), 0.0)
        if confidence >= state.get("min_confidence", self.min_confidence):  # nothing fits that reading
            confidence = 0.0
        top = min((one.score for one in sure), default=1.0)
        rows = [(fact, min(float(shares[row]), top), found[candidates.parts[row]].name) for fact, row in pairs[:count]]
        entities = [[self.graph.label(key), key] for key in seeds]
        for some in [[row] for row in rows] if self.granularity == "triple" else [rows] * bool(rows):
            triples, scores, parts = zip(*some, strict=True)
            details = {"entities": entities, "parts": list(parts)} | ({"why": state["why"]} if state["why"] else {})
            yield Evidence(
                triples,
                scores[0],
                truncated=len(order) < len(candidates.ids) or count < len(pairs),
                confidence=None if sure else confidence,
                details=details,
            )

    def candidates(self, question: str) -> Candidates:
        """Return the facts among which the evidence of a question is chosen, in ranked order."""
        state: Any = self.initial_state(question)
        state |= self.stages[0].run.invoke(state)
        seeds, masked = self._entities(state, ())
        return self._compared(gather(list(self._found(state, (), seeds))), question, masked, seeds)

    def _entities(self, state: Mapping[str, Any], sure: Sequence[Evidence]) -> tuple[list[str], str]:
        """Return the entities that the question and its sure reading name, and the question without their names."""
        try:
            keys, masked = self.link(state["question"], state.get("seed_entities") or ())
        except EntityLinkingError:
            keys, masked = [], state["question"]
        named = (key for one in sure for _, key in one.details.get("entities") or ())
        return list(dict.fromkeys([*keys, *named])), masked

    def _found(self, state: KGState, sure: Sequence[Evidence], seeds: Sequence[str]) -> Iterator[FoundFacts]:
        """Yield the facts that each part finds in addition to the sure evidence."""
        question = state["question"]
        if not len(self.graph):
            return
        for position, row in enumerate(state["readings"][:READINGS], 1):
            if sure and position == 1:
                continue
            ids, holds = self._fitting(Pattern.from_dict(row), question)
            yield FoundFacts("reading", ids, position, holds)
        if self.trained and seeds:
            documents = self.trained.invoke(question, seed_entities=list(seeds), on_refusal="empty")
            yield FoundFacts("model", self._ids(Triple(*row) for one in documents for row in one.metadata["triples"]))
        if seeds:
            yield self._around(seeds)
        if self._compares_all(seeds):
            scores = self.index.triple_similarities(question)
            nearest = np.argsort(-scores, kind="stable")[:MOST_FACTS]
            is_about = bool(seeds or state["readings"])
            yield FoundFacts("text", nearest if is_about else nearest[scores[nearest] >= NEAR])
        elif not seeds:
            (names,) = self.index.nearest_entities([question], NAMES)
            near = names.ids[names.distances <= (2 - 2 * NEAR) ** 0.5]  # of unit vectors
            if len(near):
                yield self._around([self.graph.entities[id] for id in near.tolist()])

    def _compared(self, candidates: Candidates, question: str, masked: str, seeds: Sequence[str]) -> Candidates:
        """Return candidates with the cosines of the question and of the facts and their relations."""
        features, ids = candidates.features.copy(), candidates.ids
        if not len(ids):
            return candidates
        relations = self.index.relation_vectors @ self.index.embed([masked])[0]
        features[:, FEATURES.index("relation")] = relations[self.graph.edges[ids][:, 1]]
        if self._compares_all(seeds):
            features[:, FEATURES.index("text")] = self.index.triple_similarities(question, ids)
        return candidates._replace(features=features)

    def _compares_all(self, seeds: Sequence[str]) -> bool:
        """Tell whether the question is compared with all facts."""
        return len(self.graph) <= (EVERYWHERE if seeds else EMBEDDED)

    def _fitting(self, pattern: Pattern, question: str) -> tuple[Array, Array]:
        """Return the facts that fit a reading best, and which of them hold a proposed answer.

        The last facts of a walk come first. None if something in the reading cannot be carried out.
        """
        ids = answers = np.empty(0, np.int64)
        with suppress(RefusalError, PatternError):
            if pattern.operation or pattern.attributes:
                for one in self.matcher.match(pattern, 1, question=question)[:1]:
                    ids = self._ids(one.triples[:MOST_FACTS])
                    answers = np.array([self.graph.entities.find(key) for key in one.answers], np.int64)
            elif match := self.matcher.nearest_match(pattern, question=question):
                edges = np.concatenate([np.empty(0, np.int64), *reversed(match.triples)])
                ids = edges[np.sort(np.unique(edges, return_index=True)[1])][:MOST_FACTS]
                nodes = zip(pattern.nodes, match.entities, strict=True)
                answers = next(
                    (of for node, of in nodes if isinstance(node, Unknown) and node.name == pattern.target), answers
                )
        heads, _, tails = self.graph.edges[ids].T
        return ids, np.isin(heads, answers) | np.isin(tails, answers)

    def _ids(self, triples: Iterable[Triple]) -> Array:
        return np.array([self.graph.triple_id(triple) for triple in dict.fromkeys(triples)], np.int64)

    def _around(self, seeds: Sequence[str]) -> FoundFacts:
        around = self.neighborhood(seeds)
        ends = self.graph.edges[around.triples][:, [0, 2]]
        hops = 1 + around.hops[np.searchsorted(around.nodes, ends)].min(axis=1)
        near = hops <= self.max_hops
        return FoundFacts("around", around.triples[near].astype(np.int64), hops=hops[near])

    def _cut(self, evidence: Evidence, most: int) -> tuple[Evidence, int]:
        """Return evidence with as many of its facts as a text of so many tokens may hold, and the tokens of its text.

        At least one fact is kept. Facts with answers come first. Entities without facts are left out, too. The table of
        an operation stays whole.
        """
        alone, answers = lone_entities_of(evidence), set(evidence.answers)
        tokens = self._tokens(evidence)
        if tokens <= most or not (evidence.triples or alone):
            return evidence, tokens
        details = {name: value for name, value in evidence.details.items() if name != "paths"}
        triples = sorted(evidence.triples, key=lambda triple: answers.isdisjoint((triple.head, triple.tail)))

        def first(count: int) -> Evidence:
            kept = {LONE_ENTITIES: alone[: max(count - len(triples), 0)]} if alone else {}
            return replace(evidence, triples=tuple(triples[:count]), truncated=True, details={**details, **kept})

        counts = range(1, len(triples) + len(alone))
        cut = first(max(bisect_right(counts, most, key=lambda count: self._tokens(first(count))), 1))
        return cut, self._tokens(cut)

    def _fitting_in(self, facts: Sequence[Triple], tokens: int) -> int:
        """Return how many facts, from the first, have texts of so many tokens together."""
        if not facts or tokens < 1:
            return 0
        if self.granularity == "triple":
            spent = accumulate(self._tokens(Evidence((fact,), 1.0)) for fact in facts)
            return sum(1 for _ in takewhile(lambda so_far: so_far <= tokens, spent))
        graph = self.graph
        said = words_with({fact: graph.attributes(fact) for fact in facts} if graph.attribute_names else {})
        settings: Any = {"style": self.style, "label": graph.label, "said": said, "count_tokens": self.count_tokens}
        return verbalize(facts, max_tokens=tokens, notice=False, **settings).shown

    def _tokens(self, evidence: Evidence) -> int:
        """Return the tokens of the Documents of some evidence."""
        single, who = self.granularity == "triple", type(self).__name__
        documents = documents_of([evidence], MAX_K, self.graph, retriever=who, style=self.style, single_triples=single)
        return sum(self.count_tokens(document.page_content) for document in documents)


def _sentence(refusal: RefusalError) -> str:
    text = refusal.plain_message
    return text[:1].upper() + text[1:]
