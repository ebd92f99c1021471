"""Collect the statements of a source and make a graph's columns.

`GraphBuilder` takes them triple by triple or in arrays.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress, count, filterfalse, product
from tempfile import TemporaryFile, gettempdir
from typing import IO, Any, NamedTuple

import numpy as np

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.file_writing import raise_write_errors
from kg_retrievers.graph.adjacency import BLOCK, Adjacency, TripleColumns, blocks, rank_triples, sort_triples
from kg_retrievers.graph.attributes import SOURCE, attribute_set
from kg_retrievers.graph.columns import MAPPED, Array, StringTable, distinct, offset_type, starts_of
from kg_retrievers.graph.types import Triple


@dataclass
class Reading:
    """The reader's understanding of a source.

    It keeps the reader from guessing or dropping anything in silence.

    Args:
        format: The format, such as "N-Triples". Empty for a graph that was made in Python.
        understood: The reading of each part of the source, such as {"labels": "rdfs:label 5,012"}.
        left_out: The counts of the parts that were left out, such as {"empty texts": 300}.
        options: The options that differ from the default, such as {"delimiter": ";"}. Predicates of RDF are given by
            their IRIs. Limits of a file and the treatment of errors are not among them.

        changes: How many times facts were added or removed since, and how many facts: {"times", "added", "removed"}.
            Empty if there were none.

    Example:
        >>> reading = Reading("N-Triples")
        >>> reading.leave_out("blank nodes")
        >>> reading.left_out
        {'blank nodes': 1}
    """

    format: str = ""
    understood: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count the parts that are left out."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count

    def joined(self, more: Reading) -> Reading:
        """Return it with the left-out parts of another source, too."""
        return replace(self, left_out=dict(Counter(self.left_out) + Counter(more.left_out)))

    def changed(self, added: int, removed: int) -> Reading:
        """Return it with a change that added and removed so many facts.

        It returns itself if the change did neither.
        """
        if not added and not removed:
            return self
        counts = {"times": 1, "added": added, "removed": removed}
        return replace(self, changes={what: self.changes.get(what, 0) + count for what, count in counts.items()})


#: The id of no source, and of no datatype.
NONE = -1

#: Stands among the attributes of a triple that is given both with and without them, so that it stays when all that is
#: said of it is removed. A triple without any attribute has no row.
NO_ATTRIBUTES = "{}"


class TextIds(defaultdict[str, int]):
    """Gives each new text the next id, from 0."""

    def __init__(self) -> None:
        """Begin without texts."""
        super().__init__(count().__next__)


#: How many texts of entities a builder holds in a dictionary, which takes 150 bytes for each.
MOST_TEXTS = 1 << 24


class EntityIds(TextIds):
    """Gives each new text the next id, and can move texts from the dictionary into a table.

    A text that is given again then gets another id. `final` leads from the ids of a text to the first one of them.

    Attributes:
        table: The texts that were moved, each once, in the order of their first ids.
    """

    def __init__(self) -> None:
        """Begin without texts."""
        super().__init__()
        self.table = StringTable.from_strings([])
        self._final: list[Array] = []

    def move(self) -> None:
        """Move all texts into the table."""
        texts = _texts(self)
        self.clear()
        ids = self.table.ids_of(texts)
        new = ids < 0
        ids[new] = len(self.table) + np.arange(int(new.sum()))
        self.table = self.table.joined(texts.subset(new))
        self._final.append(ids)

    def finish(self) -> StringTable:
        """Return the table of all texts."""
        if not self._final:
            return _texts(self)
        self.move()
        return self.table

    def finals(self, texts: Mapping[str, Any]) -> Array:
        """Return the positions of texts in the table of `finish`, after it was made."""
        if not self._final:
            return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))
        return self.table.ids_of(_texts(texts))

    @property
    def final(self) -> Array | None:
        """The position in the table of `finish` of each id, None if all ids are their own."""
        return np.concatenate(self._final) if self._final else None


class GraphBuilder:
    """Collect the facts, names and types of a source.

    `columns` checks and sorts them.

    Every text is held once, and a triple as three numbers: 12 bytes. Repeated triples are kept until `columns`. Of a
    large graph, the numbers are in temporary files, and most texts in a table. An entity may have several ids then.
    Entities get their ids in the order of the triples. Entities that are described alone come after them.

    Attributes:
        labels: The label of each entity that was given one.
        aliases: Other names by entity.
        types: Types by entity. An entity that was only declared has an empty list here.
        relation_labels: The label of each relation that was given one, by the relation's id.
        text_relations: The ids of relations that the source calls text relations.
        datatypes: The datatype of each entity that is a literal: a prefixed name, such as "xsd:date", or "@en".
        prefixes: The IRI that each prefix of a key stands for.
        type_ids: How the source wrote a type that has another name, by this name: {"film": "dbo:Film"}.
        declared_types: The labels of types of no entity, by how the source writes them.
        skipped: How many malformed lines were left out.
        reading: The reader's understanding of the source, and the parts that were left out.

    Example:
        >>> builder = GraphBuilder()
        >>> builder.add("Q1", "P57", "Q2")
        >>> builder.describe("Q1", "Her", types=["film"])
        >>> builder.name_relation("P57", "director")
        >>> len(builder)
        1
    """

    def __init__(
        self,
        labels: Mapping[str, str] | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
        types: Mapping[str, Sequence[str]] | None = None,
        relation_labels: Mapping[str, str] | None = None,
        *,
        format: str = "",
    ) -> None:
        """Begin with descriptions, if there are some, and the name of the format."""
        self.labels: dict[str, str] = dict(labels or {})
        self.aliases: dict[str, Sequence[str]] = dict(aliases or {})
        self.types: dict[str, Sequence[str]] = dict(types or {})
        self.relation_labels: dict[str, str] = dict(relation_labels or {})
        self.text_relations: dict[str, None] = {}
        self.datatypes: dict[str, str] = {}
        self.prefixes: dict[str, str] = {}
        self.type_ids: dict[str, str] = {}
        self.declared_types: dict[str, str] = {}
        self.skipped = 0
        self.reading = Reading(format)
        self._entities, self._relations, self._sets = EntityIds(), TextIds(), TextIds()
        self._heads, self._kinds, self._tails = array("i"), array("i"), array("i")
        self._files, self._moved = list[IO[bytes]](), 0
        self._triple_sets = array("i")  # empty until a triple has attributes
        self._retyped: set[str] = set()

    def __len__(self) -> int:
        """The number of triples so far, repeated ones included."""
        return self._moved + len(self._heads)

    # --- in ---------------------------------------------------------------------------------------------------------

    def add(self, head: str, relation: str, tail: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Add a triple of three non-empty texts, and its attributes.

        A triple may be said several times, with other attributes each time, such as once for each source.
        """
        self._heads.append(self._entities[head])
        self._kinds.append(self._relations[relation])
        self._tails.append(self._entities[tail])
        if attributes or self._triple_sets:
            self._triple_sets.extend([NONE] * (len(self) - 1 - len(self._triple_sets)))
            self._triple_sets.append(self.attribute_set(attributes or {}))
        if not len(self._heads) % BLOCK:
            self._move()

    def add_row(self, row: Sequence[Any]) -> None:
        """Add a triple that a user wrote.

        A fourth part gives its attributes.

        Raises:
            InvalidArgumentError: If it is not three non-empty texts, or its attributes are no mapping.
        """
        is_triple = not isinstance(row, str | Mapping) and len(row) in (3, 4)
        attributes = row[3] if is_triple and len(row) == 4 else {}
        if not is_triple or not all(isinstance(text, str) and text for text in row[:3]):
            hint = "Write numbers and dates as texts, such as '3'." if is_triple else ""
            if isinstance(row, str):
                hint = "Give a list of triples: [(head, relation, tail), ...]."
            if isinstance(row, Mapping):
                hint = "To name the keys of rows: KnowledgeGraph.from_frame(rows, head=..., relation=..., tail=...)."
            raise InvalidArgumentError(
                f"KnowledgeGraph: triple {len(self) + 1} must be three non-empty texts (head, relation, tail), "
                f"but got {row!r}.",
                hint_python=hint,
            )
        if not isinstance(attributes, Mapping):
            raise InvalidArgumentError(
                f"KnowledgeGraph: the fourth part of triple {len(self) + 1} must be its attributes, such as "
                f"{{'since': 1999}}, but got {attributes!r}."
            )
        self.add(row[0], row[1], row[2], attributes)

    def add_ids(self, heads: Array, relations: Array, tails: Array, sets: Array | None = None) -> None:
        """Add many triples at once.

        Args:
            heads: Ids of `entity`, integers of shape (n).
            relations: Ids of `relation`, integers of shape (n).
            tails: Ids of `entity`, integers of shape (n).
            sets: Ids of `attribute_set`, integers of shape (n), `NONE` for a triple without attributes.
        """
        before = len(self)
        for column, ids in ((self._heads, heads), (self._kinds, relations), (self._tails, tails)):
            column.frombytes(np.ascontiguousarray(ids, np.intc).tobytes())
        if sets is not None or self._triple_sets:
            self._triple_sets.extend([NONE] * (before - len(self._triple_sets)))
            new = np.full(len(heads), NONE) if sets is None else sets
            self._triple_sets.frombytes(np.ascontiguousarray(new, np.intc).tobytes())
        self._move()

    def _move(self) -> None:
        """Move triples to files, and texts to their table, if there are many."""
        if len(self._entities) >= MOST_TEXTS:
            self._entities.move()
        if self._heads.itemsize * len(self._heads) >= MAPPED:
            self._move_triples()

    def _move_triples(self) -> None:
        with raise_write_errors(gettempdir()):
            self._files = self._files or [TemporaryFile() for _ in range(3)]  # noqa: SIM115
            for column, file in zip((self._heads, self._kinds, self._tails), self._files, strict=True):
                column.tofile(file)
                file.flush()
        self._moved = len(self)
        self._heads, self._kinds, self._tails = array("i"), array("i"), array("i")

    def entity(self, key: str) -> int:
        """Return the id of an entity, a new one if the key is new."""
        return self._entities[key]

    def entities(self, keys: Sequence[str]) -> Array:
        """Return the ids of entities, new ones if the keys are new."""
        return np.fromiter(map(self._entities.__getitem__, keys), np.intc, len(keys))

    def relation(self, name: str) -> int:
        """Return the id of a relation, a new one if the name is new."""
        return self._relations[name]

    def relations(self, names: Sequence[str]) -> Array:
        """Return the ids of relations, new ones if the names are new."""
        return np.fromiter(map(self._relations.__getitem__, names), np.intc, len(names))

    def attribute_set(self, attributes: Mapping[str, Any]) -> int:
        """Return the id of a set of attributes.

        It is a new one if the set is new, and `NONE` if it is empty.
        """
        left_out = "attribute {!r} of facts that is infinite or an unknown object"
        text = attribute_set(attributes, lambda name: self.reading.leave_out(left_out.format(name)))
        return NONE if text == NO_ATTRIBUTES else self._sets[text]

    def sources(self, names: Sequence[str]) -> Array:
        """Return the ids of the sets that hold one source alone.

        An empty text gets `NONE`.
        """
        ids = {name: self.attribute_set({SOURCE: name}) for name in dict.fromkeys(names)}
        return np.fromiter(map(ids.__getitem__, names), np.intc, len(names))

    def describe(
        self, key: str, label: str | None = None, aliases: Sequence[str] = (), types: Sequence[str] = ()
    ) -> None:
        """Add a description of an entity.

        A second label becomes an alias.
        """
        if label is not None and self.labels.setdefault(key, label) != label:
            aliases = [label, *aliases]
        if aliases:
            self.aliases[key] = list(dict.fromkeys([*self.aliases.get(key, ()), *aliases]))
        if types or not (label or aliases):
            self.types[key] = list(dict.fromkeys([*self.types.get(key, ()), *types]))

    def name_relation(self, id: str, label: str) -> None:
        """Give a relation a label.

        A second label is not used.
        """
        self.relation_labels.setdefault(id, label)

    def set_datatype(self, key: str, datatype: str) -> None:
        """Set the datatype of a literal.

        Of several the first in sorted order counts.
        """
        before = self.datatypes.setdefault(key, datatype)
        if before != datatype:
            self._retyped.add(key)
            self.datatypes[key] = min(before, datatype)

    # --- out --------------------------------------------------------------------------------------------------------

    def triples(self) -> Iterator[Triple]:
        """Yield the triples in their order, repeated ones included, if none were moved to files."""
        entities, relations = [*self._entities], [*self._relations]
        for head, relation, tail in zip(self._heads, self._kinds, self._tails, strict=True):
            yield Triple(entities[head], relations[relation], entities[tail])

    def columns(self) -> tuple[dict[str, Array], int]:
        """Return the columns of a graph, and the number of dropped repeated triples.

        The builder is used up then.

        Raises:
            InvalidArgumentError: If a name or type is no text, or a text holds half a surrogate pair.
        """
        described = chain(self.labels, self.aliases, self.types)
        self.entities([*filterfalse(self._entities.__contains__, described)])
        given, entities = len(self), self._entities.finish()
        triples, attributes = self._sorted_triples()
        unique = len(triples.heads)
        columns: dict[str, Array] = Adjacency.of_triples(triples, len(entities)).columns()
        del triples
        columns |= entities.columns("entities")
        names, kinds = relation_names(self._relations, self.relation_labels), TextIds()
        columns |= _table("relations", names)
        columns |= {} if names == [*self._relations] else _table("relation_ids", self._relations)
        columns |= self._name_columns(entities) if self.labels or self.aliases else {}
        types = self._described("type", "types", self.types, kinds)
        for id, name in zip(self.declared_types, relation_names(self.declared_types, self.declared_types), strict=True):
            _ = kinds[name]
            self.type_ids[name] = id
        columns |= type_columns(_texts(kinds), types, len(entities))
        columns |= self._datatype_columns(entities)
        columns |= attributes
        return columns, given - unique

    def _sorted_triples(self) -> tuple[TripleColumns, dict[str, Array]]:
        """Return the triples, each once and sorted, and their attributes.

        The builder holds none then.
        """
        given: list[Array] = [np.frombuffer(column, np.intc) for column in (self._heads, self._kinds, self._tails)]
        if self._files:
            self._move_triples()
            given = [np.asarray(np.memmap(file, np.intc, "r+")) for file in self._files]
        self._files, self._heads, self._kinds, self._tails = [], array("i"), array("i"), array("i")
        if (final := self._entities.final) is not None:
            for column, block in product(given[::2], blocks(len(given[0]))):
                column[block] = final[column[block]]
        if not self._sets:
            return sort_triples(given), {}
        triples, triple_of = rank_triples(given)
        sets = np.full(len(triple_of), NONE, np.int64)
        sets[: len(self._triple_sets)] = np.frombuffer(self._triple_sets, np.intc)
        return triples, attribute_columns([*self._sets], Pairs(triple_of, sets), len(triples.heads))

    def _name_columns(self, keys: StringTable) -> dict[str, Array]:
        names, size = TextIds(), len(keys)
        for key, label in self.labels.items():
            _check_text("label", key, label)
        called = (self.labels.get(key, key) for key in self._entities or keys)
        labels = np.fromiter(map(names.__getitem__, called), np.int32, size)
        aliases = self._described("alias", "aliases", self.aliases, names)
        return name_columns(_texts(names), labels, aliases)

    def _described(self, one: str, many: str, described: Mapping[str, Sequence[str]], ids: TextIds) -> Pairs:
        """Return the entities that have further texts, ascending, and the ids of the texts."""
        entities, texts = array("i"), array("i")
        for id, key in sorted(zip(self._entities.finals(described).tolist(), described, strict=True)):
            if isinstance(described[key], str):
                message = f"{many} of {key!r} must be a list of texts, but got {described[key]!r}."
                raise InvalidArgumentError(f"KnowledgeGraph: {message}")
            for text in dict.fromkeys(described[key]):
                _check_text(one, key, text)
                entities.append(id)
                texts.append(ids[text])
        return Pairs(np.array(entities, np.int32), np.array(texts, np.int32))

    def _datatype_columns(self, keys: StringTable) -> dict[str, Array]:
        """Return the datatype of each entity, and their names in sorted order.

        There are none if no entity has a datatype.
        """
        if not self.datatypes:
            return {}
        if self._retyped:
            self.reading.understood["texts with several datatypes"] = f"{len(self._retyped):,}, each taken as one"
        names = sorted(set(self.datatypes.values()))
        ids = {name: id for id, name in enumerate(names)} | {"": NONE}
        column = np.array([ids[self.datatypes.get(key, "")] for key in self._entities or keys], np.int32)
        return _table("datatype_names", names) | {"datatypes": column}


