"""RandomTripleRetriever: triples around the question's entities, drawn at random.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, table 9: "Rand" and, with `without_answers`, "RandNoAns".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

from langchain_core.runnables import RunnableLambda
from pydantic import Field

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.stages import MAX_K, QuestionShape, RetrievalState, Stage
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Evidence, Triple

#: As many triples as SubgraphRAG retrieves, with which the paper compares these (section 4.1).
K = 100


class RandomTripleState(RetrievalState, total=False):
    """The state of the stages."""

    #: The entities whose triples are left out: the gold answers.
    left_out: Annotated[list[str], Field(description="a list of keys of entities")]


class RandomTripleRetriever(BaseNeighborhoodRetriever):
    """Returns triples within `max_hops` of the question's entities, drawn at random without replacement.

    The score of a triple is a number in [0, 1) that `seed`, the question and the triple determine, and that is
    distributed as if it were drawn at random; the first `k` by it are returned. So the same question gives the same
    triples, in any order of the graph, and another `seed` others. The method proposes no answers.

    With `without_answers=True`, those of the `k` that hold a gold answer are left out after the draw, as in the paper:
    `evaluate` hands over the answers; `invoke(question, left_out=[...])` takes them.

    Differs from the paper: with `scope="neighborhood"`, triples are drawn from the neighbourhood, of which the
    subgraphs of its data sets are one; each is a Document of its own.

    Cost: no call of a language model; one hash for each triple in scope.

    Raises:
        InvalidArgumentError: If `without_answers` is set, and a question comes without `left_out`.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "starring", "Amy Adams")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> retriever = RandomTripleRetriever.from_index(index, without_answers=True)
        >>> for document in retriever.invoke("Who directed Her?", left_out=["Spike Jonze"]):
        ...     print(document.page_content)
        Her -> starring -> Amy Adams
    """

    state_class: ClassVar[type] = RandomTripleState
    suits: ClassVar[frozenset[QuestionShape]] = frozenset()
    proposes_answers: ClassVar[bool] = False
    entity_inputs: ClassVar[frozenset[str]] = frozenset({"left_out"})

    #: The number of triples that are drawn, each a Document.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: What one Document holds.
    granularity: Literal["triple"] = "triple"
    #: How the triple of a Document is written.
    style: DocumentStyle = "triples"
    #: Of the draw.
    seed: int = 0
    #: Whether drawn triples that hold a gold answer are left out.
    without_answers: bool = False

    def inputs_for(self, question: Question) -> dict[str, Any]:
        """Return its entities and, where answers are left out, these."""
        left_out = {"left_out": list(question.answers)} if self.without_answers else {}
        return super().inputs_for(question) | left_out

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, unless the scope is the whole graph; then draw triples."""
        link = Stage("link_entities", RunnableLambda(self.link_entities), ("seed_entities",))
        draw = Stage("draw_triples", RunnableLambda(self._draw_triples), ("answers", "documents"))
        return (draw,) if self.scope == "graph" else (link, draw)

    def _draw_triples(self, state: RandomTripleState) -> dict[str, Any]:
        if self.without_answers and "left_out" not in state:
            raise InvalidArgumentError(
                "RandomTripleRetriever: without_answers leaves out the triples of the gold answers, but the question "
                "comes without them. Hand them in: invoke(question, left_out=[...]), or evaluate."
            )
        drawn, truncated = self._drawn(state)
        left_out = set(state.get("left_out") or ())
        kept = [triple for triple in islice(drawn, state["k"]) if not left_out & {triple.head, triple.tail}]
        details = self.named(state.get("seed_entities") or [])
        evidence = [Evidence((triple,), drawn[triple], truncated=truncated, details=details) for triple in kept]
        return {"answers": [], "documents": self.documents_from(evidence, state["k"], state["question"])}

    def _drawn(self, state: Mapping[str, Any]) -> tuple[dict[Triple, float], bool]:
        """Return all triples in scope with their numbers, in the order drawn, and whether some are not in scope."""
        triples, truncated = self.triples_in_scope(state.get("seed_entities") or [])
        numbers = {triple: self._number(state["question"], triple) for triple in self.facts_of(triples)}
        order = sorted(numbers, key=lambda triple: (-numbers[triple], triple))
        return {triple: numbers[triple] for triple in order}, truncated

    def _number(self, question: str, triple: Triple) -> float:
        """Return a number in [0, 1) that looks as if drawn at random; of 53 bits, which a float holds."""
        text = json.dumps([self.seed, question, *triple])
        digest = blake2b(text.encode(), digest_size=8).digest()
        return (int.from_bytes(digest) >> 11) / 2**53
