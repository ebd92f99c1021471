"""How near a pattern comes to a small graph with one entity as its target: all assignments, one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from typing import Any

from plain_evaluator import _is_present, satisfies

from kg_retrievers import Known, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.graph import Term
from kg_retrievers.graph.pattern import decide_revisits

#: What each node is, and the distance.
Found = tuple[dict[Term, str], float]

#: The rules that can be left out.
RULES = ("direction", "types", "conditions", "absent", "different", "distinct")


def nearest_distance(
    retriever: SimGRAGRetriever, pattern: Pattern, question: str, entity: str, rules: Collection[str] = RULES
) -> float | None:
    """Return the least distance of a match whose target is an entity, without what types add; None without a match.

    Args:
        retriever: Says which names and relations are candidates, and which rules hold.
        pattern: The pattern.
        question: The question.
        entity: The key of the entity.
        rules: The rules that hold.
    """
    target = next(node for node in pattern.nodes if isinstance(node, Unknown) and node.name == pattern.target)
    found = _matches(retriever, pattern, {target: entity}, directed="direction" in rules)
    kept = [distance for one, distance in found if _keeps(retriever, pattern, question, one, rules)]
    return min(kept, default=None)


def _matches(
    retriever: SimGRAGRetriever, pattern: Pattern, start: Mapping[Term, str], *, directed: bool
) -> Iterator[Found]:
    graph, index = retriever.graph, retriever.index
    exact = bool(pattern.operation or pattern.conditions or pattern.absent or pattern.typed)
    nodes: dict[Term, dict[str, float]] = {}
    for node in pattern.nodes:
        if isinstance(node, Known) and node.entity is not None:
            nodes[node] = {node.entity: 0.0}
        elif isinstance(node, Known):
            near = index.nearest_entities([node.text], retriever.k_nodes)[0]
            keys = [graph.entities[one] for one in near.ids.tolist()]
            nodes[node] = _kept(dict(zip(keys, near.distances.tolist(), strict=True)), exact)
    relations: dict[Term, dict[str, float]] = {}
    for term in (triple.relation for triple in pattern.triples):
        if isinstance(term, Known):
            near = index.nearest_relations([term.text], retriever.k_relations)[0]
            keys = [graph.relations[one] for one in near.ids.tolist()]
            relations[term] = _kept(dict(zip(keys, near.distances.tolist(), strict=True)), exact)
    one_way = directed and retriever.respects_direction(pattern)
    facts = list(graph.triples())

    def extend(at: int, one: dict[Term, str], bound: dict[Term, str], cost: float) -> Iterator[Found]:
        if at == len(pattern.triples):
            yield one, cost + sum(costs[one[node]] for node, costs in nodes.items())
            return
        head, relation, tail = pattern.triples[at]
        for fact in facts:
            if fact.relation not in relations.get(relation, {fact.relation: 0.0}):
                continue
            if isinstance(relation, Unknown) and bound.get(relation, fact.relation) != fact.relation:
                continue
            for first, last in (
                {(fact.head, fact.tail)} if one_way else {(fact.head, fact.tail), (fact.tail, fact.head)}
            ):
                more = {**one}
                if more.setdefault(head, first) != first or more.setdefault(tail, last) != last:
                    continue
                if all(more[node] in nodes.get(node, more.values()) for node in (head, tail)):
                    of_relation = relations.get(relation, {}).get(fact.relation, 0.0)
                    yield from extend(at + 1, more, {**bound, relation: fact.relation}, cost + of_relation)

    yield from extend(0, dict(start), {}, 0.0)


def _kept(costs: dict[str, float], exact: bool) -> dict[str, float]:
    return {key: cost for key, cost in costs.items() if not exact or cost <= min(costs.values())}


def _keeps(
    retriever: SimGRAGRetriever, pattern: Pattern, question: str, one: dict[Term, str], rules: Collection[str]
) -> bool:
    graph = retriever.graph
    values = {node.name: key for node, key in one.items() if isinstance(node, Unknown)}
    if "conditions" in rules:
        inside = [condition for condition in pattern.conditions if condition.unknown in values]
        if not all(satisfies(graph, condition, values[condition.unknown]) for condition in inside):
            return False
    if "absent" in rules:
        directed = retriever.respects_direction(pattern)
        if any(_is_present(graph, pattern, group, one, directed) for group in pattern.absent_groups()):
            return False
    if "types" in rules and not all(_typed(retriever, pattern, node, key) for node, key in one.items()):
        return False
    different = pattern.different if "different" in rules else ()
    if any(one[a] == one[b] for a, b in different):
        return False
    rule: Any = retriever.distinct if "distinct" in rules else "none"
    if rule == "auto":
        rule = "none" if decide_revisits(pattern, question).allowed else "known"
    apart = [(a, b) for a, b in combinations(one, 2) if rule == "nodes" or isinstance(a, Known) or isinstance(b, Known)]
    return rule == "none" or all(one[a] != one[b] for a, b in apart)


def _typed(retriever: SimGRAGRetriever, pattern: Pattern, node: Term, key: str) -> bool:
    """Return whether the type of a node, of an unknown alone where types are candidates, lets an entity through."""
    graph, rule = retriever.graph, retriever.node_types
    if node.type is None or not len(graph.types) or rule == "ignore":
        return True
    near = retriever.index.nearest_types([node.type], retriever.k_types)[0]
    least = near.distances.min()
    pairs = zip(near.ids.tolist(), near.distances.tolist(), strict=True)
    kinds = {graph.types[kind] for kind, cost in pairs if cost <= least or not pattern.typed or rule == "candidates"}
    own = set(graph.types_of(key))
    return bool(own & kinds) or (not own and rule == "distance")
