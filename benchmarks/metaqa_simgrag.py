"""SimGRAG on MetaQA and PathQuestion without a language model: gold patterns, examples, linked patterns.

    python benchmarks/metaqa_simgrag.py [--sections gold examples ...] [--embeddings static hashed minilm] [--limit N]

Data: the folder named in KG_RETRIEVERS_DATA (default ../shared/data). Every figure comes with the number of questions
and, where it is a sample, a 95 % bootstrap interval. `hit`: a gold answer is among the answers of the top group;
`hits@1`: the share of gold in that group; `exact`: the group is the gold answer set.
"""

from __future__ import annotations

import argparse
import copy
import os
import random
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from question_splits import EMBEDDINGS, embeddings_of

from kg_retrievers import (
    GraphIndex,
    KnowledgeGraph,
    Question,
    SimGRAGRetriever,
)
from kg_retrievers.datasets import read_metaqa, read_pathquestion
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.methods.simgrag.matching import match_pattern
from kg_retrievers.questions.examples import ExamplePatternGenerator
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEED = 20261120
HOPS = (1, 2, 3)


def main() -> None:
    """Run the sections asked for and print Markdown tables."""
    sections = {
        "gold": gold,
        "speed": speed,
        "examples": examples,
        "paraphrases": paraphrases,
        "linked": linked,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--embeddings", nargs="+", choices=EMBEDDINGS, default=["hashed", "minilm"])
    parser.add_argument("--limit", type=int, help="use only this many questions of each set, drawn with a fixed seed")
    parser.add_argument("--cache", type=Path, help="a file that keeps embeddings over several runs")
    arguments = parser.parse_args()
    graph = KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")
    print(f"MetaQA: {graph}\n")
    for name in sections:
        if name not in arguments.sections:
            continue
        for kind in arguments.embeddings if name not in ("gold", "speed") else ["hashed"]:
            began = time.process_time()
            sections[name](Setting(graph, kind, arguments.limit, arguments.cache))
            print(f"({name}, {kind}: {time.process_time() - began:.0f} s of CPU)\n", flush=True)


class Setting:
    """A graph, its index, and what to read."""

    def __init__(self, graph: KnowledgeGraph, kind: str, limit: int | None, cache: Path | None) -> None:
        """Build the index."""
        self.kind, self.limit, self.cache = kind, limit, cache
        self.index = self.build(graph)

    def build(self, graph: KnowledgeGraph) -> GraphIndex:
        """Index a graph with the embeddings of this setting."""
        embeddings = embeddings_of(self.kind)
        return GraphIndex.build(graph, embeddings, cache=self.cache)

    def drawn(self, questions: Sequence[Question]) -> list[Question]:
        """Return the questions, or as many as the limit says, drawn with a fixed seed."""
        if self.limit is None or len(questions) <= self.limit:
            return list(questions)
        return random.Random(SEED).sample(questions, self.limit)


def split(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Split 80 / 20 by question, with a fixed seed."""
    shuffled = list(questions)
    random.Random(SEED).shuffle(shuffled)
    cut = len(shuffled) * 4 // 5
    return shuffled[:cut], shuffled[cut:]


def prefetched(index: GraphIndex, texts: Iterable[str], k: int) -> GraphIndex:
    """Return the index with the candidates of some texts looked up at once, which is faster and gives the same."""
    wanted = sorted(set(texts))
    found: dict[str, Any] = {}
    for start in range(0, len(wanted), 256):
        part = wanted[start : start + 256]
        found |= zip(part, index.nearest_entities(part, k), strict=True)
    fast = copy.copy(index)
    search = index.nearest_entities
    fast.nearest_entities = lambda asked, k_: (  # type: ignore[method-assign]
        [found[text] for text in asked] if k_ == k and all(text in found for text in asked) else search(asked, k_)
    )
    return fast


def score(answers: Sequence[Sequence[str]], questions: Sequence[Question]) -> dict[str, str]:
    """Return hit, hits@1 and exact as percentages with a 95 % bootstrap interval of `hit`."""
    hit, share, exact = [], [], []
    for got, question in zip(answers, questions, strict=True):
        right = len(set(got) & set(question.answers))
        hit.append(right > 0)
        share.append(right / len(got) if got else 0.0)
        exact.append(set(got) == set(question.answers))
    drawn = np.random.default_rng(SEED).choice(np.array(hit, float), (1000, len(hit))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {
        "n": str(len(hit)),
        "hit": f"{np.mean(hit):.4f} [{low:.4f}, {high:.4f}]",
        "hits@1": f"{np.mean(share):.4f}",
        "exact": f"{np.mean(exact):.4f}",
    }


def table(title: str, rows: list[dict[str, str]]) -> None:
    """Print a Markdown table."""
    print(f"### {title}\n")
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row.values()) + " |")
    print()


def answer(retriever: SimGRAGRetriever, questions: Sequence[Question], topic_given: bool) -> list[list[str]]:
    """Ask every question; no answer where nothing is found."""
    answers = []
    for question in questions:
        seeds = {"seed_entities": list(question.seed_entities)} if topic_given else {}
        try:
            documents = retriever.invoke(question.text, **seeds)
        except KGRetrieversError:
            documents = []
        answers.append(documents[0].metadata["answers"] if documents else [])
    return answers


def gold(setting: Setting) -> None:
    """Gold patterns, 16 candidates, k = 1 merged: the matcher's semantics against the published answers."""
    rows = []
    for hop in HOPS:
        questions = setting.drawn(read_metaqa(DATA / "metaqa", hop))
        index = prefetched(setting.index, (question.seed_entities[0] for question in questions), 16)
        for distinct in ("known", "nodes", "none"):
            for direction in ("respect", "ignore"):
                retriever = SimGRAGRetriever.from_index(index, distinct=distinct, direction=direction)
                answers = []
                for question in questions:
                    assert question.pattern is not None
                    evidence = retriever.match(question.pattern, 1)
                    answers.append(list(evidence[0].answers) if evidence else [])
                rows.append({"hop": str(hop), "distinct": distinct, "direction": direction} | score(answers, questions))
    table("Gold patterns, topic by its name among 16 candidates (MetaQA dev)", rows)


def speed(setting: Setting) -> None:
    """CPU time of one search: gold patterns, 16 candidates, k = 1 merged, from candidates to bindings."""
    rows = []
    for hop in HOPS:
        questions = setting.drawn(read_metaqa(DATA / "metaqa", hop))
        index = prefetched(setting.index, (question.seed_entities[0] for question in questions), 16)
        retriever = SimGRAGRetriever.from_index(index)
        graph, times = index.graph, []
        queries = [retriever.query(question.pattern) for question in questions if question.pattern]
        match_pattern(graph.adjacency, len(graph.relations), queries[0])  # loads what was compiled
        for query in queries:
            began = time.thread_time()
            match_pattern(graph.adjacency, len(graph.relations), query)
            times.append(1000 * (time.thread_time() - began))
        median, high, worst = np.quantile(times, [0.5, 0.99, 1.0])
        rows.append(
            {
                "hop": str(hop),
                "n": str(len(times)),
                "median ms": f"{median:.3f}",
                "99 % ms": f"{high:.3f}",
                "worst ms": f"{worst:.2f}",
            }
        )
    table("Search time, gold patterns, merged (CPU, this machine, shared)", rows)


def examples(setting: Setting) -> None:
    """Examples from 80 % of dev, all hops together; measured on the other 20 %."""
    parts = {hop: split(read_metaqa(DATA / "metaqa", hop)) for hop in HOPS}
    known = [question for train, _ in parts.values() for question in train]
    generator = ExamplePatternGenerator(setting.index, known)
    rows = []
    for hop, (_, test) in parts.items():
        questions = setting.drawn(test)
        for given in (True, False):
            retriever = SimGRAGRetriever.from_index(setting.index, pattern_generator=generator)
            found = score(answer(retriever, questions, given), questions)
            rows.append({"hop": str(hop), "topic": "given" if given else "not given"} | found)
    table(f"Examples from 80 % of dev, measured on 20 %, no LLM ({setting.kind})", rows)


def paraphrases(setting: Setting) -> None:
    """Examples from the plain 1-hop questions only; measured on their published paraphrases."""
    plain = read_metaqa(DATA / "metaqa", 1)
    questions = setting.drawn(read_metaqa(DATA / "metaqa", 1, paraphrases=True))
    generator = ExamplePatternGenerator(setting.index, plain)
    rows = []
    for given in (True, False):
        retriever = SimGRAGRetriever.from_index(setting.index, pattern_generator=generator)
        found = score(answer(retriever, questions, given), questions)
        rows.append({"topic": "given" if given else "not given"} | found)
    table(f"Examples from the plain questions, measured on the paraphrases, no LLM ({setting.kind})", rows)


def linked(setting: Setting) -> None:
    """No LLM, no examples."""
    sets: list[tuple[str, GraphIndex, list[Question]]] = [
        (f"MetaQA {hop}-hop", setting.index, read_metaqa(DATA / "metaqa", hop)) for hop in HOPS
    ]
    for hop in (2, 3):
        folder = DATA / "pathquestion"
        index = setting.build(KnowledgeGraph.from_file(folder / f"{hop}H-kb.txt"))
        sets.append((f"PathQuestion {hop}-hop", index, read_pathquestion(folder / f"PQ-{hop}H.txt")))
    rows = []
    for name, index, all_questions in sets:
        questions = setting.drawn(all_questions)
        retriever = SimGRAGRetriever.from_index(index, pattern_generator=ZeroShotPatternGenerator(index))
        for given in (True, False):
            found = score(answer(retriever, questions, given), questions)
            rows.append({"set": name, "topic": "given" if given else "not given"} | found)
    table(f"Zero-shot patterns: no LLM, no examples ({setting.kind})", rows)


if __name__ == "__main__":
    main()
