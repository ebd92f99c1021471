"""A question to a service as one run: watched as one, at its cost, within its bound of tokens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.stages import REFUSALS_LOGGER
from kg_retrievers.errors import RefusalError
from kg_retrievers.serving.answers import at_cost
from kg_retrievers.serving.results import Found
from kg_retrievers.serving.token_bounds import check_max_tokens, fit

F = TypeVar("F", bound=Found)


def run_question(
    verb: str,
    question: str,
    work: Callable[[RunnableConfig], F],
    refused: Callable[[RefusalError], F] | None,
    max_tokens: int,
    callbacks: Sequence[BaseCallbackHandler],
) -> F:
    """Return a result with its cost, within a bound of tokens; to whoever watches, all of it is one run.

    Args:
        verb: The name of the run.
        question: The question.
        work: Makes the result.
        refused: Makes that of a refusal; None to raise the refusal.
        max_tokens: The bound.
        callbacks: Hear of the run, and of all under it.
    """
    check_max_tokens(max_tokens)
    began, counter = time.monotonic(), CostCounter()
    run: Runnable[str, F] = RunnableLambda(lambda _, config: work(config), name=verb)
    try:
        found = run.invoke(question, {"callbacks": [*callbacks, counter]})
    except RefusalError as refusal:
        if refused is None:
            raise
        found = refused(refusal)
    return fit(at_cost(found, counter.cost(time.monotonic() - began)), max_tokens)


@contextmanager
def without_questions_in_logs() -> Iterator[None]:
    """Silence the warnings about refused questions, which quote the questions of users."""
    logger = logging.getLogger(REFUSALS_LOGGER)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
