"""What notebooks show of Documents: these are LangChain's, so that they cannot show themselves."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document

from kg_retrievers.drawing.drawing import draw
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.shown_table import html_table


def documents_html(what: object) -> str | None:
    """Return Documents of retrievers as the picture of their facts and a table of these; None of anything else.

    Args:
        what: A Document, or a list of Documents.
    """
    documents: list[Any] = what if isinstance(what, list) else [what]
    if not documents or not all(isinstance(one, Document) and "triples" in one.metadata for one in documents):
        return None
    try:
        drawing = draw(documents)
    except InvalidArgumentError:  # Documents of somebody else
        return None
    data = drawing.page_data()
    nodes = {node["id"]: node["name"] for node in data["nodes"]}
    rows = [
        (str(one["citation"]), nodes[one["source"]], one["name"], nodes[one["target"]], ", ".join(one["sources"]))
        for one in data["edges"]
    ]
    caption = _caption(data)
    return f"{drawing._repr_html_()}\n{html_table(caption, ('#', 'head', 'relation', 'tail', 'sources'), rows)}"


def _caption(data: dict[str, Any]) -> str:
    """Return what was found, by what, and how sure that is."""
    first = data["documents"][0]
    count = len(data["documents"])
    parts = [f"{count} {'Document' if count == 1 else 'Documents'}"]
    if data["answers"]:
        parts.append(f"answers: {', '.join(answer['text'] for answer in data['answers'][:5])}")
    parts += [f"{name}: {first[name]:.3f}" for name in ("score", "confidence") if first[name] is not None]
    parts += [first["retriever"]] if first["retriever"] else []
    return " · ".join(parts)
