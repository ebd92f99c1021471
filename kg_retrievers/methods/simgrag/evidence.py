"""What matches, and the result of an operation, show as evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from kg_retrievers.core.documents import AmbiguousName, ambiguous_name
from kg_retrievers.graph import Evidence, KnowledgeGraph, Known, Pattern, Unknown
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.simgrag.matching import Match, MatchQuery
from kg_retrievers.methods.simgrag.operations import Operated


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
        ties: Whether equal results are one; if not, the details say what each unknown is.
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
    """Return what an operation gives, with the facts of the matches that show it."""
    shown = [match_evidence(graph, part, match, ties=ties) for part, match in result.matches]
    entities = _named_entities(pattern, (pair for one in shown for pair in one.details["entities"]))
    return Evidence(
        triples=tuple(dict.fromkeys(triple for one in shown for triple in one.triples)),
        score=min((one.score for one in shown), default=1.0),
        answers=tuple(graph.entities[entity] for entity in result.answers),
        truncated=result.truncated,
        confidence=pattern.confidence,
        value=result.value,
        details={"entities": entities, "pattern": replace(pattern, confidence=None).to_dict(), **result.details},
    )


def _named_entities(pattern: Pattern, matched: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return known texts with the keys that they mean: those that matched, and those that the pattern gives itself.

    So an entity of an absent triple is among them, and one of which nothing is found.
    """
    nodes = (node for triple in (*pattern.triples, *pattern.absent) for node in (triple.head, triple.tail))
    given = [(node.text, node.entity) for node in nodes if isinstance(node, Known) and node.entity is not None]
    return [[text, key] for text, key in dict.fromkeys((*map(tuple, matched), *given))]


def _details(graph: KnowledgeGraph, pattern: Pattern, match: Match, ties: Literal["merge", "break"]) -> dict[str, Any]:
    """Return the distance, what each known text matched, and, of a single binding, what each unknown is."""
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
