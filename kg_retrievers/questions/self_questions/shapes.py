"""Shapes of questions drawn from a graph: walks from named entities, and entities that several of these lead to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Term, Unknown, readable
from kg_retrievers.graph.adjacency import is_backward, label_of, relation_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct, entries_between
from kg_retrievers.graph.pattern import turns
from kg_retrievers.index.embeddings import folded
from kg_retrievers.questions.self_questions.english import RelationWords, read_relation

#: The longest name that a question mentions, in characters.
LONGEST_NAME = 80

#: Stands for the bearer of a name that several entities bear.
SEVERAL = -1


class Names:
    """The names by which questions can tell entities and relations from all others.

    Case and accents tell nothing apart, since people leave them out.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        """Note which names one entity alone bears, and how relations can be said."""
        self._graph = graph
        self._bearers: dict[str, int] = {}
        for id, name in enumerate(graph.names):
            key = folded(name)
            for entity in graph.name_entities(id):
                self._bearers[key] = entity if self._bearers.get(key, entity) == entity else SEVERAL
        self._found: dict[int, str] = {}
        #: The words of the relations that differ from all others in them.
        self.relation_words = _relation_words(list(graph.relations))

    def __contains__(self, entity: int) -> bool:
        """Tell whether an entity has a name of its own."""
        return bool(self[entity])

    def __getitem__(self, entity: int) -> str:
        """Return the label or the first alias that no other entity bears; nothing where there is none."""
        if entity not in self._found:
            key = self._graph.entities[entity]
            names = () if self.is_blank(entity) else (self._graph.label(key), *self._graph.aliases(key))
            self._found[entity] = next(filter(self._is_telling, names), "")
        return self._found[entity]

    def is_blank(self, entity: int) -> bool:
        """Tell whether an entity is a blank node, which nobody names."""
        return self._graph.entities[entity].startswith("_:")

    def _is_telling(self, name: str) -> bool:
        is_speakable = len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()
        return is_speakable and any(map(str.isalnum, name)) and self._bearers[folded(name)] != SEVERAL


def _relation_words(relations: list[str]) -> dict[int, RelationWords]:
    """Return how relations with a text of their own are said: in more words if the last ones are not their own."""
    texts = [folded(readable(name)) for name in relations]
    said = [read_relation(name) for name in relations]
    same_text, same_words = Counter(texts), Counter(said)
    words: dict[int, RelationWords] = {}
    for relation, (text, short) in enumerate(zip(texts, said, strict=True)):
        if same_text[text] == 1 and text.isprintable():
            long = RelationWords("noun", " ".join(dict.fromkeys(text.split())))
            words[relation] = short if same_words[short] == 1 else long
    return words


#: The most answers of a question, and the most entities that a walk may pass at one hop.
MAX_ANSWERS, MAX_PASSED = 100, 1000

#: How many draws may fail before the next kind is tried.
TRIES = 50


@dataclass(frozen=True)
class Walk:
    """Steps from a named entity.

    Attributes:
        start: The id of the entity.
        labels: The adjacency labels of the steps.
        sizes: How many entities each step leads to.
    """

    start: int
    labels: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """The request of a question.

    Attributes:
        walks: One walk, or several of one step each that lead to the same entities.
        answers: The ids of the entities where all walks end, ascending.
        revisits: Whether an unknown may be an entity that the question names.
        others: Whether a named entity would be an answer as well if it might be.
    """

    walks: tuple[Walk, ...]
    answers: tuple[int, ...]
    revisits: bool = True
    others: bool = False

    @property
    def kind(self) -> str:
        """The sort of question: "2-hop" or "conjunction"."""
        return "conjunction" if len(self.walks) > 1 else f"{len(self.walks[0].labels)}-hop"

    def pattern(self, graph: KnowledgeGraph, names: Names) -> Pattern:
        """Return the pattern, with the named entities pinned."""
        hops = len(self.walks[0].labels)
        unknown = [Unknown(f"entity {hop}") for hop in range(1, hops + 1)]
        triples: list[tuple[Term | str, ...]] = []
        for walk in self.walks:
            start = Known(names[walk.start], entity=graph.entities[walk.start])
            nodes: list[Term] = [start, *unknown]
            for here, there, label in zip(nodes, unknown, walk.labels, strict=False):
                relation = graph.relations[relation_of(label)]
                triples.append((there, relation, here) if is_backward(label) else (here, relation, there))
        revisits = self.revisits if len(triples) > 1 else None
        return Pattern.of(*triples, target=unknown[-1].name, revisits=revisits)


