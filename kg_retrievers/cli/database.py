"""Graph databases that options name: a Neo4j database, a SPARQL endpoint, or a file of LadybugDB."""

from __future__ import annotations

import argparse
import logging
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import kg_retrievers
from kg_retrievers.cli.graph_files import given_options
from kg_retrievers.cli.show import note, status
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.loading import is_database, is_database_file, is_endpoint, is_public, is_uri

if TYPE_CHECKING:
    from kg_retrievers.database.executor import Executor
    from kg_retrievers.index import GraphIndex

#: The schemes of a Neo4j database's URI.
SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")

#: Silences the driver's warnings: they address authors of queries, and errors are raised anyway.
SILENCE = logging.NullHandler()

#: The most seconds of one query about the whole graph.
TIMEOUT = 60.0

#: The options for reading RDF, by their arguments, that say as well how an endpoint is read.
OF_ENDPOINTS = frozenset(
    ("languages", "label_predicates", "alias_predicates", "type_predicates", "literals", "prefixes")
)


def open_database(where: str, options: argparse.Namespace) -> Executor:
    """Open an existing database.

    Raises:
        InvalidArgumentError: If --key is given twice, or by label for LadybugDB.
        MissingExtraError: If its extra is not installed.
        DatabaseError: If it is a file that cannot be opened.
    """
    if is_endpoint(where):
        return _open_endpoint(where, options)
    of_graph = is_uri(options.graph) and not is_uri(where)  # --key belongs to GRAPH, from which the file was made
    keys: dict[str, str] = {} if of_graph else dict(options.key)
    if "" in keys and len(options.key) > 1:
        raise InvalidArgumentError(
            "--key PROPERTY is for all nodes. Give it once, or --key LABEL=PROPERTY for each label."
        )
    given: dict[str, Any] = {"key": keys.get("", keys)} if keys else {}
    if is_uri(where):
        logging.getLogger("neo4j").addHandler(SILENCE)
        return kg_retrievers.Neo4jExecutor(where, database=options.database_name, explain=options.explain, **given)
    if keys and "" not in keys:
        raise InvalidArgumentError(
            f"{where}: LadybugDB has a primary key for each label, or --key PROPERTY for all. Leave out --key."
        )
    return kg_retrievers.LadybugExecutor(where, **given)


#: From so many triples on, `--database` is named to those who load a graph into a database that is gone afterwards.
TOLD_TRIPLES = 100_000


def _open_endpoint(where: str, options: argparse.Namespace) -> Executor:
    """Prepare the connection to a SPARQL endpoint, which is read as RDF is."""
    given = {option.argument: getattr(options, option.name) for option in given_options(options)}
    told: dict[str, Any] = {name: value for name, value in given.items() if name in OF_ENDPOINTS}
    if "prefixes" in told:
        told["prefixes"] = dict(told["prefixes"])
    if is_public(where):
        return kg_retrievers.SparqlExecutor(preset=where, **told)  # type: ignore[arg-type]  # it is the name of a preset
    scheme, _, rest = where.partition("://")
    return kg_retrievers.SparqlExecutor(f"{scheme.lower().removeprefix('sparql+')}://{rest}", **told)


class QueryDatabase:
    """The database for queries: opened or made from the graph on first use, and closed at the end.

    A connected index has a database of its own, which is closed as well.

    Args:
        options: The options of a command with `--database`.
        index: The indexed graph.
    """

    def __init__(self, options: argparse.Namespace, index: GraphIndex) -> None:
        """Find the URI or file of the database; None stands for a database in memory."""
        self.where: str | None = options.database
        if self.where is None and options.graph is not None and is_database(options.graph):
            self.where = options.graph
        self._options, self._index = options, index
        self._at_end = ExitStack()
        if index.is_connected:
            self._at_end.callback(connected_database(index).close)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the database."""
        self._at_end.close()

    @cached_property
    def executor(self) -> Executor:
        """The database.

        Raises:
            InvalidArgumentError: If it lacks the keys that `--key` names.
            MissingExtraError: If its extra is not installed.
            DatabaseError: If it cannot be opened, reached or made.
        """
        if self._index.is_connected:
            return connected_database(self._index)
        graph = self._index.graph
        if self.where is None or not (is_uri(self.where) or is_public(self.where) or Path(self.where).exists()):
            with status("loading the graph into a database"):
                made = kg_retrievers.LadybugExecutor.from_graph(graph, self.where)
            if self.where is not None:
                note(f"the graph was loaded into the new database {self.where}, which is there for the next time")
            elif len(graph) >= TOLD_TRIPLES:
                note("the graph is loaded into a database each time; one that stays: --database FILE")
            return self._at_end.enter_context(closing(made))
        opened = self._at_end.enter_context(closing(open_database(self.where, self._options)))
        schema = opened.schema()  # reports a mistake before the first question
        if is_database_file(self.where) and self.where != self._options.graph:
            facts = 0
            if schema.relations:
                (facts,) = opened.run("MATCH ()-[r]->() RETURN count(r) AS facts").column("facts")
            if facts not in (len(graph), len(graph) + graph.duplicates):
                note(
                    f"{self.where} holds {facts:,} facts and the graph {len(graph):,}: one of them is out of date. "
                    "Index the database again, or name a new file for the graph: --database ..."
                )
        return opened


def connected_database(index: GraphIndex) -> Executor:
    """Return the database of a connected index."""
    return cast(Executor, index.reader)
