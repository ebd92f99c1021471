"""Pairs of the graphs by hand: questions with the right walk and the wrong ones that the relation scorer likes best."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sentence_encoder.pairs import Pair, Walk
from benchmarks.zero_shot.question_sets import own_graph, source_names
from kg_retrievers import GraphIndex, default_embeddings
from kg_retrievers.graph.adjacency import is_backward, label_of, relation_of, reversed_label
from kg_retrievers.index import QuestionEntity, question_entities
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator
from kg_retrievers.questions.zero_shot.ranking import Surroundings, rank_walks
from kg_retrievers.questions.zero_shot.scorer import MAX_HOPS, relation_scorer
from kg_retrievers.questions.zero_shot.steps import masked_text

#: The graphs by hand whose questions train the encoder.
TRAINED_ON = (
    "airline", "aquarium", "astronomy", "beekeeping", "carfactory", "climbing", "cycling", "factory",
    "family_business", "farming", "ferries", "football", "games", "geography", "languages", "lawfirm", "monastery",
    "museum", "orchestra", "parliament", "pharmacy", "pharmalab", "school", "software", "softwareteam", "spacecraft",
    "university",
)  # fmt: skip

#: How many walks of a question are wrong ones, at most.
MOST_WRONG = 16


class HandGraph:
    """A graph by hand with its questions and claims.

    Args:
        folder: `graph.*`, `questions.jsonl`, and perhaps `examples.jsonl`, `claims.jsonl` and `entities.tsv`.
    """

    def __init__(self, folder: Path) -> None:
        """Index the graph."""
        self.folder = folder
        self.generator = ZeroShotPatternGenerator(GraphIndex.build(own_graph(folder), default_embeddings()))
        self.graph, self.steps = self.generator.index.graph, self.generator.steps
        self._names = source_names(self.graph)

    def pairs(self) -> Iterator[Pair]:
        """Yield a pair for each entity of each question that walks answer."""
        for row in [*self._rows("questions"), *self._rows("examples")]:
            if not row["answers"] or not 1 <= len(row["seed_entities"]) <= 2:
                continue
            text, slots = self._asked(row)
            for slot in slots:
                around = Surroundings(self.graph.adjacency, self._ids(slot), self.steps)
                masked = masked_text(text, slots, slot)
                scorer = relation_scorer()
                found, _ = rank_walks(scorer, scorer.encode(masked), self.steps.states, around, max_hops=MAX_HOPS)
                walks = [walk.labels for walk in found]
                right = [walk for walk in walks if self._is_right(row, slot, len(slots), walk, around)]
                if right:
                    wrong = [walk for walk in walks if walk not in right][:MOST_WRONG]
                    wrong += [(int(reversed_label(right[0][0])),)] if len(right[0]) == 1 else []
                    meaning = f"hand {self.folder.name} {right[0]}"
                    yield Pair(masked, self._phrases(right[0]), tuple(map(self._phrases, wrong)), meaning)

    def claims(self) -> Iterator[Pair]:
        """Yield a pair for each end of each claim that one relation joins, one way or the other."""
        for row in self._rows("claims"):
            text, slots = self._asked(row)
            facts = [(fact, one == 1) for one in (0, 1) for fact in self._facts(*row["seed_entities"][:: 1 - 2 * one])]
            if len(facts) != 1 or len(slots) != 2:
                continue
            (fact, backward), first = facts[0], row["seed_entities"][0]
            label = label_of(self.graph.relations.find(fact.relation), backward)
            for slot in slots:
                turned = (first in slot.entities) != row["value"]
                step = int(reversed_label(label)) if turned else int(label)
                meaning = f"claim {self.folder.name} {step}"
                wrong = (self._phrases([int(reversed_label(step))]),)
                yield Pair(masked_text(text, slots, slot), self._phrases([step]), wrong, meaning)

    def _rows(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    def _asked(self, row: Mapping[str, Any]) -> tuple[str, list[QuestionEntity]]:
        slots = question_entities(self.generator.linker, row["question"], row["seed_entities"])
        return self.generator.asked_part(row["question"], slots)

    def _ids(self, slot: QuestionEntity) -> list[int]:
        return [self.graph.entities.find(key) for key in slot.entities[: slot.best]]

    def _facts(self, head: str, tail: str) -> list[Any]:
        return [fact for fact in self.graph.triples(head=head) if fact.tail == tail]

    def _phrases(self, walk: Sequence[int]) -> Walk:
        return tuple(self.steps.phrases[label] for label in walk)

    def _is_right(
        self, row: Mapping[str, Any], slot: QuestionEntity, entities: int, walk: Sequence[int], around: Surroundings
    ) -> bool:
        """Return whether a walk leads to exactly the answers, or is the one that is given if there are two entities."""
        if entities == 1:
            ends = around.ends(tuple(walk), revisits=False).tolist()
            return {self.graph.entities[end] for end in ends} == {*row["answers"]}
        given = dict(zip(row["seed_entities"], row.get("walks") or (), strict=False)).get(slot.entities[0], ())
        given = [f"{'-' * name.startswith('-')}{self._names[name.removeprefix('-')]}" for name in given]
        names = [f"{'-' if is_backward(label) else ''}{self.graph.relations[relation_of(label)]}" for label in walk]
        return names == given
