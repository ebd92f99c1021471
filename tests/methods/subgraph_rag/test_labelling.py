"""Labels of triples by a language model: good, ragged, empty and hostile replies."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.prompts import PromptTemplate

from kg_retrievers import NeighborhoodRetriever, TripleLabeller
from kg_retrievers.datasets import Question
from kg_retrievers.errors import AnswerParseError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.methods.subgraph_rag.labelling import parse_relevant
from kg_retrievers.testing import ScriptedChatModel

SHOWN = ["Her -> directed by -> Spike Jonze", "Her -> has genre -> Drama", "2 Guns -> in -> 2013"]
FACTS = [("Her", "directed_by", "Q1"), ("Her", "has_genre", "Drama"), ("Her", "starring", "Amy Adams")]
RETRIEVER = NeighborhoodRetriever.from_index(
    GraphIndex.build(KnowledgeGraph.from_triples(FACTS, labels={"Q1": "Spike Jonze"}), HashedEmbeddings(16))
)
QUESTION = Question("Who directed Her?", ("Her",), ("Q1",))


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("evidence: Her -> directed by -> Spike Jonze", [0]),
        ("evidence: [2] Her -> has genre -> Drama\nevidence: [1] Her -> directed by -> Spike Jonze", [1, 0]),
        ("Sure!\n- **Evidence:** `her -> has  genre -> drama`.\n", [1]),
        ("evidence: (Her -> has genre -> Drama)", [1]),
        ("evidence: 2 Guns -> in -> 2013", [2]),
        ("evidence: 3. 2 Guns -> in -> 2013", [2]),
        ("evidence: [1]", [0]),
        ("evidence: [1], since he directed it", [0]),
        ("evidence: [1]\nevidence: Her -> directed by -> Spike Jonze", [0]),
        ("evidence: [1]\nevidence: [9] Her -> likes -> Mallory", [0]),
        ("<think>evidence: [2]</think>evidence: [1]", [0]),
        ("evidence: none", []),
        ("evidence: not available", []),
        ("evidence:", []),
    ],
)
def test_replies(reply: str, found: list[int]) -> None:
    assert parse_relevant(reply, SHOWN) == found


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", 'no line of the reply begins with "evidence:"'),
        ("[1] Her -> directed by -> Spike Jonze", 'no line of the reply begins with "evidence:"'),
        ("evidence: Mallory -> is -> the answer", "names a triple that was shown"),
        ("evidence: [0]\nevidence: [4]", "names a triple that was shown"),
    ],
)
def test_unreadable_replies(reply: str, message: str) -> None:
    with pytest.raises(AnswerParseError, match=message) as caught:
        parse_relevant(reply, SHOWN)
    assert caught.value.reply == reply


@pytest.mark.parametrize("text", ["evidence:" * 9_999, "*" * 99_999, "evidence: " + "(" * 99_999, "\n" * 99_999])
def test_hostile_replies_are_read(text: str) -> None:
    with pytest.raises(AnswerParseError):
        parse_relevant(text, SHOWN)


def test_a_question_gets_the_triples_that_matter() -> None:
    model = ScriptedChatModel(replies=["evidence: [1] Her -> directed by -> Spike Jonze"])
    found = TripleLabeller(RETRIEVER, model).invoke(QUESTION)
    assert found.triples == (Triple("Her", "directed_by", "Q1"),)
    assert (found.text, found.answers) == (QUESTION.text, QUESTION.answers)
    shown = model.prompts[0][-1].text
    assert shown.startswith("Triples:\n<facts>\n[1] Her -> directed by -> Spike Jonze\n[2] ")
    assert shown.endswith("\n</facts>\n\nQuestion: Who directed Her?")


def test_an_unreadable_reply_is_asked_for_once_more() -> None:
    model = ScriptedChatModel(replies=["Spike Jonze", "evidence: [1]", "hm", "hm"])
    labeller = TripleLabeller(RETRIEVER, model, max_triples=1)
    assert len(labeller.invoke(QUESTION).triples) == 1
    assert model.prompts[1][-2].text == "Spike Jonze"
    assert "[2]" not in model.prompts[0][-1].text
    with pytest.raises(AnswerParseError, match="begins with"):
        labeller.invoke(QUESTION)


async def test_without_triples_no_model_is_asked() -> None:
    """Where the question names no entity; entities are linked where none are given."""
    model = ScriptedChatModel(replies=["evidence: none"])
    labeller = TripleLabeller(RETRIEVER, model)
    assert (await labeller.ainvoke(Question("Who wrote Dune?"))).triples == ()
    assert not model.prompts
    assert (await labeller.ainvoke(Question("Who directed Her?"))).triples == ()
    assert len(model.prompts) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"retriever": "simgrag"}, "retriever must be a BaseKGRetriever, but got 'simgrag'"),
        ({"llm": "openai:gpt"}, "wanted a LangChain language model"),
        ({"max_triples": 0}, "max_triples must be 1 or more, but got 0"),
        ({"prompt": PromptTemplate.from_template("{question}")}, "TripleLabeller: prompt: "),
        ({"repair_prompt": PromptTemplate.from_template("{question}")}, "TripleLabeller: repair_prompt: "),
    ],
    ids=str,
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"retriever": RETRIEVER, "llm": ScriptedChatModel(replies=[])} | arguments
    with pytest.raises(InvalidArgumentError, match=message):
        TripleLabeller(given.pop("retriever"), given.pop("llm"), **given)
