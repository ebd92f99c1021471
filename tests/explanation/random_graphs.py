"""Small random graphs with what keeps entities out: parts that nothing joins, long chains, hubs, entities alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from explanation.obstacle_cases import check_case, is_found, steps

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph
from kg_retrievers.algorithms.pagerank import RESTART
from kg_retrievers.core.obstacles import Obstacle
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.explanation.run import run_stages

RELATIONS = ["directed_by", "written_by", "starring", "has_genre", "born_in", "sequel_of", "filmed_in", "won"]
QUESTIONS = [
    "Who directed {}?",
    "What is the genre of {}?",
    "Where was the writer of {} born?",
    "Who starred in the sequel of {}?",
]


class Step(NamedTuple):
    """An obstacle where it is the first."""

    retriever: BaseKGRetriever
    question: str
    inputs: dict[str, Any]
    entity: str
    obstacle: Obstacle

    @property
    def lies_in_scope(self) -> bool:
        """Check by networkx a reason that lies in the neighborhood; False where it is another."""
        return check_scope(self.retriever, self.obstacle, self.entity, self.seeds)

    @property
    def seeds(self) -> list[str]:
        """The entities that the question is read to name."""
        return list(self.state.get("seed_entities") or ())

    @property
    def state(self) -> Mapping[str, Any]:
        """What the stages write."""
        return run_stages(self.retriever, self.question, self.inputs).state

    @property
    def k(self) -> int:
        """How many Documents are returned."""
        return int(self.inputs.get("k", self.retriever.k))

    def rank(self, **fields: Any) -> int:
        """Return the place of the first fact with the entity in all that the retriever would return, one by one."""
        changed = self.retriever.model_copy(update=fields)
        found = changed.invoke(self.question, **{**self.inputs, "k": 10**6})
        facts = [set(fact[::2]) for document in found for fact in document.metadata["triples"]]
        return 1 + next(place for place, ends in enumerate(facts) if self.entity in ends)

    def document_rank(self, **fields: Any) -> int:
        """Return the place of the first Document with the entity in all that the retriever would return."""
        changed = self.retriever.model_copy(update=fields)
        found = changed.invoke(self.question, **{**self.inputs, "k": 10**6})
        ends = [{end for fact in document.metadata["triples"] for end in fact[::2]} for document in found]
        return 1 + next(place for place, keys in enumerate(ends) if self.entity in keys)


_SYLLABLES = ["ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "po", "ra", "se", "ti", "vo", "wa", "xe", "zu"]


def names(rng: np.random.Generator, count: int) -> list[str]:
    """Return distinct names that are no words of English."""
    drawn: dict[str, None] = {}
    while len(drawn) < count:
        drawn["".join(rng.choice(_SYLLABLES, 4)).capitalize()] = None
    return list(drawn)


def random_index(rng: np.random.Generator, entities: int = 24, facts: int = 34) -> GraphIndex:
    """Return the index of a graph of two parts and an entity without facts."""
    *keys, alone = names(rng, entities)
    parts = [keys[: entities * 3 // 4], keys[entities * 3 // 4 :]]
    drawn = []
    for part in parts:
        tree = [(part[int(rng.integers(max(0, at - 3), at))], part[at]) for at in range(1, len(part))]
        more = [tuple(rng.choice(part, 2)) for _ in range(facts * len(part) // entities - len(tree))]
        drawn += [(str(a), str(b)) if rng.random() < 0.5 else (str(b), str(a)) for a, b in [*tree, *more]]
    triples = dict.fromkeys((head, str(rng.choice(RELATIONS)), tail) for head, tail in drawn)
    graph = KnowledgeGraph.from_triples(list(triples), types={alone: ["thing"]})
    return GraphIndex.build(graph, HashedEmbeddings())


def random_question(rng: np.random.Generator, index: GraphIndex, count: int = 1) -> str:
    """Return a question that names some entities of a graph that have facts."""
    with_facts = sorted({end for head, _, tail in index.graph.triples() for end in (head, tail)})
    named = " and ".join(map(str, rng.choice(with_facts, count, replace=False)))
    return str(rng.choice(QUESTIONS)).format(named)


def undirected(index: GraphIndex) -> nx.Graph[str]:
    """Return which entities a fact joins."""
    joined: nx.Graph[str] = nx.Graph((head, tail) for head, _, tail in index.graph.triples())
    joined.add_nodes_from(index.graph.entities)
    return joined


def hops_between(index: GraphIndex, seeds: list[str], entity: str) -> int | None:
    """Return how many facts lie between an entity and the nearest seed."""
    lengths = [nx.single_source_shortest_path_length(undirected(index), seed).get(entity) for seed in seeds]
    return min((length for length in lengths if length is not None), default=None)


def check_scope(retriever: BaseKGRetriever, obstacle: Obstacle, entity: str, seeds: list[str]) -> bool:
    """Check by networkx a reason that lies in the neighborhood; return whether it is one."""
    hops, fields = hops_between(retriever.index, seeds, entity), obstacle.lift.fields
    joined = undirected(retriever.index)
    if obstacle.why == "no_such_edge":
        assert joined.degree(entity) == 0
    elif obstacle.why == "not_linked" and seeds:
        assert hops is None
    elif obstacle.why == "too_far":
        assert hops == obstacle.details["hops"] > retriever.max_hops
        assert fields == {"max_hops": hops}
    elif obstacle.why == "pruned" and fields == {"max_nodes": None}:
        assert hops is not None
        assert retriever.max_hops is None or hops <= retriever.max_hops
        within = [hops_between(retriever.index, seeds, other) for other in joined]
        reached = [one for one in within if one is not None and one <= (retriever.max_hops or one)]
        assert len(reached) > retriever.max_nodes
        check_cut(retriever, entity, seeds)
    else:
        return obstacle.why == "not_linked"
    return True


def check_cut(retriever: BaseKGRetriever, entity: str, seeds: list[str]) -> None:
    """Check that an entity is not reached over the entities that have the highest PageRank, by networkx.

    Of several with the rank of the last one, each may be left out.
    """
    walk: nx.DiGraph[str] = nx.DiGraph()
    for head, _, tail in retriever.index.graph.triples():
        for one, other in ((head, tail), (tail, head)):
            weight = walk.get_edge_data(one, other, {"weight": 0})["weight"]
            walk.add_edge(one, other, weight=weight + 1)
    ranks = nx.pagerank(walk, alpha=1 - RESTART, personalization=dict.fromkeys(seeds, 1), tol=1e-12, max_iter=1_000)
    reached = nx.multi_source_dijkstra_path_length(undirected(retriever.index), seeds, retriever.max_hops)
    others = sorted((ranks[one] for one in reached if one not in seeds), reverse=True)
    room = retriever.max_nodes - len(seeds)
    ahead = [one for one in reached if one not in seeds and ranks[one] > others[room] + 1e-6]
    kept = undirected(retriever.index).subgraph([*seeds, *ahead])
    within = nx.multi_source_dijkstra_path_length(kept, seeds, retriever.max_hops)
    assert entity not in within or not kept.degree(entity)


def random_steps(
    make: Callable[..., BaseKGRetriever],
    fields: Sequence[Mapping[str, Any]],
    rounds: int,
    inputs: Callable[[BaseKGRetriever, str], Mapping[str, Any]] = lambda retriever, question: {},
) -> Iterator[Step]:
    """Yield the obstacles of entities that retrievers over random graphs do not find, each checked by `check_case`.

    Args:
        make: Makes a retriever of an index and fields.
        fields: The fields, one after the other.
        rounds: How many graphs.
        inputs: Makes further arguments of `invoke`.
    """
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        index = random_index(rng)
        question = random_question(rng, index, 1 + seed % 2)
        retriever = make(index, **fields[seed % len(fields)])
        given = inputs(retriever, question)
        *keys, alone = index.graph.entities
        for entity in [*keys[:: 1 + seed % 3], alone]:
            if is_found(retriever, question, entity, given):
                continue
            result = check_case(retriever, question, entity, given)
            for now, taken, obstacle in steps(retriever, given, result):
                yield Step(now, question, taken, entity, obstacle)
