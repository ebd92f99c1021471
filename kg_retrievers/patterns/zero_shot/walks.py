"""Walks from an entity, ranked against a question by a beam search over the steps that the graph has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import entries_between, reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.patterns.zero_shot.scorer import Decisions, Encoded, RelationScorer, StepStates

#: How many beginnings of walks are followed at each hop.
BEAM_WIDTH = 16

#: How much less likely than the likeliest walk, as a difference of logarithms, a beginning may be to be followed.
MARGIN = 8.0

#: How many entities, and how many of their adjacency entries, are looked at to tell where a walk can go on.
MAX_FRONTIER, MAX_ENTRIES = 2_000, 200_000


class ScoredWalk(NamedTuple):
    """The adjacency labels of a walk, and the logarithm of how likely the question asks for it."""

    labels: tuple[int, ...]
    log_probability: float


class Beam(NamedTuple):
    """What a question may ask for.

    Attributes:
        walks: The walks found, the likeliest first.
        nothing: How likely nothing around the entities fits.
    """

    walks: list[ScoredWalk]
    nothing: float


class _Prefix(NamedTuple):
    labels: tuple[int, ...]
    log_probability: float
    frontier: Array


def rank_walks(
    scorer: RelationScorer,
    question: Encoded,
    steps: StepStates,
    adjacency: Adjacency,
    starts: Sequence[int],
    *,
    max_hops: int,
    beam_width: int = BEAM_WIDTH,
) -> Beam:
    """Return the walks that a question may ask for, the likeliest first.

    Args:
        scorer: Scores each next step.
        question: The question.
        steps: The steps of the graph, a row for each label.
        adjacency: The graph.
        starts: The ids of the entities where walks start.
        max_hops: The most steps of a walk.
        beam_width: How many beginnings are followed at each hop.
    """
    prefixes = [_Prefix((), 0.0, np.asarray(starts, np.int64))]
    states = scorer.begin(question)
    found: list[ScoredWalk] = []
    nothing = 0.0
    for hop in range(max_hops + 1):
        options = [_onward(adjacency, prefix) if hop < max_hops else np.empty(0, np.int64) for prefix in prefixes]
        offered = np.unique(np.concatenate(options))
        offered_states = steps.take(offered)
        if hop == max_hops:
            found += [ScoredWalk(prefix.labels, prefix.log_probability) for prefix in prefixes]
            break
        decisions = scorer.decide(question, states, hop, offered_states)
        longer: list[tuple[float, int, int]] = []
        for row, (prefix, labels) in enumerate(zip(prefixes, options, strict=True)):
            logs = _log_shares(decisions, row, np.searchsorted(offered, labels), hop)
            nothing += float(np.exp(prefix.log_probability + logs[-1]))
            if hop:
                found.append(ScoredWalk(prefix.labels, prefix.log_probability + float(logs[-2])))
            shares = zip(labels.tolist(), logs.tolist(), strict=False)
            longer += [(prefix.log_probability + log, row, label) for label, log in shares]
        best = max([walk.log_probability for walk in found] + [item[0] for item in longer], default=0.0)
        longer = [item for item in longer if item[0] > best - MARGIN]
        longer = sorted(longer, key=lambda item: (-item[0], item[1], item[2]))[:beam_width]
        if not longer:
            break
        rows, labels = (np.array([item[part] for item in longer]) for part in (1, 2))
        states = scorer.extend(states, decisions, rows, steps.take(labels))
        prefixes = [_longer(adjacency, prefixes[row], label, log) for log, row, label in longer]
    return Beam(sorted(found, key=lambda walk: (-walk.log_probability, walk.labels)), nothing)


def compare_directions(
    scorer: RelationScorer,
    question: Encoded,
    steps: StepStates,
    adjacency: Adjacency,
    starts: Sequence[int],
    label: int,
) -> float:
    """Return how likely a question asks for a first step, compared with its opposite; 1 where it is as likely, or more.

    Whoever asks "Who reports to Ann?" asks not for whom Ann reports to, even where nobody reports to her. 1 as well
    where the entities have both steps, for then `rank_walks` has compared them.

    Args:
        scorer: Scores both steps.
        question: The question.
        steps: The steps of the graph, a row for each label.
        adjacency: The graph.
        starts: The ids of the entities where walks start.
        label: The adjacency label of the step.
    """
    opposite = reversed_label(label)
    if any(_count(adjacency, start, opposite) for start in starts):
        return 1.0
    both = steps.take(np.array([label, opposite]))
    here, there = scorer.decide(question, scorer.begin(question), 0, both).steps[0].tolist()
    return math.exp(min(here - there, 0.0))


def _log_shares(decisions: Decisions, row: int, columns: Array, hop: int) -> Array:
    """Return the logarithms of the shares of the steps on offer, of stopping, and of nothing that fits."""
    stop, nothing = decisions.ends[row]
    logits = np.concatenate([decisions.steps[row, columns], [stop if hop else -np.inf, nothing]]).astype(np.float64)
    top = logits.max()
    logs: Array = logits - top - np.log(np.exp(logits - top).sum())
    return logs


def _entries(adjacency: Adjacency, entities: Array) -> Array:
    """Return the adjacency entries of entities, at most `MAX_ENTRIES`."""
    entries, _ = entries_between(adjacency.indptr[entities], adjacency.indptr[entities + 1], MAX_ENTRIES)
    return entries


def _onward(adjacency: Adjacency, prefix: _Prefix) -> Array:
    """Return the labels by which a walk can go on, ascending; back along its last step only to another entity."""
    entries = _entries(adjacency, prefix.frontier)
    labels = adjacency.labels[entries]
    present = np.bincount(labels, minlength=1) > 0
    if prefix.labels and (back := reversed_label(prefix.labels[-1])) < len(present) and present[back]:
        fork = any(_count(adjacency, entity, back) > 1 for entity in prefix.frontier.tolist())
        present[back] = fork
    return np.flatnonzero(present)


def _count(adjacency: Adjacency, entity: int, label: int) -> int:
    entries = adjacency.entries_with(entity, label)
    return int(entries.stop) - int(entries.start)


def _longer(adjacency: Adjacency, prefix: _Prefix, label: int, log_probability: float) -> _Prefix:
    entries = _entries(adjacency, prefix.frontier)
    entries = entries[adjacency.labels[entries] == label]
    return _Prefix((*prefix.labels, label), log_probability, np.unique(adjacency.neighbors[entries])[:MAX_FRONTIER])


def walk_ends(adjacency: Adjacency, starts: Sequence[int], labels: Sequence[int], *, revisits: bool) -> Array:
    """Return the ids of the entities where walks end, ascending.

    At most `MAX_ENTRIES` adjacency entries are looked at for a step; walks along further ones are left out.

    Args:
        adjacency: The graph.
        starts: Where they start.
        labels: The adjacency labels of their steps.
        revisits: Whether they may come to an entity where they start.
    """
    named = np.unique(np.asarray(starts, np.int64))
    here = named
    for label in labels:
        entries = _entries(adjacency, here)
        here = np.unique(adjacency.neighbors[entries[adjacency.labels[entries] == label]])
        here = here if revisits else np.setdiff1d(here, named)
    return here
