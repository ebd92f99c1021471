"""Walks from an entity: a beam search over the steps of the graph, their ranking and how sure it is.

Of the steps around an entity one always fits best. The steps that entities like it have, and that it lacks, show
whether the question asks for that step. They are ranked like walks of one step. One that is ranked before all walks
makes these as much less likely.

The scorer decides step by step. The ranking compares whole walks. Two small linear models are fitted by
`benchmarks/relation_scorer` on questions that are not reported. One gives the score of a walk, whose softmax over all
walks found is its probability. The other gives the logit of the confidence that the first walk is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import relation_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct, entries_between
from kg_retrievers.questions.zero_shot.direction import Said, agrees
from kg_retrievers.questions.zero_shot.scorer import KINDS, Decisions, Encoded, Prefixes, RelationScorer, StepStates
from kg_retrievers.questions.zero_shot.sentence_encoder import StepMeanings
from kg_retrievers.questions.zero_shot.steps import Again, GraphSteps, Word, asked_noun, measured_by, words_to_cover

#: A word of the question is covered by a relation whose nearest word is this near, as a cosine.
COVERED = 0.35


class Coverage(NamedTuple):
    """How well walks and a question cover each other, one row a walk.

    Attributes:
        words: The cosine of each telling word of the question with the nearest word of the relations; (n, words).
        ends: As `words`, but with the words for what the steps lead to as well; (n, words).
        steps: For each walk, the mean cosine of each step's words with the nearest word of the question.
        cosine: Of the mean of the question's words with that of the walk's text, which knows its direction; (n).
    """

    words: Array
    ends: Array
    steps: list[Array]
    cosine: Array


def coverage(question: Sequence[Word], walks: Sequence[Sequence[int]], steps: GraphSteps) -> Coverage:
    """Compare the words of a question with those of walks, given by their adjacency labels."""
    telling = [word.vector for word in words_to_cover(question)]
    rows = np.stack(telling) if telling else np.zeros((1, steps.vectors.shape[1]), np.float32)
    labels = {label for walk in walks for label in walk}
    cosines = {relation: rows @ steps.words[relation].T for relation in {relation_of(label) for label in labels}}
    best = {relation: of_words.max(axis=1) for relation, of_words in cosines.items()}
    named = {relation: float(of_words.max(axis=0).mean()) for relation, of_words in cosines.items()}
    of_ends = {label: steps.end_nearness(rows, label) for label in labels}
    words = np.stack([np.max([best[relation_of(label)] for label in walk], axis=0) for walk in walks])
    ends = np.stack([np.max([of_ends[label] for label in walk], axis=0) for walk in walks])
    of_steps = [np.array([named[relation_of(label)] for label in walk]) for walk in walks]
    mean = _unit(rows.mean(axis=0))
    means = [mean @ _unit(steps.text_sums[list(walk)].sum(axis=0)) for walk in walks]
    return Coverage(words, np.maximum(words, ends), of_steps, np.array(means))


def named_ends(question: Sequence[Word], ends: Sequence[int], steps: GraphSteps) -> Array:
    """Return how near a question's target is to the ends of labels, (n).

    The nearest cosine of a word such as "towns" in "which towns" with the types of the ends and the names of their
    further relations, or 0 if either says nothing.
    """
    asked = [word.vector for word in asked_noun(question)]
    if not asked:
        return np.zeros(len(ends))
    rows = np.stack(asked)
    nearest = {label: steps.end_nearness(rows, label).max() for label in set(ends)}
    return np.clip(np.array([nearest[label] for label in ends], np.float64), 0, 1)


#: What `walk_features` returns, column by column.
WALK_FEATURES = (
    "log probability", "words covered", "words or ends covered", "steps named", "least step named", "cosine",
    "two steps", "three steps", "kind", "ends named", "relations repeated", "relations repeated as asked", "turns back",
    "turns back as asked", "meaning", "meaning without type", "type", "said", "measure",
)  # fmt: skip


class Asked(NamedTuple):
    """The content of a question, with which walks are compared.

    Attributes:
        words: Its words without entities.
        kind: What kind of value it asks for; see `asked_kind`.
        type: The type that its noun names, if it names one.
        said: What it says of its answer, as "boss" does.
        meaning: Its vector by the sentence encoder.
        again: How it asks for what it has named before.
    """

    words: Sequence[Word]
    kind: str | None
    type: str | None
    said: Said | None
    meaning: Array
    again: Again = Again(others=False, twice=False)


def measures_of_ends(question: Sequence[Word], ends: Sequence[int], steps: GraphSteps) -> Array:
    """Return 1 for labels of numbers of a question's measure, -1 for those of other measures, otherwise 0 (n)."""
    asked = measured_by(word.text for word in question)
    found = np.zeros(len(ends))
    for at, label in enumerate(ends):
        own = steps.measures[relation_of(label)]
        if asked and own and steps.kinds[label] > 0:
            found[at] = -1.0 if asked.isdisjoint(own) else 1.0
    return found


