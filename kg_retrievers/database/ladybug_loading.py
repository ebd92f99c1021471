"""Loads a graph into LadybugDB, one table for all nodes and one for each relation, and reads the schema."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kg_retrievers.database.executor import Fetch
from kg_retrievers.database.ladybug_process import Opening, ProcessSession
from kg_retrievers.database.ladybug_worker import SessionError
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType, backticked, quoted
from kg_retrievers.deadline import check_deadline
from kg_retrievers.errors import DatabaseUnavailableError
from kg_retrievers.file_writing import raise_write_errors
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.parts import TIMEOUT

#: The node table of all entities.
ENTITY = "Entity"

#: Characters that a table's name cannot have: a dot separates databases, the others are refused in queries.
_UNFIT = re.compile(r"[.\\$`\x00-\x1f\x7f]")

#: Read by one thread, since only so line breaks in quotes are read as they are.
_CSV = "(PARALLEL=FALSE, HEADER=FALSE, AUTO_DETECT=FALSE, DELIM=',', QUOTE='\"', ESCAPE='\"')"


def load_graph(execute: Callable[[str], Any], graph: KnowledgeGraph, folder: Path) -> None:
    """Load a graph into an empty database.

    Entities become nodes `(:Entity {key, label, types, aliases})`, each relation a relationship type of its name. Where
    LadybugDB cannot have that name, as with a dot in it or two that differ only by case, the type gets a similar name,
    and the comment of its table holds the relation. Datatypes, sources, ids of relations, text relations and prefixes
    have no place in it: see `lost_parts`.

    Args:
        execute: Runs a statement.
        graph: The graph.
        folder: An empty folder for temporary files.
    """
    separator = _separator([*graph.types, *graph.names])
    lists = ", ".join(
        f"CASE WHEN {list} = '' THEN CAST([] AS STRING[]) ELSE string_split({list}, {quoted(separator)}) END"
        for list in ("types", "aliases")
    )
    columns = "key STRING, label STRING, types STRING, aliases STRING"
    file = folder / "rows.csv"
    execute(f"CREATE NODE TABLE {ENTITY}(key STRING PRIMARY KEY, label STRING, types STRING[], aliases STRING[])")
    keys = list(graph.entities)
    names = list(graph.names)
    labels = [names[id] for id in graph.labels.tolist()]
    rows = (
        (key, label, separator.join(graph.types_of(key)), separator.join(graph.aliases(key)))
        for key, label in zip(keys, labels, strict=True)
    )
    _write(file, rows)
    execute(f"COPY {ENTITY} FROM (LOAD WITH HEADERS ({columns}) FROM {quoted(file)} {_CSV} RETURN key, label, {lists})")
    heads, relations, tails = graph.edges[:].T
    order = np.argsort(relations, kind="stable")
    starts = np.searchsorted(relations[order], np.arange(len(graph.relations) + 1))
    for id, (relation, name) in enumerate(type_names(graph.relations).items()):
        execute(f"CREATE REL TABLE {backticked(name)}(FROM {ENTITY} TO {ENTITY})")
        if name != relation:
            execute(f"COMMENT ON TABLE {backticked(name)} IS {quoted(json.dumps({'relation': relation}))}")
        edges = order[starts[id] : starts[id + 1]]
        _write(file, ((keys[head], keys[tail]) for head, tail in zip(heads[edges], tails[edges], strict=True)))
        execute(f"COPY {backticked(name)} FROM {quoted(file)} {_CSV}")


def lost_parts(graph: KnowledgeGraph) -> list[str]:
    """Return what a graph has and a database of `load_graph` lacks."""
    parts = {
        "datatypes of literals": graph.datatype_names,
        "sources of facts": graph.source_names,
        "ids of relations": graph.relation_ids,
        "text relations": graph.text_relations,
        "prefixes": graph.prefixes,
    }
    return [what for what, part in parts.items() if part]


def write_database(graph: KnowledgeGraph, file: Path) -> None:
    """Write a graph into a new database, by LadybugDB in a process of its own.

    Args:
        graph: The graph.
        file: The file of the database, in an empty folder, which is removed if this process ends before it is written.

    Raises:
        DatabaseUnavailableError: If it cannot be written.
        KGRetrieversError: The error of the deadline, if it comes first.
    """
    try:
        process = ProcessSession(Opening(file, None, str(file.parent), read_only=False))
        try:

            def execute(statement: str) -> None:
                process.execute(statement, {}, 0)

            load_graph(execute, graph, file.parent)
            execute("CHECKPOINT")
            process.finish()
        finally:
            process.close()
    except SessionError as cause:
        check_deadline()  # its error names the limit that ended the process
        raise DatabaseUnavailableError(
            f"LadybugExecutor.from_graph: the graph cannot be loaded: {cause.reason} Is there room on the disk?"
        ) from cause


def type_names(relations: Iterable[str]) -> dict[str, str]:
    """Return a name for the table of each relation: the relation itself where that can be, else one that is free.

    Example:
        >>> type_names(["film.genre", "starring", "film_genre", "Starring"])
        {'film.genre': 'film_genre_2', 'starring': 'starring', 'film_genre': 'film_genre', 'Starring': 'Starring_2'}
    """
    relations = list(relations)
    names = dict.fromkeys(relations, "")
    taken = {ENTITY.casefold()}
    for relation in sorted(relations, key=lambda relation: _UNFIT.search(relation) is not None):  # fitting ones first
        plain = name = _UNFIT.sub("_", relation)
        count = 1
        while name.casefold() in taken:
            count += 1
            name = f"{plain}_{count}"
        taken.add(name.casefold())
        names[relation] = name
    return names


def _separator(texts: Sequence[str]) -> str:
    """Return the first of the control characters, and then of all characters, that occurs in none of the texts."""
    used = set().union(*texts)
    return next(character for character in map(chr, range(1, 0x110000)) if character not in used)


def _write(file: Path, rows: Iterable[Sequence[str]]) -> None:
    with raise_write_errors(file), open(file, "w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)


#: The most tables, and columns of a table.
MOST = 1_000_000


def read_schema(fetch: Fetch, key: str, label: str | None) -> tuple[DatabaseSchema, dict[str, NodeLabel]]:
    """Read tables, their properties and what they join.

    Args:
        fetch: Runs a query.
        key: The property that holds keys; the primary key in tables without it.
        label: The property that holds the label of an entity.

    Returns:
        The schema, and the node labels by the id of their table, as text.
    """

    def read(query: str) -> Sequence[Sequence[Any]]:
        return fetch(query, {}, MOST, TIMEOUT).rows

    tables: dict[str, NodeLabel] = {}
    relations = []
    for id, name, kind, comment in read("CALL show_tables() RETURN id, name, type, comment ORDER BY name"):
        columns = read(f"CALL table_info({quoted(name)}) RETURN *")
        properties = {column[1]: column[2] for column in columns}
        if kind == "NODE":
            primary = next(column[1] for column in columns if column[4])
            tables[str(id)] = NodeLabel(name, key if key in properties else primary, properties)
        elif kind == "REL":
            ends = read(f"CALL show_connection({quoted(name)}) RETURN *")
            pairs = tuple(sorted((row[0], row[1]) for row in ends))
            relations.append(RelationType(name, pairs, properties, _relation_in(comment)))
    held = [properties for table in tables.values() for properties in table.properties.items()]
    schema = DatabaseSchema(
        tuple(tables.values()),
        tuple(relations),
        label if label in {name for name, _ in held} else None,
        "types" if ("types", "STRING[]") in held else None,
        "aliases" if ("aliases", "STRING[]") in held else None,
        type_labels=_types([table for table in tables.values() if table.properties.get("types") == "STRING[]"], read),
    )
    return schema, tables


def _types(typed: Sequence[NodeLabel], read: Callable[[str], Sequence[Sequence[Any]]]) -> tuple[str, ...]:
    """Return the types of entities, sorted; none where several tables have types: a type would not say which."""
    if len(typed) != 1:
        return ()
    rows = read(f"MATCH (n:{backticked(typed[0].name)}) UNWIND n.types AS type RETURN DISTINCT type ORDER BY type")
    return tuple(type for (type,) in rows)


def _relation_in(comment: str) -> str:
    """Return the relation that `load_graph` wrote into the comment of a table; "" where it is the table's name."""
    try:
        return str(json.loads(comment)["relation"])
    except (ValueError, KeyError, TypeError):
        return ""
