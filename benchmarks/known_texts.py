"""How far a text of a pattern may be from a name or a relation of the graph and still mean it.

Chooses the constants of `kg_retrievers/questions/carried_out.py`. Names are those of MetaQA and of the graphs of
`benchmarks/operation_questions`, each looked for without it and with one wrong letter; the texts for relations stand in
`relation_words.json` beside these graphs, written for this.

    python -m benchmarks.known_texts [--embeddings default|hashed]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np
from langchain_core.embeddings import Embeddings

from benchmarks.operations import GRAPHS, QUESTIONS, load_named_graph
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, default_embeddings
from kg_retrievers.graph.values import read_value
from kg_retrievers.index.misspelt_names import FUZZY_SHARE
from kg_retrievers.index.names import likeness

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))

#: How many names of a graph are looked for.
NAMES = 500

#: A distance within which a relation is meant, one within which it is if it is nearer than others, and by how much.
RULES = [(d, d, 0.0) for d in (0.9, 0.95, 1.0, 1.1, 1.2)] + [(0.9, d, m) for d in (1.0, 1.1, 1.2) for m in (0.1, 0.2)]


def main() -> None:
    """Print a table for names and one for relations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embeddings", choices=["default", "hashed"], default="default")
    embeddings = default_embeddings() if parser.parse_args().embeddings == "default" else HashedEmbeddings()
    graphs = {name: load_named_graph(name) for name in GRAPHS}
    print("| graph | names | another name within .9 | with so many letters | misspelt: right | wrong |\n|" + "---|" * 6)
    for name, graph in (graphs | {"metaqa": KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")}).items():
        shares = " | ".join(f"{share:.2f}" for share in name_shares(GraphIndex.build(graph, embeddings)))
        print(f"| {name} | {min(NAMES, len(graph.names))} | {shares} |")
    present, absent = relation_distances(graphs, embeddings)
    print(f"\n{len(present)} texts for relations, {len(absent)} for absent ones\n")
    print("| within | or within | nearer by | right | wrong | absent |\n|" + "---|" * 6)
    for near, far, margin in RULES:
        passes = [[d <= near or (d <= far and m >= margin) for d, m, _ in rows] for rows in (present, absent)]
        right = [passed and is_right for passed, (*_, is_right) in zip(passes[0], present, strict=True)]
        shares = f"{np.mean(right):.2f} | {np.mean(passes[0]) - np.mean(right):.2f} | {np.mean(passes[1]):.2f}"
        print(f"| {near} | {far} | {margin} | {shares} |")


def name_shares(index: GraphIndex) -> Iterator[float]:
    """Yield the shares of names that pass: another one by distance and by letters; misspelt ones right and wrong."""
    graph, choose = index.graph, Random(2)
    names = [name for name in graph.names if read_value(name) is None and len(name) > 3]
    names = choose.sample(names, NAMES) if len(names) > NAMES else names
    by_distance, by_letters = [], []
    for name, found in zip(names, index.nearest_entities(names, 8), strict=True):
        labels = [graph.label(graph.entities[entity]) for entity in found.ids.tolist()]
        own = {graph.label(key) for key in graph.entities_named(name)}
        at = next(at for at, label in enumerate(labels) if label.casefold() != name.casefold() and label not in own)
        by_distance.append(found.distances[at] <= 0.9)
        by_letters.append(likeness(name, labels[at], FUZZY_SHARE) > 0)
    misspelt = [misspell(name, choose) for name in names]
    right, wrong = [], []
    for name, text, found in zip(names, misspelt, index.nearest_entities(misspelt, 1), strict=True):
        keys = {graph.entities[entity] for entity in found.ids.tolist()}
        passed = any(
            likeness(text, one, FUZZY_SHARE) > 0 for key in keys for one in (graph.label(key), *graph.aliases(key))
        )
        is_right = not keys.isdisjoint(graph.entities_named(name))
        right.append(passed and is_right)
        wrong.append(passed and not is_right)
    yield from (float(np.mean(column)) for column in (by_distance, by_letters, right, wrong))


def misspell(name: str, choose: Random) -> str:
    """Return a name with a letter left out, in excess, or wrong."""
    at, letter = choose.randrange(len(name)), chr(ord("a") + choose.randrange(26))
    return name[:at] + choose.choice(["", letter, letter + name[at]]) + name[at + 1 :]


def relation_distances(
    graphs: dict[str, KnowledgeGraph], embeddings: Embeddings
) -> tuple[list[tuple[float, float, bool]], list[tuple[float, float, bool]]]:
    """Return of each text the distance of the nearest relation, that beyond it, and whether it is meant."""
    words = json.loads((QUESTIONS / "relation_words.json").read_text("utf-8"))
    present, absent = [], []
    for name, graph in graphs.items():
        index = GraphIndex.build(graph, embeddings)
        for relation, texts in words[name]["present"].items():
            present += list(nearest_relation(index, texts, relation))
        absent += list(nearest_relation(index, words[name]["absent"], ""))
    return present, absent


def nearest_relation(index: GraphIndex, texts: Sequence[str], wanted: str) -> Iterator[tuple[float, float, bool]]:
    """Yield the distance of the nearest relation, by how much the next is farther, and whether it is the wanted one."""
    for found in index.nearest_relations(texts, 2):
        nearest, beyond = found.distances.tolist()
        yield nearest, beyond - nearest, index.graph.relations[int(found.ids[0])] == wanted


if __name__ == "__main__":
    main()
