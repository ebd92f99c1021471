"""The parts of an explanation in plain lines."""

from kg_retrievers.core.obstacles import Lift
from kg_retrievers.explanation.named import NamedRelation
from kg_retrievers.explanation.readings import weighed_lines
from kg_retrievers.explanation.wording import relation_line, shell_lines

PATTERN = {"triples": [["Kingsway", "served_by", {"unknown": "x"}]], "target": "x", "unplaced": ["fare"]}


def test_a_relation_that_a_pattern_names_is_not_compared_with_itself():
    assert (
        relation_line(NamedRelation("next_stop", "next_stop", 1.0, "pattern", 1)) == "'next stop', as the pattern says"
    )
    other = NamedRelation("next_stop", "stops at", 0.5, "pattern", 1)
    assert relation_line(other) == "'stops at' of the pattern stands for 'next stop' (cosine 0.50)"


def test_words_that_no_relation_fits_are_told():
    lines = weighed_lines({"details": {"pattern": PATTERN}})
    assert lines == ["No relation fits 'fare': left out of the reading."]


def test_a_pattern_is_told_by_its_lines():
    lines = shell_lines(Lift(inputs={"pattern": PATTERN, "k": 2}))
    assert lines == ["--k 2", "the pattern: find ?x; Kingsway -> served_by -> ?x"]
