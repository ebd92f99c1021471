"""The commands `index` and `update`."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

import kg_retrievers
from kg_retrievers.cli import options, sources
from kg_retrievers.cli.options import flag, option
from kg_retrievers.cli.show import counted, note, on_terminal, show
from kg_retrievers.cli.sources import Source
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.loading import STATIC, recorded_embeddings

#: From so many facts on, a new graph is saved before its names are embedded, so that a load that breaks off goes on.
SAVED_FIRST = 1_000_000


def index(
    graph: options.Graph,
    reading: options.Reading,
    embeddings: options.Embeddings = None,
    output: Annotated[str | None, option("FOLDER", "Where to save it.")] = None,
    triples: Annotated[bool, flag("--triples", "Embed every triple as well, for kaping.")] = False,
    vectors: options.Vectors = None,
    embedding_cache: options.EmbeddingCache = None,
    workers: options.Workers = None,
) -> int:
    """Index a graph once, for many questions: in a folder, or the names of a graph in a server in a vector store.

    Example: kg-retrievers index films.csv --output films.index
    """
    source = Source(graph, reading, embeddings, options.Connection(vectors=vectors))
    if output is None and vectors is None:
        raise InvalidArgumentError(
            "where does the index go?",
            hint_shell="Name a folder: --output FOLDER; or, for a graph that stays in its database, a vector store for "
            "its names: --vectors postgresql://user@host/database",
        )
    if vectors is None:
        return _save(source, Path(str(output)), triples, embedding_cache, workers)
    for name, is_given in (("--output", output), ("--triples", triples), ("--embedding-cache", embedding_cache)):
        if is_given:
            raise InvalidArgumentError(f"{name} is for an index in a folder. Leave it out, or leave out --vectors.")
    return _load_names(source, vectors, workers)


def _save(source: Source, output: Path, triples: bool, cache: str | None, workers_name: str | None) -> int:
    """Save the graph and its index in a folder."""
    from kg_retrievers.graph.storage.parts import is_saved, may_hold_save  # loads numpy

    if output.exists() and not output.is_dir():
        raise InvalidArgumentError(f"{output} is a file. Name a folder: --output ...")
    if not may_hold_save(output):
        raise InvalidArgumentError(f"the folder {output} is not empty and holds no index. Name a new one: --output ...")
    replaced = is_saved(output)
    embeddings = sources.embeddings_of(source.embeddings)
    graph = sources.read_graph(source)
    if not replaced and len(graph) >= SAVED_FIRST:
        graph.save(output)
        graph = kg_retrievers.KnowledgeGraph.open(output)
        more = ["--output", str(output), *(["--triples"] if triples else [])]
        go_on = Source(str(output), options.Reading(), source.embeddings).command("index", *more)
        note(f"the graph is saved; if the rest breaks off, go on: {go_on}")
    name = source.embeddings or STATIC
    with options.open_workers(workers_name) as workers:
        kg_retrievers.GraphIndex.build(
            graph,
            embeddings,
            output,
            triples=triples,
            cache=cache,
            progress=on_terminal(),
            workers=workers,
            embeddings_name=name,
        )
    if replaced and Path(source.place) != output:
        show(f"Replaced the earlier index in {output}.")
    show(
        f"Indexed {len(graph.entities):,} entities, {len(graph.relations):,} relations, {len(graph):,} triples "
        f"in {output}, with {name} embeddings{', also of the triples' if triples else ''}.",
        f"Ask it: {Source(str(output), options.Reading()).command('ask', 'Who ...?')}",
    )
    return 0


def _load_names(source: Source, vectors: str, workers_name: str | None) -> int:
    """Load the names of a graph that stays in its database into a vector store, or go on after a break."""
    from kg_retrievers.index.server_names import load_names  # loads numpy

    source.check()
    source.check_size()
    embeddings = sources.embeddings_of(source.embeddings)
    try:
        with (
            closing(sources.open_database(source.place, source)) as database,
            options.open_workers(workers_name) as workers,
        ):
            database.relations()  # so that no table is made for a graph that cannot be read
            names = sources.open_names(source, embeddings, create=True)
            names.check_graph(database)
            if (about := names.about) is not None and about.count:
                held = counted(about.count, "name")
                if about.position is None:
                    note(f"{vectors} holds {held}; what is new is added, and names that are gone stay")
                else:
                    note(f"{vectors} holds {held} of a load that was broken off; going on from there")
            loaded = load_names(database, embeddings, names.store, progress=on_terminal(), workers=workers)
    except KeyboardInterrupt:
        note(f"what was loaded is in {vectors}; the same command goes on from there")
        raise
    show(
        f"Read {loaded.entities:,} entities of {source.place} and embedded {counted(loaded.embedded, 'name')} with "
        f"{source.embeddings or STATIC} embeddings; {vectors} now holds {counted(loaded.names, 'name')}.",
        f"Ask it: {source.command('ask', 'Who ...?')}",
    )
    return 0


def update(
    index: Annotated[str, typer.Argument(metavar="INDEX", help="A folder of `index`.")],
    reading: options.Reading,
    embeddings: options.Embeddings = None,
    add: Annotated[list[str], option("FILE", "Facts to add, and what the file says about entities.")] = [],
    remove: Annotated[list[str], option("FILE", "Facts to remove.")] = [],
    remove_source: Annotated[list[str], option("NAME", "A source to remove, with the facts from no other one.")] = [],
    source: Annotated[str | None, option("NAME", "The source of the facts of --add.")] = None,
    as_json: options.Json = False,
) -> int:
    """Change a saved graph and its index: add facts, remove facts.

    Example: kg-retrievers update films.index --add new.csv --remove old.csv
    """
    from kg_retrievers.graph.changes.changing import join_additions, join_removals  # loads numpy

    if not Path(index).is_dir():
        raise InvalidArgumentError(
            f"{index} is no folder that `index` saved. Make one: kg-retrievers index FILE --output FOLDER"
        )
    if reading.view_arguments:
        raise InvalidArgumentError("--view and --as-of: the index is changed as a whole. Leave them out.")
    if not (add or remove or remove_source):
        raise InvalidArgumentError("nothing to change. Name files or sources: --add, --remove, --remove-source")
    if source is not None and not add:
        raise InvalidArgumentError("--source says where the facts of --add are from. Add some, or leave it out.")
    graph = kg_retrievers.KnowledgeGraph.open(index)
    additions = [sources.read_file(Path(file), reading.given, graph) for file in add]
    removals = [sources.read_file(Path(file), reading.given, graph) for file in remove]
    updated = kg_retrievers.GraphIndex.update(
        index,
        sources.embeddings_of(embeddings, recorded_embeddings(index)),
        progress=on_terminal(),
        added=additions[0] if len(additions) == 1 else join_additions(graph, additions),
        removed=removals[0] if len(removals) == 1 else join_removals(graph, removals),
        removed_sources=remove_source,
        source=source,
    )
    after = updated.index.graph
    if as_json:
        counts = {name: getattr(updated, name) for name in ("added", "present", "removed", "embedded")}
        print(json.dumps(counts | {"triples": len(after)}), flush=True)
        return 0
    did = "Removed"
    if add:
        did = f"Added {counted(updated.added, 'fact')} ({updated.present:,} were there already or repeated) and removed"
    show(
        f"{did} {updated.removed:,}; embedded {counted(updated.embedded, 'text')}.",
        f"{index} now holds {len(after.entities):,} entities, {len(after.relations):,} relations, "
        f"{len(after):,} triples.",
    )
    return 0