def said_of_ends(said: Said | None, walks: Sequence[Sequence[int]], steps: GraphSteps) -> Array:
    """Return 1 for walks whose first step leads to the end that a question says, -1 to the other, 0 for others, (n).

    Args:
        said: What the question says of its answer, as "boss" does.
        walks: Their adjacency labels.
        steps: The steps of the graph.
    """

    def compared(label: int) -> float:
        end = steps.said_end(label) if said else None
        same = agrees(said, end) if said and end else None
        return 0.0 if same is None else 1.0 if same else -1.0

    first = {label: compared(label) for label in {walk[0] for walk in walks}}
    return np.array([first[walk[0]] for walk in walks])


def walk_features(
    asked: Asked,
    walks: Sequence[Sequence[int]],
    log_probabilities: Sequence[float],
    covered: Coverage,
    steps: GraphSteps,
    meanings: StepMeanings,
) -> Array:
    """Return the features of walks, (n, `len(WALK_FEATURES)`).

    Args:
        asked: What the question says.
        walks: Their adjacency labels.
        log_probabilities: Of each walk, by the scorer.
        covered: How well walks and question cover each other.
        steps: The steps of the graph.
        meanings: The vectors of the steps.
    """
    last, none = [walk[-1] for walk in walks], np.zeros(len(walks))
    lengths = np.array([len(walk) for walk in walks])
    turns_back = np.array([steps.turns_back(walk) for walk in walks])
    repeated = np.array([len(walk) - len({int(steps.same[label]) for label in walk}) for walk in walks])
    meaning = meanings.joined(walks) @ asked.meaning
    columns = [
        np.array(log_probabilities),
        np.clip(covered.words, 0, 1).sum(axis=1),
        np.clip(covered.ends, 0, 1).sum(axis=1),
        np.array([of_steps.mean() for of_steps in covered.steps]),
        np.array([of_steps.min() for of_steps in covered.steps]),
        covered.cosine,
        lengths == 2,
        lengths == 3,
        none if asked.kind is None else np.where(steps.kinds[last] == KINDS.index(asked.kind), 1.0, -1.0),
        named_ends(asked.words, last, steps),
        repeated,
        repeated * asked.again.twice,
        turns_back,
        turns_back & asked.again.others,
        meaning,
        meaning * ~steps.is_typed[last],
        none if asked.type is None else steps.type_shares(asked.type)[last],
        said_of_ends(asked.said, walks, steps),
        measures_of_ends(asked.words, last, steps),
    ]
    return np.stack(columns, axis=1).astype(np.float64)


#: The features of how sure it is that a question asks for some walks, in the order of `Choice.features`.
CONFIDENCE_FEATURES = (
    "one", "log probability a step", "log share", "several entities", "log of nothing that fits", "kind",
    "words or ends covered", "meaning", "margin of meaning", "type", "direction", "possession", "said", "measure",
    "other kind", "other type", "entities left out",
)  # fmt: skip


def _unit(vector: Array) -> Array:
    return np.asarray(vector / (np.linalg.norm(vector) + 1e-9))


#: How many beginnings of walks are followed at each hop.
BEAM_WIDTH = 16

#: How much less likely than the likeliest walk, as a difference of logarithms, a beginning may be to be followed.
MARGIN = 8.0

#: How many entities, and how many of their adjacency entries, are looked at to find the ways on of a walk.
MAX_FRONTIER, MAX_ENTRIES = 2_000, 200_000

#: Up to so many adjacency entries are all looked at for those with a label, and those of up to so many entities one by
#: one. Of more, the entries are found by halving all rows at once.
SCANNED, FEW = 30_000, 30


