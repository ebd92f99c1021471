"""The commands `serve` and `mcp`."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated

import kg_retrievers
from kg_retrievers.cli import options
from kg_retrievers.cli.options import flag, option
from kg_retrievers.cli.show import note, status
from kg_retrievers.cli.sources import Source, check_database, query_database, query_place, read_index
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.access import HEALTH_PATH, Access, read_token
from kg_retrievers.serving.loading import choose_method, load_llm, read_models

if TYPE_CHECKING:
    from kg_retrievers.serving.service import GraphService

#: The addresses on which the servers listen by default.
HOST, PAGE_PORT, MCP_PORT = "127.0.0.1", 8000, 8765

_SERVER = "The server"


@dataclass(frozen=True)
class Listening:
    """The address of a server, and who may ask it."""

    host: Annotated[str | None, option("ADDRESS", f"Default: {HOST}. Another one takes a token.", panel=_SERVER)] = None
    port: Annotated[
        int | None,
        option("N", f"0 for a free one (default: {PAGE_PORT}, MCP {MCP_PORT}).", min=0, max=65_535, panel=_SERVER),
    ] = None
    token_file: Annotated[
        str | None, option("FILE", "Tokens, with a view each (or in KG_RETRIEVERS_TOKEN).", panel=_SERVER)
    ] = None

    def access(self, open_paths: Iterable[str]) -> Access:
        """Return who may ask, except at open paths."""
        return Access.of_binding(self.host or HOST, read_token(self.token_file), open_paths)

    def bind(self, default_port: int) -> socket:
        """Return a socket at the given port, or else at the default one."""
        from kg_retrievers.serving.listening import listen

        return listen(self.host or HOST, default_port if self.port is None else self.port)


def serve(
    source: Source,
    given: options.Given,
    listening: Listening,
    method: options.Method = None,
    opens: Annotated[bool, flag("--open", "Open it in the browser.", _SERVER)] = False,
) -> int:
    """Open a page in the browser that asks a graph.

    Example: kg-retrievers serve films.index --open
    """
    from kg_retrievers.serving.listening import address_of, run_server
    from kg_retrievers.serving.web.app import OPEN_PATHS, make_app  # an extra, which the help does not need

    access = listening.access(OPEN_PATHS)
    with listening.bind(PAGE_PORT) as bound, _opened(source, given, method) as service:
        shown = address_of(bound)

        def ready() -> None:
            note(f"{shown} answers{', with a token' if access.tokens else ''}; Ctrl-C ends it")
            if opens:
                webbrowser.open(shown)

        run_server(make_app(service, name=Path(source.place).name or source.place, access=access), bound, ready)
    return 0


def mcp(
    source: Source,
    given: options.Given,
    listening: Listening,
    method: options.Method = None,
    http: Annotated[bool, flag("--http", "Listen for HTTP at the path /mcp, not on stdin.", _SERVER)] = False,
) -> int:
    """Serve a graph to agents over MCP, the Model Context Protocol, on stdin and stdout.

    Example: kg-retrievers mcp films.index
    """
    if not http:
        if listening != Listening():
            raise InvalidArgumentError("--host, --port and --token-file are for HTTP alone. Give --http, too.")
        with ExitStack() as at_end:
            with redirect_stdout(sys.stderr):  # stdout is for the protocol alone, and its server writes there itself
                # An extra, which the help does not need.
                from kg_retrievers.serving.mcp.server import GraphServer, run_stdio

                server = GraphServer(at_end.enter_context(_opened(source, given, method)))
            run_stdio(server)
        return 0
    from kg_retrievers.serving.listening import address_of, run_server
    from kg_retrievers.serving.mcp.server import PATH, http_app

    access = listening.access([HEALTH_PATH])
    with listening.bind(MCP_PORT) as bound, _opened(source, given, method) as service:
        shown = address_of(bound).rstrip("/") + PATH
        app = http_app(service, access)
        run_server(app, bound, lambda: note(f"MCP at {shown}; Ctrl-C ends it"))
    return 0


@contextmanager
def _opened(source: Source, given: options.Given, method: str | None) -> Iterator[GraphService]:
    """Open the service that the options describe; close its database at the end."""
    from kg_retrievers.serving.service import GraphService  # loads numpy and LangChain, which the help does not need

    if given.examples and source.reading.view_arguments:
        raise InvalidArgumentError("--examples may name entities that --view and --as-of hide. Leave out either.")
    examples = kg_retrievers.read_questions(given.examples) if given.examples else None
    with status("reading the trained models"):
        models = read_models(given.model)
    check_database(choose_method(method, {} if method else models), given.database)
    with status("loading the language model"):
        llm = load_llm(given.llm)
    index = read_index(source, given.database)
    with query_database(source, given.database, index) as executor:
        yield GraphService(
            index,
            llm=llm,
            examples=examples,
            models=models,
            default_method=method,
            executor=executor,
            runs_queries=query_place(source, given.database) is not None,
            preset=given.preset,
        )
