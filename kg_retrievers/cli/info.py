"""The command `info`: what was understood of a graph, and what is in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import RenderableType

from kg_retrievers.cli.options import Connection, Embedded, Graph, Json, Reading, flag
from kg_retrievers.cli.show import counted, grid, show, status, table
from kg_retrievers.cli.sources import (
    TIMEOUT,
    Source,
    check_names,
    embeddings_of,
    loaded_names,
    open_database,
    open_names,
    read_graph,
)
from kg_retrievers.errors import DatabaseTimeoutError, InvalidArgumentError, QuerySafetyError

if TYPE_CHECKING:
    from kg_retrievers.database.executor import Executor
    from kg_retrievers.graph import KnowledgeGraph, Triple
    from kg_retrievers.graph.schema import RelationSchema, Schema

#: How many triples are shown as examples.
EXAMPLES = 5

#: How many types are shown of the heads, or the tails, of a relation.
TYPES_SHOWN = 5

#: How many relations and labels of a database are shown.
NAMES_SHOWN = 100

#: How the package writes in Python how to keep something, such as `literals="keep"` or `languages=[..., "*"]`.
_CHOICE = re.compile(r'(?P<argument>\w+)=(?P<value>None|"[^"]*"|\[[^]]*\])')
_LIMIT = re.compile(r"limits=Limits\((\w+=\w+)\)")
_IN_PYTHON_ALONE = re.compile(r" \(\w+=\(\)\)")


def info(
    graph: Graph,
    reading: Reading,
    embedded: Embedded,
    connection: Connection,
    verify: Annotated[bool, flag("--verify", "Compare a folder with its checksums.")] = False,
    as_json: Json = False,
) -> int:
    """Show what was understood of a graph, and what is in it.

    Example: kg-retrievers info films.csv --columns film,property,value
    """
    source = Source(graph, reading, embedded, connection)
    verified = _verify(graph) if verify else None
    source.check()
    if source.stays:
        return _describe_database(source, as_json)
    loaded = read_graph(source)
    schema = loaded.schema()
    if as_json:
        about = _described(loaded, schema) | ({} if verified is None else {"verified_bytes": verified})
        print(json.dumps(about), flush=True)
        return 0
    show(
        _understood(loaded),
        *_left_out(loaded),
        _counts(loaded, schema, verified),
        _relations(loaded, schema),
        *_frequent("Types", ("type", "entities"), schema.types),
        *_frequent("Datatypes and languages of literals", ("datatype", "literals"), schema.datatypes),
        *_frequent("Sources", ("source", "triples"), schema.sources),
        *_prefixes(loaded),
        table(
            "The first triples", ("head", "relation", "tail"), [_named(loaded, triple) for triple in _examples(loaded)]
        ),
    )
    return 0


def _verify(place: str) -> int:
    """Compare a folder with its checksums; return how many bytes were read."""
    if not Path(place).is_dir():
        raise InvalidArgumentError(f"--verify is for a folder of `index`, but {place} is none. Leave it out.")
    from kg_retrievers.graph.storage.parts import verify  # loads numpy

    with status(f"verifying {place}"):
        return verify(place)


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
        yield table("Left out", ("what", "how many"), [(_on_shell(what), count) for what, count in _by_count(left_out)])


def _on_shell(text: str) -> str:
    """Return how to keep something in the words of the shell.

    Example:
        >>> _on_shell('literals (literals="keep")'), _on_shell('names in other languages (languages=[..., "*"])')
        ('literals (--read literals=keep)', 'names in other languages (--read languages=*)')
        >>> _on_shell("statements of other graphs (graphs=None)"), _on_shell("classes (type_predicates=())")
        ('statements of other graphs (without --read graphs)', 'classes')
        >>> _on_shell("a long text (limits=Limits(cell_length=N))")
        'a long text (--read limits.cell_length=N)'
    """
    text = _LIMIT.sub(r"--read limits.\1", _IN_PYTHON_ALONE.sub("", text))
    return _CHOICE.sub(_choice_on_shell, text)


def _choice_on_shell(choice: re.Match[str]) -> str:
    if choice["argument"] == "limits":
        return choice[0]
    values = re.findall("[\"']([^\"']*)[\"']", choice["value"])
    name = choice["argument"]
    return " ".join(f"--read {name}={value}" for value in values) or f"without --read {name}"


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


# --- a graph that stays in its database -------------------------------------------------------------------------------


def _describe_database(source: Source, as_json: bool) -> int:
    """Show what a database holds, and what a store says of its names.

    Raises:
        StaleIndexError: If the store is not there, or holds no names, those of another graph or of other embeddings.
    """
    names = about = None
    vectors = source.connection.vectors
    if vectors is not None:
        names = open_names(source, embeddings_of(source))
        about = loaded_names(names, source)
    with status(f"asking {source.place}"), closing(open_database(source.place, source)) as database:
        if names is not None:
            check_names(names, database, source)
        told = _contents(database)
    if about is not None:
        told["names"] = {"in": vectors, **asdict(about), "complete": about.position is None}
    if as_json:
        print(json.dumps({"graph": source.place, "connected": True, **told}), flush=True)
        return 0
    in_property = told["types_in"]
    types = _number(len(told["labels"])) if in_property is None else f"not counted, in the property {in_property}"
    rows: list[tuple[str, str | int]] = [
        ("Graph", f"{source.place}, which is asked in {told['dialect']} and stays there"),
        ("Entities", _number(told["entities"])),
        ("Triples", _number(told["triples"])),
        ("Relations", _number(len(told["relations"]))),
        ("Types", types),
    ]
    if told["sampled"]:
        rows.append(("Sampled", "there may be more relations and types than these"))
    if about is not None:
        part = "" if about.position is None else ", not all: a load was broken off"
        rows.append(("Names", f"{about.count:,} in {vectors}{part}"))
        rows.append(("Embeddings", f"{about.embeddings}, {about.dimension} numbers"))
    show(grid(*rows), *_lists(told))
    return 0


def _contents(database: Executor) -> dict[str, Any]:
    """Return what is known, for programs; None stands for what is not cheap to count."""
    schema = database.schema()
    relations = database.relations(timeout=TIMEOUT)
    examples = database.sample_facts(relations[:EXAMPLES], 1, timeout=TIMEOUT).triples if relations else []
    return {
        "dialect": "SPARQL" if database.dialect == "sparql" else "Cypher",
        "entities": _count_entities(database),
        "triples": database.count_facts(timeout=TIMEOUT),
        "relations": relations,
        "labels": [label.name for label in schema.labels],
        "types_in": schema.types,
        "sampled": schema.sampled,
        "examples": examples,
    }


def _count_entities(database: Executor) -> int | None:
    """Count the nodes; graph databases keep their number, endpoints do not."""
    if database.dialect == "sparql" or not database.schema().labels:
        return None
    try:
        (count,) = database.run("MATCH (n) RETURN count(n) AS nodes", timeout=TIMEOUT).column("nodes")
    except (DatabaseTimeoutError, QuerySafetyError):  # of a database that cannot say whether a query only reads
        return None
    return int(count)


def _number(count: int | None) -> str:
    return "not counted" if count is None else f"{count:,}"


def _lists(told: dict[str, Any]) -> Iterator[RenderableType]:
    labels = "Types" if told["types_in"] is None else "Labels of nodes"
    for title, column in (("Relations", "relations"), (labels, "labels")):
        names = told[column]
        if names:
            more = f" (the first {NAMES_SHOWN} of {len(names):,})" if len(names) > NAMES_SHOWN else ""
            yield table(f"{title}{more}", (column.removesuffix("s"),), [(name,) for name in names[:NAMES_SHOWN]])
    if told["examples"]:
        yield table("Some triples", ("head", "relation", "tail"), [tuple(fact) for fact in told["examples"]])
