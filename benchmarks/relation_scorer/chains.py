"""Walks of two and three steps with questions that people ask for their ends, by hand: the rows of `words/chains`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.relation_scorer.phrases import Hop
from benchmarks.relation_scorer.relations import Relation, about_topic
from benchmarks.relation_scorer.verbs import WORDS


class Chain(NamedTuple):
    """A walk with its questions.

    Attributes:
        hops: The relations that are crossed; the same one twice where the walk returns, or goes on along it.
        questions: Questions with `TOPIC` for the entity where the walk starts.
    """

    hops: tuple[Hop, ...]
    questions: tuple[str, ...]


def chains() -> Iterator[Chain]:
    """Yield the walks by hand."""
    for path in sorted((WORDS / "chains").glob("*.jsonl")):
        for position, line in enumerate(path.read_text("utf-8").splitlines()):
            row = json.loads(line)
            yield Chain(tuple(_hops(f"chain:{path.stem} {position}", row)), tuple(about_topic(row["questions"])))


def _hops(id: str, row: Mapping[str, Any]) -> list[Hop]:
    hops: list[Hop] = []
    starts: Sequence[str] = row["start"]
    for position, step in enumerate(row["steps"]):
        names, inverse = step["names"], step["inverse"]
        before = [hop.relation for hop in hops]
        again = next((relation for relation in before if {*relation.names} == {*names}), None)
        back = next((relation for relation in before if {*relation.inverse} == {*names}), None)
        if again or not back:
            nouns = {False: Counter(dict.fromkeys(starts, 2)), True: Counter(dict.fromkeys(step["end"], 2))}
            new = Relation(f"{id} {position}", names, inverse, step["kind"], end_nouns=nouns)
            hops.append(Hop(again or new, False))
        else:
            hops.append(Hop(back, True))
        starts = step["end"]
    return hops
