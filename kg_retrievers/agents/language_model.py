"""Loads a language model by its name."""

from __future__ import annotations

import re
from typing import Any

from langchain_core.language_models import BaseChatModel

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, did_you_mean, named_arguments
from kg_retrievers.redaction import hide_secrets

#: The most tokens of a reply: a model that repeats itself would write on for as long as its server lets it.
MAX_REPLY_TOKENS = 4096


@named_arguments
def load_chat_model(name: str, *, max_tokens: int | None = MAX_REPLY_TOKENS) -> BaseChatModel:
    """Return a chat model with a temperature of 0.

    Its key comes from the environment, such as from OPENAI_API_KEY.

    Args:
        name: Provider and model, as in "openai:gpt-4.1-mini".
        max_tokens: The most tokens of a reply, including its reasoning. None for the limit of the provider.

    Raises:
        InvalidArgumentError: If there is no such provider, its package is missing, it refuses, such as without a key,
            or `max_tokens` is below 1.
        MissingExtraError: If the extra `openai` is not installed.
    """
    if not isinstance(name, str) or not all(part.strip() for part in (f"{name}:".split(":")[:2])):
        raise InvalidArgumentError(
            f'load_chat_model: wanted "provider:model", but got {name!r:.100}.',
            hint_python='Name the provider, too, as in "openai:gpt-4.1-mini" or "ollama:llama3.2".',
        )
    if max_tokens is not None and (type(max_tokens) is not int or max_tokens < 1):
        raise InvalidArgumentError(f"load_chat_model: max_tokens is 1 or more, or None, but got {max_tokens!r:.100}.")
    limit: dict[str, Any] = {} if max_tokens is None else {"max_tokens": max_tokens}
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as cause:
        raise MissingExtraError(f"the language model {name!r}", "openai") from cause
    try:
        provider, _, called = name.partition(":")
        model: BaseChatModel = init_chat_model(called, model_provider=provider, temperature=0, **limit)
    except Exception as error:  # each provider has errors of its own
        hide_secrets(error)
        reason = " ".join(str(error).split("\n")[0].split())
        if reason.startswith("Unsupported provider"):  # the names that LangChain knows follow
            near = did_you_mean(provider, re.findall(r"\w+", str(error).partition("\n")[2]))
            reason = f"there is no provider {provider!r}; {near or 'wanted one such as openai or ollama.'}"
        raise InvalidArgumentError(f"load_chat_model: {name!r} cannot be used: {reason:.300}") from error
    return model
