"""Rows that describe entities: key, label, aliases, types, and attributes that become facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.attributes import AttributeReader, Attributes
from kg_retrievers.graph.readers.tables.cell_texts import cell_text, is_nothing, listed_texts
from kg_retrievers.graph.readers.tables.roles import ENTITY, entity_columns


def add_entities(
    builder: GraphBuilder,
    names: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    attributes: Attributes,
    who: str,
    on_error: str,
) -> int:
    """Add what rows say about entities, and return how many did: see `AttributeReader`.

    Raises:
        InvalidArgumentError: If there is no column with keys, or a row has none.
    """
    columns = entity_columns([*map(str, names)])
    key_column = next((name for name, role in columns.items() if role == ""), None)
    if key_column is None:
        raise InvalidArgumentError(f"{who}: no column is called {' or '.join(ENTITY)}, but {', '.join(columns)}.")
    reader, count = AttributeReader(builder, attributes, who), 0
    for number, row in enumerate(rows, 1):
        try:
            key = cell_text(row[key_column])
            if key is None:
                raise ValueError("the key is empty")
        except ValueError as error:
            if on_error == "skip":
                builder.skipped += 1
                continue
            raise InvalidArgumentError(f'{who}: row {number}: {error}. Leave such rows out: on_error="skip".') from None
        given = {columns[str(name)]: value for name, value in row.items() if not is_nothing(value)}
        del given[""]
        reader.add_node(key, {name: listed_texts(name, value) for name, value in given.items()})
        count += 1
    reader.finish()
    return count
