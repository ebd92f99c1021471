"""Bounds: whether the columns of an index fit its graph, so that no id leads out of an array later."""

from __future__ import annotations

from collections.abc import Mapping

from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.storage.bounds import check_ids, check_shape, check_starts


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
            if rows is not None:
                check_ids(f"{name}_rows", rows, count)


def check_name_table(columns: Mapping[str, Array], graph: KnowledgeGraph) -> None:
    """Check what `name_columns` returned: lengths, and that each id is the id of a name or an entity.

    Raises:
        ValueError: If something does not fit; the message names the column.
    """
    names = len(graph.names)
    check_shape("ids", columns["ids"], columns["hashes"].shape)
    check_ids("ids", columns["ids"], names + len(graph.entities))
    check_starts("word_starts", columns["word_starts"], len(columns["words"]), len(columns["word_names"]))
    check_ids("word_names", columns["word_names"], names)
    check_shape("longest", columns["longest"], (1,))
