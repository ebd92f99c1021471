"""Chooses the weights of `KGRetriever`, and says how many answers it finds for a budget of tokens.

    OMP_NUM_THREADS=1 python -m benchmarks.fact_ranker [--write] [--graphs dev] [--examples] [--model]

Looks for the weights with the highest answer recall at 50, 150 and 500 tokens (150 counts twice) on the questions of
`benchmarks/own_graphs/fit`, one weight after the other, then scales them to probabilities. No language model, no
examples, entities found in the question. Answer recall: the share of the answers that are an end of a shown fact, or an
answer of a sure reading without facts, in the mean over the questions. `--write` stores the weights in the package,
`--model` chooses the weight of trained models alone: those of SubgraphRAG that learn from 300 questions that each graph
writes about itself. `--graphs` measures on other graphs what the package has then, `--examples` with the 15 examples of
each graph, `--model` with its trained model.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

import kg_retrievers.methods.kg.ranking
from kg_retrievers import GraphIndex, KGRetriever, KnowledgeGraph, Question, default_embeddings, generate_questions
from kg_retrievers.algorithms.logistic import LogisticPrior, fit_logistic
from kg_retrievers.datasets import read_questions
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import approximate_tokens, triple_lines
from kg_retrievers.methods.kg.ranking import FEATURES
from kg_retrievers.methods.subgraph_rag.model import TripleScorer
from kg_retrievers.methods.subgraph_rag.training import train_triple_scorer

FOLDER = Path(__file__).parent / "own_graphs"
WEIGHTS = Path(kg_retrievers.methods.kg.ranking.__file__).with_name("weights.json")
BUDGETS = (50, 150, 500, 1500)
#: How much the recall at each budget counts.
COUNTS = np.array([1, 2, 1, 0])
#: Where the search begins, and its first steps: readings in their order, then what is near.
START = {"reading 1": 8, "reading 2": 7, "reading 3": 6, "reading 4": 5, "relation": 1, "text": 1}
STEPS = {"answer": 0.5, "log facts": 0.5, "model": 0.0, "one hop": 0.3, "two hops": 0.3, "relation": 0.7, "text": 0.7}
ROUNDS, SHORTER = 4, 0.6
#: The weights of trained models that are tried, and on how many graphs, since training takes a minute for each.
MODEL_GRAPHS = 12
MODEL_WEIGHTS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3)


class Asked(NamedTuple):
    """A question: the features and tokens of the candidates, and for each answer the candidates that hold it."""

    features: Array
    tokens: Array
    holders: list[Array]


def graphs(folder: Path) -> Iterator[tuple[GraphIndex, list[Question], Path]]:
    """Yield each graph of a folder with its questions that have answers, and its folder."""
    for home in sorted(folder.iterdir()):
        entities = home / "entities.tsv"
        names = {"entities": entities} if entities.exists() else {}
        graph = KnowledgeGraph.from_file(next(home.glob("graph.*")), **names)
        questions = [one for one in read_questions(home / "questions.jsonl") if one.answers]
        yield GraphIndex.build(graph, default_embeddings()), questions, home


def trained(index: GraphIndex) -> TripleScorer:
    """Return a model that learned from the questions that a graph writes about itself."""
    return train_triple_scorer(index, generate_questions(index.graph, 300)).model


def asked(*, with_model: bool) -> list[Asked]:
    """Return the questions to choose on."""
    rows = []
    for index, questions, _ in islice(graphs(FOLDER / "fit"), MODEL_GRAPHS if with_model else None):
        retriever = KGRetriever.from_index(index, model=trained(index) if with_model else None)
        graph = index.graph
        for question in questions:
            candidates = retriever.candidates(question.text)
            lines = triple_lines([graph.triple(id) for id in candidates.ids.tolist()], graph.label)
            heads, _, tails = graph.edges[candidates.ids].T
            answers = (graph.entities.find(key) for key in question.answers)
            holders = [np.flatnonzero((heads == answer) | (tails == answer)) for answer in answers]
            tokens = np.array([approximate_tokens(f"{line}\n") for line in lines], float)
            rows.append(Asked(candidates.features, tokens, holders))
    return rows


def recall(rows: Sequence[Asked], weights: Array) -> Array:
    """Return the answer recall at each budget, (budgets)."""
    found = []
    for row in rows:
        order = np.argsort(-(row.features @ weights), kind="stable")
        spent = np.empty(len(order))
        spent[order] = np.cumsum(row.tokens[order])
        firsts = np.array([spent[holders].min(initial=np.inf) for holders in row.holders])
        found.append([(firsts <= budget).mean() for budget in BUDGETS])
    return np.array(found).mean(axis=0)


def chosen(rows: Sequence[Asked]) -> Array:
    """Return the weights that find the most answers."""
    weights = np.array([START.get(name, 0.0) for name in FEATURES], float)
    steps = np.array([STEPS.get(name, 1.0) for name in FEATURES])
    best = recall(rows, weights)
    for _ in range(ROUNDS):
        for at in np.flatnonzero(steps):
            for step in (steps[at], -steps[at]):
                tried = weights.copy()
                tried[at] += step
                found = recall(rows, tried)
                if found @ COUNTS > best @ COUNTS + 1e-5:
                    weights, best = tried, found
                    break
        steps *= SHORTER
    return weights


def with_chosen_model(rows: Sequence[Asked], stored: dict[str, float]) -> dict[str, float]:
    """Return the weights with the weight of trained models that finds the most answers; the greatest of equal ones."""
    tried = []
    for weight in MODEL_WEIGHTS:
        weights = {**stored, "model": weight}
        found = recall(rows, np.array([weights[name] for name in FEATURES]))
        print(weight, dict(zip(BUDGETS, found.round(3).tolist(), strict=True)))
        tried.append((round(float(found.round(3) @ COUNTS), 3), weight, weights))
    return max(tried, key=lambda one: one[:2])[2]


def scaled(rows: Sequence[Asked], weights: Array) -> Array:
    """Return the bias and the weights that make probabilities of the scores."""
    scores = np.concatenate([row.features @ weights for row in rows])
    rights = np.concatenate([np.isin(np.arange(len(row.tokens)), np.concatenate(row.holders)) for row in rows])
    pairs = np.stack([np.ones(len(scores)), scores], axis=1)
    bias, scale = fit_logistic(pairs, rights.astype(float), LogisticPrior([0, 1], [100, 100]))
    return np.concatenate([[bias], scale * weights])


def measured(folder: Path, *, with_examples: bool, with_model: bool) -> Array:
    """Return the answer recall of the retriever at each budget, (budgets)."""
    found = []
    for index, questions, home in graphs(folder):
        examples = read_questions(home / "examples.jsonl") if with_examples else None
        model = trained(index) if with_model else None
        retriever = KGRetriever.from_index(index, examples=examples, model=model)
        bounded = [retriever.with_fields({"max_tokens": budget}) for budget in BUDGETS]
        found += [[_recall(one, question) for one in bounded] for question in questions]
    return np.array(found).mean(axis=0)


def _recall(retriever: KGRetriever, question: Question) -> float:
    shown = set[str]()
    for document in retriever.invoke(question.text):
        facts, answers = document.metadata["triples"], document.metadata["answers"]
        shown |= {end for head, _, tail in facts for end in (head, tail)} | set(answers if not facts else ())
    return len(shown & set(question.answers)) / len(set(question.answers))


def main() -> None:
    """Choose and print, or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", choices=["dev", "test", "kept"], help="measure on these, and choose nothing")
    parser.add_argument("--write", action="store_true", help="store the weights in the package")
    parser.add_argument("--examples", action="store_true", help="give the retriever the examples of each graph")
    parser.add_argument("--model", action="store_true", help="give the retriever a model trained on each graph")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    if options.graphs:
        found = measured(FOLDER / options.graphs, with_examples=options.examples, with_model=options.model)
        print(options.graphs, dict(zip(BUDGETS, found.round(3).tolist(), strict=True)))
        return
    rows, stored = asked(with_model=options.model), json.loads(WEIGHTS.read_text())
    if options.model:
        stored = with_chosen_model(rows, stored)
    else:
        weights = chosen(rows)
        print("fit", dict(zip(BUDGETS, recall(rows, weights).round(3).tolist(), strict=True)))
        chosen_ones = dict(zip(("bias", *FEATURES), scaled(rows, weights).round(3).tolist(), strict=True))
        stored = chosen_ones | {"model": stored["model"]}
    print(json.dumps(stored))
    if options.write:
        WEIGHTS.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