class ScoredWalk(NamedTuple):
    """The adjacency labels of a walk, and the logarithm of how likely the question asks for it."""

    labels: tuple[int, ...]
    log_probability: float


def rank_walks(
    scorer: RelationScorer, question: Encoded, steps: StepStates, around: Surroundings, *, max_hops: int
) -> tuple[list[ScoredWalk], float]:
    """Return the walks that a question may ask for, the likeliest first, and how likely nothing around fits.

    Args:
        scorer: Scores each next step.
        question: The question.
        steps: The steps of the graph, a row for each label.
        around: Where walks lead from the entities where they start.
        max_hops: The most steps of a walk.
    """
    prefixes = [ScoredWalk((), 0.0)]
    states = scorer.begin(question)
    found: list[ScoredWalk] = []
    nothing = 0.0
    for hop in range(max_hops):
        options = [around.onward(prefix.labels) for prefix in prefixes]
        offered = distinct(np.concatenate(options))
        decisions = scorer.decide(question, states, hop, steps.take(offered))
        longer: list[tuple[Array, Array, Array]] = []
        for row, (prefix, labels) in enumerate(zip(prefixes, options, strict=True)):
            logs = log_shares(decisions, row, np.searchsorted(offered, labels), hop)
            nothing += float(np.exp(prefix.log_probability + logs[-1]))
            if hop:
                found.append(ScoredWalk(prefix.labels, prefix.log_probability + float(logs[-2])))
            longer.append((prefix.log_probability + logs[: len(labels)], np.full(len(labels), row), labels))
        best = max((walk.log_probability for walk in found), default=-np.inf)
        logs, rows, labels = _likeliest(longer, best)
        if not len(logs):
            break
        states = scorer.extend(states, decisions, rows, steps.take(labels))
        chosen = zip(logs.tolist(), rows.tolist(), labels.tolist(), strict=True)
        prefixes = [ScoredWalk((*prefixes[row].labels, label), log) for log, row, label in chosen]
    else:
        found += prefixes
    return sorted(found, key=lambda walk: (-walk.log_probability, walk.labels)), nothing


def compare_directions(
    scorer: RelationScorer, question: Encoded, steps: StepStates, around: Surroundings, label: int
) -> float:
    """Return the logarithm of how likely a question asks for a first step rather than its opposite, at most 0.

    Whoever asks "Who reports to Ann?" asks not for whom Ann reports to, even if nobody reports to her. 0 also if the
    entities have both steps, for then `rank_walks` has compared them.

    Args:
        scorer: Scores both steps.
        question: The question.
        steps: The steps of the graph, a row for each label.
        around: Where walks lead from the entities where they start.
        label: The adjacency label of the step.
    """
    opposite = reversed_label(label)
    if any(around.adjacency.has_label(start, opposite) for start in around.starts.tolist()):
        return 0.0
    both = steps.take(np.array([label, opposite]))
    here, there = map(float, scorer.decide(question, scorer.begin(question), 0, both).steps[0])
    return min(here - there, 0.0)


def log_shares(decisions: Decisions, row: int, columns: Array, hop: int) -> Array:
    """Return the logarithms of the shares of the steps on offer, of stopping, and of nothing that fits."""
    stop, nothing = decisions.ends[row]
    logits = np.concatenate([decisions.steps[row, columns], [stop if hop else -np.inf, nothing]]).astype(np.float64)
    top = logits.max()
    return np.asarray(logits - top - np.log(np.exp(logits - top).sum()))


def _likeliest(longer: Sequence[tuple[Array, Array, Array]], best: float) -> tuple[Array, Array, Array]:
    """Return the `BEAM_WIDTH` likeliest walks, of those nearly as likely as all others and as some found before.

    Walks are one step longer than others: logarithms of how likely they are, the positions of these others, labels.
    """
    logs, rows, labels = (np.concatenate(part) for part in zip(*longer, strict=True))
    near = np.flatnonzero(logs > max(best, logs.max(initial=-np.inf)) - MARGIN)
    order = near[np.lexsort((labels[near], rows[near], -logs[near]))[:BEAM_WIDTH]]
    return logs[order], rows[order], labels[order]


