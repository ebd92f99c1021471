"""Questions as every reader gives them, and the lines of their files."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Self

from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError, named_arguments
from kg_retrievers.graph import KnowledgeGraph, Pattern, Triple
from kg_retrievers.paths import read_bytes

#: The most characters of a question, of a text that an index searches, and of a name that a tool is given.
MOST_CHARACTERS = 10_000


def check_question(question: Any, who: str) -> None:
    """Check that a question can be asked: every caller of a question passes here.

    Args:
        question: The value that was given.
        who: The caller, for the message.

    Raises:
        InvalidArgumentError: If it is no text, empty, or longer than `MOST_CHARACTERS`.
    """
    if not isinstance(question, str):
        raise InvalidArgumentError(
            f"{who}: the question must be a text, but got {question!r:.100}.",
            hint_python="Give the text alone.",
        )
    if not question.strip():
        raise InvalidArgumentError(f"{who}: the question is empty. Ask something about the graph.")
    check_length(question, f"{who}: the question")


def check_length(text: str, who: str) -> None:
    """Check that a text is short enough to search for.

    Raises:
        InvalidArgumentError: If it is longer than `MOST_CHARACTERS`.
    """
    if len(text) > MOST_CHARACTERS:
        raise InvalidArgumentError(
            f"{who} must have at most {MOST_CHARACTERS:,} characters, but got {len(text):,}. Give a shorter text."
        )


@named_arguments
@dataclass(frozen=True)
class Question:
    """A question with its labels. Everything but the text may be absent.

    Args:
        text: The question as a person would type it.
        seed_entities: The keys of the entities that it names.
        answers: The keys of all gold answers.
        pattern: The small graph that it asks for.
        triples: The gold triples, in stored direction.
        value: What an operation gives as the answer: a number, a truth value, a text, or a list of these; None where
            entities answer.
        kind: The question type, in the words of the set.
        answerable: Whether the graph holds an answer; where it does not, the right reply is a refusal.

    Raises:
        InvalidArgumentError: If the text cannot be asked (`check_question`), or `seed_entities` or `answers` is not a
            tuple of texts.

    Example:
        >>> Question("who directed Her", seed_entities=("Her",)).to_dict()
        {'question': 'who directed Her', 'seed_entities': ['Her']}
    """

    text: str
    seed_entities: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    pattern: Pattern | None = None
    triples: tuple[Triple, ...] = ()
    kind: str | None = None
    answerable: bool = True
    value: Any = None

    def __post_init__(self) -> None:
        """Check that there is a text, and that lists are lists."""
        check_question(self.text, "Question")
        for name in ("seed_entities", "answers"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(key, str) for key in value):
                hint = f"Write {name}=({value!r:.60},)." if isinstance(value, str) else ""
                raise InvalidArgumentError(
                    f"Question: {name} must be a tuple of texts, but got {value!r:.100}.", hint_python=hint
                )
        plain = self.value if isinstance(self.value, list) else [self.value]
        if not all(isinstance(one, int | float | str | None) for one in plain):
            raise InvalidArgumentError(
                "Question: value must be a number, a truth value, a text or a list of these, but got "
                f"{self.value!r:.100}."
            )

    @property
    def hops(self) -> int | None:
        """The number of facts that it joins, by its pattern's triples or its gold triples. None if unknown.

        The gold triples of a question with several answers do not say it: a question of one hop has several.
        """
        if self.pattern:
            return len(self.pattern.triples)
        return (len(self.triples) or None) if len(self.answers) < 2 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the row that `write_questions` writes, without absent values and a true `answerable`."""
        row: dict[str, Any] = {
            "question": self.text,
            "seed_entities": list(self.seed_entities),
            "answers": list(self.answers),
            "pattern": self.pattern.to_dict() if self.pattern else None,
            "triples": [list(triple) for triple in self.triples],
            "kind": self.kind,
        }
        row = {key: value for key, value in row.items() if value}
        row |= {} if self.value is None else {"value": self.value}
        return row if self.answerable else row | {"answerable": False}


