"""Questions about attributes of facts, in memory and through a database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import RefusalError
from kg_retrievers.graph import FactAttribute, Pattern, Unknown, pattern_lines
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.methods.sg_rag.retriever import CypherRetriever

FACTS: list[Any] = [
    ("Keanu Reeves", "acted in", "The Matrix", {"role": "Neo"}),
    ("Carrie-Anne Moss", "acted in", "The Matrix", {"role": "Trinity"}),
    ("Keanu Reeves", "acted in", "Speed", {"role": "Jack Traven"}),
    ("Hugo Weaving", "acted in", "Cloud Atlas", {"role": ["Boardman", "Nurse"]}),
    ("Lana Wachowski", "directed", "The Matrix"),
    ("The Matrix", "release year", "1999"),
    ("The Matrix", "won", "Best Editing Oscar", {"year": 2000}),
    ("Ann Lee", "works for", "Acme", {"since": 2010, "until": 2013, "position": "engineer"}),
    ("Ann Lee", "works for", "Acme", {"since": 2016, "position": "director"}),
    ("Ann Lee", "works for", "Beta", {"since": 2013, "position": "director", "salary": 90000}),
    ("Bob Ray", "works for", "Acme", {"since": 2015, "position": "director"}),
    ("Cy Dole", "works for", "Acme", {"since": 2008, "until": 2012, "position": "director"}),
    ("Ann Lee", "born in", "Oslo"),
]

#: A question, the answers, and the value.
ANSWERED: list[tuple[str, list[str], Any]] = [
    ("What role did Keanu Reeves play in The Matrix?", [], "Neo"),
    ("what part did keanu reeves have in speed", [], "Jack Traven"),
    ("What roles did Keanu Reeves play?", [], ["Jack Traven", "Neo"]),
    ("How many roles did Hugo Weaving play in Cloud Atlas?", [], 2),
    ("As what does Ann Lee work for Beta?", [], "director"),
    ("Who played Neo in The Matrix?", ["Keanu Reeves"], None),
    ("Who played Trinity?", ["Carrie-Anne Moss"], None),
    ("Which film has Keanu Reeves as Jack Traven?", ["Speed"], None),
    ("Did Keanu Reeves play Neo in The Matrix?", [], True),
    ("Did Keanu Reeves play Trinity in The Matrix?", [], False),
    ("Since when does Bob Ray work for Acme?", [], 2015),
    ("Until when did Cy Dole work for Acme?", [], 2012),
    ("When did Cy Dole work for Acme?", [], {"columns": ["since", "until"], "rows": [[2008, 2012]]}),
    ("when did ann lee leave acme", [], 2013),
    ("Who worked for Acme before 2013?", ["Ann Lee", "Cy Dole"], None),
    ("Who was the director of Acme in 2010?", ["Cy Dole"], None),
    ("Who was the director of Acme in 2017?", ["Ann Lee", "Bob Ray"], None),
    ("Which position did Ann Lee have at Acme between 2010 and 2012?", [], "engineer"),
    ("How many people joined Acme after 2010?", [], 2),
    ("Who joined Acme first?", ["Cy Dole"], 2008),
    ("Who won something before 2001?", ["The Matrix"], None),
    ("Did Cy Dole leave Acme?", [], True),
    ("Did Bob Ray leave Acme?", [], False),
    ("Who left Acme?", ["Ann Lee", "Cy Dole"], None),
    ("For whom did Bob Ray work?", ["Acme"], None),
    ("From when to when did Cy Dole work for Acme?", [], {"columns": ["since", "until"], "rows": [[2008, 2012]]}),
    (
        "What was the position and the salary of Ann Lee at Beta?",
        [],
        {"columns": ["position", "salary"], "rows": [["director", 90000]]},
    ),
    ("How much does Ann Lee earn at Beta?", [], 90000),
    ("When did The Matrix win the Best Editing Oscar?", [], 2000),
    ("When was The Matrix released?", ["1999"], None),  # not a year of an award
    ("Who works for Acme?", ["Ann Lee", "Bob Ray", "Cy Dole"], None),
]


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return GraphIndex.build(KnowledgeGraph.from_triples(FACTS), default_embeddings())


@pytest.fixture(scope="module", params=["matcher", "database"])
def retriever(request: pytest.FixtureRequest, index: GraphIndex) -> Iterator[BaseKGRetriever]:
    if request.param == "matcher":
        yield SimGRAGRetriever.from_index(index)
    else:
        pytest.importorskip("ladybug")
        yield CypherRetriever.from_index(index)


@pytest.mark.parametrize(("question", "answers", "value"), ANSWERED)
def test_a_question_is_answered(retriever: BaseKGRetriever, question: str, answers: list[str], value: Any) -> None:
    metadata = retriever.invoke(question, on_refusal="raise")[0].metadata
    assert (sorted(metadata["answers"]), metadata["value"]) == (answers, value)
    triples = [tuple(fact[:3]) for fact in FACTS]
    assert {tuple(triple) for triple in metadata["triples"]} <= {*triples}
    if value is not False:
        assert metadata["triples"]


@pytest.mark.parametrize(
    "question",
    [
        "What role did Lana Wachowski play in The Matrix?",  # the fact has none
        "What salary does Bob Ray get at Acme?",
        "Why did Ann Lee leave Acme?",
        "Who played Neo in Speed?",
        "Who is not a director at Acme?",
        "Does Cy Dole still work for Acme?",
        "When was the director of Beta born?",
        "Who worked for Acme in 2010 or 2016?",
        "What is the average salary at Beta?",
    ],
)
def test_what_no_fact_says_is_refused(retriever: BaseKGRetriever, question: str) -> None:
    with pytest.raises(RefusalError):
        retriever.invoke(question, on_refusal="raise")


def test_an_attribute_that_no_fact_has_names_the_nearest(retriever: BaseKGRetriever, index: GraphIndex) -> None:
    pattern = Pattern.of(
        ("Ann Lee", "works for", "Acme"), attributes=[FactAttribute(0, "sinze", "when")], target="when"
    )
    with pytest.raises(RefusalError, match="'sinze', which no fact has; did you mean 'since'"):
        SimGRAGRetriever.from_index(index).invoke("?", pattern=pattern, on_refusal="raise")


def test_a_pattern_that_a_person_writes(index: GraphIndex) -> None:
    person = Unknown("person")
    parts: dict[str, Any] = {
        "attributes": [FactAttribute(0, "since", "begin"), FactAttribute(0, "until", "end", optional=True)],
        "conditions": [Condition("begin", "<=", "2011"), Condition("end", ">=", "2011")],
        "target": "person",
    }
    pattern = Pattern.of((person, "works for", "Acme"), operation=Operation("max", by="begin"), **parts)
    assert Pattern.from_dict(pattern.to_dict()) == pattern
    metadata = SimGRAGRetriever.from_index(index).invoke("?", pattern=pattern)[0].metadata
    assert (metadata["answers"], metadata["value"]) == (["Ann Lee"], 2010)
    assert "works for (since: ?begin; until if any: ?end)" in str(pattern_lines(pattern.to_dict()))
