"""The entities that a person may mean while typing a name."""

from __future__ import annotations

from kg_retrievers.graph.shown_text import one_line
from kg_retrievers.index import GraphIndex, PartRequest

#: How many entities are suggested, and the most characters of a name.
SUGGESTED, CHARACTERS = 8, 200


def suggest(index: GraphIndex, text: str) -> list[dict[str, str]]:
    """Return the entities with the nearest names, as `{"key", "label", "type"}`.

    Args:
        index: The indexed graph.
        text: What was typed.
    """
    index = index.part(PartRequest(names=(text,), k=SUGGESTED * 2, near=True))
    graph, [near] = index.graph, index.nearest_entities([text], SUGGESTED * 2)
    keys = [graph.entities[id] for id in near.ids.tolist()]
    wanted = text.casefold()
    keys.sort(key=lambda key: not graph.label(key).casefold().startswith(wanted))  # what goes on as typed comes first
    return [
        {
            "key": key,
            "label": one_line(graph.label(key))[:CHARACTERS],
            "type": one_line(", ".join(graph.types_of(key)[:2]))[:CHARACTERS],
        }
        for key in keys[:SUGGESTED]
    ]
