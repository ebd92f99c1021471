"""G-Retriever's retrieval: the connected subgraph whose prizes for the question exceed the cost of its edges.

X. He, Y. Tian, Y. Sun, N. Chawla, T. Laurent, Y. LeCun, X. Bresson, B. Hooi: G-Retriever: Retrieval-Augmented
Generation for Textual Graph Understanding and Question Answering. NeurIPS 2024, arXiv:2402.07630.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import networkx as nx
import numpy as np
from langchain_core.prompts import BasePromptTemplate
from pydantic import Field

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.prompts import AnswerPrompt
from kg_retrievers.core.stages import Number, QuestionShape, RetrievalState, Stage
from kg_retrievers.graph import Evidence, Triple
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import LONE_ENTITIES
from kg_retrievers.index import Candidates
from kg_retrievers.methods.g_retriever.prizes import STEP, prize_edges, prize_nodes, solve_prizes, walk_triples
from kg_retrievers.methods.g_retriever.prompts import ANSWER_PROMPT, ZERO_SHOT_PROMPT

#: Appendix B.1: k = 3 for nodes and k = 5 for edges on WebQSP.
K_NODES, K_RELATIONS = 3, 5

#: The paper uses 0.5 with other edge prizes. Among 0.02, 0.05 and 0.1, the least cost holds the most answers in 150 and
#: 500 tokens: .80 and .87 on `benchmarks/own_graphs/fit` (304 questions), .26 and .61 at three hops on MetaQA (40
#: questions), where 0.1 holds .77 and .81, .22 and .32 (`benchmarks.rivals --choose`, MetaQA with `--seed 20261128`).
EDGE_COST = 0.02

#: Ours. The most triples of a Document.
MAX_TRIPLES = 1_000

#: How many relations are ranked, since ranks are kept in checkpoints. A walk takes relations beyond as the next rank.
RANKED_RELATIONS = 100

#: How many triples a walk takes if `max_hops` sets no limit.
LONGEST_WALK = 10

#: How a walk prefers relations: the one at rank r from 0 has the weight (1 + r) ** -2. Of eight forms, by ranks and by
#: similarities, the best compromise on 600 tuning questions: the answer recall of its first 100 triples is 1.00, 0.99
#: and 0.72 on MetaQA's hops and 1.00 and 0.99 on PathQuestion's. The others differ by 0.08 at most.
PREFERENCE = 2


#: The preset "paper".
PAPER: Mapping[str, Any] = {
    #: Section 5.1: the whole of a graph, which each question of GraphQA has for itself.
    "scope": "graph",
    #: Appendix B.1, WebQSP. For SceneGraphs set `k_relations` to 3 and `edge_cost` to 1.
    "k_nodes": 3,
    "k_relations": 5,
    "edge_cost": 0.5,
    #: Equation 6. The published code shares the prize of a relation among its edges: `prizes="published"`.
    "prizes": "paper",
    #: Section 5.3: as in Hegde, Indyk and Schmidt (its reference 9).
    "pruning": "gw",
    #: Equation 7: a subgraph may be one node. None is cut.
    "lone_entities": True,
    "max_triples": 1_000_000_000,
    #: Appendix B.2, figure 4.
    "answer_prompt": ZERO_SHOT_PROMPT,
}

#: A name and its similarity to the question.
Ranked = tuple[str, Number]


class PCSTState(RetrievalState, total=False):
    """The state of the stages."""

    #: Entities that resemble the question, best first: `[[key, similarity], ...]`. Empty if there are seed entities.
    ranked_entities: Annotated[list[Ranked], Field(description="a list of [key, similarity], best first")]
    #: Relations that resemble the question, best first: `[[relation, similarity], ...]`.
    ranked_relations: Annotated[list[Ranked], Field(description="a list of [relation, similarity], best first")]


class PCSTRetriever(BaseNeighborhoodRetriever):
    """Find the connected subgraph that collects the most prizes at the least cost.

    Prizes go to the nodes and edges that resemble the question. The subgraph S maximises prizes of nodes + prizes of
    edges - `edge_cost` * |edges| (equations 7 and 8): a prize-collecting Steiner tree (PCST), found by a solver with a
    guarantee on costs and missed prizes, see `solve_pcst`. The score is this difference, 0 or more. Further subgraphs
    come from solving again without the prizes already collected, and score at most as high as the one before. Triples
    are sorted by falling prize.

    Nodes: the entities of the question get `k_nodes` each. If no entities are looked for, the entities with the nearest
    names get `k_nodes`, ... 1 (equation 6). Edges:

    - `prizes="paths"` (ours): a random walk starts at the question's entities, takes `max_hops` steps and prefers
      relations by their rank (`walk_triples`). The triple that it takes most often gets `k_relations`, and others get
      their share of it. So a triple at the end of a likely path gets more than one of the same relation elsewhere. The
      cost falls with the highest prize left.
    - "paper": `k_relations`, ... 1 for all triples of the first relation, the second ... (equation 6).
    - "published": the same, but all triples of a relation share its prize, and the cost is lowered so that one edge
      pays, as in the code published with the paper.

    Relations are ranked by the cosine between their words and the question without its entities.

    Differs from the paper: searches one big graph, by default the neighbourhood of the question's entities in it
    (`max_hops`, `max_nodes`), while the paper has a small graph for each question. An entity alone is no evidence,
    unless `lone_entities` is set. `preset="paper"` sets the paper's equations and its values for WebQSP. Together with
    `prizes="published"`, it finds the same subgraphs as the published code. On a big graph, in which thousands of
    triples share a relation, these are thousands of triples.

    Cost: no call of a language model, and O(n log n) per subgraph in the n triples in scope.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")]
        >>> graph = KnowledgeGraph.from_triples(facts)
        >>> retriever = PCSTRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> print(retriever.invoke("Who directed Her?")[0].page_content)
        node_id,node_attr
        0,Her
        1,Spike Jonze
        2,Drama
        <BLANKLINE>
        src,edge_attr,dst
        0,directed by,1
        0,has genre,2
    """

    state_class: ClassVar[type] = PCSTState
    entity_inputs: ClassVar[frozenset[str]] = frozenset({"ranked_entities"})
    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"open"})
    proposes_answers: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"paper": PAPER}
    answer_prompts: ClassVar[Mapping[str, BasePromptTemplate[Any]]] = {
        "reasoned": ANSWER_PROMPT,
        "zero-shot": ZERO_SHOT_PROMPT,
    }

    #: The content of one Document.
    granularity: Literal["subgraph", "triple"] = "subgraph"
    #: How the facts of a Document are written, by default as the paper's tables.
    style: DocumentStyle = "tables"
    #: The highest prize of an entity, and how many entities get one if the question names none.
    k_nodes: int = Field(default=K_NODES, ge=1)
    #: How many relations get a prize by the paper's rules. The highest prize of an edge.
    k_relations: int = Field(default=K_RELATIONS, ge=1)
    #: The cost of an edge, if the highest prize of one is `k_relations`: 0.02 gives many triples, 1 few. With
    #: `prizes="paths"`, the best edge left always pays.
    edge_cost: float = Field(default=EDGE_COST, gt=0, allow_inf_nan=False)
    #: The rule for the prizes of edges.
    prizes: Literal["paths", "paper", "published"] = "paths"
    #: How a tree is pruned, see `solve_pcst`.
    pruning: Literal["strong", "gw"] = "strong"
    #: The most triples of one subgraph: the triples with the highest prizes that are connected to the first. The score
    #: is still the score of the whole subgraph. Without effect on single triples.
    max_triples: int = Field(default=MAX_TRIPLES, ge=1)
    #: Whether an entity alone is evidence, if it is worth more than any edge at it costs.
    lone_entities: bool = False
    #: The prompt for answering, with the placeholders `question` and `evidence`, or its name: "reasoned", with rules
    #: and an example, or "zero-shot", with graph and question alone as in the paper.
    answer_prompt: AnswerPrompt = ANSWER_PROMPT

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Rank nodes and edges, then solve."""
        ranked = ("ranked_entities", "ranked_relations")
        linked = ("seed_entities",) if self.scope == "neighborhood" else ()
        return (
            Stage("rank_nodes_and_edges", self._rank_nodes_and_edges, linked + ranked),
            Stage("solve_pcst", self._solve_pcst, ("answers", "documents")),
        )

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """As in the base. Ranked entities and relations must be distinct and of the graph, each with a number."""
        checked = super().check_inputs(inputs)
        tables = {"ranked_entities": self.graph.entities, "ranked_relations": self.graph.relations}
        for name in tables.keys() & checked.keys():
            wanted = f"names as in `graph.{name.removeprefix('ranked_')}`"
            checked[name] = self.checked_rows(name, checked[name], tables[name], wanted)
        return checked

    def _rank_nodes_and_edges(self, state: PCSTState) -> dict[str, Any]:
        graph, question = self.graph, state["question"]
        seeds, rest = self.link(question, state.get("seed_entities") or ())
        entities: Any = state.get("ranked_entities")
        relations: Any = state.get("ranked_relations")
        if entities is None:  # else the caller ranked them
            near = self.index.nearest_entities([] if seeds else [question], self.k_nodes)
            entities = [row for candidates in near for row in _ranked(graph.entities, candidates)][: self.k_nodes]
        if relations is None:
            relations = _ranked(graph.relations, self.index.nearest_relations([rest], RANKED_RELATIONS)[0])
        linked = {"seed_entities": seeds} if self.scope == "neighborhood" else {}
        return {**linked, "ranked_entities": entities, "ranked_relations": relations}

    def _solve_pcst(self, state: PCSTState) -> dict[str, Any]:
        evidence: list[Evidence] = []
        facts: set[Triple] = set()
        for item in self._subgraphs(state):
            evidence.append(item)
            facts.update(item.triples)
            if (len(facts) if self.granularity == "triple" else len(evidence)) >= state["k"]:
                break
        return self.results(state, evidence)

    def _subgraphs(self, state: PCSTState) -> Iterator[Evidence]:
        """Yield subgraphs that cover the prizes left, best first."""
        graph = self.graph
        keys = state.get("seed_entities") or []
        scope, cut = self.triples_in_scope(keys)
        edges = graph.edges[scope]
        seeds = np.array([graph.entities.find(key) for key in keys], np.int64)
        named = np.array([graph.entities.find(key) for key, _ in state["ranked_entities"]], np.int64)
        # Nodes are numbered anew, so that the work goes with the scope.
        nodes, ends = np.unique(np.concatenate([edges[:, 0], edges[:, 2], seeds, named]), return_inverse=True)
        heads, tails, seeds, ranked = np.split(ends, np.cumsum([len(edges), len(edges), len(seeds)]))
        relations = np.array([graph.relations.find(name) for name, _ in state["ranked_relations"]], np.int64)
        relations = relations[np.isin(relations, edges[:, 1])]  # the others are not there to be preferred
        starts = seeds if len(seeds) else ranked[: self.k_nodes]
        node_prizes = prize_nodes(ranked, len(nodes), self.k_nodes)
        node_prizes[seeds] = self.k_nodes
        edge_prizes = self._edge_prizes(heads, edges[:, 1], tails, relations, starts, len(nodes))
        score = np.inf
        while edge_prizes.any() or node_prizes.any():
            cost = self._cost(edge_prizes)
            found = solve_prizes(heads, tails, node_prizes, edge_prizes, cost, pruning=self.pruning)
            prizes = float(node_prizes[found.nodes].sum() + edge_prizes[found.edges].sum())
            prized = nodes[found.nodes[node_prizes[found.nodes] > 0]]
            order = found.edges[np.argsort(-edge_prizes[found.edges], kind="stable")]
            if is_cut := self.granularity == "subgraph" and len(order) > self.max_triples:
                order = _hanging_together(heads, tails, order[: self.max_triples])
            node_prizes[found.nodes] = 0
            edge_prizes[order] = 0
            if not prizes:
                break
            names = [graph.entities[entity] for entity in prized.tolist()]
            alone = {} if len(order) else {LONE_ENTITIES: names}
            if alone and not self.lone_entities:
                continue  # an entity alone is no fact
            score = min(score, max(prizes - cost * len(found.edges), 0.0))
            yield Evidence(
                triples=tuple(self.facts_of(scope[order])),
                score=score,
                truncated=cut or is_cut,
                details={
                    "prizes": prizes,
                    "edge_cost": cost,
                    "entities": [[graph.label(name), name] for name in names],
                    **alone,
                },
            )

    def _edge_prizes(
        self, heads: Array, relations: Array, tails: Array, ranked: Array, starts: Array, size: int
    ) -> Array:
        if self.prizes != "paths":
            return prize_edges(relations, ranked, self.k_relations, self.prizes)
        weights = np.full(len(self.graph.relations), (1.0 + len(ranked)) ** -PREFERENCE)
        weights[ranked] = (1.0 + np.arange(len(ranked))) ** -PREFERENCE
        hops = LONGEST_WALK if self.max_hops is None else self.max_hops
        taken = walk_triples(heads, relations, tails, starts, weights, hops=hops, entities=size)
        prizes: Array = self.k_relations * taken / max(taken.max(initial=0.0), np.finfo(float).tiny)
        return prizes

    def _cost(self, edge_prizes: Array) -> float:
        """Return the cost of an edge, lowered so that the best edge left pays (not in the paper)."""
        highest = float(edge_prizes.max(initial=0.0))
        if self.prizes == "paper" or not highest:
            return self.edge_cost
        if self.prizes == "published":
            return min(self.edge_cost, highest * (1 - STEP / 2))
        return highest * min(self.edge_cost / self.k_relations, 1 - STEP / 2)


def _ranked(table: Sequence[str], candidates: Candidates) -> list[list[Any]]:
    """Return names with their cosines, which follow from the distances of unit vectors."""
    cosines = 1 - candidates.distances.astype(float) ** 2 / 2
    return [[table[id], cosine] for id, cosine in zip(candidates.ids.tolist(), cosines.tolist(), strict=True)]


def _hanging_together(heads: Array, tails: Array, order: Array) -> Array:
    """Return the edges that are joined to the first of some edges, in the same order."""
    pairs = zip(heads[order].tolist(), tails[order].tolist(), strict=True)
    graph: nx.Graph[int] = nx.Graph(pairs)
    joined = nx.node_connected_component(graph, int(heads[order[0]]))
    kept: Array = order[[head in joined for head in heads[order].tolist()]]
    return kept
