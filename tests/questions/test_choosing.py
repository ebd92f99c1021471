"""What replies to a choice are read as."""

from __future__ import annotations

import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph
from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.questions import choosing
from kg_retrievers.questions.choosing import chosen_number, in_words, sample_answers


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ('{"choice": 2}', 2),
        ("<think>1 or 3?</think> Line 2.", 2),
        ("2", 2),
        ('{"choice": 4}', None),
        ('{"choice": -1}', None),
        ('{"choice": null, "count": 3}', None),
        ("None of the 3 lines", None),
        ("1 or 2", None),
        ("-1", None),
        ("", None),
    ],
)
def test_numbers(reply: str, number: int | None) -> None:
    assert chosen_number(reply, 3) == number


def test_lines_tell_entities_with_one_label_apart() -> None:
    facts = [("m1", "discovered_by", "Ann"), ("m2", "played_by", "Bob"), ("Her", "seen_by", "Ann")]
    graph = KnowledgeGraph.from_triples(facts, labels={"m1": "Mercury", "m2": "Mercury"})
    index = GraphIndex.build(graph, HashedEmbeddings())
    x = Unknown("x")
    patterns = [
        Pattern.of((Known("Mercury", entity="m2"), "played_by", x), target="x", source="zero-shot"),
        Pattern.of((Known("her", entity="Her"), "played_by", x), target="x", source="zero-shot"),
    ]
    assert in_words(index, patterns) == [
        "Mercury [m2] -> played_by -> ?x; wanted: ?x (answers: Bob)",
        "Her -> played_by -> ?x; wanted: ?x (no answers)",
    ]


def test_a_search_for_answers_that_is_cut_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    index = GraphIndex.build(KnowledgeGraph.from_triples([("Her", "seen by", "Ann")]), HashedEmbeddings())
    seen = Pattern.of(("Her", "seen by", Unknown("x")), target="x", directed=True, source="zero-shot")
    assert sample_answers(index, seen) == ["Ann"]
    monkeypatch.setattr(choosing, "MOST_SCANS", 0)
    assert sample_answers(index, seen) is None
