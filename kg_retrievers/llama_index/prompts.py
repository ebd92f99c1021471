"""Converts prompts of a retriever to templates of LlamaIndex."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompts import BasePromptTemplate
from llama_index.core import prompts as llama_prompts
from llama_index.core.llms import ChatMessage, MessageRole

from kg_retrievers.errors import InvalidArgumentError

#: LlamaIndex's names for the placeholders of our prompts. All other placeholders have the same name on both sides.
THEIR_NAMES = {"question": "query_str", "evidence": "context_str"}

#: Who may speak in a message, for LangChain and for LlamaIndex.
ROLES: dict[type[BaseMessage], MessageRole] = {
    HumanMessage: MessageRole.USER,
    AIMessage: MessageRole.ASSISTANT,
    SystemMessage: MessageRole.SYSTEM,
}


def to_llama_index(prompt: BasePromptTemplate[Any]) -> llama_prompts.BasePromptTemplate:
    """Write a prompt as a template of LlamaIndex.

    The template fills `{name}` and leaves every other brace as it is.

    Raises:
        InvalidArgumentError: If the prompt holds more than texts by a human, an AI or the system.

    Example:
        >>> from langchain_core.prompts import PromptTemplate
        >>> to_llama_index(PromptTemplate.from_template('Answer {question} as {{"answer": ...}}.')).get_template()
        'Answer {query_str} as {"answer": ...}.'
    """
    names = {name: THEIR_NAMES.get(name, name) for name in prompt.input_variables}
    messages = _filled(prompt, {name: f"{{{theirs}}}" for name, theirs in names.items()})
    if len(messages) == 1 and messages[0].role == MessageRole.USER:
        return llama_prompts.PromptTemplate(messages[0].content or "")
    return llama_prompts.ChatPromptTemplate(messages)


def _filled(prompt: BasePromptTemplate[Any], values: dict[str, str]) -> list[ChatMessage]:
    """Fill a prompt, as messages of LlamaIndex with nothing but text."""
    written = []
    for message in prompt.format_prompt(**values).to_messages():
        role = next((role for kind, role in ROLES.items() if isinstance(message, kind)), None)
        if role is None or any(block["type"] != "text" for block in message.content_blocks):
            raise InvalidArgumentError(
                "LlamaIndex is given only texts by a human, an AI or the system, but a message is "
                f"{message!r:.200}. Leave out images, files and tools."
            )
        written.append(ChatMessage(content=str(message.text), role=role))
    return written
