"""What is in a graph, as far as a result has room for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kg_retrievers.graph import RelationSchema
from kg_retrievers.index import GraphIndex
from kg_retrievers.serving.results import Counted, RelationSummary, SchemaSummary
from kg_retrievers.serving.token_bounds import MOST_ITEMS, shown


def schema_of(index: GraphIndex, methods: Sequence[str]) -> SchemaSummary:
    """Return the relations, types and sources of a graph; of a connected one, as far as the index knows them.

    Args:
        index: The indexed graph.
        methods: The methods that questions can be asked by.
    """
    schema = index.whole.graph.schema()
    counts = (schema.relations, schema.types, schema.sources)
    return SchemaSummary(
        entities=None if index.is_connected else schema.entities,
        facts=index.triple_count,
        relation_count=len(schema.relations),
        type_count=len(schema.types),
        relations=[_relation(relation) for relation in schema.relations[:MOST_ITEMS]],
        types=_counted(schema.types),
        sources=_counted(schema.sources),
        methods=list(methods),
        left_out=sum(max(len(items) - MOST_ITEMS, 0) for items in counts),
    )


def _relation(relation: RelationSchema) -> RelationSummary:
    return RelationSummary(
        relation=shown(relation.relation),
        facts=relation.triples,
        head_types=[shown(name) for name in relation.head_types[:MOST_ITEMS]],
        tail_types=[shown(name) for name in relation.tail_types[:MOST_ITEMS]],
        least=None if relation.least is None else shown(relation.least),
        greatest=None if relation.greatest is None else shown(relation.greatest),
    )


def _counted(counts: Mapping[str, int]) -> list[Counted]:
    return [Counted(name=shown(name), count=count) for name, count in list(counts.items())[:MOST_ITEMS]]
