"""The preset of the paper: its distances against equation 3 by brute force, and the shots of its prompt."""

from __future__ import annotations

import json
import random
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Known,
    Pattern,
    Question,
    SimGRAGRetriever,
    Unknown,
)
from kg_retrievers.errors import InvalidArgumentError, PatternError
from kg_retrievers.graph import Term
from kg_retrievers.questions.reader import QuestionReader
from kg_retrievers.testing import ScriptedChatModel

NAMES = ["red river", "green river", "red house", "old bridge", "new bridge", "stone tower"]
RELATIONS = ["flows into", "stands on", "crosses"]
TEXTS = [*NAMES, "red stream", "a bridge", "tower of stone"]
RELATION_TEXTS = [*RELATIONS, "flows to", "is crossed by"]


def random_graph(draw: random.Random) -> KnowledgeGraph:
    triples = {(draw.choice(NAMES), draw.choice(RELATIONS), draw.choice(NAMES)) for _ in range(draw.randint(3, 9))}
    return KnowledgeGraph.from_triples(sorted(triples), types={name: [name.split()[1]] for name in NAMES})


def random_pattern(draw: random.Random) -> Pattern:
    """Return a connected pattern of up to three edges, with or without a cycle; something in it is known."""
    nodes: list[Term] = [Known(draw.choice(TEXTS))]
    triples: list[tuple[Term, Term, Term]] = []
    for number in range(draw.randint(1, 3)):
        here, there = draw.choice(nodes), Unknown(f"x{number}") if draw.random() < 0.6 else Known(draw.choice(TEXTS))
        if draw.random() < 0.2 and len(nodes) > 2:
            there = draw.choice([node for node in nodes if node != here])
        if there == here:
            continue
        relation: Term = Known(draw.choice(RELATION_TEXTS)) if draw.random() < 0.7 else Unknown(f"r{number % 2}")
        triples.append((here, relation, there) if draw.random() < 0.5 else (there, relation, here))
        nodes.append(there)
    return Pattern.of(*triples) if triples else random_pattern(draw)


def plain_distances(index: GraphIndex, pattern: Pattern) -> list[float]:
    """Render definition 1 and equation 3: all one-to-one mappings, each with the sum over what is known."""
    graph = index.graph

    def distance(text: str, name: str) -> float:
        return 0.0 if text == name else float(np.linalg.norm(np.subtract(*index.embed([text, name]))))

    nodes = pattern.nodes
    facts = set(map(tuple, graph.triples()))
    found = []
    for entities in permutations(graph.entities, len(nodes)):
        f = dict(zip(nodes, entities, strict=True))
        for names in product(graph.relations, repeat=len(pattern.triples)):
            edges = list(zip(pattern.triples, names, strict=True))
            bound = {(triple.relation, name) for triple, name in edges if isinstance(triple.relation, Unknown)}
            if len({relation for relation, _ in bound}) < len(bound):  # an unknown relation is one relation
                continue
            if all({(f[h], name, f[t]), (f[t], name, f[h])} & facts for (h, _, t), name in edges):
                of_nodes = sum(distance(node.text, f[node]) for node in nodes if isinstance(node, Known))
                of_edges = sum(
                    distance(one.relation.text, name) for one, name in edges if isinstance(one.relation, Known)
                )
                found.append(of_nodes + of_edges)
    return sorted(found)


@pytest.mark.parametrize("seed", range(40))
def test_distances_are_those_of_equation_3(seed: int) -> None:
    draw = random.Random(seed)
    index = GraphIndex.build(random_graph(draw), HashedEmbeddings())
    retriever = SimGRAGRetriever.from_index(index, preset="paper", max_seconds=None)
    pattern = random_pattern(draw)
    found = [evidence.details["distance"] for evidence in retriever.match(pattern, 1000)]
    assert found == pytest.approx(plain_distances(index, pattern), abs=1e-5)
    top = [evidence.details["distance"] for evidence in retriever.match(pattern)]
    assert top == found[:3]


