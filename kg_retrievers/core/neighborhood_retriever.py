"""BaseNeighborhoodRetriever: the base of methods that search around the question's entities."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from kg_retrievers.algorithms.neighborhood import Neighborhood, neighborhood
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import RetrievalState, Text
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex, PartRequest, link_question, linker_of

#: GNN-RAG (arXiv:2405.20139), appendix D: subgraphs of at most 2,000 nodes by personalised PageRank.
MAX_NODES = 2_000

#: The longest chain of facts that the questions of MetaQA and PathQuestion need.
MAX_HOPS = 3


class MaskedQuestionState(RetrievalState, total=False):
    """The state of stages that read the question without its entities."""

    #: The question with `MASK` in place of its entities.
    masked_question: Text


class BaseNeighborhoodRetriever(BaseKGRetriever):
    """A retriever over the neighbourhood of a question's entities, or the whole graph."""

    #: "neighborhood": the entities of the question and their surroundings. "graph": all of the graph, whatever the
    #: question names. No entity need be found.
    scope: Literal["neighborhood", "graph"] = "neighborhood"
    #: How many triples a neighbour is away from the entities of the question, at most. None for any number.
    max_hops: int | None = Field(default=MAX_HOPS, ge=1)
    #: The most entities of a neighbourhood. The entities with the highest personalised PageRank are kept. None for no
    #: limit.
    max_nodes: int | None = Field(default=MAX_NODES, ge=1)

    def part(self, state: Mapping[str, Any]) -> GraphIndex:
        """Fetch the neighbourhood of the question's entities, of a connected graph."""
        self._check_scope()
        return super().part(state)

    def part_request(self, entities: tuple[str, ...]) -> PartRequest:
        """Request the surroundings of the entities, as in the base class.

        The request includes the facts between the outermost entities.
        """
        return PartRequest(entities, self.max_hops, between=True)

    def model_post_init(self, context: Any) -> None:
        """Check that a whole graph is at hand if the scope is "graph".

        Raises:
            InvalidArgumentError: If not.
        """
        super().model_post_init(context)
        self._check_scope()

    def _check_scope(self) -> None:
        if self.scope == "graph" and self.index.is_connected:
            raise InvalidArgumentError(
                f'{type(self).__name__}: scope="graph" looks at all facts, but the graph stays in its database.',
                hint_python='Take scope="neighborhood", or read the graph: KnowledgeGraph.from_executor(executor).',
            )

    def link(self, question: str, given: Sequence[str] = ()) -> tuple[list[str], str]:
        """Return the question's entities, the likeliest first, and the question without their names.

        With scope "graph", uses only entities that the caller gives, and none are required.

        Raises:
            EntityLinkingError: If none is given and none is found.
        """
        if self.scope == "graph" and not given:
            return [], question
        return link_question(linker_of(self.index), question, given)

    def link_entities(self, state: RetrievalState) -> dict[str, Any]:
        """Run the stage that writes `seed_entities`."""
        seeds, _ = self.link(state["question"])
        return {"seed_entities": seeds}

    def link_and_mask(self, state: MaskedQuestionState) -> dict[str, Any]:
        """Run the stage that writes `seed_entities` and `masked_question`.

        Values that the caller supplied stay.
        """
        seeds, masked = self.link(state["question"], state.get("seed_entities") or ())
        return {"seed_entities": seeds, "masked_question": state.get("masked_question") or masked}

    def entity_ids(self, keys: Sequence[str]) -> Array:
        """Return the ids of entities: int64, shape (keys).

        The id is -1 for a key that is not in the graph.
        """
        return np.array([self.graph.entities.find(key) for key in keys], np.int64)

    def checked_rows(
        self, field: str, rows: Sequence[Sequence[Any]], known: Container[Any], wanted: str
    ) -> list[list[Any]]:
        """Check the rows of an input and return them.

        A row is a name or a triple with its score. Each must be known and occur once.

        Raises:
            InvalidArgumentError: If a row is unknown or occurs twice.
        """
        names = [row[0] if len(row) == 2 else tuple(row[:-1]) for row in rows]
        if strange := [name for name in names if name not in known]:
            raise InvalidArgumentError(
                f"{type(self).__name__}: {field} must hold {wanted}, but got {strange[0]!r:.200}."
            )
        if len(set(names)) < len(names):
            raise InvalidArgumentError(
                f"{type(self).__name__}: {field} must hold nothing twice, but got {rows!r:.200}."
            )
        return [list(row) for row in rows]

    def named(self, seeds: Sequence[str]) -> dict[str, list[list[str]]]:
        """Return the details of evidence that list its entities.

        The details are empty if no entity counts.
        """
        if self.scope == "graph" or not seeds:
            return {}
        return {"entities": [[self.graph.label(key), key] for key in seeds]}

    def facts_of(self, triples: Array) -> list[Triple]:
        """Return triples by their ids, in this order, for less than one by one."""
        graph = self.graph
        rows = graph.edges[triples].tolist()
        keys = {entity: graph.entities[entity] for head, _, tail in rows for entity in (head, tail)}
        relations = {relation: graph.relations[relation] for _, relation, _ in rows}
        return [Triple(keys[head], relations[relation], keys[tail]) for head, relation, tail in rows]

    def triples_in_scope(self, seeds: Sequence[str]) -> tuple[Array, bool]:
        """Return the ids of the triples in scope, ascending.

        Also return whether `max_nodes` left some out.

        Raises:
            EntityLinkingError: If there are no seeds, but the scope is a neighbourhood.
        """
        if self.scope == "graph":
            return np.arange(len(self.graph)), False
        found = self.neighborhood(seeds)
        return found.triples, found.truncated

    def neighborhood(self, seeds: Sequence[str]) -> Neighborhood:
        """Return the neighbourhood of the seeds.

        Raises:
            EntityLinkingError: If there are no seeds.
        """
        if not seeds:
            raise EntityLinkingError(f"{type(self).__name__}: no entity is given whose neighbourhood to look at.")
        ids = self.entity_ids(seeds).astype(np.int32)
        return neighborhood(self.graph.adjacency, ids, max_hops=self.max_hops, max_nodes=self.max_nodes)
