"""From triples, names and types as text to the columns of a knowledge graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.adjacency import Adjacency
from kg_retrievers.graph.columns import Array, StringTable


def build_columns(
    triples: Iterable[Sequence[str]],
    labels: Mapping[str, str],
    aliases: Mapping[str, Sequence[str]],
    types: Mapping[str, Sequence[str]],
) -> tuple[dict[str, Array], int]:
    """Return the columns of a graph, and how many repeated triples were dropped.

    Raises:
        InvalidArgumentError: If a triple has not three non-empty texts, or a name or type is no text.
    """
    unique, duplicates = _unique(triples)
    entities, relations, names, kinds = _Ids(), _Ids(), _Ids(), _Ids()
    rows = [(entities[head], relations[relation], entities[tail]) for head, relation, tail in unique]
    edges = np.array(rows, np.int32).reshape(-1, 3)
    for key in (*labels, *aliases, *types):
        entities[key]
    keys = list(entities)
    label_ids = np.array([names[_text("label", key, labels.get(key, key))] for key in keys], np.int32)
    alias_ids = [[names[_text("alias", key, alias)] for alias in _texts("aliases", key, aliases)] for key in keys]
    type_ids = [[kinds[_text("type", key, kind)] for kind in _texts("types", key, types)] for key in keys]
    columns: dict[str, Array] = {"triples": edges}
    for name, table in (("entities", entities), ("relations", relations), ("names", names), ("types", kinds)):
        columns |= _strings(table).columns(name)
    columns["labels"] = label_ids
    columns |= _ragged("aliases", alias_ids)
    columns |= _ragged("entity_types", type_ids)
    name_ids = [[label, *rest] for label, rest in zip(label_ids, alias_ids, strict=True)]
    columns |= _inverted("name_entities", len(names), name_ids)
    columns |= _inverted("type_entities", len(kinds), type_ids)
    adjacency = Adjacency.of_edges(edges, len(keys))
    columns |= {f"adjacency.{name}": array for name, array in adjacency._asdict().items()}
    return columns, duplicates


class _Ids(dict[str, int]):
    """Gives each new text the next id, from 0."""

    def __missing__(self, key: str) -> int:
        new = self[key] = len(self)
        return new


def _unique(triples: Iterable[Sequence[str]]) -> tuple[Iterable[Sequence[str]], int]:
    """Return the triples, each once, and how many were repeated."""
    unique: dict[Sequence[str], None] = {}
    count = 0
    for count, triple in enumerate(triples, 1):
        whole = len(triple) == 3 and not isinstance(triple, str)
        if not whole or not all(isinstance(text, str) and text for text in triple):
            raise InvalidArgumentError(
                f"KnowledgeGraph: triple {count} must be three non-empty texts (head, relation, tail), "
                f"but got {triple!r}."
            )
        unique[tuple(triple)] = None
    return unique, count - len(unique)


def _text(what: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgumentError(f"KnowledgeGraph: a {what} of {key!r} must be a non-empty text, but got {value!r}.")
    return value


def _texts(what: str, key: str, values: Mapping[str, Sequence[str]]) -> Sequence[str]:
    texts = values.get(key, ())
    if isinstance(texts, str):
        raise InvalidArgumentError(f"KnowledgeGraph: {what} of {key!r} must be a list of texts, but got {texts!r}.")
    return tuple(dict.fromkeys(texts))


def _strings(texts: Iterable[str]) -> StringTable:
    try:
        return StringTable.from_strings(texts)
    except UnicodeEncodeError as cause:
        raise InvalidArgumentError(f"KnowledgeGraph: {cause.object!r} holds half a surrogate pair.") from cause


def _ragged(name: str, rows: Sequence[Sequence[int]]) -> dict[str, Array]:
    """Return rows of different lengths as two columns: where each begins, and their values."""
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    return {f"{name}.indptr": indptr, f"{name}.values": np.array([value for row in rows for value in row], np.int32)}


def _inverted(name: str, size: int, rows: Sequence[Sequence[int]]) -> dict[str, Array]:
    """Return for each value below `size` the rows that hold it, as two columns."""
    inverse: list[list[int]] = [[] for _ in range(size)]
    for row_id, row in enumerate(rows):
        for value in dict.fromkeys(row):
            inverse[value].append(row_id)
    return _ragged(name, inverse)
