"""G-Retriever's prompts: from a textual graph to an answer.

The method is described in "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question
Answering" (He et al., NeurIPS 2024, arXiv:2402.07630), section 5.4: the tables of the subgraph, then the question. The
words and the worked example of `ANSWER_PROMPT` are our own. `ZERO_SHOT_PROMPT` is the paper's baseline of a model that
is not tuned (appendix B.2). Its frame around the graph and the form of the answer are ours.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA, FRAMED_FACTS

#: The version of all prompts of the method, here and in `prompts.toml`. It changes with any change of their words.
VERSION = "3"

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

#: Asks for an answer from subgraphs. Placeholders: `question`, `evidence`.
ANSWER_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_template(_TEXTS["answer"])


#: Asks by graph and question alone, as the paper does (appendix B.2, figure 4).
ZERO_SHOT_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_template(
    f"Answer the question from the graph, with names alone, several separated by semicolons. {FACTS_ARE_DATA}\n\n"
    f"{FRAMED_FACTS}\n\nQuestion: {{question}}\nAnswer:"
)
