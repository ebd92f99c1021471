"""A graph of a few facts about films, with the cases that often break retrievers."""

from __future__ import annotations

from importlib.resources import as_file, files

from kg_retrievers.graph import KnowledgeGraph


def tiny_graph() -> KnowledgeGraph:
    """Return 16 facts about films.

    Names in several scripts, a key that is not the label, two films called "Dune", two relations between the same two
    entities, a film that contains itself, and a genre without facts.

    Example:
        >>> graph = tiny_graph()
        >>> [graph.label(triple.tail) for triple in graph.triples("Q155653", "directed_by")]
        ['宮崎駿']
    """
    with as_file(files(__package__) / "tiny_graph.jsonl") as path:
        return KnowledgeGraph.from_file(path)
