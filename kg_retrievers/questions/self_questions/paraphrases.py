"""Questions in the words of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate, PromptTemplate

from kg_retrievers.core.replies import without_reasoning
from kg_retrievers.datasets import Question
from kg_retrievers.graph import Known
from kg_retrievers.index import find_name

#: The longest paraphrase, in characters.
LONGEST = 400

#: How many questions the model is asked to say otherwise at the same time.
AT_ONCE = 8

PARAPHRASE_PROMPT = PromptTemplate.from_template(
    """Say the question in other words, as a person might type it who does not know how the data is stored. Ask for \
exactly the same thing. Keep these names letter by letter: {names}

Reply with the new question alone, on one line.

Question: {question}
New question:"""
)


def paraphrased(
    questions: Sequence[Question], llm: BaseLanguageModel[Any], prompt: BasePromptTemplate[Any] = PARAPHRASE_PROMPT
) -> list[Question]:
    """Return questions in the words of a language model, one call each.

    A reply counts if it is one line that holds every name; else the question keeps its text, and so does one whose
    paraphrase is that of an earlier one.

    Args:
        questions: With patterns, whose known nodes are the names.
        llm: The language model.
        prompt: With the placeholders `question` and `names`.
    """
    names = [_names(question) for question in questions]
    values = [
        {"question": question.text, "names": "; ".join(kept)} for question, kept in zip(questions, names, strict=True)
    ]
    replies = (prompt | llm | StrOutputParser()).batch(values, {"max_concurrency": AT_ONCE})
    taken = {question.text.casefold() for question in questions}
    found = []
    for question, kept, reply in zip(questions, names, replies, strict=True):
        text = read_paraphrase(reply, kept)
        if text and text.casefold() not in taken:
            taken.add(text.casefold())
            question = replace(question, text=text)
        found.append(question)
    return found


def read_paraphrase(reply: str, names: Sequence[str]) -> str:
    """Return the question that a reply holds; nothing where it is unreadable or lacks one of the names.

    Example:
        >>> read_paraphrase('"Who is the maker of Her?"', ["Her"])
        'Who is the maker of Her?'
        >>> read_paraphrase("Who is the maker of that film?", ["Her"])
        ''
    """
    lines = [line.strip() for line in without_reasoning(reply).splitlines() if line.strip()]
    if len(lines) != 1 or len(lines[0]) > LONGEST:
        return ""
    text = lines[0].removeprefix("New question:").strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].strip()
    return text if text and all(find_name(name, text) for name in names) else ""


def _names(question: Question) -> list[str]:
    nodes = question.pattern.nodes if question.pattern else ()
    return [node.text for node in nodes if isinstance(node, Known)]
