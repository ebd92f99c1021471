"""WebQSP, in the layout of RoG: questions, each with the part of Freebase around the entities that it names.

Yih, Richardson, Meek, Chang, Suh: The Value of Semantic Parse Labeling for Knowledge Base Question Answering. ACL 2016.
Layout: Luo, Li, Haffari, Pan: Reasoning on Graphs: Faithful and Interpretable Large Language Model Reasoning. ICLR
2024. arXiv:2310.01061. Data: https://huggingface.co/datasets/rmanluo/RoG-webqsp. RoG-cwq has the same layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from kg_retrievers.datasets.row_files import read_each_row
from kg_retrievers.datasets.types import GraphQuestion
from kg_retrievers.errors import named_arguments
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.validation import reasons


@named_arguments
def read_webqsp(path: str | Path, split: str | None = None) -> Iterator[GraphQuestion]:
    """Yield the questions of a split, one after the other: its graphs fill gigabytes. RoG's CWQ is read alike.

    A row is `{"id": text, "question": text, "answer": [text, ...], "q_entity": [key, ...], "graph": [[head, relation,
    tail], ...]}`. Other keys are ignored. Rows stand in JSON lines, in Parquet as published, or in a folder of Arrow
    files that the package `datasets` saved. The latter two need the extra `arrow`. See `read_each_row`.

    Triples with an empty name are left out. A graph may be empty, as the graph of one published question is.

    Differs from G-Retriever's code: names keep their capitals.

    Args:
        path: The file, or the folder.
        split: Which split of a folder: "train", "validation" or "test".

    Raises:
        InvalidArgumentError: If a folder has no such split.
        QuestionsLoadError: When that row is reached: if the file cannot be read or is empty, or a row is malformed;
            names the line.
        MissingExtraError: If pyarrow is needed and not installed.
    """
    yield from read_each_row(path, split, _question)


class Row(TypedDict):
    """The required contents of a row."""

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
