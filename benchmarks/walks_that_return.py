"""What the rule of returning walks and the learning of conjunctions bring, without a question being understood.

    python benchmarks/walks_that_return.py [--sections gold conjunctions] [--limit N]

`gold`: the gold walks of MetaQA and PathQuestion from their gold topics, found by the matcher (`direction="respect"`),
by Cypher in an embedded database, and by following relation paths. "never": walks never return to the topic
(`distinct="known"`). "auto": each walk decides, see `kg_retrievers.graph.pattern`; `widened`: the share of questions
for which the search was repeated. `hit`: a gold answer is found; `exact`: what is found is the gold answer set.

`conjunctions`: questions made from MetaQA's graph that name two entities, as "Which film by X stars Y?", with a few
examples of the same template that hold answers alone, entities given. Half of the kinds of questions ask for what is
directly joined to both entities, half for what is two facts away from one.

Shares with 95 % Wilson intervals; data: the folder named in KG_RETRIEVERS_DATA (default ../shared/data).
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.runnables import RunnableLambda
from wilson import wilson_interval

from kg_retrievers import (
    CypherRetriever,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Known,
    Pattern,
    Question,
    RelationPathRetriever,
    SimGRAGRetriever,
)
from kg_retrievers.database.ladybug import LadybugExecutor
from kg_retrievers.datasets import read_metaqa, read_pathquestion
from kg_retrievers.methods.rog.proposals import ExampleRelationPaths
from kg_retrievers.methods.sg_rag.writers import PatternCypherWriter, TemplateCypherWriter

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEED = 20261122

#: How many examples a template of `conjunctions` has, and how many of its questions are asked.
EXAMPLES, ASKED = 10, 50

#: The kinds of questions of `conjunctions`: the words, and the relation path from each entity to the answers, in which
#: "<" goes from tail to head.
KINDS: dict[str, tuple[list[str], list[str]]] = {
    "Which film by {} stars {}?": (["<directed_by"], ["<starred_actors"]),
    "Which {} film came out in {}?": (["<has_genre"], ["<release_year"]),
    "Which film by {} was written by {}?": (["<directed_by"], ["<written_by"]),
    "Which film in {} is about {}?": (["<in_language"], ["<has_tags"]),
    "Who acted for {} in films of {}?": (["<directed_by", ">starred_actors"], ["<release_year", ">starred_actors"]),
    "When did films of {} and those of {} come out?": (
        ["<directed_by", ">release_year"],
        ["<written_by", ">release_year"],
    ),
    "Who directed both {} and a film with {}?": ([">directed_by"], ["<starred_actors", ">directed_by"]),
    "Which genre do {} and the films by {} share?": ([">has_genre"], ["<directed_by", ">has_genre"]),
}

#: What finds the answers of a question: their keys, and whether the search was repeated.
Finder = Callable[[Question], tuple[set[str], bool]]


def main() -> None:
    """Print the tables of the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", choices=["gold", "conjunctions"], default=["gold", "conjunctions"])
    parser.add_argument("--limit", type=int, default=1000, help="the most questions of a set, drawn with a fixed seed")
    arguments = parser.parse_args()
    if "gold" in arguments.sections:
        gold(arguments.limit)
    if "conjunctions" in arguments.sections:
        conjunctions()


def gold(limit: int) -> None:
    """Print what is found of the gold walks."""
    print("| set | n | walks return | found by | hit | exact | widened |\n|" + "---|" * 7)
    for name, graph, questions in _sets(limit):
        index = GraphIndex.build(graph, HashedEmbeddings())
        with LadybugExecutor.from_graph(graph) as executor:
            for rule in ("never", "auto"):
                for way, find in _finders(index, executor, rule).items():
                    found = [(find(question), set(question.answers)) for question in questions]
                    hits = sum(bool(answers & wanted) for (answers, _), wanted in found)
                    exact = sum(answers == wanted for (answers, _), wanted in found)
                    widened = sum(again for (_, again), _ in found)
                    n = len(found)
                    cells = [name, n, rule, way, interval(hits, n), interval(exact, n), f"{widened / n:.3f}"]
                    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def _sets(limit: int) -> Iterator[tuple[str, KnowledgeGraph, list[Question]]]:
    graph = KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")
    for hops in (1, 2, 3):
        yield f"MetaQA {hops}", graph, _drawn(read_metaqa(DATA / "metaqa", hops), limit)
    for hops in (2, 3):
        graph = KnowledgeGraph.from_file(DATA / "pathquestion" / f"{hops}H-kb.txt")
        yield f"PathQuestion {hops}", graph, _drawn(read_pathquestion(DATA / "pathquestion" / f"PQ-{hops}H.txt"), limit)


def _drawn(questions: Sequence[Question], limit: int) -> list[Question]:
    return random.Random(SEED).sample(questions, min(limit, len(questions)))


