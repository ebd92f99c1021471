"""Bounds: columns that do not fit together are told by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.storage import bounds
from kg_retrievers.graph.storage.bounds import check_graph
from kg_retrievers.graph.storage.parts import OpenedPart

GRAPH = KnowledgeGraph.from_triples(
    [("Her", "directed by", "Spike Jonze"), ("Her", "starring", "Amy Adams"), ("Dune", "directed by", "Lynch")],
    aliases={"Her": ["She"]},
    types={"Her": ["film"], "Dune": ["film"]},
    relation_labels={"directed by": "director"},
)


def columns() -> dict[str, Array]:
    return {
        name: np.array(column) for name, column in GRAPH.to_part().columns.items() if isinstance(column, np.ndarray)
    }


def put(name: str, position: Any, value: Any) -> Callable[[dict[str, Array]], None]:
    def change(columns: dict[str, Array]) -> None:
        columns[name][position] = value

    return change


def shorten(name: str) -> Callable[[dict[str, Array]], None]:
    def change(columns: dict[str, Array]) -> None:
        columns[name] = columns[name][:-1]

    return change


def turn(name: str) -> Callable[[dict[str, Array]], None]:
    def change(columns: dict[str, Array]) -> None:
        columns[name] = columns[name][::-1].copy()

    return change


def test_a_graph_fits() -> None:
    check_graph(columns())
    check_graph({name: np.array(c) for name, c in KnowledgeGraph.from_triples([])._columns.items()})


@pytest.mark.parametrize("name", [name for name in columns() if not name.endswith(("hashes", "data"))])
def test_each_column_has_bounds(name: str) -> None:
    """No column is left out: one that is too short, or leads too far, is told by its name or that of its partner."""
    owner = name.removesuffix(".values").removesuffix(".indptr").removesuffix(".offsets").split(".")[0]
    damages = [shorten(name)]
    if len(columns()[name]):
        damages += [put(name, -1, np.iinfo(columns()[name].dtype).max), put(name, 0, -5)]
    for damage in damages:
        damaged = columns()
        damage(damaged)
        with pytest.raises(ValueError, match=f"^(adjacency|{owner}|triples)"):
            check_graph(damaged)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (put("entities.offsets", 2, 0), "entities.offsets does not ascend from 0 to"),
        (put("adjacency.labels", slice(0, 2), [2, 0]), "adjacency.labels does not ascend in each half of a row"),
        (put("adjacency.labels", 0, 3), "adjacency.labels does not ascend in each half of a row"),
        (put("adjacency.first_triples", 1, 1), "adjacency.labels does not ascend in each half of a row"),
        (put("adjacency.first_triples", slice(1, 5), 3), "adjacency.first_triples counts more triples than"),
        (put("adjacency.backward_triples", 1, 3), "backward_triples holds ids of nothing: wanted 0 to 2"),
        (put("labels", 0, -1), "labels holds ids of nothing: wanted 0 to 5"),
        (shorten("names.hashes"), "names.offsets has the shape"),
        (shorten("names.data"), "names.offsets does not ascend"),
        (turn("name_entities.indptr"), "name_entities.indptr does not ascend"),
    ],
)
def test_what_is_told(damage: Callable[[dict[str, Array]], None], words: str) -> None:
    damaged = columns()
    damage(damaged)
    with pytest.raises(ValueError, match=words):
        check_graph(damaged)


@pytest.mark.parametrize("name", columns())
@pytest.mark.parametrize(
    "change",
    [
        lambda column: column.astype(np.float64),
        lambda column: column.astype(column.dtype.newbyteorder() if column.itemsize > 1 else np.int8),
        lambda column: np.stack([column, column], axis=1),
        lambda column: np.zeros((), column.dtype),
    ],
    ids=["floats", "byte order", "2D", "0D"],
)
def test_columns_of_other_types_are_refused(name: str, change: Callable[[Array], Array]) -> None:
    damaged = columns()
    damaged[name] = change(damaged[name])
    with pytest.raises(GraphLoadError, match=f"{name} is .* of shape .*, wanted 1D of"):
        KnowledgeGraph.from_part("films.graph", OpenedPart(damaged, dict(GRAPH.to_part().meta)))


def test_ids_of_relations_are_as_many_as_relations() -> None:
    damaged = columns()
    for part in ("offsets", "data", "hashes", "order"):
        damaged[f"relation_ids.{part}"] = damaged[f"names.{part}"]
    with pytest.raises(ValueError, match=r"relation_ids.hashes has the shape \(6,\), wanted \(2,\)"):
        check_graph(damaged)


def test_rows_are_checked_where_labels_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = columns()
    damaged["adjacency.labels"] = damaged["adjacency.labels"].astype(np.int64)
    damaged["adjacency.first_triples"][1:] = 3
    monkeypatch.setattr(bounds, "BOUNDED", damaged["adjacency.labels"].nbytes - 1)
    with pytest.raises(ValueError, match="first_triples counts more triples than"):
        check_graph(damaged)
