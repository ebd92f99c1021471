"""Runs the workflow of a retriever and reports each stage as it ends: its findings, the evidence, the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from langchain_core.documents import Document

from kg_retrievers.agents import Workflow
from kg_retrievers.agents.neighborhoods import resolve
from kg_retrievers.core.documents import documents_answers, equally_good, result_text, tell_readings, why_unsure
from kg_retrievers.core.replies import LESS_SURE, NO_ANSWER, NOT_UNDERSTOOD, SEARCH_ENDED
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.drawing import draw
from kg_retrievers.drawing.html_page import cut
from kg_retrievers.graph import KnowledgeGraph, pattern_lines
from kg_retrievers.graph.verbalize import one_line
from kg_retrievers.index.hints import tell_language
from kg_retrievers.serving.web.requests import FORMS, Ask, read_text, write_text
from kg_retrievers.serving.workers import Event

#: The nodes behind the stages of a retriever.
_ANSWERING = ("verbalize", "answer", "check_citations")

#: The most names, documents, and citations or answers that are told, and the most characters of a text.
NAMES, DOCUMENTS, CITATIONS, CHARACTERS = 12, 20, 200, 4_000

#: Operations in the words of the page, by kind.
_OPERATIONS = {"exists": "yes or no: is it so?", "count": "how many:", "min": "the least:", "max": "the greatest:"}

#: The most rows of a table.
ROWS = 100

#: The next steps for a question without an answer, by the kind of answer.
_NEXT_STEPS = {
    NOT_UNDERSTOOD: "Name an entity of the graph and one of its relations: the examples and the schema show some.",
    LESS_SURE: "Take the likeliest reading anyway, or edit what was understood and run on.",
    SEARCH_ENDED: "Ask a narrower question: the search ended before it had seen everything.",
    NO_ANSWER: "Look into the schema for what the graph holds, edit what was understood, or try another method.",
}


def tell_stages(workflow: Workflow, ask: Ask, tell: Callable[[Event], None]) -> None:
    """Answer a question and tell each step.

    The events are "started", a "stage" for each stage, "evidence", and "answer", which also says why there is none.

    Args:
        workflow: Of the method that is asked.
        ask: The question, and what a person edited.
        tell: Takes each event.

    Raises:
        KGRetrieversError: If what a person edited cannot be used, or a stage fails.
    """
    retriever = workflow.retriever
    given = {key: read_text(key, text) for key, text in ask.edited.items()}
    given |= ask.model_dump(include={"k", "min_confidence", "seed_entities"}, exclude_none=True)
    given["turns"] = ask.turns
    if ask.seed_entities:
        given["seed_entities"] = [resolve(retriever.index, seed) for seed in ask.seed_entities]
    stages = [stage.name for stage in retriever.running_stages]
    updates: Any = workflow.stream({"question": ask.question, **given}, stream_mode="updates")
    tell({"event": "started", "retriever": type(retriever).__name__, "stages": [*stages, *_ANSWERING]})
    state: dict[str, Any] = {}
    began = time.perf_counter()
    with closing(updates):  # also if nobody reads on
        for update in updates:
            for node, written in update.items():
                state |= written or {}
                if node in stages:
                    tell(_stage(node, retriever, written or {}, ask.edited, time.perf_counter() - began))
                elif node in _ANSWERING:
                    tell({"event": "stage", "name": node, "seconds": time.perf_counter() - began, "found": []})
                if (written or {}).get("documents"):
                    tell(_evidence(state["documents"], retriever.graph))
            began = time.perf_counter()
    tell(_answer(state))


def _stage(
    name: str, retriever: BaseKGRetriever, written: Mapping[str, Any], edited: Mapping[str, str], seconds: float
) -> Event:
    """Return the event of a stage, with what it wrote as texts; of one that was skipped, what a person wrote."""
    stage = next(stage for stage in retriever.stages if stage.name == name)
    found = [{"key": key, "lines": lines} for key in stage.writes if (lines := _lines(key, written, retriever.graph))]
    event: Event = {"event": "stage", "name": name, "seconds": seconds, "found": found}
    for key in stage.writes:
        if key in edited:
            event |= {"edited": True, "editable": {"key": key, "text": edited[key], "form": FORMS[key]}}
        elif key in FORMS and written.get(key):
            event["editable"] = {"key": key, "text": write_text(key, written[key]), "form": FORMS[key]}
    if "reason" in written:
        event["refused"] = True
    return event


def _lines(key: str, written: Mapping[str, Any], graph: KnowledgeGraph) -> list[str]:
    """Return what a stage wrote under a key, for a person; nothing where that says nothing to a person."""
    value = written.get(key)
    if not value or key == "documents":
        return []
    if key in ("pattern", "readings"):
        return [cut(line) for line in _pattern_lines(value if key == "pattern" else value[0])]
    if key == "relation_paths":
        paths = (", ".join(f"{relation} ({way})" for relation, way in path["relations"]) for path in value[:3])
        return [cut(path) for path in paths]
    if key == "cypher":
        return [one_line(line)[:CHARACTERS] for query in value[:3] for line in query["query"][:CHARACTERS].splitlines()]
    if key in ("answers", "seed_entities"):
        return [cut(_label(graph, name), 80) for name in value[:NAMES]] + _more(value)
    if key.startswith("ranked_"):
        return [f"{one_line(str(row[0])):.200}  {row[1]:.2f}" for row in value[:NAMES]] + _more(value)
    return []


def _pattern_lines(pattern: Mapping[str, Any]) -> list[str]:
    """Return a pattern for a person: its facts, the types that it asks for, and its operation in words."""
    lines = pattern_lines(pattern)
    if pattern.get("operation"):
        kind, _, rest = lines.pop().partition(":")
        lines.append(f"{_OPERATIONS.get(kind, f'{kind}:')}{rest}")
    nodes = [node for head, _, tail in pattern.get("triples", ()) for node in (head, tail)]
    types = {node["unknown"]: node["type"] for node in nodes if isinstance(node, Mapping) and node.keys() >= _TYPED}
    return [*lines, *(f"?{name} is of the type {kind}" for name, kind in types.items())]


_TYPED = {"unknown", "type"}


def _more(value: Sequence[object]) -> list[str]:
    return [f"and {len(value) - NAMES:,} more"] if len(value) > NAMES else []


def _label(graph: KnowledgeGraph, key: str) -> str:
    return cut(graph.label(key) if key in graph.entities else key)


def _evidence(documents: Sequence[Document], graph: KnowledgeGraph) -> Event:
    """Return the event of the evidence. Only the best Documents have answers: those of the others are not given."""
    best, answers = documents[0].metadata, documents_answers(documents)
    proposing = {document.metadata["rank"] for document in equally_good(documents)}
    drawn = [
        {**one.metadata, "text": one.page_content}
        | ({} if one.metadata["rank"] in proposing else {"answers": [], "value": None})
        for one in documents
    ]
    return {
        "event": "evidence",
        "confidence": best.get("confidence"),
        "truncated": any(document.metadata.get("truncated") for document in documents),
        "answers": [{"key": key[:CHARACTERS], "label": _label(graph, key)} for key in answers[:CITATIONS]],
        "result": result_text(best, NAMES)[:CHARACTERS],
        "documents": [_document(document) for document in documents[:DOCUMENTS]],
        "left_out": max(len(documents) - DOCUMENTS, 0),
        "drawing": draw([Document("", metadata=one) for one in drawn]).page_data(),
    }


def _document(document: Document) -> dict[str, Any]:
    about = document.metadata
    told = {key: about.get(key) for key in ("rank", "score", "confidence", "truncated")}
    return {**told, "text": document.page_content[:CHARACTERS], "facts": len(about.get("triples") or [])}


def _answer(state: Mapping[str, Any]) -> Event:
    """Return the last event: the answer with its citations, or why there is none and what to do next."""
    documents, answer = state.get("documents") or [], state.get("answer") or ""
    asked_as, asked = state.get("asked_as"), state.get("question")
    why = "" if state.get("answers") else why_unsure(documents)
    event: Event = {
        "event": "answer",
        "asked_as": asked_as if asked_as != asked else None,
        "turn": state["turns"][-1] if asked_as and state["turns"] else None,
        "answer": _cut_answer(answer, state.get("cost")),
        "answers": [cut(name) for name in (state.get("answers") or [])[:CITATIONS]],
        "answer_count": len(state.get("answers") or []),
        "notes": [note for note in (tell_readings(documents), *_near_names(documents)) if note],
        "namesakes": _namesakes(documents),
        "explanation": (state.get("explanation") or "")[:CHARACTERS],
        "citations": [
            {"number": one["number"], "text": cut(one["text"], CHARACTERS)}
            for one in (state.get("citations") or [])[:CITATIONS]
        ],
        "supported": state.get("supported"),
        "rejected_citations": state.get("rejected_citations") or 0,
        "value": None if isinstance(state.get("value"), Mapping) else state.get("value"),
        "table": _table(state.get("value")),
        "confidence": documents[0].metadata.get("confidence") if documents else None,
        "refused": bool(why or not documents),
        "reason": None,
        "next_step": None,
        "stopped": state.get("stopped"),
        "cost": state.get("cost"),
    }
    if event["refused"]:
        said = answer if answer in _NEXT_STEPS else NOT_UNDERSTOOD if why else NO_ANSWER
        language = tell_language(asked or "") if said == NOT_UNDERSTOOD else ""
        step = f"{language} Ask in English." if language else _NEXT_STEPS[said]
        event |= {"reason": cut(why or _reason(state), 1_000), "next_step": step}
    return event


def _cut_answer(answer: str, cost: Mapping[str, Any] | None) -> str:
    """Return the words of a language model, or the first answers, each cut to what a line may hold."""
    if cost and cost["llm_calls"]:
        return answer[:CHARACTERS]
    return "; ".join(map(cut, answer.split("; ")[:CITATIONS]))


def _near_names(documents: Sequence[Document]) -> list[str]:
    """Return a note on each name of a pattern that is read as another one."""
    notes = []
    for document in documents:
        details, labels = document.metadata["details"], document.metadata["labels"]
        for text, key in details.get("entities") or () if "pattern" in details else ():
            if text.casefold() not in (key.casefold(), labels.get(key, text).casefold()):
                notes.append(f"{text!r:.200} is read as {labels[key]!r:.200}.")
    return list(dict.fromkeys(notes))


def _namesakes(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """Return the names that several entities have, each entity with the question entities that choose it."""
    details = [document.metadata.get("details") or {} for document in documents]
    known = dict.fromkeys(key for one in details for _, key in one.get("entities") or ())
    names = {found["name"]: found["entities"] for one in details for found in one.get("ambiguous") or ()}
    return [
        {
            "name": cut(name),
            "count": len(entities),
            "entities": [
                {
                    "label": cut(f"{one['label']} ({one['text']})"),
                    "seeds": [one["key"], *(key for key in known if key not in {other["key"] for other in entities})],
                }
                for one in entities[:NAMES]
            ],
        }
        for name, entities in names.items()
    ]


def _table(value: object) -> dict[str, Any] | None:
    """Return the first rows of a table, with the number of those that are left out."""
    if not isinstance(value, Mapping):
        return None
    rows = [[_cell(cell) for cell in row] for row in value["rows"][:ROWS]]
    columns = [one_line(str(title))[:CHARACTERS] for title in value["columns"]]
    return {"columns": columns, "rows": rows, "more": len(value["rows"]) - len(rows)}


def _cell(cell: object) -> list[str]:
    several = cell if isinstance(cell, list) else [cell]
    return [one_line(str(one))[:CHARACTERS] for one in several[:NAMES]] + _more(several)


def _reason(state: Mapping[str, Any]) -> str:
    """Return why there is no answer, without what a Python program would do about it."""
    reasons = state.get("refusals") or {}
    texts = dict.fromkeys(reason["text"] for reason in reasons.values())
    return (" ".join(texts) or state.get("reason") or state.get("stopped") or "")[:CHARACTERS]
