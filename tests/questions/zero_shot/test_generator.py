"""What the zero-shot generator makes of questions about graphs that it never saw."""

from __future__ import annotations

import random
from pathlib import Path
from typing import ClassVar

import pytest

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Question,
    QuestionReader,
    SimGRAGRetriever,
    default_embeddings,
)
from kg_retrievers.errors import LowConfidenceError
from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator
from kg_retrievers.testing import tiny_graph

FACTS = [
    ("Ann Lee", "reports_to", "Bob Hill"),
    ("Bob Hill", "reports_to", "Cleo Marsh"),
    ("Ann Lee", "works_in", "Radiology"),
    ("Bob Hill", "works_in", "Radiology"),
    ("Dan Wood", "works_in", "Surgery"),
    ("Ann Lee", "born_in", "Leeds"),
    ("Ann Lee", "date_of_birth", "1987-03-02"),
    ("Leeds", "located_in", "England"),
    ("Radiology", "part_of", "Northgate Hospital"),
    ("Northgate Hospital", "founded_in", "1921"),
    ("Ann Lee", "speaks", "French"),
    ("Dan Wood", "speaks", "French"),
    ("Cleo Marsh", "speaks", "Dutch"),
    ("Bob Hill", "speaks", "Dutch"),
]


def index_of(facts: list[tuple[str, str, str]]) -> GraphIndex:
    """Index facts with the default embeddings."""
    return GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    """A hospital."""
    return index_of(FACTS)


@pytest.fixture(scope="module")
def films() -> GraphIndex:
    """Films with names in several scripts, and two of one name."""
    return GraphIndex.build(tiny_graph(), default_embeddings())


def facts_of(pattern: Pattern) -> list[tuple[str, ...]]:
    """Return the facts of a pattern, with a number for each unknown."""
    terms = [(triple.head, triple.relation, triple.tail) for triple in pattern.triples]
    return [tuple(term.name[-1] if isinstance(term, Unknown) else term.text for term in triple) for triple in terms]


def answers(index: GraphIndex, question: str) -> list[str]:
    """Return the answers of the default retriever, whatever its confidence."""
    documents = SimGRAGRetriever.from_index(index, min_confidence=0).invoke(question)
    return sorted(documents[0].metadata["answers"])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who does Bob Hill report to?", ["Cleo Marsh"]),
        ("Who reports to Bob Hill?", ["Ann Lee"]),
        ("When was Ann Lee born?", ["1987-03-02"]),
        ("Where was Ann Lee born?", ["Leeds"]),
        ("Which languages does Cleo Marsh speak?", ["Dutch"]),
        ("who works in surgery", ["Dan Wood"]),
        ("Who works in Radiology and speaks Dutch?", ["Bob Hill"]),
        ("When was Northgate Hospital established?", ["1921"]),
    ],
)
def test_answers_what_is_asked(index: GraphIndex, question: str, expected: list[str]) -> None:
    assert answers(index, question) == expected


