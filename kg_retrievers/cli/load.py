"""From options to objects."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.show import remark, working
from kg_retrievers.errors import GraphLoadError, InvalidArgumentError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index import GraphIndex

#: The methods by name, each with its class behind the front door.
RETRIEVERS = {
    "simgrag": "SimGRAGRetriever",
    "pcst": "PCSTRetriever",
    "triple-similarity": "TripleSimilarityRetriever",
}

#: What stands beside an index to say which `--embeddings` it was built with.
RECORD = "cli.json"


def read_graph(options: argparse.Namespace) -> KnowledgeGraph:
    """Read the graph of a file, or of a folder that `index` saved."""
    path = Path(options.graph)
    names = {"entities": "entities", "graph_format": "format", "columns": "columns"}
    names |= {"encoding": "encoding", "on_error": "on_error"}
    given = {name: value for option, name in names.items() if (value := getattr(options, option)) is not None}
    with working(f"reading {path}"):
        if not path.is_dir():
            graph = kg_retrievers.KnowledgeGraph.from_file(path, **given)
            if graph.skipped:
                remark(f"malformed lines of {path} that were skipped: {graph.skipped}")
            return graph
        if given:
            raise InvalidArgumentError(f"{path} is a folder; leave out what says how to read a file: {[*given]}.")
        try:
            return kg_retrievers.KnowledgeGraph.open(path)
        except GraphLoadError as error:
            command = shlex.join(["kg-retrievers", "index", "FILE", "--output", str(path)])
            raise InvalidArgumentError(f"{error} To index a file: {command}") from error


def read_index(options: argparse.Namespace) -> GraphIndex:
    """Open the index of a folder, or index the graph of a file in memory."""
    graph = read_graph(options)
    if Path(options.graph).is_dir():
        return open_index(options.graph, options.embeddings, graph=graph)
    embeddings = make_embeddings(options.embeddings or "hashed")
    return kg_retrievers.GraphIndex.build(graph, embeddings, progress=sys.stderr.isatty())


def open_index(folder: str | Path, embeddings: str | None = None, *, graph: KnowledgeGraph | None = None) -> GraphIndex:
    """Open a folder that `kg-retrievers index` saved.

    Args:
        folder: The folder.
        embeddings: As `--embeddings`; those that it was built with by default.
        graph: The graph, where it is at hand.

    Raises:
        IndexLoadError: If the folder holds no complete index.
        StaleIndexError: If it was built with other embeddings.
    """
    record = Path(folder) / RECORD
    recorded = json.loads(record.read_text("utf-8"))["embeddings"] if record.exists() else "hashed"
    return kg_retrievers.GraphIndex.open(folder, make_embeddings(embeddings or recorded), graph=graph)


def make_embeddings(name: str) -> Embeddings:
    """Return the embeddings that `--embeddings` names."""
    if name == "hashed":
        return kg_retrievers.HashedEmbeddings()
    with working(f"loading {name}"):
        return kg_retrievers.local_embeddings(name.removeprefix("local:"))


def make_llm(name: str | None) -> BaseChatModel | None:
    """Return the language model that `--llm` names, if it does."""
    if name is None:
        return None
    with working(f"loading {name}"):
        return kg_retrievers.load_chat_model(name)
