"""The part of a connected graph that matching a pattern needs, and the refusals of things it does not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kg_retrievers.core.retriever import PART_HOPS
from kg_retrievers.database.properties import conditions_of
from kg_retrievers.errors import SearchBudgetError
from kg_retrievers.graph import Known, Pattern, Term
from kg_retrievers.graph.attributes import AttributeCondition
from kg_retrievers.graph.operations import AROUND
from kg_retrievers.graph.pattern import PatternTriple
from kg_retrievers.index import GraphIndex, PartRequest
from kg_retrievers.index.hints import RAISE_FACTS, Hints
from kg_retrievers.questions.around import MAX_HOPS
from kg_retrievers.questions.possible_entities import NAMES, nearest_only

#: The next step if neither a part of a graph nor the queries of a database answer.
INDEX_GRAPH: Hints = {
    "hint_python": "Read and index the graph: GraphIndex.build(KnowledgeGraph.from_executor(executor), embeddings).",
    "hint_shell": "Ask without --connect, of a graph that is read: see kg-retrievers index --help.",
}

#: The next step if a part of a graph does not answer.
ASK_DATABASE: Hints = {
    "hint_python": f"Ask CypherRetriever, whose queries the database runs. {INDEX_GRAPH['hint_python']}",
    "hint_shell": f"Ask with --method sg-rag, whose queries the database runs. {INDEX_GRAPH['hint_shell']}",
}

#: The next step for a question about all entities of a type.
ASK_MODEL: Hints = {
    "hint_python": "Ask CypherRetriever with llm=, whose queries the database runs, or name an entity. "
    f"{INDEX_GRAPH['hint_python']}",
    "hint_shell": "Ask with --method sg-rag --llm MODEL, whose queries the database runs, or name an entity. "
    f"{INDEX_GRAPH['hint_shell']}",
}


def pattern_part(
    index: GraphIndex, pattern: Pattern, given: Sequence[str] = (), k: int = 1, *, hints: Hints = ASK_DATABASE
) -> GraphIndex:
    """Fetch the facts around the known nodes of a pattern, as far as it goes. A graph in memory is its own part.

    If the part with all relations is too large, it is narrowed to the relations of the pattern, and then to the facts
    whose attributes may satisfy its conditions.

    Args:
        index: The index of the graph.
        pattern: The pattern.
        given: Entities that its known nodes may be.
        k: How many near names are candidates for a known node that the graph does not name.
        hints: What to do next if the part cannot be fetched.

    Raises:
        SearchBudgetError: If a triple of the pattern is joined to no known node, so that any fact may fit it.

    Example:
        >>> from kg_retrievers.graph import KnowledgeGraph, Unknown
        >>> from kg_retrievers.index import HashedEmbeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "by", "Jonze")])
        >>> index = GraphIndex.build(graph, HashedEmbeddings())
        >>> pattern_part(index, Pattern.of(("Her", "by", Unknown("p")), target="p")) is index
        True
    """
    if index.reader is None:
        return index
    if pattern.operation and pattern.operation.kind in AROUND:
        return _part_around(index, pattern, given, k)
    away = _distances(_beginnings(pattern, pattern.triples), pattern.triples)
    if pattern.alone or any(triple.head not in away for triple in pattern.triples):
        raise SearchBudgetError(
            "A part of the pattern is joined to no entity that it names, and the graph stays in its database, so that "
            "what fits that part cannot be fetched.",
            **hints,
        )
    triples = (*pattern.triples, *pattern.absent)
    away = _distances({**_beginnings(pattern, triples), **away}, pattern.absent)
    hops = max(min(away.get(end, 0) for end in (triple.head, triple.tail)) + 1 for triple in triples)
    known = [node for triple in triples for node in (triple.head, triple.tail) if isinstance(node, Known)]
    names = {node.text for node in known if node.entity is None}
    relations = tuple(sorted({name for names in _relations(index, triples) for name in names}))
    return index.part(
        PartRequest(
            tuple(sorted({node.entity for node in known if node.entity is not None}.union(given))),
            max(hops, PART_HOPS),
            names=tuple(sorted(names.union(*_lists(pattern).values()))),
            k=k,
            relations=relations,
            limits=_limits(index, pattern, triples),
        )
    )


def _part_around(index: GraphIndex, pattern: Pattern, given: Sequence[str], k: int) -> GraphIndex:
    """Fetch the facts around whole entities: of chains, as far as half of their length from each end."""
    operation, known = pattern.operation, [node for node in pattern.alone if isinstance(node, Known)]
    if operation is None or not known:
        return index
    hops = 1 if operation.kind != "connect" else ((operation.max_hops or MAX_HOPS) + 1) // 2
    keys = {node.entity for node in known if node.entity is not None}.union(given)
    names = {node.text for node in known if node.entity is None}
    return index.part(PartRequest(tuple(sorted(keys)), hops, names=tuple(sorted(names)), k=k))


def _beginnings(pattern: Pattern, triples: Sequence[PatternTriple]) -> dict[Term, int]:
    """Return the nodes from which triples of a pattern are fetched: those that are named, and those of a list."""
    lists = _lists(pattern)
    nodes = dict.fromkeys(node for triple in triples for node in (triple.head, triple.tail))
    return {node: 0 for node in nodes if isinstance(node, Known) or node.name in lists}


def _lists(pattern: Pattern) -> dict[str, list[str]]:
    """Return the names of what unknowns may be, by unknown, where a condition lists them."""
    listing = (
        one for one in pattern.conditions if one.operator == "in" and one.unknown not in pattern.attribute_unknowns
    )
    return {one.unknown: list(map(str, one.value)) for one in listing if isinstance(one.value, tuple)}


def cut_short(what: str, hints: Hints = ASK_DATABASE) -> SearchBudgetError:
    """Return the error if more facts are around the entities than a part holds, so that something is not known."""
    return SearchBudgetError(
        f"More facts are around the entities of the question than are fetched, so that {what} is not known.",
        hint_python=f"{RAISE_FACTS['hint_python']} {hints['hint_python']}",
        hint_shell=f"{RAISE_FACTS['hint_shell']} {hints['hint_shell']}",
    )


def names_nothing(question: str) -> SearchBudgetError:
    """Return the error of a question about all entities of a type, which no part of a connected graph holds."""
    return SearchBudgetError(
        f"No entity of the graph was found in {question!r:.200}, and the graph stays in its database, so that all "
        "entities of a type cannot be fetched.",
        **ASK_MODEL,
    )


def _distances(away: Mapping[Term, int], triples: Sequence[PatternTriple]) -> dict[Term, int]:
    """Return how many triples nodes are away from some that are known, as far as they are joined to these."""
    found: dict[Term, int] = dict(away)
    before = -1
    while len(found) > before:
        before = len(found)
        for triple in triples:
            ends = [found[node] for node in (triple.head, triple.tail) if node in found]
            for node in (triple.head, triple.tail) if ends else ():
                found[node] = min(found.get(node, min(ends) + 1), min(ends) + 1)
    return found


def _relations(index: GraphIndex, triples: Sequence[PatternTriple]) -> list[list[str]]:
    """Return the relations that each triple means, if each names one; else nothing."""
    texts = [triple.relation.text for triple in triples if isinstance(triple.relation, Known)]
    if len(texts) < len(triples):
        return []
    found = (nearest_only(one).ids.tolist() for one in index.nearest_relations(texts, NAMES))
    return [[index.graph.relations[id] for id in ids] for ids in found]


def _limits(
    index: GraphIndex, pattern: Pattern, triples: Sequence[PatternTriple]
) -> tuple[tuple[str, tuple[AttributeCondition, ...]], ...]:
    """Return what facts have to satisfy by relations that only one triple means, with attributes."""
    if not pattern.attributes or (pattern.operation and pattern.operation.kind == "share"):  # which needs all facts
        return ()
    relations = _relations(index, triples)
    meant = Counter(name for names in relations for name in names)
    limits = {
        name: tuple(conditions_of(pattern, number))
        for number, names in enumerate(relations[: len(pattern.triples)])
        for name in names
        if meant[name] == 1
    }
    return tuple(sorted((name, wanted) for name, wanted in limits.items() if wanted))
