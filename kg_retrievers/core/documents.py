"""From evidence to LangChain Documents: ranks, readings of names, and metadata."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal, TypeGuard

from langchain_core.documents import Document
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, named_arguments
from kg_retrievers.graph import Evidence, KnowledgeGraph, Triple, local_name, pattern_lines, readable, verbalize
from kg_retrievers.graph.attributes import SOURCE, sources_of
from kg_retrievers.graph.validation import reasons
from kg_retrievers.graph.values import Value, holds, read_value
from kg_retrievers.graph.verbalize import Style, as_data, lone_entities_of, words_with
from kg_retrievers.index import GraphIndex, Homonym, linker_of, tell_apart
from kg_retrievers.index.linking import find_name
from kg_retrievers.index.names import CASE_SCORE, EXACT_SCORE, words_of

#: The most answers that a line names. The metadata holds all.
MOST_NAMED = 100

_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNT = re.compile(rf"({'|'.join(_COUNTS)})\b", re.IGNORECASE)
_VERDICT = re.compile(r"(yes|no|true|false)(?=\s*[,.;:!]|\s*\Z)", re.IGNORECASE)
_AT_LEAST = re.compile(r"\s*(?:at least|≥|>=)\s*", re.IGNORECASE)


def result_value(documents: Sequence[Document]) -> Any:
    """Return the value of an operation from its Documents.

    The result is None if they hold none.
    """
    return documents[0].metadata.get("value") if documents else None


def why_unsure(documents: Sequence[Document]) -> str:
    """Return why the first Document proposes no answer.

    The text is empty if it proposes one or nobody gave a reason.
    """
    details = documents[0].metadata.get("details") if documents else None
    return str((details or {}).get("why", ""))


def result_answers(metadata: Mapping[str, Any]) -> list[str]:
    """Return the answers of a Document as texts.

    These are the labels of the entities, or else the value of the operation.

    Example:
        >>> result_answers({"answers": [], "value": 6}), result_answers({"answers": [], "value": False})
        (['6'], ['no'])
        >>> result_answers({"answers": [], "value": 6, "details": {"at_least": True}})
        ['at least 6']
        >>> result_answers({"answers": [], "value": {"columns": ["country", "count"], "rows": [["Norway", 5]]}})
        ['Norway: 5']
    """
    if is_table(value := metadata.get("value")):
        return [f"{_said(first)}: {', '.join(map(_said, rest))}" for first, *rest in value["rows"]]
    if metadata["answers"]:
        return list(dict.fromkeys(as_data(metadata["labels"][key]) for key in metadata["answers"]))
    if value is None:
        return []
    details = metadata.get("details") or {}
    at_least, unit = "at least " if details.get("at_least") else "", _unit_of(details)
    return [f"{at_least}{_said(one)}{unit}" for one in (value if isinstance(value, list) else [value])]


def is_table(value: object) -> TypeGuard[Mapping[str, list[Any]]]:
    """Tell whether an operation gave a table.

    A table has the names of its "columns", and "rows" with one cell per column.
    """
    return isinstance(value, Mapping) and all(isinstance(value.get(key), list) for key in ("columns", "rows"))


def _unit_of(details: Mapping[str, Any]) -> str:
    unit = details.get("unit")
    return f" {unit}" if isinstance(unit, str) and unit else ""


def _table_lines(value: Mapping[str, list[Any]], most: int | None) -> list[str]:
    """Return a table in Markdown, a line for each row."""
    rows = [[_said(cell).replace("|", "/") for cell in row] for row in value["rows"][:most]]
    columns = [as_data(str(title)).replace("|", "/") for title in value["columns"]]
    left = len(value["rows"]) - len(rows)
    more = [f"({left} more rows)"] if left else []
    return [*(f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows)), *more]


def result_text(metadata: Mapping[str, Any], most: int | None = None) -> str:
    """Return the answers of a Document as one text.

    The text shows each answer with the value by which it was chosen.

    Args:
        metadata: The metadata of the Document.
        most: How many answers are named. None names all.

    Example:
        >>> result_text({"answers": ["a", "b"], "labels": {"a": "Her", "b": "Up"}, "value": [2013, 2009]})
        'Her (2013); Up (2009)'
    """
    if is_table(value := metadata.get("value")):
        return "\n".join(_table_lines(value, most)) if value["rows"] else "nothing"
    texts = _with_values(metadata) or result_answers(metadata)
    more = len(texts) - most if most else 0
    return "; ".join([*texts[:most], *([f"{more} more"] if more > 0 else [])])


def _with_values(metadata: Mapping[str, Any]) -> list[str]:
    """Return the labels of the answers, each with any value by which it was chosen."""
    keys, value = metadata["answers"], metadata.get("value")
    values = value if isinstance(value, list) else [value] * len(keys)
    if value is None or is_table(value) or len(values) != len(keys):
        return []
    labels, unit = [metadata["labels"][key] for key in keys], _unit_of(metadata.get("details") or {})
    return [as_data(f"{label} ({_said(one)}{unit})") for label, one in zip(labels, values, strict=True)]


def _said(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    if isinstance(value, float):
        value = f"{value:.6g}" if abs(value) < 1e6 else f"{value:.2f}"
    return as_data({True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value))


def tell_result(metadata: Mapping[str, Any]) -> str:
    """Return a line on the result of a Document's operation.

    The line is empty without an operation.

    Example:
        >>> pattern = {"triples": [["Her", "composer", {"unknown": "x"}]], "operation": {"kind": "exists"}}
        >>> tell_result({"answers": [], "value": False, "triples": [], "details": {"pattern": pattern}})
        'Result: no. Looked for and not found: Her -> composer -> ?x'
    """
    details = metadata.get("details") or {}
    if metadata.get("value") is None:
        return "".join(f"{note}\n" for note in _around_notes(details)).strip()
    pattern = details.get("pattern") or {}
    kind = (pattern.get("operation") or details.get("operation") or {}).get("kind", "exists")
    name = "Result" if kind in ("exists", "compare") else f"Result of {kind}"
    text = result_text(metadata, MOST_NAMED)
    line = f"{name}:\n{text}" if is_table(metadata["value"]) and "\n" in text else f"{name}: {text}"
    if not metadata["triples"] and not metadata["value"] and kind in ("exists", "compare", "count", "list"):
        looked_for = as_data(str(details.get("query", "")))
        if pattern:
            looked_for = "; ".join(pattern_lines({**pattern, "operation": None}))
        return f"{line}. Looked for and not found: {looked_for}" if looked_for else line
    return line + "".join(f" ({note})" for note in _notes(details))


def _around_notes(details: Mapping[str, Any]) -> list[str]:
    """Return notes on an entity under description: its types, and how many facts are left out."""
    types, left_out = details.get("types"), details.get("left_out")
    notes = [f"Types: {as_data(', '.join(readable(local_name(str(kind))) for kind in types))}"] if types else []
    if isinstance(left_out, Mapping):
        counts = (f"{count} more of {as_data(readable(str(name)))}" for name, count in [*left_out.items()][:MOST_NAMED])
        notes.append(f"Left out: {', '.join(counts)}")
    return notes


def _notes(details: Mapping[str, Any]) -> list[str]:
    shown, of = details.get("shown", 0), details.get("of", 0)
    notes = [f"the facts are of {shown} of {of}"] if shown < of else []
    if tied := details.get("tied"):
        notes.append(f"{tied} more than asked for, which tie")
    if part := details.get("part"):
        notes.append(f"{part[0]} of {part[1]}")
    if without := details.get("without_value"):
        notes.append(f"{without} left out, without a value to compare")
    return notes


#: Who read a question, by the `source` of a pattern or a query.
SOURCES = {
    "examples": "as the nearest example",
    "question-forms": "by its form",
    "zero-shot": "by its entities and words",
    "chosen": "as a language model chose among readings",
    "llm": "by a language model",
}


def tell_reader(source: str) -> str:
    """Return who read a question, by the `source` of a pattern or a query."""
    return f"read {SOURCES.get(source, f'by {source}')}"


def tell_results(documents: Sequence[Document]) -> str:
    """Return the results of operations in some Documents, one per line."""
    lines = (tell_result(document.metadata) for document in documents)
    return "\n".join(dict.fromkeys(filter(None, lines)))


def agrees(answer: str, metadata: Mapping[str, Any]) -> bool:
    """Tell whether an answer agrees with the operation of a Document.

    It agrees if it says the value, or the name of one of the answers.

    If there are several values, each of one entity, only the names are answers.

    Example:
        >>> count = {"answers": [], "value": 6}
        >>> agrees("6", count), agrees("6 huts", count), agrees("7", count), agrees("at least 6", count)
        (True, True, False, False)
        >>> agrees("10.6667 m", {"answers": [], "value": 32 / 3})
        True
        >>> table = {"columns": ["port", "ships"], "rows": [["Oslo", 2]]}
        >>> agrees("Oslo: 2", {"answers": [], "value": table}), agrees("Oslo: 3", {"answers": [], "value": table})
        (True, False)
    """
    names = [*result_answers(metadata), *_with_values(metadata)] if metadata["answers"] else []
    if any(_same_words(answer, name) or _same_value(answer, read_value(name)) for name in names):
        return True
    value = metadata.get("value")
    if value is None or (names and isinstance(value, list)):
        return False
    values = value if isinstance(value, list) else [value]
    if is_table(value):
        values = [one for row in value["rows"] for cell in row for one in (cell if isinstance(cell, list) else [cell])]
        cells = [cell.strip() for cell in re.split(r"[|:;]|, ", answer.strip("| "))]
        return all(any(_is_value(cell, one) for one in values) for cell in cells)
    least = _AT_LEAST.match(answer)
    if bool(least) != bool((metadata.get("details") or {}).get("at_least")):
        return False
    said = answer[least.end() :] if least else answer
    return any(_is_value(said.strip().rstrip(".!"), one) for one in values)


def _is_value(text: str, value: object) -> bool:
    if isinstance(value, bool):
        said = _VERDICT.match(text)
        return said is not None and said[1].casefold() in (("yes", "true") if value else ("no", "false"))
    if isinstance(value, int):
        text = _COUNT.sub(lambda found: str(_COUNTS.index(found[1].casefold()) + 1), text, count=1)
    if isinstance(value, float) and (read := read_value(text)) and read.number is not None:
        return math.isclose(read.number, value, rel_tol=1e-5)  # shown with six digits
    wanted = Value(str(value), number=value) if isinstance(value, float) else read_value(str(value))
    return _same_value(text, wanted) or _same_words(text, str(value))


def _same_value(text: str, wanted: Value | None) -> bool:
    """Tell whether a text says a date or number completely.

    A year does not say a day, nor a day a year.
    """
    read = read_value(text) or read_value(text.casefold())  # "6 Houses" is no name here
    if read is None or wanted is None or read.truth is not None or wanted.truth is not None:
        return False
    return holds(read, "=", wanted) and holds(wanted, "=", read)


def _same_words(one: str, other: str) -> bool:
    words = words_of(one)
    return words == words_of(other) and (bool(words) or one.strip() == other.strip())


#: The most entities of one name that a sentence distinguishes.
TOLD = 4


class AmbiguousName(TypedDict):
    """A name of the question, and the entities that bear it, as JSON."""

    name: str
    entities: list[Homonym]


def ambiguous_name(index: GraphIndex, name: str, keys: Sequence[str]) -> AmbiguousName:
    """Return a name with the notes that distinguish its entities."""
    return AmbiguousName(name=name, entities=tell_apart(index, keys))


def note_ambiguous_names(evidence: Sequence[Evidence], index: GraphIndex) -> list[Evidence]:
    """Return evidence with `details["ambiguous"]`, the names that several entities of the question bear.

    Evidence that has this key already, and evidence whose details name no "entities", stays as it is. The key is absent
    if no name is ambiguous.
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
    """Return the names that some entities share, one per group of two or more entities."""
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
    """Return a sentence or two on each name that several entities bear.

    The text is empty if there is no such name.

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


#: How a question names an entity. See `Linked`.
How = Literal["exact", "case", "alias", "short", "fuzzy", "similar", "given"]


class Reading(TypedDict):
    """Words of a question and the entity that they are taken for, as JSON."""

    text: str
    key: str
    label: str


class Linked(TypedDict):
    """An entity of the evidence and the question's words for it, as JSON."""

    #: The words, as the question writes them. If the question does not write the name, the name that was looked up.
    text: str
    key: str
    #: In (0, 1]. 1 is an exact spelling, see `LinkedEntity`. None if the words do not name the entity by themselves.
    likeness: float | None
    #: "exact". "case": exact except for case, accents or signs. "alias": by another name of the entity. "short".
    #: "fuzzy": such as with a typo. "similar": a method took it for the nearest name. "given": by the caller or a
    #: pattern, if the question does not say it.
    how: How


