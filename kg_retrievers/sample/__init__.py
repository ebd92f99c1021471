"""A small knowledge graph of films with questions over it; its facts were written down for this project."""

from __future__ import annotations

from importlib.resources import as_file, files

from kg_retrievers.datasets import Question, read_questions
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph

__all__ = ["load_graph", "load_questions"]


def load_graph() -> KnowledgeGraph:
    """Return the graph: films, their people, genres, years and countries.

    Two films share the label "Dune", and one film is called "Unknown".

    Example:
        >>> [triple.tail for triple in load_graph().triples("Her", "directed_by")]
        ['Spike Jonze']
    """
    with as_file(files(__name__) / "graph.jsonl") as path:
        return KnowledgeGraph.from_file(path)


def load_questions() -> list[Question]:
    """Return questions of one to three hops with their patterns and all their answers in the graph.

    The last twenty are worded more freely than the rest, so that examples can be tried on wordings that they lack.

    Example:
        >>> load_questions()[0].to_dict()["answers"]
        ['Spike Jonze']
    """
    with as_file(files(__name__) / "questions.jsonl") as path:
        return read_questions(path)
