"""Held-out natural questions, and made ones, asked of public graphs on which nothing is reported."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from random import Random

from benchmarks.relation_scorer.examples import Examples
from benchmarks.relation_scorer.natural import TOPIC, masked_questions
from benchmarks.relation_scorer.simulate import Facts, Relations, SimulatedQuestion, random_questions
from kg_retrievers.graph import KnowledgeGraph

#: How many natural questions a graph is asked at most, how many natural ones about relations that it lacks, and how
#: many made ones.
NATURAL, LACKING, MADE = 200, 60, 150

#: The share of Freebase's relations that are named as the second of two.
JOINED = 0.5

#: The weight of a question that people wrote, beside a made one.
WRITTEN = 2.0

#: The most answers of a natural question.
ANSWERS = 200


def freebase_sample(examples: Examples, data: Path, random: Random) -> tuple[KnowledgeGraph, list[SimulatedQuestion]]:
    """Return the Freebase sample of SubgraphRAG (MIT) and questions about it.

    Some of its relations are named as Freebase's are that a node without a name joins: the second of two.
    """
    triples = set[tuple[str, str, str]]()
    for name in ("webqsp", "cwq"):
        rows = json.loads((data / "freebase_sample" / f"{name}_gpt_triples.json").read_text("utf-8"))
        triples.update((head, relation, tail) for of_one in rows.values() for head, relation, tail in of_one)
    ids = {id.strip("/").replace("/", "."): id for id in examples.known if id.startswith("/")}
    known = sorted((head, ids[relation], tail) for head, relation, tail in triples if relation in ids)
    names = {relation: relation for _, relation, _ in sorted(triples)}
    for relation in random.sample(sorted(names), round(JOINED * len(names))):
        before = random.choice(sorted(ids.values()))
        names[relation] = f"{before}./{relation.replace('.', '/')}"
    named = [(head, names[relation], tail) for head, relation, tail in sorted(triples)]
    return KnowledgeGraph.from_triples(named), _questions(examples, known, random)


def wikidata_sample(examples: Examples, data: Path, random: Random) -> tuple[KnowledgeGraph, list[SimulatedQuestion]]:
    """Return the facts of SimpleQuestions on Wikidata as a graph, and questions about it."""
    known = set[tuple[str, str, str]]()
    for question in masked_questions(data / "relation_language"):
        if question.source == "wikidata" and question.relation in examples.known:
            ends = (question.answer, question.topic) if question.backward else (question.topic, question.answer)
            known.add((ends[0], question.relation, ends[1]))
    named = [(head, examples.known[relation].names[0], tail) for head, relation, tail in sorted(known)]
    return KnowledgeGraph.from_triples(named), _questions(examples, sorted(known), random)


def _questions(examples: Examples, known: list[tuple[str, str, str]], random: Random) -> list[SimulatedQuestion]:
    """Return questions about facts whose relations are given by id."""
    facts: Facts = defaultdict(lambda: defaultdict(list))
    for head, relation, tail in known:
        facts[relation, False][head].append(tail)
        facts[relation, True][tail].append(head)
    relations: Relations = {id: examples.known[id] for id, _ in facts}
    entities = sorted({end for head, _, tail in known for end in (head, tail)})
    found, lacking = list[SimulatedQuestion](), list[SimulatedQuestion]()
    for question in random.sample(examples.questions, len(examples.questions)):
        words = " ".join(question.words)
        asked = facts.get((question.relation, question.backward))
        if asked is None:
            entity = random.choice(entities)
            lacking.append(SimulatedQuestion(words.replace(TOPIC, entity), [entity], set(), WRITTEN))
        elif question.clear:
            entity = question.topic if question.topic in asked else random.choice(sorted(asked))
            if len(answers := set(asked[entity]) - {entity}) in range(1, ANSWERS):
                found.append(SimulatedQuestion(words.replace(TOPIC, entity), [entity], answers, WRITTEN))
    made = random_questions(examples, facts, relations, entities, random, MADE)
    return [*found[:NATURAL], *lacking[:LACKING], *made]
