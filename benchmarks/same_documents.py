r"""Print a digest of all Documents of each method, to compare two versions of the package bit for bit.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/same_documents.py --models FOLDER [--limit 200]

Asks `--limit` of MetaQA's dev questions, drawn over 1 to 3 hops with seed 0, without their topic. The models of the two
trained methods are read from `--models`; where they are missing they are trained first, on 600 other questions. Run it
on both versions with the same folder: equal lines are equal Documents (content, id, metadata), in equal order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import kg_retrievers as kg
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
TRAINING_QUESTIONS = 600


def main() -> None:
    """Print a line for each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="the folder of the trained models")
    parser.add_argument("--limit", type=int, default=200, help="questions of each method")
    arguments = parser.parse_args()
    graph = kg.KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")
    index = kg.GraphIndex.build(graph, kg.HashedEmbeddings())
    questions = kg.read_question_set(DATA / "metaqa", "metaqa", split="dev")
    drawn = random.Random(0).sample(questions, arguments.limit + TRAINING_QUESTIONS)
    asked, examples = drawn[: arguments.limit], drawn[arguments.limit :]
    _train(index, examples, arguments.models)
    for name, retriever in _retrievers(index, examples, arguments.models):
        began, digest, found = time.perf_counter(), blake2b(digest_size=16), 0
        for question in asked:
            try:
                documents = retriever.invoke(question.text)
            except EntityLinkingError:
                documents = []
            found += len(documents)
            shown = [document.model_dump() for document in documents]
            digest.update(json.dumps(shown, sort_keys=True, default=str).encode())
        seconds = time.perf_counter() - began
        print(f"{name:28} {digest.hexdigest()}  {found:6,} Documents  {seconds:6.1f} s", flush=True)


def _train(index: kg.GraphIndex, examples: list[kg.Question], folder: Path) -> None:
    """Train the two models that are missing."""
    for name, train in (("subgraph-rag", kg.train_triple_scorer), ("gnn-rag", kg.train_graph_reasoner)):
        if not (folder / name).is_dir():
            train(index, examples, output=folder / name, seed=0)


def _retrievers(
    index: kg.GraphIndex, examples: list[kg.Question], models: Path
) -> Iterator[tuple[str, BaseKGRetriever]]:
    """Yield every method under the name of its class."""
    yield "SimGRAG", kg.SimGRAGRetriever.from_index(index)
    yield "SimGRAG, examples", kg.SimGRAGRetriever.from_index(index, examples=examples)
    yield "SimGRAG, ties broken, k=5", kg.SimGRAGRetriever.from_index(index, examples=examples, ties="break", k=5)
    yield "PCST", kg.PCSTRetriever.from_index(index)
    yield "TripleSimilarity", kg.TripleSimilarityRetriever.from_index(index)
    yield "SubgraphRAG", kg.SubgraphRAGRetriever.from_index(index, model=models / "subgraph-rag")
    gnn_rag = kg.GNNRAGRetriever.from_index(index, model=models / "gnn-rag")
    yield "GNN-RAG", gnn_rag
    relation_paths = kg.RelationPathRetriever.from_index(index, examples=examples)
    yield "RelationPaths, examples", relation_paths
    yield "Union", kg.UnionRetriever.of(gnn_rag, relation_paths)
    yield "Cypher", kg.CypherRetriever.from_index(index)
    yield "Cypher, examples", kg.CypherRetriever.from_index(index, examples=examples)


if __name__ == "__main__":
    main()
