"""Bounds: whether the columns of an index fit its graph, so that no id leads out of an array later."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kg_retrievers.algorithms.quantization import words_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.storage.bounds import check_ids, check_shape, check_starts
from kg_retrievers.graph.storage.parts import CHECKED


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
