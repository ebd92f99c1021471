"""A language model by its name."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel

from kg_retrievers.errors import MissingExtraError


def load_chat_model(name: str) -> BaseChatModel:
    """Return a chat model with a temperature of 0; its key comes from the environment, as OPENAI_API_KEY.

    Args:
        name: Provider and model, as in "openai:gpt-4.1-mini".

    Raises:
        MissingExtraError: If the extra `openai` is not installed.
    """
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as cause:
        raise MissingExtraError(f"the language model {name!r}", "openai") from cause
    return init_chat_model(name, temperature=0)
