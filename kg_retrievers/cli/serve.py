"""The command `serve`: a page in the browser that asks a graph."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from kg_retrievers.cli.served_graph import open_service
from kg_retrievers.cli.show import note
from kg_retrievers.serving.access import Access, read_token


def run(options: argparse.Namespace) -> int:
    """Answer on an address until interrupted."""
    from kg_retrievers.serving.web.app import OPEN_PATHS, make_app  # loads numpy, which the help does not need
    from kg_retrievers.serving.web.server import address_of, listen
    from kg_retrievers.serving.web.server import run as run_server

    access = Access.of_binding(options.host, read_token(options.token_file), OPEN_PATHS)
    listening = listen(options.host, options.port)
    with listening, open_service(options) as service:
        address = address_of(listening)

        def ready() -> None:
            note(f"{address} answers" + (", with the token" if access.token else "") + "; Ctrl-C ends it")
            if options.open:
                webbrowser.open(address)

        name = Path(options.graph).name or options.graph
        run_server(make_app(service, name=name, access=access), listening, ready)
    return 0
