"""GNN-RAG's retrieval: a graph network finds candidates for the answer, and shortest paths explain them.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from langchain_core.prompts import BasePromptTemplate
from pydantic import Field, StrictBool, with_config
from typing_extensions import TypedDict

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.model_retriever import BaseModelRetriever
from kg_retrievers.core.neighborhood_retriever import MaskedQuestionState
from kg_retrievers.core.path_evidence import ScoredPath, path_evidence
from kg_retrievers.core.path_prompt import ANSWER_PROMPT
from kg_retrievers.core.prompts import AnswerPrompt
from kg_retrievers.core.replies import listed_answers
from kg_retrievers.core.stages import EXACT, MAX_K, Stage
from kg_retrievers.graph import Path
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.gnn_rag.model import GraphReasoner, ReasonerOnGraph
from kg_retrievers.methods.gnn_rag.prompts import PROMPTS
from kg_retrievers.methods.gnn_rag.shortest_paths import PathsTo, shortest_paths

#: The published code takes the likeliest candidates until their probabilities sum to this (`eps` in its evaluation).
THRESHOLD = 0.95

#: Ours: Documents, candidates and paths of a question. The paper has no bound.
K, MAX_CANDIDATES, MAX_PATHS = 10, 200, 1_000

#: The preset of the paper.
RETRIEVAL: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "threshold": 0.95,  #: table 18: the default
        "granularity": "path",  #: section 4.3: one line for each path
        "k": 1_000,  #: section 4.3: all paths, up to `max_paths`
        "answer_prompt": PROMPTS["A"],  #: appendix E.4: prompt A, the default
    }
}


@with_config(EXACT)
class AnswerCandidates(TypedDict):
    """The candidates for the answer, the likeliest first."""

    #: `[[entity, probability], ...]`
    entities: list[tuple[str, Annotated[float, Field(gt=0, le=1, strict=True)]]]
    #: Whether `max_nodes` or `max_candidates` left some out.
    truncated: StrictBool


class GNNRAGState(MaskedQuestionState, total=False):
    """The state of the stages."""

    candidates: Annotated[
        AnswerCandidates,
        Field(description="{'entities': [[entity, probability in (0, 1]], ...], 'truncated': true or false}"),
    ]


class GNNRAGRetriever(BaseModelRetriever):
    """Find likely answers with a trained graph network, and the shortest paths to them.

    The network gives each entity around the question's entities a probability (section 4.1): see `GraphReasoner`, and
    `train_graph_reasoner` for its training. Candidates are the likeliest entities until their probabilities sum to
    `threshold`, and all others as likely as the last of them. Evidence is all shortest paths of at most `max_hops`
    triples from each entity of the question to each candidate. Paths cross triples either way, and may pass entities
    that `max_nodes` left out. The score is the probability of the likeliest candidate, in (0, 1]. The answers are the
    candidates.

    A network trained with `mask_seeds=False` may propose an entity of the question, for example as the child of a
    parent of that entity. Paths from that entity then lead back to it: by a self-loop, otherwise to a neighbour and
    back by another triple, otherwise to a neighbour and back by the same triple.

    `granularity="subgraph"` makes one Document of all paths with the same relations in the same directions, so that
    "the actors of the films of this director" is complete. "path" gives each path its own, as the paper's prompt does.
    Two such Documents have the same score if one candidate is the best of both.

    The details of each Document hold:

    - "entities": the question entities
    - "candidates": the number of candidates
    - "unreachable": the candidates without a path
    - "unreachable_from": `{entity of the question: [candidate, ...]}`, the candidates that only another entity of the
      question reaches
    - "more_paths": the candidates with more shortest paths than are shown
    - "relation_path" and "paths": see `path_evidence`

    Differs from the paper: it keeps at most `max_candidates` candidates, and equally likely ones together. It includes
    the candidate that crosses the threshold, as the published code does. Paths keep direction and parallel triples, are
    bounded by `max_paths`, and are merged. The default prompt has two examples. `preset="paper"` gives each path a
    Document, and asks by the paper's prompt A. The paper's network is a matter of the model's training.

    Differs from the published code, which also includes the crossing candidate: it stops at a sum of exactly
    `threshold`, while the code goes on. It takes any probability above 0, while the code drops probabilities below
    (1 - `threshold`) / `max_nodes`. It lets an entity of the question be an answer, while the code's evaluation drops
    it. It finds paths in the same graph as candidates. It leaves nothing out silently and shuffles nothing.

    Cost: no call of a language model, one search of the neighbourhood (`neighborhood`), one pass of the network over it
    (`ReasonerOnGraph`), and one search from each entity of the question (`shortest_paths`).

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, Question, default_embeddings
        >>> from kg_retrievers.methods.gnn_rag.training import train_graph_reasoner
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "starring", "Rooney Mara")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> example = Question("Who directed Her?", answers=("Spike Jonze",))
        >>> model = train_graph_reasoner(index, [example], num_examples=200).model
        >>> document = GNNRAGRetriever.from_index(index, model=model).invoke("Who directed Her?")[0]
        >>> document.page_content, document.metadata["answers"]
        ('Her -> directed by -> Spike Jonze', ['Spike Jonze'])
    """

    model_class = GraphReasoner
    state_class: ClassVar[type] = GNNRAGState
    entity_inputs: ClassVar[frozenset[str]] = frozenset({"candidates"})
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = RETRIEVAL
    answer_prompts: ClassVar[Mapping[str, BasePromptTemplate[Any]]] = {"paths": ANSWER_PROMPT, **PROMPTS}

    #: The number of Documents.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: The content of one Document: all paths with the same relations, one path, or one triple.
    granularity: Literal["subgraph", "path", "triple"] = "subgraph"
    #: How the facts of a Document are written.
    style: DocumentStyle = "paths"
    #: The probability that the candidates have together, with the one that crosses it.
    threshold: float = Field(default=THRESHOLD, gt=0, le=1)
    #: The most candidates.
    max_candidates: int = Field(default=MAX_CANDIDATES, ge=1)
    #: The most paths in all, split evenly over the pairs of question entity and candidate, at least one each.
    max_paths: int = Field(default=MAX_PATHS, ge=1)
    #: The prompt for answering, with the placeholders `question` and `evidence`, or its name: "paths", or "A", "B" and
    #: "C" as in the paper.
    answer_prompt: AnswerPrompt = ANSWER_PROMPT
    #: Reads the answers from a reply to it.
    parse_answers: Callable[[str], list[str]] = listed_answers

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, score the candidates around them, extract the paths that lead to these."""
        return (
            Stage("link_entities", self.link_and_mask, ("seed_entities", "masked_question")),
            Stage("score_candidates", self._score_candidates, ("candidates",)),
            Stage("extract_paths", self._extract_paths, ("answers", "documents")),
        )

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """As in the base. Candidates must be distinct entities of the graph, each with a probability in (0, 1]."""
        checked = super().check_inputs(inputs)
        if given := checked.get("candidates"):
            known = self.graph.entities
            rows = self.checked_rows("candidates", given["entities"], known, "keys of entities of the graph")
            checked["candidates"] = {**given, "entities": sorted(rows, key=lambda row: -row[1])}
        return checked

    def _score_candidates(self, state: GNNRAGState) -> dict[str, Any]:
        reasoner: ReasonerOnGraph = self._ready_model()
        near, seeds = self.neighborhood(state["seed_entities"]), self.entity_ids(state["seed_entities"])
        text = state["masked_question"] if self.model.config.mask_entities else state["question"]
        probabilities = reasoner.score(text, near.nodes, seeds)
        likeliest = np.argsort(-probabilities, kind="stable")
        likeliest = likeliest[probabilities[likeliest] > 0]
        count = self._candidates_within(probabilities[likeliest])
        chosen = likeliest[: min(count, self.max_candidates)]
        rows = zip(near.nodes[chosen].tolist(), probabilities[chosen].tolist(), strict=True)
        entities = [[self.graph.entities[entity], probability] for entity, probability in rows]
        return {"candidates": {"entities": entities, "truncated": near.truncated or count > self.max_candidates}}

    def _candidates_within(self, falling: Array) -> int:
        """Return how many of some falling probabilities sum to `threshold`. Equal ones are in or out together."""
        count = 1 + int(np.searchsorted(np.cumsum(falling), self.threshold))
        return int(np.count_nonzero(falling >= falling[:count].min(initial=1)))

    def _extract_paths(self, state: GNNRAGState) -> dict[str, Any]:
        candidates = dict(state["candidates"]["entities"])
        found = self._shortest_paths(state["seed_entities"], candidates)
        ids = np.unique([triple for _, _, to in found for path in to.paths for triple in path.triples]).astype(np.int64)
        triples = dict(zip(ids.tolist(), self.facts_of(ids), strict=True))
        paths: list[ScoredPath] = []
        for seed, candidate, to in found:
            for one in to.paths:
                path = Path.along(seed, [triples[triple] for triple in one.triples])
                paths.append(ScoredPath(path, candidates[candidate]))
        more = dict.fromkeys(candidate for _, candidate, to in found if to.truncated)
        evidence = path_evidence(
            paths,
            merge=self.granularity != "path",
            truncated=state["candidates"]["truncated"] or bool(more),
            details={
                "entities": [[self.graph.label(key), key] for key in state["seed_entities"]],
                "candidates": len(candidates),
                **_unreachable(state["seed_entities"], candidates, found),
                "more_paths": list(more),
            },
        )
        return self.results(state, evidence)

    def _shortest_paths(self, seeds: Sequence[str], candidates: Collection[str]) -> list[tuple[str, str, PathsTo]]:
        """Return the shortest paths from each entity of the question to each candidate, in this order."""
        targets = self.entity_ids(list(candidates))
        most = max(1, self.max_paths // max(1, len(candidates) * len(seeds)))
        hops = len(self.graph.entities) if self.max_hops is None else self.max_hops
        found: list[tuple[str, str, PathsTo]] = []
        for seed, start in zip(seeds, self.entity_ids(seeds).tolist(), strict=True):
            paths = shortest_paths(self.graph.adjacency, start, targets, max_hops=hops, max_paths=most)
            found += [(seed, candidate, to) for candidate, to in zip(candidates, paths, strict=True)]
        return found


def _unreachable(
    seeds: Sequence[str], candidates: Collection[str], found: Sequence[tuple[str, str, PathsTo]]
) -> dict[str, Any]:
    """Return the candidates without a path, and candidates that only another question entity reaches."""
    pairs = {(seed, candidate) for seed, candidate, to in found if to.paths}
    reached = {candidate for _, candidate in pairs}
    others = {seed: [key for key in candidates if key in reached and (seed, key) not in pairs] for seed in seeds}
    return {
        "unreachable": [key for key in candidates if key not in reached],
        "unreachable_from": {seed: keys for seed, keys in others.items() if keys},
    }
