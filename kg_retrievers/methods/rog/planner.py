"""RoG's planner: a tuned language model that writes relation paths for a question.

L. Luo, Y.-F. Li, G. Haffari, S. Pan: Reasoning on Graphs: Faithful and Interpretable Large Language Model Reasoning.
ICLR 2024, arXiv:2310.01061, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any, ClassVar, Literal, Self

from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.errors import RelationPathParseError
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.rog.adapted_lm import AdapterConfig
from kg_retrievers.methods.rog.decoding import Score, WalkTrie, search
from kg_retrievers.methods.rog.tuned_model import TunedModel
from kg_retrievers.methods.rog.tuned_prompts import read_plan, write_planning, write_step

#: How relation paths are written: "walks", those that walks of the graph follow and no others; "free", any text, of
#: which relation paths are read.
Decoding = Literal["walks", "free"]

#: The most tokens of one step, in the room that is kept for a reply and where decoding is free.
STEP_TOKENS = 24

#: The least score of a relation path.
MIN_SCORE = 1e-6

Rows = list[dict[str, Any]]


class RelationPathPlanner(TunedModel):
    """A tuned language model that writes relation paths for a question; see `train_planner`.

    Args:
        adapted: The language model with its adapters.
        training: What it was trained on, and how well it did; values of JSON.
    """

    method: ClassVar[str] = "rog"
    trainer: ClassVar[str] = "train_planner"

    @property
    def config(self) -> AdapterConfig:
        """The adapters, and what stands around a question."""
        return self.adapted.config

    def on(self, index: GraphIndex, *, decoding: Decoding = "walks", score: Score = "walks") -> PlannedRelationPaths:
        """Return what proposes relation paths of a graph, the `proposer` of `RelationPathRetriever`."""
        return PlannedRelationPaths(index, self, decoding=decoding, score=score)


class PlannedRelationPaths(Runnable[Mapping[str, Any], Rows]):
    """Takes the relation paths that a planner writes for a question.

    With "walks", the planner is held to the relation paths that walks from the entities of the question follow, by
    `search`; the score is `exp` of that of the search, in (0, 1]. With "free", it writes what it likes by a beam search
    over tokens, as in the paper; what cannot be read is left out, and the score is 1 divided by the rank. They have no
    confidence, as those of any language model: how often a planner is right is not known.

    Cost: about `max_hops * beam_width` readings of the steps that the graph allows.

    Args:
        index: The indexed graph.
        planner: The planner.
        decoding: "walks" or "free".
        score: How the relation paths of walks are compared; see `search`.

    Raises:
        RelationPathParseError: From `invoke`, if decoding is free and no text can be read.
    """

    calls_model = False

    def __init__(
        self, index: GraphIndex, planner: RelationPathPlanner, *, decoding: Decoding = "walks", score: Score = "walks"
    ) -> None:
        """Take the index and the planner."""
        self.index, self.planner, self.decoding, self.score = index, planner, decoding, score

    def with_index(self, index: GraphIndex) -> Self:
        """Return what proposes relation paths of another graph by the same planner."""
        return type(self)(index, self.planner, decoding=self.decoding, score=self.score)

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Rows:
        """Return the relation paths for `{"masked_question", "seed_entities", "beam_width", "max_hops"}`."""
        return self._call_with_config(self._propose, input, config)

    def _propose(self, input: Mapping[str, Any]) -> Rows:
        adapted, max_hops = self.planner.adapted, input["max_hops"]
        told = adapted.told(write_planning(input["masked_question"]), STEP_TOKENS * max_hops)
        if self.decoding == "free":
            return self._free(told, input["beam_width"], max_hops)
        graph = self.index.graph
        found = search(
            WalkTrie(graph.adjacency, [graph.entities.find(seed) for seed in input["seed_entities"]]),
            adapted.reading(told),
            self._tokens,
            beam_width=input["beam_width"],
            max_hops=max_hops,
            score=self.score,
        )
        return [
            {"relations": [self._step(label) for label in plan.labels], "from": "planner"}
            | {"score": min(max(exp(plan.score), MIN_SCORE), 1.0)}
            for plan in found
        ]

    def _tokens(self, label: int) -> list[int]:
        name, _ = self._step(label)
        return self.planner.adapted.lm.encode(write_step(name, bool(is_backward(label))))

    def _step(self, label: int) -> list[str]:
        return [self.index.graph.relations[relation_of(label)], "backward" if is_backward(label) else "forward"]

    def _free(self, told: Sequence[int], beam_width: int, max_hops: int) -> Rows:
        adapted, relations = self.planner.adapted, self.index.graph.relations
        texts = [adapted.lm.decode(tokens) for tokens in adapted.beams(told, STEP_TOKENS * max_hops, beam_width)]
        read = [read_plan(text, relations, max_hops) for text in texts]
        distinct = {str(path): path for path in read if path}
        if not distinct:
            raise RelationPathParseError(
                'PlannedRelationPaths: no text is a relation path of the graph. Wanted " -> relation <- relation"; '
                'decoding="walks" gives no other.',
                texts[0],
            )
        return [
            {"relations": path, "score": 1 / rank, "from": "planner"} for rank, path in enumerate(distinct.values(), 1)
        ]
