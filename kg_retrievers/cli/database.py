"""Graph databases by where they are: the URI of a Neo4j database, or a file of LadybugDB."""

from __future__ import annotations

import argparse
import logging
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import kg_retrievers
from kg_retrievers.cli.show import note, status
from kg_retrievers.errors import InvalidArgumentError

if TYPE_CHECKING:
    from kg_retrievers.database.executor import DatabaseExecutor
    from kg_retrievers.graph import KnowledgeGraph

#: How a file of LadybugDB begins; there are NULs behind it, which no text has.
MAGIC = b"LBUG"

#: How the URI of a Neo4j database begins.
SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")

#: The driver's warnings are for who writes queries by hand, and its errors are raised as well.
SILENCE = logging.NullHandler()


def is_uri(where: str) -> bool:
    """Whether this is a URI, be it one of Neo4j's or not."""
    return "://" in where


def is_database_file(where: str) -> bool:
    """Whether this is a file of LadybugDB."""
    try:
        if not Path(where).is_file():
            return False
        with open(where, "rb") as file:
            head = file.read(12)
    except OSError:
        return False  # who takes it for a text then says why it cannot be read
    return head.startswith(MAGIC) and b"\0" in head


def is_database(where: str) -> bool:
    """Whether this is a URI, or a file of LadybugDB."""
    return is_uri(where) or is_database_file(where)


def check_database_options(options: argparse.Namespace) -> None:
    """Check that what says how a database is read is given beside a database.

    Raises:
        InvalidArgumentError: If there is none that it is for.
    """
    places = [where for where in (options.graph, options.database) if where is not None]
    if options.database_name is not None and not any(map(is_uri, places)):
        raise InvalidArgumentError("--database-name is for a Neo4j database, as bolt://localhost:7687. Leave it out.")
    if options.key and options.database is None and not is_database(options.graph):
        raise InvalidArgumentError("--key is for a graph database, but none is given. Leave it out.")


def open_database(where: str, options: argparse.Namespace) -> DatabaseExecutor:
    """Open a database that is there.

    Raises:
        InvalidArgumentError: If --key is given twice, or by label for LadybugDB.
        MissingExtraError: If its extra is not installed.
        DatabaseError: If it is a file that cannot be opened.
    """
    of_graph = is_uri(options.graph) and not is_uri(where)  # where --key is for GRAPH, which a file was made of
    keys: dict[str, str] = {} if of_graph else dict(options.key)
    if "" in keys and len(options.key) > 1:
        raise InvalidArgumentError(
            "--key PROPERTY is for all nodes. Give it once, or --key LABEL=PROPERTY for each label."
        )
    given: dict[str, Any] = {"key": keys.get("", keys)} if keys else {}
    if is_uri(where):
        logging.getLogger("neo4j").addHandler(SILENCE)
        return kg_retrievers.Neo4jExecutor(where, database=options.database_name, **given)
    if keys and "" not in keys:
        raise InvalidArgumentError(
            f"{where}: LadybugDB has a primary key for each label, or --key PROPERTY for all. Leave out --key."
        )
    return kg_retrievers.LadybugExecutor(where, **given)


class QueryDatabase:
    """Where queries are run: opened, or made of the graph, when it is first needed, and closed at the end.

    Args:
        options: Those of a command that has `--database`.
        graph: The graph.
    """

    def __init__(self, options: argparse.Namespace, graph: KnowledgeGraph) -> None:
        """Find out where it is."""
        self.where: str | None = options.database
        if self.where is None and is_database(options.graph):
            self.where = options.graph
        self._options, self._graph = options, graph
        self._at_end = ExitStack()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the database."""
        self._at_end.close()

    @cached_property
    def executor(self) -> DatabaseExecutor:
        """The database.

        Raises:
            InvalidArgumentError: If it has not the keys that are named.
            MissingExtraError: If its extra is not installed.
            DatabaseError: If it cannot be opened, reached or made.
        """
        if self.where is None or not (is_uri(self.where) or Path(self.where).exists()):
            with status("loading the graph into a database"):
                made = kg_retrievers.LadybugExecutor.from_graph(self._graph, self.where)
            if self.where is not None:
                note(f"the graph was loaded into the new database {self.where}, which is there for the next time")
            return self._at_end.enter_context(made)
        opened = self._at_end.enter_context(open_database(self.where, self._options))
        schema = opened.schema()  # a mistake is reported before anything is asked
        if is_database_file(self.where) and self.where != self._options.graph:
            facts = 0
            if schema.relations:
                (facts,) = opened.run("MATCH ()-[r]->() RETURN count(r) AS facts").column("facts")
            if facts not in (len(self._graph), len(self._graph) + self._graph.duplicates):
                note(
                    f"{self.where} holds {facts:,} facts and the graph {len(self._graph):,}: one of them is out of "
                    "date. Index the database again, or name a new file for the graph: --database ..."
                )
        return opened