@pytest.mark.parametrize(
    ("relation", "question", "expected"),
    [
        ("manages", "Who manages Ben?", ["Ada"]),
        ("manages", "Who does Ben manage?", ["Cy", "Dot"]),
        ("manages", "Who is the manager of Ben?", ["Ada"]),
        ("managed_by", "Who manages Ben?", ["Cy", "Dot"]),
        ("managed_by", "Who does Ben manage?", ["Ada"]),
        ("teaches", "Who teaches Ben?", ["Ada"]),
        ("teaches", "Who does Ben teach?", ["Cy", "Dot"]),
        ("reports_to", "Who reports to Ben?", ["Ada"]),
        ("reports_to", "Whom does Ben report to?", ["Cy", "Dot"]),
    ],
)
def test_direction_is_told_where_entities_are_of_one_kind(relation: str, question: str, expected: list[str]) -> None:
    chain = index_of([("Ada", relation, "Ben"), ("Ben", relation, "Cy"), ("Ben", relation, "Dot")])
    assert answers(chain, question) == expected


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("Who directed Amélie?", [("Amélie", "directed_by", "1")]),
        ("Who starred in Amélie?", [("Amélie", "starring", "1")]),
        ("What genre is Spirited Away?", [("Spirited Away", "has_genre", "1")]),
        ("Which films were directed by Spike Jonze?", [("1", "directed_by", "Spike Jonze")]),
        (
            "Which films were written by the writer of Adaptation?",
            [("Adaptation", "written_by", "1"), ("2", "written_by", "1")],
        ),
        (
            "Who directed the films written by Charlie Kaufman?",
            [("1", "written_by", "Charlie Kaufman"), ("1", "directed_by", "2")],
        ),
        (
            "Which films directed by Spike Jonze were written by Charlie Kaufman?",
            [("1", "directed_by", "Spike Jonze"), ("1", "written_by", "Charlie Kaufman")],
        ),
        (
            "Who is starring in both Amélie and Alien Resurrection?",
            [("Alien Resurrection", "starring", "1"), ("Amélie", "starring", "1")],
        ),
        ("Synecdoche, New York contains what?", [("Synecdoche, New York", "contains", "1")]),
    ],
)
def test_joins_what_is_named_to_what_is_asked_for(
    films: GraphIndex, question: str, facts: list[tuple[str, str, str]]
) -> None:
    """Numbers stand for unknowns, of which the last is asked for."""
    pattern = ZeroShotPatternGenerator(films).invoke({"question": question})
    assert sorted(facts_of(pattern)) == sorted(facts)
    assert pattern.target == f"entity {max(term for fact in facts for term in fact if term.isdigit())}"


def test_names_that_mean_one_entity_are_pinned(films: GraphIndex) -> None:
    pattern = ZeroShotPatternGenerator(films).invoke({"question": "Who directed Spirited Away?"})
    assert pattern.triples[0].head == Known("Spirited Away", entity="Q155653")


def test_seeds_of_one_label_are_alternatives(films: GraphIndex) -> None:
    """Not two things to be joined, so neither is pinned."""
    value = {"question": "Who directed Dune?", "seed_entities": ["Dune (1984)", "Dune (2021)"]}
    expected = Pattern.of(("Dune", "directed_by", Unknown("entity 1")), target="entity 1", directed=True)
    assert ZeroShotPatternGenerator(films).invoke(value) == expected


@pytest.mark.parametrize("question", ["Who directed it?", "Who directed this film?", "Who directed?"])
def test_seed_that_the_question_does_not_name_stands_for_its_pronoun(films: GraphIndex, question: str) -> None:
    (document,) = SimGRAGRetriever.from_index(films).invoke(question, seed_entities=["Her"])
    assert document.metadata["answers"] == ["Spike Jonze"]


@pytest.mark.parametrize(
    ("question", "relation"), [("When was Her shown?", "opening_date"), ("Where was Her shown?", "place_of_filming")]
)
def test_question_words_ask_for_something(question: str, relation: str) -> None:
    shown = index_of([("Her", name, "x") for name in ("directed_by", "opening_date", "place_of_filming", "starring")])
    pattern = ZeroShotPatternGenerator(shown).invoke({"question": question})
    assert facts_of(pattern) == [("Her", relation, "1")]


@pytest.mark.parametrize("text", ["Her"])
def test_text_that_asks_for_no_relation_is_refused(films: GraphIndex, text: str) -> None:
    with pytest.raises(LowConfidenceError):
        SimGRAGRetriever.from_index(films, on_refusal="raise").invoke(text)


@pytest.mark.parametrize(
    ("present", "absent"),
    [
        ("Who does Ann Lee report to?", "Who reports to Ann Lee?"),
        ("Who reports to Cleo Marsh?", "Who does Cleo Marsh report to?"),
    ],
)
def test_direction_that_the_entity_lacks_is_refused(index: GraphIndex, present: str, absent: str) -> None:
    retriever = SimGRAGRetriever.from_index(index, on_refusal="raise")
    assert retriever.invoke(present)
    with pytest.raises(LowConfidenceError):
        retriever.invoke(absent)


@pytest.mark.parametrize("question", ["Who is married to Ann?", "Who is Ann married to?"])
def test_mutual_relations_hold_either_way_round(question: str) -> None:
    couples = index_of([("Ann", "married_to", "Ben"), ("Ben", "works_in", "Rome"), ("Ann", "works_in", "Rome")])
    (document,) = SimGRAGRetriever.from_index(couples).invoke(question)
    assert document.metadata["answers"] == ["Ben"]


