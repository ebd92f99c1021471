"""Question -> Pattern by the entities that the question names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import Known, Pattern, Term, Unknown, readable
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import (
    FUNCTION_WORDS,
    MASK,
    EntityLinker,
    GraphIndex,
    QuestionEntity,
    mask,
)
from kg_retrievers.patterns.linking_generator import LinkingGenerator

#: How much nearer to the words of a question two relations together must be than one alone, to be preferred.
SECOND_HOP = 0.25

#: How many entities a second hop starts from at the most, when `LinkedPatternGenerator` looks for its relations.
ENTITIES_FOLLOWED = 100

#: The words by which a text asks for something unknown.
ASKING = frozenset({"who", "whom", "whose", "what", "which", "when", "where", "how", "why", "name", "list"})

#: What a question word asks for; the other function words of a question name no relation.
ASKED = {"when": "date", "where": "place"}


class LinkedPatternGenerator(LinkingGenerator):
    """Joins the entities that the question names by the relations nearest to its other words. No model, no examples.

    One entity: the relation of it, or the two relations of a walk from it, whose words the question covers best. Two
    or more: the unknown that each of them is joined to, if there is one; for a text without a question word, as a claim
    or a yes-or-no question, rather the fact that joins the first two, if there is one.

    Args:
        index: The indexed graph.
        linker: Finds the entities of a question where none are given.

    Raises:
        EntityLinkingError: From `invoke`, if no entity is found, or the one found has no facts.
    """

    def __init__(self, index: GraphIndex, *, linker: EntityLinker | None = None) -> None:
        """Take the index."""
        super().__init__(index, linker)

    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        if not (slots := self._slots(input)):
            raise EntityLinkingError(f"LinkedPatternGenerator: found no entity in {input['question']!r}.")
        phrases = _phrases(mask(input["question"], [(slot.start, slot.end) for slot in slots]))
        likeness = self._likeness([phrase.text for phrase in phrases])
        starts = [[self.index.graph.entities.find(entity) for entity in slot.entities] for slot in slots]
        if len(slots) > 1:
            asks = not ASKING.isdisjoint(re.findall(r"\w+", input["question"].casefold()))
            ways = (self._join, self._fact) if asks else (self._fact, self._join)
            for way in ways:
                if pattern := way(slots, starts, likeness):
                    return pattern
        return self._walk(slots[0], starts[0], phrases, likeness)

    def _likeness(self, words: Sequence[str]) -> Array:
        """Return how near each phrase is to each relation, above the average over relations; (phrases, relations)."""
        relations = self.index.embed([readable(relation) for relation in self.index.graph.relations])
        cosines = self.index.embed(words) @ relations.T if words else np.zeros((1, len(relations)))
        means = cosines.sum(axis=1, keepdims=True) / max(len(relations), 1)
        above: Array = np.maximum(cosines - means, 0.0)
        return above

    def _around(self, entities: Sequence[int]) -> dict[int, list[int]]:
        """Return what some entities are joined to, by adjacency label."""
        adjacency = self.index.graph.adjacency
        around: dict[int, list[int]] = {}
        for entity in entities[:ENTITIES_FOLLOWED]:
            row = slice(adjacency.indptr[entity], adjacency.indptr[entity + 1])
            for label, neighbor in zip(adjacency.labels[row].tolist(), adjacency.neighbors[row].tolist(), strict=True):
                around.setdefault(label, []).append(neighbor)
        return around

    def _walk(self, slot: QuestionEntity, start: Sequence[int], phrases: Sequence[_Phrase], likeness: Array) -> Pattern:
        """The hop, or the two hops, from an entity whose relations the words name best."""
        starts, ends = np.array([(phrase.start, phrase.end) for phrase in phrases] or [(0, 1)]).T
        overlap = (starts[:, None] < ends) & (starts < ends[:, None])
        options: list[tuple[float, tuple[int, ...]]] = []
        for label, middle in self._around(start).items():
            first = likeness[:, relation_of(label)]
            options.append((float(first.max()) + SECOND_HOP, (label,)))
            for onward in self._around(middle):
                second = likeness[:, relation_of(onward)]
                sums = first[:, None] + second[None, :]
                sums[overlap] = 0.0  # one word names one relation
                options.append((float(sums.max()), (label, onward)))
        if not options:
            raise EntityLinkingError(
                f"LinkedPatternGenerator: {slot.name!r} has no facts in the graph, so there is nothing to follow."
            )
        _, labels = min(options, key=lambda option: (-option[0], option[1]))
        nodes: list[Term] = [slot.term, *(Unknown(f"entity {hop}") for hop in range(1, len(labels) + 1))]
        triples = [self._triple(nodes[hop], nodes[hop + 1], label) for hop, label in enumerate(labels)]
        return Pattern.of(*triples, target=f"entity {len(labels)}", source="linked")

    def _join(
        self, slots: Sequence[QuestionEntity], starts: Sequence[Sequence[int]], likeness: Array
    ) -> Pattern | None:
        """One unknown that is joined to every entity, by the relations that the words name best."""
        best = []
        common: set[int] | None = None
        for start in starts:
            around = self._around(start)
            reached = {neighbor for neighbors in around.values() for neighbor in neighbors}
            common = reached if common is None else common & reached
        if not common:
            return None
        for start in starts:
            labels = [label for label, reached in self._around(start).items() if common & set(reached)]
            best.append(min(labels, key=lambda label: (-float(likeness[:, relation_of(label)].max()), label)))
        triples = [self._triple(slot.term, Unknown("entity 1"), label) for slot, label in zip(slots, best, strict=True)]
        return Pattern.of(*triples, target="entity 1", source="linked")

    def _fact(
        self, slots: Sequence[QuestionEntity], starts: Sequence[Sequence[int]], likeness: Array
    ) -> Pattern | None:
        """The fact that joins the first two entities, by the relation that the words name best."""
        there = set(starts[1])
        labels = [label for label, reached in self._around(starts[0]).items() if there & set(reached)]
        if not labels:
            return None
        label = min(labels, key=lambda label: (-float(likeness[:, relation_of(label)].max()), label))
        return Pattern.of(self._triple(slots[0].term, slots[1].term, label), source="linked")

    def _triple(self, here: Term, there: Term, label: int) -> tuple[Term, Term, Term]:
        relation = Known(self.index.graph.relations[relation_of(label)])
        return (there, relation, here) if is_backward(label) else (here, relation, there)


@dataclass(frozen=True)
class _Phrase:
    """A word of a question, or two in a row, and which words these are."""

    text: str
    start: int
    end: int


def _phrases(text: str) -> list[_Phrase]:
    """The words that may name a relation, and with the word before or after; question words as what they ask for."""
    words = re.findall(r"[^\W_]+|_", text.casefold())
    telling = [word != MASK and (word not in FUNCTION_WORDS or word in ASKED) for word in words]
    found = [_Phrase(ASKED.get(word, word), i, i + 1) for i, word in enumerate(words) if telling[i]]
    for i, (one, two) in enumerate(pairwise(words)):
        if (telling[i] or telling[i + 1]) and MASK not in (one, two):
            found.append(_Phrase(f"{one} {two}", i, i + 2))
    return found
