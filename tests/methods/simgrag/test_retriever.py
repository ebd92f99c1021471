"""SimGRAG under the contract of all retrievers, and on the sample graph."""

from __future__ import annotations

from typing import Any

import pytest
from built_methods import answers
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    LLMPatternGenerator,
    Pattern,
    QuestionReader,
    SimGRAGRetriever,
    Unknown,
)
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, PatternError, SearchBudgetError
from kg_retrievers.sample import load_graph, load_questions
from kg_retrievers.testing import RetrieverContract, ScriptedChatModel

INDEX = GraphIndex.build(load_graph(), HashedEmbeddings())
X = Unknown("x")
NOLAN = Pattern.of((X, "directed by", "Christopher Nolan"), target="x")
NOLAN_FILMS = ["Memento", "Inception", "Interstellar", "Oppenheimer"]


class TestSimGRAGContract(RetrieverContract):
    retriever_class = SimGRAGRetriever
    exact_k_fields = {"ties": "break"}  # noqa: RUF012


def simgrag(**fields: Any) -> SimGRAGRetriever:
    """Return a retriever on the sample graph."""
    return SimGRAGRetriever.from_index(INDEX, **fields)


def ask(pattern: Any, more: int | None = None, /, **fields: Any) -> list[Document]:
    """Return what is found for a pattern on the sample graph."""
    return simgrag(**fields).invoke("What?", pattern=pattern, **({} if more is None else {"k": more}))


# --- gold patterns ---


@pytest.mark.parametrize("direction", ["ignore", "respect"])
@pytest.mark.parametrize(("ties", "k"), [("merge", 2), ("break", 40)])
def test_gold_patterns_give_the_gold_answers(direction: str, ties: str, k: int) -> None:
    """All groups at the least distance count: a label that two entities share has a group for each."""
    retriever = simgrag(direction=direction, ties=ties, k=k)
    wrong = {}
    for question in load_questions():
        documents = retriever.invoke(question.text, pattern=question.pattern)
        assert len({document.id for document in documents}) == len(documents)
        best = [document for document in documents if document.metadata["score"] == documents[0].metadata["score"]]
        found = {key for keys in answers(best) for key in keys}
        if found != set(question.answers):
            wrong[question.text] = found
    assert not wrong


def test_ties() -> None:
    (merged,) = ask(NOLAN, max_distance=0)
    assert merged.metadata["answers"] == NOLAN_FILMS
    assert [triple[0] for triple in merged.metadata["triples"]] == NOLAN_FILMS
    broken = ask(NOLAN, 9, ties="break", max_distance=0)
    assert answers(broken) == [[film] for film in NOLAN_FILMS]
    assert broken[0].metadata["details"]["unknowns"] == {"entities": {"x": "Memento"}, "relations": {}}
    assert "unknowns" not in merged.metadata["details"]


def test_triples_are_documents_of_their_own() -> None:
    documents = ask(NOLAN, 5, granularity="triple")
    TestSimGRAGContract().check_documents(simgrag(), documents)
    for k in (1, 2, 3, 4):
        assert ask(NOLAN, k, granularity="triple") == ask(NOLAN, granularity="triple", k=k) == documents[:k]
    assert [document.metadata["triples"] for document in documents[:4]] == [
        [[film, "directed_by", "Christopher Nolan"]] for film in NOLAN_FILMS
    ]
    assert [document.metadata["score"] for document in documents[:4]] == [1.0] * 4
    assert documents[4].metadata["score"] < 1


def test_budgets_flag_what_they_cut() -> None:
    """Under any budget, what comes back is whole or flagged; "nothing" under a budget is an error."""
    whole = ask(NOLAN, 3)
    assert not any(document.metadata["truncated"] for document in whole)
    with pytest.raises(SearchBudgetError, match="a budget of 1 steps, or of time, ended"):
        ask(NOLAN, 3, max_scans=1, on_refusal="raise")
    for scans in range(1, 400, 7):
        try:
            cut = ask(NOLAN, 3, max_scans=scans, on_refusal="raise")
        except SearchBudgetError:
            continue
        assert cut
        assert all(document.metadata["truncated"] or document in whole for document in cut)
    assert ask(NOLAN, 3, max_seconds=60) == whole


