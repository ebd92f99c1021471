"""FactKG: claims about DBpedia, true or false, by five types of reasoning.

Kim, Park, Kwon, Jo, Thorne, Choi: FactKG: Fact Verification via Reasoning on Knowledge Graphs. ACL 2023.
arXiv:2305.06590. Data: https://github.com/jiho283/FactKG
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NotRequired

from pydantic import StrictBool, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.datasets.row_files import read_each_row
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.types import Triple
from kg_retrievers.graph.validation import reasons

#: The types of reasoning of table 1, by what `types` calls them; the first that a claim has is its kind.
REASONING = {
    "negation": "negation",
    "existence": "existence",
    "multi hop": "multi-hop",
    "multi claim": "conjunction",
    "num1": "one-hop",
}


def read_factkg(path: str | Path, split: str | None = None) -> list[Question]:
    """Read the claims of a split: a Question each, whose `value` is True or False and whose `kind` the reasoning.

    A row of JSON lines is `{"claim": text, "Label": [true], "Entity_set": [key, ...], "types": [text, ...]}` with the
    published names; "Evidence" and other keys are ignored. The set is published as pickles, which run code when they
    are loaded, and are not read; the guide on evaluation says how to turn one into JSON lines without running any.

    The graph of the claims is DBpedia. A row with `"graph": [[head, relation, tail], ...]` becomes a `GraphQuestion`
    over these triples instead. Literals in `Entity_set`, as `"1999-01-01"`, lose their quotation marks.

    Args:
        path: The file, or a folder with a file for each split, as `test.jsonl`; see `read_each_row`.
        split: Which split of a folder.

    Raises:
        InvalidArgumentError: If a folder has no such split.
        QuestionsLoadError: If the file cannot be read or is empty, or a row is malformed; names the line.
    """
    return [
        question if graph is None else _with_graph(question, graph, number)
        for number, (question, graph) in enumerate(read_each_row(path, split, _claim))
    ]


class Row(TypedDict):
    """What a row must hold."""

    claim: str
    Label: list[StrictBool]
    Entity_set: list[str]
    types: list[str]
    graph: NotRequired[list[Triple]]


_ROWS = TypeAdapter(Row)

#: The keys of a row that must be there.
_REQUIRED = ("claim", "Label", "Entity_set", "types")


def _claim(row: Any) -> tuple[Question, KnowledgeGraph | None]:
    if isinstance(row, dict) and (missing := [name for name in _REQUIRED if name not in row]):
        raise ValueError(f"wanted a claim of FactKG, but {', '.join(missing)} is missing.")
    try:
        checked = _ROWS.validate_python(row)
    except ValidationError as error:
        raise ValueError(reasons(error)) from error
    if len(checked["Label"]) != 1:
        raise ValueError(f"'Label' must hold one of true and false, but got {checked['Label']!r:.100}.")
    seeds = tuple(name for entity in checked["Entity_set"] if (name := entity.strip('"')))
    kind = next((kind for name, kind in REASONING.items() if name in checked["types"]), None)
    graph = None if "graph" not in checked else KnowledgeGraph.from_triples(checked["graph"])
    return Question(checked["claim"], seed_entities=seeds, kind=kind, value=checked["Label"][0]), graph


def _with_graph(claim: Question, graph: KnowledgeGraph, number: int) -> GraphQuestion:
    return GraphQuestion(
        claim.text, seed_entities=claim.seed_entities, kind=claim.kind, value=claim.value, graph=graph, id=str(number)
    )
