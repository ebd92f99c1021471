"""Whether the graph has what a pattern names, so that nothing is counted of a name that is only the nearest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError
from kg_retrievers.graph import Known, Pattern
from kg_retrievers.graph.values import holds, read_value
from kg_retrievers.index import GraphIndex, linker_of
from kg_retrievers.index.misspelt_names import FUZZY_SHARE
from kg_retrievers.index.words import likeness
from kg_retrievers.questions.allowed_entities import nearest_named

#: A relation is meant within the first distance; within the second, if it is nearer than any other by the third. Chosen
#: by `benchmarks/known_texts.py` on 172 texts for relations of three graphs, and 78 for relations that these lack: 49 %
#: of the former pass, 3 % for a wrong relation, and 12 % of the latter. Within 1.1 alone, 58, 15 and 24 % do; within .9
#: alone, 34, 1 and 8 %.
SAME_RELATION, LIKELY_RELATION, RELATION_MARGIN = 0.9, 1.1, 0.2

#: How many names an error suggests.
SUGGESTED = 3

_DIGITS = re.compile(r"\d+")


def check_known_texts(index: GraphIndex, pattern: Pattern, linked: Collection[str] = ()) -> None:
    """Check that a pattern names entities and relations of the graph, if it asks for more than a list of matches.

    A name is one of the graph where as many letters of it are equal as of a misspelt one, and all digits, or where it
    is short for one. The distance of embeddings tells little: within .9, 56 % of names of MetaQA have another name, and
    3 % have one with so many equal letters (`benchmarks/known_texts.py`).

    Args:
        index: The indexed graph.
        pattern: The pattern.
        linked: Texts whose entities are known.

    Raises:
        EntityLinkingError: If it has no entity of a name; the nearest are the suggestions.
        LowConfidenceError: If it has no relation that a text means, or several; the nearest are `nearest`.
    """
    operation = pattern.operation
    is_list = operation is None or (operation.kind == "list" and not operation.by)
    if is_list and not pattern.conditions and not pattern.absent:
        return
    names = [text for text in dict.fromkeys(_entity_texts(pattern)) if text not in linked]
    for text, nearest in zip(names, nearest_named(index, names), strict=True):
        if not _is_named(index, text, nearest):
            raise EntityLinkingError(
                f"The pattern names {text!r}, which the graph lacks.",
                _nearest_labels(index, text),
                hint_python="Name an entity of the graph, or ask for a list without conditions.",
            )
    terms = dict.fromkeys(triple.relation for triple in (*pattern.triples, *pattern.absent))
    texts = [term.text for term in terms if isinstance(term, Known)]
    for text, found in zip(texts, index.nearest_relations(texts, SUGGESTED), strict=True):
        if not _is_relation(found):
            relations = [index.graph.relations[relation] for relation in found.ids.tolist()]
            raise LowConfidenceError(
                f"The pattern names the relation {text!r}, which the graph lacks. The nearest are {relations}.",
                0.0,
                [text],
                relations,
                hint_python="Name a relation of the graph, or ask for a list without conditions.",
            )


def _entity_texts(pattern: Pattern) -> Iterator[str]:
    """Yield the texts of the entities that a pattern names, and does not pin."""
    for head, _, tail in (*pattern.triples, *pattern.absent):
        yield from (node.text for node in (head, tail) if isinstance(node, Known) and node.entity is None)
    for condition in pattern.conditions:
        if condition.operator == "in" and isinstance(condition.value, tuple):
            yield from map(str, condition.value)


def _is_named(index: GraphIndex, text: str, nearest: Candidates) -> bool:
    if not nearest.distances.any() and len(nearest.ids):
        return True
    graph = index.graph
    keys = [graph.entities[entity] for entity in nearest.ids.tolist()]
    if any(_is_spelling(text, name) for key in keys for name in (graph.label(key), *graph.aliases(key))):
        return True
    return any(key in _short_for(index, text) for key in keys)


def _is_spelling(text: str, name: str) -> bool:
    """Return whether a text is a name, perhaps misspelt: of values, an equal one."""
    one, other = read_value(text), read_value(name)
    if one is not None or other is not None:
        return one is not None and other is not None and holds(one, "=", other) and holds(other, "=", one)
    return _DIGITS.findall(text) == _DIGITS.findall(name) and likeness(text, name, FUZZY_SHARE) > 0


def _short_for(index: GraphIndex, text: str) -> Sequence[str]:
    """Return the entity that a text is a short name of; none of several."""
    try:
        mentions = linker_of(index).link(text)
    except EntityLinkingError:
        return ()
    whole = [mention.candidates for mention in mentions if mention.text == text.strip()]
    return [one.entity for one in whole[0] if one.how == "short"] if whole and len(whole[0]) == 1 else ()


def _nearest_labels(index: GraphIndex, text: str) -> list[str]:
    graph, found = index.graph, index.nearest_entities([text], SUGGESTED)[0]
    labels = (graph.label(graph.entities[entity]) for entity in found.ids.tolist())
    return list(dict.fromkeys(labels))[:SUGGESTED]


def _is_relation(found: Candidates) -> bool:
    if not len(found.ids):
        return False
    nearest, rest = float(found.distances[0]), found.distances[found.distances > found.distances[0]]
    beyond = float(rest[0]) - nearest if len(rest) else float("inf")
    return nearest <= SAME_RELATION or (nearest <= LIKELY_RELATION and beyond >= RELATION_MARGIN)
