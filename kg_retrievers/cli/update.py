"""The command `update`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.connection import load_named_embeddings
from kg_retrievers.cli.graph_files import read_file
from kg_retrievers.cli.show import counted, note, on_terminal, show
from kg_retrievers.errors import InvalidArgumentError, listed
from kg_retrievers.serving.loading import recorded_embeddings

if TYPE_CHECKING:
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index.graph_index import IndexUpdate


def run(options: argparse.Namespace) -> int:
    """Change a graph and its index in a folder."""
    from kg_retrievers.graph.changes.joining import join_additions, join_removals  # loads numpy

    _check(options)
    graph = kg_retrievers.KnowledgeGraph.open(options.index)
    additions, removals = _read(options.add, options, graph), _read(options.remove, options, graph)
    name = options.embeddings or recorded_embeddings(options.index)
    embeddings = load_named_embeddings(name, options)
    update = kg_retrievers.GraphIndex.update(
        options.index,
        embeddings,
        progress=on_terminal(),
        added=additions[0] if len(additions) == 1 else join_additions(graph, additions),
        removed=removals[0] if len(removals) == 1 else join_removals(graph, removals),
        removed_sources=options.remove_source,
        source=options.source,
    )
    _note_twins(graph, update.index.graph)
    counts = {name: getattr(update, name) for name in ("added", "present", "removed", "embedded")}
    if options.json:
        print(json.dumps(counts | {"triples": len(update.index.graph)}), flush=True)
        return 0
    show(
        f"{_added(options, update)} {update.removed:,}; embedded {counted(update.embedded, 'text')}.",
        f"{options.index} now holds {len(update.index.graph.entities):,} entities, "
        f"{len(update.index.graph.relations):,} relations, {len(update.index.graph):,} triples.",
    )
    return 0


def _added(options: argparse.Namespace, update: IndexUpdate) -> str:
    if not options.add:
        return "Removed"
    return f"Added {counted(update.added, 'fact')} ({update.present:,} were there already or repeated) and removed"


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


def _read(files: Sequence[str], options: argparse.Namespace, changed: KnowledgeGraph) -> list[KnowledgeGraph]:
    """Read each file in the way in which the graph that they change was read."""
    return [read_file(Path(file), options, changed, progress=on_terminal()) for file in files]


def _note_twins(before: KnowledgeGraph, after: KnowledgeGraph) -> None:
    """Say how many new entities have for their key what another entity is called: its key may be meant."""
    (new,) = (before.entities.ids_of(after.entities) < 0).nonzero()
    keys = [after.entities[id] for id in new.tolist()]
    twins = [key for key in keys if key in before.names and after.datatype(key) is None]
    if twins:
        named = before.entities_named(twins[0])
        note(
            f"new entities whose keys are names of others: {len(twins):,}, as {twins[0]!r}, a name of "
            f"{listed(named, 3)}; if those are meant, remove these facts and add them with the keys of those"
        )
