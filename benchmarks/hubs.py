"""CPU time of methods that look around the entities of a question: from the greatest hubs, and from random entities.

    python -m benchmarks.hubs GRAPH [--seeds 20] [--methods neighborhood pcst ...]      # GRAPH: a folder or a .tsv file

Each method is called through its retriever with the entity given, so that nothing is linked. Names all have the same
vector and relations random ones; the weights of the models are random: neither an index of names nor a training is
needed, and the work is that of real ones. The first call of a method, which compiles, is not timed; every hub and every
random entity is then asked for once. One thread, CPU time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, NeighborhoodRetriever, PCSTRetriever
from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.index import MASK
from kg_retrievers.index.exact_search import ExactSearch
from kg_retrievers.methods.gnn_rag.model import GraphReasoner, GraphReasonerConfig
from kg_retrievers.methods.gnn_rag.retriever import GNNRAGRetriever
from kg_retrievers.methods.kaping.retriever import TripleSimilarityRetriever
from kg_retrievers.methods.subgraph_rag.model import TripleScorer, TripleScorerConfig
from kg_retrievers.methods.subgraph_rag.retriever import SubgraphRAGRetriever

SEED = 20261123

#: The length of vectors; the default embeddings have 512.
DIMENSION = 256

#: The question, which holds the name of the entity: so that no other name is looked for.
QUESTION = "Who keeps the harbor of {name}?"

#: How many relations PCST is told of, the most similar first.
RANKED_RELATIONS = 100

#: The seeds and limits of all methods: as by default.
MAX_HOPS, MAX_NODES = 3, 2_000

#: Asks a method about an entity.
Ask = Callable[[int], object]


class Timing(NamedTuple):
    """How long a method takes.

    Attributes:
        method: Its name.
        around: "hubs" or "random".
        degrees: The least and the greatest degree of the entities that were asked for.
        median: CPU ms.
        worst: CPU ms.
    """

    method: str
    around: str
    degrees: tuple[int, int]
    median: float
    worst: float


def index_without_names(graph: KnowledgeGraph) -> GraphIndex:
    """Return an index in which all names have one vector, so that it is there at once and takes no memory."""
    draw = np.random.default_rng(SEED)
    embeddings = HashedEmbeddings(dimension=DIMENSION)
    name = draw.normal(size=DIMENSION).astype(np.float32)
    names = np.broadcast_to(name / np.linalg.norm(name), (len(graph.names), DIMENSION))
    relations = draw.normal(size=(len(graph.relations), DIMENSION)).astype(np.float32)
    relations /= np.linalg.norm(relations, axis=1, keepdims=True)
    none = np.empty((0, DIMENSION), np.float32)
    searches = {"names": ExactSearch(names), "relations": ExactSearch(relations), "types": ExactSearch(none)}
    return GraphIndex(graph, embeddings, DIMENSION, searches)


def methods(graph: KnowledgeGraph) -> dict[str, Ask]:
    """Return what asks each method about an entity."""
    index = index_without_names(graph)
    ranked = [[name, 1 - rank / 200] for rank, name in enumerate(graph.relations[:RANKED_RELATIONS])]
    given: dict[str, Any] = {"max_hops": MAX_HOPS, "max_nodes": MAX_NODES}
    pcst = PCSTRetriever.from_index(index, **given)
    scorer = _untrained(TripleScorer, TripleScorerConfig(dimension=DIMENSION), index)
    subgraph_rag = SubgraphRAGRetriever.from_index(index, model=scorer, **given)
    reasoner = _untrained(GraphReasoner, GraphReasonerConfig(dimension=DIMENSION), index)
    gnn_rag = GNNRAGRetriever.from_index(index, model=reasoner, **given)
    nearest, similar = NeighborhoodRetriever.from_index(index), TripleSimilarityRetriever.from_index(index)

    def ask(retriever: Any, **more: Any) -> Ask:
        def invoke(entity: int) -> object:
            key = graph.entities[entity]
            return retriever.invoke(QUESTION.format(name=graph.label(key)), seed_entities=[key], **more)

        return invoke

    return {
        "neighborhood": lambda entity: neighborhood(graph.adjacency, [entity], **given),
        "neighborhood, 1 hop": ask(nearest),
        "pcst": ask(pcst, ranked_entities=[], ranked_relations=ranked),
        "subgraph-rag": ask(subgraph_rag, masked_question=QUESTION.format(name=MASK)),
        "gnn-rag": ask(gnn_rag, masked_question=QUESTION.format(name=MASK)),
        "triple-similarity": ask(similar),
    }


def _untrained(kind: Callable[..., Any], config: Any, index: GraphIndex) -> Any:
    """Return a model with random weights."""
    draw = np.random.default_rng(SEED)
    weights = {
        name: (draw.normal(size=shape) / np.sqrt(max(shape[-2:], default=1))).astype(np.float32)
        for name, shape in config.shapes.items()
    }
    return kind(config, weights, probe=index.embed([PROBE])[0], embeddings="hashed")


def time_methods(graph: KnowledgeGraph, seeds: int, names: list[str] | None = None) -> Iterator[Timing]:
    """Time each method from the entities of the highest degrees and from as many random ones with facts."""
    degrees = np.diff(graph.adjacency.indptr)
    hubs = np.argsort(-degrees, kind="stable")[:seeds]
    others = np.random.default_rng(SEED).choice(np.flatnonzero(degrees), seeds, replace=False)
    for name, ask in methods(graph).items():
        if names and name not in names:
            continue
        ask(int(others[0]))
        ask(int(hubs[-1]))
        for around, entities in (("hubs", hubs), ("random", others)):
            times = [_timed(ask, entity) for entity in entities.tolist()]
            some = degrees[entities]
            yield Timing(name, around, (int(some.min()), int(some.max())), median(times), max(times))


def _timed(ask: Ask, entity: int) -> float:
    start = time.process_time()
    ask(entity)
    return 1000 * (time.process_time() - start)


def _opened(path: Path) -> KnowledgeGraph:
    return KnowledgeGraph.open(path) if path.is_dir() else KnowledgeGraph.from_file(path, header=False)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--methods", nargs="+")
    arguments = parser.parse_args()
    graph = _opened(arguments.graph)
    print(f"{graph!r}\n\n| method | from | degree | median ms | worst ms |\n|---|---|---|---|---|")
    for row in time_methods(graph, arguments.seeds, arguments.methods):
        degrees = "{:,} to {:,}".format(*row.degrees)
        print(f"| {row.method} | {row.around} | {degrees} | {row.median:.1f} | {row.worst:.1f} |", flush=True)


if __name__ == "__main__":
    main()
