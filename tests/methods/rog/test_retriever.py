"""Relation paths under the contract of all retrievers, by hand, against brute force, and where limits are met."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from built_methods import Facts, answers, indexed
from choosing_model import choosing
from films_and_claims import TINY_EXAMPLES
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

from kg_retrievers import GraphIndex, KnowledgeGraph, Question
from kg_retrievers.algorithms.path_mining import LabelledQuestion, mine_relation_paths
from kg_retrievers.algorithms.relation_paths import follow_relation_path, joining_relation_paths, path_turns
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, LowConfidenceError
from kg_retrievers.graph import Adjacency, Pattern, Unknown
from kg_retrievers.graph.adjacency import triple_of
from kg_retrievers.methods.rog import proposals
from kg_retrievers.methods.rog.proposals import ExampleRelationPaths
from kg_retrievers.methods.rog.retriever import RelationPathRetriever
from kg_retrievers.questions.examples import confidence_at
from kg_retrievers.questions.reading import Reading
from kg_retrievers.testing import RetrieverContract, ScriptedChatModel


class TestRelationPaths(RetrieverContract):
    retriever_class = RelationPathRetriever

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return super().make_retriever(index, **({} if "llm" in fields else {"examples": TINY_EXAMPLES}) | fields)


# --- by hand ----------------------------------------------------------------------------------------------------------

BY, STAR, YEAR = "directed_by", "starring", "release_year"
FILMS: Facts = [
    ("Her", BY, "Jonze"),
    ("Adaptation", BY, "Jonze"),
    ("Her", STAR, "Adams"),
    ("Arrival", STAR, "Adams"),
    ("Arrival", BY, "Villeneuve"),
    ("Adaptation", YEAR, "2002"),
    ("Her", YEAR, "2013"),
    ("Arrival", YEAR, "2016"),
]


INDEX = indexed(FILMS)


def nothing(input: Any) -> list[dict[str, Any]]:
    return []


def retriever(index: GraphIndex = INDEX, **fields: Any) -> RelationPathRetriever:
    given_source = {"llm", "examples", "proposer", "asks_model"} & set(fields)
    return RelationPathRetriever.from_index(
        index, **({} if given_source else {"proposer": RunnableLambda(nothing)}) | fields
    )


def given_paths(*paths: list[Any], **more: Any) -> dict[str, Any]:
    return {"relation_paths": [{"relations": path} | more for path in paths]}


def test_given_paths_by_hand() -> None:
    paths = given_paths([[BY, "forward"], [BY, "backward"], [YEAR, "forward"]], [STAR, STAR])
    first, second = retriever().invoke("When were films by the director of Her released?", **paths)
    assert first.page_content == "Her -> directed by -> Jonze <- directed by <- Adaptation -> release year -> 2002"
    assert (first.metadata["answers"], first.metadata["score"]) == (["2002"], 1.0)
    assert (second.metadata["answers"], second.metadata["score"]) == (["Arrival"], 0.5)
    assert second.metadata["details"] == {
        "entities": [["Her", "Her"]],
        "relation_paths": [
            {"relations": [[BY, "forward"], [BY, "backward"], [YEAR, "forward"]], "score": 1.0, "from": "given"},
            {"relations": [[STAR, "either"], [STAR, "either"]], "score": 0.5, "from": "given"},
        ],
        "empty": [],
        "relation_path": [[STAR, "forward"], [STAR, "backward"]],
        "paths": [["Her", [0, 1]]],
    }


def test_what_cannot_be_followed_is_noted_and_the_next_is_taken() -> None:
    documents = retriever().invoke("What of Her?", **given_paths([[BY, "backward"]], [STAR], [BY, BY, BY]))
    assert answers(documents) == [["Adams"]]
    assert documents[0].metadata["details"]["empty"] == [[[BY, "backward"]], [[BY, "either"]] * 3]
    assert not documents[0].metadata["truncated"]
    assert retriever().invoke("What of Her?", **given_paths([[BY, "backward"]])) == []
    assert retriever().invoke("What of Her?") == []  # nothing was proposed


def test_an_entity_that_was_asked_for_is_no_answer() -> None:
    assert answers(retriever().invoke("What of Jonze?", **given_paths([BY]))) == [["Her", "Adaptation"]]
    assert answers(retriever().invoke("What of Her?", **given_paths([BY, BY]))) == [["Adaptation"]]
    itself = indexed([("Her", "remake_of", "Her"), ("Her", "remake_of", "Him")])
    assert answers(retriever(itself).invoke("What of Her?", **given_paths(["remake_of"]))) == [["Her", "Him"]]
    assert answers(retriever(itself).invoke("What other one of Her?", **given_paths(["remake_of"]))) == [["Him"]]
    parallel = indexed([("Her", BY, "Jonze"), ("Her", "written_by", "Jonze")])
    assert retriever(parallel).invoke("What else of Her?", **given_paths([BY, "written_by"])) == []


def test_each_relation_path_decides_whether_its_walks_return() -> None:
    index = indexed([("Ann", "child", "Bob"), ("Bob", "parent", "Ann"), ("Lea House", "owner", "Eve")])
    back: dict[str, Any] = {"relations": [["child", "forward"], ["parent", "forward"]]}
    asked = {"seed_entities": ["Ann"]}
    (document,) = retriever(index).invoke("Who is a parent of the child of Ann?", relation_paths=[back], **asked)
    assert document.metadata["answers"] == ["Ann"]
    assert "widened" not in document.metadata["details"]
    assert retriever(index).invoke("Who?", relation_paths=[back | {"revisits": False}], **asked) == []
    turning: dict[str, Any] = {"relations": [["owner", "forward"], ["owner", "backward"]]}
    for more, widened in ({}, True), ({"revisits": True}, None):
        (document,) = retriever(index).invoke(
            "What does its owner own?", relation_paths=[turning | more], seed_entities=["Lea House"]
        )
        assert document.metadata["details"].get("widened") is widened
        assert document.metadata["answers"] == ["Lea House"]


FOUNDRIES = [("Bell One", "cast by", "Ida"), ("Bell One", "hangs in", "Kiel"), ("Bell Two", "cast by", "Ida")]
FOUNDRIES += [("Bell Two", "hangs in", "Riga"), ("Bell Three", "cast by", "Otto"), ("Bell Three", "hangs in", "Kiel")]
FOUNDRIES += [("Bell Four", "cast by", "Otto"), ("Bell Four", "hangs in", "Lund")]


def test_what_several_entities_lead_to_is_intersected() -> None:
    index = indexed(FOUNDRIES)
    paths = given_paths([["cast by", "backward"]], [["hangs in", "backward"]])
    (first, *_) = found = retriever(index).invoke("Which bell cast by Ida hangs in Kiel?", **paths)
    assert {key for document in found for key in document.metadata["answers"]} == {"Bell One"}
    assert first.metadata["details"]["joined"] == "intersection"
    found = retriever(index).invoke("Which bell cast by Otto hangs in Riga?", **paths)
    assert {key for document in found for key in document.metadata["answers"]} == {
        "Bell Two",
        "Bell Three",
        "Bell Four",
    }
    assert found[0].metadata["details"]["joined"] == "union"
    (only,) = retriever(index).invoke("Which bell was cast by Ida?", **given_paths([["cast by", "backward"]]))
    assert "joined" not in only.metadata["details"]


def test_conjunctions_are_learned_from_answers_alone() -> None:
    index = indexed(FOUNDRIES)
    examples = [
        Question("Which bell cast by Ida hangs in Kiel?", answers=("Bell One",)),
        Question("Which bell cast by Ida hangs in Riga?", answers=("Bell Two",)),
        Question("Which bell cast by Otto hangs in Kiel?", answers=("Bell Three",)),
    ]
    found = retriever(index, examples=examples).invoke("Which bell cast by Otto hangs in Lund?")
    assert {key for document in found for key in document.metadata["answers"]} == {"Bell Four"}
    rows = found[0].metadata["details"]["relation_paths"]
    assert [row["relations"] for row in rows] == [[["cast by", "backward"]], [["hangs in", "backward"]]]


def test_two_seeds() -> None:
    """Ends of both are one set of answers; what another seed leads to may be a seed."""
    seeds = ["Her", "Arrival"]
    (document,) = retriever().invoke("?", seed_entities=seeds, **given_paths([[YEAR, "forward"]]))
    assert document.metadata["answers"] == ["2013", "2016"]
    assert document.metadata["details"]["paths"] == [["Her", [0]], ["Arrival", [1]]]
    (document,) = retriever().invoke("?", seed_entities=seeds, **given_paths([STAR, STAR]))
    assert document.metadata["answers"] == ["Arrival", "Her"]


def test_granularities() -> None:
    asked = given_paths([[BY, "backward"], [YEAR, "forward"]])
    (subgraph,) = retriever().invoke("What of Jonze?", **asked)
    assert subgraph.metadata["answers"] == ["2013", "2002"]
    paths = retriever(granularity="path").invoke("What of Jonze?", **asked)
    assert answers(paths) == [["2013"], ["2002"]]
    assert [len(document.metadata["triples"]) for document in paths] == [2, 2]
    assert len(retriever(granularity="triple").invoke("What of Jonze?", **asked)) == 4
    assert len(retriever(granularity="path").invoke("What of Jonze?", k=1, **asked)) == 1


def test_ten_thousand_walks_are_bounded_and_said() -> None:
    facts = [(f"film {number % 100}", STAR, f"actor {number // 100}") for number in range(10_000)]
    facts += [(f"film {number}", BY, "Jonze") for number in range(100)]
    index = indexed(facts)
    asked = given_paths([[BY, "backward"], [STAR, "forward"]], [[BY, "backward"]])
    first = retriever(index).invoke("What of Jonze?", **asked)
    assert len(first) == 1
    assert first[0].metadata["truncated"]
    assert len(first[0].metadata["details"]["paths"]) == 1_000
    assert len(first[0].metadata["answers"]) == 100  # each end before any end twice
    assert first[0].metadata["details"]["empty"] == []
    assert first == retriever(index).invoke("What of Jonze?", **asked)
    both = retriever(index, max_paths=10_100).invoke("What of Jonze?", **asked)
    assert [len(document.metadata["details"]["paths"]) for document in both] == [10_000, 100]
    assert not both[0].metadata["truncated"]


# --- examples ---------------------------------------------------------------------------------------------------------

LABELLED = [
    Question("Who directed Her?", answers=("Jonze",)),
    Question("Who directed Arrival?", seed_entities=("Arrival",), answers=("Villeneuve", "not in the graph")),
    Question("When were films released that were directed by the director of Her?", answers=("2002",)),
    Question("Who starred in Nowhere?", answers=("Adams",)),
    Question("Who starred in Arrival?", answers=("nobody",)),
]


def propose(question: str, *examples: Question, index: GraphIndex = INDEX, **more: Any) -> list[dict[str, Any]]:
    input = {"masked_question": question, "seed_entities": ["Her"], "beam_width": 3, "max_hops": 3} | more
    return ExampleRelationPaths(index, examples or LABELLED).invoke(input)


def test_examples_propose_what_answers_them() -> None:
    first, *_ = propose("Who directed _?")
    assert first["relations"] == [[BY, "forward"]]
    assert first["score"] == pytest.approx((1 + 2 / 3) / 2)  # one of two answers is not in the graph
    assert (first["from"], first["confidence"]) == ("examples", pytest.approx(first["score"] * confidence_at(0.0)))
    first, *_ = propose("When were films released that were directed by the director of _?")
    assert first["relations"] == [[BY, "forward"], [BY, "backward"], [YEAR, "forward"]]
    assert (first["score"], first["from"]) == (1.0, "examples")


def test_beam_width() -> None:
    assert len(propose("Who directed _?", beam_width=1)) == 1
    found = retriever(examples=LABELLED, beam_width=1).invoke("Who directed Adaptation?")
    assert answers(found) == [["Jonze"]]


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_what_is_proposed_leads_somewhere(data: st.DataObject) -> None:
    """And is the best of what does, with half of its score or more."""
    index = indexed(data.draw(small_facts))
    graph, entity = index.graph, st.sampled_from(sorted(index.graph.entities))
    labelled = [
        Question(f"{words} {topic}?", seed_entities=(topic,), answers=(data.draw(entity),))
        for words in ("Who", "Where is", "When was")
        for topic in [data.draw(entity)]
    ]
    seeds = data.draw(st.lists(entity, min_size=1, max_size=2, unique=True))
    found = propose("Who is _?", *labelled, index=index, seed_entities=seeds, beam_width=2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(proposals, "SCORE_SHARE", 0)
        everyone = propose("Who is _?", *labelled, index=index, seed_entities=[*graph.entities], beam_width=999)

    # Examples may disagree whether the walks of a relation path return; what leads nowhere by one may lead by another.
    returning = {str(row["relations"]): row.get("revisits") for row in everyone}
    assume(all(returning[str(row["relations"])] == row.get("revisits") for row in found))

    def leads(row: dict[str, Any]) -> bool:
        steps = [[2 * graph.relations.find(name) + (way == "backward")] for name, way in row["relations"]]
        may = row.get("revisits", not path_turns(steps))
        return any(all_walks(graph.adjacency, graph.entities.find(seed), steps, may, may) for seed in seeds)

    if followed := [row for row in everyone if leads(row)]:
        assert found == [row for row in followed[:2] if row["score"] >= 0.5 * followed[0]["score"]]


@pytest.mark.parametrize(
    ("examples", "wanted"),
    [
        ([], "got 0 examples, but none with an entity and an answer"),
        (LABELLED[3:], "got 2 examples, but none"),
        ("Who directed Her?", "wanted a list of Question, but got 'Who"),
        (["Who directed Her?"], "wanted a list of Question"),
        (5, "wanted a list of Question, but got 5"),
        (iter(LABELLED), "wanted a list of Question, but got <list_iterator"),
    ],
)
def test_examples_of_no_use_are_refused(examples: Any, wanted: str) -> None:
    with pytest.raises(InvalidArgumentError, match=wanted):
        ExampleRelationPaths(INDEX, examples)
    with pytest.raises(InvalidArgumentError, match=wanted):
        retriever(examples=examples)


# --- a language model -------------------------------------------------------------------------------------------------


def test_a_model_chooses_the_walk() -> None:
    llm = choosing("Her -> starring -> ?")
    documents = retriever(llm=llm, asks_model="always").invoke("Who is in Her, so to say?")
    assert answers(documents)[0] == ["Adams"]
    assert documents[0].metadata["details"]["relation_paths"][0]["from"] == "chosen"


def test_a_model_that_means_another_relation_is_refused_with_the_nearest() -> None:
    llm = choosing("budget", '{"triples": [["Her", "production budget", "?x"]]}')
    with pytest.raises(LowConfidenceError, match=r"names the relation 'production budget', which the graph lacks"):
        retriever(llm=llm, asks_model="always", on_refusal="raise").invoke("What did Her cost to make?")


async def test_what_cannot_be_used_changes_nothing() -> None:
    llm = ScriptedChatModel(replies=["Spike Jonze!", "no {idea} %s"], cycle=True)
    for asked in (retriever(llm=llm, asks_model="always"), retriever(asks_model="never")):
        assert answers(asked.invoke("Who directed Her?"))[0] == ["Jonze"]
        assert answers(await asked.ainvoke("Who directed Her?"))[0] == ["Jonze"]


def test_the_first_that_is_sure_proposes() -> None:
    """Examples that are near, else zero-shot walks, else what the language model chooses."""

    def asked(question: str, confidence: float, **given: Any) -> tuple[str, bool]:
        llm = choosing("Her -> directed_by -> ?")
        found = retriever(llm=llm, **given)
        pattern = Pattern.of(("Her", BY, Unknown("x")), target="x", source="zero-shot", confidence=confidence)
        found.proposer.reader.zero_shot.read = lambda _: Reading(pattern)  # type: ignore[attr-defined]
        document = found.invoke(question)[0]
        return document.metadata["details"]["relation_paths"][0]["from"], bool(llm.prompts)

    examples = [Question("Who starred in Her?", answers=("Adams",))]
    far = "Tell me by whom the making of Her was led"
    assert asked("Who starred in Arrival?", 0.0, examples=examples) == ("examples", False)
    assert asked(far, 0.9, examples=examples) == ("zero-shot", False)
    assert asked(far, 0.1, examples=examples) == ("chosen", True)


def test_neither_examples_nor_a_model_are_needed() -> None:
    alone = RelationPathRetriever.from_index(INDEX, min_confidence=0.0)
    document = alone.invoke("Who directed Her?")[0]
    assert document.metadata["answers"] == ["Jonze"]
    (first, *_) = document.metadata["details"]["relation_paths"]
    assert (first["relations"], first["from"]) == ([[BY, "forward"]], "zero-shot")
    assert 0 < document.metadata["confidence"] <= 1
    assert "confidence" not in first  # it stands in the metadata
    assert not alone.stages[1].calls_model


def test_zero_shot_paths_from_several_entities_meet() -> None:
    alone = RelationPathRetriever.from_index(INDEX, min_confidence=0.0)
    document = alone.invoke("Which film was directed by Jonze and stars Adams?")[0]
    assert document.metadata["answers"] == ["Her"]
    assert [row["entity"] for row in document.metadata["details"]["relation_paths"]] == [0, 1]


def test_unsure_relation_paths_are_refused() -> None:
    row = {"relations": [[BY, "forward"]], "score": 0.5, "confidence": 0.1, "unplaced": ["budget"]}
    found = retriever(proposer=RunnableLambda(lambda _: [row]), on_refusal="raise")
    with pytest.raises(LowConfidenceError, match="'budget'"):
        found.invoke("What was the budget of Her?")
    assert found.invoke("What was the budget of Her?", min_confidence=0.1)[0].metadata["confidence"] == 0.1
    (given,) = found.invoke("What was the budget of Her?", relation_paths=[row])
    assert given.metadata["confidence"] is None


# --- what is given, and what is refused -------------------------------------------------------------------------------


def test_what_proposes_paths_is_given_once() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got proposer= beside llm= or examples="):
        retriever(proposer=RunnableLambda(nothing), examples=LABELLED)
    with pytest.raises(InvalidArgumentError, match="got a trained model"):
        RelationPathRetriever.from_index(INDEX, model="folder")


def test_given_paths_are_checked_and_sorted() -> None:
    found = retriever()
    paths = [{"relations": [BY], "score": 0.1}, {"relations": ((STAR, "forward"),), "score": 1, "from": "me"}]
    assert found.check_inputs({"relation_paths": paths})["relation_paths"] == [
        {"relations": [[STAR, "forward"]], "score": 1.0, "from": "me"},
        {"relations": [[BY, "either"]], "score": 0.1, "from": "given"},
    ]
    written = found.check_inputs({"relation_paths": paths})
    assert found.check_inputs(json.loads(json.dumps(written))) == written


@pytest.mark.parametrize(
    ("paths", "wanted"),
    [
        (7, "relation_paths must be a valid list, .* relation_paths is a list of"),
        ([BY], "relation_paths is a list of"),
        ([{}], "relation_paths is a list of"),
        ([{"relations": [BY], "scor": 1}], "relation_paths is a list of"),
        ([{"relations": [BY], "from": 1}], "relation_paths is a list of"),
        ([{"relations": []}], r"1 to 3 relations \(max_hops\)"),
        ([{"relations": [BY] * 4}], r"1 to 3 relations \(max_hops\)"),
        ([{"relations": [[BY]]}], "relation_paths is a list of"),
        ([{"relations": [[BY, "sideways"]]}], "relation_paths is a list of"),
        ([{"relations": ["directed by whom"]}], r"no relation 'directed by whom'. Did you mean: \['directed_by',"),
        ([{"relations": [BY], "score": 0}], "relation_paths.0.score must be"),
        ([{"relations": [BY], "score": 1.5}], "relation_paths.0.score must be"),
        ([{"relations": [BY], "score": float("nan")}], "relation_paths.0.score must be"),
        ([{"relations": [BY]}, {"relations": [[BY, "either"]]}], "no relation path twice"),
    ],
)
def test_paths_that_are_wrong_are_refused(paths: Any, wanted: str) -> None:
    with pytest.raises(InvalidArgumentError, match=wanted):
        retriever().invoke("What of Her?", relation_paths=paths)
    with pytest.raises(InvalidArgumentError, match=wanted):
        retriever(proposer=RunnableLambda(lambda _: paths)).invoke("What of Her?")


def test_other_inputs_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="masked_question must have at least 1 character, but got ' '"):
        retriever().invoke("What of Her?", masked_question=" ")
    follow = retriever().stages[-1].run
    with pytest.raises(EntityLinkingError, match="no entity is given"):
        follow.invoke({"question": "?", "k": 1, "seed_entities": [], "relation_paths": []})


# --- following and mining, against brute force ------------------------------------------------------------------------

small_facts = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from("rs"), st.sampled_from("abcde")), min_size=1, max_size=14
)
small_paths = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), min_size=1, max_size=3)


def all_walks(
    adjacency: Adjacency, seed: int, path: list[list[int]], may_return: bool = False, may_repeat: bool = False
) -> list[tuple[list[int], int]]:
    """Return the walks and their ends, one by one."""
    walks: list[tuple[list[int], int]] = []

    def walk(here: int, crossed: list[int]) -> None:
        if crossed and here == seed and not may_return:
            return
        if len(crossed) == len(path):
            walks.append((crossed, here))
            return
        row = adjacency.row(here)
        for place in sorted(range(row.start, row.stop), key=lambda place: int(adjacency.labels[place])):
            label, there = int(adjacency.labels[place]), int(adjacency.neighbors[place])
            triple = int(triple_of(adjacency, here, place))
            fresh = may_repeat or triple not in crossed
            if label in path[len(crossed)] and fresh and (there != here or label % 2 == 0):
                walk(there, [*crossed, triple])

    walk(seed, [])
    return walks


@given(small_facts, st.data())
def test_following_is_all_walks(facts: Facts, data: st.DataObject) -> None:
    graph = KnowledgeGraph.from_triples(facts)
    path = [sorted(labels) for labels in data.draw(small_paths)]
    seed = data.draw(st.integers(0, len(graph.entities) - 1))
    may = {name: data.draw(st.booleans()) for name in ("may_return", "may_repeat")}
    walks = follow_relation_path(graph.adjacency, seed, path, max_walks=10_000, **may)
    wanted = all_walks(graph.adjacency, seed, path, **may)
    assert list(zip(walks.triples.tolist(), walks.ends.tolist(), strict=True)) == wanted
    assert not walks.truncated
    assert walks.triples.shape == (len(wanted), len(path))
    most = data.draw(st.integers(1, 5))
    fewer = follow_relation_path(graph.adjacency, seed, path, max_walks=most, **may)
    assert len(fewer.ends) <= most
    assert fewer.truncated or len(fewer.ends) == len(wanted)
    assert all(walk in [triples for triples, _ in wanted] for walk in fewer.triples.tolist())


@given(small_facts, st.data())
def test_joining_paths_are_all_that_join(facts: Facts, data: st.DataObject) -> None:
    graph = KnowledgeGraph.from_triples(facts)
    seed, end = data.draw(st.integers(0, len(graph.entities) - 1)), data.draw(st.integers(0, len(graph.entities) - 1))
    ways = list(zip(*(column.tolist() for column in graph.adjacency[2:4]), strict=True))
    ends: dict[tuple[int, ...], set[int]] = {(): {seed}}
    wanted = []
    for _ in range(3):
        further: dict[tuple[int, ...], set[int]] = {}
        for path, entities in ends.items():
            for entity in entities:
                for neighbor, label in ways[graph.adjacency.indptr[entity] : graph.adjacency.indptr[entity + 1]]:
                    further.setdefault((*path, label), set()).add(neighbor)
        ends = further
        wanted += sorted(path for path, entities in ends.items() if end in entities)
    assert joining_relation_paths(graph.adjacency, seed, end, max_hops=3, max_entries=10_000) == wanted
    near = joining_relation_paths(graph.adjacency, seed, end, max_hops=3, max_entries=0)
    assert near == [path for path in wanted if len(path) == 1]


@settings(max_examples=50)
@given(small_facts, st.data())
def test_what_is_mined_has_the_f1_it_says(facts: Facts, data: st.DataObject) -> None:
    graph = KnowledgeGraph.from_triples(facts)
    numbers = st.integers(0, len(graph.entities) - 1)
    questions = [
        LabelledQuestion([data.draw(numbers)], data.draw(st.lists(numbers, min_size=1, max_size=3, unique=True)), 3)
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    mined = mine_relation_paths(graph.adjacency, questions, max_hops=2)
    assert [f1 for _, f1, _ in mined] == sorted((f1 for _, f1, _ in mined), reverse=True)
    for path, f1, revisits in mined:
        sums = [0.0, 0.0]
        for ((seed,), gold, size), back in product(questions, (False, True)):
            ends = {end for _, end in all_walks(graph.adjacency, seed, [[label] for label in path], back)}
            sums[back] += 2 * len(ends & set(gold)) / max(len(ends) + size, 1)
        assert f1 == pytest.approx(max(sums) / len(questions))
        assert revisits is (None if abs(sums[1] - sums[0]) < 1e-9 else sums[1] > sums[0])
        assert 0 < f1 <= 1


def test_a_written_pattern_of_more_than_walks_is_refused() -> None:
    """One has a walk from an entity that the question does not name, the other an absent fact."""
    two = '{"triples": [["Her", "directed_by", "?x"], ["Arrival", "starring", "?x"]], "target": "?x"}'
    absent = '{"triples": [["Her", "starring", "?x"]], "absent": [["Arrival", "starring", "?x"]], "target": "?x"}'
    facts = [*FILMS, ("Arrival", STAR, "Jonze"), ("Her", STAR, "Mara")]
    for written in (two, absent):
        asked = retriever(indexed(facts), llm=choosing("none", written), asks_model="always", on_refusal="raise")
        with pytest.raises(LowConfidenceError, match="more than relation paths lead to"):
            asked.invoke("What of Her, so to say?")
