"""Questions with the walk that each asks for, and walks that are easily mistaken for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.relation_scorer.batches import Negatives, StepPool
from benchmarks.relation_scorer.examples import Example, Examples, Step
from benchmarks.relation_scorer.phrases import Hop
from kg_retrievers.index.embeddings import TokenTable, token_table
from kg_retrievers.questions.zero_shot.steps import is_mutual, step_phrase

#: The share of examples whose steps have types, and of those that have relations beside in their place.
TYPED, BESIDE = 0.6, 0.25


#: The steps of a walk in words.
Walk = tuple[str, ...]


class Pair(NamedTuple):
    """A question and the walk that it asks for.

    Attributes:
        question: The question, with `TOPIC` and `OTHER` for entities.
        walk: The walk.
        wrong: Other walks.
        meaning: Equal for walks that mean the same.
    """

    question: str
    walk: Walk
    wrong: tuple[Walk, ...]
    meaning: str


class _PlainEnds(Examples):
    """Names the ends of all steps of an example by types, by relations beside, or not at all."""

    typed = beside = False

    def choose(self) -> None:
        """Choose how the ends of the next example are named."""
        chance = self.random.random()
        self.typed, self.beside = chance < TYPED, TYPED <= chance < TYPED + BESIDE

    def _types(self, hop: Hop) -> tuple[str, str]:
        ends = []
        for role in ((hop.relation.id, hop.backward), (hop.relation.id, not hop.backward)):
            counts = hop.relation.end_nouns[role[1]]
            noun = counts.most_common(1)[0][0] if counts else ""
            beside = self.beside and (hop.relation.is_entity or role[1] is False)
            ends.append(noun if self.typed else ", ".join(self._signature(role, "")[:2]) if beside else "")
        return ends[0], ends[1]


class Pairs:
    """Makes pairs of each sort at random.

    Args:
        folder: The folder `relation_language` of the data.
        seed: Of all chance.
        table: Splits texts into tokens; None for the package's.
    """

    def __init__(self, folder: Path, seed: int, table: TokenTable | None = None) -> None:
        """Read the data."""
        table = table or token_table()
        self.random = Random(seed)
        self.examples = _PlainEnds(folder, table, seed)
        made = self.examples
        natural = list(self._chosen(made.natural()))
        count = len(made.phrasings)
        self.sorts: dict[str, list[Example]] = {
            "phrasing": natural[:count],
            "chain": natural[count : (end := count + sum(len(c.questions) for c in made.chains * 2))],
            "natural": natural[end:],
        }
        self._made = self._chosen(made.made(10**9))
        pool = StepPool(table)
        steps = [example for examples in self.sorts.values() for example in examples]
        for example in steps:
            for step in example.path:
                pool.id_of(step.name)
        self._near = Negatives(pool, steps, self.random)
        self._claimed = [id for id, one in made.known.items() if one.is_entity]
        self._ours = [id for id in self._claimed if made.known[id].verbs or id.startswith(("said:", "state:"))]

    def _chosen(self, examples: Iterator[Example]) -> Iterator[Example]:
        """Choose before each example how ends are named."""
        while True:
            self.examples.choose()
            if (example := next(examples, None)) is None:
                return
            yield example

    def draw(self, sort: str) -> Pair:
        """Return a random pair of "phrasing", "chain", "natural", "made" or "claim"."""
        if sort == "claim":
            return self._claim()
        example = next(self._made) if sort == "made" else self.random.choice(self.sorts[sort])
        meaning = str([step.meaning for step in example.path])
        wrong = tuple(_walk(path) for path in self._wrong(example))
        return Pair(example.question, _walk(example.path), wrong, meaning)

    def _wrong(self, example: Example) -> Iterator[Sequence[Step]]:
        """Yield the walk with a step turned, or replaced by a near one, or left out."""
        path = list(example.path)
        turnable = [at for at, step in enumerate(path) if not is_mutual(step.name)]
        if turnable:
            at = self.random.choice(turnable)
            yield [*path[:at], path[at].turned(), *path[at + 1 :]]
        at = self.random.randrange(len(path))
        for near in self._near_steps(path[at]):
            yield [*path[:at], near, *path[at + 1 :]]
        if example.trap and self.random.random() < 0.5:
            yield [example.trap]
        if len(path) > 1:
            yield path[:-1]
            yield path[1:]
        elif self.random.random() < 0.25:
            yield [*path, self.random.choice(self.random.choice(self.sorts["natural"]).path)]

    def _near_steps(self, step: Step) -> list[Step]:
        return self._near.of(step)[1:] if step.meaning[0] in self._near.positions else []

    def _claim(self) -> Pair:
        """Return a claim that joins two entities, with the relation the other way round as the wrong walk."""
        self.examples.choose()
        while True:
            ids = self._ours if self.random.random() < 0.7 else self._claimed
            relation = self.examples.known[self.random.choice(ids)]
            hop = Hop(relation, self.random.random() < 0.5)
            step = self.examples.step(hop, 0.1)
            if not any(map(is_mutual, (step.name, *relation.names))):
                break
        wrong = [[step.turned()], *([near] for near in self._near_steps(step))]
        return Pair(self._claim_text(hop), _walk([step]), tuple(map(_walk, wrong)), str([step.meaning]))

    def _claim_text(self, hop: Hop) -> str:
        """Return a claim; the step starts at `TOPIC`."""
        x, y = ("[y]", "[x]") if hop.backward else ("[x]", "[y]")
        pick, relation = self.random.choice, hop.relation
        if relation.verbs and self.random.random() < 0.8:
            verb = pick(relation.verbs)
            to = f" {verb.preposition}" if verb.preposition else ""
            ways = [f"does {x} {verb.base}{to} {y}", f"did {x} {verb.base}{to} {y}", f"{x} {verb.third}{to} {y}"]
            ways += [f"has {x} {verb.participle}{to} {y}", f"is it true that {x} {verb.past}{to} {y}"]
            if verb.base != "be":
                ways += [f"{was} {y} {verb.participle}{to} by {x}" for was in ("was", "is", "has been")]
            if verb.agent:
                ways += [f"is {x} the {verb.agent} of {y}", f"is {x} {y} 's {verb.agent}"]
            return pick(ways)
        name = pick(relation.names)
        if re.match(r"(is|was|has|are)\b", name) or re.search(r" (of|to|in|by|at|on|from|for|with)$", name):
            verb_like = re.match(r"\w+s\b|is\b|was\b|has\b", name)
            return f"{x} {name} {y}" if verb_like else pick([f"is {x} {name} {y}", f"was {x} {name} {y}"])
        ways = [f"is {y} the {name} of {x}", f"was {y} the {name} of {x}", f"is {y} {x} 's {name}"]
        return pick([*ways, f"is the {name} of {x} {y}", f"does {x} have {y} as {name}"])


def _walk(path: Sequence[Step]) -> Walk:
    return tuple(
        step_phrase(step.name, step.start.strip(), step.end.strip() or step.kind, step.backward) for step in path
    )
