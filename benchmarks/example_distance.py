"""The distance up to which a labelled example is taken, and how likely its pattern is right at each distance.

Chooses `EXAMPLE_DISTANCE` (`kg_retrievers/questions/reader.py`) and the constants of `confidence_at`
(`kg_retrievers/questions/examples.py`) on graphs that nothing is reported on: a Freebase sample (WebQSP's), UMLS,
Countries, and graphs made of Wikidata's properties, in which examples and questions call a property by different
aliases. Questions are those that `generate_questions` writes. A pattern is right if its answers are all of the
question's, and no others.

    python benchmarks/example_distance.py [--embeddings default|hashed] [--rounds 4]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Question,
    SimGRAGRetriever,
)
from kg_retrievers.core.stages import MIN_CONFIDENCE
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import Known, Pattern, Triple
from kg_retrievers.index import default_embeddings, linker_of, question_entities
from kg_retrievers.questions.examples import ExamplePatternGenerator, confidence_at
from kg_retrievers.questions.reader import EXAMPLE_DISTANCE
from kg_retrievers.questions.self_questions.generate import generate_questions
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))

#: How many examples a user has, and how many questions are asked in each round.
EXAMPLES, ASKED = (15, 100), 80

#: The size of a graph of Wikidata's properties: properties, kinds of entities, entities of a kind, facts of a property.
PROPERTIES, KINDS, ENTITIES, FACTS = 25, 6, 40, 80

DISTANCES = np.arange(0.0, 1.45, 0.05)


class Asked(NamedTuple):
    """A question, and what became of it: by the nearest example, at a distance, and zero-shot, with a confidence."""

    graph: str
    examples: int
    distance: float
    example_right: bool
    confidence: float
    zero_shot_right: bool
    agree: bool


def main() -> None:
    """Ask, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embeddings", choices=("default", "hashed"), default="default")
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    embeddings: dict[str, Callable[[], Embeddings]] = {"default": default_embeddings, "hashed": HashedEmbeddings}
    made = embeddings[arguments.embeddings]()
    rows: list[Asked] = []
    for seed in range(arguments.rounds):
        for name, graph, pools in graphs(seed):
            index = GraphIndex.build(graph, made)
            rows += ask(name, index, pools, seed)
    print(f"{len(rows)} questions, {arguments.embeddings} embeddings\n")
    show_distances(rows)
    show_choices(rows)
    show_fit(rows)
    show_cascade(rows)


# --- graphs and questions ---------------------------------------------------------------------------------------------


def graphs(seed: int) -> Iterator[tuple[str, KnowledgeGraph, tuple[list[Question], list[Question]]]]:
    """Yield graphs by name, each with questions for examples and others to ask."""
    sample = json.loads((DATA / "freebase_sample" / "webqsp_gpt_triples.json").read_text(encoding="utf-8"))
    freebase = {tuple(triple) for triples in sample.values() for triple in triples}
    named = [Triple(*triple) for triple in sorted(freebase) if not any(end.startswith("m.") for end in triple[::2])]
    plain = {"Freebase": named}
    for name in ("umls", "countries"):
        lines = (DATA / "small" / name / "train.txt").read_text(encoding="utf-8").splitlines()
        plain[name] = [Triple(*(part.replace("_", " ") for part in line.split("\t"))) for line in lines]
    for name, triples in plain.items():
        graph = KnowledgeGraph.from_triples(triples)
        yield name, graph, (written(graph, max(EXAMPLES), 2 * seed), written(graph, ASKED, 2 * seed + 1))
    yield "Wikidata's properties", *of_properties(seed)


def written(graph: KnowledgeGraph, count: int, seed: int) -> list[Question]:
    """Return questions in random order."""
    questions = generate_questions(graph, count, seed=seed)
    Random(seed).shuffle(questions)
    return questions


