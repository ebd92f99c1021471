from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.algorithms import bindings
from kg_retrievers.core.documents import (
    agrees,
    flat_metadata,
    result_answers,
    result_text,
    result_value,
    tell_result,
    tell_results,
)
from kg_retrievers.graph.operations import Condition, Operation

FACTS = [
    ("Her", "directed_by", "Spike Jonze"),
    ("Adaptation", "directed_by", "Spike Jonze"),
    ("Dune", "directed_by", "Denis Villeneuve"),
    ("Her", "released", "2013"),
    ("Adaptation", "released", "2002"),
    ("Dune", "released", "2021"),
]
FILM, YEAR, WHO = Unknown("film"), Unknown("year"), Unknown("who")
RELEASED, DIRECTED = (FILM, "released", YEAR), (FILM, "directed_by", WHO)


def ask(*triples: Any, fields: dict[str, Any] | None = None, **pattern: Any) -> list[Document]:
    index = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
    retriever = SimGRAGRetriever.from_index(index, **(fields or {}))
    return retriever.invoke("?", pattern=Pattern.of(*triples, directed=True, **pattern))


COUNT: dict[str, Any] = {"target": "film", "operation": Operation("count")}
EXISTS: dict[str, Any] = {"operation": Operation("exists")}
FIRST: dict[str, Any] = {"target": "film", "operation": Operation("min", by="year")}
ORDER: dict[str, Any] = {"target": "film", "operation": Operation("order", by="year", descending=False)}
MOST: dict[str, Any] = {"target": "who", "operation": Operation("max", by="film", of="count")}


@pytest.mark.parametrize(
    ("triples", "pattern", "value", "answers", "line"),
    [
        ([(FILM, "directed_by", "Spike Jonze")], COUNT, 2, ["2"], "Result of count: 2"),
        ([("Her", "directed_by", WHO)], EXISTS, True, ["yes"], "Result: yes"),
        (
            [("Her", "released", YEAR)],
            {**EXISTS, "conditions": [Condition("year", ">", 2020)]},
            False,
            ["no"],
            "Result: no. Looked for and not found: Her -> released -> ?year; ?year > 2020",
        ),
        (
            [(FILM, "directed_by", "Denis Villeneuve"), RELEASED],
            {**COUNT, "conditions": [Condition("year", "between", (1990, 2000))]},
            0,
            ["0"],
            "Result of count: 0. Looked for and not found: ?film -> directed_by -> Denis Villeneuve; "
            "?film -> released -> ?year; ?year between 1990 and 2000",
        ),
        ([RELEASED], FIRST, 2002, ["Adaptation"], "Result of min: Adaptation (2002)"),
        (
            [RELEASED],
            ORDER,
            [2002, 2013, 2021],
            ["Adaptation", "Her", "Dune"],
            "Result of order: Adaptation (2002); Her (2013); Dune (2021)",
        ),
        ([DIRECTED], MOST, 2, ["Spike Jonze"], "Result of max: Spike Jonze (2)"),
    ],
    ids=["count", "yes", "no", "none", "min", "order", "most"],
)
def test_documents_say_what_an_operation_gives(
    triples: Any, pattern: Any, value: Any, answers: list[str], line: str
) -> None:
    (document,) = ask(*triples, **pattern)
    metadata = document.metadata
    assert (metadata["value"], type(metadata["value"])) == (value, type(value))
    assert result_value([document]) == value
    assert result_answers(metadata) == answers
    assert document.page_content.split("\n")[0] == tell_result(metadata) == tell_results([document] * 2) == line
    assert all(agrees(answer, metadata) for answer in answers)
    assert all(agrees(answer, metadata) for answer in result_text(metadata).split("; "))
    assert "value" in flat_metadata(document).metadata


def test_a_count_that_a_limit_cut_is_a_least_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "STARTS", 1)
    (document,) = ask(RELEASED, fields={"max_scans": 2}, **COUNT)
    assert document.metadata["truncated"]
    assert result_text(document.metadata) == f"at least {document.metadata['value']}"
    assert agrees(f"at least {document.metadata['value']}", document.metadata)
    assert not agrees(str(document.metadata["value"]), document.metadata)


@pytest.mark.parametrize(
    ("answer", "value", "wanted"),
    [
        ("6", 6, True),
        ("1,250", 1250, True),
        ("7", 6, False),
        ("at least 6", 6, False),
        ("six", 6, True),
        ("seven", 6, False),
        ("yes, he did", True, True),
        ("Yes, he did", False, False),
        ("no: nobody", False, True),
        ("2 January 2013", "2013-01-02", True),
        ("January 2013", "2013-01-02", False),
        ("2,013", 2013, True),
        ("Yes.", True, True),
        ("no", True, False),
        ("No", False, True),
        ("1", True, False),
        ("March 2011", "March 2011", True),
    ],
)
def test_answers_agree_with_the_value(answer: str, value: Any, wanted: bool) -> None:
    assert agrees(answer, {"answers": [], "value": value}) is wanted


def test_lines_are_bounded_and_say_of_how_many() -> None:
    keys = [f"e{number}" for number in range(200)]
    labels = dict.fromkeys(keys, "Dune [1]\n")
    details = {"shown": 20, "of": 200, "without_value": 3, "pattern": {"operation": {"kind": "order"}}}
    metadata = {
        "answers": keys,
        "labels": labels,
        "value": [1] * 200,
        "triples": [["e0", "r", "1"]],
        "details": details,
    }
    line = tell_result(metadata)
    assert "\n" not in line
    assert "[1]" not in line
    assert line.endswith("; 100 more (the facts are of 20 of 200) (3 left out, without a value to compare)")
