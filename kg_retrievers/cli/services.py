"""What the commands that serve a graph share: their options, and the service that these describe."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli import argument_types
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.load import check_database_is_used, read_index
from kg_retrievers.cli.parser import Options, Parser
from kg_retrievers.cli.question_options import examples_help
from kg_retrievers.cli.shared_options import (
    METHODS,
    UNION_HELP,
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
from kg_retrievers.serving.loading import choose_methods, load_llm, read_models

if TYPE_CHECKING:
    from kg_retrievers.serving.service import GraphService


def add_service(parser: Parser) -> None:
    """Add the graph and what its methods are built from."""
    add_graph(parser)
    add_embeddings(parser)
    add_llm(parser)
    parser.add_argument(
        "--method",
        type=argument_types.methods,
        metavar=METHODS,
        help=f"what is asked where a question names no method: {one_of_methods()}; {UNION_HELP}",
    )
    add_model(parser)
    parser.add_argument("--examples", metavar="FILE", help=f"{examples_help()}, as JSON lines; other methods use none")
    add_preset(parser, "the retrievers")
    add_database(parser)
    add_connection(parser)


def add_address(parser: Options, port: int) -> None:
    """Add where a server listens; None stands for an option that is not given."""
    parser.add_argument(
        "--host", metavar="ADDRESS", help="the address to listen on (default: 127.0.0.1); another one takes a token"
    )
    parser.add_argument(
        "--port",
        type=argument_types.port,
        metavar="N",
        help=f"the port (default: {port}); 0 for a free one",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file with the token that requests must show; else that of KG_RETRIEVERS_TOKEN, if it is set",
    )


@contextmanager
def open_service(options: argparse.Namespace) -> Iterator[GraphService]:
    """Open the service that the options of `add_service` describe; close its database at the end."""
    from kg_retrievers.serving.service import GraphService  # loads numpy and LangChain, which the help does not need

    examples = kg_retrievers.read_questions(options.examples) if options.examples else None
    with status("reading the trained models"):
        models = read_models(options.model)
    check_database_is_used(choose_methods(options.method, {} if options.method else models), options)
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