def _finders(index: GraphIndex, executor: LadybugExecutor, rule: str) -> dict[str, Finder]:
    distinct: Any = "known" if rule == "never" else "auto"
    matcher = SimGRAGRetriever.from_index(index, distinct=distinct, direction="respect", max_distance=0.0)
    patterns = PatternCypherWriter(index, RunnableLambda(lambda input: waiting[input["question"]]))
    waiting: dict[str, Pattern] = {}
    cypher = CypherRetriever(index=index, writer=patterns, executor=executor, min_confidence=0.0)
    paths = RelationPathRetriever(index=index, proposer=RunnableLambda(lambda _: []), max_paths=100_000)

    def match(question: Question) -> list[Any]:
        return matcher.invoke(question.text, pattern=_pinned(question), seed_entities=list(question.seed_entities))

    def query(question: Question) -> list[Any]:
        pinned = _pinned(question)
        waiting[question.text] = replace(pinned, revisits=False) if rule == "never" else pinned
        return cypher.invoke(question.text, seed_entities=list(question.seed_entities))

    def follow(question: Question) -> list[Any]:
        row = {"relations": _steps(question)} | ({"revisits": False} if rule == "never" else {})
        return paths.invoke(question.text, relation_paths=[row], seed_entities=list(question.seed_entities))

    return {"matcher": _answers(match), "Cypher": _answers(query), "relation paths": _answers(follow)}


def _answers(ask: Callable[[Question], list[Any]]) -> Finder:
    def find(question: Question) -> tuple[set[str], bool]:
        documents = ask(question)
        answers = {key for document in documents for key in document.metadata["answers"]}
        return answers, any(document.metadata["details"].get("widened") for document in documents)

    return find


def _pinned(question: Question) -> Pattern:
    assert question.pattern is not None
    known = [node for node in question.pattern.nodes if isinstance(node, Known)]
    return question.pattern.with_nodes({node: replace(node, entity=node.text) for node in known})


def _steps(question: Question) -> list[list[str]]:
    assert question.pattern is not None
    here, steps = next(node for node in question.pattern.nodes if isinstance(node, Known)), list[list[str]]()
    at: Any = here
    for head, relation, tail in question.pattern.triples:
        assert isinstance(relation, Known)
        steps.append([relation.text, "forward" if head == at else "backward"])
        at = tail if head == at else head
    return steps


def conjunctions() -> None:
    """Print what is answered of questions that name two entities, learned from answers alone."""
    graph = KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")
    index = GraphIndex.build(graph, HashedEmbeddings())
    made = {words: _made(graph, words, arms) for words, arms in KINDS.items()}
    examples = [question for questions in made.values() for question in questions[:EXAMPLES]]
    print(f"{len(examples)} examples with answers alone, of {len(KINDS)} kinds\n")
    print("| by | n | hit | exact | mean F1 |\n|---|---|---|---|---|")
    paths = ExampleRelationPaths(index, examples)
    with LadybugExecutor.from_graph(graph) as executor:
        writer = TemplateCypherWriter(index, examples)
        cypher = CypherRetriever(index=index, writer=writer, executor=executor, min_confidence=0.0)
        for name, retriever in {
            "Cypher": cypher,
            "relation paths": RelationPathRetriever(index=index, proposer=paths, max_paths=100_000, min_confidence=0.0),
        }.items():
            rows = [
                (_all_answers(retriever, question), set(question.answers))
                for questions in made.values()
                for question in questions[EXAMPLES:]
            ]
            n = len(rows)
            hits, exact = sum(bool(a & b) for a, b in rows), sum(a == b for a, b in rows)
            f1 = float(np.mean([2 * len(a & b) / (len(a) + len(b)) for a, b in rows]))
            print(f"| {name} | {n} | {interval(hits, n)} | {interval(exact, n)} | {f1:.3f} |", flush=True)


def _all_answers(retriever: Any, question: Question) -> set[str]:
    documents = retriever.invoke(question.text, seed_entities=list(question.seed_entities), k=10)
    best = max((document.metadata["score"] for document in documents), default=0.0)
    return {key for one in documents if one.metadata["score"] == best for key in one.metadata["answers"]}


def _made(graph: KnowledgeGraph, words: str, arms: tuple[list[str], list[str]]) -> list[Question]:
    """Make questions of a kind: an answer is drawn, and from there back to an entity on each side."""
    drawn, keys = random.Random(f"{SEED} {words}"), list(graph.entities)
    questions: dict[str, Question] = {}
    while len(questions) < EXAMPLES + ASKED:
        answer = drawn.choice(keys)
        topics = [_back(graph, answer, arm, drawn) for arm in arms]
        if topics[0] is None or topics[1] is None or topics[0] == topics[1]:
            continue
        answers = set.intersection(*(_ends(graph, topic, arm) for topic, arm in zip(topics, arms, strict=True)))
        text = words.format(*(str(topic) for topic in topics))
        if len(answers) <= 50:
            questions[text] = Question(text, seed_entities=tuple(map(str, topics)), answers=tuple(sorted(answers)))
    return list(questions.values())


def _ends(graph: KnowledgeGraph, start: str | None, arm: Sequence[str]) -> set[str]:
    here = {str(start)}
    for step in arm:
        here = {there for key in here for there in _step(graph, key, step)} - {str(start)}
    return here


def _back(graph: KnowledgeGraph, answer: str, arm: Sequence[str], drawn: random.Random) -> str | None:
    here = answer
    for step in reversed(arm):
        there = sorted(_step(graph, here, {"<": ">", ">": "<"}[step[0]] + step[1:]))
        if not there:
            return None
        here = drawn.choice(there)
    return here if here != answer else None


def _step(graph: KnowledgeGraph, key: str, step: str) -> list[str]:
    if step[0] == ">":
        return [fact.tail for fact in graph.triples(head=key, relation=step[1:])]
    return [fact.head for fact in graph.triples(relation=step[1:], tail=key)]


def interval(right: int, count: int) -> str:
    """Return a share and its 95 % Wilson interval."""
    return "{:.3f} [{:.3f}, {:.3f}]".format(right / count, *wilson_interval(right, count))


if __name__ == "__main__":
    main()
