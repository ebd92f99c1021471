"""The command `info`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from kg_retrievers.cli.load import read_graph
from kg_retrievers.cli.show import grid, show, table


def _range(least: str | None, greatest: str | None) -> str:
    return "" if least is None else f"{least} ... {greatest}"


def run(options: argparse.Namespace) -> int:
    """Show what is in a graph."""
    graph = read_graph(options)
    schema = graph.schema()
    counts = {"names": len(graph.names), "duplicates": graph.duplicates, "skipped": graph.skipped}
    examples = [graph.triple(position) for position in range(min(5, len(graph)))]
    if options.json:
        print(json.dumps(asdict(schema) | counts | {"examples": examples}), flush=True)
        return 0
    relations = [
        (
            row.relation,
            row.triples,
            ", ".join(row.head_types),
            ", ".join(row.tail_types),
            _range(row.least, row.greatest),
        )
        for row in schema.relations
    ]
    show(
        grid(
            ("Entities", schema.entities),
            ("Labels and aliases", counts["names"]),
            ("Triples", schema.triples),
            ("Repeated triples dropped", counts["duplicates"]),
            ("Malformed lines skipped", counts["skipped"]),
        ),
        table("Relations", ("relation", "triples", "head types", "tail types", "values"), relations),
        table("Types", ("type", "entities"), list(schema.types.items())),
        table("The first triples, by entity key", ("head", "relation", "tail"), examples),
    )
    return 0
