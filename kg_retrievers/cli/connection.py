"""A graph that stays in its database: `--connect`, with its names in a vector store: `--vectors`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.database import OF_ENDPOINTS, open_database
from kg_retrievers.cli.graph_command import index_command
from kg_retrievers.cli.graph_files import given_options
from kg_retrievers.cli.show import note, status
from kg_retrievers.errors import InvalidArgumentError, StaleIndexError
from kg_retrievers.serving.loading import STATIC, is_database, is_endpoint, is_public, load_embeddings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from kg_retrievers.index import GraphIndex, VectorStoreSearch
    from kg_retrievers.index.server_names import About, ServerNames


def is_connected(options: argparse.Namespace) -> bool:
    """Whether the graph is to stay in its database, as that of a public endpoint always does."""
    return options.connect or options.vectors is not None or is_public(options.graph or "")


def check_connection(options: argparse.Namespace) -> None:
    """Check that the options for a graph that stays in its database come with a database, and no others do.

    Raises:
        InvalidArgumentError: If not.
    """
    given = [
        flag
        for flag, value in (
            ("--connect", options.connect),
            ("--vectors", options.vectors is not None),
            ("--max-facts", options.max_facts is not None),
        )
        if value
    ]
    if given and not is_database(options.graph):
        raise InvalidArgumentError(
            f"{' and '.join(given)}: for a graph that stays in a database, but {_why_none(options.graph)}. "
            "Leave it out, or name a database: bolt://localhost:7687, or a LadybugDB file."
        )
    if not is_connected(options):
        if given:
            raise InvalidArgumentError("--max-facts is for a graph that stays in its database: add --connect.")
        return
    if options.database is not None:
        raise InvalidArgumentError("--database: a graph that stays in its database is queried there. Leave it out.")
    for option in given_options(options):
        if not is_endpoint(options.graph) or option.argument not in OF_ENDPOINTS:
            raise InvalidArgumentError(f"{option.flag} is for a graph that is read, but this one stays. Leave it out.")


def _why_none(where: str) -> str:
    """Say why a place is no database."""
    if not Path(where).exists():
        return f"there is no file {where}"
    return f"{where} is {'a folder' if Path(where).is_dir() else 'no LadybugDB file'}"


def connect(options: argparse.Namespace) -> GraphIndex:
    """Connect to the graph, and to the store of its names if the options name one.

    Raises:
        InvalidArgumentError: If an option is for other graphs.
        StaleIndexError: If the store is not there, or holds no names, those of another graph or of other embeddings.
        DatabaseError: If a server cannot be reached, or lets nobody in.
    """
    from kg_retrievers.cli.same_graph import check_graph  # loads numpy

    check_connection(options)
    embeddings = load_chosen_embeddings(options)
    names = None if options.vectors is None else open_names(options, embeddings)
    database = open_database(options.graph, options)
    try:
        if names is not None:
            about = loaded_names(names, options)
            if about.position is not None:
                note(f"not all names are in {options.vectors} yet; the rest of them: {index_command(options)}")
        more = {} if options.max_facts is None else {"max_facts": options.max_facts}
        vectors = None if names is None else names.store
        with status(f"connecting to {options.graph}"):
            index = kg_retrievers.GraphIndex.connect(database, embeddings, vectors, **more)
            if names is not None:
                check_graph(names, about, index, database, options)
    except BaseException:
        database.close()
        raise
    return index


def open_names(options: argparse.Namespace, embeddings: Embeddings, *, create: bool = False) -> ServerNames:
    """Open the store that `--vectors` names.

    Args:
        options: The options of the command.
        embeddings: The model of the names.
        create: Whether its table or collection is made where there is none.

    Raises:
        InvalidArgumentError: If its address cannot be read.
        StaleIndexError: If there is no such table or collection, and `create` is false.
        MissingExtraError: If its extra is not installed.
        DatabaseError: If it cannot be reached, or lets nobody in.
    """
    from kg_retrievers.index.server_names import ServerNames
    from kg_retrievers.index.stores import open_store

    try:
        with status(f"opening {options.vectors}"):
            store: VectorStoreSearch = open_store(options.vectors, embeddings, create=create)
    except StaleIndexError as error:
        hint = f"Check the address, or load the names first: {index_command(options)}"
        raise StaleIndexError(error.message, hint_shell=hint) from error
    return ServerNames(store, embeddings)


def loaded_names(names: ServerNames, options: argparse.Namespace) -> About:
    """Return what a store says of its names.

    Raises:
        StaleIndexError: If it holds none, or those of other embeddings.
    """
    about = names.about
    if about is None or not about.count:
        raise StaleIndexError(
            f"{options.vectors} holds no names.", hint_shell=f"Load them first: {index_command(options)}"
        )
    return about


def load_chosen_embeddings(options: argparse.Namespace) -> Embeddings:
    """Return the embeddings that the options name, or the default."""
    return load_named_embeddings(options.embeddings or STATIC, options)


def load_named_embeddings(name: str, options: argparse.Namespace) -> Embeddings:
    """Return the embeddings of a name; code that they bring is run only where the options say so."""
    with status(f"loading {name}"):
        return load_embeddings(name, trust_remote_code=options.trust_remote_code)
