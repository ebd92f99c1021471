"""Documents of other retrievers: each answerer, chain and workflow shows them plainly, or names what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver

from kg_retrievers import (
    ExtractiveAnswerer,
    LLMCitedAnswerer,
    Question,
    SimGRAGRetriever,
    answer_chain,
    as_llama_index,
    build_workflow,
    cited_answer_chain,
    evaluate,
    fact_verification_chain,
    llm_answerer,
)
from kg_retrievers.chains import ExtractiveCitedAnswerer, FactVerifier, show_evidence
from kg_retrievers.core.facts_prompt import ANSWER_PROMPT
from kg_retrievers.core.stages import Stage
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.testing import ScriptedChatModel

ASKED = "Who directed Her?"
FACT = ["Her", "directed_by", "Spike Jonze"]
REPLY = '{"explanation": "", "answers": ["Spike Jonze"], "citations": [1], "verdict": "supported"}'

#: Metadata that can be shown: with a fact to cite, and with a text alone.
CITABLE: dict[str, dict[str, Any]] = {
    "triples and score": {"triples": [FACT], "score": 0.5},
    "tuples, no labels": {"triples": [tuple(FACT)], "answers": ["Spike Jonze"], "details": None},
    "some labels": {"triples": [FACT], "labels": {"Her": "Her (2013)"}, "truncated": "yes"},
}
TEXTS: dict[str, dict[str, Any]] = {"nothing": {}, "a source": {"source": "films.txt", "page": 3}}

#: Metadata under keys of ours that mean something else, and the key that the message names.
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a text as triples": ({"triples": "Her directed by Spike Jonze"}, "triples"),
    "pairs as triples": ({"triples": [["Her", "Spike Jonze"]]}, "triples.0"),
    "numbers as triples": ({"triples": [[1, 2, 3]]}, "triples.0"),
    "no triples": ({"triples": None}, "triples"),
    "a text as answers": ({"triples": [FACT], "answers": "Spike Jonze"}, "answers"),
    "a list as labels": ({"triples": [FACT], "labels": ["Her"]}, "labels"),
    "a text as details": ({"triples": [FACT], "details": "found in films.txt"}, "details"),
    "odd entities": ({"triples": [FACT], "details": {"entities": 5}}, "details.entities"),
    "a word as score": ({"triples": [FACT], "score": "high"}, "score"),
    "a text as sources": ({"triples": [FACT], "sources": "films.txt"}, "sources"),
    "an odd style": ({"triples": [FACT], "style": "prose"}, "style"),
}


def llm() -> ScriptedChatModel:
    return ScriptedChatModel(replies=[REPLY], cycle=True)


class Foreign(SimGRAGRetriever):
    """Returns Documents that another retriever made."""

    found: list[Document]

    @property
    def stages(self) -> tuple[Stage, ...]:
        work: Any = lambda state: {"documents": self.found, "answers": []}  # noqa: E731
        return (Stage("retrieve", work, ("documents", "answers")),)


def edited(one: SimGRAGRetriever, documents: list[Document]) -> Any:
    workflow = build_workflow(one, checkpointer=InMemorySaver(), interrupt_before=["verbalize"])
    thread: Any = {"configurable": {"thread_id": "1"}}
    workflow.invoke({"question": ASKED}, thread)
    workflow.update_state(thread, {"documents": documents})
    return workflow.invoke(None, thread)


Way = Callable[[SimGRAGRetriever, list[Document]], Any]


def through(make: Callable[[Foreign], Any]) -> Way:
    return lambda one, documents: make(Foreign(one.index, found=documents))


def given(documents: list[Document]) -> Any:
    return {"question": ASKED, "documents": documents}


PLAIN: dict[str, Way] = {
    "ExtractiveAnswerer": lambda _, documents: ExtractiveAnswerer().invoke(given(documents)),
    "llm_answerer": lambda _, documents: llm_answerer(ANSWER_PROMPT, llm()).invoke(given(documents)),
    "show_evidence": lambda _, documents: show_evidence(documents, "documents"),
    "answer_chain": through(lambda one: answer_chain(one).invoke(ASKED)),
    "answer_chain, llm": through(lambda one: answer_chain(one, llm()).invoke(ASKED)),
    "llama_index": through(lambda one: as_llama_index(one).retrieve(ASKED)),
    "evaluate": through(lambda one: evaluate(one, [Question(ASKED, answers=("Spike Jonze",))])),
}
CITING: dict[str, Way] = {
    "ExtractiveCitedAnswerer": lambda _, documents: ExtractiveCitedAnswerer().invoke(given(documents)),
    "LLMCitedAnswerer": lambda _, documents: LLMCitedAnswerer(llm()).invoke(given(documents)),
    "FactVerifier": lambda _, documents: FactVerifier(llm()).invoke(given(documents)),
    "cited_answer_chain": through(lambda one: cited_answer_chain(one).invoke(ASKED)),
    "cited_answer_chain, llm": through(lambda one: cited_answer_chain(one, llm()).invoke(ASKED)),
    "fact_verification_chain": through(lambda one: fact_verification_chain(one, llm()).invoke(ASKED)),
    "build_workflow": through(lambda one: build_workflow(one).invoke({"question": ASKED})),
    "build_workflow, llm": through(lambda one: build_workflow(one, llm()).invoke({"question": ASKED})),
    "an edit of a workflow": edited,
}


def made(metadata: dict[str, Any]) -> list[Document]:
    return [Document("Spike Jonze made Her.", metadata=metadata)]


@pytest.mark.parametrize("way", [*PLAIN, *CITING])
def test_facts_of_other_retrievers_are_shown(way: str, retriever: SimGRAGRetriever) -> None:
    for metadata in CITABLE.values():
        found = {**PLAIN, **CITING}[way](retriever, made(metadata))
        if isinstance(found, dict):
            assert [one["triple"] for one in found["citations"]] == [FACT]


@pytest.mark.parametrize("way", PLAIN)
def test_texts_of_other_retrievers_are_shown(way: str, retriever: SimGRAGRetriever) -> None:
    for metadata in TEXTS.values():
        PLAIN[way](retriever, made(metadata))
    assert "Spike Jonze made Her." in show_evidence(made({}), "documents").text


@pytest.mark.parametrize("way", CITING)
def test_a_text_without_facts_cannot_be_cited(way: str, retriever: SimGRAGRetriever) -> None:
    with pytest.raises(InvalidArgumentError, match="Document 1 has no triples, so that nothing of it can be cited"):
        CITING[way](retriever, made({}))


@pytest.mark.parametrize("way", [*PLAIN, *CITING])
def test_keys_that_mean_something_else_are_named(way: str, retriever: SimGRAGRetriever) -> None:
    for metadata, key in WRONG.values():
        with pytest.raises(InvalidArgumentError, match="the metadata of Document 1 is not as retrievers") as caught:
            {**PLAIN, **CITING}[way](retriever, made(metadata))
        assert f": {key}" in str(caught.value)
