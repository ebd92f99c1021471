"""Writes questions with answers and patterns from a graph alone."""

from __future__ import annotations

from random import Random

from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, named_arguments
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.validation import check_integer
from kg_retrievers.questions.self_questions.shapes import Names, Shape, ShapeDrawer
from kg_retrievers.questions.self_questions.wording import QuestionWriter

#: The longest walk that a question can ask for.
MAX_HOPS = 3

#: The most questions of one call. It writes some hundred each second.
MAX_COUNT = 100_000

#: How many rounds of all kinds in a row may bring nothing new before there are no further questions.
IDLE_ROUNDS = 20

_WHO = "generate_questions"


@named_arguments
def generate_questions(
    graph: KnowledgeGraph, count: int = 1000, *, seed: int = 0, max_hops: int = MAX_HOPS
) -> list[Question]:
    """Write questions that a graph can answer, with answers and patterns, for examples and for training.

    In turn, as far as the graph allows: walks of one to `max_hops` hops from a named entity, and entities common to two
    named entities. Relations are drawn alike, however many triples they have. A walk that goes both forward and
    backward omits its own start. Questions with more than `MAX_ANSWERS` answers are left out, and names that several
    entities bear are not used.

    The words come from the names of relations and types by rules of English grammar: "directed_by" gives "Who directed
    Her?", "the director of Her", "What did Ann direct?". The questions that people ask are not looked at, so check the
    effect on some real ones: see `evaluate`.

    Args:
        graph: The graph; of an index `index.graph`.
        count: The number of questions, at most `MAX_COUNT`. There are fewer if the graph has no more.
        seed: Of all that is drawn. Equal seeds give equal questions.
        max_hops: The longest walk, 1 to 3.

    Raises:
        InvalidArgumentError: If an argument is out of range, or the graph has no triple to ask about.

    Example:
        >>> from kg_retrievers.sample import load_graph
        >>> question = generate_questions(load_graph(), 1)[0]
        >>> question.kind, len(question.answers) > 0, question.pattern.target
        ('1-hop', True, 'entity 1')
    """
    if not isinstance(graph, KnowledgeGraph):
        raise InvalidArgumentError(f"{_WHO}: wanted a KnowledgeGraph, as index.graph, but got {graph!r:.100}.")
    check_integer(count, f"{_WHO}: count", 1, MAX_COUNT)
    check_integer(seed, f"{_WHO}: seed", 0)
    check_integer(max_hops, f"{_WHO}: max_hops", 1, MAX_HOPS)
    names, random = Names(graph), Random(seed)
    drawer, writer = ShapeDrawer(graph, names, random), QuestionWriter(graph, names, random)
    kinds = [*range(1, max_hops + 1), 0]
    questions: dict[str, Question] = {}
    idle = 0
    while len(questions) < count and idle < IDLE_ROUNDS:
        before = len(questions)
        for hops in kinds[: count - before]:
            if shape := drawer.draw(hops):
                text = writer.write(shape)
                questions.setdefault(text.casefold().rstrip("?."), _question(graph, names, shape, text))
        idle = idle + 1 if len(questions) == before else 0
    if not questions:
        raise InvalidArgumentError(
            f"{_WHO}: {graph} has no triple to ask about. Wanted are triples that join entities with names of their "
            "own, by relations that can be told apart."
        )
    return list(questions.values())


def _question(graph: KnowledgeGraph, names: Names, shape: Shape, text: str) -> Question:
    return Question(
        text,
        seed_entities=tuple(graph.entities[walk.start] for walk in shape.walks),
        answers=tuple(graph.entities[answer] for answer in shape.answers),
        pattern=shape.pattern(graph, names),
        kind=shape.kind,
    )
