"""Graph databases that options name: the URI of a Neo4j database, or a file of LadybugDB."""

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
from kg_retrievers.serving.loading import is_database, is_database_file, is_uri

if TYPE_CHECKING:
    from kg_retrievers.database.executor import DatabaseExecutor
    from kg_retrievers.graph import KnowledgeGraph

#: The schemes of a Neo4j database's URI.
SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")

#: Silences the driver's warnings: they address authors of queries, and errors are raised anyway.
SILENCE = logging.NullHandler()


def open_database(where: str, options: argparse.Namespace) -> DatabaseExecutor:
    """Open an existing database.

    Raises:
        InvalidArgumentError: If --key is given twice, or by label for LadybugDB.
        MissingExtraError: If its extra is not installed.
        DatabaseError: If it is a file that cannot be opened.
    """
    of_graph = is_uri(options.graph) and not is_uri(where)  # --key belongs to GRAPH, from which the file was made
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


#: From so many triples on, `--database` is named to those who load a graph into a database that is gone afterwards.
TOLD_TRIPLES = 100_000


class QueryDatabase:
    """The database for queries: opened or made from the graph on first use, and closed at the end.

    Args:
        options: The options of a command with `--database`.
        graph: The graph.
    """

    def __init__(self, options: argparse.Namespace, graph: KnowledgeGraph) -> None:
        """Find the URI or file of the database; None stands for a database in memory."""
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
            InvalidArgumentError: If it lacks the keys that `--key` names.
            MissingExtraError: If its extra is not installed.
            DatabaseError: If it cannot be opened, reached or made.
        """
        if self.where is None or not (is_uri(self.where) or Path(self.where).exists()):
            with status("loading the graph into a database"):
                made = kg_retrievers.LadybugExecutor.from_graph(self._graph, self.where)
            if self.where is not None:
                note(f"the graph was loaded into the new database {self.where}, which is there for the next time")
            elif len(self._graph) >= TOLD_TRIPLES:
                note("the graph is loaded into a database each time; one that stays: --database FILE")
            return self._at_end.enter_context(made)
        opened = self._at_end.enter_context(open_database(self.where, self._options))
        schema = opened.schema()  # reports a mistake before the first question
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
