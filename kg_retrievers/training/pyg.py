"""Graphs and evidence as `torch_geometric.data.Data` (extra `graph-prompt`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, StaleIndexError
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.verbalize import HoldsFacts, facts_of
from kg_retrievers.index import GraphIndex, check_at_hand

if TYPE_CHECKING:
    from torch_geometric.data import Data as Data


class VectorSource(Protocol):
    """Vectors of the entities and relations of a graph, as a `GraphIndex` has them."""

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph."""

    def entity_vectors(self, entities: Array) -> Array:
        """Return a row for each of these ids of entities: float32, shape (n, dimension)."""

    @property
    def relation_vectors(self) -> Array:
        """A row for each relation: float32, shape (relations, dimension)."""


def to_pyg(what: KnowledgeGraph | HoldsFacts | Iterable[HoldsFacts], index: VectorSource | None = None) -> Data:
    """Return a graph, or the facts in evidence, as one torch-geometric graph of n entities and m triples.

    - `edge_index`: int64, shape (2, m): positions of head and tail, in stored direction. Parallel edges and self-loops
      stay.
    - `edge_type`: int64, shape (m): ids of the relations; of evidence with an index only.
    - `x`, `edge_attr`: float32, shapes (n, dimension) and (m, dimension): the vectors of the entities' labels and of
      the triples' relations; with an index only.
    - `entities`, `labels`, `relations`: lists of texts: key and label of each node, relation of each edge.

    A graph keeps its stored order, and its entities without a triple are nodes too. Evidence has its entities in order
    of first occurrence, head before tail, and each triple once; of no triples, n and m are 0.

    Args:
        what: A knowledge graph, evidence, a Document of any retriever, a path, or several of the latter three. Answers
            that are in no triple are left out.
        index: A `GraphIndex` of the graph that the facts come from. Without it, evidence has the labels that Documents
            bring.

    Raises:
        InvalidArgumentError: If there is something else to convert, or an entity or relation is not in the graph of the
            index.
        StaleIndexError: If the index is of another graph.
        MissingExtraError: If torch-geometric is not installed.
    """
    _check_index(index)
    return _graph_data(what, index) if isinstance(what, KnowledgeGraph) else _facts_data(what, index)


def _facts_data(what: HoldsFacts | Iterable[HoldsFacts], index: VectorSource | None) -> Data:
    triples, labels = facts_of(what, "to_pyg", " Or hand in a KnowledgeGraph.")
    positions: dict[str, int] = {}
    ends = [
        (positions.setdefault(head, len(positions)), positions.setdefault(tail, len(positions)))
        for head, _, tail in triples
    ]
    relations = [relation for _, relation, _ in triples]
    found: dict[str, Array] = {}
    if index is not None:
        labels = {key: index.graph.label(key) for key in positions}
        types = _ids(index.graph.relations, relations, "relation")
        found = {"edge_type": types, **_vectors(index, _ids(index.graph.entities, positions, "entity"), types)}
    return _data(list(positions), [labels.get(key, key) for key in positions], relations, ends, found)


def _graph_data(graph: KnowledgeGraph, index: VectorSource | None) -> Data:
    if index is not None and index.graph.fingerprint != graph.fingerprint:
        raise StaleIndexError(
            f"to_pyg: wanted an index of {graph!r}, but got one of another graph, {index.graph!r}. "
            "Build one of this graph: GraphIndex.build(graph, embeddings)."
        )
    names, relations = graph.names[:], graph.relations[:]
    heads, types, tails = graph.edges[:].astype(np.int64).T
    vectors = _vectors(index, np.arange(len(graph.entities)), types) if index is not None else {}
    labels = [names[name] for name in graph.labels.tolist()]
    ends = np.stack([heads, tails], 1)
    return _data(graph.entities[:], labels, [relations[kind] for kind in types], ends, {"edge_type": types, **vectors})


def _check_index(index: object) -> None:
    if index is not None and not (hasattr(index, "graph") and hasattr(index, "entity_vectors")):
        raise InvalidArgumentError(
            f"to_pyg: wanted an index, as GraphIndex.build(graph, embeddings) makes one, but got {index!r:.100}."
        )
    if isinstance(index, GraphIndex):
        check_at_hand("to_pyg", index)


def _ids(table: StringTable, names: Iterable[str], what: str) -> Array:
    known = {name: table.find(name) for name in dict.fromkeys(names)}
    if missing := [name for name, position in known.items() if position < 0]:
        raise InvalidArgumentError(
            f"to_pyg: the graph of the index has no {what} {missing[0]!r}. Hand in the index of the graph that the "
            "evidence comes from, or none."
        )
    return np.array([known[name] for name in names], np.int64)


def _vectors(index: VectorSource, entities: Array, types: Array) -> dict[str, Array]:
    return {"x": index.entity_vectors(entities), "edge_attr": index.relation_vectors[types]}


def _data(
    entities: Sequence[str],
    labels: Sequence[str],
    relations: Sequence[str],
    ends: Array | Sequence[tuple[int, int]],
    found: Mapping[str, Array],
) -> Data:
    try:
        import torch
        from torch_geometric.data import Data
    except ImportError:
        raise MissingExtraError("to_pyg", "graph-prompt") from None
    arrays = {"edge_index": np.array(ends, np.int64).reshape(-1, 2).T, **found}
    return Data(
        **{name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()},
        num_nodes=len(entities),
        entities=list(entities),
        labels=list(labels),
        relations=list(relations),
    )