class ShapeDrawer:
    """Draws shapes of which a graph has an answer.

    Relations are drawn before entities, so that rare ones come up as often as frequent ones.

    Args:
        graph: The graph.
        names: What its entities are called; those without a name of their own are never where a walk starts.
        random: Draws.
    """

    def __init__(self, graph: KnowledgeGraph, names: Names, random: Random) -> None:
        """Note which relations can be told from all others by their words."""
        self._graph, self._names, self._random = graph, names, random
        self._relations = list(names.relation_words)
        self._is_telling = np.zeros(len(graph.relations), bool)
        self._is_telling[self._relations] = True

    def draw(self, hops: int) -> Shape | None:
        """Return a walk of so many hops, for 0 two steps that meet, or None if `TRIES` draws find none."""
        tries = range(TRIES if self._relations else 0)
        shapes = filter(None, (self._walk(hops) if hops else self._conjunction() for _ in tries))
        return next((shape for shape in shapes if not any(map(self._names.is_blank, shape.answers))), None)

    def _start(self) -> tuple[int, int]:
        """Return a label, and an entity that has a step with it."""
        label = label_of(self._random.choice(self._relations), self._random.random() < 0.5)
        return label, int(self._random.choice(self._graph.relation_samples.sources_of(label)))

    def _walk(self, hops: int) -> Shape | None:
        label, start = self._start()
        if start not in self._names:
            return None
        labels = [label]
        ends = [np.array([start]), self._ends(np.array([start]), label)]
        while len(labels) < hops:
            onward = self._labels(int(self._random.choice(ends[-1])))
            labels.append(self._random.choice(onward))
            if len(labels) > 2 and labels[-1] == labels[-3] == reversed_label(labels[-2]):
                return None  # leads back to where its first step does
            ends.append(self._ends(ends[-1], labels[-1]))
            if len(ends[-1]) > MAX_PASSED:
                return None
        return self._walk_shape(start, labels)

    def _walk_shape(self, start: int, labels: list[int]) -> Shape | None:
        revisits = not turns([is_backward(label) for label in labels])
        sizes, ends = [], np.array([start])
        others = False
        for label in labels:
            reached = self._ends(ends, label)
            ends = reached if revisits else reached[reached != start]
            others = len(ends) < len(reached)
            sizes.append(len(ends))
        if not 1 <= len(ends) <= MAX_ANSWERS or (len(ends) == 1 and ends[0] == start):
            return None
        walk = Walk(start, tuple(labels), tuple(sizes))
        return Shape((walk,), tuple(ends.tolist()), revisits, others)

    def _conjunction(self) -> Shape | None:
        _, end = self._start()
        around = self._graph.adjacency.row(end)
        neighbors = dict.fromkeys(self._graph.adjacency.neighbors[around].tolist())
        named = [neighbor for neighbor in neighbors if neighbor != end and neighbor in self._names]
        if len(named) < 2:
            return None
        walks, reached = [], []
        for start in self._random.sample(named, 2):
            joining = self._labels(start, end)
            if not joining:
                return None
            label = self._random.choice(joining)
            reached.append(self._ends(np.array([start]), label))
            walks.append(Walk(start, (label,), (len(reached[-1]),)))
        answers = [
            end
            for end in np.intersect1d(reached[0], reached[1]).tolist()
            if end not in (walks[0].start, walks[1].start)
        ]
        if not 1 <= len(answers) <= MAX_ANSWERS or len(answers) == max(len(ends) for ends in reached):
            return None
        return Shape(tuple(walks), tuple(answers), revisits=False)

    def _labels(self, here: int, there: int | None = None) -> list[int]:
        """Return the labels of the steps from an entity, or of those to another one."""
        row = self._graph.adjacency.row(here)
        labels = self._graph.adjacency.labels[row]
        if there is not None:
            labels = labels[self._graph.adjacency.neighbors[row] == there]
        labels = distinct(labels)
        found: list[int] = labels[self._is_telling[relation_of(labels)]].tolist()
        return found

    def _ends(self, starts: Array, label: int) -> Array:
        """Return the entities that steps with a label lead to, ascending."""
        adjacency = self._graph.adjacency
        entries, _ = entries_between(*adjacency.ranges_with(starts, label))
        return distinct(adjacency.neighbors[entries]).astype(np.int64)
