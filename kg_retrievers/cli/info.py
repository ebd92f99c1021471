"""The command `info`: what was understood of a graph, and what is in it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from kg_retrievers.cli.connected_info import describe
from kg_retrievers.cli.connection import check_connection, is_connected
from kg_retrievers.cli.graph_files import on_shell
from kg_retrievers.cli.load import read_graph, verify_folder
from kg_retrievers.cli.show import counted, grid, show, table

if TYPE_CHECKING:
    from kg_retrievers.graph import KnowledgeGraph, Triple
    from kg_retrievers.graph.schema import RelationSchema, Schema

#: How many triples are shown as examples.
EXAMPLES = 5

#: How many types are shown of the heads, or the tails, of a relation.
TYPES_SHOWN = 5


def run(options: argparse.Namespace) -> int:
    """Show what was understood of a graph, and what is in it."""
    verified = verify_folder(options.graph) if options.verify else None
    check_connection(options)
    if is_connected(options):
        return describe(options)
    graph = read_graph(options)
    schema = graph.schema()
    if options.json:
        about = _described(graph, schema) | ({} if verified is None else {"verified_bytes": verified})
        print(json.dumps(about), flush=True)
        return 0
    show(
        _understood(graph),
        *_left_out(graph),
        _counts(graph, schema, verified),
        _relations(graph, schema),
        *_frequent("Types", ("type", "entities"), schema.types),
        *_frequent("Datatypes and languages of literals", ("datatype", "literals"), schema.datatypes),
        *_frequent("Sources", ("source", "triples"), schema.sources),
        *_prefixes(graph),
        table(
            "The first triples", ("head", "relation", "tail"), [_named(graph, triple) for triple in _examples(graph)]
        ),
    )
    return 0


def _described(graph: KnowledgeGraph, schema: Schema) -> dict[str, Any]:
    """Return all that is known, for programs."""
    relations = [asdict(row) | {"id": graph.relation_id(row.relation)} for row in schema.relations]
    return {
        **graph.reading.to_dict(),
        **asdict(schema),
        "relations": relations,
        "names": len(graph.names),
        "duplicates": graph.duplicates,
        "skipped": graph.skipped,
        "text_relations": list(graph.text_relations),
        "prefixes": graph.prefixes,
        "examples": _examples(graph),
    }


def _examples(graph: KnowledgeGraph) -> list[Triple]:
    return [graph.triple(id) for id in range(min(EXAMPLES, len(graph)))]


def _named(graph: KnowledgeGraph, triple: Triple) -> tuple[str, str, str]:
    """Return a triple with the labels of its ends, and their keys behind them where these differ."""
    head, tail = (key if (label := graph.label(key)) == key else f"{label} [{key}]" for key in (triple[0], triple[2]))
    return head, triple.relation, tail


def _understood(graph: KnowledgeGraph) -> RenderableType:
    """Lay out the format, and what each part of the source was taken for."""
    rows: list[tuple[str, str | int]] = [
        (f"{what[:1].upper()}{what[1:]}", how) for what, how in sorted(graph.reading.understood.items())
    ]
    if graph.text_relations:
        rows.append(("Texts, not values", ", ".join(graph.text_relations)))
    if changes := graph.reading.changes:
        added, times = counted(changes["added"], "fact"), counted(changes["times"], "change")
        how = f"{added} added and {changes['removed']:,} removed, in {times}"
        rows.append(("Changed since it was read", how))
    return grid(("Format", graph.reading.format or "not recorded"), *rows)


def _left_out(graph: KnowledgeGraph) -> Iterator[RenderableType]:
    """Lay out what was left out, and how many of each."""
    left_out = graph.reading.left_out
    if left_out:
        yield table("Left out", ("what", "how many"), [(on_shell(what), count) for what, count in _by_count(left_out)])


def _counts(graph: KnowledgeGraph, schema: Schema, verified: int | None) -> RenderableType:
    rows: list[tuple[str, str | int]] = [
        ("Entities", schema.entities),
        ("Labels and aliases", len(graph.names)),
        ("Relations", len(graph.relations)),
        ("Types", len(graph.types)),
        ("Triples", schema.triples),
        ("Repeated triples dropped", graph.duplicates),
        ("Malformed lines skipped", graph.skipped),
    ]
    if verified is not None:
        rows.append(("Verified", f"{verified:,} bytes, all as they were saved"))
    return grid(("", ""), *rows)


def _relations(graph: KnowledgeGraph, schema: Schema) -> RenderableType:
    """Lay out the relations, the most frequent first; with their ids where these differ from the names."""
    columns = ["relation", "triples", "head types", "tail types", "values"]
    rows = [_relation(row) for row in schema.relations]
    if graph.relation_ids is None:
        return table("Relations", columns, rows)
    named = [(row[0], graph.relation_id(row[0]), *row[1:]) for row in rows]
    return table("Relations", [columns[0], "in the source", *columns[1:]], named)


def _relation(row: RelationSchema) -> tuple[str, int, str, str, str]:
    values = "" if row.least is None else f"{row.least} ... {row.greatest}"
    return row.relation, row.triples, _listed(row.head_types), _listed(row.tail_types), values


def _listed(types: Sequence[str]) -> str:
    """Return the first of some types, and how many more there are."""
    more = len(types) - TYPES_SHOWN
    return ", ".join(types[:TYPES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _frequent(title: str, columns: tuple[str, str], counts: Mapping[str, int]) -> Iterator[RenderableType]:
    if counts:
        yield table(title, columns, _by_count(counts))


def _by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _prefixes(graph: KnowledgeGraph) -> Iterator[RenderableType]:
    if graph.prefixes:
        yield table("Prefixes", ("prefix", "IRI"), sorted(graph.prefixes.items()))