def test_types() -> None:
    spielberg = "Steven Spielberg"
    for kind, expected in (("film", {"Jurassic Park", "Schindler's List"}), ("country", {"United States"})):
        pattern = Pattern.of((spielberg, Unknown("r"), Unknown("x", kind)), target="x")
        assert set(ask(pattern)[0].metadata["answers"]) == expected
    only_a_type = ask(Pattern.of((Unknown("x", "genre"), Unknown("r"), Unknown("y")), target="x"))
    assert {"Drama", "Western"} <= set(only_a_type[0].metadata["answers"])


def test_distinct() -> None:
    """One person may both write and direct, unless nodes must differ."""
    pattern = Pattern.of(("Her", "directed by", Unknown("a")), ("Her", "written by", Unknown("b")), target="b")
    assert answers(ask(pattern, max_distance=0)) == [["Spike Jonze"]]
    assert ask(pattern, max_distance=0, distinct="nodes") == []
    stated = Pattern.of(*pattern.triples, different=[(Unknown("a"), Unknown("b"))])
    assert ask(stated, max_distance=0) == []


@pytest.mark.parametrize("generator", ["zero-shot", "examples", "llm"])
def test_film_called_unknown(generator: str) -> None:
    reply = '{"triples": [["\\"Unknown\\"", "directed by", "UNKNOWN director 1"]], "target": "UNKNOWN director 1"}'
    fields: dict[str, dict[str, Any]] = {
        "zero-shot": {},
        "examples": {"examples": load_questions()},
        "llm": {"pattern_generator": LLMPatternGenerator(ScriptedChatModel(replies=[reply]))},
    }
    (document,) = simgrag(**fields[generator]).invoke("Who directed Unknown?")
    assert document.metadata["triples"] == [["Unknown", "directed_by", "Jaume Collet-Serra"]]
    assert document.metadata["details"]["pattern"]["source"] == generator


# --- patterns that are supplied ---


@RunnableLambda
def must_not_be_called(input: Any) -> Pattern:
    raise AssertionError("called")


@pytest.mark.parametrize(
    "pattern",
    [
        "Her",
        {"triples": [[{"known": "Dune", "entity": "Dune (1999)"}, "directed by", {"unknown": "x"}]]},
        Pattern.of((X, Unknown("r"), Unknown("y"))),
    ],
    ids=lambda pattern: str(pattern)[:60],
)
def test_bad_pattern_is_refused(pattern: Any) -> None:
    with pytest.raises(PatternError):
        ask(pattern)


# --- building ---


def test_from_index_builds_the_cascade() -> None:
    llm = ScriptedChatModel(replies=[])
    given: dict[str, Any] = {"llm": llm, "examples": load_questions()}
    for names in ([], ["examples"], ["llm"], ["examples", "llm"]):
        generator = simgrag(**{name: given[name] for name in names}).pattern_generator
        assert isinstance(generator, QuestionReader)
        assert (generator.examples is not None, generator.model is not None) == ("examples" in names, "llm" in names)
    assert simgrag(pattern_generator=must_not_be_called).pattern_generator is must_not_be_called
    assert [stage.calls_model for stage in simgrag(llm=llm).stages] == [True, False]
    assert [stage.calls_model for stage in simgrag().stages] == [False, False]
    assert [stage.name for stage in simgrag().stages] == ["generate_pattern", "match_subgraphs"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": object()}, "not trained"),
        ({"llm": ScriptedChatModel(replies=[]), "pattern_generator": must_not_be_called}, "beside llm= or examples="),
        ({"examples": load_questions(), "pattern_generator": must_not_be_called}, "beside llm= or examples="),
        ({"examples": [Question("Who?")]}, "none with a pattern"),
    ],
)
def test_from_index_refuses(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        simgrag(**fields)


def test_an_index_is_wanted() -> None:
    with pytest.raises(InvalidArgumentError, match="SimGRAGRetriever: wanted a GraphIndex, but got 'films-index'"):
        SimGRAGRetriever.from_index("films-index")  # type: ignore[arg-type]
