"""Migration: a folder that an earlier version saved is written in the format of today."""

from __future__ import annotations

from pathlib import Path

from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.storage.format_2 import kept_index
from kg_retrievers.graph.storage.parts import FolderWriter, is_saved, saved_meta


def migrate(folder: str | Path) -> bool:
    """Write what a folder holds in the format of today, where it is of an earlier one; its index stays.

    Readers find what was saved before until all is written.

    Args:
        folder: The folder.

    Returns:
        Whether it was of an earlier format.

    Raises:
        GraphLoadError: If the folder holds no complete graph.
        FileWriteError: If another process writes there, the disk is full, or this user may not write there.
    """
    folder = Path(folder)
    if not is_saved(folder):
        KnowledgeGraph.open(folder)  # raises what is wrong, before the folder is locked
    with FolderWriter(folder) as writer:
        graph = KnowledgeGraph.open(folder)
        if graph.earlier_triples is None:
            return False
        parts = {"graph": graph.to_part()}
        if saved_meta(folder, "index"):
            writer.replace(parts | {"index": kept_index(folder, graph.earlier_triples, writer.before)})
        else:
            writer.replace(parts)
    return True
