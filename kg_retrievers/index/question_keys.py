"""Questions as a user writes them, with labels and values for answers, as questions with keys of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.errors import listed
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.values import Value, read_value
from kg_retrievers.index.connected_graph import PartRequest
from kg_retrievers.index.graph_index import GraphIndex
from kg_retrievers.index.misspelt_names import near_entities

#: How many names that cannot be matched a message shows, and how many keys of each.
SHOWN = 3


@dataclass(frozen=True)
class KeyedQuestions:
    """Questions with keys in place of labels.

    Attributes:
        questions: The questions, in their order. A name that cannot be matched stays as it is.
        answers: How many gold answers they have, those that are values included.
        lost: How many of these cannot be matched.
        told: Sentences on the names that cannot be matched. Empty if all can be.
    """

    questions: list[Question]
    answers: int
    lost: int
    told: str

    @property
    def unmatched(self) -> dict[str, Any]:
        """The part of a report on unmatched answers. Empty if all are matched."""
        return {"gold_answers": self.answers, "unmatched": self.lost, "told": self.told} if self.lost else {}


def with_keys(index: GraphIndex, questions: Sequence[Question]) -> KeyedQuestions:
    """Match the answers and the question entities of questions with a graph.

    An entity is named by its key, by a label or alias that no other entity has, or by a value that it is, such as "May
    3, 1990" for "1990-05-03". A question whose only answer is no entity and reads as a number, a date, "yes" or "no"
    has that value as its `value`. A question with a graph of its own is matched with that graph: see
    `GraphQuestion.with_keys`.

    Args:
        index: The index of the graph.
        questions: The questions.

    Example:
        >>> from kg_retrievers.index import default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Q1", "capital", "Q2")], labels={"Q2": "Rome"})
        >>> asked = [Question("What is the capital?", answers=("Rome",)), Question("Is it Rome?", answers=("yes",))]
        >>> found = with_keys(GraphIndex.build(graph, default_embeddings()), asked).questions
        >>> found[0].answers, found[1].value
        (('Q2',), True)
    """
    shared = [at for at, question in enumerate(questions) if not isinstance(question, GraphQuestion)]
    keyed = [one.with_keys() if isinstance(one, GraphQuestion) else one for one in questions]
    problems: dict[int, list[tuple[str, str]]] = {}

    def named(positions: Sequence[int]) -> PartRequest:
        names = {name for at in positions for name in (*questions[at].answers, *questions[at].seed_entities)}
        forms = {form for name in names for form in _forms(name)}
        return PartRequest(tuple(sorted(forms)), names=tuple(sorted(names)))

    for part, positions in index.parts(shared, named):
        for at in positions:
            keyed[at] = _keyed(part.graph, questions[at])
            problems[at] = [(name, _bearers(part.graph, name)) for name in _unmatched(part.graph, keyed[at])]
    for at, question in enumerate(keyed):
        if isinstance(question, GraphQuestion) and not question.in_words:
            problems[at] = [(name, "") for name in question.answers if name not in question.graph.entities]
    lost = Counter(is_answer for at, some in problems.items() for is_answer in _roles(keyed[at], some))
    count = sum(len(question.answers) or question.value is not None for question in keyed)
    return KeyedQuestions(keyed, count, lost[True], _told(index, keyed, problems, lost, count))


def tell_unmatched(index: GraphIndex, questions: Sequence[Question]) -> str:
    """Return a blank and sentences on the names that cannot be matched. Empty if all can be."""
    told = with_keys(index, questions).told
    return f" {told}" if told else ""


def value_of_answer(question: Question) -> Any:
    """Return the value that the only answer of a question is, if it is one without a unit."""
    value = read_value(question.answers[0]) if len(question.answers) == 1 else None
    return None if value is None or value.unit else value.plain


def _keyed(graph: KnowledgeGraph, question: Question) -> Question:
    seeds = tuple(_key(graph, name) or name for name in question.seed_entities)
    keys = [_key(graph, name) for name in question.answers]
    answers = tuple(dict.fromkeys(key or name for key, name in zip(keys, question.answers, strict=True)))
    if keys == [None] and question.value is None and not graph.entities_named(question.answers[0]):
        value = value_of_answer(question)
        if value is not None:
            return replace(question, seed_entities=seeds, answers=(), value=value)
    return replace(question, seed_entities=seeds, answers=answers)


def _key(graph: KnowledgeGraph, name: str) -> str | None:
    """Return the key of the entity that a name means; None if it means none, or several."""
    bearers = graph.entities_named(name)
    forms = _forms(name)
    found = forms[:1] if name in graph.entities else bearers or [form for form in forms if form in graph.entities]
    return found[0] if len(found) == 1 else None


def _forms(name: str) -> list[str]:
    """Return a name, and the usual form of the value that it is."""
    value = read_value(name)
    return list(dict.fromkeys([name, *([_usual_form(value)] if value and value.truth is None else [])]))


def _usual_form(value: Value) -> str:
    if value.first is not None and value.first == value.last:
        return value.first.isoformat()
    return value.text if value.unit else str(value.plain)


def _unmatched(graph: KnowledgeGraph, question: Question) -> list[str]:
    return [name for name in (*question.answers, *question.seed_entities) if name not in graph.entities]


def _bearers(graph: KnowledgeGraph, name: str) -> str:
    """Return how many entities bear a name, with their keys; nothing if there are none."""
    bearers = graph.entities_named(name)
    return f"{len(bearers)} entities bear it: {listed(bearers, SHOWN)}" if bearers else ""


def _roles(question: Question, problems: Sequence[tuple[str, str]]) -> Iterator[bool]:
    """Yield for each answer, and each question entity, that cannot be matched whether it is an answer."""
    names = {name for name, _ in problems}
    yield from (True for name in question.answers if name in names)
    yield from (False for name in question.seed_entities if name in names)


def _told(
    index: GraphIndex,
    questions: Sequence[Question],
    problems: dict[int, list[tuple[str, str]]],
    lost: Counter[bool],
    answers: int,
) -> str:
    """Return how many answers and question entities cannot be matched, and the first ones with the nearest keys."""
    if not lost:
        return ""
    counts = {f"{lost[True]} of {answers} gold answers": lost[True], f"{lost[False]} question entities": lost[False]}
    named = [(questions[at], *problem) for at, some in sorted(problems.items()) for problem in some]
    shown: list[str] = []
    for question, name, bearers in named[:SHOWN]:
        why = bearers or _nearest(index, question, name)
        shown.append(f"{name!r:.100} (of {question.text!r:.200}{'; ' if why else ''}{why})")
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return (
        f"{' and '.join(count for count in counts if counts[count])} match no entity of the graph, or several: "
        f"{'; '.join(shown)}{more}. Write keys, or names that one entity has."
    )


def _nearest(index: GraphIndex, question: Question, name: str) -> str:
    """Return the nearest entity by its key, as far as names are searched."""
    if isinstance(question, GraphQuestion) or not name.strip() or not index.finds_near_names:
        return ""
    [near] = near_entities(index, [name])
    return f"nearest: {near[0].entity!r}, called {near[0].label!r}" if near else ""
