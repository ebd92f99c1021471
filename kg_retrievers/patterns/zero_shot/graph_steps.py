"""The relations of a graph as steps of walks: what they are called, and what they join."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import is_backward, label_count, label_of, relation_of
from kg_retrievers.graph.columns import Array, spread
from kg_retrievers.index.token_table import UNKNOWN, TokenTable
from kg_retrievers.patterns.zero_shot.reading import question_words
from kg_retrievers.patterns.zero_shot.scorer import KINDS, RelationScorer, StepStates, mean_rows

#: How many facts of a relation are looked at to tell what it joins.
FACTS_SEEN = 32

#: How many adjacency entries of an end are looked at, and how many of the relations found tell what the ends are.
ENTRIES_SEEN, RELATIONS_SEEN = 64, 5

#: The share of the ends of a relation that must be of a kind, or of a type, for the relation to have it.
SHARE = 0.6

#: Heads and tails of a relation are of one kind where at least this share of the fewer of them are both.
COMMON_ENTITIES = 0.1

#: Heads and tails of a relation are of one kind where the relations around both have at least this Jaccard index.
COMMON_RELATIONS = 1 / 3

#: Words of relations that hold either way round, of which a graph may store one way only.
_MUTUAL = re.compile(
    r"\b(?:adjacent|adjoins?|ally|allied|borders?|bordering|colleagues?|connects?|connected|cousins?|enem(?:y|ies)|equals?"
    r"|friends?|interacts?|married|neighbou?rs?|neighbou?ring|opposite|partners?|related|rivals?|same|siblings?|similar"
    r"|spouses?|twins?|twinned|(?:class|room|team|work)-?mates?)\b",
    re.IGNORECASE,
)

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
        >>> relation_words("http://example.org/ontology#birthPlace"), relation_words("dbo:birthPlace")
        (('birth place', ''), ('birth place', ''))
    """
    name = local_name(name)
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
        text_sums: The sum of the table's rows over the words of `step_texts`, by label; (labels, e).
        kinds: The positions in `KINDS` of what each label leads to.
        alike: Whether each relation joins entities of one kind, so that its direction matters: some are heads and tails
            of it, or they have like relations, and its name says nothing mutual; (relations).
    """

    def __init__(self, graph: KnowledgeGraph, scorer: RelationScorer, table: TokenTable) -> None:
        """Look at some facts of each relation."""
        words = [relation_words(name) for name in graph.relations]
        self.names = [name for name, _ in words]
        self.vectors = mean_rows(table, self.names)
        self.words = [_word_rows(table, name) for name in self.names]
        ends = [_ends(graph, relation, facts) for relation, facts in enumerate(_facts(graph))]
        types = [(subject or of_one.heads, of_one.tails) for (_, subject), of_one in zip(words, ends, strict=True)]
        around = [[self.names[relation_of(label)] for label in labels] for of_one in ends for labels in of_one.around]
        known = [" ".join(filter(None, [type, *names])) for type, names in zip(chain(*types), around, strict=True)]
        # Forward, a label leads from heads to tails; texts and rows are in the order of labels.
        leads_to = [text for pair in zip(known[::2], known[1::2], strict=True) for text in reversed(pair)]
        texts = [text for name, of_one in zip(self.names, types, strict=True) for text in step_texts(name, *of_one)]
        self.text_sums = np.stack([_sum_of_rows(table, text) for text in texts] or [np.zeros(table.dimension)])
        rows = {text: _word_rows(table, text) for text in dict.fromkeys(known)}
        self.end_words = [rows[text] for text in leads_to]
        self.kinds = np.array([kind for of_one in ends for kind in (KINDS.index(of_one.kind), 0)], np.int64)
        mutual = np.array([bool(_MUTUAL.search(name)) for name in self.names], bool)
        self.alike = np.array([of_one.alike for of_one in ends], bool) & ~mutual
        self.states: StepStates = scorer.steps(
            np.repeat(self.vectors, 2, axis=0),
            mean_rows(table, known),
            mean_rows(table, leads_to),
            is_backward(np.arange(label_count(len(self.names)))).astype(np.int64),
            self.kinds,
        )


def step_texts(name: str, heads: str, tails: str) -> tuple[str, str]:
    """Return a relation as a step forward and backward, in words.

    Args:
        name: Its words.
        heads: What its heads are, or "".
        tails: What its tails are, or "".

    Example:
        >>> step_texts("genre", "film", "")
        ('genre of film', 'film whose genre')
    """
    forward, backward = [tails, name, "of", heads], [heads, "whose", name]
    return " ".join(filter(None, forward)), " ".join(filter(None, backward))


def _word_rows(table: TokenTable, name: str) -> Array:
    words = question_words(table, name)
    return np.stack(
        [word.vector for word in words if word.telling] or [word.vector for word in words] or [table.rows([UNKNOWN])[0]]
    )


def _sum_of_rows(table: TokenTable, text: str) -> Array:
    rows: Array = table.rows([id for id in table.token_ids(text) if id != UNKNOWN]).sum(axis=0)
    return rows


class _Ends(NamedTuple):
    """What a relation joins.

    Attributes:
        heads: The type of most heads, or "".
        tails: The type of most tails, or "".
        around: The labels that most heads, and most tails, have beside the relation's own.
        kind: What the tails are as values, one of `KINDS`.
        alike: Whether heads and tails are entities of one kind.
    """

    heads: str
    tails: str
    around: tuple[list[int], list[int]]
    kind: str
    alike: bool


def _facts(graph: KnowledgeGraph) -> Iterator[Array]:
    """Yield the ids of the facts of each relation."""
    order = np.argsort(graph.edges[:, 1], kind="stable")
    bounds = np.searchsorted(graph.edges[order, 1], np.arange(len(graph.relations) + 1))
    for first, last in pairwise(bounds.tolist()):
        yield order[first:last]


def _have_common_entities(graph: KnowledgeGraph, facts: Array) -> bool:
    heads, tails = (np.unique(graph.edges[facts, column]) for column in (0, 2))
    common = np.intersect1d(heads, tails, assume_unique=True)
    return len(common) >= COMMON_ENTITIES * min(len(heads), len(tails))


def _have_common_relations(heads: Sequence[int], tails: Sequence[int]) -> bool:
    return len({*heads} & {*tails}) >= COMMON_RELATIONS * len({*heads, *tails}) > 0


def _ends(graph: KnowledgeGraph, relation: int, facts: Array) -> _Ends:
    """Look at some facts of a relation, spread over all of them."""
    seen = spread(facts, FACTS_SEEN)
    heads, tails = graph.edges[seen, 0].tolist(), graph.edges[seen, 2].tolist()
    around = _around(graph, heads, label_of(relation, False)), _around(graph, tails, label_of(relation, True))
    values = [value_kind(graph.names[int(graph.labels[tail])]) for tail in tails]
    kind, count = Counter(values).most_common(1)[0]
    alike = _have_common_entities(graph, facts) or _have_common_relations(*around)
    return _Ends(_type(graph, heads), _type(graph, tails), around, kind if count >= SHARE * len(values) else "", alike)


def _around(graph: KnowledgeGraph, entities: Sequence[int], own: int) -> list[int]:
    """Return the labels that most of some entities have beside their `own`, the most frequent first."""
    adjacency = graph.adjacency
    counts: Counter[int] = Counter()
    for entity in entities:
        row = adjacency.row(entity)
        counts.update(set(adjacency.labels[row.start : min(row.stop, row.start + ENTRIES_SEEN)].tolist()) - {own})
    return sorted(counts, key=lambda label: (-counts[label], label))[:RELATIONS_SEEN]


def _type(graph: KnowledgeGraph, entities: Sequence[int]) -> str:
    """Return the type that most of some entities have, the rarest of equally frequent ones; "" where they have none."""
    if not len(graph.types):
        return ""
    counts = Counter(kind for entity in entities for kind in graph.entity_types(entity))
    if not counts:
        return ""
    kind, count = min(counts.items(), key=lambda item: (-item[1], len(graph.type_entities(item[0])), item[0]))
    return readable(local_name(graph.types[kind])) if count >= SHARE * len(entities) else ""
