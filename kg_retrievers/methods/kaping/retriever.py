"""KAPING's retrieval: find the triples around the entities of a question that resemble it most.

J. Baek, A. F. Aji, A. Saffari: Knowledge-Augmented Language Model Prompting for Zero-Shot Knowledge Graph Question
Answering. Workshop on Natural Language Reasoning and Structured Explanations (NLRSE) at ACL 2023, arXiv:2306.04136.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.prompts import AnswerPrompt
from kg_retrievers.core.stages import MAX_K, QuestionShape, RetrievalState, Stage
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Evidence
from kg_retrievers.methods.kaping.prompts import ANSWER_PROMPT

_LOGGER = logging.getLogger(__name__)

#: As the paper: the ten nearest facts.
K = 10

#: The paper takes the facts within one hop of the question's entities. Two hold more answers in 150 tokens: .74 instead
#: of .61 on `benchmarks/own_graphs/fit` (304 questions), and .73 instead of none at two hops on MetaQA, but .94 instead
#: of 1.00 at one hop, for 51 instead of 2 ms of CPU (40 questions each, `benchmarks.rivals --choose --seed 20261128`).
MAX_HOPS = 2

#: If the index lacks the vectors of triples, the first question to a whole graph embeds them. From so many triples on,
#: a warning is logged, and beyond so many none is embedded. Default embeddings take 10 s for 133,000 triples, and 2 GB
#: for a million.
WARNED_TRIPLES, MAX_EMBEDDED_TRIPLES = 20_000, 1_000_000


class TripleSimilarityRetriever(BaseNeighborhoodRetriever):
    """Return the triples whose words are most similar to the question, scored one by one.

    The score of a triple is the cosine between the embeddings of its words, `label relation label`, and of the whole
    question, in [-1, 1]. See `GraphIndex.triple_similarities`. Ties keep the order of the graph. Candidates are the
    triples within `max_hops` of the question's entities. With `scope="graph"`, all triples are candidates, without
    linking. This is the "cosine similarity" row of the comparison in SubgraphRAG (arXiv:2410.20724, table 1).

    Each triple is scored by itself. A triple on the way from the question's entity to the answer is therefore missed
    unless it resembles the question. The method proposes no answers.

    Differs from the paper: `max_hops` is 2 instead of 1. Triples between two neighbours of an entity are candidates
    too. At most `max_nodes` neighbours count. Relations and names are written in words. A fact is shown with arrows.

    Cost: no call of a language model. The question is embedded, and so are the candidates when they are first needed,
    unless the index was built with `triples=True`. Then each candidate takes one product of vectors. Without these
    vectors, the whole of a graph of `WARNED_TRIPLES` triples or more is embedded with a warning, and one of more than
    `MAX_EMBEDDED_TRIPLES` is refused.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> facts = [("Her", "starring", "Rooney Mara"), ("Her", "directed_by", "Spike Jonze")]
        >>> graph = KnowledgeGraph.from_triples(facts)
        >>> retriever = TripleSimilarityRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> [document.page_content for document in retriever.invoke("Who directed Her?")]
        ['Her -> directed by -> Spike Jonze', 'Her -> starring -> Rooney Mara']
    """

    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"open"})
    proposes_answers: ClassVar[bool] = False

    #: The number of Documents, each of one triple.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: The content of one Document.
    granularity: Literal["triple"] = "triple"
    #: How the triple of a Document is written.
    style: DocumentStyle = "triples"
    #: How many triples a neighbour is away from the entities of the question, at most. None for any number.
    max_hops: int | None = Field(default=MAX_HOPS, ge=1)
    #: The prompt for answering, with the placeholders `question` and `evidence`.
    answer_prompt: AnswerPrompt = ANSWER_PROMPT

    def model_post_init(self, context: Any) -> None:
        """Check that a whole graph is small enough to be embedded, or is embedded.

        Raises:
            InvalidArgumentError: If not.
        """
        super().model_post_init(context)
        count = len(self.graph)
        if self.scope == "neighborhood" or count < WARNED_TRIPLES or self.index.keeps_triples:
            return
        if count > MAX_EMBEDDED_TRIPLES:
            raise InvalidArgumentError(
                f"TripleSimilarityRetriever: the scope of the whole graph compares all {count:,} triples, and the "
                f"index holds no vectors of them; at most {MAX_EMBEDDED_TRIPLES:,} are embedded for a question.",
                hint_python='Take scope="neighborhood", or build the index with triples=True.',
                hint_shell="Leave out --field scope=graph, or index the triples: kg-retrievers index ... --triples",
            )
        _LOGGER.warning('scope="graph": the first question embeds all %s triples; see GraphIndex.build.', f"{count:,}")

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, unless the scope is the whole graph. Then rank triples."""
        link = Stage("link_entities", self.link_entities, ("seed_entities",))
        rank = Stage("rank_triples", self._rank_triples, ("answers", "documents"))
        return (rank,) if self.scope == "graph" else (link, rank)

    def _rank_triples(self, state: RetrievalState) -> dict[str, Any]:
        triples, truncated = self.triples_in_scope(state.get("seed_entities") or [])
        everything = self.scope == "graph"
        scores = self.index.triple_similarities(state["question"], None if everything else triples)
        best = np.argsort(-scores, kind="stable")[: state["k"]]
        details = self.named(state.get("seed_entities") or [])
        evidence = [
            Evidence((triple,), score, truncated=truncated, details=details)
            for triple, score in zip(self.facts_of(triples[best]), scores[best].tolist(), strict=True)
        ]
        return self.results(state, evidence)
