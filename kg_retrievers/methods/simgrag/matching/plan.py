"""A pattern by ids, its matches, and its plan: the steps and candidates in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.algorithms.compiled import Pointer
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.simgrag.matching.layout import Shape, lay_out

Row = TypeVar("Row")

#: Distances are held as integer multiples of 2^-20, so that sums and comparisons are exact and ties are ties.
SCALE = 1 << 20

#: More than any sum of distances.
INFINITE = 1 << 30

#: With so many candidates of the root, more of a pattern is bounded before it is searched.
EAGER_ABOVE = 64


class MatchNode(NamedTuple):
    """A node of the pattern.

    Attributes:
        entities: The candidates of a known node. None for an unknown one.
        types: For a node with a type: the distances of the candidate types and the int32 ids of the entities of each.
            None for any type. An entity costs the distance of its nearest type. An entity of no candidate type is no
            candidate.
        limited: The ids of the entities that conditions leave of an unknown node, ascending. None without conditions.
    """

    entities: Candidates | None = None
    types: tuple[Array, Sequence[Array]] | None = None
    limited: Array | None = None


@dataclass(frozen=True)
class MatchQuery:
    """A pattern by ids.

    Args:
        nodes: Its nodes.
        relations: The candidates of its relation terms. None for an unknown relation. Edges that name the same unknown
            relation take the same relation. Edges that name the same known one choose independently.
        edges: `(head, relation, tail)`: positions in `nodes`, `relations` and `nodes`.
        different: Pairs of nodes that must not be the same entity.
    """

    nodes: Sequence[MatchNode]
    relations: Sequence[Candidates | None]
    edges: Sequence[tuple[int, int, int]]
    different: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Match:
    """One combination of known entities, relations and types, with all bindings of the unknowns.

    Attributes:
        distance: The GSD, a multiple of 2^-20.
        entities: For each node, the ids of the entities it takes in some match, int64, ascending.
        triples: For each edge, the ids of the triples it takes in some match, int64, ascending.
        relations: For each edge, the id of its relation, or -1 if an unknown relation may take several.
        truncated: True if a budget or `max_bindings` cut the search, so that bindings may be missing here, or better
            matches altogether.
    """

    distance: float
    entities: tuple[Array, ...]
    triples: tuple[Array, ...]
    relations: tuple[int, ...]
    truncated: bool


class PlanOf(NamedTuple, Generic[Row]):
    """A query laid out as steps: arrays in Python, pointers to them in compiled code."""

    # Of each step, int64:
    kind: Row  # START, TREE or CYCLE
    near: Row  # the node that is placed already; -1 at START; at a CYCLE the one that may be a set
    far: Row  # the node that is placed now; at a CYCLE a node that is bound to one entity
    term: Row  # the relation term; -1 at START
    side: Row  # the direction bit wanted in the row of the near node; -1 for either
    edge: Row  # the edge of the pattern; -1 at START
    free: Row  # 1 if the relation is unknown and need not be the same anywhere else
    first_use: Row  # the step that binds the unknown relation shared with this one; -1 for other terms
    in_key: Row  # 1 if the relation tells matches apart
    closes_at: Row  # of a CYCLE with a known end, the other end; -1 otherwise
    # Of each node, int64:
    parent: Row  # the node above; -1 for a root
    placed_by: Row  # the step that places it
    as_set: Row  # 1 if carried as a set, 0 if bound to one entity at a time
    informs: Row  # 1 if a known node is at or below it
    known: Row  # 1 if it is known
    level_row: Row  # its row in `levels`; -1 if known or without type
    key: Row  # what of it tells matches apart: NOTHING, its ENTITY, or the LEVEL of its type
    closes: Row  # 1 if a known node, or the other end of a CYCLE with a known end, is at or below it
    outside: Row  # int64, (s * s): the second step is still to come and not in the subtree that the first one places
    differs: Row  # int64, (v * v): must not take the same entity
    starts: Row  # int64, (v + 1): the candidates of node v are `candidates[starts[v]:starts[v + 1]]`
    candidates: Row  # int32, (n): candidates of the known nodes, ascending by id in each that is searched
    candidate_costs: Row  # int32, (n)
    limited_starts: Row  # int64, (v + 1): where what conditions leave of node v begins in `limited`
    limited: Row  # int32, (m): ascending in each node; nothing for a node without conditions
    levels: Row  # int32, (rows * entities): 1 + the level of the nearest candidate type; 0 for entities of none
    level_costs: Row  # int32, (rows * levels): the distinct distances of the candidate types, ascending
    relation_costs: Row  # int32, (t * relations); INFINITE where not a candidate
    least_relation_costs: Row  # int32, (t)
    steps: int
    nodes: int
    relations: int
    level_count: int  # how many levels each row of `level_costs` has
    eager: int  # 1 if the root and both ends of cycles are bounded too, since there are many candidates


Plan: TypeAlias = PlanOf[Array]
Layout: TypeAlias = PlanOf[Pointer]


def plan_query(
    adjacency: Adjacency, relations: int, query: MatchQuery, distinct: str, direction: str, ties: str
) -> Plan:
    """Lay out a query. See `match_pattern` for the arguments."""
    size = len(adjacency.indptr) - 1
    known = tuple(node.entities is not None for node in query.nodes)
    typed = tuple(node.types is not None for node in query.nodes)
    starts, candidates, candidate_costs, levels, level_costs = _node_costs(query.nodes, size)
    roots = _roots(adjacency, query.nodes, starts, candidates)
    relation_costs = np.empty((len(query.relations), relations), np.int32)
    relation_costs.fill(INFINITE)
    for row, of_term in zip(relation_costs, query.relations, strict=True):
        if of_term is None:
            row[:] = 0
        else:
            row[of_term.ids] = _costs(of_term.distances)
    unknown = tuple(relation is None for relation in query.relations)
    edges, different = tuple(query.edges), tuple(query.different)
    shape = Shape(edges, different, roots, known, typed, unknown, distinct, direction, ties)
    eager = int(sum(known) > 1 and known[roots[0]] and starts[roots[0] + 1] - starts[roots[0]] > EAGER_ABOVE)
    limited = [np.zeros(0, np.int32) if node.limited is None else node.limited for node in query.nodes]
    limits = np.array([0, *accumulate(map(len, limited))])
    of_entities = (starts, candidates, candidate_costs, limits, np.concatenate(limited, dtype=np.int32))
    of_types = (levels, level_costs.ravel())
    of_relations = (relation_costs.ravel(), relation_costs.min(axis=1))
    steps = lay_out(shape)
    sizes = (len(steps[0]), len(known), relations, level_costs.shape[1], eager)
    parts: tuple[Any, ...] = (*steps, *of_entities, *of_types, *of_relations, *sizes)
    return PlanOf(*parts)


def least_costs(plan: Plan) -> tuple[Array, Array]:
    """Return the least that each node costs, and each relation term: int64."""
    nodes = np.zeros(plan.nodes, np.int64)
    for v, (low, high) in enumerate(pairwise(plan.starts.tolist())):
        row = int(plan.level_row[v])
        if high > low:
            nodes[v] = plan.candidate_costs[low:high].min()
        elif row >= 0:
            nodes[v] = plan.level_costs[row * plan.level_count]
    return nodes, plan.least_relation_costs.astype(np.int64)


def restricted(plan: Plan, most_of_nodes: Array, most_of_terms: Array) -> Plan:
    """Return a plan with only the candidates that cost less than the limit for their node, or relation term."""
    starts = plan.starts.tolist()
    kept = [
        low + np.flatnonzero(plan.candidate_costs[low:high] < most)
        for most, (low, high) in zip(most_of_nodes.tolist(), pairwise(starts), strict=True)
    ]
    places = np.concatenate(kept)
    given = plan.relation_costs.reshape(-1, plan.relations)
    relation_costs = np.where(given < most_of_terms[:, None], given, np.int32(INFINITE))
    return plan._replace(
        starts=np.array([0, *accumulate(map(len, kept))]),
        candidates=plan.candidates[places],
        candidate_costs=plan.candidate_costs[places],
        relation_costs=relation_costs.ravel(),
        least_relation_costs=relation_costs.min(axis=1),
    )


def most_candidates(plan: Plan) -> int:
    """Return the largest number of candidates of a node."""
    starts: list[int] = plan.starts.tolist()
    return max(high - low for low, high in pairwise(starts))


def sorted_by_id(plan: Plan) -> Plan:
    """Return a plan whose candidates ascend by id in each node."""
    parts = [low + plan.candidates[low:high].argsort() for low, high in pairwise(plan.starts.tolist()) if high > low]
    order = np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.zeros(0, np.int64)
    return plan._replace(candidates=plan.candidates[order], candidate_costs=plan.candidate_costs[order])


def _roots(adjacency: Adjacency, nodes: Sequence[MatchNode], starts: Array, candidates: Array) -> tuple[int, ...]:
    """Return the nodes in the order in which they may become roots.

    The root is searched lazily, and the other known nodes send messages. The node with most edges becomes the root,
    unless conditions leave an unknown with fewer entities.
    """
    known = [node.entities is not None for node in nodes]
    left = {v: _degrees(adjacency, node.limited).sum() for v, node in enumerate(nodes) if node.limited is not None}
    weight = [0] * len(nodes)
    if sum(known) > 1 or left:
        degrees = np.append(0, np.cumsum(_degrees(adjacency, candidates)))
        weight = np.diff(degrees[starts]).tolist()
    few = {v: edges for v, edges in left.items() if edges < max(weight)}

    def rank(v: int) -> tuple[Any, ...]:
        return v not in few, few.get(v, 0), not known[v], nodes[v].types is None, -weight[v], v

    return tuple(sorted(range(len(nodes)), key=rank))


def _degrees(adjacency: Adjacency, entities: Array) -> Array:
    degrees: Array = adjacency.indptr[entities + 1] - adjacency.indptr[entities]
    return degrees


def _costs(distances: Array) -> Array:
    scaled = np.multiply(distances, float(SCALE), dtype=np.float64)
    return np.rint(scaled, out=scaled).astype(np.int32)


def _node_costs(nodes: Sequence[MatchNode], size: int) -> tuple[Array, Array, Array, Array, Array]:
    """Return `starts`, `candidates`, `candidate_costs`, `levels` and `level_costs` of a plan."""
    ids, distances = [np.zeros(0, np.int32)], [np.zeros(0)]
    counts = [0]
    levels: list[Array] = []
    level_costs: list[Array] = []
    for entities, types, _ in nodes:
        if types is not None:
            costs, level_of_type = np.unique(_costs(types[0]), return_inverse=True)
            level = np.zeros(size, np.int32)  # what nobody touches costs nothing
            for position in np.argsort(-level_of_type, kind="stable"):
                level[types[1][position]] = level_of_type[position] + 1
        if entities is not None:
            if types is not None:
                typed = level[entities.ids] > 0
                further = costs[level[entities.ids[typed]] - 1] / SCALE
                entities = Candidates(entities.ids[typed], entities.distances[typed] + further)
            ids.append(entities.ids)
            distances.append(entities.distances)
        elif types is not None:
            levels.append(level)
            level_costs.append(costs)
        counts.append(len(entities.ids) if entities is not None else 0)
    starts = np.cumsum(counts)
    candidates, candidate_costs = np.concatenate(ids, dtype=np.int32), _costs(np.concatenate(distances))
    if not levels:
        return starts, candidates, candidate_costs, np.empty(0, np.int32), np.empty((0, 0), np.int32)
    padded = np.full((len(levels), max(map(len, level_costs))), INFINITE, np.int32)
    for row, costs in zip(padded, level_costs, strict=True):
        row[: len(costs)] = costs
    stacked = np.concatenate(levels) if len(levels) > 1 else levels[0]
    return starts, candidates, candidate_costs, stacked, padded
