"""Unions under the contract of all retrievers, by hand, against brute force, and where a member fails."""

from __future__ import annotations

import random
from collections.abc import Sequence
from threading import Event
from typing import Any, Self, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, interrupt
from pydantic import ConfigDict, Field

from kg_retrievers import (
    Budget,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    LLMPatternGenerator,
    PCSTRetriever,
    Question,
    SimGRAGRetriever,
    TripleSimilarityRetriever,
    UnionRetriever,
    answer_chain,
    build_workflow,
    cited_answer_chain,
    evaluate,
)
from kg_retrievers.chains import show_evidence
from kg_retrievers.core.replies import NO_TARGET
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import RetrievalState, Stage
from kg_retrievers.errors import (
    BudgetError,
    EntityLinkingError,
    InvalidArgumentError,
    LowConfidenceError,
    ModelCallError,
    ModelMismatchError,
)
from kg_retrievers.graph import Evidence, Triple
from kg_retrievers.methods.union.retriever import RANK_OFFSET
from kg_retrievers.testing import RetrieverContract, ScriptedChatModel, tiny_graph

EMBEDDINGS = HashedEmbeddings()
TINY = GraphIndex.build(tiny_graph(), EMBEDDINGS)
AMELIE = "Who starred in Amélie?"


class TestUnion(RetrieverContract):
    """Two methods that propose no answers."""

    retriever_class = UnionRetriever
    takes_llm = False

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        retrievers = [PCSTRetriever.from_index(index), TripleSimilarityRetriever.from_index(index)]
        return UnionRetriever.from_index(index, retrievers=retrievers, **fields)


@pytest.mark.heavy
class TestUnionWithALanguageModel(TestUnion):
    """One that proposes answers and may call a language model, and one that does not."""

    retriever_class = UnionRetriever
    takes_llm = True

    def make_retriever(self, index: GraphIndex, llm: Any = None, **fields: Any) -> BaseKGRetriever:
        given: Any = {"pattern_generator": LLMPatternGenerator(llm)} if llm else {}
        return UnionRetriever.of(SimGRAGRetriever.from_index(index, **given), PCSTRetriever.from_index(index), **fields)


# --- members that do as they are told ---------------------------------------------------------------------------------