def test_order_of_facts_decides_nothing(index: GraphIndex) -> None:
    shuffled = FACTS.copy()
    random.Random(1).shuffle(shuffled)
    other = index_of(shuffled)
    for question in ("Where was Ann Lee born?", "Who reports to Bob Hill?", "What is Radiology part of?"):
        assert answers(other, question) == answers(index, question)


def test_pattern_says_how_sure_it_is(index: GraphIndex) -> None:
    pattern = ZeroShotPatternGenerator(index).invoke({"question": "Who reports to Bob Hill?"})
    assert pattern.source == "zero-shot"
    assert pattern.directed is True
    assert pattern.confidence is not None
    assert 0 <= pattern.confidence <= 1
    assert pattern.nearest[0] == "reports_to"
    assert pattern.unplaced == ()


def test_question_beyond_the_graph_is_refused(index: GraphIndex) -> None:
    retriever = SimGRAGRetriever.from_index(index, on_refusal="raise")
    with pytest.raises(LowConfidenceError) as refusal:
        retriever.invoke("What is the shoe size of Bob Hill?")
    assert "shoe" in refusal.value.unplaced
    assert refusal.value.nearest


def test_claim_is_the_fact_that_joins_its_entities(index: GraphIndex) -> None:
    pattern = ZeroShotPatternGenerator(index).invoke({"question": "Ann Lee is supervised by Bob Hill."})
    ann, bob = (Known(name, entity=name) for name in ("Ann Lee", "Bob Hill"))
    assert pattern == Pattern.of((ann, "reports_to", bob), directed=True)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Spike Jonze directed Her.", ("Her", "directed_by", "Spike Jonze")),
        ("Was Her written by Spike Jonze?", ("Her", "written_by", "Spike Jonze")),
    ],
)
def test_claims_choose_among_the_facts_by_their_words(films: GraphIndex, text: str, fact: tuple[str, str, str]) -> None:
    assert facts_of(ZeroShotPatternGenerator(films).invoke({"question": text})) == [fact]


def test_claim_without_a_fact_asks_for_what_its_entities_share(films: GraphIndex) -> None:
    pattern = ZeroShotPatternGenerator(films).invoke({"question": "Amélie and Alien Resurrection share a director"})
    assert {relation for _, relation, _ in facts_of(pattern)} == {"directed_by"}
    assert pattern.target == "entity 1"


def test_same_question_same_pattern(index: GraphIndex) -> None:
    question = {"question": "Where was the subordinate of Bob Hill born?"}
    first = ZeroShotPatternGenerator(index).invoke(question)
    assert ZeroShotPatternGenerator(index_of(FACTS)).invoke(question).to_dict() == first.to_dict()


@pytest.mark.parametrize(
    "question",
    [
        *("Who reports to Bob Hill?", "Who works in Radiology and speaks Dutch?", "What is the shoe size of Bob Hill?"),
        ("Where was Ann Lee born?"),
        ("Who is Bob Hill and who reports to Bob Hill?"),
    ],
)
def test_readings_differ_and_the_likeliest_comes_first(index: GraphIndex, question: str) -> None:
    reading = ZeroShotPatternGenerator(index).read({"question": question})
    patterns = [reading.pattern, *reading.alternatives]
    confidences = [pattern.confidence or 0 for pattern in patterns]
    assert all(0 <= confidence <= 1 for confidence in confidences)
    assert confidences == sorted(confidences, reverse=True)
    assert len({pattern.triples for pattern in patterns}) == len(patterns) > 1


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("Does Ann Lee report to Bob Hill?", True),
        ("Does Bob Hill report to Ann Lee?", False),
        ("Is Bob Hill the boss of Ann Lee?", True),
        ("Is Ann Lee the boss of Bob Hill?", False),
        ("Is Ann Lee's boss Bob Hill?", True),
        ("Is Cleo Marsh a direct report of Bob Hill?", False),
    ],
)
def test_claims_are_tested_in_the_direction_of_their_words(index: GraphIndex, claim: str, holds: bool) -> None:
    (document,) = SimGRAGRetriever.from_index(index).invoke(claim)
    assert document.metadata["value"] is holds


