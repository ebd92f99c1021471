"""Words that limit what is asked for are not left out of a sure answer."""

from __future__ import annotations

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever
from kg_retrievers.errors import LowConfidenceError

FACTS = [
    ("Kestrel Bridge", "height", "48"), ("Kestrel Bridge", "opened", "1932"), ("Kestrel Bridge", "crosses", "Ebbe"),
    ("Old Mill", "height", "6"), ("Old Mill", "opened", "1688"), ("Old Mill", "crosses", "Tarn"),
    ("Quinlan Bridge", "height", "72"), ("Quinlan Bridge", "opened", "1978"), ("Quinlan Bridge", "crosses", "Ebbe"),
    ("Ebbe", "country", "Japan"), ("Tarn", "country", "Norway"), ("Milo", "designed", "Quinlan Bridge"),
]  # fmt: skip
TYPES = {key: ["bridge"] for key in ("Kestrel Bridge", "Old Mill", "Quinlan Bridge")} | {
    "Ebbe": ["river"], "Tarn": ["river"], "Milo": ["engineer"],
}  # fmt: skip


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(GraphIndex.build(KnowledgeGraph.from_triples(FACTS, types=TYPES)))


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("What is the tallest bridge in Berlin?", "berlin"),
        ("tallest bridge in berlin", "berlin"),
        ("What is the tallest wooden bridge?", "wooden"),
        ("Which suspension bridge is the tallest?", "suspension"),
        ("Which bridges opened after 1900 in Berlin?", "berlin"),
        ("Which river has the most bridges in Berlin?", "berlin"),
        ("Which is the tallest bridge with an airport?", "airport"),
        ("Which wooden bridges cross the Ebbe?", "wooden"),
    ],
)
def test_a_limit_that_the_graph_lacks_is_no_sure_answer(retriever: SimGRAGRetriever, question: str, word: str) -> None:
    with pytest.raises(LowConfidenceError) as refusal:
        retriever.invoke(question, on_refusal="raise")
    assert f"'{word}'" in str(refusal.value).casefold()


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("What is the tallest bridge?", ["Quinlan Bridge"]),
        ("Which two bridges are the tallest?", ["Quinlan Bridge", "Kestrel Bridge"]),
        ("Which bridges opened after May 1900?", ["Kestrel Bridge", "Quinlan Bridge"]),
        ("Which bridges cross the Ebbe?", ["Kestrel Bridge", "Quinlan Bridge"]),
        ("Top 2 bridges by height", ["Quinlan Bridge", "Kestrel Bridge"]),
        ("Which Japanese river has the most bridges?", ["Ebbe"]),
    ],
)
def test_what_the_graph_knows_is_answered(retriever: SimGRAGRetriever, question: str, answers: list[str]) -> None:
    assert sorted(retriever.invoke(question)[0].metadata["answers"]) == sorted(answers)
