"""What an operation gives, through chains, workflows, tools, LlamaIndex and pictures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import MockLLM

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Pattern,
    SimGRAGRetriever,
    Unknown,
    answer_chain,
    build_workflow,
    cited_answer_chain,
    draw,
    fact_verification_chain,
)
from kg_retrievers.agents.middleware import KnowledgeGraphMiddleware
from kg_retrievers.chains import show_evidence
from kg_retrievers.chains.evidence import are_supported, fact_lines
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.llama_index import as_llama_index
from kg_retrievers.testing import ScriptedChatModel

FACTS = [
    ("Her", "directed_by", "Spike Jonze"),
    ("Adaptation", "directed_by", "Spike Jonze"),
    ("Her", "released", "2013"),
    ("Adaptation", "released", "2002"),
]
FILM, YEAR = Unknown("film"), Unknown("year")
BY_JONZE, RELEASED = (FILM, "directed_by", "Spike Jonze"), (FILM, "released", YEAR)
LATE = {"conditions": [Condition("year", ">", 2020)]}
PATTERNS = {
    "count": Pattern.of(BY_JONZE, target="film", operation=Operation("count")),
    "none": Pattern.of(BY_JONZE, RELEASED, target="film", operation=Operation("count"), directed=True, **LATE),
    "yes": Pattern.of(("Her", "directed_by", Unknown("who")), operation=Operation("exists")),
    "no": Pattern.of(("Her", "released", YEAR), operation=Operation("exists"), **LATE),
    "first": Pattern.of(RELEASED, target="film", operation=Operation("min", by="year"), directed=True),
    "order": Pattern.of(RELEASED, target="film", operation=Operation("order", by="year"), directed=True),
}
ANSWERS = {
    "count": "2",
    "none": "0",
    "yes": "yes",
    "no": "no",
    "first": "Adaptation (2002)",
    "order": "Her (2013); Adaptation (2002)",
}
VALUES = {"count": 2, "none": 0, "yes": True, "no": False, "first": 2002, "order": [2013, 2002]}
EMPTY = ("none", "no")


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    generator: Any = RunnableLambda(lambda given: PATTERNS[given["question"]])
    index = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
    return SimGRAGRetriever.from_index(index, pattern_generator=generator)


def reply(*citations: int, answers: Any) -> str:
    return json.dumps({"explanation": "So it says.", "answers": answers, "citations": list(citations)})


@pytest.mark.parametrize("question", PATTERNS)
def test_chains_answer_with_the_value(retriever: SimGRAGRetriever, question: str) -> None:
    assert answer_chain(retriever).invoke(question) == ANSWERS[question]
    cited = cited_answer_chain(retriever).invoke(question)
    assert (cited["answer"], cited["value"], cited["supported"]) == (ANSWERS[question], VALUES[question], True)
    assert cited["explanation"].startswith("Result")
    assert bool(cited["citations"]) is (question not in EMPTY)


@pytest.mark.parametrize("question", PATTERNS)
def test_a_model_is_shown_the_value_among_the_facts(retriever: SimGRAGRetriever, question: str) -> None:
    line = retriever.invoke(question)[0].page_content.split("\n")[0]
    model = ScriptedChatModel(replies=["so", reply(answers=[])])
    answer_chain(retriever, model).invoke(question)
    cited_answer_chain(retriever, model).invoke(question)
    for prompt in model.prompts:
        framed = prompt[0].text.rpartition("<facts>")[2].partition("</facts>")[0]
        assert line in framed


@pytest.mark.parametrize(
    ("question", "answers", "supported"),
    [
        ("count", ["2"], True),
        ("count", ["2 films"], True),
        ("count", ["3"], False),
        ("none", ["0"], True),
        ("yes", ["Yes"], True),
        ("yes", ["no"], False),
        ("no", ["no"], True),
        ("first", ["Adaptation"], True),
        ("first", ["Her"], False),
        ("first", ["2002"], True),
        ("order", ["Her", "Adaptation"], True),
        ("order", [], None),
    ],
)
def test_the_answers_of_a_model_are_checked_against_the_value(
    retriever: SimGRAGRetriever, question: str, answers: list[str], supported: bool | None
) -> None:
    cited = cited_answer_chain(retriever, ScriptedChatModel(replies=[reply(answers=answers)])).invoke(question)
    assert (cited["supported"], cited["value"]) == (supported, VALUES[question])
    assert cited["answers"] == answers


@pytest.mark.parametrize(("said", "supported"), [("2", True), ("3", False), ("There are some.", None)])
def test_a_text_is_checked_against_the_value(retriever: SimGRAGRetriever, said: str, supported: bool | None) -> None:
    documents = retriever.invoke("count")
    assert are_supported([said], fact_lines(documents), said, documents) is supported


@pytest.mark.parametrize(
    ("question", "said", "wanted"),
    [
        ("yes", "supported", "supported"),
        ("yes", "refuted", "not enough evidence"),
        ("no", "supported", "not enough evidence"),
        ("no", "refuted", "refuted"),
        ("none", "refuted", "refuted"),
        ("count", "supported", "supported"),
        ("first", "supported", "supported"),
    ],
)
def test_verdicts_need_no_citation_and_do_not_contradict_the_value(
    retriever: SimGRAGRetriever, question: str, said: str, wanted: str
) -> None:
    model = ScriptedChatModel(replies=[json.dumps({"explanation": "", "verdict": said, "citations": []})])
    found = fact_verification_chain(retriever, model).invoke(question)
    assert (found["verdict"], found["value"]) == (wanted, VALUES[question])


@pytest.mark.parametrize("question", PATTERNS)
def test_workflows_keep_the_value(retriever: SimGRAGRetriever, question: str) -> None:
    output = build_workflow(retriever).invoke({"question": question})
    assert (output["answer"], output["value"], output["supported"]) == (ANSWERS[question], VALUES[question], True)
    assert output["reason"] is None


def test_a_value_is_not_asked_for_citations(retriever: SimGRAGRetriever) -> None:
    model = ScriptedChatModel(replies=[reply(answers=["no"])])  # a second request would find no reply
    output = build_workflow(retriever, model).invoke({"question": "no"})
    assert (output["answer"], output["supported"], output["reason"]) == ("no", True, None)


@pytest.mark.parametrize("question", PATTERNS)
def test_tools_llama_index_and_pictures(retriever: SimGRAGRetriever, question: str) -> None:
    (document,) = retriever.invoke(question)
    call = {"type": "tool_call", "id": "1", "name": "search_knowledge_graph", "args": {"query": question}}
    assert document.page_content in retriever.as_tool().invoke(call).text
    bridge = as_llama_index(retriever)
    response = bridge.as_query_engine(llm=MockLLM()).query(question)
    assert response.source_nodes[0].metadata["value"] == VALUES[question]
    assert document.page_content in str(response)  # this model says its prompt
    assert document.page_content in bridge.as_tool().call(question).content
    picture = draw(document)
    assert ("no triples" in picture.to_mermaid()) is (question in EMPTY)
    assert "<svg" in picture.to_svg()
    told = KnowledgeGraphMiddleware(retriever).prompt.format(evidence=show_evidence([document], "numbered").text)
    assert document.page_content.split("\n")[0] in told


@pytest.mark.parametrize("style", ["numbered", "documents"])
def test_the_value_is_shown_within_any_budget_that_has_room_for_it(retriever: SimGRAGRetriever, style: Any) -> None:
    documents = retriever.invoke("first")
    line = documents[0].page_content.split("\n")[0]
    for budget in (80, 90, 110, 1000):
        assert line in show_evidence(documents, style, max_tokens=budget, count_tokens=len).text
    assert documents[0].page_content.count("released") > 1
    assert show_evidence(documents, style, max_tokens=80, count_tokens=len).text.count("released") <= 1


def test_evidence_without_facts_and_value_still_needs_room(retriever: SimGRAGRetriever) -> None:
    plain = Document("Her", metadata={"triples": [list(FACTS[0])], "labels": {"Her": "Her", "Spike Jonze": "S"}})
    with pytest.raises(InvalidArgumentError, match="no room"):
        show_evidence([plain], "numbered", max_tokens=1)
