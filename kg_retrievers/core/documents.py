"""From evidence to Documents, and what Documents say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Literal

from langchain_core.documents import Document

from kg_retrievers.core.readings import Linked
from kg_retrievers.core.results import tell_result
from kg_retrievers.graph import Evidence, KnowledgeGraph, Triple, verbalize
from kg_retrievers.graph.verbalize import lone_entities_of

#: How the facts of a Document are written; see `verbalize`.
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
        k: How many Documents; fewer only where there is no more.
        graph: Gives the labels.
        retriever: The class that found the evidence.
        style: How the facts are written; see `verbalize`.
        single_triples: Whether each triple is a Document of its own, with the first evidence that holds it; what an
            operation gives without any triple is a Document, too, and so is an entity alone.
        question: What was asked.
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
    } | _sources(evidence.triples, graph)
    paths = evidence.details.get("paths")
    facts = verbalize(evidence.triples, style=style, label=graph.label, paths=paths, entities=alone).text
    content = "\n".join(filter(None, [tell_result(metadata), facts]))
    parts = ["retriever", "triples", "answers", "details", *(["value"] if evidence.value is not None else [])]
    identity = json.dumps([metadata[name] for name in parts])
    return Document(content, id=blake2b(identity.encode(), digest_size=16).hexdigest(), metadata=metadata)


def _sources(triples: Sequence[Triple], graph: KnowledgeGraph) -> dict[str, list[list[str]]]:
    """Return the sources of each triple; nothing of a graph without sources.

    A triple that a database has, and the graph has not, has none.
    """
    if graph.source_names is None:
        return {}
    return {"sources": [graph.sources(triple) if triple in graph else [] for triple in triples]}


def top_answers(evidence: Sequence[Evidence]) -> list[str]:
    """Return the answers that all evidence with the top score proposes, best first, each once.

    Args:
        evidence: By falling score.
    """
    return list(dict.fromkeys(key for item in evidence if item.score == evidence[0].score for key in item.answers))


def documents_answers(documents: Sequence[Document]) -> list[str]:
    """Return what `top_answers` does, of Documents of a retriever."""
    top = [found.metadata for found in documents if found.metadata["score"] == documents[0].metadata["score"]]
    return list(dict.fromkeys(key for metadata in top for key in metadata["answers"]))


def flat_metadata(document: Document) -> Document:
    """Return a copy whose metadata holds only texts, numbers and truth values, as Chroma and its like accept.

    Lists and dictionaries become JSON texts; what is None is left out.
    """
    flat = {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        for name, value in document.metadata.items()
        if value is not None
    }
    return Document(document.page_content, id=document.id, metadata=flat)
