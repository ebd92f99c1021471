"""SeededRetriever: what methods share that look at a part of the graph around the entities of a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from pydantic import Field, PrivateAttr

from kg_retrievers.algorithms.neighborhood import Neighborhood, neighborhood
from kg_retrievers.base import AnswerPrompt, BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import EntityLinker, GraphIndex, link_question
from kg_retrievers.questions import Question

#: GNN-RAG (arXiv:2405.20139), appendix D: subgraphs of at most 2,000 nodes by personalised PageRank.
MAX_NODES = 2_000

#: The longest chain of facts that the questions of MetaQA and PathQuestion need.
MAX_HOPS = 3


class SeededRetriever(BaseKGRetriever):
    """A retriever that looks at the neighbourhood of the entities a question names, or at the whole graph."""

    #: "neighborhood": the entities of the question and what is near them. "graph": all of the graph, whatever the
    #: question names; no entity need be found.
    scope: Literal["neighborhood", "graph"] = "neighborhood"
    #: How many triples a neighbour is away from the entities of the question, at most; None for any number.
    max_hops: int | None = Field(default=MAX_HOPS, ge=1)
    #: The size of a neighbourhood: of more entities, those with the highest personalised PageRank. None for no limit.
    max_nodes: int | None = Field(default=MAX_NODES, ge=1)
    #: The prompt for answering, with the placeholders `question` and `evidence`.
    answering: AnswerPrompt

    _made_linker: EntityLinker | None = PrivateAttr(default=None)

    @classmethod
    def from_index(
        cls,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
        model: Any = None,
        **fields: Any,
    ) -> Self:
        """Build the retriever.

        Args:
            index: The indexed graph.
            llm: Not used; the method asks no language model.
            examples: Not used; the method learns nothing from them.
            model: None; there is nothing to train.
            **fields: Fields of the retriever.

        Raises:
            InvalidArgumentError: If a model is given, or a field is wrong.
        """
        if model is not None:
            raise InvalidArgumentError(f"{cls.__name__}: got a trained model, but it is not trained. Leave it out.")
        return cls(index=index, **fields)

    @property
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        """The prompt for answering."""
        return {"answer": self.answering}

    @property
    def answer_prompt(self) -> BasePromptTemplate[Any]:
        """The prompt for answering."""
        return self.answering

    @property
    def _linker(self) -> EntityLinker:
        if self._made_linker is None or self._made_linker.index is not self.index:
            self._made_linker = EntityLinker(self.index)
        return self._made_linker

    def link(self, question: str, given: Sequence[str] = ()) -> tuple[list[str], str]:
        """Return the entities that a question is about, the likeliest first, and the question without their names.

        In the scope "graph" only entities that are given count, and none may be.

        Raises:
            EntityLinkingError: If none is given and none is found.
        """
        if self.scope == "graph" and not given:
            return [], question
        return link_question(self._linker, question, given)

    def candidates(self, seeds: Sequence[str]) -> tuple[Array, bool]:
        """Return the numbers of the triples in scope, ascending, and whether `max_nodes` left some out.

        Raises:
            EntityLinkingError: If there are no seeds, but a neighbourhood is wanted.
        """
        if self.scope == "graph":
            return np.arange(len(self.graph)), False
        found = self.neighborhood(seeds)
        return found.triples, found.truncated

    def neighborhood(self, seeds: Sequence[str]) -> Neighborhood:
        """Return what is around the seeds.

        Raises:
            EntityLinkingError: If there are no seeds.
        """
        if not seeds:
            raise EntityLinkingError(f"{type(self).__name__}: no entity is given whose neighbourhood to look at.")
        numbers = np.array([self.graph.entities.find(seed) for seed in seeds], np.int32)
        return neighborhood(self.graph.adjacency, numbers, max_hops=self.max_hops, max_nodes=self.max_nodes)

    def check_masked(self, checked: dict[str, Any]) -> dict[str, Any]:
        """Return checked inputs, whose masked question must be a text where there is one.

        Raises:
            InvalidArgumentError: If it is none.
        """
        masked = checked.get("masked_question")
        if masked is not None and not (isinstance(masked, str) and masked.strip()):
            raise InvalidArgumentError(
                f"{type(self).__name__}: masked_question must be a text, but got {masked!r:.200}."
            )
        return checked
