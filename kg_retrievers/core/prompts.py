"""Checks the prompts and language models that a user hands in."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate

from kg_retrievers.errors import InvalidArgumentError


def check_model(llm: object, who: str) -> None:
    """Check that a language model was given, and not its name.

    Raises:
        InvalidArgumentError: If not.
    """
    if not isinstance(llm, BaseLanguageModel):
        raise InvalidArgumentError(
            f"{who}: wanted a LangChain language model, but got {llm!r}. "
            'Make one from its name: load_chat_model("provider:model").'
        )


def check_placeholders(prompt: BasePromptTemplate[Any], wanted: Collection[str], name: str) -> None:
    """Check that a prompt has exactly the placeholders that will be filled.

    Args:
        prompt: The prompt, often one that a user put in place of ours.
        wanted: The names of the placeholders, in any order.
        name: The name of the prompt, for the message.

    Raises:
        InvalidArgumentError: If it is no prompt template, or a placeholder is missing or will not be filled.

    Example:
        >>> from langchain_core.prompts import PromptTemplate
        >>> check_placeholders(PromptTemplate.from_template("Answer this: {question}"), ["question"], "PATTERN_PROMPT")
    """
    if problem := prompt_problem(prompt, wanted):
        raise InvalidArgumentError(f"{name}: {problem}")


def prompt_problem(prompt: object, wanted: Collection[str]) -> str:
    """Return the fault of a prompt and its remedy.

    The text is empty if the prompt is as wanted.
    """
    if not isinstance(prompt, BasePromptTemplate):
        return (
            f"wanted a prompt template of LangChain, but got {prompt!r:.100}. "
            "Make one of a text: PromptTemplate.from_template(...)."
        )
    got, needed = set(prompt.input_variables), set(wanted)
    advice = []
    if missing := sorted(needed - got):
        advice.append("add " + ", ".join(f"{{{variable}}}" for variable in missing))
    if strange := sorted(got - needed):
        advice.append(
            "remove " + ", ".join(f"{{{variable}}}" for variable in strange) + " (a brace meant as text is doubled)"
        )
    if not advice:
        return ""
    return f"the prompt has the placeholders {sorted(got)}, but needs exactly {sorted(needed)}: {' and '.join(advice)}."


#: The type of a field that holds a prompt for answering. `BaseKGRetriever` checks it.
AnswerPrompt = BasePromptTemplate[Any]
