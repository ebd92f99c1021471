"""The graph that a server asks: its options, and the service that is built from them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli import argument_types
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.load import read_index
from kg_retrievers.cli.parser import Parser
from kg_retrievers.cli.question_options import examples_help
from kg_retrievers.cli.shared_options import (
    METHODS,
    add_connection,
    add_database,
    add_embeddings,
    add_graph,
    add_llm,
    add_model,
    add_preset,
    one_of_methods,
)
from kg_retrievers.cli.show import status
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods.registry import GRAPH_PROMPT
from kg_retrievers.serving.loading import load_llm, read_models

if TYPE_CHECKING:
    from kg_retrievers.serving.service import GraphService


def add_served_graph(parser: Parser) -> None:
    """Add the graph, and what its methods are built from."""
    add_graph(parser)
    add_embeddings(parser)
    add_llm(parser)
    parser.add_argument(
        "--method",
        type=argument_types.methods,
        metavar=METHODS,
        help=f"the method that is asked where none is named: {one_of_methods()}",
    )
    add_model(parser)
    parser.add_argument("--examples", metavar="FILE", help=f"{examples_help()}, as JSON lines; other methods use none")
    add_preset(parser, "the retrievers")
    add_database(parser)
    add_connection(parser)


def add_address(parser: Parser, port: int) -> None:
    """Add where a server listens, and the token that it asks for."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen (default: 127.0.0.1, which only this machine reaches); others take a token",
    )
    parser.add_argument(
        "--port",
        type=argument_types.natural_number,
        default=port,
        metavar="N",
        help=f"the port (default: {port}); 0 for a free one",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file with the token that is asked for, of 16 characters or more (default: that of KG_RETRIEVERS_TOKEN)",
    )


@contextmanager
def open_service(options: argparse.Namespace) -> Iterator[GraphService]:
    """Yield the service over the graph of the options; a database that it opens is closed at the end.

    Raises:
        InvalidArgumentError: If an option is for something else.
        KGRetrieversError: If the graph, a model or a database cannot be opened.
    """
    from kg_retrievers.serving.service import GraphService  # loads numpy, which the help does not need

    examples = kg_retrievers.read_questions(options.examples) if options.examples else None
    with status("reading the trained models"):
        models = read_models(options.model)
    if GRAPH_PROMPT.name in models:
        raise InvalidArgumentError(f"a server does not answer by a model of {GRAPH_PROMPT.name}. Leave it out.")
    with status("loading the language model"):
        llm = load_llm(options.llm)
    index = read_index(options)
    with QueryDatabase(options, index) as database:
        yield GraphService(
            index,
            llm=llm,
            examples=examples,
            models=models,
            default_method=options.method,
            executor=lambda: database.executor,
            preset=options.preset,
        )
