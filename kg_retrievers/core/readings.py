"""How a question names entities: names that are read as others, and names that several entities bear."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal, TypedDict

from langchain_core.documents import Document

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import Evidence, KnowledgeGraph
from kg_retrievers.graph.verbalize import as_data
from kg_retrievers.index import GraphIndex, Homonym, linker_of, tell_apart
from kg_retrievers.index.mentions import CASE_SCORE, EXACT_SCORE
from kg_retrievers.index.question_entities import find_name
from kg_retrievers.index.words import words_of

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


#: How a question names an entity; see `Linked`.
How = Literal["exact", "case", "alias", "short", "fuzzy", "similar", "given"]


class Reading(TypedDict):
    """What a question says, and the entity that it is taken for, as JSON."""

    text: str
    key: str
    label: str


class Linked(TypedDict):
    """An entity that evidence is about, and the words of the question that name it, as JSON."""

    #: The words, as the question writes them; the name that was looked up where the question does not say it.
    text: str
    key: str
    #: In (0, 1]: 1 if written exactly, see `LinkedEntity`; None where the words do not name it by themselves.
    likeness: float | None
    #: "exact"; "case", but for case, accents or signs; "alias", by another name of it; "short"; "fuzzy", as with a
    #: typo; "similar", since a method took it for the nearest name; "given", by the caller or a pattern, where the
    #: question does not say it.
    how: How


def linked_entities(evidence: Sequence[Evidence], index: GraphIndex, question: str) -> dict[str, Linked]:
    """Return how a question names the entities that the details of evidence name, by key.

    Cost: a search for the names in the question; where it calls an entity otherwise, the linker's, which keeps what it
    found in recent questions.
    """
    names = {key: name for item in evidence for name, key in item.details.get("entities") or ()}
    written = {key: _written(index, question, key) for key in names}
    others = {key for key, linked in written.items() if linked is None}
    mentioned = _mentioned(index, question, others) if others else {}
    return {key: written[key] or mentioned.get(key) or _looked_up(question, key, name) for key, name in names.items()}


def _written(index: GraphIndex, question: str, key: str) -> Linked | None:
    """Return how a question names an entity by label or key, in any case; None where it does not."""
    for name in (index.graph.label(key), key) if key in index.graph.entities else (key,):
        if (span := find_name(name, question)) is not None:
            text = question[slice(*span)]
            is_exact = text == name
            return Linked(
                text=text,
                key=key,
                likeness=EXACT_SCORE if is_exact else CASE_SCORE,
                how="exact" if is_exact else "case",
            )
    return None


def _mentioned(index: GraphIndex, question: str, keys: Collection[str]) -> dict[str, Linked]:
    """Return how a question names entities otherwise than by label or key, as the linker finds them."""
    found: dict[str, Linked] = {}
    with suppress(EntityLinkingError):
        for mention in linker_of(index).link(question):
            for one in mention.candidates:
                is_alias = one.how in ("exact", "case") and words_of(mention.text) != words_of(one.label)
                how: How = "alias" if is_alias else one.how
                if one.entity in keys:
                    found.setdefault(one.entity, Linked(text=mention.text, key=one.entity, likeness=one.score, how=how))
    return found


def _looked_up(question: str, key: str, name: str) -> Linked:
    span = find_name(name, question)
    if span is None:
        return Linked(text=name, key=key, likeness=None, how="given")
    return Linked(text=question[slice(*span)], key=key, likeness=None, how="similar")


def note_readings(evidence: Sequence[Evidence], graph: KnowledgeGraph, linked: Mapping[str, Linked]) -> list[Evidence]:
    """Return evidence with `details["read_as"]`, the entities that the question calls by another name, as by a typo.

    Only entities that the details name count. Letters, accents and signs aside, a label or key is no other name. The
    key is left out where there is none.
    """
    read = {
        key: Reading(text=one["text"], key=key, label=graph.label(key))
        for key, one in linked.items()
        if one["how"] in ("alias", "short", "fuzzy") and words_of(one["text"]) != words_of(graph.label(key))
    }
    if not read:
        return list(evidence)
    noted = []
    for item in evidence:
        keys = dict.fromkeys(key for _, key in item.details.get("entities") or ())
        own = [read[key] for key in keys if key in read]
        noted.append(replace(item, details={**item.details, "read_as": own}) if own else item)
    return noted


def tell_readings(documents: Sequence[Document]) -> str:
    """Return a sentence on each name that is read as another one; nothing where there is none.

    Example:
        >>> details = {"read_as": [{"text": "Paymnets", "key": "Q1", "label": "Payments"}]}
        >>> tell_readings([Document("", metadata={"details": details})])
        "'Paymnets' is read as 'Payments'."
    """
    details = (document.metadata.get("details") or {} for document in documents)
    told = [f"{one['text']!r} is read as {one['label']!r}." for each in details for one in each.get("read_as") or ()]
    return as_data(" ".join(dict.fromkeys(told)))