def linked_entities(evidence: Sequence[Evidence], index: GraphIndex, question: str) -> dict[str, Linked]:
    """Return how a question names the entities of the details of evidence, by key.

    The cost is one search for the names in the question. If the question calls an entity otherwise, the linker runs,
    and it keeps its findings for recent questions.
    """
    names = {key: name for item in evidence for name, key in item.details.get("entities") or ()}
    written = {key: _written(index, question, key) for key in names}
    others = {key for key, linked in written.items() if linked is None}
    mentioned = _mentioned(index, question, others) if others else {}
    return {key: written[key] or mentioned.get(key) or _looked_up(question, key, name) for key, name in names.items()}


def _written(index: GraphIndex, question: str, key: str) -> Linked | None:
    """Return how a question names an entity by label or key, in any case.

    None if it does not.
    """
    for name in (index.graph.label(key), key) if key in index.graph.entities else (key,):
        if (span := find_name(name, question)) is not None:
            text = question[slice(*span)]
            how: How = "exact" if text == name else "case"
            return Linked(text=text, key=key, likeness=EXACT_SCORE if text == name else CASE_SCORE, how=how)
    return None


def _mentioned(index: GraphIndex, question: str, keys: Collection[str]) -> dict[str, Linked]:
    """Return how a question names entities without their label or key, by the linker."""
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
    """Return evidence with `details["read_as"]`, the entities under another name.

    These are the entities that the question calls by a name other than the label, such as by a typo.

    Only entities that the details name count. Letters, accents and signs aside, a label or key is no other name. The
    key is absent if there is no such entity.
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
    """Return a sentence on each name that is read as another one.

    The text is empty if there is no such name.

    Example:
        >>> details = {"read_as": [{"text": "Paymnets", "key": "Q1", "label": "Payments"}]}
        >>> tell_readings([Document("", metadata={"details": details})])
        "'Paymnets' is read as 'Payments'."
    """
    details = (document.metadata.get("details") or {} for document in documents)
    told = [f"{one['text']!r} is read as {one['label']!r}." for each in details for one in each.get("read_as") or ()]
    return as_data(" ".join(dict.fromkeys(told)))


#: How the facts of a Document are written. See `verbalize`.
DocumentStyle = Literal["triples", "grouped", "tables", "paths"]


def documents_of(
    evidence: Sequence[Evidence],
    k: int,
    graph: KnowledgeGraph,
    *,
    retriever: str,
    style: DocumentStyle,
    single_triples: bool,
    question: str = "",
    linked: Mapping[str, Linked] | None = None,
) -> list[Document]:
    """Return the first k Documents of some evidence.

    Args:
        evidence: By falling score.
        k: How many Documents. The result has fewer only if there are no more.
        graph: Gives the labels.
        retriever: The class that found the evidence.
        style: How the facts are written. See `verbalize`.
        single_triples: Whether each triple is a Document of its own, with the first evidence that holds it. The result
            of an operation without any triple is a Document, too, and so is an entity alone.
        question: The question of the evidence.
        linked: How it names the entities that the details of the evidence name.
    """
    rows = _one_by_one(evidence) if single_triples else evidence
    documents = [_document(item, rank, graph, retriever, style) for rank, item in enumerate(rows[:k], 1)]
    for document in documents:
        keys = dict.fromkeys(key for _, key in document.metadata["details"].get("entities") or ())
        named = [dict(linked[key]) for key in keys if key in linked] if linked else []
        document.metadata |= {"question": question, "linked": named}
    return documents


def _one_by_one(evidence: Sequence[Evidence]) -> list[Evidence]:
    seen: dict[tuple[str, ...], Evidence] = {}
    for item in evidence:
        if not item.triples:
            seen.setdefault(tuple(lone_entities_of(item)), item)
        details = {name: value for name, value in item.details.items() if name != "paths"}
        for triple in item.triples:
            seen.setdefault(triple, replace(item, triples=(triple,), details=details))
    return list(seen.values())


def _document(
    evidence: Evidence,
    rank: int,
    graph: KnowledgeGraph,
    retriever: str,
    style: DocumentStyle,
) -> Document:
    alone = lone_entities_of(evidence)
    keys = [key for head, _, tail in evidence.triples for key in (head, tail)] + alone
    metadata = {
        "triples": [list(triple) for triple in evidence.triples],
        "labels": {key: graph.label(key) for key in dict.fromkeys((*keys, *evidence.answers))},
        "score": float(evidence.score),
        "rank": rank,
        "retriever": retriever,
        "answers": list(evidence.answers),
        "value": evidence.value,
        "confidence": None if evidence.confidence is None else float(evidence.confidence),
        "truncated": evidence.truncated,
        "style": style,
        "details": dict(evidence.details),
    } | _attributes(evidence.triples, graph)
    paths = evidence.details.get("paths")
    said = words_with(dict(zip(evidence.triples, metadata.get("attributes", ()), strict=False)))
    label = metadata["labels"].__getitem__
    facts = verbalize(evidence.triples, style=style, label=label, said=said, paths=paths, entities=alone).text
    content = "\n".join(filter(None, [tell_result(metadata), facts]))
    parts = ["retriever", "triples", "answers", "details", *(["value"] if evidence.value is not None else [])]
    identity = json.dumps([metadata[name] for name in parts])
    return Document(content, id=blake2b(identity.encode(), digest_size=16).hexdigest(), metadata=metadata)


def _attributes(triples: Sequence[Triple], graph: KnowledgeGraph) -> dict[str, list[Any]]:
    """Return the attributes of each triple, and its sources.

    The result is empty for a graph without attributes.

    A triple that a database has, and the graph has not, has none.
    """
    if not len(graph.attribute_sets.texts):
        return {}
    sets = [graph.attributes(triple) if triple in graph else [] for triple in triples]
    return {
        "sources": [*map(sources_of, sets)],
        "attributes": [[one for one in several if one.keys() - {SOURCE}] for several in sets],
    }


def evidence_of(row: Mapping[str, Any]) -> Evidence:
    """Return the evidence of a Document's metadata, or of a row with some of its keys."""
    return Evidence(
        tuple(Triple(*triple) for triple in row["triples"]),
        float(row["score"]),
        tuple(row["answers"]),
        row["truncated"],
        row.get("confidence"),
        details=row["details"],
        value=row.get("value"),
    )