def relation_names(ids: Iterable[str], labels: Mapping[str, str]) -> list[str]:
    """Return the name of each relation: its label, or else its id.

    If a label would name two relations, the id follows it.

    Example:
        >>> relation_names(["P57", "dbo:director", "P58"], {"P57": "director", "dbo:director": "director"})
        ['director (P57)', 'director (dbo:director)', 'P58']
    """
    plain = {id: labels.get(id, id) for id in ids}
    uses = Counter(plain.values())
    names: dict[str, None] = {}
    for id, name in plain.items():
        unique = name if uses[name] == 1 or name == id else f"{name} ({id})"
        while unique in names:  # a label may look like the name of another relation
            unique += f" ({id})"
        names[unique] = None
    return [*names]


class Pairs(NamedTuple):
    """Items and their values, each pair as often as it occurs.

    An example is the aliases of entities.

    Attributes:
        owners: The ids of the items.
        values: The ids of the values.
    """

    owners: Array
    values: Array

    @classmethod
    def named(cls, columns: Mapping[str, Array], name: str) -> Pairs:
        """Return the pairs in two columns of a graph.

        There are none if the graph lacks them.
        """
        if f"{name}.indptr" not in columns:
            return cls(np.empty(0, np.int64), np.empty(0, np.int32))
        lengths = np.diff(columns[f"{name}.indptr"])
        owners = np.arange(len(lengths))
        return cls(owners if (lengths == 1).all() else np.repeat(owners, lengths), columns[f"{name}.values"])

    def columns(self, name: str, size: int) -> dict[str, Array]:
        """Return two columns: the start of the values of each item, and the values.

        Args:
            name: Begins the names of the columns.
            size: How many items there are. The owners ascend.
        """
        indptr = starts_of(np.bincount(self.owners, minlength=size)).astype(offset_type(len(self.values)))
        return {f"{name}.indptr": indptr, f"{name}.values": self.values.astype(np.int32, copy=False)}

    def ascending(self) -> Pairs:
        """Return the pairs ascending by owner and then by value, each once."""
        width = int(self.values.max(initial=0)) + 1
        return Pairs(*np.divmod(distinct(self.owners.astype(np.int64) * width + self.values), width))

    def subset(self, kept: Array) -> Pairs:
        """Return some pairs."""
        return Pairs(self.owners[kept], self.values[kept])

    def joined(self, more: Pairs) -> Pairs:
        """Return the pairs with others added, by ascending owner, each once.

        The others follow the pairs of the same owner.

        Example:
            >>> pairs, more = Pairs(np.array([0, 2]), np.array([7, 9])), Pairs(np.array([0, 0]), np.array([5, 7]))
            >>> pairs.joined(more).values.tolist()
            [7, 5, 9]
        """
        if not len(more.owners):
            return self
        both = Pairs(np.append(self.owners, more.owners), np.append(self.values, more.values))
        width = int(both.values.max(initial=0)) + 1
        _, first = np.unique(both.owners.astype(np.int64) * width + both.values, return_index=True)
        first = np.sort(first)
        return both.subset(first[np.argsort(both.owners[first], kind="stable")])


