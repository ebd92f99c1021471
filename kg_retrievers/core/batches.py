"""How many questions of a batch run at once."""

from __future__ import annotations

import os

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_config_list

#: How many questions ask an index together: a scan for so many costs each a small part of a scan of its own.
ASKING_TOGETHER = 32

#: A config of LangChain, or one for each question.
Configs = RunnableConfig | list[RunnableConfig] | None


def widened(config: Configs, questions: int) -> Configs:
    """Return configs by which as many threads run as questions can ask together, unless they say how many."""
    return _limited(config, questions, min(ASKING_TOGETHER, questions))


def narrowed(config: Configs, questions: int) -> Configs:
    """Return configs by which no more tasks run than there are threads for their work, unless they say how many."""
    return _limited(config, questions, min(32, (os.cpu_count() or 1) + 4))  # those of asyncio


def _limited(config: Configs, questions: int, at_once: int) -> Configs:
    first, *others = get_config_list(config, questions)
    if first.get("max_concurrency") is None:
        first["max_concurrency"] = at_once
    return [first, *others]