@pytest.mark.parametrize("seed", range(20))
def test_types_narrow_the_candidates_at_no_distance(seed: int) -> None:
    """Render appendix C.1: a typed unknown is an entity of a type among the k(t) nearest, and adds nothing."""
    draw = random.Random(seed)
    index = GraphIndex.build(random_graph(draw), HashedEmbeddings())
    start, relation = draw.choice(TEXTS), draw.choice(RELATION_TEXTS)
    typed = Pattern.of((Known(start), relation, Unknown("x", type="bridge")), target="x")
    plain = Pattern.of((Known(start), relation, Unknown("x")), target="x")
    retriever = SimGRAGRetriever.from_index(index, preset="paper", k_types=1)
    all_found = [(one.answers, one.details["distance"]) for one in retriever.match(plain, 1000)]
    wanted = [found for found in all_found if found[0][0].endswith("bridge")]
    found = [(one.answers, one.details["distance"]) for one in retriever.match(typed, 1000)]
    assert sorted(found) == sorted(wanted)
    ignoring = SimGRAGRetriever.from_index(index, preset="paper", node_types="ignore")
    assert [one.details["distance"] for one in ignoring.match(typed, 1000)] == [distance for _, distance in all_found]


def test_an_ignored_type_is_nothing_known() -> None:
    index = GraphIndex.build(random_graph(random.Random(0)), HashedEmbeddings())
    pattern = Pattern.of((Unknown("x", type="bridge"), Unknown("r"), Unknown("y")))
    assert SimGRAGRetriever.from_index(index).match(pattern)
    with pytest.raises(PatternError, match="everything in the pattern is unknown"):
        SimGRAGRetriever.from_index(index, node_types="ignore").match(pattern)


# --- the language model -----------------------------------------------------------------------------------------------

INDEX = GraphIndex.build(
    KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Tenet", "directed_by", "Nolan")]),
    HashedEmbeddings(),
)
REPLY = json.dumps({"triples": [["Her", "directed_by", "UNKNOWN x 1"]], "target": "UNKNOWN x 1"})
#: Twelve examples that differ in more than their entities.
EXAMPLES = [
    Question(f"{'so ' * number}who directed Her", pattern=Pattern.of(("Her", "directed_by", Unknown("x")), target="x"))
    for number in range(12)
]


def asking(llm: ScriptedChatModel, **fields: Any) -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(INDEX, llm=llm, **fields)


def shots_of(llm: ScriptedChatModel) -> list[str]:
    lines = llm.prompts[0][0].text.split("Examples\n\n", 1)[1].splitlines()
    return [line.removeprefix("Question: ") for line in lines if line.startswith("Question: ")][:-1]


@pytest.mark.parametrize("shots", [4, 8, 12])
def test_the_preset_asks_the_model_alone_with_shots_of_the_user(shots: int) -> None:
    llm = ScriptedChatModel(replies=[REPLY])
    retriever = asking(llm, examples=EXAMPLES, preset="paper", shots=shots)
    document = retriever.invoke("Who directed Her?")[0]  # the zero-shot generator is sure of it
    assert document.metadata["answers"] == ["Jonze"]
    assert document.metadata["details"]["pattern"]["source"] == "llm"
    shown = shots_of(llm)
    assert len(shown) == shots
    assert set(shown) <= {example.text for example in EXAMPLES}


def test_without_a_model_the_preset_takes_the_cascade() -> None:
    retriever = SimGRAGRetriever.from_index(INDEX, preset="paper")
    assert isinstance(retriever.pattern_generator, QuestionReader)
    assert retriever.invoke("Who directed Her?")[0].metadata["answers"] == ["Jonze"]


@pytest.mark.parametrize(("name", "value"), [("shots", 4), ("asks_model", "always")])
def test_what_a_generator_is_made_with_is_fixed(name: str, value: object) -> None:
    with pytest.raises(InvalidArgumentError, match="frozen"):
        setattr(SimGRAGRetriever.from_index(INDEX), name, value)
