"""Recall within budgets of tokens, and what a question costs."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.rivals.ground import FindFacts, Ground, Item, distinct
from benchmarks.rivals.sets import Asked
from benchmarks.zero_shot.measures import interval
from kg_retrievers.graph.verbalize import approximate_tokens

#: Tokens, as `approximate_tokens` counts them.
BUDGETS = (50, 150, 500, 1_500)

#: The budget at which intervals are stated and settings are chosen.
MAIN_BUDGET = 150

#: The fewest questions that are asked, whatever they cost.
FEWEST = 20


class Outcome(NamedTuple):
    """One question asked.

    Attributes:
        answers: The share of the gold answers that are an end of a taken fact, at each budget.
        facts: The share of the gold facts that are taken, at each budget; None if the gold facts are not known.
        has_found: Whether there was any fact.
        milliseconds: CPU time on all threads.
    """

    answers: tuple[float, ...]
    facts: tuple[float, ...] | None
    has_found: bool
    milliseconds: float


def taken(lines: Sequence[str], budget: int) -> int:
    """Return how many facts, from the first, have a text within a budget of tokens.

    Example:
        >>> taken(["Her -> directed by -> Spike Jonze", "Her -> has genre -> Drama"], 12)
        1
    """
    return (
        bisect_right(range(len(lines) + 1), budget, key=lambda count: approximate_tokens("\n".join(lines[:count]))) - 1
    )


def outcome(found: Sequence[Sequence[Item]], line: Callable[[Item], str], asked: Asked, ms: float = 0.0) -> Outcome:
    """Return the recalls of facts in their order, those of each budget."""
    shown = [facts[: taken([line(one) for one in facts], budget)] for facts, budget in zip(found, BUDGETS, strict=True)]
    ends = [{end for one in facts for end in ([one] if isinstance(one, str) else one[::2])} for facts in shown]
    known = tuple(_share(asked.facts, facts) for facts in shown) if asked.facts else None
    return Outcome(tuple(_share(asked.answers, keys) for keys in ends), known, any(found), ms)


def _share(gold: Collection[object], found: Iterable[object]) -> float:
    wanted = set(gold)
    return len(wanted.intersection(found)) / len(wanted)


def ask_all(find: FindFacts, ground: Ground, questions: Sequence[Asked], seconds: float) -> list[Outcome]:
    """Ask questions until they are all asked or have cost so many CPU seconds.

    The first question is asked twice, and its first time does not count: it may compile or load.
    """
    if questions:
        list(find(questions[0].text))
    outcomes, spent = list[Outcome](), 0.0
    for asked in questions:
        began = time.process_time()
        found = find(asked.text)
        facts = [distinct(found[budget] if isinstance(found, Mapping) else found) for budget in BUDGETS]
        taken_s = (time.process_time() - began) / (len(BUDGETS) if isinstance(found, Mapping) else 1)
        spent += taken_s
        outcomes.append(outcome(facts, ground.line, asked, 1_000 * taken_s))
        if spent > seconds and len(outcomes) >= FEWEST:
            break
    return outcomes


def recalls(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Return the means of outcomes as a row of the results."""
    known = [one.facts for one in outcomes if one.facts is not None]
    main = [one.answers[BUDGETS.index(MAIN_BUDGET)] for one in outcomes]
    return {
        "n": len(outcomes),
        "answer_recall": _means([one.answers for one in outcomes]),
        "interval": [round(end, 4) for end in interval(main)],
        "n_with_gold_facts": len(known),
        "triple_recall": _means(known) if known else None,
        "found": round(sum(one.has_found for one in outcomes) / len(outcomes), 4),
        "cpu_ms": round(median(one.milliseconds for one in outcomes), 2),
        "cpu_ms_mean": round(sum(one.milliseconds for one in outcomes) / len(outcomes), 2),
    }


def _means(values: Sequence[Sequence[float]]) -> dict[str, float]:
    means = np.asarray(values).mean(axis=0).tolist()
    return {str(budget): round(mean, 4) for budget, mean in zip(BUDGETS, means, strict=True)}
