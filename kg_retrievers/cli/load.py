"""From options to objects: the graph, its index, questions and the examples of each method."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.connection import (
    check_connection,
    connect,
    is_connected,
    load_chosen_embeddings,
    load_named_embeddings,
)
from kg_retrievers.cli.database import OF_ENDPOINTS, open_database
from kg_retrievers.cli.graph_files import check_saved_folder, given_options, read_file, read_folder
from kg_retrievers.cli.own_graphs import graphs_file
from kg_retrievers.cli.show import note, on_terminal, status
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import Method
from kg_retrievers.serving.loading import (
    is_database,
    is_endpoint,
    is_public,
    is_uri,
    recorded_embeddings,
)

if TYPE_CHECKING:
    from kg_retrievers.datasets import Question
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index import GraphIndex


def read_graph(options: argparse.Namespace) -> KnowledgeGraph:
    """Read the graph of a file, of a folder that `index` saved, or of a database."""
    check_database_options(options)
    check_size(options.graph)
    path = Path(options.graph)
    if path.is_file() and not is_database(options.graph):
        return read_file(path, options, progress=on_terminal())
    with status(f"reading {options.graph}"):
        if is_database(options.graph):
            return _read_database(options)
        return read_folder(path, options) if path.is_dir() else read_file(path, options)


def _read_database(options: argparse.Namespace) -> KnowledgeGraph:
    given = given_options(options)
    known = OF_ENDPOINTS if is_endpoint(options.graph) else frozenset()
    strange = [one.flag for one in given if not one.of_databases and one.argument not in known]
    if strange:
        raise InvalidArgumentError(
            f"{options.graph} is a graph database; leave out what says how to read a file: {', '.join(strange)}."
        )
    with closing(open_database(options.graph, options)) as executor:
        told = {option.argument: getattr(options, option.name) for option in given if option.of_databases}
        return kg_retrievers.KnowledgeGraph.from_executor(executor, **told)


def check_size(graph: str) -> None:
    """Check that a graph can be read as a whole, as those of public endpoints cannot.

    Raises:
        InvalidArgumentError: If it cannot.
    """
    if is_public(graph):
        raise InvalidArgumentError(
            f"{graph} is too large to be read as a whole. Ask it: kg-retrievers ask {graph} 'Who ...?'"
        )


def verify_folder(place: str) -> int:
    """Compare all that is saved in a folder with its checksums; return how many bytes were read.

    Raises:
        InvalidArgumentError: If it is no folder.
        IndexLoadError: If something is damaged.
    """
    if not Path(place).is_dir():
        raise InvalidArgumentError(f"--verify is for a folder of `index`, but {place} is none. Leave it out.")
    from kg_retrievers.graph.storage.parts import verify  # loads numpy

    with status(f"verifying {place}"):
        return verify(place)


def check_database_options(options: argparse.Namespace) -> None:
    """Check that the options for reading a database come with a database.

    Raises:
        InvalidArgumentError: If they come without one.
    """
    places = [where for where in (options.graph, options.database) if where is not None]
    if options.database_name is not None and not any(is_uri(where) and not is_endpoint(where) for where in places):
        raise InvalidArgumentError("--database-name is for a Neo4j database, as bolt://localhost:7687. Leave it out.")
    if options.key and options.database is None and not is_database(options.graph):
        raise InvalidArgumentError("--key is for a graph database, but none is given. Leave it out.")
    if options.key and all(map(is_endpoint, places)):
        raise InvalidArgumentError("--key: a SPARQL endpoint names its entities by IRIs. Leave it out.")


def read_index(options: argparse.Namespace) -> GraphIndex:
    """Open the index of a folder, index the graph of a file or database in memory, or connect to a database."""
    from kg_retrievers.graph.storage.parts import is_saved  # loads numpy

    folder = Path(options.graph)
    check_connection(options)
    if is_connected(options):
        check_database_options(options)
        return connect(options)
    if not is_saved(folder):
        graph = read_graph(options)
        return kg_retrievers.GraphIndex.build(graph, load_chosen_embeddings(options), progress=on_terminal())
    check_database_options(options)
    check_saved_folder(folder, options)
    embeddings = load_named_embeddings(options.embeddings or recorded_embeddings(folder), options)
    return kg_retrievers.GraphIndex.open(folder, embeddings)


def read_training_questions(options: argparse.Namespace) -> tuple[list[Question], list[Question] | None]:
    """Read the questions of a training, and the validation questions, if the options name them."""
    split = options.split or ("train" if options.format == "metaqa" else None)
    data = {"format": options.format, "only_hops": options.hops, **graphs_file(options)}
    with status(f"reading {options.questions}"):
        drawn = {"limit": options.limit, "seed": options.seed}
        questions = kg_retrievers.read_question_set(options.questions, split=split, **data, **drawn)
    if options.validation is None:
        if options.validation_split:
            raise InvalidArgumentError("--validation-split says which part of --validation to take; give that, too.")
        return questions, None
    with status(f"reading {options.validation}"):
        return questions, kg_retrievers.read_question_set(options.validation, split=options.validation_split, **data)


def check_database_is_used(methods: Sequence[Method], options: argparse.Namespace) -> None:
    """Check that one of the methods runs queries, if `--database` is given.

    Raises:
        InvalidArgumentError: If none does.
    """
    if options.database is not None and not any(method.runs_queries for method in methods):
        of_queries = query_methods()
        raise InvalidArgumentError(
            f"--database is for {of_queries}, but asked is {registry.joined_names(methods)}. "
            f"Leave it out, or: --method {of_queries}"
        )


def query_methods() -> str:
    """Return the names of the methods that run queries, as words of a sentence."""
    return " or ".join(method.name for method in registry.METHODS if method.runs_queries)


def quoted(names: Sequence[str]) -> str:
    """Return alternatives as words of a sentence."""
    return " or ".join(f'"{name}"' for name in names)


def share_examples(methods: Sequence[Method], examples: Sequence[Question] | None) -> dict[str, Sequence[Question]]:
    """Return the examples for each method that can use them, and note why others get none.

    Args:
        methods: The method, or several. A single method refuses unusable examples itself.
        examples: Labelled questions, if there are some.
    """
    shared: dict[str, Sequence[Question]] = {}
    if examples is None:
        return shared
    for method in dict.fromkeys(method for method in methods if method.labels):
        if len(methods) > 1 and not any(getattr(one, label) for one in examples for label in method.labels):
            note(f"{method.name} goes without the examples, none of which has {quoted(method.labels)}")
        else:
            shared[method.name] = examples
    return shared
