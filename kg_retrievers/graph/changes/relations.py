"""Relations of a changed graph, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping

from kg_retrievers.errors import InvalidArgumentError, did_you_mean
from kg_retrievers.graph.building import relation_names
from kg_retrievers.graph.changes.labels import is_made_up
from kg_retrievers.graph.changes.merge import Graph, Merge, written_relations
from kg_retrievers.graph.columns import Array, StringTable


def relation_columns(merge: Merge, kept: Array, labels: Mapping[str, str]) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the columns of the relations that stay, and the name of each relation by its earlier name.

    All names are found anew where relations have labels: a label that another relation gets or loses changes the name
    that is shown.

    Args:
        merge: The graph and what is added.
        kept: Which relations stay: bool.
        labels: New labels, by what the source or the graph calls a relation.

    Raises:
        InvalidArgumentError: If a label is that of no relation.
    """
    graph, addition = merge.graph, merge.addition
    new = merge.is_new_relation
    ids = written_relations(graph).joined(written_relations(addition).subset(new)).subset(kept)
    if graph.relation_ids is None and addition.relation_ids is None and not labels:
        return ids.columns("relations"), {name: name for name in ids}
    own = _labels(graph)
    for written, label in _labels(addition).items():
        if written not in own or not is_made_up(label, written, addition.prefixes):
            own[written] = label
    earlier: dict[str, str] = {}
    for one in (addition, graph):
        earlier |= zip(one.relations, written_relations(one), strict=True)
    earlier |= {id: id for id in ids}
    for text, label in labels.items():
        if (id := earlier.get(text)) not in ids:
            near = did_you_mean(text, [*graph.relations, *addition.relations])
            raise InvalidArgumentError(
                f"KnowledgeGraph.with_changes: relation_labels names {text!r}, which is no relation of the graph"
                f"{f'; {near}' if near else '.'} See `graph.relations`."
            )
        own[str(id)] = label
    names = relation_names(ids, own)
    columns = StringTable.from_strings(names).columns("relations")
    if names != [*ids]:
        columns |= ids.columns("relation_ids")
    now = dict(zip(ids, names, strict=True))
    return columns, {name: now[id] for name, id in earlier.items() if id in now}


def _labels(graph: Graph) -> dict[str, str]:
    """Return the label of each relation that has one, by what the source calls it."""
    if graph.relation_ids is None:
        return {}
    pairs = zip(graph.relations, graph.relation_ids, strict=True)
    return {id: name.removesuffix(f" ({id})") for name, id in pairs if name != id}
