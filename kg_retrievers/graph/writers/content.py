"""Read the contents of a graph for a writer.

They are the facts and entities as texts, read from its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kg_retrievers.graph.attributes import AttributeValue, read_attribute_set
from kg_retrievers.graph.building import NONE
from kg_retrievers.graph.columns import Array

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


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
    """The facts and entities of a graph, in stored order.

    Attributes:
        prefixes: The IRI that each prefix of a key stands for.
        type_ids: How the source wrote a type that has another name, by this name.
        text_relations: The relations whose tails are texts, whatever they look like.
        keys: The keys of the entities.
        relations: The names of the relations.
        relation_ids: How the source wrote the relations. They equal `relations` if it wrote their names.
        attribute_names: The names of the attributes, in sorted order.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        """Read the texts of facts.

        The texts of entities are read when they are asked for.
        """
        self.prefixes, self.type_ids, self.text_relations = graph.prefixes, graph.type_ids, graph.text_relations
        self.keys, self.relations = [*graph.entities], [*graph.relations]
        self.relation_ids = [*(graph.relation_ids or graph.relations)]
        self.attribute_names, self._sets = graph.attribute_names, [*graph.attribute_sets.texts]
        self._graph, self._columns = graph, graph._columns

    @cached_property
    def edges(self) -> Array:
        """The facts: int32, shape (n, 3)."""
        return self._graph.edges[:]

    def facts(self) -> Iterator[Fact]:
        """Yield the facts."""
        sets = self._rows("triple_attributes", self._sets) if self._sets else None
        for head, relation, tail in self.edges.tolist():
            own = next(sets) if sets else []
            yield Fact(self.keys[head], self.relations[relation], self.relation_ids[relation], self.keys[tail], own)

    def statements(self) -> tuple[Array, list[dict[str, AttributeValue]]]:
        """Return the id of a fact for each of its sets of attributes, and this set.

        A fact without any has one row.
        """
        if not self._sets:
            return np.arange(len(self.edges)), [{}] * len(self.edges)
        starts, sets = self._columns["triple_attributes.indptr"], [*map(read_attribute_set, self._sets)]
        counts = np.diff(starts)
        rows = np.repeat(np.arange(len(counts)), np.maximum(counts, 1))
        ids = np.full(len(rows), NONE)
        ids[np.repeat(counts > 0, np.maximum(counts, 1))] = self._columns["triple_attributes.values"]
        return rows, [{} if id == NONE else sets[id] for id in ids.tolist()]

    def entities(self) -> Iterator[Entity]:
        """Yield the entities."""
        graph = self._graph
        names, kinds = [*graph.names], ["", *(graph.datatype_names or ())]
        labels = self._columns["labels"].tolist()
        aliases, types = self._rows("aliases", names), self._rows("entity_types", [*graph.types])
        datatypes = self._columns["datatypes"].tolist() if "datatypes" in self._columns else [NONE] * len(labels)
        for key, label, datatype in zip(self.keys, labels, datatypes, strict=True):
            yield Entity(key, names[label], next(aliases), next(types), kinds[datatype + 1] or None)

    def lonely(self) -> set[str]:
        """Return the keys of the entities that are in no fact."""
        at_ends = set(self.edges[:, (0, 2)].reshape(-1).tolist())
        return {key for id, key in enumerate(self.keys) if id not in at_ends}

    def texts(self) -> Iterator[str]:
        """Yield every text of the graph."""
        graph = self._graph
        of_facts = (graph.entities, graph.relations, graph.relation_ids, graph.attribute_sets.texts)
        for table in (*of_facts, graph.names, graph.types, graph.datatype_names):
            yield from table or ()

    def _rows(self, name: str, texts: list[str]) -> Iterator[list[str]]:
        """Yield the texts of each row of ids."""
        values, starts = self._columns[f"{name}.values"].tolist(), self._columns[f"{name}.indptr"].tolist()
        for start, stop in pairwise(starts):
            yield [texts[id] for id in values[start:stop]]
