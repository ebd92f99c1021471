"""Checks the prompts and language models that a user hands in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from pydantic import PlainValidator

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
        name: What the prompt is called, for the message.

    Raises:
        InvalidArgumentError: If it is no prompt template, or a placeholder is missing or will not be filled.

    Example:
        >>> from langchain_core.prompts import PromptTemplate
        >>> check_placeholders(PromptTemplate.from_template("Answer this: {question}"), ["question"], "PATTERN_PROMPT")
    """
    if problem := _problem(prompt, wanted):
        raise InvalidArgumentError(f"{name}: {problem}")


def _problem(prompt: object, wanted: Collection[str]) -> str:
    """Return what is wrong with a prompt and what to do about it; nothing where it is as wanted."""
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


def _checked_answer_prompt(prompt: Any) -> BasePromptTemplate[Any]:
    """Check a field that holds a prompt for answering; the name of the field begins the message."""
    if problem := _problem(prompt, ["question", "evidence"]):
        raise ValueError(problem)
    checked: BasePromptTemplate[Any] = prompt
    return checked


def named_prompt(prompt: Any, prompts: Mapping[str, BasePromptTemplate[Any]]) -> Any:
    """Return the prompt of a name, where there are names, and anything else as it is.

    Raises:
        ValueError: If there are names, but not this one.

    Example:
        >>> from langchain_core.prompts import PromptTemplate
        >>> short = PromptTemplate.from_template("{question} {evidence}")
        >>> named_prompt("short", {"short": short}) is named_prompt(short, {}) is short
        True
    """
    if not isinstance(prompt, str) or not prompts:
        return prompt
    if prompt not in prompts:
        raise ValueError(f"wanted a prompt template of LangChain, or the name of one ({', '.join(prompts)})")
    return prompts[prompt]


#: The type of a field that holds a prompt for answering. Pydantic alone refuses every template where the annotation is
#: a parametrised `BasePromptTemplate[...]`.
AnswerPrompt = Annotated[BasePromptTemplate[Any], PlainValidator(_checked_answer_prompt)]
