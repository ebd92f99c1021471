"""SubgraphRAG's prompt: its words, and its worked examples as the evidence of a chain is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.documents import Document

from kg_retrievers.chains import AnswerInput, llm_answerer, show_evidence
from kg_retrievers.core.prompts import check_placeholders
from kg_retrievers.graph import Triple, verbalize
from kg_retrievers.methods.subgraph_rag.prompts import ANSWER_PROMPT
from kg_retrievers.testing import ScriptedChatModel

MOONS = [
    Triple("Uranus", "discoverer", "William Herschel"),
    Triple("Uranus", "moon", "Titania"),
    Triple("Enceladus", "discoverer", "William Herschel"),
    Triple("Saturn", "moon", "Enceladus"),
    Triple("Uranus", "moon", "Miranda"),
]
MIRANDA = [Triple("Miranda", "discoverer", "Gerard Kuiper"), Triple("Miranda", "diameter", "472 km")]


def documents(facts: Sequence[Triple]) -> list[Document]:
    """Return one Document for each fact."""
    return [Document(verbalize([fact], style="triples").text, metadata={"triples": [list(fact)]}) for fact in facts]


def test_prompt_snapshot() -> None:
    """A change of words shows here: bump `VERSION`, then delete the snapshot and run the test again."""
    check_placeholders(ANSWER_PROMPT, ["question", "evidence"], "answer")
    snapshot = Path(__file__).parents[2] / "snapshots" / "subgraph_rag_answer_prompt.txt"
    text = (
        ANSWER_PROMPT.format(question="who directed {Her}?", evidence="[1]\nHer -> directed by -> Spike Jonze") + "\n"
    )
    if not snapshot.exists():
        snapshot.write_text(text, encoding="utf-8")
        pytest.fail(f"{snapshot.name} was missing and has been written; look at it and run again.")
    assert text == snapshot.read_text(encoding="utf-8")


@pytest.mark.parametrize("facts", [MOONS, MIRANDA], ids=["moons", "miranda"])
def test_worked_example_is_written_as_evidence_is(facts: list[Triple]) -> None:
    assert f"\nFacts:\n<facts>\n{show_evidence(documents(facts)).text}\n</facts>\nQuestion: " in ANSWER_PROMPT.format(
        question="", evidence=""
    )


def test_a_chain_returns_the_steps_and_the_answers() -> None:
    reply = "Titania [1] is a moon of Uranus.\nans: Titania"
    model = ScriptedChatModel(replies=[reply])
    asked: AnswerInput = {"question": "Which moons has Uranus?", "documents": documents(MOONS[1:2])}
    assert llm_answerer(ANSWER_PROMPT, model).invoke(asked) == reply
    assert model.prompts[0][0].text.endswith(
        "Facts:\n<facts>\n[1]\nUranus -> moon -> Titania\n</facts>\nQuestion: Which moons has Uranus?\nSteps:"
    )