def top_answers(evidence: Sequence[Evidence]) -> list[str]:
    """Return the answers of all evidence with the top score.

    The best answer comes first, and each answer comes once.

    Args:
        evidence: By falling score.
    """
    return list(dict.fromkeys(key for item in evidence if item.score == evidence[0].score for key in item.answers))


@with_config(ConfigDict(extra="allow"))
class _Details(TypedDict, total=False):
    entities: list[tuple[str, str]]
    ambiguous: list[dict[str, Any]]
    read_as: list[dict[str, Any]]


@with_config(ConfigDict(extra="allow"))
class _Metadata(TypedDict, total=False):
    """The keys of metadata that answerers read."""

    triples: list[tuple[str, str, str]]
    answers: list[str]
    labels: dict[str, str]
    details: _Details | None
    score: float | None
    confidence: float | None
    style: Style
    sources: list[list[str]]
    attributes: list[list[dict[str, Any]]]


_METADATA = TypeAdapter(_Metadata)


def whole_documents(documents: Sequence[Document], who: str) -> list[Document]:
    """Return Documents with all keys of metadata that answerers read, also those of other retrievers.

    A Document without triples and answers counts by its text alone. An entity without a label is called by its key.

    Args:
        documents: The Documents.
        who: The caller, for the message.

    Raises:
        InvalidArgumentError: If they are no Documents, or a key holds something else than in Documents of this package.
    """
    if not isinstance(documents, list | tuple) or not all(isinstance(one, Document) for one in documents):
        raise InvalidArgumentError(f"{who}: wanted a list of Documents, but got {documents!r:.100}.")
    return [_whole(document, number, who) for number, document in enumerate(documents, 1)]