def name_columns(names: StringTable, labels: Array, aliases: Pairs) -> dict[str, Array]:
    """Return the columns of names.

    They give the label of each entity, its aliases by ascending owner, and the entities of each name.
    """
    size = len(labels)
    called = Pairs(np.append(labels, aliases.values), np.append(np.arange(size), aliases.owners))
    columns = names.columns("names") | {"labels": labels} | aliases.columns("aliases", size)
    return columns | called.ascending().columns("name_entities", len(names))


def type_columns(names: StringTable, types: Pairs, size: int) -> dict[str, Array]:
    """Return the columns of types.

    They give the types of each of `size` entities by ascending owner, and the entities of each type.
    """
    entities = Pairs(types.values, types.owners).ascending().columns("type_entities", len(names))
    return names.columns("types") | types.columns("entity_types", size) | entities


def attribute_columns(texts: Sequence[str], sets: Pairs, size: int) -> dict[str, Array]:
    """Return the columns of attributes, or none if no triple has any.

    Args:
        texts: The sets of attributes by id, as `attribute_set` writes them.
        sets: The sets of triples, with `NONE` if a triple is also given without attributes.
        size: How many triples there are.
    """
    has_some = np.zeros(size, np.bool_)
    has_some[sets.owners[sets.values != NONE]] = True
    owners, values = sets.subset(has_some[sets.owners])
    texts = [*texts, NO_ATTRIBUTES]
    values = np.where(values == NONE, len(texts) - 1, values)
    used = np.bincount(values, minlength=len(texts)) > 0
    if not used.any():
        return {}
    table = _table("attributes", compress(texts, used))
    return table | Pairs(owners, (np.cumsum(used) - 1)[values]).ascending().columns("triple_attributes", size)


def _table(name: str, texts: Iterable[str]) -> dict[str, Array]:
    return _texts(texts).columns(name)


def _texts(texts: Iterable[str]) -> StringTable:
    try:
        return StringTable.from_strings(texts)
    except UnicodeEncodeError as cause:
        raise InvalidArgumentError(f"KnowledgeGraph: {cause.object!r} holds half a surrogate pair.") from cause


def _check_text(what: str, key: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidArgumentError(f"KnowledgeGraph: a {what} of {key!r} must be a non-empty text, but got {value!r}.")
