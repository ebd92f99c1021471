"""Whether a vector store holds the names of a graph that stays in its database."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from kg_retrievers.cli.database import TIMEOUT
from kg_retrievers.cli.graph_command import index_command
from kg_retrievers.errors import StaleIndexError
from kg_retrievers.graph.values import read_value

if TYPE_CHECKING:
    from kg_retrievers.database.executor import Executor
    from kg_retrievers.graph.parts import StoredEntity
    from kg_retrievers.index import GraphIndex
    from kg_retrievers.index.server_names import About, ServerNames, StoredName

#: How many relations, and facts of each, are looked at, to see whether a store holds the names of a graph.
SAMPLE = 5

#: How many names of a store are looked at, in each of `SAMPLE` directions.
NAMES = 16


def check_graph(
    names: ServerNames, about: About, index: GraphIndex, database: Executor, options: argparse.Namespace
) -> None:
    """Check that most entities of a graph have their names in a store, if it holds all names.

    Raises:
        StaleIndexError: If not.
    """
    if about.position is not None:
        check_names(names, database, options)
        return
    entities = _some_entities(index, database)
    found = names.written_as([entity.label for entity in entities])
    missing = [one for one in entities if not any(one.key in name.keys for name in found[one.label])]
    if 2 * len(missing) > len(entities):
        raise _of_another_graph(f"lacks names of {options.graph}, as {missing[0].label!r:.200}", options)


def check_names(names: ServerNames, database: Executor, options: argparse.Namespace) -> None:
    """Check that most names in a store are those of entities of a graph.

    Raises:
        StaleIndexError: If not.
    """
    stored = _some_names(names)
    keys = sorted({key for name in stored for key in name.keys})
    known = {entity.key for entity in database.describe(keys, timeout=TIMEOUT)} if keys else set()
    foreign = [name for name in stored if known.isdisjoint(name.keys)]
    if 2 * len(foreign) > len(stored):
        raise _of_another_graph(f"holds names of another graph, as {foreign[0].name!r:.200}", options)


def _of_another_graph(reason: str, options: argparse.Namespace) -> StaleIndexError:
    return StaleIndexError(
        f"{options.vectors} {reason}.",
        hint_shell="Name the options that it was loaded with, or load the names of this graph into another table or "
        f"collection: {index_command(options, 'ADDRESS')}",
    )


def _some_entities(index: GraphIndex, database: Executor) -> list[StoredEntity]:
    """Return heads of facts, which are no literals, and no values; other ends where there are none."""
    relations = list(index.graph.relations)
    relations = relations[:: max(1, len(relations) // SAMPLE)][:SAMPLE]
    facts = database.sample_facts(relations, SAMPLE, timeout=TIMEOUT).triples if relations else []
    ends = sorted({fact.head for fact in facts if read_value(fact.head) is None})
    ends = ends or sorted({end for fact in facts for end in (fact.head, fact.tail)})
    entities = database.describe(ends, timeout=TIMEOUT) if ends else []
    return [one for one in entities if read_value(one.label) is None] or entities


def _some_names(names: ServerNames) -> list[StoredName]:
    """Return names that lie in several directions; those that are no literals and no values, where there are some."""
    if (about := names.about) is None:
        return []
    axes = np.eye(min(SAMPLE, about.dimension), about.dimension, dtype=np.float32)
    stored = list({near.name.name: near.name for row in names.nearest(axes, NAMES) for near in row}.values())
    stored = [one for one in stored if read_value(one.name) is None] or stored
    return [one for one in stored if one.name not in one.keys] or stored
