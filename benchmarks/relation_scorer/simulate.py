"""Random graphs with questions about them, answerable and not, to fit the ranking and the confidence on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from benchmarks.relation_scorer.examples import Examples
from benchmarks.relation_scorer.phrases import Hop
from benchmarks.relation_scorer.relations import Relation
from kg_retrievers.graph import KnowledgeGraph

#: How many entities of a type a graph has; the share of them that have a relation; and the most objects of one.
ENTITIES, SHARE, OBJECTS = 30, 0.7, 3

#: The share of questions about relations that the graph lacks, and of those that name two entities.
LACKING, STARS = 0.3, 0.15


#: The relations of a graph by id.
Relations = dict[str, Relation]

#: The entities at the other ends of facts, by relation and whether it is crossed from object to subject, and by entity.
Facts = dict[tuple[str, bool], dict[str, list[str]]]


class SimulatedQuestion(NamedTuple):
    """A question, the entities that it names, and its answers; none where the graph cannot tell.

    Attributes:
        text: The question.
        seeds: The keys of the entities that it names.
        answers: The keys of its answers.
        weight: How much it counts: more where people wrote it.
    """

    text: str
    seeds: list[str]
    answers: set[str]
    weight: float = 1.0


class _Schema:
    """Relations of a graph, with what they join."""

    def __init__(self, examples: Examples, random: Random) -> None:
        self.examples, self.random = examples, random
        types = random.randint(3, 9)
        self.hops: dict[str, tuple[Hop, int, int, str, bool]] = {}
        for _ in range(random.randint(10, 60)):
            hop = Hop(examples.hop(None).relation, False)
            step = examples.step(hop, 0.1)
            used = {known[0].relation.id for known in self.hops.values()}
            if step.name not in self.hops and hop.relation.id not in used:
                kinds = random.randrange(types), random.randrange(types)
                self.hops[step.name] = (hop, *kinds, hop.relation.kind, step.backward)
        self.facts: Facts = defaultdict(lambda: defaultdict(list))

    def triples(self) -> Iterator[tuple[str, str, str]]:
        """Yield random facts, in the direction in which the graph has them."""
        random = self.random
        for name, (hop, start, end, kind, turned) in self.hops.items():
            for subject in (f"Q{start}x{number}" for number in range(ENTITIES)):
                if random.random() > SHARE:
                    continue
                for _ in range(1 if kind else random.choice((1, 1, OBJECTS))):
                    object = self._object(kind, end)
                    if object == subject or object in self.facts[hop.relation.id, False][subject]:
                        continue
                    self.facts[hop.relation.id, False][subject].append(object)
                    self.facts[hop.relation.id, True][object].append(subject)
                    yield (object, name, subject) if turned else (subject, name, object)

    def _object(self, kind: str, end: int) -> str:
        random = self.random
        if kind == "date":
            return f"{random.randint(1850, 2024)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
        if kind == "number":
            return str(random.randint(2, 5000))
        return f"Q{end}x{random.randrange(ENTITIES)}"


def simulate(examples: Examples, random: Random, questions: int) -> tuple[KnowledgeGraph, list[SimulatedQuestion]]:
    """Return a random graph and questions about it."""
    schema = _Schema(examples, random)
    graph = KnowledgeGraph.from_triples(list(schema.triples()))
    relations = {hop.relation.id: hop.relation for hop, *_ in schema.hops.values()}
    found: list[SimulatedQuestion] = []
    while len(found) < questions:
        chance = random.random()
        start = f"Q{random.randrange(9)}x{random.randrange(ENTITIES)}"
        if start not in graph.entities:
            continue
        if chance < LACKING:
            hop = examples.hop(None)
            if hop.relation.id not in relations:
                found.append(
                    SimulatedQuestion(examples.varied(examples.grammar.walk_text([hop], start)), [start], set())
                )
        elif chance < LACKING + STARS:
            found += _star(examples, schema.facts, relations, start, random)
        else:
            found += _walk(examples, schema.facts, relations, start, random)
    return graph, found


def random_questions(
    examples: Examples, facts: Facts, relations: Relations, entities: Sequence[str], random: Random, count: int
) -> list[SimulatedQuestion]:
    """Return questions about walks and stars of some facts, all of them answerable."""
    found: list[SimulatedQuestion] = []
    while len(found) < count:
        make = _star if random.random() < STARS else _walk
        found += make(examples, facts, relations, random.choice(entities), random)
    return found


def _walk(
    examples: Examples, facts: Facts, relations: Relations, start: str, random: Random
) -> list[SimulatedQuestion]:
    here, hops = {start}, list[Hop]()
    for _ in range(random.choices((1, 2, 3), (0.45, 0.35, 0.2))[0]):
        options = [key for key, of_key in facts.items() if any(of_key.get(entity) for entity in here)]
        if (hops and hops[-1].relation.kind) or not options:
            break
        id, backward = random.choice(sorted(options))
        if relations[id].kind and backward and random.random() < 0.8:
            continue
        hops.append(Hop(relations[id], backward))
        here = {there for entity in here for there in facts[id, backward].get(entity, ())}
    mixed = len({hop.backward for hop in hops}) > 1
    answers = _ends(facts, start, hops, without=start if mixed else "")
    if not hops or not answers or len(answers) > 60:
        return []
    return [SimulatedQuestion(examples.varied(examples.grammar.walk_text(hops, start)), [start], answers)]


def _ends(facts: Facts, start: str, hops: Sequence[Hop], without: str) -> set[str]:
    here = {start}
    for hop in hops:
        crossed = facts[hop.relation.id, hop.backward]
        here = {there for entity in here for there in crossed.get(entity, ()) if there != without}
    return here


def _star(
    examples: Examples, facts: Facts, relations: Relations, target: str, random: Random
) -> list[SimulatedQuestion]:
    into = [(id, backward, other) for (id, backward), of_key in facts.items() for other in of_key.get(target, ())]
    if len(into) < 2:
        return []
    (id1, away1, one), (id2, away2, two) = random.sample(into, 2)
    first, second = Hop(relations[id1], not away1), Hop(relations[id2], not away2)
    if one == two or first.relation.kind or second.relation.kind:
        return []
    answers = _ends(facts, one, [first], "") & _ends(facts, two, [second], "") - {one, two}
    if not answers:
        return []
    return [SimulatedQuestion(examples.grammar.star_text(first, second, one, two), [one, two], answers)]
