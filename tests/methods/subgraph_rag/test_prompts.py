"""SubgraphRAG's prompt: its words, and its worked examples as the evidence of a chain is written."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from kg_retrievers.chains import show_evidence
from kg_retrievers.graph import Triple, verbalize
from kg_retrievers.methods.subgraph_rag.prompts import DIALOGUE_PROMPT, parse_answers


def documents(facts: Sequence[Triple]) -> list[Document]:
    """Return one Document for each fact."""
    return [Document(verbalize([fact], style="triples").text, metadata={"triples": [list(fact)]}) for fact in facts]


def test_the_dialogue_shows_thirty_triples_as_evidence_is_shown() -> None:
    """System, the example as it was asked and answered, the question; the example's answers are read."""
    messages = DIALOGUE_PROMPT.format_messages(question="Who?", evidence="[1]\nA -> b -> C")
    facts = [Triple(*line.split(" -> ")) for line in messages[1].text.splitlines() if " -> " in line]
    assert len(set(facts)) == 30
    assert [message.type for message in messages] == ["system", "human", "ai", "human"]
    assert f"<facts>\n{show_evidence(documents(facts)).text}\n</facts>" in messages[1].text
    assert messages[3].text == "Triples:\n<facts>\n[1]\nA -> b -> C\n</facts>\n\nQuestion: Who?"
    answers = parse_answers(messages[2].text)
    assert answers == ["Germany", "Poland", "Slovakia", "Austria"]
    bordering = [fact.tail for fact in facts if fact[:2] == ("Czech Republic", "shares border with")]
    assert answers == bordering
