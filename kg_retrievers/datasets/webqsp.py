"""WebQSP, in the layout of RoG: questions, each with the part of Freebase around the entities that it names.

Yih, Richardson, Meek, Chang, Suh: The Value of Semantic Parse Labeling for Knowledge Base Question Answering. ACL 2016.
Layout: Luo, Li, Haffari, Pan: Reasoning on Graphs: Faithful and Interpretable Large Language Model Reasoning. ICLR
2024. arXiv:2310.01061. Data: https://huggingface.co/datasets/rmanluo/RoG-webqsp; RoG-cwq has the same layout.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from kg_retrievers.datasets.graph_question import GraphQuestion
from kg_retrievers.errors import QuestionsLoadError
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.types import Triple
from kg_retrievers.graph.validation import reasons


def read_webqsp(path: str | Path) -> Iterator[GraphQuestion]:
    """Yield the questions of a split, one after the other: its graphs fill gigabytes.

    A row is `{"id": text, "question": text, "answer": [text, ...], "q_entity": [key, ...], "graph": [[head, relation,
    tail], ...]}`; other keys are ignored. The published files are Parquet; with the package `datasets`, a split becomes
    JSON lines by `load_dataset("rmanluo/RoG-webqsp", split="test").to_json("test.jsonl")`.

    Triples with an empty name are left out. A graph may be empty, as that of one published question is.

    Differs from G-Retriever's code: names keep their capitals.

    Args:
        path: The file of JSON lines, in UTF-8.

    Raises:
        QuestionsLoadError: When that line is reached: if the file cannot be read or is empty, or a row is malformed;
            names the line.
    """
    line, empty = 0, True
    try:
        with open(path, "rb") as file:
            for row in file:
                line += 1
                if row.strip():
                    yield _question(json.loads(row.strip()))
                    empty = False
    except OSError as error:
        raise QuestionsLoadError(f"wanted a text file, but it cannot be read: {error.strerror}.", path) from error
    except json.JSONDecodeError as error:
        raise QuestionsLoadError(f"no valid JSON at column {error.colno}: {error.msg}.", path, line) from error
    except (ValueError, RecursionError) as error:
        raise QuestionsLoadError(str(error), path, line) from error
    if empty:
        raise QuestionsLoadError("wanted one row a line, but the file is empty.", path)


class Row(TypedDict):
    """What a row must hold."""

    id: str
    question: str
    answer: list[str]
    q_entity: list[str]
    graph: list[Triple]


_ROWS = TypeAdapter(Row)


def _question(row: Any) -> GraphQuestion:
    try:
        checked = _ROWS.validate_python(row)
    except ValidationError as error:
        raise ValueError(reasons(error)) from error
    return GraphQuestion(
        checked["question"],
        seed_entities=tuple(checked["q_entity"]),
        answers=tuple(dict.fromkeys(checked["answer"])),
        graph=KnowledgeGraph.from_triples(triple for triple in checked["graph"] if all(triple)),
        id=checked["id"],
    )
