"""Training examples: questions with the walks they ask for, natural and made from them by nesting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple
from zlib import crc32

from benchmarks.relation_scorer.chains import Chain, chains
from benchmarks.relation_scorer.english import plural
from benchmarks.relation_scorer.grammar import Grammar
from benchmarks.relation_scorer.natural import OTHER, TOPIC, NaturalQuestion, masked_questions
from benchmarks.relation_scorer.near_words import near_words
from benchmarks.relation_scorer.phrases import Hop
from benchmarks.relation_scorer.relations import Relation, relations
from benchmarks.relation_scorer.roles import Roles
from kg_retrievers.index.embeddings import TokenTable

#: Of how many questions a relation with a direction is taken whole; of more, a falling share.
PLENTY = 150

#: The share of natural, and of made questions, whose relation is turned to the opposite edge.
TURNED_NATURAL, TURNED_MADE = 0.3, 0.1

#: Relations that people pass over: "the mayor of the station" is that of the town where it is.
PASSED_OVER = (
    "P131", "P276", "P361", "P108", "P463", "P17", "P159", "state:located in", "state:based in", "state:part of",
    "state:member of", "verb:work at", "verb:work for group", "verb:be part of group", "verb:live in group",
    "verb:play for", "verb:study at group",
)  # fmt: skip

#: What such relations lead to is called.
PLACES = ("city", "country", "town", "place", "region", "district", "state", "company", "organization", "team", "group")

#: The share of steps whose ends have types in the graph, and of those of whose ends further relations are seen.
TYPED, SEEN = 0.25, 0.6

#: How often the questions of walks by hand are presented for each time of the natural ones.
CHAINED = 2

#: The share of steps of such walks whose end has the next step among its further relations.
GOES_ON = 0.5

#: The share of questions that get a trap, of those that say what the topic is, and of those with an idle word.
TRAPPED, BESIDE, IDLE = 0.4, 0.1, 0.12

#: Words that a question can have at most places and that say nothing of what it asks for.
IDLE_WORDS = (
    "currently", "exactly", "all", "actually", "direct", "directly", "now", "today", "usually", "originally", "please",
    "own", "various", "different", "main", "respective", "really", "here", "there", "ever", "each", "available",
)  # fmt: skip

#: What is left of the name of a relation that begins with what its subjects are: "station code".
OWN = ("code", "name", "type", "manager", "number", "status", "owner", "date", "title", "size", "address", "class")


class Step(NamedTuple):
    """A step of a walk as a graph presents it.

    Attributes:
        name: The words of the relation.
        start: What it starts from is called, or "".
        end: What it leads to is called, or "".
        backward: Whether the relation is crossed from object to subject.
        kind: What its ends are: "", "date" or "number".
        meaning: The relation that is meant, and whether from object to subject: equal for steps that mean the same.
    """

    name: str
    start: str
    end: str
    backward: bool
    kind: str
    meaning: tuple[str, bool]

    def turned(self) -> Step:
        """Return the step that crosses the relation the other way."""
        id, backward = self.meaning
        return self._replace(start=self.end, end=self.start, backward=not self.backward, meaning=(id, not backward))


class Example(NamedTuple):
    """A question about a walk.

    Attributes:
        question: The question, with `TOPIC` for the entity where the walk starts.
        path: The steps of the walk.
        detour: Whether the question says nothing of the first step: the graph has no shorter way.
        trap: A step whose name shares a noun with the question, and which it does not ask for.
    """

    question: str
    path: tuple[Step, ...]
    detour: bool = False
    trap: Step | None = None


class Examples:
    """Makes training examples at random.

    Args:
        folder: The folder `relation_language` of the data.
        table: Tells which words are near to others.
        seed: Of all chance.
        held_out: Whether to take the natural questions that are not trained on, a twelfth, in place of the others. The
            questions that relations have of their own are not held out.
    """

    def __init__(self, folder: Path, table: TokenTable, seed: int, *, held_out: bool = False) -> None:
        """Read the data."""
        self.random = Random(seed)
        self.questions = [q for q in masked_questions(folder) if _is_held_out(q) == held_out]
        self.known = relations(folder, self.questions)
        self.questions = [question for question in self.questions if question.relation in self.known]
        self.grammar = Grammar(self.known, self.questions, self.random)
        self.phrasings = _phrasings(self.known)
        self.chains = list(chains())
        self._near = near_words(table, self.known)
        self._some_nouns = sorted(
            {n for r in self.known.values() for c in r.end_nouns.values() for n in c if n.isalpha()}
        )
        self._nouns = {form: noun for noun in self._some_nouns for form in (noun, plural(noun))}
        self.roles = Roles(self.questions)
        counts = Counter(question.relation for question in (*self.questions, *self.phrasings))
        self._asked = [id for id in counts if self.known[id].is_entity]
        self._weights = [counts[id] ** 0.5 * (0.8 if id.startswith("/") else 1.0) for id in self._asked]
        self._items = [id for id, relation in self.known.items() if relation.is_entity and id.startswith("P")]
        self._item_weights = [
            len(self.known[id].names) for id in self._items
        ]  # what people call by many names is common
        self._ours = [id for id in self.known if id.startswith(("verb:", "state:"))]
        self._our_weights = [len(self.known[id].names) ** 0.5 for id in self._ours]
        self._literals = [id for id, relation in self.known.items() if relation.kind in ("date", "number")]
        self._our_literals = [id for id in self._literals if not id.startswith("P")]

    def natural(self) -> Iterator[Example]:
        """Yield the natural questions, less of frequent relations, and those by hand, of relations and of walks."""
        counts = Counter((question.relation, question.backward) for question in self.questions)
        for question in self.phrasings:
            yield self._single(question)
        for chain in self.chains * CHAINED:
            for text in chain.questions:
                yield self._chained(chain, text)
        for question in self.questions:
            count = counts[question.relation, question.backward]
            keep = min(1.0, (PLENTY / count) ** 0.55) * (1.6 if question.source == "freebase" else 1.0)
            if not question.clear and self.random.random() < 0.93:
                continue
            while keep > 0:
                if self.random.random() < keep:
                    yield self._single(question)
                keep -= 1

    def _single(self, question: NaturalQuestion) -> Example:
        text = " ".join(question.words)
        hop = Hop(self.known[question.relation], question.backward)
        return Example(text, (self.step(hop, TURNED_NATURAL),), trap=self._trap(text))

    def _chained(self, chain: Chain, text: str) -> Example:
        presented: dict[str, Step] = {}
        path = list[Step]()
        for relation, backward in chain.hops:
            step = presented.get(relation.id)
            if step is None:
                step = self.step(Hop(relation, backward), TURNED_MADE)
            elif step.meaning[1] != backward:
                step = step.turned()._replace(kind="")
            presented[relation.id] = step
            if path and self.random.random() < GOES_ON:
                path[-1] = path[-1]._replace(end=f"{path[-1].end} {step.name}".strip())
            path.append(step)
        return Example(self.varied(text), tuple(path), trap=self._trap(text))

    def made(self, count: int) -> Iterator[Example]:
        """Yield questions made by the grammar."""
        made = 0
        while made < count:
            chance = self.random.random()
            ways = (
                (0.17, self._genitives),
                (0.29, self._star),
                (0.34, self._detour),
                (0.41, self._implied),
                (1.0, self._nested),
            )
            new = next(way for limit, way in ways if chance < limit)()
            for example in new:
                made += 1
                yield example._replace(question=self.varied(example.question), trap=self._trap(example.question))

    def _trap(self, question: str) -> Step | None:
        """Return a step such as "station code" for a question that has the word "stations"."""
        nouns = [self._nouns[word] for word in question.split() if word in self._nouns]
        if not nouns or self.random.random() > TRAPPED:
            return None
        name = f"{self.random.choice(nouns)} {self.random.choice(OWN)}"
        backward = self.random.random() < 0.3
        return Step(name, "", "", backward, "", (f"own:{name}", backward))

    def varied(self, question: str) -> str:
        """Return a question with some words replaced by near ones, perhaps a noun beside the topic, or an idle word."""
        words = question.split()
        if self.random.random() < BESIDE and TOPIC in words:
            noun, at = self.random.choice(self._some_nouns), words.index(TOPIC)
            words[at : at + 1] = self.random.choice(([TOPIC, noun], ["the", noun, TOPIC], ["the", TOPIC, noun]))
        if self.random.random() < IDLE:
            words.insert(self.random.randint(1, len(words)), self.random.choice(IDLE_WORDS))
        return " ".join(
            self.random.choice(self._near[w]) if w in self._near and self.random.random() < 0.1 else w for w in words
        )

    def step(self, hop: Hop, turned: float) -> Step:
        """Return a hop as some graph may present it."""
        relation, backward = hop
        name, context, is_inverse = self.grammar.name_in_graph(hop)
        kind = relation.kind if self.random.random() < 0.8 and relation.kind != "text" else ""
        start, end = self._types(hop)
        if self.random.random() < turned and not relation.kind:
            nouns = relation.end_nouns[False]
            opposite = context or (self.random.choices(list(nouns), list(nouns.values()))[0] if nouns else "")
            if opposite and opposite != name:
                opposite = plural(opposite) if self.random.random() < 0.5 else opposite
                return Step(opposite, start, end, not backward, "", (relation.id, backward))
        if context:  # the name of the relation says what its subjects are
            start, end = (start, f"{context} {end}") if backward else (f"{context} {start}", end)
        kind = "" if backward else kind
        return Step(name, start, end, backward != is_inverse, kind, (relation.id, backward))

    def _types(self, hop: Hop) -> tuple[str, str]:
        """Return what the start and the end of a hop are called, and relations that they have."""
        typed, seen = self.random.random() < TYPED, self.random.random() < SEEN
        ends = []
        for role in ((hop.relation.id, hop.backward), (hop.relation.id, not hop.backward)):
            counts = hop.relation.end_nouns[role[1]]
            noun = counts.most_common(1)[0][0] if counts else ""
            words = [noun] if typed and noun else []
            if seen and (hop.relation.is_entity or role[1] is False):
                words += self._signature(role, noun)
            ends.append(" ".join(words))
        return ends[0], ends[1]

    def _signature(self, role: tuple[str, bool], noun: str) -> list[str]:
        """Return names of relations that entities of a role have."""
        alike = self.roles.alike(role) if role in self.roles else []
        ids = self.random.sample(alike, min(len(alike), 3)) if alike else self.random.sample(self._ours, 2)
        names = [self.random.choice(self.known[id].names) for id in ids if id in self.known]
        if noun and self.random.random() < 0.4:
            names.append(f"{noun} {self.random.choice(OWN)}")
        return names

    def hop(self, after: tuple[str, bool] | None, *, literal: float = 0.12) -> Hop:
        """Pick a hop; one that starts from what the last one leads to, where that is known."""
        chance = self.random.random()
        if after is not None and chance < 0.5:
            options = self.random.choices(self._asked, self._weights, k=10) + self.random.sample(self._asked, 6)
            hops = [(id, backward) for id in options for backward in (False, True)]
            weights = [self.roles.likeness(after, (id, backward)) ** 2 + 1e-4 for id, backward in hops]
            id, backward = self.random.choices(hops, weights)[0]
            return Hop(self.known[id], backward)
        backward = self.random.random() < 0.42
        chance = self.random.random()
        if chance < literal:
            ids = self._literals if self.random.random() < 0.5 else self._our_literals
            return Hop(self.known[self.random.choice(ids)], self.random.random() < 0.12)
        if chance < 0.5:
            return Hop(self.known[self.random.choices(self._asked, self._weights)[0]], backward)
        if chance < 0.8:
            return Hop(self.known[self.random.choices(self._ours, self._our_weights)[0]], backward)
        return Hop(self.known[self.random.choices(self._items, self._item_weights)[0]], backward)

    def _entity_hop(self, after: tuple[str, bool] | None) -> Hop:
        while not (hop := self.hop(after, literal=0.0)).relation.is_entity:
            pass
        return hop

    def _nested(self) -> list[Example]:
        hops = self.random.choices([1, 2, 3], [0.32, 0.42, 0.26])[0]
        text, path, after = TOPIC, list[Step](), None
        while len(path) < hops:
            left = hops - len(path)
            last = False
            if left >= 2 and self.random.random() < 0.3:
                against = self.random.random() < 0.35
                hop = Hop((self._entity_hop(after) if against else self.hop(after)).relation, against)
                text = self.grammar.joined(hop, text) if hop.backward else self.grammar.shared(hop, text)
                path += self._there_and_back(hop)
                after = _end(Hop(hop.relation, not hop.backward))
                last = left == 2
                text = self.grammar.opened(text) if last else text
                continue
            last = left == 1
            hop = self.hop(after) if last else self._entity_hop(after)
            text = self.grammar.question(hop, text) if last else self.grammar.phrase(hop, text)
            path.append(self.step(hop, TURNED_MADE))
            after = _end(hop)
        return [Example(text, tuple(path))]

    def _there_and_back(self, hop: Hop) -> list[Step]:
        there = self.step(hop, 0.0)
        return [there, there.turned()._replace(kind="")]

    def _genitives(self) -> list[Example]:
        """A chain of plain genitives: "the mother of the owner of x"."""
        hops = self.random.choices([1, 2, 3], [0.12, 0.44, 0.44])[0]
        text, path, after, last = TOPIC, list[Step](), None, None
        for position in range(hops):
            if last is not None and self.random.random() < 0.15:
                hop = last
            elif position == hops - 1:
                hop = Hop(self.hop(after).relation, False)
            else:
                hop = Hop(self._entity_hop(after).relation, False)
            path.append(self.step(hop, 0.0))
            name = self.grammar.name(hop.relation.names, plain=True)
            name = plural(name) if self.random.random() < 0.2 else name
            text = self.random.choice([f"{text} 's {name}", f"the {name} of {text}", f"{name} of {text}"])
            after, last = _end(hop), hop
        return [Example(self.grammar.opened(text), tuple(path))]

    def _detour(self) -> list[Example]:
        """A question that passes over the first of two steps."""
        first = Hop(self.known[self.random.choice(PASSED_OVER)], self.random.random() < 0.4)
        second = self.hop(None)
        path = (self.step(first, 0.0), self.step(second, TURNED_MADE))
        return [Example(self.grammar.question(second, TOPIC), path, detour=True)]

    def _implied(self) -> list[Example]:
        """A question whose noun alone tells the second of two steps: "in which city does x work"."""
        second = Hop(self.known[self.random.choice(PASSED_OVER)], False)
        first = self._entity_hop(None)
        nouns = {not first.backward: Counter({self.random.choice(PLACES): 2}), first.backward: Counter[str]()}
        empty = dict[bool, list[str]]({False: [], True: []})
        renamed = replace(first.relation, end_nouns=nouns, id=f"{first.relation.id} asked", asked=empty, phrases=empty)
        asked = Hop(renamed, first.backward)
        end = next(iter(nouns[not first.backward]))
        return [
            Example(
                self.grammar.question(asked, TOPIC),
                (self.step(first, 0.0), self.step(second, 0.0)._replace(end=end if self.random.random() < 0.4 else "")),
            )
        ]

    def _star(self) -> list[Example]:
        """A question with two entities; one example for each, with `OTHER` for the other one."""
        first = self._entity_hop(None)
        if self.random.random() < 0.3:
            second = first
        else:
            second = Hop(self._entity_hop((first.relation.id, first.backward)).relation, self.random.random() < 0.7)
        one, two = "{one}", "{two}"
        steps: tuple[Step, ...] = (self.step(first, TURNED_MADE),)
        if self.random.random() < 0.25:
            inner = self._entity_hop(None)
            one = self.grammar.phrase(inner, one)
            steps = (self.step(inner, TURNED_MADE), *steps)
        text = self.grammar.star_text(first, second, one, two)
        other = (self.step(second, TURNED_MADE),)
        texts = (
            text.replace("{one}", TOPIC).replace("{two}", OTHER),
            text.replace("{one}", OTHER).replace("{two}", TOPIC),
        )
        return [Example(texts[0], steps), Example(texts[1], other)]


def _phrasings(known: dict[str, Relation]) -> list[NaturalQuestion]:
    """Return the questions that relations have of their own."""
    return [
        NaturalQuestion(tuple(text.split()), relation.id, backward, "ours", "", "", True)
        for relation in known.values()
        for backward, texts in relation.asked.items()
        for text in texts
    ]


def _is_held_out(question: NaturalQuestion) -> bool:
    return crc32(" ".join(question.words).encode()) % 12 == 0


def _end(hop: Hop) -> tuple[str, bool]:
    """What a hop leads to, as the hop that would start from there."""
    return hop.relation.id, not hop.backward