class Surroundings:
    """The ends of walks from some entities, each looked up once. For one question and one thread.

    At most `MAX_ENTRIES` adjacency entries are looked at for a step. Walks along further ones are left out.

    Args:
        adjacency: The graph.
        starts: The ids of the entities.
        steps: Its steps, which know what undoes another.
    """

    def __init__(self, adjacency: Adjacency, starts: Sequence[int] | Array, steps: GraphSteps) -> None:
        """Begin with walks of no steps."""
        self.adjacency, self.starts, self._steps = adjacency, np.asarray(starts, np.int64), steps
        self._frontiers: dict[tuple[int, ...], Array] = {(): self.starts}
        self._onward: dict[tuple[int, ...], Array] = {}
        self._ends: dict[tuple[bool, tuple[int, ...]], Array] = {}

    def onward(self, labels: tuple[int, ...]) -> Array:
        """Return the labels by which a walk can go on, ascending. Back along its last step only to another entity."""
        if labels not in self._onward:
            frontier = self._frontier(labels)
            present = np.bincount(self._labels(frontier), minlength=1) > 0
            for back in self._steps.turned_back(labels[-1]).tolist() if labels else ():
                if back < len(present) and present[back]:
                    present[back] = self._forks(frontier, back)
            self._onward[labels] = np.flatnonzero(present)
        return self._onward[labels]

    def ends(self, labels: tuple[int, ...], *, revisits: bool) -> Array:
        """Return the ids of the entities at the end of a walk, ascending.

        Args:
            labels: The adjacency labels of its steps.
            revisits: Whether it may come to an entity where it starts.
        """
        if not labels:
            return distinct(self.starts)
        key = revisits, labels
        if key not in self._ends:
            ends = self._step(self.ends(labels[:-1], revisits=revisits), labels[-1])
            self._ends[key] = ends if revisits else np.setdiff1d(ends, self.starts)
        return self._ends[key]

    def _frontier(self, labels: tuple[int, ...]) -> Array:
        """Return some of the entities where a walk ends."""
        if labels not in self._frontiers:
            self._frontiers[labels] = self._step(self._frontier(labels[:-1]), labels[-1])[:MAX_FRONTIER]
        return self._frontiers[labels]

    def _step(self, entities: Array, label: int) -> Array:
        """Return the entities to which a label leads from some, ascending."""
        adjacency = self.adjacency
        if len(entities) == 1:
            entries = adjacency.entries_with(int(entities[0]), label)
            after = int(adjacency.indptr[entities[0]]) + MAX_ENTRIES
            return distinct(adjacency.neighbors[entries.start : min(entries.stop, after)])
        begin, end = adjacency.indptr[entities], adjacency.indptr[entities + 1]
        counts = np.cumsum(end - begin, dtype=np.int64)
        if not len(counts) or counts[-1] <= SCANNED:
            found, _ = entries_between(begin, end)
            found = found[adjacency.labels[found] == label]
        else:
            seen = begin + np.maximum(MAX_ENTRIES - counts + (end - begin), 0)
            firsts, lasts = adjacency.ranges_with(entities, label)
            found, _ = entries_between(np.minimum(firsts, seen), np.minimum(lasts, seen))
        return distinct(adjacency.neighbors[found])

    def _labels(self, entities: Array) -> Array:
        """Return the labels of the adjacency entries of entities."""
        adjacency = self.adjacency
        if len(entities) == 1:
            return adjacency.labels[adjacency.row(int(entities[0]))][:MAX_ENTRIES]
        entries, _ = entries_between(adjacency.indptr[entities], adjacency.indptr[entities + 1], MAX_ENTRIES)
        return adjacency.labels[entries]

    def _forks(self, entities: Array, label: int) -> bool:
        """Return whether a label leads from one of some entities to several."""
        if len(entities) > FEW:
            firsts, lasts = self.adjacency.ranges_with(entities, label)
            return bool((lasts - firsts).max() > 1)
        entries = (self.adjacency.entries_with(entity, label) for entity in entities.tolist())
        return any(of_one.stop - of_one.start > 1 for of_one in entries)


#: How many steps that an entity lacks are compared with its walks, the likeliest first.
LACKED_COMPARED = 8


class LackedStep(NamedTuple):
    """A step that an entity lacks.

    Attributes:
        label: The adjacency label.
        score: Its score as a walk beside those of the walks that the entity has.
        words: How well it covers each telling word of the question, (words).
    """

    label: int
    score: float
    words: Array


