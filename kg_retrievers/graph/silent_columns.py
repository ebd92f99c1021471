"""Columns that say nothing: they are not stored, and made when something needs them.

Where no entity has another name than its key, the names are the keys. Where no entity has an alias, or a type, there is
no column of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kg_retrievers.graph.columns import Array, StringTable

_TABLE = ("offsets", "data", "hashes", "order")
_NAMES = (*(f"names.{part}" for part in _TABLE), "labels", "name_entities.indptr", "name_entities.values")
_ALIASES = ("aliases.indptr", "aliases.values")
_TYPES = (
    *(f"types.{part}" for part in _TABLE),
    *(f"{rows}.{part}" for rows in ("entity_types", "type_entities") for part in ("indptr", "values")),
)


def without_silent(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return columns without those that say nothing.

    Example:
        >>> columns = {"aliases.indptr": np.array([0, 0]), "aliases.values": np.array([], np.int32), "x": np.array([1])}
        >>> [*without_silent(columns)]
        ['x']
    """
    silent: set[str] = set()
    if not len(columns.get("aliases.values", ())):
        silent.update(_ALIASES)
        if _are_keys(columns):
            silent.update(_NAMES)
    if not len(columns.get("types.hashes", ())):
        silent.update(_TYPES)
    return {name: column for name, column in columns.items() if name not in silent}


def with_silent(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return columns with those that say nothing.

    Cost: 28 bytes an entity where there are neither names nor types.
    """
    filled, size = dict(columns), len(columns["entities.hashes"])
    if "labels" not in filled:
        every = np.arange(size + 1, dtype=np.int32)
        filled |= {f"names.{part}": columns[f"entities.{part}"] for part in _TABLE}
        filled |= {"labels": every[:-1], "name_entities.indptr": every, "name_entities.values": every[:-1]}
    none, empty = np.empty(0, np.int32), np.zeros(size + 1, np.int32)
    if "aliases.indptr" not in filled:
        filled |= {"aliases.indptr": empty, "aliases.values": none}
    if "entity_types.indptr" not in filled:
        filled |= StringTable.from_strings([]).columns("types")
        filled |= {"entity_types.indptr": empty, "entity_types.values": none}
        filled |= {"type_entities.indptr": empty[:1], "type_entities.values": none}
    return filled


def missing_columns(columns: Mapping[str, Array]) -> list[str]:
    """Return the columns that a graph lacks and should have, as it has others that belong with them.

    Example:
        >>> missing_columns({"aliases.values": np.array([3])})
        ['aliases.indptr']
    """
    groups = [group for group in (_NAMES, _ALIASES, _TYPES) if any(name in columns for name in group)]
    return [name for group in groups for name in group if name not in columns]


def _are_keys(columns: Mapping[str, Array]) -> bool:
    """Return whether the names are the keys, and each entity is called by its own; no entity has an alias."""
    if "labels" not in columns:
        return True
    labels = columns["labels"]
    parts = ((columns[f"names.{part}"], columns[f"entities.{part}"]) for part in _TABLE)
    return bool(np.array_equal(labels, np.arange(len(labels)))) and all(np.array_equal(*two) for two in parts)
