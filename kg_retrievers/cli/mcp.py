"""The command `mcp`."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack, redirect_stdout

from kg_retrievers.cli.parser import Parser
from kg_retrievers.cli.services import add_address, add_service, open_service
from kg_retrievers.cli.show import note
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.access import Access, read_token

#: Where it listens by default.
HOST, PORT = "127.0.0.1", 8765


def add_mcp(parser: Parser) -> None:
    """Add the options of the command."""
    add_service(parser)
    http = parser.add_argument_group("over HTTP", "By default the server talks on stdin and stdout.")
    http.add_argument("--http", action="store_true", help="listen for streamable HTTP, at the path /mcp")
    add_address(http, PORT)


def run(options: argparse.Namespace) -> int:
    """Serve a graph over MCP until the client leaves, or the process is interrupted."""
    access = _access(options)
    with ExitStack() as at_end:
        with redirect_stdout(sys.stderr):  # stdout is for the protocol alone; what serves it does so by itself
            from kg_retrievers.serving.mcp.server import GraphServer  # an extra, which the help does not need
            from kg_retrievers.serving.mcp.transports import run_http, run_stdio
            from kg_retrievers.serving.web.server import address_of, listen

            server = GraphServer(at_end.enter_context(open_service(options)))
        if access is None:
            run_stdio(server)
        else:
            listening = listen(options.host or HOST, PORT if options.port is None else options.port)
            run_http(server, access, listening, lambda: note(f"MCP at {address_of(listening)}mcp; Ctrl-C ends it"))
    return 0


def _access(options: argparse.Namespace) -> Access | None:
    """Return who may ask over HTTP; None on stdio."""
    if options.http:
        return Access.of_binding(options.host or HOST, read_token(options.token_file))
    given = {"--host": options.host, "--port": options.port, "--token-file": options.token_file}
    strange = [flag for flag, value in given.items() if value is not None]
    if strange:
        raise InvalidArgumentError(f"{', '.join(strange)}: for HTTP alone. Give --http, too, or leave it out.")
    return None