def lacked_labels(steps: GraphSteps, own: Array) -> Array:
    """Return the labels that an entity lacks and others have that share one of its own, ascending.

    A label of its own the other way round does not count: `compare_directions` says whether it is meant.

    Args:
        steps: The steps of the graph.
        own: The labels of the entity.
    """
    has, shares = np.zeros((2, len(steps.kinds)), bool)
    has[own] = True
    label, other = steps.beside
    shares[other[has[label]]] = True
    shares[label[has[other]]] = True
    shares[own] = shares[reversed_label(own)] = False
    return np.flatnonzero(shares)


def best_lacked(
    scorer: RelationScorer,
    question: Encoded,
    asked: Asked,
    steps: GraphSteps,
    own: Array,
    placed: Array,
    meanings: StepMeanings,
) -> LackedStep | None:
    """Return the lacked step that a question most likely asks for, or None if no like entity has one.

    A step of another kind than is asked for is taken only if none of this kind has a word of the question.

    Args:
        scorer: Scores steps.
        question: The question.
        asked: What it says.
        steps: The steps of the graph.
        own: The labels of the entity.
        placed: How well the best walk from the entity covers each telling word. A step fits that leaves out none which
            this walk covers.
        meanings: The vectors of the steps.
    """
    labels = lacked_labels(steps, own)
    if not len(labels):
        return None
    likeliest, logs = _likeliest_lacked(scorer, question, steps, own, labels)
    walks = [(label,) for label in likeliest.tolist()]
    covered = coverage(asked.words, walks, steps)
    features = walk_features(asked, walks, logs.tolist(), covered, steps, meanings)
    scores, kinds = features @ scorer.walk_weights, features[:, WALK_FEATURES.index("kind")]
    fits = ~_leaves_out(asked.words, placed, covered.ends, kinds > 0)
    of_kind = fits & (kinds >= 0) & (covered.words >= COVERED).any(axis=1)
    compared = np.flatnonzero(of_kind if of_kind.any() else fits)
    if not len(compared):
        return None
    best = int(compared[np.argmax(scores[compared])])
    return LackedStep(walks[best][0], float(scores[best]), covered.words[best])


def _leaves_out(words: Sequence[Word], placed: Array, covered: Array, of_kind: Array) -> Array:
    """Return whether steps leave out a word that the best walk covers; (n).

    A noun such as "year" is left out by none whose values are of the kind that is asked for.
    """
    nouns = asked_noun(words)
    is_noun = np.array([any(word is noun for noun in nouns) for word in words_to_cover(words)], bool)
    is_left = (placed >= COVERED) & (covered < COVERED) & ~(is_noun & of_kind[:, None])
    return np.asarray(is_left.any(axis=1))


def _likeliest_lacked(
    scorer: RelationScorer, question: Encoded, steps: GraphSteps, own: Array, lacked: Array
) -> tuple[Array, Array]:
    """Return the likeliest of the labels that an entity lacks, and the logarithms of how likely each is the whole walk.

    They are compared with its own labels too, but scaled as those of walks are, which are compared with these alone.
    """
    begin, labels = scorer.begin(question), np.concatenate([own, lacked])
    decisions = scorer.decide(question, begin, 0, steps.states.take(labels))
    logs = log_shares(decisions, 0, np.arange(len(labels)), 0)
    scale = log_shares(decisions, 0, np.arange(len(own)), 0)[0] - logs[0]
    of_lacked = logs[len(own) : len(labels)] + scale
    first = np.argsort(-of_lacked, kind="stable")[:LACKED_COMPARED]
    states = scorer.extend(begin, decisions, np.zeros(len(first), np.int64), steps.states.take(lacked[first]))
    return lacked[first], of_lacked[first] + _stop_logs(scorer, question, states, steps, lacked[first])


def _stop_logs(scorer: RelationScorer, question: Encoded, states: Prefixes, steps: GraphSteps, labels: Array) -> Array:
    """Return the logarithms of how likely walks of one step end there, rather than go on as from most of their ends."""
    label, other = steps.beside
    onward = [np.unique(other[label == reversed_label(step)]) for step in labels.tolist()]
    offered = distinct(np.concatenate(onward))
    decisions = scorer.decide(question, states, 1, steps.states.take(offered))
    columns = [np.searchsorted(offered, of_step) for of_step in onward]
    return np.array([log_shares(decisions, row, of_row, 1)[-2] for row, of_row in enumerate(columns)])
