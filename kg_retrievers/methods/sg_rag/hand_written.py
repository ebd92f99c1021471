"""Question -> Cypher by templates that a person wrote (SG-RAG, section 5.3 and table 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from langchain_core.runnables import RunnableLambda

from kg_retrievers.core.runnables import Body, Call, GeneratorRunnable
from kg_retrievers.database.executor import Executor
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.index import GraphIndex, QuestionEntity, check_index, check_same_embeddings, embed, mask
from kg_retrievers.methods.sg_rag.template_queries import PLACEHOLDER, TemplateQuery
from kg_retrievers.methods.sg_rag.writers import Queries
from kg_retrievers.questions.examples import confidence_at

_IN_QUESTION = re.compile(PLACEHOLDER)


@dataclass(frozen=True)
class CypherTemplate:
    """A query for all questions of one kind, with a place for the entity that each names.

    Args:
        query: The query. It compares a property with `"<entity>"`, the entity of the question; of several, these are
            `"<entity 1>"`, `"<entity 2>"`.
        questions: Questions of that kind in different words, with `<entity>` for the name.
        target: The variable of what is asked for; by default the column `target` of the query, else the last node that
            it returns and does not compare with an entity.

    Raises:
        InvalidArgumentError: If there is no question, the places of a question and the query differ, or an entity is
            not compared by `variable.property = "<entity>"`.
        CypherSafetyError: If the query does more than read.

    Example:
        >>> directed = CypherTemplate(
        ...     'MATCH (m:Movie)-[r:DIRECTED_BY]->(d:People) WHERE d.name="<entity>" RETURN m, r, d',
        ...     ("which films did <entity> direct", "films directed by <entity>"),
        ... )
        >>> directed.places
        ('<entity>',)
    """

    query: str
    questions: tuple[str, ...]
    target: str | None = None

    def __post_init__(self) -> None:
        """Check that the questions and the query have the same places."""
        if isinstance(self.questions, str) or not self.questions:
            raise InvalidArgumentError(
                f"CypherTemplate: questions must be a tuple of one text or more, but got {self.questions!r:.100}."
            )
        in_query = {*TemplateQuery(self.query, self.target).places}
        for question in self.questions:
            if {*_IN_QUESTION.findall(question)} != in_query:
                raise InvalidArgumentError(
                    f"CypherTemplate: the question {question!r:.200} has other places than the query, which has "
                    f"{sorted(in_query)}. Write each as in <entity>."
                )

    @property
    def places(self) -> tuple[str, ...]:
        """The places, in the order of the first question."""
        return tuple(dict.fromkeys(_IN_QUESTION.findall(self.questions[0])))


class HandWrittenCypherWriter(GeneratorRunnable[Mapping[str, Any], Queries]):
    """Fills the template whose question is nearest, its entities masked, with the entities of the question.

    Names of labels, types and properties are those of the database, where it has them but for upper and lower case and
    for `_` in place of other signs; `name`, where it has no such property, is the key, or the label where it is not
    compared with an entity. In LadybugDB, which may take one relationship twice, a MATCH takes each once, as in Neo4j,
    where it is named. Entities are parameters, and namesakes are asked for together. "example" of the query is
    the nearest question, with its distance, in [0, 2]; the confidence is that of an example at this distance.

    Differs from the paper: there, the category of each question is known, and so is its entity.

    Args:
        index: The indexed graph.
        templates: The templates.

    Raises:
        InvalidArgumentError: If there are no templates.
        EntityLinkingError: From `invoke`, if the question names fewer entities than any template.
        CypherSafetyError: From the retriever, if a query names what the database lacks, or returns no relationships.
    """

    calls_model = False

    def __init__(self, index: GraphIndex, templates: Sequence[CypherTemplate]) -> None:
        """Mask the questions of the templates and embed them."""
        check_index(type(self).__name__, index)
        if not templates or not all(isinstance(template, CypherTemplate) for template in templates):
            raise InvalidArgumentError(
                f"{type(self).__name__}: wanted a list of one CypherTemplate or more, but got {templates!r:.100}."
            )
        self.index, self.templates = index, tuple(templates)
        self._queries = [TemplateQuery(template.query, template.target) for template in templates]
        self._rows = [(at, question) for at, template in enumerate(templates) for question in template.questions]
        masked = [mask(question, _spans(question)) for _, question in self._rows]
        self._vectors = embed(index.embeddings, masked, batch_size=1024)

    def with_index(self, index: GraphIndex) -> Self:
        """Return the writer over another graph, with the same templates.

        Raises:
            ModelMismatchError: If it was indexed with other embeddings than the templates.
        """
        check_same_embeddings(type(self).__name__, self.index, index)
        moved = copy(self)
        moved.index = index
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Queries]:
        """Find the nearest question, and fill its template."""
        filled: Queries = yield Call(RunnableLambda(self._filled), input)
        return filled

    def _filled(self, input: Mapping[str, Any]) -> Queries:
        question, entities = input["question"], input["entities"]
        distances = [self._distances(question, entities[:places]) for places in range(len(entities) + 1)]
        options = [
            (distances[places][row], -places, row)
            for row, (at, _) in enumerate(self._rows)
            if (places := len(self.templates[at].places)) <= len(entities)
        ]
        if not options:
            raise EntityLinkingError(
                f"{type(self).__name__}: found {len(entities)} entities in {question!r:.200}; every template "
                "needs more."
            )
        distance, fewer, row = min(options)
        return [
            self._query(row, float(distance), sorted(entities[:-fewer], key=lambda one: one.start), input["executor"])
        ]

    def _distances(self, question: str, entities: Sequence[QuestionEntity]) -> list[float]:
        """Return how far the questions of all templates are from one whose entities are masked."""
        masked = mask(question, [(entity.start, entity.end) for entity in entities])
        # Of unit vectors; other than that of BLAS, this product is the same for equal rows, wherever they stand.
        cosines = np.einsum("ij,j->i", self._vectors, self.index.embed([masked])[0])
        return [float(distance) for distance in np.sqrt(np.maximum(2 - 2 * cosines, 0))]

    def _query(
        self, row: int, distance: float, entities: Sequence[QuestionEntity], executor: Executor
    ) -> dict[str, Any]:
        at, question = self._rows[row]
        places = dict.fromkeys(_IN_QUESTION.findall(question))
        keys = {place: list(one.entities[: one.best]) for place, one in zip(places, entities, strict=True)}
        query, parameters = self._queries[at].fill(keys, executor, self.index.graph.label)
        shown = {"question": question, "distance": round(distance, 2)}
        confidence = confidence_at(distance)
        return {
            "query": query,
            "parameters": parameters,
            "from": "template",
            "confidence": confidence,
            "example": shown,
        }


def _spans(question: str) -> list[tuple[int, int]]:
    return [found.span() for found in _IN_QUESTION.finditer(question)]
