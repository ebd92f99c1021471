"""The facts that a graph lacks for a pattern to fit with an entity as its target."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np

from kg_retrievers.core.obstacles import Lift, Obstacle, shown_fact
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, PatternTriple, Term, Unknown
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex
from kg_retrievers.questions.allowed_entities import NAMES, nearest_only, possible_entities
from kg_retrievers.questions.missing_facts import AskedEdge, MissingFacts, missing_facts

#: The stage that matches the pattern.
STAGE = "match_subgraphs"


def lacking_facts(index: GraphIndex, read: Pattern, entity: str) -> Obstacle:
    """Return the obstacle of facts that the graph lacks, by the nearest names and relations.

    Args:
        index: The indexed graph.
        read: The pattern as it is carried out.
        entity: The key of the entity.
    """
    graph = index.graph
    ways = [_missing(index, read, entity, chosen) for chosen in _shared_relations(graph, read)]
    lacking = min(ways, key=lambda way: len(way.facts))
    asked = Pattern(tuple(read.triples[at] for at in lacking.edges))
    shown = "; ".join(shown_fact(graph, fact) for fact in lacking.facts)
    label = graph.label(entity)
    text = f"{label!r} is no answer, since the graph lacks what the question is read to ask for: {shown}."
    details = {
        "asked": asked.to_dict()["triples"],
        "lacking": [list(fact) for fact in lacking.facts],
        "stand_ins": sorted(lacking.stand_ins.values()),
    }
    lift = Lift(inputs={"pattern": read.to_dict()}, facts=lacking.facts)
    return Obstacle("no_such_edge", STAGE, text, lift, details)


def _shared_relations(graph: KnowledgeGraph, read: Pattern) -> list[dict[Term, int]]:
    """Return what the unknown relations may be that several triples name: one relation each.

    Of several such unknowns all but the first are taken to be the first relation.
    """
    terms = [triple.relation for triple in read.triples]
    shared = [term for term in dict.fromkeys(terms) if isinstance(term, Unknown) and terms.count(term) > 1]
    if not shared:
        return [{}]
    others: dict[Term, int] = dict.fromkeys(shared[1:], 0)
    return [{shared[0]: relation, **others} for relation in range(len(graph.relations))]


def _missing(index: GraphIndex, read: Pattern, entity: str, chosen: Mapping[Term, int]) -> MissingFacts:
    target = next(node for node in read.nodes if isinstance(node, Unknown) and node.name == read.target)
    known = [node for node in read.nodes if isinstance(node, Known)]
    allowed: dict[Hashable, Array] = {node: possible_entities(index, replace(node, type=None)) for node in known}
    allowed[target] = np.array([index.graph.entities.find(entity)])
    edges = [_edge(index, triple, chosen, directed=bool(read.directed)) for triple in read.triples]
    return missing_facts(index.graph, edges, allowed, target)


def _edge(index: GraphIndex, triple: PatternTriple, chosen: Mapping[Term, int], *, directed: bool) -> AskedEdge:
    head, relation, tail = triple
    if relation in chosen:
        relations = [chosen[relation]]
    elif isinstance(relation, Unknown):
        relations = list(range(len(index.graph.relations)))
    else:
        relations = nearest_only(index.nearest_relations([relation.text], NAMES)[0]).ids.tolist()
    return AskedEdge(head, relations, tail, directed)
