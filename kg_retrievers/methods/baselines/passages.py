"""PassageRetriever: retrieval from text that is made from the graph, as if there were no graph.

A. O. M. Saleh, G. Tür, Y. Saygın: SG-RAG: Multi-Hop Question Answering With Large Language Models Through Knowledge
Graphs. ICNLSP 2024 (not on arXiv): the documents of figure 5, "RAG (Generated Docs)" in tables 5 and 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from langchain_core.runnables import RunnableLambda
from pydantic import Field

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.stages import MAX_K, QuestionShape, RetrievalState, Stage
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Evidence
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.shown_text import as_data
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.embeddings import embed

#: The paper tries 1, 2 and 3 documents, and cuts documents at 100 words.
K, MAX_WORDS = 3, 100

#: The most triples of a whole graph that passages are made of; each is in two, that of its head and that of its tail.
MAX_TRIPLES = 1_000_000

#: Similarities are rounded to so many decimals, since texts embedded in other batches differ in the last ones.
SIMILARITY_DECIMALS = 5


class Passage(NamedTuple):
    """A text on one entity.

    Attributes:
        triples: The ids of the triples that it says.
        text: What it says, a sentence for each triple.
    """

    triples: list[int]
    text: str


class PassageRetriever(BaseNeighborhoodRetriever):
    """Returns the passages of a text whose embeddings are nearest to that of the question; the text is the graph's.

    The text on an entity is a sentence for each fact that it is in, "head relation tail.", cut into passages of at most
    `max_words` words. The score of a passage is the cosine between its embedding and that of the question, in [-1, 1],
    to `SIMILARITY_DECIMALS` decimals; ties keep the order of the entities in the graph. Candidates are all passages,
    without linking, as where there is no graph; with `scope="neighborhood"`, those on entities within `max_hops` of the
    question's. A Document says the sentences, and its triples are those that it says. The method proposes no answers.

    Differs from the paper: sentences are made by a rule, there by a language model, which may leave facts out; there,
    passages are of the entities that the questions name alone.

    Cost: no call of a language model; the first question makes and embeds all passages of the graph, unless there are
    more than `MAX_TRIPLES` triples; then one product of vectors for each passage.

    Raises:
        InvalidArgumentError: If the whole graph is too large.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "starring", "Amy Adams")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> PassageRetriever.from_index(index, k=1).invoke("Who directed Her and who starred in Her?")[0].page_content
        'Her directed by Spike Jonze. Her starring Amy Adams.'
    """

    suits: ClassVar[frozenset[QuestionShape]] = frozenset()
    proposes_answers: ClassVar[bool] = False

    #: "graph": the text of all of the graph, whatever the question names. "neighborhood": that on the entities of the
    #: question and what is near them.
    scope: Literal["neighborhood", "graph"] = "graph"
    #: The number of Documents, each a passage.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: What one Document holds.
    granularity: Literal["subgraph"] = "subgraph"
    #: How the facts of a Document are written where it is cut.
    style: DocumentStyle = "triples"
    #: The most words of a passage; one longer sentence is a passage of its own.
    max_words: int = Field(default=MAX_WORDS, ge=1)

    def model_post_init(self, context: Any) -> None:
        """Check that a whole graph is small enough to be made a text of.

        Raises:
            InvalidArgumentError: If not.
        """
        super().model_post_init(context)
        if self.scope == "graph" and len(self.graph) > MAX_TRIPLES:
            raise InvalidArgumentError(
                f"PassageRetriever: the text of the whole graph says all {len(self.graph):,} triples; at most "
                f"{MAX_TRIPLES:,} are made a text of.",
                hint_python='Take scope="neighborhood".',
                hint_shell="Give --field scope=neighborhood",
            )

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, unless the scope is the whole graph; then rank passages."""
        link = Stage("link_entities", RunnableLambda(self.link_entities), ("seed_entities",))
        rank = Stage("rank_passages", RunnableLambda(self._rank_passages), ("answers", "documents"))
        return (rank,) if self.scope == "graph" else (link, rank)

    def _rank_passages(self, state: RetrievalState) -> dict[str, Any]:
        ranked, truncated = self._ranked(state)
        best = ranked[: state["k"]]
        if not best:
            return {"answers": [], "documents": []}
        details = self.named(state.get("seed_entities") or [])
        evidence = [
            Evidence(tuple(self.facts_of(np.array(passage.triples))), score, truncated=truncated, details=details)
            for passage, score in best
        ]
        documents = self.documents_from(evidence, state["k"], state["question"])
        for document, (passage, _) in zip(documents, best, strict=True):
            document.page_content = passage.text
        return {"answers": [], "documents": documents}

    def _ranked(self, state: Mapping[str, Any]) -> tuple[list[tuple[Passage, float]], bool]:
        """Return all passages in scope with their scores, best first, and whether `max_nodes` left some out."""
        passages, vectors, truncated = self._candidates(state.get("seed_entities") or [])
        if not passages:
            return [], truncated
        direction = self.index.embed([state["question"]])[0].astype(np.float64)
        scores = (vectors.astype(np.float64) @ direction).round(SIMILARITY_DECIMALS)
        return [(passages[one], float(scores[one])) for one in np.argsort(-scores, kind="stable").tolist()], truncated

    def _candidates(self, seeds: Sequence[str]) -> tuple[list[Passage], Array, bool]:
        """Return the passages in scope, their vectors, and whether `max_nodes` left some out."""
        if self.scope == "graph":
            made_from = self.graph, self.max_words
            passages, vectors = self._cache.get("passages", made_from, lambda: self._embedded(range(self._count)))
            return passages, vectors, False
        around = self.neighborhood(seeds)
        return *self._embedded(around.nodes.tolist()), around.truncated

    @property
    def _count(self) -> int:
        return len(self.graph.entities)

    def _embedded(self, entities: Iterable[int]) -> tuple[list[Passage], Array]:
        """Return the passages on some entities, and their vectors; passages of the same triples are there once."""
        passages: dict[tuple[int, ...], Passage] = {}
        for entity in entities:
            for passage in self._passages(entity):
                passages.setdefault(tuple(sorted(passage.triples)), passage)
        kept = list(passages.values())
        return kept, embed(self.index.embeddings, [passage.text for passage in kept])

    def _passages(self, entity: int) -> list[Passage]:
        """Return the text on an entity, cut into passages between sentences."""
        graph = self.graph
        ids = np.unique(graph.adjacency.row_triples(entity))
        passages: list[Passage] = []
        room = 0
        for triple, (head, relation, tail) in zip(ids.tolist(), self.facts_of(ids), strict=True):
            sentence = as_data(f"{graph.label(head)} {readable(relation)} {graph.label(tail)}.")
            words = len(sentence.split())
            if words > room:
                passages.append(Passage([], ""))
                room = self.max_words
            last = passages.pop()
            passages.append(Passage([*last.triples, triple], f"{last.text} {sentence}".lstrip()))
            room -= words
        return passages
