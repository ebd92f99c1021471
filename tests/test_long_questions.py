"""A question longer than 10,000 characters is refused at once, wherever it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from kg_retrievers import (
    EntityLinker,
    FollowUpReader,
    GraphIndex,
    KnowledgeGraphMiddleware,
    KnowledgeGraphToolkit,
    Pattern,
    Question,
    QuestionReader,
    SimGRAGRetriever,
    answer_chain,
    as_llama_index,
    build_router,
    build_workflow,
    cited_answer_chain,
    evaluate,
    explore_agent,
    fact_verification_chain,
    read_questions,
    why_not,
)
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError
from kg_retrievers.serving.mcp.server import GraphServer
from kg_retrievers.serving.service import GraphService
from kg_retrievers.testing import ScriptedChatModel

LONG = ("Who directed Her? " * 5000)[:80_000]
LONGEST = ("Who directed Her? " * 600)[:10_000]
TOLD = "at most 10,?000 characters, but got"

NO_MODEL = ScriptedChatModel(replies=[])
TURN: Any = {"question": "Who directed Her?", "entities": [], "answers": ["Spike Jonze"]}

WAYS: dict[str, Callable[[SimGRAGRetriever], Any]] = {
    "invoke": lambda one: one.invoke(LONG),
    "ainvoke": lambda one: asyncio.run(one.ainvoke(LONG)),
    "batch": lambda one: one.batch(["Who directed Her?", LONG]),
    "seed_entities": lambda one: one.invoke("Who directed Her?", seed_entities=[LONG]),
    "EntityLinker": lambda one: EntityLinker(one.index).link(LONG),
    "QuestionReader": lambda one: QuestionReader(one.index).read(LONG),
    "FollowUpReader": lambda one: FollowUpReader(one.index).read(LONG, [TURN]),
    "nearest_entities": lambda one: one.index.nearest_entities(["Her", LONG], 1),
    "nearest_relations": lambda one: one.index.nearest_relations([LONG], 1),
    "triple_similarities": lambda one: one.index.triple_similarities(LONG),
    "match": lambda one: one.match(Pattern.from_dict({"triples": [[LONG, "directed_by", "UNKNOWN x"]]})),
    "answer_chain": lambda one: answer_chain(one).invoke(LONG),
    "cited_answer_chain": lambda one: cited_answer_chain(one).invoke(LONG),
    "fact_verification_chain": lambda one: fact_verification_chain(one, NO_MODEL).invoke(LONG),
    "build_workflow": lambda one: build_workflow(one).invoke({"question": LONG}),
    "build_router": lambda one: build_router({"first": one, "second": one}).invoke({"question": LONG}),
    "explore_agent": lambda one: explore_agent(NO_MODEL, KnowledgeGraphToolkit(one.index)).invoke({"question": LONG}),
    "toolkit": lambda one: KnowledgeGraphToolkit(one.index).ask(LONG),
    "llama_index": lambda one: as_llama_index(one).retrieve(LONG),
    "evaluate": lambda one: evaluate(one, [Question(LONG, answers=("Spike Jonze",))]),
    "why_not": lambda one: why_not(one, LONG, "Spike Jonze"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_long_question_is_an_error_that_states_the_bound(way: str, retriever: SimGRAGRetriever) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{TOLD} (80,000|79,999|'Who)"):
        WAYS[way](retriever)


def test_a_question_of_ten_thousand_characters_is_answered(retriever: SimGRAGRetriever) -> None:
    assert retriever.invoke(LONGEST)[0].metadata["answers"] == ["Spike Jonze"]


def test_a_file_of_questions_names_the_line(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(f'{{"question": "Who directed Her?"}}\n{{"question": "{LONG}"}}\n')
    with pytest.raises(KGRetrieversError, match=f"questions.jsonl:2: .*{TOLD} 80,000. Give a shorter text"):
        read_questions(file)


def test_the_shell_states_the_bound_on_one_line(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "films.csv").write_text("head,relation,tail\nHer,directed_by,Spike Jonze\n")
    code, _, told = run("ask", str(tmp_path / "films.csv"), LONG)
    assert code == 2
    assert told.strip().endswith("must have at most 10,000 characters, but got 80,000. Give a shorter text.")


def test_tools_tell_an_agent_the_bound(retriever: SimGRAGRetriever, index: GraphIndex) -> None:
    assert "at most 10,000 characters" in retriever.as_tool().invoke({"query": LONG})
    reply = asyncio.run(GraphServer(GraphService(index)).call_tool("ask", {"question": LONG}))
    assert reply.is_error
    assert "at most 10000 characters" in reply.content[0].text  # type: ignore[union-attr]


def test_an_agent_with_the_middleware_goes_on_after_a_long_message(retriever: SimGRAGRetriever) -> None:
    state: Any = {"messages": [HumanMessage(LONG)]}
    found = KnowledgeGraphMiddleware(retriever).before_agent(state, None)
    assert found["knowledge_graph_documents"] == []
    assert "at most 10,000 characters" in found["knowledge_graph_refusal"]
