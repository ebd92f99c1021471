"""The relations of a graph as steps of walks: what they are called, and what they join."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, readable
from kg_retrievers.graph.adjacency import label_count, label_of, relation_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.token_table import UNKNOWN, TokenTable
from kg_retrievers.patterns.zero_shot.reading import question_words
from kg_retrievers.patterns.zero_shot.scorer import KINDS, RelationScorer, StepStates, mean_rows

#: How many facts of a relation are looked at to tell what it joins.
FACTS_SEEN = 32

#: How many adjacency entries of an end are looked at, and how many of the relations found tell what the ends are.
ENTRIES_SEEN, RELATIONS_SEEN = 64, 5

#: The share of the ends of a relation that must be of a kind, or of a type, for the relation to have it.
SHARE = 0.6

_DATE = re.compile(r"[12]\d{3}|[12]\d{3}[-/.]\d{1,2}([-/.]\d{1,2})?([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.][12]\d{3}")
_NUMBER = re.compile(r"[-+]?[$€£]?\d[\d.,]*([eE][-+]?\d+)?(\s?[%\w°/]{1,4})?")


def value_kind(text: str) -> str:
    """Return what a text is as a value, one of `KINDS`.

    Example:
        >>> value_kind("1987-03-02"), value_kind("1,200 km"), value_kind("Apollo 13")
        ('date', 'number', '')
    """
    if _DATE.fullmatch(text):
        return "date"
    return "number" if _NUMBER.fullmatch(text) else ""


def relation_words(name: str) -> tuple[str, str]:
    """Return the words of a relation, and of the type of its subjects where its name tells it, as Freebase's do.

    Example:
        >>> relation_words("directed_by"), relation_words("/people/person/place_of_birth")
        (('directed by', ''), ('place of birth', 'person'))
        >>> relation_words("http://example.org/ontology#birthPlace")
        ('birth place', '')
    """
    if "://" in name:
        name = re.split(r"[/#]", name.rstrip("/#"))[-1]
    if not name.startswith("/") and not re.fullmatch(r"[a-z]\w+(\.[a-z]\w+){2,}", name):
        return readable(name), ""
    parts = [re.split(r"[/.]", part.strip("/.")) for part in re.split(r"\./", name)]
    words = " ".join(readable(part[-1]) for part in parts).split()
    subject = readable(parts[0][-2]) if len(parts[0]) > 1 else ""
    return " ".join(dict.fromkeys(words)), subject


class GraphSteps:
    """The steps of a graph, one for each adjacency label.

    Args:
        graph: The graph.
        scorer: Reads the steps.
        table: Gives the vectors of words.

    Attributes:
        states: What the scorer reads of them; rows are labels.
        names: The words of each relation.
        vectors: `mean_rows` of the names, (relations, e).
        words: The vectors of the words of each relation that mean something, unit rows (n, e); of all, where none does.
        end_words: The vectors of the words that say what each label leads to, unit rows (n, e).
        kinds: The positions in `KINDS` of what each label leads to.
    """

    def __init__(self, graph: KnowledgeGraph, scorer: RelationScorer, table: TokenTable) -> None:
        """Look at some facts of each relation."""
        words = [relation_words(name) for name in graph.relations]
        self.names = [name for name, _ in words]
        self.vectors = mean_rows(table, self.names)
        self.words = [_word_rows(table, name) for name in self.names]
        heads, tails, kinds = _ends(graph, self.names)
        heads = [f"{subject} {found}".strip() for found, (_, subject) in zip(heads, words, strict=True)]
        types = {text: row for row, text in enumerate(dict.fromkeys([*heads, *tails]))}
        vectors = mean_rows(table, list(types))
        of_heads = vectors[[types[text] for text in heads]] if heads else vectors[:0]
        of_tails = vectors[[types[text] for text in tails]] if tails else vectors[:0]
        relations = np.arange(len(self.names))
        count = label_count(len(self.names))
        names, starts, ends = (np.zeros((count, table.dimension), np.float32) for _ in range(3))
        directions, self.kinds = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for backward in (False, True):
            labels = label_of(relations, backward)
            names[labels], directions[labels] = self.vectors, int(backward)
            starts[labels], ends[labels] = (of_tails, of_heads) if backward else (of_heads, of_tails)
        self.kinds[label_of(relations, False)] = kinds
        of_ends = {text: _word_rows(table, text) for text in dict.fromkeys([*heads, *tails])}
        self.end_words = [of_ends[text] for pair in zip(tails, heads, strict=True) for text in pair]
        self.states: StepStates = scorer.steps(names, starts, ends, directions, self.kinds)


def _word_rows(table: TokenTable, name: str) -> Array:
    words = question_words(table, name)
    return np.stack(
        [word.vector for word in words if word.telling] or [word.vector for word in words] or [table.rows([UNKNOWN])[0]]
    )


def _ends(graph: KnowledgeGraph, names: Sequence[str]) -> tuple[list[str], list[str], list[int]]:
    """Return words for the heads and for the tails of each relation, and the kind of the tails.

    The words are their type, where most have one, and the relations that most of them have.
    """
    order = np.argsort(graph.edges[:, 1], kind="stable")
    bounds = np.searchsorted(graph.edges[order, 1], np.arange(len(graph.relations) + 1))
    heads, tails, kinds = [], [], []
    for relation, (first, last) in enumerate(pairwise(bounds.tolist())):
        chosen = order[np.unique(np.linspace(first, last - 1, min(FACTS_SEEN, last - first)).astype(np.int64))]
        head_ids, tail_ids = graph.edges[chosen, 0].tolist(), graph.edges[chosen, 2].tolist()
        heads.append(_words(graph, names, head_ids, label_of(relation, False)))
        tails.append(_words(graph, names, tail_ids, label_of(relation, True)))
        labels = [graph.names[int(graph.labels[tail])] for tail in tail_ids]
        kind, count = Counter(map(value_kind, labels)).most_common(1)[0]
        kinds.append(KINDS.index(kind) if count >= SHARE * len(labels) else 0)
    return heads, tails, kinds


def _words(graph: KnowledgeGraph, names: Sequence[str], entities: Sequence[int], own: int) -> str:
    """Return the type of some entities and the names of the relations that they have beside their `own` label."""
    adjacency = graph.adjacency
    around: Counter[int] = Counter()
    for entity in entities:
        row = adjacency.row(entity)
        around.update(set(adjacency.labels[row.start : min(row.stop, row.start + ENTRIES_SEEN)].tolist()) - {own})
    common = sorted(around, key=lambda label: (-around[label], label))[:RELATIONS_SEEN]
    return " ".join([_type(graph, entities), *(names[relation_of(label)] for label in common)]).strip()


def _type(graph: KnowledgeGraph, entities: Sequence[int]) -> str:
    """Return the type that most of some entities have, the rarest of equally frequent ones; "" where they have none."""
    if not len(graph.types):
        return ""
    counts = Counter(kind for entity in entities for kind in graph.entity_types(entity))
    if not counts:
        return ""
    kind, count = min(counts.items(), key=lambda item: (-item[1], len(graph.type_entities(item[0])), item[0]))
    return readable(graph.types[kind]) if count >= SHARE * len(entities) else ""
