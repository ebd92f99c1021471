"""The examples to train a graph prompt on: a question, its answers, and the graph that was retrieved for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Self

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from pydantic import Field
from typing_extensions import TypedDict

from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.errors import named_arguments
from kg_retrievers.graph import Triple
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.graph.verbalize import LONE_ENTITIES, facts_of, lone_entities_of


class GraphPromptInput(TypedDict):
    """The input of a graph prompt.

    Attributes:
        question: The question.
        documents: The evidence, best first.
    """

    question: str
    documents: list[Document]


@checked_dataclass
class GraphPromptExample:
    """A question, its answers, and the graph that a language model reads.

    Args:
        question: The question.
        answers: The answers, in the form to learn.
        triples: The graph, most important first. Empty if nothing was found.
        labels: The labels of the entities, by key. A missing key is its own label.
        entities: The entities of the graph that no triple holds, such as an object of a scene without relations.

    Raises:
        InvalidArgumentError: If the question is empty, there is no answer, or a triple is not three texts.

    Example:
        >>> GraphPromptExample("Who directed Her?", ("Spike Jonze",), (Triple("Her", "directed_by", "Spike Jonze"),))
        GraphPromptExample('Who directed Her?', answers=('Spike Jonze',), triples=1)
    """

    question: str = Field(pattern=r"\S")
    answers: tuple[Annotated[str, Field(pattern=r"\S")], ...] = Field(min_length=1)
    triples: tuple[Triple, ...] = Field(default=(), strict=False)  # a list will do
    labels: Mapping[str, str] = Field(default_factory=dict)
    entities: tuple[str, ...] = Field(default=(), strict=False)

    def __repr__(self) -> str:
        """Show the question, the answers and the number of triples."""
        return f"GraphPromptExample({self.question!r}, answers={self.answers!r}, triples={len(self.triples)})"

    @property
    def input(self) -> GraphPromptInput:
        """The example as a trained model takes it, to see whether it gives the answers."""
        return {"question": self.question, "documents": [_document(self.triples, self.labels, self.entities)]}

    @classmethod
    def of_documents(cls, question: str, answers: Iterable[str], documents: Sequence[Document]) -> Self:
        """Return an example whose graph is a retriever's result: triples and lone entities of all Documents, once."""
        return cls(question, tuple(answers), *graph_of(documents))

    @classmethod
    def of_graph(cls, question: GraphQuestion, retriever: Runnable[str, list[Document]] | None = None) -> Self:
        """Return an example of a question with a graph of its own.

        Args:
            question: The question, with its graph.
            retriever: A retriever that was built over this graph. If it refuses a question, the graph is empty. None
                for all of the graph.
        """
        if retriever is not None:
            return cls.of_documents(question.text, question.answers, retriever.invoke(question.text))
        labels = {key: question.graph.label(key) for key in question.graph.entities}
        whole = [_document(question.graph.triples(), labels, labels)]
        return cls.of_documents(question.text, question.answers, whole)


def _document(triples: Iterable[Triple], labels: Mapping[str, str], entities: Iterable[str]) -> Document:
    details = {LONE_ENTITIES: list(entities)}
    return Document("", metadata={"triples": [list(row) for row in triples], "labels": {**labels}, "details": details})


def graph_of(documents: Sequence[Document]) -> tuple[tuple[Triple, ...], dict[str, str], tuple[str, ...]]:
    """Return the graph in Documents: its triples, the labels of its entities, and the entities that no triple holds.

    Raises:
        InvalidArgumentError: If a Document holds no evidence.
    """
    triples, labels = facts_of(documents, "graph prompt")
    held = {key for head, _, tail in triples for key in (head, tail)}
    return triples, labels, tuple(key for key in lone_entities_of(documents) if key not in held)


@named_arguments
def graph_prompt_examples(
    retriever: Runnable[str, list[Document]], questions: Iterable[Question], *, label: Callable[[str], str] = str
) -> list[GraphPromptExample]:
    """Retrieve the graphs of questions for training.

    Args:
        retriever: The retriever that will stand before the model. If it refuses a question, it logs a warning, and the
            graph is empty.
        questions: With answers. Questions without any are left out, since nothing can be learned from them.
        label: Returns the label of an answer, which is an entity key, as `graph.label` does. By default the key itself.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, PCSTRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> retriever = PCSTRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> graph_prompt_examples(retriever, [Question("Who directed Her?", answers=("Spike Jonze",))])
        [GraphPromptExample('Who directed Her?', answers=('Spike Jonze',), triples=1)]
    """
    return [
        GraphPromptExample.of_documents(question.text, map(label, question.answers), retriever.invoke(question.text))
        for question in questions
        if question.answers
    ]
