"""The words of the prompts of all methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.prompts import BasePromptTemplate

from kg_retrievers.core import path_prompt
from kg_retrievers.core.prompts import check_placeholders
from kg_retrievers.graph.verbalize import table_lines
from kg_retrievers.methods.g_retriever import prompts as g_retriever
from kg_retrievers.methods.gnn_rag import prompts as gnn_rag
from kg_retrievers.methods.kaping import prompts as kaping
from kg_retrievers.methods.simgrag import prompts as simgrag
from kg_retrievers.methods.subgraph_rag import prompts as subgraph_rag
from kg_retrievers.questions import choosing
from kg_retrievers.questions.prompts import PATTERN_PROMPT, REPAIR_PROMPT

QUESTION = "who directed {Her}?"
WALK = {"question": QUESTION, "evidence": "[1]\nHer -> directed by -> Spike Jonze"}
TABLES = {"question": QUESTION, "evidence": "node_id,node_attr\n0,Her"}
NO_TABLES = {"question": QUESTION, "evidence": "[1]\n" + "\n".join(table_lines([]))}
LINES = "1. Her -> directed_by -> ?x; wanted: ?x (answers: Spike Jonze)\n2. None of these asks for it."
PROMPTS: dict[str, tuple[BasePromptTemplate[Any], dict[str, Any]]] = {
    "choice": (choosing.CHOICE_PROMPT, {"question": QUESTION, "readings": LINES}),
    "simgrag_pattern": (PATTERN_PROMPT, {"question": QUESTION}),
    "simgrag_repair": (REPAIR_PROMPT, {"question": QUESTION, "reply": '{"triples": [', "error": "it breaks off."}),
    "simgrag_answer": (
        simgrag.ANSWER_PROMPT,
        {"question": QUESTION, "evidence": "[1] (Her, directed_by, Spike Jonze)"},
    ),
    "triple_similarity_answer": (kaping.ANSWER_PROMPT, WALK),
    "subgraph_rag_answer": (subgraph_rag.ANSWER_PROMPT, WALK),
    "subgraph_rag_dialogue": (subgraph_rag.DIALOGUE_PROMPT, WALK),
    "gnn_rag_answer": (path_prompt.ANSWER_PROMPT, WALK),
    **{f"gnn_rag_{name}": (prompt, WALK) for name, prompt in gnn_rag.PROMPTS.items()},
    "pcst_answer": (g_retriever.ANSWER_PROMPT, NO_TABLES),
    "pcst_zero_shot": (g_retriever.ZERO_SHOT_PROMPT, TABLES),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_prompt_snapshot(name: str) -> None:
    """A change of words shows here: bump `VERSION`, then delete the snapshot and run the test again."""
    prompt, values = PROMPTS[name]
    check_placeholders(prompt, list(values), name)
    snapshot = Path(__file__).parents[1] / "snapshots" / f"{name}_prompt.txt"
    text = prompt.format(**values) + "\n"
    if not snapshot.exists():
        snapshot.write_text(text, encoding="utf-8")
        pytest.fail(f"{snapshot.name} was missing and has been written; look at it and run again.")
    assert text == snapshot.read_text(encoding="utf-8")
