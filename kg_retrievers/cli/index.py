"""The command `index`."""

from __future__ import annotations

import argparse
import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.connection import check_connection, load_chosen_embeddings, open_names
from kg_retrievers.cli.database import open_database
from kg_retrievers.cli.graph_command import graph_command
from kg_retrievers.cli.load import check_database_options, check_size, read_graph
from kg_retrievers.cli.show import counted, note, on_terminal, show, show_log
from kg_retrievers.cli.workers import open_workers
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.loading import STATIC

if TYPE_CHECKING:
    from kg_retrievers.index.server_names import About


def run(options: argparse.Namespace) -> int:
    """Index a graph once, for many questions: in a folder, or where it stays, by its names in a vector store."""
    if options.output is None and options.vectors is None:
        raise InvalidArgumentError(
            "where does the index go?",
            hint_shell="Name a folder: --output FOLDER; or, for a graph that stays in its database, a vector store for "
            "its names: --vectors postgresql://user@host/database",
        )
    if options.vectors is not None:
        return _load_names(options)
    return _save(options)


def _save(options: argparse.Namespace) -> int:
    """Save the graph and its index in a folder."""
    from kg_retrievers.graph.storage.parts import is_saved, is_unfinished, may_hold_save  # loads numpy

    output = Path(options.output)
    if output.exists() and not output.is_dir():
        raise InvalidArgumentError(f"{output} is a file. Name a folder: --output ...")
    if not may_hold_save(output):
        raise InvalidArgumentError(f"the folder {output} is not empty and holds no index. Name a new one: --output ...")
    replaced = is_saved(output)
    graph = read_graph(options)
    name = options.embeddings or STATIC
    embeddings = load_chosen_embeddings(options)
    try:
        with show_log("kg_retrievers.index.graph_vectors"), open_workers(options.workers) as workers:
            kg_retrievers.GraphIndex.build(
                graph,
                embeddings,
                output,
                triples=options.triples,
                progress=on_terminal(),
                workers=workers,
                embeddings_name=name,
            )
    except BaseException:
        if is_unfinished(output):
            note(f"the vectors that were made are in {output}; the same command goes on with them")
        raise
    if replaced:
        show(f"Replaced the earlier index in {output}.")
    show(
        f"Indexed {len(graph.entities):,} entities, {len(graph.relations):,} relations, {len(graph):,} triples "
        f"in {output}, with {name} embeddings{', also of the triples' if options.triples else ''}.",
        f"Ask it: {shlex.join(['kg-retrievers', 'ask', str(output), 'Who ...?'])}",
    )
    return 0


def _load_names(options: argparse.Namespace) -> int:
    """Load the names of a graph that stays in its database into a vector store, or go on after a break."""
    from kg_retrievers.cli.same_graph import check_names  # loads numpy
    from kg_retrievers.index.server_names import load_names

    for flag, is_given in (("--output", options.output is not None), ("--triples", options.triples)):
        if is_given:
            raise InvalidArgumentError(f"{flag} is for an index in a folder. Leave it out, or leave out --vectors.")
    check_database_options(options)
    check_connection(options)
    check_size(options.graph)
    name = options.embeddings or STATIC
    embeddings = load_chosen_embeddings(options)
    try:
        with closing(open_database(options.graph, options)) as database, open_workers(options.workers) as workers:
            database.relations()  # so that no table is made for a graph that cannot be read
            names = open_names(options, embeddings, create=True)
            check_names(names, database, options)
            _tell_before(names.about, options)
            loaded = load_names(database, embeddings, names.store, progress=on_terminal(), workers=workers)
    except KeyboardInterrupt:
        note(f"what was loaded is in {options.vectors}; the same command goes on from there")
        raise
    show(
        f"Read {loaded.entities:,} entities of {options.graph} and embedded {counted(loaded.embedded, 'name')} with "
        f"{name} embeddings; {options.vectors} now holds {counted(loaded.names, 'name')}.",
        f"Ask it: {graph_command('ask', options, 'Who ...?')}",
    )
    return 0


def _tell_before(about: About | None, options: argparse.Namespace) -> None:
    """Say what a store holds already."""
    if about is None or not about.count:
        return
    held = counted(about.count, "name")
    if about.position is None:
        note(f"{options.vectors} holds {held}; what is new is added, and names that are gone stay")
    else:
        note(f"{options.vectors} holds {held} of a load that was broken off; going on from there")
