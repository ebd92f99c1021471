"""A chat model by its name has a limit of its replies' length."""

from __future__ import annotations

from typing import Any

import pytest

from kg_retrievers import load_chat_model
from kg_retrievers.agents.language_model import MAX_REPLY_TOKENS
from kg_retrievers.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("given", "limit"), [({}, MAX_REPLY_TOKENS), ({"max_tokens": 7}, 7), ({"max_tokens": None}, None)]
)
def test_replies_end(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], limit: int | None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    model: Any = load_chat_model("openai:gpt-4.1-mini", **given)
    assert (model.max_tokens, model.temperature) == (limit, 0)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "many"])
def test_a_limit_is_a_number_of_tokens(limit: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="max_tokens is 1 or more, or None"):
        load_chat_model("openai:gpt-4.1-mini", max_tokens=limit)