@named_arguments
@dataclass(frozen=True)
class GraphQuestion(Question):
    """A question about a graph of its own. Its answers are texts, and not always keys of entities.

    `write_questions` writes it without its graph. So are those of the GraphQA benchmark: He et al., "G-Retriever:
    Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering", NeurIPS 2024,
    arXiv:2402.07630, section 4.

    Args:
        graph: The graph, which several questions may share; it may be empty.
        id: Which question it is, in the words of the set.
        in_words: Whether its answers are words to say, as "support", and no entities; nothing compares them by key.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("cannabis", "synonym of", "marijuana")])
        >>> question = GraphQuestion("Support or counter?", answers=("support",), graph=graph, id="0")
        >>> question.graph
        KnowledgeGraph(2 entities, 1 relations, 1 triples)
    """

    _: KW_ONLY
    graph: KnowledgeGraph
    id: str
    in_words: bool = False

    def with_keys(self) -> Self:
        """Return the question with keys of its graph in place of names.

        A name stands for all entities that bear it. An answer in words, or that the graph does not hold, stays. A seed
        entity that the graph does not hold is left out if there are others.

        Example:
            >>> graph = KnowledgeGraph.from_triples([("Q1", "capital", "Q2")], labels={"Q2": "Rome"})
            >>> GraphQuestion("What is its capital?", answers=("Rome",), graph=graph, id="0").with_keys().answers
            ('Q2',)
        """
        seeds = self._keys(self.seed_entities)
        answers = self.answers if self.in_words else self._keys(self.answers)
        known = tuple(key for key in seeds if key in self.graph.entities)
        return replace(self, seed_entities=known or seeds, answers=answers)

    def _keys(self, names: Sequence[str]) -> tuple[str, ...]:
        keys: dict[str, None] = {}
        for name in names:
            named = [name] if name in self.graph.entities else self.graph.entities_named(name)
            keys |= dict.fromkeys(named or [name])
        return tuple(keys)


@named_arguments
def join_graphs(questions: Iterable[Question]) -> KnowledgeGraph:
    """Return all that the graphs of questions hold as one graph, in which entities with equal keys are one.

    So examples with graphs of their own, as parts of one knowledge graph, can teach a retriever: build it on the index
    of this graph, with the examples. Questions without a graph add nothing.

    Example:
        >>> first = GraphQuestion("?", graph=KnowledgeGraph.from_triples([("Her", "genre", "Drama")]), id="0")
        >>> second = GraphQuestion("?", graph=KnowledgeGraph.from_triples([("Alien", "genre", "Horror")]), id="1")
        >>> join_graphs([first, second])
        KnowledgeGraph(4 entities, 1 relations, 2 triples)
    """
    questions = [*questions]
    check_questions(questions, "join_graphs")
    graphs = dict.fromkeys(question.graph for question in questions if isinstance(question, GraphQuestion))
    labels = {key: graph.label(key) for graph in graphs for key in graph.entities if graph.label(key) != key}
    return KnowledgeGraph.from_triples((triple for graph in graphs for triple in graph.triples()), labels=labels)


def check_questions(questions: Any, who: str) -> None:
    """Check that the given value is a list of questions.

    Args:
        questions: The value that was given.
        who: The caller, for the message.

    Raises:
        InvalidArgumentError: If it is no list of questions.
    """
    is_list = isinstance(questions, Sequence) and not isinstance(questions, str)
    if not is_list or not all(isinstance(question, Question) for question in questions):
        raise InvalidArgumentError(
            f"{who}: wanted a list of Question, but got {questions!r:.100}. Read a file with read_questions(path)."
        )


def read_lines(path: str | Path) -> list[tuple[int, str]]:
    """Return the lines that are not blank, each with its number from 1.

    Raises:
        QuestionsLoadError: If the file cannot be read, is not UTF-8, or holds nothing.
    """
    data = read_bytes(path, QuestionsLoadError, "a text file").removeprefix(BOM_UTF8)
    lines = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise QuestionsLoadError(
                "wanted UTF-8, but got other bytes; save the file as UTF-8.", path, number
            ) from error
        if text.strip():
            lines.append((number, text))
    if not lines:
        raise QuestionsLoadError("wanted one row a line, but the file is empty.", path)
    return lines
