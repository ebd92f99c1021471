"""The command `serve`: a page in the browser that asks a graph."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from kg_retrievers.cli.parser import Parser
from kg_retrievers.cli.services import add_address, add_service, open_service
from kg_retrievers.cli.show import note
from kg_retrievers.serving.access import Access, read_token

#: Where it listens by default.
HOST, PORT = "127.0.0.1", 8000


def add_serve(parser: Parser) -> None:
    """Add the options of the command."""
    add_service(parser)
    page = parser.add_argument_group("the page")
    add_address(page, PORT)
    page.add_argument("--open", action="store_true", help="open it in the browser")


def run(options: argparse.Namespace) -> int:
    """Answer on an address until the process is interrupted."""
    from kg_retrievers.serving.listening import address_of, listen, run_server
    from kg_retrievers.serving.web.app import OPEN_PATHS, make_app  # an extra, which the help does not need

    host = options.host or HOST
    access = Access.of_binding(host, read_token(options.token_file), OPEN_PATHS)
    with listen(host, PORT if options.port is None else options.port) as listening, open_service(options) as service:
        address = address_of(listening)

        def ready() -> None:
            note(f"{address} answers{', with the token' if access.token else ''}; Ctrl-C ends it")
            if options.open:
                webbrowser.open(address)

        name = Path(options.graph).name or options.graph
        run_server(make_app(service, name=name, access=access), listening, ready)
    return 0
