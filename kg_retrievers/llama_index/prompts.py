"""Converts prompts of a retriever to templates of LlamaIndex, and back."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate, PromptTemplate
from llama_index.core import prompts as llama_prompts
from llama_index.core.llms import MessageRole

from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.llama_index.models import ROLES, chat_messages

#: What LlamaIndex calls the placeholders of our prompts; others have the same name on both sides.
THEIR_NAMES = {"question": "query_str", "evidence": "context_str"}
OUR_NAMES = {theirs: ours for ours, theirs in THEIR_NAMES.items()}


def to_llama_index(prompt: BasePromptTemplate[Any]) -> llama_prompts.BasePromptTemplate:
    """Write a prompt as a template of LlamaIndex, which fills `{name}` and leaves every other brace as it is.

    Raises:
        InvalidArgumentError: If the prompt holds the text of a placeholder itself, or more than texts by a human, an AI
            or the system.

    Example:
        >>> from langchain_core.prompts import PromptTemplate
        >>> to_llama_index(PromptTemplate.from_template('Answer {question} as {{"answer": ...}}.')).get_template()
        'Answer {query_str} as {"answer": ...}.'
    """
    names = dict(zip(prompt.input_variables, _their_names(prompt.input_variables), strict=True))
    messages = chat_messages(_filled(prompt, {name: f"{{{theirs}}}" for name, theirs in names.items()}))
    template: llama_prompts.BasePromptTemplate = llama_prompts.ChatPromptTemplate(messages)
    if len(messages) == 1 and messages[0].role == MessageRole.USER:
        template = llama_prompts.PromptTemplate(messages[0].content or "")
    marks = _marks(names)
    by_llama_index: dict[str, Any] = {names[name]: mark for name, mark in marks.items()}
    if template.format_messages(**by_llama_index) != chat_messages(_filled(prompt, marks)):
        raise InvalidArgumentError(
            f"to_llama_index: a prompt holds {' or '.join(f'{{{name}}}' for name in names.values())} as text, which "
            "LlamaIndex would take for a placeholder. Reword it."
        )
    return template


def _their_names(names: Iterable[str]) -> list[str]:
    return [THEIR_NAMES.get(name, name) for name in names]


def _filled(prompt: BasePromptTemplate[Any], values: dict[str, str]) -> list[BaseMessage]:
    return prompt.format_prompt(**values).to_messages()


def _marks(names: Iterable[str]) -> dict[str, str]:
    """Return a text for each placeholder, to find it by; no prompt holds these control characters."""
    return {name: f"\x02{name}\x03" for name in names}


def to_langchain(
    template: llama_prompts.BasePromptTemplate, replaces: BasePromptTemplate[Any]
) -> BasePromptTemplate[Any]:
    """Write a template of LlamaIndex as a prompt; it may have our names of the placeholders or LlamaIndex's.

    What LlamaIndex would take for a placeholder, but is text in the prompt that it replaces, is text in it, too.

    Raises:
        InvalidArgumentError: If the template computes what it shows by functions, or holds more than texts by a user,
            an assistant or the system.
    """
    if template.function_mappings:
        raise InvalidArgumentError(
            f"to_langchain: the template computes {sorted(template.function_mappings)} by functions. Leave them out."
        )
    text = set(to_llama_index(replaces).template_vars) - {*_their_names(replaces.input_variables)}
    mapped = template.template_var_mappings or {}
    names = {*template.template_vars, *mapped} - {*mapped.values(), *template.kwargs, *text}
    marks = _marks(OUR_NAMES.get(name, name) for name in names)
    values: dict[str, Any] = {name: marks[OUR_NAMES.get(name, name)] for name in names}
    messages: list[tuple[str, str]] = []
    for message in template.format_messages(**values):
        if message.role not in ROLES.values() or any(block.block_type != "text" for block in message.blocks):
            raise InvalidArgumentError(
                f"to_langchain: a prompt holds texts by a user, an assistant or the system, but got {message!r:.200}."
            )
        content = (message.content or "").replace("{", "{{").replace("}", "}}")
        for name, mark in marks.items():
            content = content.replace(mark, f"{{{name}}}")
        messages.append((message.role.value, content))
    if [role for role, _ in messages] == ["user"]:
        return PromptTemplate.from_template(messages[0][1])
    return ChatPromptTemplate.from_messages(messages)


def with_prompt(retriever: BaseKGRetriever, name: str, template: llama_prompts.BasePromptTemplate) -> BaseKGRetriever:
    """Return a copy of the retriever with another prompt of that name.

    The prompt is a field, or one of the `prompts` of a field or of what that one asks.

    Raises:
        InvalidArgumentError: If there is no prompt of that name, the template has other placeholders than the prompt,
            or the retriever holds the prompt elsewhere.
    """
    who = f"{type(retriever).__name__}: the prompt {name!r}"
    if name not in retriever.prompts:
        raise InvalidArgumentError(f"{who} does not exist; there are {sorted(retriever.prompts)}.")
    if not isinstance(template, llama_prompts.BasePromptTemplate):
        raise InvalidArgumentError(f"{who}: wanted a prompt template of LlamaIndex, but got {template!r:.100}.")
    old = retriever.prompts[name]
    new = to_langchain(template, old)
    if (got := set(new.input_variables)) != (wanted := set(old.input_variables)):
        raise InvalidArgumentError(
            f"{who}: a template needs exactly {_their_names(sorted(wanted))}, but has {_their_names(sorted(got))}."
        )
    for field in type(retriever).model_fields:
        value = getattr(retriever, field)
        changed: Any = new
        if _holds(value, old):
            changed = _with_new(value, old, new)
        elif value is not old:
            continue
        other = retriever.model_copy()
        setattr(other, field, changed)
        if other.prompts.get(name) is new:
            return other
    raise InvalidArgumentError(f"{who} cannot be changed from LlamaIndex. Build the retriever with another one.")


def _holds(value: object, prompt: object) -> bool:
    """Whether a prompt is among the `prompts` of something: its own, not those of something that it wraps."""
    held = getattr(value, "__dict__", {}).get("prompts")
    return isinstance(held, dict) and any(one is prompt for one in held.values())


def _with_new(holder: Any, old: object, new: object) -> Any:
    """Return a copy of what holds a prompt, with another in its place, also in what it asks."""
    other = copy(holder)
    other.prompts = {key: new if prompt is old else prompt for key, prompt in holder.prompts.items()}
    for name, part in vars(holder).items():
        if _holds(part, old):
            setattr(other, name, _with_new(part, old, new))
    return other
