"""SubgraphRAG's prompt: its words, and its worked examples as the evidence of a chain is written."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from kg_retrievers.chains import AnswerInput, llm_answerer, show_evidence
from kg_retrievers.graph import Triple, verbalize
from kg_retrievers.methods.subgraph_rag.prompts import ANSWER_PROMPT, DIALOGUE_PROMPT, EXAMPLE_FACTS, parse_answers
from kg_retrievers.testing import ScriptedChatModel

MOONS = [
    Triple("Uranus", "discoverer", "William Herschel"),
    Triple("Uranus", "moon", "Titania"),
    Triple("Enceladus", "discoverer", "William Herschel"),
    Triple("Saturn", "moon", "Enceladus"),
    Triple("Uranus", "moon", "Miranda"),
]


def documents(facts: Sequence[Triple]) -> list[Document]:
    """Return one Document for each fact."""
    return [Document(verbalize([fact], style="triples").text, metadata={"triples": [list(fact)]}) for fact in facts]


def test_a_chain_returns_the_steps_and_the_answers() -> None:
    reply = "Titania [1] is a moon of Uranus.\nans: Titania"
    model = ScriptedChatModel(replies=[reply])
    asked: AnswerInput = {"question": "Which moons has Uranus?", "documents": documents(MOONS[1:2])}
    assert llm_answerer(ANSWER_PROMPT, model).invoke(asked) == reply
    assert model.prompts[0][0].text.endswith(
        "Facts:\n<facts>\n[1]\nUranus -> moon -> Titania\n</facts>\nQuestion: Which moons has Uranus?\nSteps:"
    )


def test_the_dialogue_shows_thirty_triples_as_evidence_is_shown() -> None:
    """System, the example as it was asked and answered, the question; the example's answers are read."""
    facts = [Triple(*fact.split(" -> ")) for fact in EXAMPLE_FACTS]
    assert len(set(facts)) == 30
    messages = DIALOGUE_PROMPT.format_messages(question="Who?", evidence="[1]\nA -> b -> C")
    assert [message.type for message in messages] == ["system", "human", "ai", "human"]
    assert f"<facts>\n{show_evidence(documents(facts)).text}\n</facts>" in messages[1].text
    assert messages[3].text == "Triples:\n<facts>\n[1]\nA -> b -> C\n</facts>\n\nQuestion: Who?"
    answers = parse_answers(messages[2].text)
    assert answers == ["Germany", "Poland", "Slovakia", "Austria"]
    bordering = [fact.tail for fact in facts if fact[:2] == ("Czech Republic", "shares border with")]
    assert answers == bordering
