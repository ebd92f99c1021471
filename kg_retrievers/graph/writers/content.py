"""Read the contents of a graph for a writer.

They are the facts and entities as texts, read from its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kg_retrievers.graph.building import NONE
from kg_retrievers.graph.columns import Array, StringTable, distinct

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph

#: How many facts or entities are read at a time.
ROWS = 1 << 16


class Fact(NamedTuple):
    """A fact with all that is known of it.

    Attributes:
        head: The key of its head.
        relation: The name of its relation.
        relation_id: How the source wrote the relation.
        tail: The key of its tail.
        attributes: Its sets of attributes, as `attribute_set` writes them.
    """

    head: str
    relation: str
    relation_id: str
    tail: str
    attributes: list[str]


class Entity(NamedTuple):
    """An entity with all that is known of it.

    `datatype` belongs to a literal, and is None for others.
    """

    key: str
    label: str
    aliases: list[str]
    types: list[str]
    datatype: str | None

    @property
    def is_described(self) -> bool:
        """Whether more than its key is known."""
        return bool(self.label != self.key or self.aliases or self.types or self.datatype)


class GraphContent:
    """The facts and entities of a graph, in stored order. They are read `ROWS` at a time.

    Attributes:
        graph: The graph.
        prefixes: The IRI that each prefix of a key stands for.
        type_ids: How the source wrote a type that has another name, by this name.
        text_relations: The relations whose tails are texts, whatever they look like.
        relations: The names of the relations.
        relation_ids: How the source wrote the relations. They equal `relations` if it wrote their names.
        attribute_names: The names of the attributes, in sorted order.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        """Read the texts of relations.

        The texts of entities are read when they are asked for.
        """
        self.graph, self._columns = graph, graph._columns
        self.prefixes, self.type_ids, self.text_relations = graph.prefixes, graph.type_ids, graph.text_relations
        self.relations, self.relation_ids = [*graph.relations], [*(graph.relation_ids or graph.relations)]
        self.attribute_names = graph.attribute_names

    def edges(self) -> Iterator[list[int]]:
        """Yield the ids of head, relation and tail of each fact."""
        for start in range(0, len(self.graph), ROWS):
            yield from self.graph.edges[start : start + ROWS].tolist()

    def facts(self) -> Iterator[Fact]:
        """Yield the facts."""
        graph, sets = self.graph, self.graph.attribute_sets.texts
        for start in range(0, len(graph), ROWS):
            edges = graph.edges[start : start + ROWS]
            keys = _texts(graph.entities, edges[:, (0, 2)])
            said = self._rows("triple_attributes", sets, start, start + len(edges)) if len(sets) else repeat([])
            for (head, relation, tail), own in zip(edges.tolist(), said, strict=False):
                yield Fact(keys[head], self.relations[relation], self.relation_ids[relation], keys[tail], own)

    def entities(self) -> Iterator[Entity]:
        """Yield the entities."""
        count = len(self.graph.entities)
        for start in range(0, count, ROWS):
            yield from self._entities(start, min(start + ROWS, count))

    def entity(self, id: int) -> Entity:
        """Return an entity by its id."""
        return next(self._entities(id, id + 1))

    def _entities(self, start: int, stop: int) -> Iterator[Entity]:
        graph, ids = self.graph, slice(start, stop)
        kinds, labels = ["", *(graph.datatype_names or ())], self._columns["labels"][ids]
        names = _texts(graph.names, labels)
        aliases, types = (
            self._rows(name, table, start, stop)
            for name, table in (("aliases", graph.names), ("entity_types", graph.types))
        )
        datatypes = self._columns["datatypes"][ids].tolist() if len(kinds) > 1 else [NONE] * len(labels)
        for key, label, datatype in zip(graph.entities[ids], labels.tolist(), datatypes, strict=True):
            yield Entity(key, names[label], next(aliases), next(types), kinds[datatype + 1] or None)

    def lonely(self) -> set[str]:
        """Return the keys of the entities that are in no fact."""
        graph = self.graph
        return {graph.entities[id] for id in np.flatnonzero(np.diff(graph.adjacency.indptr) == 0).tolist()}

    def texts(self) -> Iterator[str]:
        """Yield every text of the graph."""
        graph = self.graph
        of_facts = (graph.entities, graph.relations, graph.relation_ids, graph.attribute_sets.texts)
        for table in (*of_facts, graph.names, graph.types, graph.datatype_names):
            yield from table or ()

    def _rows(self, name: str, table: StringTable, start: int, stop: int) -> Iterator[list[str]]:
        """Yield the texts of each of some rows of ids."""
        starts = self._columns[f"{name}.indptr"][start : stop + 1]
        values = self._columns[f"{name}.values"][starts[0] : starts[-1]]
        texts, ids = _texts(table, values), values.tolist()
        for first, last in pairwise((starts - starts[0]).tolist()):
            yield [texts[id] for id in ids[first:last]]


def _texts(table: StringTable, ids: Array) -> dict[int, str]:
    return {id: table[id] for id in distinct(ids.ravel()).tolist()}
