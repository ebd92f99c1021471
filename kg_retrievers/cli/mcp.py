"""The command `mcp`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from kg_retrievers.cli.parser import Parser
from kg_retrievers.cli.services import add_address, add_service, open_service
from kg_retrievers.cli.show import note
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.access import HEALTH_PATH, Access, read_token

if TYPE_CHECKING:
    from kg_retrievers.serving.mcp.server import GraphServer

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
    if access is None:
        _serve_stdio(options)
    else:
        _serve_http(options, access)
    return 0


def _serve_stdio(options: argparse.Namespace) -> None:
    with ExitStack() as at_end:
        with redirect_stdout(sys.stderr):  # stdout is for the protocol alone; what serves it does so by itself
            from kg_retrievers.serving.mcp.transports import run_stdio  # an extra, which the help does not need

            server = at_end.enter_context(_open_server(options))
        run_stdio(server)


def _serve_http(options: argparse.Namespace, access: Access) -> None:
    from kg_retrievers.serving.listening import address_of, listen, run_server
    from kg_retrievers.serving.mcp.transports import PATH, http_app

    port = PORT if options.port is None else options.port
    with listen(options.host or HOST, port) as listening, _open_server(options) as server:
        address = address_of(listening).rstrip("/") + PATH
        run_server(http_app(server, access), listening, lambda: note(f"MCP at {address}; Ctrl-C ends it"))


@contextmanager
def _open_server(options: argparse.Namespace) -> Iterator[GraphServer]:
    """Open a server."""
    from kg_retrievers.serving.mcp.server import GraphServer

    with open_service(options) as service:
        yield GraphServer(service)


def _access(options: argparse.Namespace) -> Access | None:
    """Return who may ask over HTTP; None on stdio."""
    if options.http:
        return Access.of_binding(options.host or HOST, read_token(options.token_file), [HEALTH_PATH])
    given = {"--host": options.host, "--port": options.port, "--token-file": options.token_file}
    strange = [flag for flag, value in given.items() if value is not None]
    if strange:
        raise InvalidArgumentError(f"{', '.join(strange)}: for HTTP alone. Give --http, too, or leave it out.")
    return None
