"""Operations about whole entities: their connections, the graph's facts about them, and the graph's contents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, islice, pairwise, product
from typing import Any

import numpy as np

from kg_retrievers.algorithms.chains import MOST_CHAINS, Chain, shortest_chains
from kg_retrievers.errors import PatternError
from kg_retrievers.graph import (
    Evidence,
    KnowledgeGraph,
    Known,
    Path,
    Pattern,
    Term,
    Triple,
    Unknown,
    local_name,
    readable,
)
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.kinds import kind_members, kind_names, kind_relations
from kg_retrievers.graph.operations import Operation
from kg_retrievers.graph.types import path_rows
from kg_retrievers.graph.verbalize import verbalize
from kg_retrievers.index import GraphIndex
from kg_retrievers.questions.operations import graph_label, plain_value
from kg_retrievers.questions.possible_entities import nearest_named, possible_entities

#: By default, the most facts of a chain, and the most tokens of a description.
MAX_HOPS, DESCRIPTION_TOKENS = 4, 500

#: How much the logarithm of the facts of a relation counts beside that of an entity, and the cost for a chain that says
#: only that two things are of one kind.
RELATION_WEIGHT, KIND_COST = 0.25, 100

#: How many facts of one relation a description shows before it shows those of others.
FIRST_FACTS = 3

#: How many facts show an overview.
SAMPLE = 20

#: Relations that define an entity. They come first in its description.
_DEFINING = re.compile(
    r"(?:.*\b)?(?:type|instance of|is an?|subclass of|description|abstract|definition|summary|comment)"
)

#: A table as `Evidence.value` holds it.
Table = dict[str, list[Any]]


def evidence_around(index: GraphIndex, pattern: Pattern, k: int) -> list[Evidence]:
    """Return the result of an operation about whole entities, best first, or nothing if the graph does not say.

    Args:
        index: The indexed graph.
        pattern: The pattern, of which the operation is one of `AROUND`.
        k: How many chains of "connect", unless the operation has a limit; the others give one piece of evidence.
    """
    operation = pattern.operation
    assert operation
    graph = index.graph
    known = [node for node in pattern.alone if isinstance(node, Known)]
    entities = [_entities_of(index, node) for node in known]
    if any(not len(some) for some in entities):
        return []
    unknown = next((node for node in pattern.alone if isinstance(node, Unknown)), None)
    match operation.kind:
        case "connect":
            limited = None if unknown is None or unknown.type is None else _of_kind(index, unknown)
            found = list(_connections(graph, entities, limited, operation))[: operation.limit or k]
        case "describe":
            found = [_description(graph, int(entity), operation) for entity in entities[0][:k].tolist()]
        case "common" | "differ":
            compared = _common if operation.kind == "common" else _differences
            pairs = product(*(some.tolist() for some in entities))  # of namesakes, each pair by itself
            found = [compared(graph, *pair) for pair in islice(pairs, k)]
        case _:
            found = [_overview(index.whole.graph) if unknown is None else _overview_of(index.whole, unknown)]
    named = [
        [node.text, graph.entities[entity]]
        for node, some in zip(known, entities, strict=True)
        for entity in some.tolist()
    ]
    told = {"entities": named, "pattern": replace(pattern, confidence=None).to_dict()}
    return [replace(one, confidence=pattern.confidence, details={**told, **one.details}) for one in found]


def _entities_of(index: GraphIndex, node: Known) -> Array:
    """Return the ids of the entities that a node may be, its own one or those of the nearest name."""
    if node.entity is None:
        return nearest_named(index, [node.text])[0].ids
    entity = index.graph.entities.find(node.entity)
    if entity < 0:
        raise PatternError(f"Pattern: the entity {node.entity!r} is not in the graph.")
    return np.array([entity], np.int32)


def patterns_around(pattern: Pattern) -> list[Pattern]:
    """Return the plain patterns of the facts that an operation about whole entities looks at.

    Of "connect" they are chains, the shortest first. The chains of the first length found are all that it needs.

    Example:
        >>> [one.to_dict()["triples"] for one in patterns_around(Pattern.of(alone=["Her"], operation="describe"))]
        [[['Her', {'unknown': 'relation 1'}, {'unknown': 'end 1'}]]]
    """
    operation = pattern.operation
    assert operation
    known = [node for node in pattern.alone if isinstance(node, Known)]
    if operation.kind == "connect":
        unknown = next((node for node in pattern.alone if isinstance(node, Unknown)), None)
        lengths = range(1 if unknown is None else 2, (operation.max_hops or MAX_HOPS) + 1)
        pairs = [*combinations(known, 2)]
        return [one for length in lengths for pair in pairs for one in _chain_patterns(*pair, length, unknown)]
    ends = [Unknown(f"end {at}") for at in range(1, len(known) + 1)]
    around: list[tuple[Term, Term, Term]] = [
        (node, Unknown(f"relation {at}"), end) for at, (node, end) in enumerate(zip(known, ends, strict=True), 1)
    ]
    return [Pattern.of(triple, directed=False, revisits=True) for triple in around or [_ANY]]


#: Any fact.
_ANY = (Unknown("one"), Unknown("relation"), Unknown("other"))


def _chain_patterns(one: Known, other: Known, length: int, through: Unknown | None) -> Iterator[Pattern]:
    """Yield the patterns of chains of a length, with a thing at each of their places where one is given."""
    for place in range(1, length if through else 2):
        inner: list[Term] = [Unknown(f"step {at}") for at in range(1, length)]
        if through:
            inner[place - 1] = through
        nodes = [one, *inner, other]
        triples = [(a, Unknown(f"relation {at}"), b) for at, (a, b) in enumerate(pairwise(nodes))]
        yield Pattern.of(*triples, directed=False, different=[*combinations(nodes, 2)])


# --- connections -----------------------------------------------------------------------------------------------------


def _connections(
    graph: KnowledgeGraph, entities: Sequence[Array], through: Array | None, operation: Operation
) -> Iterator[Evidence]:
    """Yield the shortest chains between each two of some entities; those by hubs and frequent relations come last."""
    kinds, truncated = kind_relations(graph), False

    def passes(some: Array) -> Array:
        graph.lazy_values.read(some)
        return ~graph.lazy_values.are_values(some)

    found = list[tuple[float, Chain]]()
    for starts, ends in combinations(entities, 2):
        for end in ends.tolist():
            chains = shortest_chains(
                graph.adjacency,
                np.sort(starts),
                end,
                max_hops=operation.max_hops or MAX_HOPS,
                passes=passes,
                through=through,
            )
            truncated |= len(chains) == MOST_CHAINS
            found += [(_commonness(graph, one, kinds), one) for one in chains]
    ranked = sorted(found, key=lambda item: (len(item[1].triples), *item))
    for rank, (_, one) in enumerate(ranked):
        triples = [graph.triple(triple) for triple in one.triples]
        path = Path(tuple(graph.entities[entity] for entity in one.entities), tuple(triples))
        between = [] if through is None else np.intersect1d(one.entities[1:-1], through).tolist()
        yield Evidence(
            tuple(triples),
            score=1 / (1 + rank),
            answers=tuple(graph.entities[entity] for entity in between),
            truncated=truncated,
            details={"paths": path_rows([path], triples), "chains": len(ranked)},
        )


def _commonness(graph: KnowledgeGraph, chain: Chain, kinds: Sequence[int]) -> float:
    """Return how little a chain tells: the logarithms of how many facts its entities and its relations have."""
    indptr, facts = graph.adjacency.indptr, graph.relation_samples.facts
    between = chain.entities[1:-1]
    relations = graph.edges[list(chain.triples)][:, 1]
    degrees = [float(np.log2(indptr[entity + 1] - indptr[entity])) for entity in between]
    says_kinds = KIND_COST * bool(np.isin(relations, kinds).any())
    return sum(degrees) + RELATION_WEIGHT * float(np.log2(facts[relations]).sum()) + says_kinds


# --- one entity ------------------------------------------------------------------------------------------------------


def _groups(graph: KnowledgeGraph, entity: int) -> dict[int, Array]:
    """Return the facts of an entity, by adjacency label: the ids of the other ends."""
    row = graph.adjacency.row(entity)
    labels, ends = graph.adjacency.labels[row], graph.adjacency.neighbors[row]
    return {int(label): ends[labels == label] for label in distinct(labels).tolist()}


def _fact(graph: KnowledgeGraph, entity: int, label: int, end: int) -> Triple:
    head, tail = (end, entity) if is_backward(label) else (entity, end)
    return Triple(graph.entities[head], graph.relations[relation_of(label)], graph.entities[tail])


def _description(graph: KnowledgeGraph, entity: int, operation: Operation) -> Evidence:
    """Return the facts of an entity: definitions first, then rare relations before frequent ones."""
    facts = graph.relation_samples.facts
    groups = _groups(graph, entity)

    def telling(label: int) -> tuple[Any, ...]:
        defines = _DEFINING.fullmatch(readable(local_name(graph.relations[relation_of(label)])).casefold())
        return (
            not (defines and not is_backward(label)),
            is_backward(label),
            len(groups[label]),
            facts[label >> 1],
            label,
        )

    ordered = sorted(groups, key=telling)
    first = [(label, end) for label in ordered for end in groups[label][:FIRST_FACTS].tolist()]
    rest = ((label, end) for label in ordered for end in groups[label][FIRST_FACTS:].tolist())
    most = operation.limit or DESCRIPTION_TOKENS
    shown = list(
        dict.fromkeys(_fact(graph, entity, *one) for one, _ in zip(chain(first, rest), range(most), strict=False))
    )
    if operation.limit is None:
        shown = shown[: max(verbalize(shown, label=graph.label, max_tokens=DESCRIPTION_TOKENS).shown, 1)]
    counts = Counter((fact.relation, fact.head == graph.entities[entity]) for fact in shown)
    left = dict[str, int]()
    for label in ordered:
        relation, forward = graph.relations[relation_of(label)], not is_backward(label)
        if missing := len(groups[label]) - counts[relation, forward]:
            left[relation if forward else f"-{relation}"] = missing
    types = graph.types_of(graph.entities[entity])
    details = {**({"types": types} if types else {}), **({"left_out": left} if left else {})}
    return Evidence(tuple(shown), score=1.0, truncated=bool(left), details=details)


# --- two entities ----------------------------------------------------------------------------------------------------


def _named_relation(graph: KnowledgeGraph, label: int) -> str:
    name = readable(local_name(graph.relations[relation_of(label)]))
    return f"{name} (of)" if is_backward(label) else name


def _common(graph: KnowledgeGraph, one: int, other: int) -> Evidence:
    """Return the facts that two entities share, those with few others first."""
    of_one, of_other = _groups(graph, one), _groups(graph, other)
    shared = [
        (label, end)
        for label in of_one.keys() & of_other.keys()
        for end in np.intersect1d(of_one[label], of_other[label]).tolist()
        if end not in (one, other)
    ]
    indptr = graph.adjacency.indptr
    shared.sort(key=lambda pair: (int(indptr[pair[1] + 1] - indptr[pair[1]]), *pair))
    types = [kind for kind in graph.types_of(graph.entities[one]) if kind in graph.types_of(graph.entities[other])]
    rows: list[list[Any]] = [["type", readable(local_name(kind))] for kind in types]
    rows += [[_named_relation(graph, label), plain_value(graph, end)] for label, end in shared]
    triples = [_fact(graph, entity, *pair) for pair in shared for entity in (one, other)]
    answers = tuple(dict.fromkeys(graph.entities[end] for _, end in shared))
    return Evidence(tuple(dict.fromkeys(triples)), 1.0, answers, value=_table(["relation", "value"], rows))


def _differences(graph: KnowledgeGraph, one: int, other: int) -> Evidence:
    """Return the relations of which two entities have facts, and not the same ones."""
    of_one, of_other = _groups(graph, one), _groups(graph, other)
    rows, triples = list[list[Any]](), list[Triple]()
    for label in sorted(of_one.keys() & of_other.keys()):
        ends = of_one[label], of_other[label]
        if np.array_equal(distinct(ends[0]), distinct(ends[1])):
            continue
        rows.append(
            [_named_relation(graph, label), *([plain_value(graph, end) for end in some.tolist()] for some in ends)]
        )
        triples += [
            _fact(graph, entity, label, end)
            for entity, some in zip((one, other), ends, strict=True)
            for end in some.tolist()
        ]
    names = [graph_label(graph, entity) for entity in (one, other)]
    return Evidence(tuple(dict.fromkeys(triples)), 1.0, value=_table(["relation", *names], rows))


def _table(columns: list[str], rows: list[Any]) -> Table:
    return {"columns": columns, "rows": rows}


# --- the graph -------------------------------------------------------------------------------------------------------


def _sample_of(graph: KnowledgeGraph, relations: Sequence[int]) -> tuple[Triple, ...]:
    """Return a fact of each of some relations."""
    samples = graph.relation_samples
    firsts = samples.facts_indptr[list(relations)].tolist()
    return tuple(
        Triple(graph.entities[int(samples.heads[at])], graph.relations[one], graph.entities[int(samples.tails[at])])
        for one, at in zip(relations, firsts, strict=True)
    )


def _overview(graph: KnowledgeGraph) -> Evidence:
    """Return the kinds of things with their number, or else the relations with the number of their facts."""
    facts = graph.relation_samples.facts
    order = [relation for relation in np.argsort(-facts, kind="stable").tolist() if facts[relation]]
    counts = {name: 0 if (some := kind_members(graph, name)) is None else len(some) for name in kind_names(graph)}
    if kinds := sorted((-count, readable(local_name(name))) for name, count in counts.items() if count):
        value = _table(["kind", "entities"], [[name, -count] for count, name in kinds])
    else:
        value = _table(["relation", "facts"], [[graph.relations[relation], int(facts[relation])] for relation in order])
    details = {"facts": len(graph), "all_relations": [graph.relations[relation] for relation in order]}
    return Evidence(_sample_of(graph, order[:SAMPLE]), 1.0, value=value, details=details)


def _of_kind(index: GraphIndex, unknown: Unknown) -> Array:
    """Return the ids of the things of a kind, or of the type nearest to it."""
    members = kind_members(index.graph, str(unknown.type))
    return possible_entities(index, unknown).astype(np.int64) if members is None else members


def _overview_of(index: GraphIndex, unknown: Unknown) -> Evidence:
    """Return the relations of a type, with how many of its entities have each, and an example."""
    graph = index.graph
    members = _of_kind(index, unknown)
    rows = list[tuple[int, str, int, int, Triple]]()
    for label in range(2 * len(graph.relations)):
        firsts, lasts = graph.adjacency.ranges_with(members, label)
        having = np.flatnonzero(lasts > firsts)
        if len(having):
            end = int(graph.adjacency.neighbors[firsts[having[0]]])
            fact = _fact(graph, int(members[having[0]]), label, end)
            rows.append((-len(having), _named_relation(graph, label), label, end, fact))
    rows.sort()
    table = [[name, -count, plain_value(graph, end)] for count, name, _, end, _ in rows]
    return Evidence(
        tuple(dict.fromkeys(fact for *_, fact in rows))[:SAMPLE],
        1.0,
        value=_table(["relation", "entities", "example"], table),
        details={"entities_of_type": len(members)},
    )
