"""Names that several entities bear: noted in the details of evidence, and told in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypedDict

from langchain_core.documents import Document

from kg_retrievers.graph import Evidence, KnowledgeGraph
from kg_retrievers.graph.shown_text import as_data
from kg_retrievers.index import GraphIndex, Homonym, tell_apart

#: The most entities of a name that a sentence tells apart.
TOLD = 4


class AmbiguousName(TypedDict):
    """A name of the question, and the entities that bear it, as JSON."""

    name: str
    entities: list[Homonym]


def ambiguous_name(index: GraphIndex, name: str, keys: Sequence[str]) -> AmbiguousName:
    """Return a name with what tells its entities apart."""
    return AmbiguousName(name=name, entities=tell_apart(index, keys))


def note_ambiguous_names(evidence: Sequence[Evidence], index: GraphIndex) -> list[Evidence]:
    """Return evidence with `details["ambiguous"]`, the names that several entities of the question bear.

    Evidence that has this key already, and evidence whose details name no "entities", stays as it is. The key is left
    out where no name is ambiguous.
    """
    known: dict[tuple[str, ...], list[AmbiguousName]] = {}
    noted = []
    for item in evidence:
        keys = tuple(dict.fromkeys(key for _, key in item.details.get("entities") or ()))
        if keys not in known:
            known[keys] = _shared_names(index, keys)
        found = known[keys]
        if found and "ambiguous" not in item.details:
            item = replace(item, details={**item.details, "ambiguous": found})
        noted.append(item)
    return noted


def _shared_names(index: GraphIndex, keys: Sequence[str]) -> list[AmbiguousName]:
    """Return the names that two or more of some entities share, one for each group of entities."""
    bearers: dict[str, list[str]] = {}
    for key in keys if len(keys) > 1 else ():
        for name in _names(index.graph, key):
            bearers.setdefault(name, []).append(key)
    groups: dict[tuple[str, ...], str] = {}
    for group in bearers.values():
        if len(group) > 1:
            groups.setdefault(tuple(group), index.graph.label(group[0]))
    return [ambiguous_name(index, name, group) for group, name in groups.items()]


def _names(graph: KnowledgeGraph, key: str) -> Iterable[str]:
    return dict.fromkeys(name.casefold() for name in (graph.label(key), *graph.aliases(key)))


def tell_ambiguous_names(documents: Sequence[Document]) -> str:
    """Return a sentence or two on each name that several entities bear; nothing where there is none.

    Example:
        >>> films = [{"key": "d1", "label": "Dune", "text": "1984"}, {"key": "d2", "label": "Dune", "text": "2021"}]
        >>> details = {"ambiguous": [{"name": "Dune", "entities": films}], "entities": [["Dune", "d2"]]}
        >>> tell_ambiguous_names([Document("", metadata={"details": details})])
        "'Dune' is the name of 2 entities: Dune (d1, 1984) and Dune (d2, 2021). The evidence is about d2."
    """
    details = [document.metadata.get("details") or {} for document in documents]
    names: dict[str, Sequence[Homonym]] = {}
    for one in details:
        for found in one.get("ambiguous") or ():
            names.setdefault(found["name"], found["entities"])
    used = {key for one in details for _, key in one.get("entities") or ()}
    return as_data(" ".join(_sentence(name, entities, used) for name, entities in names.items()))


def _sentence(name: str, entities: Sequence[Homonym], used: set[str]) -> str:
    told = [_described(entity) for entity in entities[:TOLD]]
    if (more := len(entities) - TOLD) > 0:
        told.append(f"{more} more")
    about = [entity["key"] for entity in entities if entity["key"] in used]
    sentence = f"{name!r} is the name of {len(entities)} entities: {_listed(told)}."
    return f"{sentence} The evidence is about {_listed(about)}." if 0 < len(about) < len(entities) else sentence


def _described(entity: Homonym) -> str:
    apart = "" if entity["text"] == entity["key"] else f", {entity['text']}"
    return f"{entity['label']} ({entity['key']}{apart})"


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
