"""What a caller hands in, in place of what a stage would write: rows that are wrong are refused, and named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from built_methods import built

from kg_retrievers import GraphIndex, HashedEmbeddings
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods.registry import find_method
from kg_retrievers.testing import tiny_graph

INDEX = GraphIndex.build(tiny_graph(), HashedEmbeddings())
HER = '"Her", "directed_by", "Spike Jonze"'

#: A method and its input, where the rows stand in it, and the names of a row: some that the graph has, some not.
RANKED = [
    ("g-retriever", "ranked_entities", "{rows}", '"Her"', '"Xyzzyplugh"'),
    ("g-retriever", "ranked_relations", "{rows}", '"directed_by"', '"Xyzzyplugh"'),
]
SCORED = [
    ("subgraph-rag", "scored_triples", '{"triples": {rows}, "truncated": false}', HER, '"Spike Jonze", "by", "Her"'),
    ("gnn-rag", "candidates", '{"entities": {rows}, "truncated": false}', '"Her"', '"Xyzzyplugh"'),
]
each_input = pytest.mark.parametrize(("method", "name", "form", "known", "unknown"), RANKED + SCORED)
each_scored = pytest.mark.parametrize(("method", "name", "form", "known", "unknown"), SCORED)


async def check_refused(method: str, name: str, given: str) -> None:
    retriever: BaseKGRetriever = built(find_method(method), INDEX)
    words = rf"^{type(retriever).__name__}: {name}\S* (must|is|: Extra)"
    asked = {"seed_entities": ["Her"], "ranked_entities": [["Her", 1]], "ranked_relations": [["directed_by", 1]]}
    supplied: Any = (asked if method == "g-retriever" else {}) | {name: json.loads(given)}
    with pytest.raises(InvalidArgumentError, match=words):
        retriever.invoke("Who directed Her?", **supplied)
    with pytest.raises(InvalidArgumentError, match=words):
        await retriever.ainvoke("Who directed Her?", **supplied)


@each_input
@pytest.mark.parametrize(
    "rows",
    [
        '"Her"',
        "5",
        '{"Her": 1.0}',
        "[null]",
        '["Her"]',
        "[[KNOWN]]",
        "[[KNOWN, 1.0, 2.0]]",
        '[[KNOWN, "1.0"]]',
        "[[KNOWN, null]]",
        "[[KNOWN, true]]",
        "[[1.0, KNOWN]]",
        "[[[KNOWN], 1.0]]",
        "[[UNKNOWN, 1.0]]",
    ],
)
async def test_rows_are_checked(method: str, name: str, form: str, known: str, unknown: str, rows: str) -> None:
    await check_refused(method, name, form.replace("{rows}", rows.replace("UNKNOWN", unknown).replace("KNOWN", known)))


@each_scored
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{rows}", "[[KNOWN, NaN]]"),
        ("{rows}", f"[[KNOWN, 1{'0' * 400}]]"),
        ("{rows}", "[[KNOWN, 0.5], [KNOWN, 0.25]]"),
        (', "truncated": false', ""),
        ("false", '"no"'),
        ("false", 'false, "more": 1'),
        ('"truncated": false', '"truncated": null'),
    ],
)
async def test_what_is_scored_is_checked(
    method: str, name: str, form: str, known: str, unknown: str, old: str, new: str
) -> None:
    assert old in form
    await check_refused(method, name, form.replace(old, new).replace("{rows}", "[]").replace("KNOWN", known))


@pytest.mark.parametrize("share", ["0", "1.5"])
async def test_a_probability_is_a_share(share: str) -> None:
    await check_refused("gnn-rag", "candidates", f'{{"entities": [["Her", {share}]], "truncated": false}}')