def _whole(document: Document, rank: int, who: str) -> Document:
    metadata = document.metadata
    try:
        _METADATA.validate_python(metadata)
    except ValidationError as error:
        raise InvalidArgumentError(
            f"{who}: the metadata of Document {rank} is not as retrievers of this package write it: {reasons(error)}",
            hint_python="Rename the key, or leave it out.",
        ) from None
    whole = {
        "triples": [],
        "answers": [],
        "truncated": False,
        "rank": rank,
        "retriever": "",
        **dict.fromkeys(("value", "confidence", "score")),
        **metadata,
        **{key: metadata.get(key) or {} for key in ("labels", "details")},
    }
    keys = [*(key for head, _, tail in whole["triples"] for key in (head, tail)), *whole["answers"]]
    if whole == metadata and whole["labels"].keys() >= {*keys}:
        return document
    whole |= {"triples": list(map(list, whole["triples"])), "labels": {key: key for key in keys} | whole["labels"]}
    return Document(document.page_content, id=document.id, metadata=whole)


def documents_answers(documents: Sequence[Document]) -> list[str]:
    """Return what `top_answers` does, of Documents of a retriever."""
    return list(dict.fromkeys(key for one in equally_good(documents) for key in one.metadata["answers"]))


def equally_good(documents: Sequence[Document]) -> list[Document]:
    """Return the first Document and the Documents that are as good.

    If the first Document proposes answers, the Documents that propose answers with the same score follow.
    """
    first, rest = documents[:1], documents[1:]
    score = first[0].metadata.get("score") if first and result_answers(first[0].metadata) else None
    same = (one for one in rest if score is not None and one.metadata.get("score") == score)
    return [*first, *(one for one in same if result_answers(one.metadata))]


def best_text(documents: Sequence[Document]) -> str:
    """Return the answers of equally good Documents as one text, joined by "or".

    The text is empty without answers.
    """
    texts = [result_text(one.metadata) for one in equally_good(documents)]
    return "\nor ".join(dict.fromkeys(filter(None, texts)))


def best_answers(documents: Sequence[Document]) -> list[str]:
    """Return the answers of equally good Documents as texts, each once.

    See `result_answers`.
    """
    return list(dict.fromkeys(name for one in equally_good(documents) for name in result_answers(one.metadata)))


@named_arguments
def flat_metadata(document: Document) -> Document:
    """Return a copy with only flat values in the metadata.

    It holds only texts, numbers and truth values, which Chroma and similar stores accept.

    Lists and dictionaries become JSON texts. None values are left out.
    """
    flat = {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        for name, value in document.metadata.items()
        if value is not None
    }
    return Document(document.page_content, id=document.id, metadata=flat)
