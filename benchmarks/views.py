"""Compares every reply over a view with the reply over a graph from which the other facts were removed beforehand.

    OMP_NUM_THREADS=1 python -m benchmarks.views [--questions 100000] [--seed 1] [--methods kg rog sg-rag]

Draws graphs of 24 entities and 40 facts with attributes, views of them by tenant, day and number, and questions that
name entities and relations of the whole graph, hidden ones among them. Asks methods that need no training, without
language model, over both, and compares Documents and the messages of refusals, letter by letter. The facts of the other
graph are chosen by plain rules of this file, and its names are in the order of the whole graph, so that ids agree.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.methods.registry import find_method

#: The methods that are asked by default: of those that need no training, the fast ones.
METHODS = ("simgrag", "g-retriever", "kaping", "neighborhood")

FIRST = ("Amber", "Basin", "Cedar", "Delta", "Ember", "Frost")
SECOND = ("Harbor", "Ridge", "Grove", "Mill")
RELATIONS = ("owned by", "located in", "founded by", "member of", "opened in")
TYPES = ("Port", "Company", "Person")
QUESTIONS = (
    "What is {one} {relation}?", "Who is {one} {relation}?", "Which {type} is {relation} {one}?", "List all {type}s",
    "How many {type}s are there?", "How are {one} and {other} connected?", "Tell me about {one}",
    "Is {one} {relation} {other}?", "{one}", "What is in this graph?", "What do {one} and {other} have in common?",
    "How many {type}s are {relation} {one}?", "When was {one} {relation}?",
)  # fmt: skip

#: A fact with its attributes.
Drawn = tuple[str, str, str, dict[str, Any]]

#: How many questions are asked of each view, and how many facts a graph has.
EACH, FACTS = 25, 40


def drawn_facts(draw: random.Random) -> list[Drawn]:
    """Return facts between named entities, some with attributes, each once."""
    names = [f"{first} {second}" for first in FIRST for second in SECOND]
    facts: dict[tuple[str, str, str], dict[str, Any]] = {}
    for _ in range(FACTS):
        head, relation = draw.choice(names), draw.choice(RELATIONS)
        tail = str(draw.randrange(1950, 2020)) if relation == "opened in" else draw.choice(names)
        begin = draw.randrange(1990, 2020)
        chances: dict[str, Any] = {
            "tenant": draw.choice("abc"),
            "valid_from": str(begin),
            "valid_to": str(begin + draw.randrange(10)),
            "confidence": round(draw.random(), 2),
        }
        facts[head, relation, tail] = {name: value for name, value in chances.items() if draw.random() < 0.7}
    return [(*fact, attributes) for fact, attributes in facts.items()]


def drawn_view(draw: random.Random) -> dict[str, Any]:
    """Return the arguments of a view."""
    conditions = [
        {"where": {"tenant": draw.choice("abc")}},
        {"where": {"tenant": ["a", None]}},
        {"where": {"confidence": {">=": round(draw.random(), 1)}}},
        {"as_of": str(draw.randrange(1990, 2025))},
        {"where": {"tenant": draw.choice("ab"), "confidence": {"<": 0.8}}, "as_of": "2005-06-30"},
    ]
    return draw.choice(conditions)


def fits(attributes: Mapping[str, Any], where: Mapping[str, Any], as_of: str | None) -> bool:
    """Tell whether a fact is in a view, by a plain rule of its own for each condition that `drawn_view` draws."""
    tenant, confidence = attributes.get("tenant"), attributes.get("confidence")
    wanted = where.get("tenant", [tenant])
    if tenant not in (wanted if isinstance(wanted, list) else [wanted]):
        return False
    for comparison, limit in where.get("confidence", {}).items():
        if confidence is None or not (confidence >= limit if comparison == ">=" else confidence < limit):
            return False
    year = int(as_of[:4]) if as_of else None
    first, last = int(attributes.get("valid_from", 0)), int(attributes.get("valid_to", 9999))
    return year is None or first <= year <= last


def removed_beforehand(whole: KnowledgeGraph, facts: Sequence[Drawn], types: dict[str, list[str]]) -> KnowledgeGraph:
    """Return a graph that was made of some facts, with entities and relations in the order of the whole."""
    ends, relations = {end for fact in facts for end in fact[:3:2]}, {fact[1] for fact in facts}
    builder = GraphBuilder(types={key: types[key] for key in whole.entities if key in types and key in ends})
    builder.entities([key for key in whole.entities if key in ends])
    builder.relations([name for name in whole.relations if name in relations])
    for head, relation, tail, attributes in facts:
        builder.add(head, relation, tail, attributes)
    return KnowledgeGraph._from_builder(builder)


def reply(retriever: BaseKGRetriever, question: str) -> str:
    """Return all that a retriever says."""
    try:
        documents = retriever.invoke(question)
    except KGRetrieversError as error:
        return f"{type(error).__name__}: {error}"
    return json.dumps([[one.page_content, one.id, one.metadata] for one in documents], sort_keys=True)


def asked(draw: random.Random) -> Iterator[str]:
    """Yield questions that name entities and relations of the whole graph."""
    for _ in range(EACH):
        one, other = (f"{draw.choice(FIRST)} {draw.choice(SECOND)}" for _ in range(2))
        yield draw.choice(QUESTIONS).format(
            one=one, other=other, relation=draw.choice(RELATIONS), type=draw.choice(TYPES).lower()
        )


def compare(questions: int, seed: int, methods: Sequence[str] = METHODS) -> tuple[int, int, list[str]]:
    """Ask so many questions; return how many were asked, how many had evidence, and the first that differ."""
    draw, count, found, differ = random.Random(seed), 0, 0, list[str]()
    kinds = [find_method(name).load_retriever() for name in methods]
    while count < questions:
        facts = drawn_facts(draw)
        types = {key: [draw.choice(TYPES)] for key in sorted({end for fact in facts for end in fact[:3:2]})}
        types = {key: kinds for key, kinds in types.items() if not key.isdecimal()}
        whole = KnowledgeGraph.from_triples(facts, types=types)
        index, arguments = GraphIndex.build(whole, HashedEmbeddings(64)), drawn_view(draw)
        assert index.name_table.longest  # made now, so that the view takes its part of the table
        try:
            view = index.view(**arguments)
        except InvalidArgumentError:
            continue  # no fact stays
        kept = [fact for fact in facts if fits(fact[3], arguments.get("where", {}), arguments.get("as_of"))]
        other = GraphIndex.build(removed_beforehand(whole, kept, types), HashedEmbeddings(64))
        retrievers = [[kind.from_index(one, on_refusal="raise") for one in (view, other)] for kind in kinds]
        for question in asked(draw):
            count += 1
            for pair in retrievers:
                one, two = (reply(retriever, question) for retriever in pair)
                found += one.startswith("[[")
                if one != two:
                    differ.append(f"{type(pair[0]).__name__}, {arguments}: {question}\n  {one}\n  {two}")
    return count, found, differ


def main() -> None:
    """Print how many replies differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    options = parser.parse_args()
    count, found, differ = compare(options.questions, options.seed, options.methods)
    print(
        f"{count:,} questions to {', '.join(options.methods)}: {found:,} replies with evidence: {len(differ):,} differ"
    )
    for one in differ[:5]:
        print(one)


if __name__ == "__main__":
    main()
