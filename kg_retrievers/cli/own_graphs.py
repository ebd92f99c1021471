"""Questions with a graph each, on the shell: their formats, and what stands for the one graph that they lack."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

import kg_retrievers
from kg_retrievers.cli.connection import load_chosen_embeddings
from kg_retrievers.cli.reading_options import OPTIONS
from kg_retrievers.cli.show import on_terminal
from kg_retrievers.errors import InvalidArgumentError

if TYPE_CHECKING:
    from kg_retrievers.datasets import GraphQuestion, Question
    from kg_retrievers.index import GraphIndex

#: The formats of questions with a graph each, whose answers are entities; a model of a retriever learns from them.
ENTITY_FORMATS = ("webqsp", "cwq")

#: That of these whose graphs are in a file of their own.
SCENE_GRAPHS = "scene-graphs"

#: The formats of questions with a graph each.
GRAPH_FORMATS = (*ENTITY_FORMATS, "explagraphs", SCENE_GRAPHS)

#: The format of claims, which may have a graph each.
FACTKG = "factkg"

#: The options for questions about one graph.
OF_ONE_GRAPH = ("hops", *OPTIONS, "key", "database_name", "database", "connect", "vectors", "max_facts", "unanswerable")


def check_no_graph_options(options: argparse.Namespace) -> None:
    """Check that nothing is said about one graph where each question has its own.

    Raises:
        InvalidArgumentError: If something is.
    """
    not_taken = OF_ONE_GRAPH if options.format == SCENE_GRAPHS else ("graph", *OF_ONE_GRAPH)
    for name in not_taken:
        if getattr(options, name, None):
            raise InvalidArgumentError(
                f"--{name.replace('_', '-')} is for questions about one graph, and those of {options.format} have a "
                "graph each. Leave it out."
            )


def graphs_file(options: argparse.Namespace) -> dict[str, str]:
    """Return the file of scene graphs as `read_question_set` takes it, where it is named."""
    named = options.format == SCENE_GRAPHS and options.graph is not None
    return {"graphs": options.graph} if named else {}


def all_have_graphs(questions: Sequence[Question]) -> TypeGuard[Sequence[GraphQuestion]]:
    """Whether every question has a graph of its own."""
    return bool(questions) and all(isinstance(question, kg_retrievers.datasets.GraphQuestion) for question in questions)


def first_index(
    options: argparse.Namespace, questions: Sequence[Question], examples: Sequence[Question] | None = None
) -> GraphIndex:
    """Index the graph that a retriever is built on before it is moved to that of each question.

    That is the graph of the first question; where there are examples, all of theirs as one, from which they teach.

    Raises:
        InvalidArgumentError: If some question has no graph, so that one must be named.
    """
    if not all_have_graphs(questions):
        raise InvalidArgumentError(f"--graph must name the graph that the questions of {options.format} are about.")
    graph = kg_retrievers.datasets.join_graphs(examples) if examples else questions[0].graph
    return kg_retrievers.GraphIndex.build(
        graph, load_chosen_embeddings(options), cache=options.embedding_cache, progress=on_terminal() and bool(examples)
    )
