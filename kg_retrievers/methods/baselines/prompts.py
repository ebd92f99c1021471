"""Prompts for a question alone, without evidence: the answer at once, or after a chain of thought.

The first asks for what the row "NoRetriever" of SubgraphRAG stands for (Li, Miao and Li, ICLR 2025, arXiv:2410.20724,
table 9), the second adds what T. Kojima et al. ask for: Large Language Models are Zero-Shot Reasoners (NeurIPS 2022,
arXiv:2205.11916), "step by step". The other words are our own.
"""

from __future__ import annotations

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.core.replies import marked_answers

#: The version of all prompts in this file. It changes with any change of their words.
VERSION = "1"

#: Asks for an answer without evidence. Placeholder: `question`.
ANSWER_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_messages(
    [
        (
            "human",
            """\
Answer the question from what you know.

Rules
1. If there are several answers, give all of them, separated by semicolons.
2. Give names and values alone, without a sentence around them.
3. If you do not know the answer, write only: not available

Question: {question}
Answer:""",
        )
    ]
)

#: Asks for steps, then for an answer on the last line. Placeholder: `question`.
CHAIN_OF_THOUGHT_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_messages(
    [
        (
            "human",
            """\
Answer the question from what you know.

Rules
1. Think step by step, and write the steps down.
2. End with one line that begins with "Answer:" and holds the answer alone, names and values without a sentence around \
them. If there are several answers, give all of them, separated by semicolons.
3. If you do not know the answer, end with the line "Answer: not available".

Question: {question}
Steps:""",
        )
    ]
)


def parse_answers(reply: str) -> list[str]:
    """Read the answers from a model's reply to `ANSWER_PROMPT`; none where it says "not available".

    Example:
        >>> parse_answers("Netherlands; France"), parse_answers("not available")
        (['Netherlands', 'France'], [])
    """
    return marked_answers(reply)