def of_properties(seed: int) -> tuple[KnowledgeGraph, tuple[list[Question], list[Question]]]:
    """Make a graph of Wikidata's properties, and questions that call a property by any of its names."""
    random = Random(seed)
    lines = (DATA / "relation_language" / "wikidata_properties.jsonl").read_text(encoding="utf-8").splitlines()
    known = [row for row in map(json.loads, lines) if row["type"] == "WikibaseItem" and len(row["aliases"]) > 3]
    properties = random.sample(known, PROPERTIES)
    words = [f"{a}{b}{c}" for a in ("Ba", "Do", "Ke", "Li", "Mu", "Ra", "Si") for b in ("lo", "mi", "ra", "ne", "tu")
             for c in ("da", "nik", "sel", "vor", "wen", "xa", "zek")]  # fmt: skip
    kinds = [words[kind * ENTITIES : (kind + 1) * ENTITIES] for kind in range(KINDS)]
    facts = []
    for row in properties:
        heads, tails = random.choice(kinds), random.choice(kinds)
        facts += [Triple(random.choice(heads), row["label"], random.choice(tails)) for _ in range(FACTS)]
    pools = []
    for part in range(2):
        called = {row["label"]: random.choice([row["label"], *row["aliases"]]) for row in properties}
        labels = {name: label for label, name in called.items()}
        graph = KnowledgeGraph.from_triples([fact._replace(relation=called[fact.relation]) for fact in facts])
        questions = written(graph, ASKED if part else max(EXAMPLES), 2 * seed + part)
        pools.append([replace(one, pattern=renamed(one.pattern, labels)) for one in questions])
    return KnowledgeGraph.from_triples(facts), (pools[0], pools[1])


def renamed(pattern: Pattern | None, labels: dict[str, str]) -> Pattern | None:
    """Call the relations of a pattern by their labels."""
    if pattern is None:
        return None
    triples = tuple(
        triple._replace(relation=Known(labels[triple.relation.text])) if isinstance(triple.relation, Known) else triple
        for triple in pattern.triples
    )
    return replace(pattern, triples=triples)


def ask(name: str, index: GraphIndex, pools: tuple[list[Question], list[Question]], seed: int) -> Iterator[Asked]:
    """Ask the questions by the nearest of few and of many examples, and zero-shot."""
    retriever = SimGRAGRetriever.from_index(index, on_refusal="empty", min_confidence=0.0)
    zero_shot, linker = ZeroShotPatternGenerator(index), linker_of(index)
    generators = {count: ExamplePatternGenerator(index, pools[0][:count]) for count in EXAMPLES}
    for question in pools[1]:
        if question.pattern is None or not is_right(retriever, question, question.pattern):
            continue  # the matcher takes a fact either way, or leaves out what the question names
        try:
            entities = question_entities(linker, question.text, question.seed_entities)
            asked = {"question": question.text, "entities": entities}
            alone = zero_shot.invoke(asked)
        except EntityLinkingError:
            continue
        alone_right = is_right(retriever, question, alone)
        for count, generator in generators.items():
            try:
                found = next(generator.nearest(asked))
            except EntityLinkingError:
                continue
            agree = answers(retriever, question, found.pattern) == answers(retriever, question, alone)
            right = found.fits and is_right(retriever, question, found.pattern)
            distance = found.distance if found.fits else float(DISTANCES[-1])
            yield Asked(name, count, distance, right, alone.confidence or 0.0, alone_right, agree)


def is_right(retriever: SimGRAGRetriever, question: Question, pattern: Pattern) -> bool:
    """Whether a pattern has the answers of a question."""
    return answers(retriever, question, pattern) == set(question.answers)


def answers(retriever: SimGRAGRetriever, question: Question, pattern: Pattern) -> set[str]:
    """Return what a pattern leads to."""
    documents = retriever.invoke(question.text, pattern=pattern, seed_entities=list(question.seed_entities))
    return set(documents[0].metadata["answers"]) if documents else set()


# --- tables -----------------------------------------------------------------------------------------------------------


def show_distances(rows: Sequence[Asked]) -> None:
    """Print how often an example is right at each distance, and the zero-shot pattern of the same questions."""
    print("| distance | n | example right | zero-shot right |\n|---|---|---|---|")
    for low in DISTANCES[::2]:
        part = [row for row in rows if low <= row.distance < low + 0.1]
        if part:
            shares = np.mean([(row.example_right, row.zero_shot_right) for row in part], axis=0)
            print(f"| {low:.1f} to {low + 0.1:.1f} | {len(part)} | {shares[0]:.2f} | {shares[1]:.2f} |")


