"""Which part of a connected graph it takes to generate a pattern, and to match it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import Known, Pattern, Term
from kg_retrievers.index import GraphIndex, linker_of, question_entities
from kg_retrievers.index.reach import Reach

#: How many steps the walks have of which a pattern is generated.
WALKED_HOPS = 3


def reach_of_question(index: GraphIndex, question: str, given: Sequence[str] = ()) -> Reach:
    """Return what is around the entities that a question names, or those that are given."""
    keys = set(given)
    if not given:
        with suppress(EntityLinkingError):
            keys.update(key for entity in question_entities(linker_of(index), question) for key in entity.entities)
    return Reach(tuple(sorted(keys)), WALKED_HOPS)


def reach_of_pattern(pattern: Pattern, given: Sequence[str], k: int) -> Reach:
    """Return what is around the candidates of the known nodes of a pattern, as far as the pattern goes.

    Args:
        pattern: The pattern.
        given: Entities that its known nodes may be.
        k: How many names are candidates for a known node.

    Example:
        >>> from kg_retrievers.graph import Unknown
        >>> pattern = Pattern.of(("Her", "by", Unknown("p")), (Unknown("f"), "by", Unknown("p")), target="f")
        >>> reach_of_pattern(pattern, (), 1).names, reach_of_pattern(pattern, (), 1).hops
        (('Her',), 2)
    """
    triples = [*pattern.triples, *pattern.absent]
    known = {node for triple in triples for node in (triple.head, triple.tail) if isinstance(node, Known)}
    away: dict[Term, int] = dict.fromkeys(known, 0)
    hops, met = 0, True
    while met:
        met = False
        for triple in triples:
            ends = [away[node] for node in (triple.head, triple.tail) if node in away]
            if not ends:
                continue
            hops = max(hops, min(ends) + 1)
            for node in (triple.head, triple.tail):
                if node not in away:
                    away[node], met = min(ends) + 1, True
    keys = {node.entity for node in known if node.entity is not None}
    names = {node.text for node in known if node.entity is None}
    relations = {triple.relation.text for triple in triples if isinstance(triple.relation, Known)}
    all_known = all(isinstance(triple.relation, Known) for triple in triples)
    return Reach(
        tuple(sorted(keys.union(given))),
        hops,
        names=tuple(sorted(names)),
        k=k,
        relations=tuple(sorted(relations)) if all_known else (),
    )
