"""Words for other things than the entity that a question names are not left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever
from kg_retrievers.errors import LowConfidenceError

FACTS = [
    ("Orrin Vale", "founded", "1702"), ("Orrin Vale", "closed", "1934"), ("Tessaly", "founded", "1821"),
    ("Brig Loom", "woven by", "Orrin Vale"), ("Brig Loom", "woven on", "1731-05-04"), ("Brig Loom", "hangs in", "Hall"),
    ("Harp", "woven by", "Tessaly"), ("Harp", "woven on", "1896-11-20"), ("Harp", "hangs in", "Keep"),
    ("Lark", "woven by", "Tessaly"), ("Lark", "woven on", "1954-10-30"), ("Lark", "hangs in", "Keep"),
    ("Ada Crown", "apprenticed under", "Bo Finch"), ("Cy Hart", "apprenticed under", "Ada Crown"),
]  # fmt: skip
TYPES = {
    "workshop": ["Orrin Vale", "Tessaly"], "tapestry": ["Brig Loom", "Harp", "Lark"], "castle": ["Hall", "Keep"],
    "person": ["Ada Crown", "Bo Finch", "Cy Hart"],
}  # fmt: skip


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    types = {key: [kind] for kind, keys in TYPES.items() for key in keys}
    return SimGRAGRetriever.from_index(GraphIndex.build(KnowledgeGraph.from_triples(FACTS, types=types)))


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("Did Orrin Vale weave a tapestry after 1900?", False),  # it closed in 1934
        ("Did Tessaly weave a tapestry before 1850?", False),  # it was founded in 1821
        ("Has Tessaly woven a tapestry since 1950?", True),
        ("Does any tapestry woven after 1950 hang in the Keep?", True),
        ("Was Tessaly founded before 1850?", True),
        ("Did Orrin Vale close after 1900?", True),
    ],
)
def test_a_date_is_of_the_things_that_are_named(retriever: SimGRAGRetriever, question: str, value: bool) -> None:
    assert retriever.invoke(question, on_refusal="raise")[0].metadata["value"] is value


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Who was Ada Crown apprenticed under?", ["Bo Finch"]),
        ("Under whom was Ada Crown an apprentice?", ["Bo Finch"]),
        ("Who was apprenticed under Ada Crown?", ["Cy Hart"]),
        ("Which castles do not have a tapestry woven by Tessaly?", ["Hall"]),
        ("Which tapestries were not woven by the workshop Tessaly?", ["Brig Loom"]),
    ],
)
def test_what_the_graph_says_is_answered(retriever: SimGRAGRetriever, question: str, answers: list[str]) -> None:
    assert retriever.invoke(question, on_refusal="raise")[0].metadata["answers"] == answers


@pytest.mark.parametrize(
    "question",
    [
        "Did Tessaly win a medal after 1850?",
        "Did Tessaly buy a tapestry after 1950?",  # it wove one
        "Was Ada Crown born in a castle after 1900?",
        "Who was Bo Finch apprenticed under?",  # Ada, under him, is no answer
        "Under whom was Bo Finch an apprentice?",
        "Which castles have no tapestry by Tessaly?",  # no castle was woven
    ],
)
def test_another_thing_is_no_answer(retriever: SimGRAGRetriever, question: str) -> None:
    with pytest.raises(LowConfidenceError):
        retriever.invoke(question, on_refusal="raise")


def test_a_relation_of_the_name_comes_before_an_attribute(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id:ID,name,:LABEL\n1,Cy Hart,Person\n2,Ada Crown,Person\n3,Tessaly,Workshop\n")
    rows = ":START_ID,:END_ID,:TYPE,position\n1,2,APPRENTICED_UNDER,\n1,3,WORKS_AT,apprentice\n2,3,WORKS_AT,master\n"
    (tmp_path / "facts.csv").write_text(rows)
    retriever = SimGRAGRetriever.from_file(tmp_path)
    [document] = retriever.invoke("Who did Cy Hart apprentice under?", on_refusal="raise")
    assert document.metadata["answers"] == ["2"]
