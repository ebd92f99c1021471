"""Questions by hand over schemas without facts: the files `domains/NAME.txt`.

A file has three parts. `relations`: name, kind of the heads, kind of the tails. `questions`: the question, the walk
from `[x]` to its answers, and perhaps that from `[y]`. `claims`: the claim, and the step from `[x]` that makes it true.
Tabs part columns, blanks the steps of a walk, and "-" marks a step from tail to head.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.sentence_encoder.pairs import BESIDE, TYPED, Pair, Walk
from kg_retrievers.questions.zero_shot.scorer import OTHER, TOPIC
from kg_retrievers.questions.zero_shot.steps import is_mutual, relation_words, step_phrase

DOMAINS = Path(__file__).parent / "domains"

#: Kinds of values, with what a graph calls them.
VALUES = {"number": "number", "date": "date", "text": "", "truth": ""}

#: How many wrong walks of a question are compared.
MOST_WRONG = 12


class _Asked(NamedTuple):
    """A question or claim, as asked of `TOPIC`, with the names of the steps of its walk."""

    text: str
    steps: tuple[str, ...]


class Domain:
    """A schema with its questions and claims.

    Args:
        path: Its file.

    Attributes:
        asked: Its questions and claims, once for each entity.
    """

    def __init__(self, path: Path) -> None:
        """Read the file."""
        self.name, self.asked = path.stem, list[_Asked]()
        self._joins: dict[str, tuple[str, str]] = {}
        part = ""
        for line in filter(None, path.read_text("utf-8").splitlines()):
            columns = line.split("\t")
            if len(columns) == 1:
                part = line
            elif part == "relations":
                self._joins[columns[0]] = columns[1], columns[2]
            else:
                self._read(part, columns[0], [tuple(walk.split()) for walk in columns[1:]])

    def _read(self, part: str, text: str, walks: list[tuple[str, ...]]) -> None:
        text = text.rstrip("?.! ")
        turned = text.replace(TOPIC, "\0").replace(OTHER, TOPIC).replace("\0", OTHER)
        self.asked.append(_Asked(text, walks[0]))
        if part == "claims":
            self.asked.append(_Asked(turned, (_turned(walks[0][0]),)))
        self.asked += [_Asked(turned, walk) for walk in walks[1:]]

    def draw(self, random: Random, count: int) -> list[Pair]:
        """Return pairs of random questions; the ends of all their steps are named in one way."""
        phrases = self._phrases(random)

        def said(walk: tuple[str, ...]) -> Walk:
            return tuple(phrases[step] for step in walk)

        pairs = []
        for asked in random.sample(self.asked, min(count, len(self.asked))):
            wrong = {said(walk) for walk in self._wrong(asked.steps, random)} - {said(asked.steps)}
            some = random.sample(sorted(wrong), min(len(wrong), MOST_WRONG))
            pairs.append(Pair(asked.text, said(asked.steps), tuple(some), f"{self.name} {asked.steps}"))
        return pairs

    def is_walk(self, steps: tuple[str, ...]) -> bool:
        """Return whether each step starts at the kind of thing to which the step before leads."""
        return all(self._ends(one)[1] == self._ends(other)[0] for one, other in pairwise(steps))

    def _phrases(self, random: Random) -> dict[str, str]:
        """Return each step in words. Its ends are called by their types, by relations beside, or not at all."""
        chance = random.random()

        def called(name: str, kind: str) -> str:
            if kind in VALUES:
                return VALUES[kind]
            if chance < TYPED:
                return kind
            others = [other for other, joined in self._joins.items() if kind in joined and other != name]
            some = random.sample(others, min(2, len(others))) if chance < TYPED + BESIDE else []
            return ", ".join(relation_words(other)[0] for other in some)

        phrases = {}
        for name, kinds in self._joins.items():
            head, tail = (called(name, kind) for kind in kinds)
            words, _ = relation_words(name)
            phrases[name] = step_phrase(words, head, tail, False)
            phrases[_turned(name)] = step_phrase(words, tail, head, True)
        return phrases

    def _wrong(self, walk: tuple[str, ...], random: Random) -> list[tuple[str, ...]]:
        """Return other walks from the same kind of thing: other first or last steps, one less, one more, one turned."""
        start = self._ends(walk[0])[0]
        before_last, end = self._ends(walk[-1])
        wrong = [(step,) for step in self._from(start)]
        wrong += [(*walk[:-1], step) for step in self._from(before_last)]
        if len(walk) > 1:
            wrong += [walk[:-1], walk[1:]]
        if len(walk) < 3:
            onward = self._from(end)
            wrong += [(*walk, step) for step in random.sample(onward, min(2, len(onward)))]
        at = random.randrange(len(walk))
        if not is_mutual(relation_words(walk[at].removeprefix("-"))[0]):
            wrong += [(*walk[:at], _turned(walk[at]), *walk[at + 1 :])] * 2
        return [one for one in wrong if one != walk]

    def _ends(self, step: str) -> tuple[str, str]:
        head, tail = self._joins[step.removeprefix("-")]
        return (tail, head) if step.startswith("-") else (head, tail)

    def _from(self, kind: str) -> list[str]:
        """Return the steps from a kind of thing."""
        steps = [step for name in self._joins for step in (name, _turned(name))]
        return [step for step in steps if self._ends(step)[0] == kind and kind not in VALUES]


def _turned(step: str) -> str:
    return step.removeprefix("-") if step.startswith("-") else f"-{step}"


def read_domains() -> list[Domain]:
    """Return all domains, by name."""
    return [Domain(path) for path in sorted(DOMAINS.glob("*.txt"))]
