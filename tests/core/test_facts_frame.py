"""The frame of facts, in all words that show facts to a model."""

from __future__ import annotations

import pytest
from langchain_core.prompts import BasePromptTemplate

from kg_retrievers.agents.middleware import EVIDENCE_PROMPT
from kg_retrievers.chains import prompts as chains
from kg_retrievers.core import facts_prompt, path_prompt
from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA, TOOL_MESSAGE
from kg_retrievers.methods.g_retriever import prompts as g_retriever
from kg_retrievers.methods.gnn_rag.prompts import PROMPTS as PROMPTS_OF_GNN_RAG
from kg_retrievers.methods.kaping import prompts as kaping
from kg_retrievers.methods.sg_rag import prompts as sg_rag
from kg_retrievers.methods.simgrag import prompts as simgrag
from kg_retrievers.methods.subgraph_rag import prompts as subgraph_rag

MODULES = (
    *(chains, facts_prompt, path_prompt, g_retriever, kaping, sg_rag, simgrag),
    subgraph_rag,
)

PROMPTS = {
    f"{module.__name__}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, BasePromptTemplate) and "evidence" in value.input_variables
}


def test_prompts_of_all_modules_are_read() -> None:
    assert {name.rpartition(".")[0] for name in PROMPTS} == {module.__name__ for module in MODULES}


@pytest.mark.parametrize("prompt", [TOOL_MESSAGE, EVIDENCE_PROMPT, *PROMPTS.values(), *PROMPTS_OF_GNN_RAG.values()])
def test_facts_are_framed_and_called_data(prompt: BasePromptTemplate) -> None:
    text = prompt.invoke(dict.fromkeys(prompt.input_variables, "SHOWN")).to_string()
    assert FACTS_ARE_DATA in text
    assert "<facts>\nSHOWN\n</facts>" in text