GRAPH = KnowledgeGraph.from_triples(
    [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d"), ("d", "r", "e"), ("e", "r", "a")]
)
INDEX = GraphIndex.build(GRAPH, EMBEDDINGS)
AB, BC, CD, DE, EA = [GRAPH.triple(number) for number in range(5)]

Row = tuple[Sequence[Triple], float, Sequence[str]]


def rows(*found: tuple[Any, ...]) -> list[Evidence]:
    """Evidence of (triples, score, answers)."""
    return [
        Evidence(tuple(triples), score, tuple(more[0]) if more else (), details={"entities": [["a", "a"]]})
        for triples, score, *more in found
    ]


PROMPT: BasePromptTemplate[Any] = PromptTemplate.from_template("{question} {evidence}")


class Scripted(BaseKGRetriever):
    """Finds what it is told to, or fails; and may wait for another or tell another to go on."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    k: int = 99
    only: Any = Field(default_factory=object)  # no two are alike
    evidence: Any = ()
    error: Any = None
    waits: Any = None
    tells: Any = None
    by_llm: bool = False
    asked: Any = None
    answer_prompt: BasePromptTemplate[Any] = PROMPT

    @classmethod
    def from_index(cls, index: GraphIndex, **fields: Any) -> Self:  # type: ignore[override]
        return cls(index=index, **fields)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (Stage("look", RunnableLambda(self._look), ("answers", "documents"), self.by_llm),)

    @property
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        return {"look": PromptTemplate.from_template("Look."), "answer": self.answer_prompt}

    def _look(self, state: RetrievalState) -> dict[str, Any]:
        if self.asked is not None:
            self.asked.append({**state})
        assert self.waits is None or self.waits.wait(20)
        if self.tells is not None:
            self.tells.set()
        if self.error is not None:
            raise self.error
        return {"answers": [], "documents": self.documents_from(self.evidence, state["k"])}


class Silent(Scripted):
    """Proposes no answers."""

    proposes_answers = False
    suits = frozenset({"open"})


def told(*evidence: Any, **fields: Any) -> Scripted:
    return Scripted(index=INDEX, evidence=rows(*evidence), **fields)


def seen(documents: Sequence[Document]) -> list[tuple[list[Triple], float]]:
    return [
        ([Triple(*triple) for triple in document.metadata["triples"]], document.metadata["score"])
        for document in documents
    ]


def found_by(document: Document) -> dict[str, tuple[int, float]]:
    return {name: (found["rank"], found["score"]) for name, found in document.metadata["details"]["found_by"].items()}


# --- what becomes one, and what is left out ---------------------------------------------------------------------------


def test_documents_of_the_same_triples_become_one() -> None:
    """Also those of one member, which counts once; answers are united, the best member's first."""
    one = told(([AB], 0.9), ([BC, CD], 0.4, "b"))
    other = told(([CD, BC], 0.9, "d"), ([BC, CD], 0.9, "c"), ([AB], 0.1))
    cut = Evidence((AB,), 1.0, truncated=True)
    documents = UnionRetriever.of(one, other, Scripted(index=INDEX, evidence=[cut])).invoke("?")
    assert seen(documents) == [([AB], pytest.approx(2 / 61 + 1 / 63)), ([CD, BC], pytest.approx(1 / 61 + 1 / 62))]
    assert documents[1].metadata["answers"] == ["d", "c", "b"]
    assert [document.metadata["truncated"] for document in documents] == [True, False]


def test_what_adds_nothing_is_left_out() -> None:
    one = told(([AB, BC], 2, "c"), ([CD, DE], 1))
    other = told(([EA], 3), ([BC, CD], 2, "c"), ([AB], 1, "b"))
    documents = UnionRetriever.of(one, other, weights=[2, 1]).invoke("?")
    assert [triples for triples, _ in seen(documents)] == [[AB, BC], [CD, DE], [EA], [AB]]
    assert documents[3].metadata["answers"] == ["b"]  # which nobody had proposed


def test_of_equal_scores_those_with_answers_come_first() -> None:
    silent, speaking = told(([AB, BC], 1)), told(([CD], 1, "c"), ([DE], 1, "d"))
    union = UnionRetriever.of(silent, speaking)
    documents = union.invoke("?")
    assert [triples for triples, _ in seen(documents)] == [[CD], [DE], [AB, BC]]
    assert len({score for _, score in seen(documents)}) == 1
    (record,) = evaluate(union, [Question("?", answers=("c", "d"))], topic="linked").records
    assert record["answers"] == ["c", "d"]
    assert record["metrics"]["exact_match"] == 1
    assert answer_chain(union).invoke("?") == "c"


def test_unions_of_unions() -> None:
    inner = UnionRetriever.of(told(([AB], 1)), told(([AB], 1), error=TimeoutError("late")), on_error="skip")
    outer = UnionRetriever.of(inner, told(([BC], 1), ([AB], 0)))
    first, second = outer.invoke("?")
    assert seen([first, second]) == [([AB], 1 / 61 + 1 / 62), ([BC], 1 / 61)]
    assert found_by(first) == {"UnionRetriever": (1, 1 / 61), "Scripted": (2, 0.0)}
    told_inside = first.metadata["details"]["found_by"]["UnionRetriever"]["details"]
    assert [*told_inside["found_by"]] == ["Scripted"]
    assert told_inside["failed"] == {"Scripted-2": "TimeoutError: late"}
    assert "failed" not in first.metadata["details"]
    assert [*outer.prompts] == [
        "UnionRetriever.Scripted.look",
        "UnionRetriever.Scripted-2.look",
        "Scripted.look",
        "answer",
    ]


def walked(*found: tuple[Sequence[Triple], float, list[Any]], **fields: Any) -> Scripted:
    """Return a member whose evidence has paths: (triples, score, rows)."""
    evidence = [Evidence(tuple(triples), score, details={"paths": paths}) for triples, score, paths in found]
    return Scripted(index=INDEX, evidence=evidence, style="paths", **fields)


def test_paths_of_the_members_are_kept() -> None:
    """Those of all that found the same triples, each once, by the places of these triples in the Document."""
    one = walked(([AB, BC], 2, [["a", [0]], ["b", [1]]]), ([DE], 1, [["e", [0]]]))
    other = walked(([BC, AB], 2, [["a", [1]], ["c", [0, 1]]]), ([DE, CD], 1, [["c", [1, 0]]]))
    documents = UnionRetriever.of(one, other).invoke("?")
    assert [document.page_content for document in documents] == [
        "a -> r -> b\nb -> r -> c\nc <- r <- b <- r <- a",
        "e <- r <- d",
        "c -> r -> d -> r -> e",
    ]
    details = [document.metadata["details"] for document in documents]
    assert [one["paths"] for one in details] == [[["a", [0]], ["b", [1]], ["c", [1, 0]]], [["e", [0]]], [["c", [1, 0]]]]
    assert details[0]["found_by"] == {
        name: {"rank": 1, "score": 2.0, "confidence": None, "details": {}} for name in ("Scripted", "Scripted-2")
    }
    cut = "[1]\na -> r -> b\n\n(4 more facts left out)"
    assert show_evidence(documents, max_tokens=len(cut), count_tokens=len).text == cut
    again = UnionRetriever.of(UnionRetriever.of(one, other), told(([AB, BC], 1))).invoke("?")
    assert [document.page_content for document in again] == [document.page_content for document in documents]
    single = UnionRetriever.of(one, other, granularity="triple").invoke("?")
    assert [document.page_content for document in single] == [
        f"{head} -> r -> {tail}" for head, tail in ("ab", "bc", "de", "cd")
    ]
    assert not any("paths" in document.metadata["details"] for document in single)


FACTS = st.sampled_from([AB, BC, CD, DE, EA])
MEMBER = st.lists(
    st.tuples(
        st.lists(FACTS, min_size=1, max_size=3, unique=True),
        st.sampled_from([0.0, 0.5, 1.0, 2.0]),
        st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    ),
    max_size=5,
).map(lambda found: sorted(found, key=lambda row: -row[1]))


@settings(deadline=None, max_examples=60)
@given(st.lists(MEMBER, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_against_brute_force(members: list[list[Row]], chance: random.Random) -> None:
    weights = [chance.choice([1.0, 2.0, 0.25]) for _ in members]
    retrievers = [told(*member) for member in members]

    def score(holds: Any) -> float:
        """Sum over the members what the best of their Documents is worth that `holds`."""
        total = 0.0
        for weight, member in zip(weights, members, strict=True):
            ranks = [1 + sum(other[1] > row[1] for other in member) for row in member if holds(row[0])]
            total += weight / (RANK_OFFSET + min(ranks)) if ranks else 0
        return total

    union = UnionRetriever.of(*retrievers, weights=weights, granularity="triple")
    singles = {triples[0]: value for triples, value in seen(union.invoke("?"))}
    wanted = {triple for member in members for row in member for triple in row[0]}
    assert singles == pytest.approx({triple: score(lambda row, one=triple: one in row) for triple in wanted})

    union.granularity = "subgraph"
    documents = union.invoke("?")
    assert {triple for triples, _ in seen(documents) for triple in triples} == wanted
    all_answers = {key for member in members for row in member for key in row[2]}
    assert {key for document in documents for key in document.metadata["answers"]} == all_answers
    covered: set[Triple] = set()
    proposed: set[str] = set()
    for document, (triples, value) in zip(documents, seen(documents), strict=True):
        answers = set(document.metadata["answers"])
        assert not set(triples) <= covered or not answers <= proposed
        assert value == pytest.approx(score(lambda row, same=frozenset(triples): frozenset(row) == same))
        covered |= set(triples)
        proposed |= answers
    shuffled = list(zip(retrievers, weights, strict=True))
    chance.shuffle(shuffled)
    again = UnionRetriever.of(*[one for one, _ in shuffled], weights=[weight for _, weight in shuffled])
    scores = {frozenset(triples): value for triples, value in seen(documents)}
    common = [
        (value, scores[frozenset(triples)])
        for triples, value in seen(again.invoke("?"))
        if frozenset(triples) in scores
    ]
    assert all(value == other for value, other in common)  # to the last bit


# --- who is asked for what --------------------------------------------------------------------------------------------


async def test_all_members_are_asked_for_the_same() -> None:
    asked: list[Any] = []
    one, other = told(asked=asked, k=5), told(asked=asked, k=7)
    union = UnionRetriever.of(one, other)
    union.invoke("Which?", k=3)
    assert sorted(asked, key=lambda state: state["k"]) == [
        {"question": "Which?", "k": 5},
        {"question": "Which?", "k": 7},
    ]
    asked.clear()
    union.member_k = 2
    await union.ainvoke("Which?", seed_entities=["a", "c"])
    assert asked == [{"question": "Which?", "k": 2, "seed_entities": ["a", "c"]}] * 2
    asked.clear()
    with pytest.raises(EntityLinkingError):
        union.invoke("Which?", seed_entities=["nobody"])
    with pytest.raises(InvalidArgumentError, match="ranked_entities"):
        union.invoke("Which?", ranked_entities=[])
    assert asked == []


@pytest.mark.parametrize("turn", [1, -1])
async def test_the_list_does_not_hang_on_who_is_first(turn: int) -> None:
    """One waits until the other is done, which shows too that they run side by side."""
    for run in (0, 1):
        done = Event()
        fields = [{"tells": done}, {"waits": done}][::turn]
        one, other = told(([AB], 1), ([BC], 0), **fields[0]), told(([CD], 1), ([BC], 0), **fields[1])
        union = UnionRetriever.of(one, other)
        documents = union.invoke("?") if run else await union.ainvoke("?")
        assert seen(documents) == [([BC], 2 / 62), ([AB], 1 / 61), ([CD], 1 / 61)]
        done = Event()
        fields = [{"tells": done}, {"waits": done}][::turn]
        errors = [ModelCallError("first"), TimeoutError("second")]
        union = UnionRetriever.of(*(told(error=error, **more) for error, more in zip(errors, fields, strict=True)))
        for on_error in ("raise", "skip"):
            union.on_error = on_error
            done.clear()
            with pytest.raises(ModelCallError, match="first"):
                union.invoke("?") if run else await union.ainvoke("?")


# --- members that fail ------------------------------------------------------------------------------------------------


async def test_a_member_that_fails() -> None:
    failing = told(error=TimeoutError("no answer"))
    union = UnionRetriever.of(failing, told(([AB], 1)))
    with pytest.raises(TimeoutError, match="no answer"):
        union.invoke("?")
    with pytest.raises(TimeoutError, match="no answer"):
        await union.ainvoke("?")
    union.on_error = "skip"
    for documents in (union.invoke("?"), await union.ainvoke("?")):
        assert seen(documents) == [([AB], 1 / 61)]
        assert documents[0].metadata["details"]["failed"] == {"Scripted": "TimeoutError: no answer"}
    state = union.stages[0].run.invoke(union.initial_state("?"))
    assert state["failed"] == {"Scripted": "TimeoutError: no answer"}
    assert state["found"]["Scripted"] == []
    whole = UnionRetriever.of(told(([AB], 1)), on_error="skip").invoke("?")
    assert "failed" not in whole[0].metadata["details"]


@pytest.mark.parametrize(
    "error",
    [
        InvalidArgumentError("not so"),
        ModelMismatchError("of others"),
        BudgetError("used up"),
        GraphInterrupt(),
        KeyboardInterrupt(),
    ],
)
def test_what_is_never_skipped(error: BaseException) -> None:
    union = UnionRetriever.of(told(([AB], 1)), told(error=error), on_error="skip", on_refusal="empty")
    with pytest.raises(type(error)):
        union.invoke("?")


@pytest.mark.parametrize("fields", [{}, {"on_error": "skip"}], ids=str)
def test_a_member_that_asks_a_person(fields: dict[str, Any]) -> None:
    """Its interruption is that of the workflow, which goes on with the reply."""

    class Asking(Scripted):
        def _look(self, state: RetrievalState) -> dict[str, Any]:
            self.evidence = rows(([BC], 1, interrupt("Which answer?")))
            return super()._look(state)

    union = UnionRetriever.of(told(([AB], 1)), Asking(index=INDEX), **fields)
    workflow = build_workflow(union, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    stopped = workflow.invoke({"question": "?"}, config)
    assert [one.value for one in stopped["__interrupt__"]] == ["Which answer?"]
    output = workflow.invoke(Command(resume=["c"]), config)
    assert seen(output["documents"]) == [([BC], 1 / 61), ([AB], 1 / 61)]
    assert output["answers"] == ["c"]


def test_a_member_that_refuses_is_skipped() -> None:
    lost, astray = (told(error=EntityLinkingError("nobody there")) for _ in range(2))
    lucky = told(([AB], 1))
    (document,) = UnionRetriever.of(lost, lucky).invoke("?")
    assert document.metadata["details"]["failed"] == {"Scripted": "nobody there"}
    with pytest.raises(EntityLinkingError, match="nobody there"):
        UnionRetriever.of(lost, astray, on_refusal="raise").invoke("?")
    assert UnionRetriever.of(lost, astray).invoke("?") == []
    (document,) = UnionRetriever.of(told(), lucky).invoke("?")  # to find nothing is no failure
    assert "failed" not in document.metadata["details"]


def test_a_failure_is_not_hidden_behind_a_refusal() -> None:
    union = UnionRetriever.of(told(error=EntityLinkingError("nobody")), told(error=TimeoutError("late")))
    for on_error in ("raise", "skip"):
        union.on_error = on_error  # type: ignore[assignment]
        with pytest.raises(TimeoutError):
            union.invoke("?")


def test_each_reason_is_told_once_and_the_most_telling_first() -> None:
    def unsure() -> BaseKGRetriever:
        return told(
            error=LowConfidenceError("Scripted: not sure.", 0.1, hint_python="Rephrase it.", hint_shell="Give --llm.")
        )

    lost = told(error=EntityLinkingError("nobody there."))
    union = UnionRetriever.of(lost, unsure(), unsure(), told())
    with pytest.raises(LowConfidenceError) as refusal:
        union.invoke("?", on_refusal="raise")
    first, _, others = str(refusal.value).partition("Scripted-4: ")
    assert first == "Scripted: not sure. Rephrase it. "
    assert others == "nothing in the graph fits the question '?'. Scripted: nobody there."
    assert refusal.value.on_shell == f"Scripted: not sure. Give --llm. Scripted-4: {others}"
    with_facts = UnionRetriever.of(lost, unsure(), unsure(), told(([AB], 1)))
    why = "Scripted-2, Scripted-3: not sure. Scripted: nobody there."
    assert answer_chain(with_facts).invoke("?") == f"{NO_TARGET} {why}"
    assert cited_answer_chain(with_facts).invoke("?")["explanation"] == f"{NO_TARGET} {why}"


def test_a_budget_ends_the_whole_union() -> None:
    llm = ScriptedChatModel(replies=["never"], cycle=True)
    union = UnionRetriever.of(
        SimGRAGRetriever.from_index(TINY, pattern_generator=LLMPatternGenerator(llm)),
        PCSTRetriever.from_index(TINY),
        on_error="skip",
    )
    output = build_workflow(union, budget=Budget(llm_calls=0)).invoke({"question": AMELIE})
    assert "no more calls" in output["stopped"]
    assert output["documents"] == []
    assert not llm.prompts


# --- in a workflow, with what a person edits --------------------------------------------------------------------------


def paused(union: UnionRetriever) -> tuple[Any, Any]:
    workflow = build_workflow(union, checkpointer=InMemorySaver(), interrupt_before=["fuse"])
    config = {"configurable": {"thread_id": "1"}}
    workflow.invoke({"question": "?"}, config)
    return workflow, config


def test_what_was_found_can_be_edited_before_it_is_united() -> None:
    union = UnionRetriever.of(told(([AB], 1, "b")), told(error=TimeoutError("late")), on_error="skip")
    workflow, config = paused(union)
    state = workflow.get_state(config).values
    assert state["failed"] == {"Scripted-2": "TimeoutError: late"}
    assert state["found"]["Scripted"][0]["triples"] == [[*AB]]
    workflow.update_state(config, {"found": {"Scripted-2": [{"triples": [BC], "score": 1, "answers": ["c"]}]}})
    output = workflow.invoke(None, config)
    assert output["answer"] == "c"
    assert found_by(output["documents"][0]) == {"Scripted-2": (1, 1.0)}
    assert output["documents"][0].metadata["details"]["failed"] == {"Scripted-2": "TimeoutError: late"}


def test_a_workflow_tries_members_again_that_call_a_model() -> None:
    class Once(Scripted):
        def _look(self, state: RetrievalState) -> dict[str, Any]:
            self.asked.append(state)
            if len(self.asked) == 1:
                raise ConnectionError("try again")
            return super()._look(state)

    union = UnionRetriever.of(told(([AB], 1)), Once(index=INDEX, asked=[], by_llm=True, evidence=rows(([BC], 1, "c"))))
    assert [stage.calls_model for stage in union.stages] == [True, False]
    assert build_workflow(union).invoke({"question": "?"})["answer"] == "c"
    assert [stage.calls_model for stage in UnionRetriever.of(told()).stages] == [False, False]


def test_what_was_found_may_be_given() -> None:
    union = UnionRetriever.of(told(error=AssertionError("nobody is asked")), told())
    given = {"Scripted": ({"triples": [AB], "score": 0.5}, {"triples": (BC,), "score": 2, "details": {"x": [1]}})}
    documents = union.invoke("?", found=given)
    assert seen(documents) == [([BC], 1 / 61), ([AB], 1 / 62)]  # ranks follow the scores
    assert documents[0].metadata["details"]["found_by"]["Scripted"]["details"] == {"x": [1]}
    failed = union.invoke("?", found=given, failed={"Scripted-2": "late"})
    assert failed[0].metadata["details"]["failed"] == {"Scripted-2": "late"}
    fresh = UnionRetriever.of(told(([AB], 1)))
    assert seen(fresh.invoke("?", found=None, failed=None)) == [([AB], 1 / 61)]
    assert seen(fresh.invoke("?", failed={"Scripted": "before it was asked"})) == [([AB], 1 / 61)]


@pytest.mark.parametrize(
    ("given", "told_so"),
    [
        ({"found": []}, "found must be"),
        ({"found": {"PCSTRetriever": []}}, r"by the names of members, \['Scripted', 'Scripted-2'\], but got"),
        ({"found": {"Scripted": "text"}}, "found.Scripted must be a valid list, but got 'text'"),
        ({"found": {"Scripted": None}}, "found.Scripted must be a valid list, but got None"),
        ({"failed": ["Scripted"]}, "failed must be"),
        ({"failed": {"Nobody": "late"}}, "failed must be"),
        ({"failed": {"Scripted": 1}}, "failed.Scripted must be a valid string"),
    ],
)
def test_what_is_given_must_be_of_the_members(given: dict[str, Any], told_so: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told_so):
        UnionRetriever.of(told(), told()).invoke("?", **given)


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ("text", "found.Scripted.0 must be a valid dictionary"),
        ({"triples": [AB]}, "score is missing"),
        ({"triples": [], "score": 1}, "one triple or more"),
        ({"triples": [("a", "r", "c")], "score": 1}, "triples of the graph"),
        ({"triples": [("a", "r")], "score": 1}, "triples.0.2 is missing"),
        ({"triples": [AB], "score": float("nan")}, "score must be a finite number"),
        ({"triples": [AB], "score": True}, "score must be a valid number"),
        ({"triples": [AB], "score": 1, "answers": ["nobody"]}, "keys of entities"),
        ({"triples": [AB], "score": 1, "answers": [1]}, "answers.0 must be a valid string"),
        ({"triples": [AB], "score": 1, "details": {"x": {1}}}, "valid JSON value"),
        ({"triples": [], "score": 1, "details": {"lone_entities": []}}, "one triple or more"),
        ({"triples": [], "score": 1, "details": {"lone_entities": ["nobody"]}}, "and lone_entities, but got 'nobody'"),
        ({"triples": [AB], "score": 1, "details": {"lone_entities": 1}}, "and lone_entities, but got 1"),
    ],
)
def test_each_row_is_checked(row: Any, wanted: str) -> None:
    workflow, config = paused(UnionRetriever.of(told(([AB], 1))))
    with pytest.raises(InvalidArgumentError, match=wanted):
        workflow.update_state(config, {"found": {"Scripted": [row]}})


# --- fields, and what the rest of the package asks --------------------------------------------------------------------


def test_what_it_takes_from_its_members() -> None:
    silent, speaking = Silent(index=INDEX), told()
    assert UnionRetriever.of(silent, speaking).proposes_answers
    assert not UnionRetriever.of(silent, Silent(index=INDEX)).proposes_answers
    assert UnionRetriever.of(silent, speaking).suits == {"open", "one entity"}
    assert UnionRetriever.of(speaking).answer_prompt == PROMPT
    own = PromptTemplate.from_template("My own: {question} {evidence}")
    union = UnionRetriever.of(speaking, silent, answer_prompt=own)
    assert union.answer_prompt is own
    assert {name: cast(Any, prompt).template for name, prompt in union.prompts.items()} == {
        "Scripted.look": "Look.",
        "Silent.look": "Look.",
        "answer": own.template,
    }


def refused(match: str, retrievers: Any = None, **fields: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        UnionRetriever(index=INDEX, retrievers=[told(), told()] if retrievers is None else retrievers, **fields)


def test_fields_are_checked() -> None:
    refused("got no retrievers to fuse", retrievers=[])
    refused("BaseKGRetriever", retrievers=["pcst"])
    refused("on another graph", retrievers=[told(), PCSTRetriever.from_index(TINY)])
    refused("3 weights for 2 retrievers", weights=[1, 1, 1])
    refused("greater than 0", weights=[1, 0])
    refused("finite", weights=[1, float("inf")])
    refused("less than or equal to", weights=[1, 1e7])
    refused("answer_prompt", answer_prompt="Answer {question} from {evidence}.")
    refused("granularity", granularity="path")


@pytest.mark.parametrize("members", [("pcst",), (told(), None), ([told(), told()],)])
def test_only_retrievers_are_united(members: Any) -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=r"^UnionRetriever\.of: wanted retrievers .*but got .*UnionRetriever\.of\(\*retrievers\)",
    ):
        UnionRetriever.of(*members)


def test_from_index_takes_retrievers() -> None:
    with pytest.raises(InvalidArgumentError, match=r"UnionRetriever\(index=index, retrievers=\[") as caught:
        UnionRetriever.from_index(INDEX)
    assert "--method simgrag+" in caught.value.hint_shell
    for name, value in {"llm": ScriptedChatModel(replies=[]), "examples": [], "model": "folder"}.items():
        with pytest.raises(InvalidArgumentError, match=f"got \\['{name}'\\].*Give it to them"):
            UnionRetriever.from_index(INDEX, retrievers=[told()], **cast(Any, {name: value}))


# --- confidence -------------------------------------------------------------------------------------------------------


def sure(confidence: float | None, *triples: Triple, **fields: Any) -> Scripted:
    evidence = [Evidence(triples, 1.0, ("c",), confidence=confidence)]
    return Scripted(index=INDEX, evidence=evidence, **fields)


def test_the_surest_member_gives_the_confidence() -> None:
    union = UnionRetriever.of(sure(0.25, AB), sure(0.75, AB), sure(None, AB), sure(None, CD))
    assert [document.metadata["confidence"] for document in union.invoke("?")] == [0.75, None]
    single = UnionRetriever.of(sure(0.25, AB, BC), sure(0.75, BC), granularity="triple").invoke("?")
    assert [(document.metadata["triples"][0][0], document.metadata["confidence"]) for document in single] == [
        ("b", 0.75),
        ("a", 0.25),
    ]
    by = union.invoke("?")[0].metadata["details"]["found_by"]
    assert [found["confidence"] for found in by.values()] == [0.25, 0.75, None]


def test_members_refuse_by_their_own_confidence_or_by_that_of_the_union() -> None:
    asked: list[Any] = []
    member = sure(0.5, AB, asked=asked)
    UnionRetriever.of(member).invoke("?")
    UnionRetriever.of(member, min_confidence=0.25).invoke("?")
    UnionRetriever.of(member, min_confidence=0.25).invoke("?", min_confidence=0)
    assert [state.get("min_confidence") for state in asked] == [None, 0.25, 0]
