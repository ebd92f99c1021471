"""What a writer writes: the facts and entities of a graph as texts, read from its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, Edges
from kg_retrievers.graph.attributes import AttributeValue, read_attribute_set
from kg_retrievers.graph.building import NONE
from kg_retrievers.graph.columns import Array, StringTable


class Fact(NamedTuple):
    """A fact with all that is known of it.

    Attributes:
        head: The key of its head.
        relation: What its relation is called.
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
    """An entity with all that is known of it; `datatype` is that of a literal, None of others."""

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

    Args:
        columns: The columns of the graph, as `GraphBuilder.columns` makes them.
        prefixes: The IRI that each prefix of a key stands for.
        type_ids: How the source wrote a type that has another name, by this name.
        text_relations: The relations whose tails are texts, whatever they look like.

    Attributes:
        keys: The keys of the entities.
        relations: What the relations are called.
        relation_ids: How the source wrote the relations; equal to `relations` where it wrote their names.
    """

    def __init__(
        self,
        columns: Mapping[str, Array],
        prefixes: Mapping[str, str],
        type_ids: Mapping[str, str],
        text_relations: Sequence[str] = (),
    ) -> None:
        """Read the texts of facts; those of entities are read when they are asked for."""
        self.prefixes, self.type_ids, self.text_relations = prefixes, type_ids, text_relations
        self._columns = columns
        self.keys = self._texts("entities")
        self.relations = self._texts("relations")
        self.relation_ids = self._texts("relation_ids") or self.relations

    @cached_property
    def edges(self) -> Array:
        """The facts: int32, shape (n, 3)."""
        return Edges(Adjacency.from_columns(self._columns))[:]

    @property
    def has_attributes(self) -> bool:
        """Whether some fact has attributes."""
        return "attributes.offsets" in self._columns

    @cached_property
    def attribute_names(self) -> list[str]:
        """The names of the attributes, in sorted order."""
        return sorted({name for text in self._texts("attributes") for name in read_attribute_set(text)})

    def facts(self) -> Iterator[Fact]:
        """Yield the facts."""
        sets = self._rows("triple_attributes", self._texts("attributes")) if self.has_attributes else None
        for head, relation, tail in self.edges.tolist():
            own = next(sets) if sets else []
            yield Fact(self.keys[head], self.relations[relation], self.relation_ids[relation], self.keys[tail], own)

    def statements(self) -> tuple[Array, list[dict[str, AttributeValue]]]:
        """Return the id of a fact for each of its sets of attributes, and this set; one row of a fact without any."""
        if not self.has_attributes:
            return np.arange(len(self.edges)), [{}] * len(self.edges)
        starts, sets = self._columns["triple_attributes.indptr"], [*map(read_attribute_set, self._texts("attributes"))]
        counts = np.diff(starts)
        rows = np.repeat(np.arange(len(counts)), np.maximum(counts, 1))
        ids = np.full(len(rows), NONE)
        ids[np.repeat(counts > 0, np.maximum(counts, 1))] = self._columns["triple_attributes.values"]
        return rows, [{} if id == NONE else sets[id] for id in ids.tolist()]

    def entities(self) -> Iterator[Entity]:
        """Yield the entities."""
        names, kinds = self._texts("names"), ["", *self._texts("datatype_names")]
        labels = self._columns["labels"].tolist()
        aliases, types = self._rows("aliases", names), self._rows("entity_types", self._texts("types"))
        datatypes = self._columns["datatypes"].tolist() if "datatypes" in self._columns else [NONE] * len(labels)
        for key, label, datatype in zip(self.keys, labels, datatypes, strict=True):
            yield Entity(key, names[label], next(aliases), next(types), kinds[datatype + 1] or None)

    def lonely(self) -> set[str]:
        """Return the keys of the entities that are in no fact."""
        at_ends = set(self.edges[:, (0, 2)].reshape(-1).tolist())
        return {key for id, key in enumerate(self.keys) if id not in at_ends}

    def texts(self) -> Iterator[str]:
        """Yield every text of the graph."""
        for name in ("entities", "relations", "relation_ids", "names", "types", "datatype_names", "attributes"):
            yield from self._texts(name)

    def _texts(self, name: str) -> list[str]:
        has_texts = f"{name}.offsets" in self._columns
        return StringTable.from_columns(self._columns, name)[:] if has_texts else []

    def _rows(self, name: str, texts: list[str]) -> Iterator[list[str]]:
        """Yield the texts of each row of ids."""
        values, starts = self._columns[f"{name}.values"].tolist(), self._columns[f"{name}.indptr"].tolist()
        for start, stop in pairwise(starts):
            yield [texts[id] for id in values[start:stop]]
