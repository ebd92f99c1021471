"""The command `update`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.graph_files import read_file
from kg_retrievers.cli.show import show, status
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.loading import load_embeddings, recorded_embeddings

if TYPE_CHECKING:
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index.graph_index import IndexUpdate


def run(options: argparse.Namespace) -> int:
    """Change a graph and its index in a folder."""
    _check(options)
    graph = kg_retrievers.KnowledgeGraph.open(options.index)
    added, removed = _read(options.add, options, graph), _read(options.remove, options, graph)
    name = options.embeddings or recorded_embeddings(options.index)
    with status(f"loading {name}"):
        embeddings = load_embeddings(name)
    update = kg_retrievers.GraphIndex.update(
        options.index,
        embeddings,
        progress=sys.stderr.isatty(),
        added=added,
        removed=removed,
        removed_sources=options.remove_source,
        source=options.source,
    )
    counts = {name: getattr(update, name) for name in ("added", "present", "removed", "embedded")}
    if options.json:
        print(json.dumps(counts | {"triples": len(update.index.graph)}), flush=True)
        return 0
    show(
        f"{_added(options, update)} {update.removed:,}; embedded {update.embedded:,} texts.",
        f"{options.index} now holds {len(update.index.graph.entities):,} entities, "
        f"{len(update.index.graph.relations):,} relations, {len(update.index.graph):,} triples.",
    )
    return 0


def _added(options: argparse.Namespace, update: IndexUpdate) -> str:
    if not options.add:
        return "Removed"
    return f"Added {update.added:,} facts ({update.present:,} were there already or repeated) and removed"


def _check(options: argparse.Namespace) -> None:
    """Check that there is a folder and something to change.

    Raises:
        InvalidArgumentError: If not.
    """
    if not Path(options.index).is_dir():
        raise InvalidArgumentError(
            f"{options.index} is no folder that `index` saved. Make one: kg-retrievers index FILE --output FOLDER"
        )
    if not (options.add or options.remove or options.remove_source):
        raise InvalidArgumentError("nothing to change. Name files or sources: --add, --remove, --remove-source")
    if options.source is not None and not options.add:
        raise InvalidArgumentError("--source says where the facts of --add are from. Add some, or leave it out.")


def _read(files: Sequence[str], options: argparse.Namespace, changed: KnowledgeGraph) -> KnowledgeGraph | tuple[()]:
    """Read files as one graph, in the way in which the graph that they change was read."""
    graph: KnowledgeGraph | None = None
    for file in files:
        with status(f"reading {file}"):
            one = read_file(Path(file), options, changed)
        graph = one if graph is None else graph.with_changes(added=one)
    return () if graph is None else graph
