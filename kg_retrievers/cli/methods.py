"""The methods that options name, with their trained models, examples and graph prompts."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kg_retrievers.cli.options import QUERY_METHODS
from kg_retrievers.cli.show import status
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT, Method
from kg_retrievers.serving.loading import SavedModel, choose_methods, read_models

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from kg_retrievers.datasets import Question
    from kg_retrievers.index import GraphIndex


def load_models(
    folders: Sequence[str], method: str | None
) -> tuple[tuple[Method, ...], dict[str, SavedModel], SavedModel | None]:
    """Return the chosen methods, their trained models by name, and the graph prompt that answers, if any.

    Args:
        folders: The folders of models.
        method: The name of the method; None for that of the only model, else the default.
    """
    models, prompt = read_trained(folders)
    if prompt is not None and not models:
        method = method or GRAPH_PROMPT.default_method
    return choose_methods(method, models), models, prompt


def read_trained(folders: Sequence[str]) -> tuple[dict[str, SavedModel], SavedModel | None]:
    """Read the trained models of folders: those of retrievers by their names, and a graph prompt."""
    with status("reading the trained models"):
        models = read_models(folders)
    return models, models.pop(GRAPH_PROMPT.name, None)


def check_database(methods: Sequence[Method], database: str | None) -> None:
    """Check that one of the methods runs queries, if `--database` is given.

    Raises:
        InvalidArgumentError: If none does.
    """
    if database is not None and not any(method.runs_queries for method in methods):
        raise InvalidArgumentError(
            f"--database is for {QUERY_METHODS}, but asked is {registry.joined_names(methods)}. "
            f"Leave it out, or: --method {QUERY_METHODS}"
        )


def share_examples(methods: Sequence[Method], examples: Sequence[Question] | None) -> dict[str, Sequence[Question]]:
    """Return the examples for each method that can use them; a single method refuses unusable ones itself."""
    return {
        method.name: examples
        for method in methods
        if examples and method.labels
        if len(methods) == 1 or any(getattr(one, label) for one in examples for label in method.labels)
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the libraries of language models."""
    threshold = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(threshold)


def load_answerer(prompt: SavedModel, index: GraphIndex) -> Runnable[Any, list[str]]:
    """Return a Runnable that answers from evidence with a graph prompt, with a list of texts.

    Raises:
        MissingExtraError: If its extra is not installed.
        ModelLoadError: If the model is damaged, or its language model cannot be loaded.
        ModelMismatchError: If that is another one, or the index has other embeddings.
    """
    from langchain_core.runnables import RunnableConfig, RunnableLambda

    with status(f"reading {prompt.folder}"), _quiet():
        kind = GRAPH_PROMPT.load_model()  # raises if its extra is missing
        import transformers

        from kg_retrievers.methods.g_retriever.graph_prompt.prompts import parse_answers

        transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        model = kind.from_pretrained(prompt.folder, index.embeddings)

    def answers(value: Any, config: RunnableConfig) -> list[str]:
        with _quiet():
            return parse_answers(model.invoke(value, config))

    return RunnableLambda(answers, name=GRAPH_PROMPT.name)
