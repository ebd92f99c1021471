"""A property graph of 500 nodes, as files of neo4j-admin, and what writes it into databases."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

#: The types of the properties of each label and relationship type, as neo4j-admin names them.
PROPERTIES = {
    "Film": {"name": "string", "release_year": "int", "premiere": "date", "genres": "string[]", "seen": "boolean"},
    "Person": {"name": "string", "aliases": "string[]", "height": "double", "born": "date"},
    "Studio": {"title": "string", "founded": "int"},
    "ACTED_IN": {"role": "string", "scenes": "int"},
    "WORKS_FOR": {"valid_from": "date", "valid_to": "date", "posts": "string[]"},
    "DIRECTED": {},
    "MADE_BY": {"budget": "double"},
}
ENDS = {
    "ACTED_IN": ("Person", "Film"),
    "WORKS_FOR": ("Person", "Studio"),
    "DIRECTED": ("Person", "Film"),
    "MADE_BY": ("Film", "Studio"),
}

ROLES = ["the pilot", "a thief", "Neo", "the mayor"]
POSTS = ["cook", "clerk"]

#: The types of LadybugDB.
_TYPES = {"string": "STRING", "int": "INT64", "date": "DATE", "boolean": "BOOLEAN", "double": "DOUBLE"}


class PropertyGraph(NamedTuple):
    """Nodes by integer keys, each with its label and properties, and relationships with their properties."""

    nodes: dict[int, tuple[str, dict[str, Any]]]
    relationships: list[tuple[int, str, int, dict[str, Any]]]

    def named(self, label: str) -> list[str]:
        """The names of the nodes of a label."""
        return [said.get("name") or said["title"] for of, said in self.nodes.values() if of == label]


def property_graph(seed: int = 0) -> PropertyGraph:
    """Make a graph of 500 nodes: some lack properties, some relationships are there twice with other properties."""
    choose = random.Random(seed)
    names = _names(choose)
    nodes = {100_000 + 7 * place: _node(choose, next(names), place) for place in range(500)}
    of = {label: [key for key, (its, _) in nodes.items() if its == label] for label in ("Film", "Person", "Studio")}
    relationships = []
    for type, (head, tail) in ENDS.items():
        for _ in range(400):
            start, end = choose.choice(of[head]), choose.choice(of[tail])
            for _ in range(choose.choice([1, 1, 2])):
                relationships.append((start, type, end, _some(choose, _said(choose, type))))
    return PropertyGraph(nodes, relationships)


def _names(choose: random.Random) -> Iterator[str]:
    syllables = ["bra", "kel", "mor", "tis", "vun", "zel", "dar", "fio", "gub", "hex"]
    words = [a + b + c for a in syllables for b in syllables for c in syllables]
    choose.shuffle(words)
    return (f"{one.title()} {other.title()}" for one, other in zip(words[::2], words[1::2], strict=True))


def _node(choose: random.Random, name: str, place: int) -> tuple[str, dict[str, Any]]:
    label = "Film" if place < 200 else "Person" if place < 450 else "Studio"
    said = _some(choose, _said(choose, label))
    return label, {"title" if label == "Studio" else "name": name, **said}


def _some(choose: random.Random, said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if choose.random() < 0.9}


def _said(choose: random.Random, of: str) -> dict[str, Any]:
    day = date(1950, 1, 1) + timedelta(choose.randrange(20_000))
    genres = choose.sample(["noir", "western", "musical", "drama"], choose.randint(1, 3))
    by_kind: dict[str, dict[str, Any]] = {
        "Film": {"release_year": day.year, "premiere": day, "genres": genres, "seen": choose.random() < 0.5},
        "Person": {
            "aliases": [f"Alias {choose.randrange(10**6)}"],
            "height": choose.randrange(150, 200) / 100,
            "born": day,
        },
        "Studio": {"founded": day.year},
        "ACTED_IN": {"role": choose.choice(ROLES), "scenes": choose.randrange(90)},
        "WORKS_FOR": {"valid_from": day, "valid_to": day + timedelta(900), "posts": choose.sample(POSTS, 2)},
        "DIRECTED": {},
        "MADE_BY": {"budget": choose.randrange(100) / 4},
    }
    return by_kind[of]


def write_files(graph: PropertyGraph, folder: Path) -> None:
    """Write the files that neo4j-admin imports."""
    for of, types in PROPERTIES.items():
        with open(folder / f"{of}.csv", "w", encoding="utf-8", newline="") as lines:
            writer = csv.writer(lines)
            ends = [":START_ID", ":END_ID", ":TYPE"] if of in ENDS else ["id:ID", ":LABEL"]
            writer.writerow([*ends, *(f"{name}:{type}" for name, type in types.items())])
            if of in ENDS:
                rows = [([start, end, type], said) for start, type, end, said in graph.relationships if type == of]
            else:
                rows = [([key, label], said) for key, (label, said) in graph.nodes.items() if label == of]
            writer.writerows([*first, *(_cell(said.get(name)) for name in types)] for first, said in rows)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ";".join(value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def write_cypher(graph: PropertyGraph, write: Callable[[str, dict[str, Any]], Any], *, tables: bool) -> None:
    """Write the graph by queries with parameters, of which `rows` is a list.

    Args:
        graph: The graph.
        write: Runs a query.
        tables: Whether the database has tables, as LadybugDB.
    """
    for of, types in PROPERTIES.items() if tables else ():
        columns = "".join(
            f", {name} {_TYPES[type.removesuffix('[]')]}{type[-2:] * type.endswith('[]')}"
            for name, type in types.items()
        )
        kind = f"REL TABLE {of}(FROM {' TO '.join(ENDS[of])}" if of in ENDS else f"NODE TABLE {of}(id INT64 PRIMARY KEY"
        write(f"CREATE {kind}{columns})", {})
    if tables:
        write("BEGIN TRANSACTION", {})
    for key, (label, said) in graph.nodes.items():
        write(f"CREATE (:{label} {{id: $id{_set(said)}}})", {"id": key, **said})
    for start, type, end, said in graph.relationships:
        head, tail = ENDS[type]
        match = f"MATCH (a:{head}), (b:{tail}) WHERE a.id = $head AND b.id = $tail"
        write(f"{match} CREATE (a)-[:{type} {{{_set(said)[2:]}}}]->(b)", {"head": start, "tail": end, **said})


def _set(said: dict[str, Any]) -> str:
    return "".join(f", {name}: ${name}" for name in said)
