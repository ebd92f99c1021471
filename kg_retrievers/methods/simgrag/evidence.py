"""The matcher for each shape of pattern, and the evidence of its matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from kg_retrievers.core.documents import AmbiguousName, ambiguous_name
from kg_retrievers.errors import PatternError
from kg_retrievers.graph import Evidence, KnowledgeGraph, Known, Pattern, Term, Unknown
from kg_retrievers.graph.columns import Array, are_among, distinct
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.pattern import Revisits
from kg_retrievers.index import Candidates, GraphIndex
from kg_retrievers.methods.simgrag.matching import Match, MatchNode, MatchQuery
from kg_retrievers.methods.simgrag.operations import Operated
from kg_retrievers.questions.possible_entities import nearest_named, nearest_only

#: From texts and a number k to the k nearest names of each text.
NearestNames: TypeAlias = Callable[[Sequence[str], int], list[Candidates]]

#: The distance that an entity without type adds if a type is meant.
UNTYPED = 0.05

#: The effect of a node's type, see `SimGRAGRetriever.node_types`.
NodeTypes = Literal["distance", "candidates", "ignore"]

#: The distance that a type of a node adds, and the entities of each such type.
TypeCosts: TypeAlias = tuple[Array, list[Array]]


def match_query(
    pattern: Pattern,
    index: GraphIndex,
    *,
    k_nodes: int,
    k_relations: int,
    k_types: int,
    allowed: Mapping[str, Array] = MappingProxyType({}),
    nearest: bool = False,
    node_types: NodeTypes = "distance",
) -> MatchQuery:
    """Return the query of a pattern for the matcher.

    Args:
        pattern: The pattern.
        index: Finds the names nearest to the pattern's texts.
        k_nodes: How many names are candidates for a known node.
        k_relations: How many relations are candidates for a known relation.
        k_types: How many types are candidates for the type of a node. It is ignored if the graph has no types.
        allowed: The ids of the entities that some unknowns may be, by name.
        nearest: Whether names and relations mean the nearest ones alone.
        node_types: The effect of the types of nodes.

    Raises:
        PatternError: If nothing in the pattern is known, or it pins an entity that is not in the graph.
    """
    nodes = pattern.nodes
    relations = tuple(dict.fromkeys(triple.relation for triple in pattern.triples))
    _check_something_is_known(nodes, relations, has_types=len(index.graph.types) > 0 and node_types != "ignore")
    find_entities = partial(nearest_named, index) if nearest else index.nearest_entities
    entity_candidates = _candidates(find_entities, nodes, k_nodes, index)
    relation_candidates = _candidates(index.nearest_relations, relations, k_relations, index)
    if nearest:
        relation_candidates = {term: nearest_only(found) for term, found in relation_candidates.items()}
    unknown = [node for node in nodes if isinstance(node, Unknown)]
    limited: dict[Term, Array] = {node: allowed[node.name] for node in unknown if node.name in allowed}
    type_costs = _type_costs(nodes, k_types, index, node_types, only=bool(pattern.typed))
    for node, entities in limited.items():  # those without a type cost nothing
        of_types, members = type_costs.get(node, (np.zeros(1), [entities]))
        type_costs[node] = of_types, [entities[are_among(entities, some)] for some in members]
    node_id = {node: position for position, node in enumerate(nodes)}
    term_id = {relation: position for position, relation in enumerate(relations)}
    return MatchQuery(
        [MatchNode(entity_candidates.get(node), type_costs.get(node), limited.get(node)) for node in nodes],
        [relation_candidates.get(relation) for relation in relations],
        [(node_id[head], term_id[relation], node_id[tail]) for head, relation, tail in pattern.triples],
        [(node_id[one], node_id[other]) for one, other in pattern.different],
    )


def _check_something_is_known(nodes: Sequence[Term], relations: Sequence[Term], *, has_types: bool) -> None:
    for term in (*nodes, *relations):
        if isinstance(term, Known) or (has_types and term.type is not None):
            return
    raise PatternError(
        "SimGRAGRetriever: everything in the pattern is unknown, so that any part of the graph would fit. "
        "Name an entity, a relation or a type of the graph."
    )


def _candidates(search: NearestNames, terms: Sequence[Term], k: int, index: GraphIndex) -> dict[Term, Candidates]:
    """Return the candidates of each known term: its entity if it is pinned to one, otherwise the nearest names."""
    known = [term for term in terms if isinstance(term, Known)]
    found = iter(search([term.text for term in known if term.entity is None], k))
    return {term: next(found) if term.entity is None else _pinned(term.entity, index) for term in known}


def _pinned(key: str, index: GraphIndex) -> Candidates:
    entity = index.graph.entities.find(key)
    if entity < 0:
        raise PatternError(f"SimGRAGRetriever: the pattern names the entity {key!r}, which is not in the graph.")
    return Candidates(np.array([entity], np.int32), np.zeros(1, np.float32))


def _type_costs(
    nodes: Sequence[Term], k: int, index: GraphIndex, node_types: NodeTypes, *, only: bool
) -> dict[Term, TypeCosts]:
    """Return the costs of the types nearest to each typed node. An entity without type costs nothing.

    If the nearest types alone are meant, an entity without type costs `UNTYPED`. With "candidates", unknowns are
    entities of these types, which cost nothing (appendix C.1).
    """
    graph = index.graph
    typed = [node for node in nodes if node.type is not None] if node_types != "ignore" else []
    costs: dict[Term, TypeCosts] = {}
    if not len(graph.types):  # relations such as "instance of" may say what things are
        members = {node: kind_members(graph, str(node.type)) for node in typed} if only else {}
        return {node: (np.zeros(1), [some.astype(np.int32)]) for node, some in members.items() if some is not None}
    for node, nearest in zip(typed, index.nearest_types([str(node.type) for node in typed], k), strict=True):
        nearest = nearest_only(nearest) if only and node_types == "distance" else nearest
        below = graph.types_below.get(str(node.type), ()) if only else ()
        of_types = [graph.type_entities(kind) for kind in sorted(below) or nearest.ids.tolist()]
        if node_types == "candidates" and isinstance(node, Unknown):
            costs[node] = np.zeros(1), [distinct(np.concatenate(of_types))]
        elif node_types == "distance" and of_types:
            beyond_nearest = np.zeros(len(below)) if below else nearest.distances - nearest.distances.min()
            costs[node] = np.append(beyond_nearest, UNTYPED if only else 0.0), [*of_types, graph.untyped]
    return costs


def pin_seeds(pattern: Pattern, seeds: Sequence[str], graph: KnowledgeGraph) -> Pattern:
    """Return a pattern whose nodes that name a seed entity are pinned to it.

    It pins the nodes of patterns of a person, of a model and of this package alike.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Q1", "starring", "Adams")], labels={"Q1": "Her"})
        >>> pin_seeds(Pattern.of(("Her", "starring", "Adams")), ["Q1"], graph).nodes[0]
        Known(text='Her', type=None, entity='Q1')
    """
    named = {seed: (seed, graph.label(seed), *graph.aliases(seed)) for seed in seeds}
    named = {seed: tuple(name.casefold() for name in names) for seed, names in named.items()}
    pinned = {}
    for node in pattern.nodes:
        if isinstance(node, Known) and node.entity is None:
            meant = [seed for seed, names in named.items() if node.text.casefold() in names]
            if len(meant) == 1:  # of two seeds with one name, either may be meant
                pinned[node] = Known(node.text, node.type, meant[0])
    return pattern.with_nodes(pinned)


#: Distances that differ by less are equal.
SAME_DISTANCE = 1e-6


def find_widening(
    find: Callable[[Literal["known", "none"], float], list[Match]], revisits: Revisits, max_distance: float
) -> tuple[list[Match], int]:
    """Return the matches of a pattern, best first, and how many of the first are found by the wider rule alone.

    If unknowns may not be entities that the pattern names, but this rule is not certain, and the best match has a
    distance above 0, nearer matches without this rule come first.

    Args:
        find: A function from the nodes that must be different and the largest distance to the matches.
        revisits: Whether unknowns may be entities that the pattern names.
        max_distance: The largest distance of a match.
    """
    found = find("none" if revisits.allowed else "known", max_distance)
    if revisits.certain or (found and found[0].distance < SAME_DISTANCE):
        return found, 0
    nearest = found[0].distance if found else max_distance
    wider = [match for match in find("none", nearest) if not found or match.distance < nearest - SAME_DISTANCE]
    return wider + found, len(wider)


def ambiguous_names(index: GraphIndex, pattern: Pattern, query: MatchQuery) -> list[AmbiguousName]:
    """Return the texts of a pattern that several entities fit equally well."""
    entities, found = index.graph.entities, []
    for node, candidates in zip(pattern.nodes, (node.entities for node in query.nodes), strict=True):
        if isinstance(node, Known) and candidates is not None and len(candidates.ids) > 1:
            best = candidates.ids[candidates.distances <= candidates.distances.min()]
            if len(best) > 1:
                keys = [entities[entity] for entity in best.tolist()]
                found.append(ambiguous_name(index, node.text, keys))
    return found


def match_evidence(
    graph: KnowledgeGraph,
    pattern: Pattern,
    match: Match,
    *,
    ties: Literal["merge", "break"],
    ambiguous: Sequence[AmbiguousName] = (),
) -> Evidence:
    """Return the facts of a match, with its score and the entities of the target.

    Args:
        graph: The graph.
        pattern: The pattern.
        match: A match of it.
        ties: Whether equal results are one. If not, the details give the value of each unknown.
        ambiguous: The texts that several entities fit equally well.
    """
    entities = dict(zip(pattern.nodes, match.entities, strict=True))
    triples = dict.fromkeys(triple for edge in match.triples for triple in edge.tolist())
    targets = [node for node in entities if isinstance(node, Unknown) and node.name == pattern.target]
    return Evidence(
        triples=tuple(graph.triple(triple) for triple in triples),
        score=1 / (1 + match.distance),
        answers=tuple(graph.entities[entity] for node in targets for entity in entities[node].tolist()),
        truncated=match.truncated,
        details=_details(graph, pattern, match, ties) | ({"ambiguous": list(ambiguous)} if ambiguous else {}),
    )


def operation_evidence(
    graph: KnowledgeGraph, pattern: Pattern, result: Operated, *, ties: Literal["merge", "break"]
) -> Evidence:
    """Return the result of an operation, with the facts of the matches that show it."""
    shown = [match_evidence(graph, part, match, ties=ties) for part, match in result.matches]
    entities = _named_entities(pattern, (pair for one in shown for pair in one.details["entities"]))
    return Evidence(
        triples=tuple(
            dict.fromkeys((*(triple for one in shown for triple in one.triples), *map(graph.triple, result.facts)))
        ),
        score=min((one.score for one in shown), default=1.0),
        answers=tuple(graph.entities[entity] for entity in result.answers),
        truncated=result.truncated,
        confidence=pattern.confidence,
        value=result.value,
        details={
            "entities": entities,
            "pattern": replace(pattern, confidence=None).to_dict(),
            **({"lone_entities": [graph.entities[entity] for entity in result.alone]} if result.alone else {}),
            **result.details,
        },
    )


def _named_entities(pattern: Pattern, matched: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return known texts with the keys that they mean: the matched keys, and the keys that the pattern gives itself.

    So an entity of an absent triple is among them, and one of which nothing is found.
    """
    nodes = (node for triple in (*pattern.triples, *pattern.absent) for node in (triple.head, triple.tail))
    given = [(node.text, node.entity) for node in nodes if isinstance(node, Known) and node.entity is not None]
    return [[text, key] for text, key in dict.fromkeys((*map(tuple, matched), *given))]


def _details(graph: KnowledgeGraph, pattern: Pattern, match: Match, ties: Literal["merge", "break"]) -> dict[str, Any]:
    """Return the distance, the match of each known text, and, for a single binding, the value of each unknown."""
    firsts = [(node, graph.entities[int(ids[0])]) for node, ids in zip(pattern.nodes, match.entities, strict=True)]
    names = [graph.relations[relation] if relation >= 0 else None for relation in match.relations]
    relations = [(triple.relation, name) for triple, name in zip(pattern.triples, names, strict=True)]
    details: dict[str, Any] = {
        "distance": match.distance,
        "entities": _named_entities(pattern, ((node.text, key) for node, key in firsts if isinstance(node, Known))),
        "relations": [[term.text, name] for term, name in relations if isinstance(term, Known)],
        "pattern": replace(pattern, confidence=None).to_dict(),  # it stands in the metadata
    }
    if ties == "break":  # each unknown is one thing; two bindings may share all their facts
        details["unknowns"] = {
            "entities": {node.name: key for node, key in firsts if isinstance(node, Unknown)},
            "relations": {term.name: name for term, name in relations if isinstance(term, Unknown) and name},
        }
    return details
