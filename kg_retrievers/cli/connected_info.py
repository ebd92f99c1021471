"""The command `info` for a graph that stays in its database: what a few cheap queries tell."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from kg_retrievers.cli.connection import load_chosen_embeddings, loaded_names, open_names
from kg_retrievers.cli.database import TIMEOUT, open_database
from kg_retrievers.cli.load import check_database_options
from kg_retrievers.cli.show import grid, show, status, table
from kg_retrievers.errors import DatabaseTimeoutError, QuerySafetyError

if TYPE_CHECKING:
    from kg_retrievers.database.executor import Executor
    from kg_retrievers.index.server_names import About

#: How many facts are shown, one of each relation, and how many relations and labels to a person.
EXAMPLES, SHOWN = 5, 100


def describe(options: argparse.Namespace) -> int:
    """Show what a database holds, and what a store says of its names.

    Raises:
        StaleIndexError: If the store is not there, or holds no names, those of another graph or of other embeddings.
    """
    from kg_retrievers.cli.same_graph import check_names  # loads numpy

    check_database_options(options)
    names = about = None
    if options.vectors is not None:
        names = open_names(options, load_chosen_embeddings(options))
        about = loaded_names(names, options)
    with status(f"asking {options.graph}"), closing(open_database(options.graph, options)) as database:
        if names is not None:
            check_names(names, database, options)
        told = _described(database)
    if about is not None:
        told["names"] = {"in": options.vectors, **asdict(about), "complete": about.position is None}
    if options.json:
        print(json.dumps({"graph": options.graph, "connected": True, **told}), flush=True)
        return 0
    show(_counts(options, told, about), *_lists(told))
    return 0


def _described(database: Executor) -> dict[str, Any]:
    """Return what is known, for programs; None stands for what is not cheap to count."""
    schema = database.schema()
    relations = database.relations(timeout=TIMEOUT)
    examples = database.sample_facts(relations[:EXAMPLES], 1, timeout=TIMEOUT).triples if relations else []
    return {
        "dialect": _language(database),
        "entities": _count_entities(database),
        "triples": database.count_facts(timeout=TIMEOUT),
        "relations": relations,
        "labels": [label.name for label in schema.labels],
        "types_in": schema.types,
        "sampled": schema.sampled,
        "examples": examples,
    }


def _language(database: Executor) -> str:
    """Return in which language a database is asked."""
    return "SPARQL" if database.dialect == "sparql" else "Cypher"


def _count_entities(database: Executor) -> int | None:
    """Count the nodes; graph databases keep their number, endpoints do not."""
    if database.dialect == "sparql" or not database.schema().labels:
        return None
    try:
        (count,) = database.run("MATCH (n) RETURN count(n) AS nodes", timeout=TIMEOUT).column("nodes")
    except (DatabaseTimeoutError, QuerySafetyError):  # of a database that cannot say whether a query only reads
        return None
    return int(count)


def _counts(options: argparse.Namespace, told: dict[str, Any], about: About | None) -> RenderableType:
    in_property = told["types_in"]
    rows: list[tuple[str, str]] = [
        ("Graph", f"{options.graph}, which is asked in {told['dialect']} and stays there"),
        ("Entities", _number(told["entities"])),
        ("Triples", _number(told["triples"])),
        ("Relations", _number(len(told["relations"]))),
        (
            "Types",
            _number(len(told["labels"])) if in_property is None else f"not counted, in the property {in_property}",
        ),
    ]
    if told["sampled"]:
        rows.append(("Sampled", "there may be more relations and types than these"))
    if about is not None:
        part = "" if about.position is None else ", not all: a load was broken off"
        rows.append(("Names", f"{about.count:,} in {options.vectors}{part}"))
        rows.append(("Embeddings", f"{about.embeddings}, {about.dimension} numbers"))
    return grid(*rows)


def _number(count: int | None) -> str:
    return "not counted" if count is None else f"{count:,}"


def _lists(told: dict[str, Any]) -> Iterator[RenderableType]:
    labels = "Types" if told["types_in"] is None else "Labels of nodes"
    for title, column in (("Relations", "relations"), (labels, "labels")):
        names = told[column]
        if names:
            more = f" (the first {SHOWN} of {len(names):,})" if len(names) > SHOWN else ""
            yield table(f"{title}{more}", (column.removesuffix("s"),), [(name,) for name in names[:SHOWN]])
    if told["examples"]:
        yield table("Some triples", ("head", "relation", "tail"), [tuple(fact) for fact in told["examples"]])
