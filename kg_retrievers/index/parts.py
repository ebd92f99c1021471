"""The parts of an index: what is embedded of a graph, what searches it, and whether a folder holds them whole."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.quantization import words_of
from kg_retrievers.errors import IndexLoadError, InvalidArgumentError, StaleIndexError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.storage.bounds import check_ids, check_shape, check_starts
from kg_retrievers.graph.storage.parts import CHECKED, OpenedPart
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.embeddings import HashedEmbeddings, embedding_name
from kg_retrievers.index.quantized_search import QuantizedSearch
from kg_retrievers.index.static_embeddings import default_embeddings
from kg_retrievers.index.vector_store import ExactSearch, VectorStoreSearch, stale_store

# The model in the `embedding_name` of LangChain's embeddings of a provider, and of those of sentence-transformers.
_MODEL = re.compile(
    r"(?:langchain_(?!community|core)(?P<provider>\w+)\.|kg_retrievers\.index\.embeddings\.SentenceTransformer)"
    r"[\w.]+\((?:model|model_name)='(?P<model>[^']+)'"
)


def identity(graph: KnowledgeGraph, embeddings: Embeddings, dimension: int) -> dict[str, str | int]:
    """Return what an index is of: its graph, its embeddings and their dimension."""
    return {"graph": graph.fingerprint, "embeddings": embedding_name(embeddings), "dimension": dimension}


def make_searches(
    graph: KnowledgeGraph, columns: Mapping[str, Array], store: VectorStoreSearch | None
) -> tuple[ExactSearch | QuantizedSearch | VectorStoreSearch, ExactSearch, ExactSearch, ExactSearch | None]:
    """Return what searches names, relations and types, and the vectors of triples if there are some.

    A store is told all numbers, so that names that an update adds to it later are not found.
    """
    names: ExactSearch | QuantizedSearch | VectorStoreSearch
    if store:
        rows = columns.get("names_rows")
        names = store.with_rows(np.arange(len(graph.names)) if rows is None else rows)
    elif "names_bits" in columns:
        names = QuantizedSearch(columns["names"], columns["names_bits"], columns.get("names_rows"))
    else:
        names = _search(columns, "names")
    triples = _search(columns, "triples") if "triples" in columns else None
    return names, ExactSearch(columns["relations"]), ExactSearch(columns["types"]), triples


def _search(columns: Mapping[str, Array], kind: str) -> ExactSearch:
    return ExactSearch(columns[kind], columns.get(f"{kind}_rows"))


def check_model(
    path: str | Path, meta: Mapping[str, Any], embeddings: Embeddings, store: VectorStoreSearch | None
) -> None:
    """Check that a saved index was built with such embeddings, and with a vector store where there is one.

    Raises:
        StaleIndexError: If it was built with other embeddings.
        InvalidArgumentError: If `store` is missing, or the index was built without one.
    """
    name, given, stored = meta["embeddings"], embedding_name(embeddings), meta["store"]
    if name != given:
        first, second = embeddings_option(name, meta.get("embeddings_name")), embeddings_option(given)
        raise StaleIndexError(
            f"GraphIndex.open: {path} was built with {name}, but got {given}.",
            hint_python="Open it with the first, or build it again with the second: GraphIndex.build(graph, "
            "embeddings, path).",
            hint_shell=f"Open it with the first: {first}, or build it again with the second: "
            f"kg-retrievers index ... --output {path} {second}",
        )
    if stored != bool(store):
        advice = "with a vector store; hand it in" if stored else "without a vector store; leave it out"
        raise InvalidArgumentError(
            f"GraphIndex.open: {path} was built {advice}: store=...",
            hint_shell="The shell opens no vector stores; build an index without one.",
        )


def embeddings_option(name: str, recorded: str | None = None) -> str:
    """Return the option of the shell for embeddings, by their `embedding_name` and what the shell recorded."""
    own = {embedding_name(default_embeddings()): "static", embedding_name(HashedEmbeddings()): "hashed"}
    option = own.get(name)
    if option is None and recorded not in own.values():
        option = recorded
    if option is None and (found := _MODEL.match(name)):
        option = f"{found['provider'] or 'local'}:{found['model']}"
    return f"--embeddings {'...' if option is None else shlex.quote(option)}"


def graph_of(
    path: str | Path, fingerprint: str, graph: KnowledgeGraph | None, part: OpenedPart | None
) -> KnowledgeGraph:
    """Return the graph that was given, or else the one saved beside the index, if the index was built from it.

    Raises:
        IndexLoadError: If the graph was saved without its index.
        StaleIndexError: If the index was built from another graph.
    """
    if part is not None:
        saved = KnowledgeGraph.from_part(path, part)
        if saved.fingerprint != fingerprint:
            raise IndexLoadError("the graph was saved without its index. Build the index again.", path)
        return saved
    assert graph is not None
    if graph.fingerprint != fingerprint:
        raise StaleIndexError(
            f"GraphIndex.open: {path} was built from a graph other than the one given, {graph!r}.",
            hint_python="Build it again: GraphIndex.build(graph, embeddings, path).",
            hint_shell=f"Build it again: kg-retrievers index ... --output {path}",
        )
    return graph


def check_store(store: VectorStoreSearch, graph: KnowledgeGraph) -> None:
    """Check some names that a store holds.

    Raises:
        StaleIndexError: If they are others.
    """
    ids = range(len(graph.names))
    sample = sorted({*ids[:: len(ids) // 16 + 1], *ids[-1:]})
    numbers = sample if store.rows is None else store.rows[sample].tolist()
    if not store.holds(numbers, [readable(graph.names[id]) for id in sample]):
        raise stale_store()


def check_vectors(columns: Mapping[str, Array], graph: KnowledgeGraph, dimension: int) -> None:
    """Check that there is a vector for each name, relation and type, and for each triple where triples are embedded.

    Raises:
        ValueError: If not; the message names the column.
    """
    sizes = {
        "names": len(graph.names),
        "relations": len(graph.relations),
        "types": len(graph.types),
        "triples": len(graph),
    }
    for name, size in sizes.items():
        rows = columns.get(f"{name}_rows")
        if rows is not None:
            check_shape(f"{name}_rows", rows, (size,))
        if name in columns:
            count = size if rows is None else len(columns[name])
            check_shape(name, columns[name], (count, dimension))
            _check_type(name, columns[name], "i1" if f"{name}_bits" in columns else "f4")
            if rows is not None:
                check_ids(f"{name}_rows", rows, count)

    if "names_bits" in columns:
        check_shape("names_bits", columns["names_bits"], (len(columns["names"]), words_of(dimension)))
        _check_type("names_bits", columns["names_bits"], "u8")


def _check_type(name: str, column: Array, dtype: str) -> None:
    if column.dtype != np.dtype(dtype):
        raise ValueError(f"{name} has numbers of the type {column.dtype}, wanted {np.dtype(dtype)}")


def check_name_table(columns: Mapping[str, Array], graph: KnowledgeGraph) -> None:
    """Check what `name_columns` returned: lengths, and in short columns that each id is that of a name or an entity.

    The table checks the ids of long columns when it reads them.

    Raises:
        ValueError: If something does not fit; the message names the column.
    """
    names = len(graph.names)
    check_shape("ids", columns["ids"], columns["hashes"].shape)
    check_shape("word_starts", columns["word_starts"], (len(columns["words"]) + 1,))
    check_shape("longest", columns["longest"], (1,))
    if columns["ids"].nbytes <= CHECKED:
        check_ids("ids", columns["ids"], names + len(graph.entities))
    if columns["word_names"].nbytes <= CHECKED:
        check_starts("word_starts", columns["word_starts"], len(columns["words"]), len(columns["word_names"]))
        check_ids("word_names", columns["word_names"], names)
