"""From the content of a graph to Parquet (extra `arrow`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from kg_retrievers.errors import MissingExtraError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.writers.content import GraphContent


def write_fact_parquet(content: GraphContent, file: BinaryIO, relations: Sequence[str]) -> None:
    """Write the columns head, relation and tail; and source where facts have some, in a row for each source.

    Args:
        content: The graph.
        file: Where to write.
        relations: What to write for each relation: its name or its id.

    Raises:
        MissingExtraError: If pyarrow is not installed.
    """
    arrow = _arrow()
    rows, sources = content.rows_by_source()
    heads, kinds, tails = content.edges[rows].T
    texts = {"head": (heads, content.keys), "relation": (kinds, relations), "tail": (tails, content.keys)}
    columns = {name: _dictionary(arrow, ids, values) for name, (ids, values) in texts.items()}
    if content.has_sources:
        columns["source"] = arrow.array(sources, arrow.string()).dictionary_encode()
    _write(arrow, columns, file)


def write_entity_parquet(content: GraphContent, file: BinaryIO) -> None:
    """Write the columns entity, label, aliases and types, and datatype where entities have some.

    Raises:
        MissingExtraError: If pyarrow is not installed.
    """
    arrow = _arrow()
    rows = [*content.entities()]
    texts = arrow.list_(arrow.string())
    columns = {
        "entity": arrow.array([row.key for row in rows], arrow.string()),
        "label": arrow.array([row.label for row in rows], arrow.string()),
        "aliases": arrow.array([row.aliases for row in rows], texts),
        "types": arrow.array([row.types for row in rows], texts),
    }
    if content.has_datatypes:
        columns["datatype"] = arrow.array([row.datatype for row in rows], arrow.string())
    _write(arrow, columns, file)


def _dictionary(arrow: Any, ids: Array, texts: Sequence[str]) -> Any:
    return arrow.DictionaryArray.from_arrays(arrow.array(ids), arrow.array(texts, arrow.string()))


def _write(arrow: Any, columns: dict[str, Any], file: BinaryIO) -> None:
    from pyarrow import parquet

    parquet.write_table(arrow.table(columns), file)


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Parquet", "arrow") from None
    return pyarrow