@pytest.mark.parametrize("rightly", [True, False])
def test_examples_tell_how_sure_to_be(index: GraphIndex, rightly: bool) -> None:
    asked = {"Ann Lee": "reports_to", "Dan Wood": "works_in", "Cleo Marsh": "speaks", "Leeds": "located_in"}
    asked |= {"Radiology": "part of", "Northgate Hospital": "founded in"}
    examples = [
        Question(f"{name} {word}", (name,), pattern=Pattern.of((name, relation, Unknown("x")), target="x"))
        for name, word in asked.items()
        for relation in [word if rightly else "date_of_birth"]
    ]
    question = "Where was Ann Lee born?"
    alone, taught = (QuestionReader(index, examples=known).read(question) for known in (None, examples))
    assert alone.pattern == taught.pattern
    assert ((alone.confidence or 0) < (taught.confidence or 0) < 1) is rightly


class CountedEmbeddings(HashedEmbeddings):
    """Keeps the texts."""

    texts: ClassVar[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts.extend(texts)
        return super().embed_documents(texts)


def test_embeddings_of_your_own_read_questions_and_steps(index: GraphIndex) -> None:
    reading = QuestionReader(index, encoder=CountedEmbeddings()).read("Who does Ann Lee report to?")
    assert facts_of(reading.pattern) == [("Ann Lee", "reports_to", "1")]
    assert "Who does x report to" in CountedEmbeddings.texts
    assert any("reports to" in text and "?" in text for text in CountedEmbeddings.texts)


SHIPS = """
@prefix e: <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:Ferry rdfs:subClassOf e:Ship . e:Tug rdfs:subClassOf e:Ship .
e:aurora a e:Ferry ; rdfs:label "Aurora" ; e:ownedBy e:lind . e:bo a e:Tug ; rdfs:label "Bo" ; e:ownedBy e:lind .
e:pier a e:Pier ; rdfs:label "North Pier" ; e:ownedBy e:lind . e:lind a e:Firm ; rdfs:label "Lind Lines" .
"""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which ships does Lind Lines own?", {"Aurora", "Bo"}),
        ("Which ferries does Lind Lines own?", {"Aurora"}),
        ("Which piers does Lind Lines own?", {"North Pier"}),
    ],
)
def test_types_below_the_asked_one_answer(tmp_path: Path, question: str, expected: set[str]) -> None:
    path = tmp_path / "ships.ttl"
    path.write_text(SHIPS, "utf-8")
    graph = KnowledgeGraph.from_file(path)
    found = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()), min_confidence=0).invoke(
        question
    )
    assert {graph.label(answer) for answer in found[0].metadata["answers"]} == expected


WINS = [
    ("_:w1", "has_winner", "Ann Lee"),
    ("_:w1", "prize", "Golden Comb"),
    ("_:w1", "year", "2019"),
    ("_:w2", "has_winner", "Bob Hill"),
    ("_:w2", "prize", "Golden Comb"),
    ("_:w2", "year", "2020"),
    ("Ann Lee", "married_to", "Bob Hill"),
    ("Bob Hill", "keeps", "Hive Three"),
]


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Who won the Golden Comb?", ["Ann Lee", "Bob Hill"]),
        ("Who won the Golden Comb in 2019?", ["Ann Lee"]),
        ("When did Bob Hill win the Golden Comb?", ["2020"]),
        ("What did Ann Lee win?", ["_:w1"]),
    ],
)
def test_a_walk_goes_on_from_blank_nodes_to_things_with_names(question: str, answers: list[str]) -> None:
    [found] = SimGRAGRetriever.from_index(index_of(WINS)).invoke(question)
    assert sorted(found.metadata["answers"]) == answers


@pytest.mark.parametrize("question", ["Is Bob Hill married to Ann Lee?", "Is Ann Lee married to Bob Hill?"])
def test_a_mutual_relation_holds_both_ways(question: str) -> None:
    assert SimGRAGRetriever.from_index(index_of(WINS)).invoke(question)[0].metadata["value"] is True
