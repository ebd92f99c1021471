"""SubgraphRAG's retrieval: a small trained network scores the triples around the entities of a question.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import networkx as nx
import numpy as np
from langchain_core.prompts import BasePromptTemplate
from pydantic import Field, StrictBool, with_config
from typing_extensions import TypedDict

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.model_retriever import BaseModelRetriever
from kg_retrievers.core.neighborhood_retriever import MaskedQuestionState
from kg_retrievers.core.prompts import AnswerPrompt
from kg_retrievers.core.stages import EXACT, MAX_K, Number, Stage
from kg_retrievers.graph import Evidence, Triple
from kg_retrievers.methods.subgraph_rag.model import GraphTripleScorer, TripleScorer
from kg_retrievers.methods.subgraph_rag.prompts import ANSWER_PROMPT, DIALOGUE_PROMPT, parse_answers

#: Section 4.2: the first 100 triples go into the prompt, or more for models that can take them.
K = 100

#: The preset of the paper.
RETRIEVAL: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "k": 100,  #: section 4.1: recall and prompts with the first 100 triples, 200 and 500 for larger models
        "granularity": "triple",  #: section 3.2: a list of triples
        "max_triples": 100,
        "style": "triples",
        "answer_prompt": DIALOGUE_PROMPT,  #: figure 6: system, one example of 30 triples, question
    }
}


@with_config(EXACT)
class ScoredTriples(TypedDict):
    """The triples that were scored highest, best first."""

    #: `[[head, relation, tail, score], ...]`
    triples: list[tuple[str, str, str, Number]]
    #: Whether `max_nodes` left out candidates.
    truncated: StrictBool


class SubgraphRAGState(MaskedQuestionState, total=False):
    """The state of the stages."""

    scored_triples: Annotated[
        ScoredTriples,
        Field(description="{'triples': [[head, relation, tail, score], ...], 'truncated': true or false}"),
    ]


class SubgraphRAGRetriever(BaseModelRetriever):
    """Score every triple around the question's entities with a trained model, and return the best.

    The model is a network with one hidden layer. It sees the question, the triple's words, and the place of the triple
    relative to the question's entities (section 3.1): see `TripleScorer`, and `train_triple_scorer` for its training.
    The score of a triple is its share in the softmax of the model's outputs over all candidates, in [0, 1], and is
    comparable within one question only. Ties keep the order of the graph. The method proposes no answers.

    `granularity="triple"` gives `k` single triples, as the paper's prompt shows them. "subgraph" groups the first
    `max_triples` into connected subgraphs, each scored by the sum of its triples.

    Differs from the paper: the default model is another one, see `TripleScorer`. Scores are normalised over the
    candidates. Candidates lie between at most `max_nodes` entities within `max_hops`. The question is embedded without
    its entities, unless the model was trained with `mask_entities=False`. `k` counts Documents. `preset="paper"`
    answers with the paper's dialogue (`DIALOGUE_PROMPT`). The paper's network is a matter of the model's training.

    Cost: no call of a language model. The question is embedded, its neighbourhood is searched, and the candidates are
    scored: see `GraphTripleScorer`, which also computes the parts that all questions share the first time.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, Question, default_embeddings
        >>> from kg_retrievers.methods.subgraph_rag.training import train_triple_scorer
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "starring", "Rooney Mara")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> example = Question("Who directed Her?", answers=("Spike Jonze",))
        >>> model = train_triple_scorer(index, [example], num_examples=100).model
        >>> retriever = SubgraphRAGRetriever.from_index(index, model=model)
        >>> [document.page_content for document in retriever.invoke("Who directed Her?", k=1)]
        ['Her -> directed by -> Spike Jonze']
    """

    model_class = TripleScorer
    state_class: ClassVar[type] = SubgraphRAGState
    entity_inputs: ClassVar[frozenset[str]] = frozenset({"scored_triples"})
    proposes_answers: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = RETRIEVAL
    answer_prompts: ClassVar[Mapping[str, BasePromptTemplate[Any]]] = {
        "facts": ANSWER_PROMPT,
        "dialogue": DIALOGUE_PROMPT,
    }

    #: The number of Documents.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: The content of one Document.
    granularity: Literal["triple", "subgraph"] = "triple"
    #: How many triples are packed into subgraphs. Of single triples there are `k`.
    max_triples: int = Field(default=K, ge=1, le=MAX_K)
    #: How the facts of a Document are written.
    style: DocumentStyle = "triples"
    #: The prompt for answering, with the placeholders `question` and `evidence`, or its name: "facts", or "dialogue" as
    #: in the paper.
    answer_prompt: AnswerPrompt = ANSWER_PROMPT
    #: Reads the answers from a reply to it.
    parse_answers: Callable[[str], list[str]] = parse_answers

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, score the triples around them, select the best."""
        return (
            Stage("link_entities", self.link_and_mask, ("seed_entities", "masked_question")),
            Stage("score_triples", self._score_triples, ("scored_triples",)),
            Stage("select_triples", self._select_triples, ("answers", "documents")),
        )

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """As in the base. Scored triples must be distinct and of the graph, each with a finite score."""
        checked = super().check_inputs(inputs)
        if given := checked.get("scored_triples"):
            rows = self.checked_rows("scored_triples", given["triples"], self.graph, "triples of the graph")
            checked["scored_triples"] = {**given, "triples": sorted(rows, key=lambda row: -row[3])}
        return checked

    def _score_triples(self, state: SubgraphRAGState) -> dict[str, Any]:
        count = state["k"] if self.granularity == "triple" else self.max_triples
        seeds = state["seed_entities"]
        triples, truncated = self.triples_in_scope(seeds)
        scorer: GraphTripleScorer = self._ready_model()
        text = state["masked_question" if self.model.config.mask_entities else "question"]
        logits = scorer.score(text, triples, self.entity_ids(seeds)).astype(np.float64)
        shares = np.exp(logits - logits.max(initial=-np.inf))
        best = np.argsort(-logits, kind="stable")[:count]
        facts, scores = self.facts_of(triples[best]), (shares / shares.sum())[best].tolist()
        rows = [[*triple, score] for triple, score in zip(facts, scores, strict=True)]
        return {"scored_triples": {"triples": rows, "truncated": truncated}}

    def _select_triples(self, state: SubgraphRAGState) -> dict[str, Any]:
        scored = state["scored_triples"]
        rows = [(Triple(*row[:3]), float(row[3])) for row in scored["triples"]]
        groups = [[row] for row in rows] if self.granularity == "triple" else _connected(rows[: self.max_triples])
        details = self.named(state.get("seed_entities") or [])
        evidence = [
            Evidence(
                triples=tuple(triple for triple, _ in group),
                score=sum(score for _, score in group),
                truncated=scored["truncated"],
                details=details,
            )
            for group in groups
        ]
        evidence.sort(key=lambda item: -item.score)
        return self.results(state, evidence)


def _connected(rows: Sequence[tuple[Triple, float]]) -> list[list[tuple[Triple, float]]]:
    """Return the connected subgraphs that some triples make up, each in their order. The first triple's comes first."""
    graph: nx.Graph[str] = nx.Graph((triple.head, triple.tail) for triple, _ in rows)
    numbers = {entity: number for number, part in enumerate(nx.connected_components(graph)) for entity in part}
    groups: dict[int, list[tuple[Triple, float]]] = {}
    for triple, score in rows:
        groups.setdefault(numbers[triple.head], []).append((triple, score))
    return list(groups.values())
