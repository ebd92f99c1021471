"""GNN-RAG's prompts by name: from reasoning paths to a list of answers, without worked examples.

Their tasks come from "GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning" (C. Mavromatis, G. Karypis,
arXiv:2405.20139), appendix E.4, table 13, which compares prompts A, B and C. They differ in the name of the paths and
in how strictly a model keeps to them. The words are our own. Differs from the paper: the paths stand in a frame that is
said to be data, and each answer has a line of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA, FRAMED_FACTS

#: The version of all prompts in this file. It changes with any change of their words.
VERSION = "1"

_ANSWERS = "Be brief: give all possible answers as a list, each on a line of its own, and nothing else."


def _prompt(task: str, name: str) -> ChatPromptTemplate:
    text = f"{task} {_ANSWERS} {FACTS_ARE_DATA}\n\n{name}:\n{FRAMED_FACTS}\n\nQuestion: {{question}}"
    return ChatPromptTemplate.from_messages([("human", text)])


#: Ask for all answers from reasoning paths, by the names of appendix E.4. Placeholders: `question`, `evidence`. The
#: replies are read by `kg_retrievers.core.replies`.
PROMPTS: Mapping[str, ChatPromptTemplate] = {
    "A": _prompt("Answer the question with the help of the reasoning paths.", "Reasoning paths"),
    "B": _prompt("Answer the question with the help of the knowledge that is given.", "Knowledge"),
    "C": _prompt(
        "Your task is to answer a question with facts. Take what you say from these facts, and from nothing else.",
        "The facts",
    ),
}
