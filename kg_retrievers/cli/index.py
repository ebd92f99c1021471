"""The command `index`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import kg_retrievers
from kg_retrievers.cli.load import read_graph
from kg_retrievers.cli.show import note, on_terminal, show, show_log, status
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.loading import STATIC, load_embeddings


def run(options: argparse.Namespace) -> int:
    """Index a graph once, for many questions."""
    from kg_retrievers.graph.storage.parts import is_saved, is_unfinished, may_hold_save  # loads numpy

    output = Path(options.output)
    if output.exists() and not output.is_dir():
        raise InvalidArgumentError(f"{output} is a file. Name a folder: --output ...")
    if not may_hold_save(output):
        raise InvalidArgumentError(f"the folder {output} is not empty and holds no index. Name a new one: --output ...")
    replaced = is_saved(output)
    graph = read_graph(options)
    name = options.embeddings or STATIC
    with status(f"loading {name}"):
        embeddings = load_embeddings(name)
    try:
        with show_log("kg_retrievers.index.graph_vectors"):
            kg_retrievers.GraphIndex.build(
                graph,
                embeddings,
                output,
                triples=options.triples,
                progress=on_terminal(),
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