def show_choices(rows: Sequence[Asked]) -> None:
    """Print the share of right answers where examples are taken up to each distance."""
    names = sorted({(row.graph, row.examples) for row in rows})
    print("\n| taken up to |", " | ".join(f"{name}, {count}" for name, count in names), "| mean |")
    print("|---" * (len(names) + 2) + "|")
    shares = {
        distance: [
            float(np.mean([by(row, distance) for row in rows if (row.graph, row.examples) == name])) for name in names
        ]
        for distance in (-1.0, *DISTANCES.tolist(), 3.0)
    }
    for distance, of_distance in shares.items():
        print(f"| {distance:.2f} |", *(f"{share:.3f} |" for share in of_distance), f"{np.mean(of_distance):.3f} |")
    best = max(shares, key=lambda distance: float(np.mean(shares[distance])))
    print(f"\nEXAMPLE_DISTANCE = {best:.2f}")


def by(row: Asked, distance: float) -> bool:
    """Whether the answer is right if examples are taken up to a distance."""
    return row.example_right if row.distance <= distance else row.zero_shot_right


def show_fit(rows: Sequence[Asked]) -> None:
    """Print the logistic function of the distance, and what agreement with the zero-shot pattern adds to it."""
    right = np.array([row.example_right for row in rows], float)
    for name, columns in (
        ("distance", [[1.0, row.distance] for row in rows]),
        ("distance, agreement", [[1.0, row.distance, float(row.agree)] for row in rows]),
    ):
        inputs = np.array(columns)
        weights = fitted(inputs, right)
        likely = 1 / (1 + np.exp(-inputs @ weights))
        brier = float(np.mean((likely - right) ** 2))
        found = f"Brier score {brier:.3f}, calibration error {calibration(likely, right):.3f}"
        print(f"log-odds of {name}: {np.round(weights, 2).tolist()}, {found}")


def show_cascade(rows: Sequence[Asked]) -> None:
    """Print what the constants of the package make of it, beside the zero-shot pattern alone."""
    taken = [_taken(row) for row in rows]
    for name, part in (
        ("zero-shot alone", [(row.confidence, row.zero_shot_right) for row in rows]),
        ("cascade", taken),
        ("cascade, 15 examples", [pair for pair, row in zip(taken, rows, strict=True) if row.examples == 15]),
    ):
        likely, right = np.array(part, float).T
        given = likely >= MIN_CONFIDENCE
        print(
            f"{name}: right {right.mean():.3f}, Brier score {np.mean((likely - right) ** 2):.3f}, calibration error "
            f"{calibration(likely, right):.3f}; answered {given.mean():.3f}, of these right {right[given].mean():.3f}"
        )


def _taken(row: Asked) -> tuple[float, bool]:
    """Return the confidence of what `QuestionReader` takes, and whether it is right."""
    of_example = confidence_at(row.distance) if row.distance < DISTANCES[-1] else 0.0
    if row.distance <= EXAMPLE_DISTANCE:
        return of_example, row.example_right
    if row.agree:
        return 1 - (1 - of_example) * (1 - row.confidence), row.zero_shot_right
    return max((row.confidence, row.zero_shot_right), (of_example, row.example_right))


def fitted(inputs: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the weights of a logistic regression, by Newton's method with a little shrinkage."""
    weights = np.zeros(inputs.shape[1])
    for _ in range(50):
        likely = 1 / (1 + np.exp(-inputs @ weights))
        curvature = (inputs * (likely * (1 - likely))[:, None]).T @ inputs + 0.1 * np.eye(len(weights))
        weights = weights + np.linalg.solve(curvature, inputs.T @ (right - likely) - 0.1 * weights)
    return weights


def calibration(likely: np.ndarray, right: np.ndarray) -> float:
    """Return the mean gap of stated and true shares over ten bins."""
    bins = np.minimum((likely * 10).astype(int), 9)
    gaps = [abs(float(np.mean(likely[bins == one] - right[bins == one]))) * np.mean(bins == one) for one in set(bins)]
    return float(sum(gaps))


if __name__ == "__main__":
    main()
