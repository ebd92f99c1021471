"""Answers of a graph prompt on the shell, from the evidence of any retriever."""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kg_retrievers
from kg_retrievers.cli.show import status
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT
from kg_retrievers.serving.loading import RECORD, SavedModel, read_models

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable, RunnableConfig

    import kg_retrievers.methods.g_retriever.graph_prompt.prompts
    from kg_retrievers.index import GraphIndex


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the libraries of language models.

    Raises:
        MissingExtraError: If they are not installed.
    """
    threshold = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            GRAPH_PROMPT.load_model()  # raises if its extra is missing
            import transformers

            transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
            yield
    finally:
        logging.disable(threshold)


def retriever_models(
    prompt: SavedModel, models: Mapping[str, SavedModel], options: argparse.Namespace
) -> Mapping[str, SavedModel]:
    """Return the trained models of the retrievers whose evidence a graph prompt reads.

    If the options name neither a method nor a model of one, they become those of the graph prompt's training.

    Raises:
        MissingExtraError: If what a graph prompt needs is not installed.
        ModelLoadError: If the model of its training is missing or damaged.
    """
    with status("loading the libraries of language models"), quiet():
        pass
    if options.method or models:
        return models
    return _as_in_training(prompt, options)


def _as_in_training(prompt: SavedModel, options: argparse.Namespace) -> dict[str, SavedModel]:
    """Set the options to the retriever of a graph prompt's training, and return its trained models."""
    options.method, path = GRAPH_PROMPT.default_method, Path(prompt.folder) / RECORD
    if not path.exists():  # of a training in Python
        return {}
    method, fields, folders = _read_record(path)
    options.method = method or GRAPH_PROMPT.default_method
    options.field = [*fields.items(), *options.field]
    try:
        with status("reading the trained models"):
            return read_models(folders)
    except ModelLoadError as error:
        raise ModelLoadError(
            f"its training had the retriever {options.method}, whose model is missing ({error.message}) Name its "
            "folder: --model ...",
            prompt.folder,
        ) from error


def _read_record(path: Path) -> tuple[str | None, dict[str, Any], list[str]]:
    """Return the method, the fields and the folders of models of the retriever in a graph prompt's training."""
    try:
        record = json.loads(path.read_text("utf-8"))
        method = record["method"] and registry.joined_names(registry.find_methods(record["method"]))
        return method, dict(record["fields"].items()), [*record["models"]]
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ModelLoadError("damaged; wanted the retriever of the training. Name one: --method ...", path) from error


def make_answerer(prompt: SavedModel, index: GraphIndex) -> Runnable[Any, list[str]]:
    """Return a Runnable that answers from evidence, with a list of texts.

    Raises:
        ModelLoadError: If the model is damaged, or its language model cannot be loaded.
        ModelMismatchError: If that is another one, or the index has other embeddings.
    """
    from langchain_core.runnables import RunnableLambda

    path = Path(prompt.folder) / RECORD
    place = _language_model(path)
    with status(f"reading {prompt.folder}"), quiet():
        try:
            model = GRAPH_PROMPT.load_model().from_pretrained(prompt.folder, index.embeddings, place)
        except ModelLoadError as error:
            if Path(prompt.folder) in (error.path, *error.path.parents):
                raise
            raise ModelLoadError(
                f"its language model {error.path} cannot be loaded: {error.__cause__!s:.300}",
                prompt.folder,
                hint_python="Put it back, or hand it in: GraphPromptModel.from_pretrained(..., llm=...).",
                hint_shell=f'Put it back, or write its place into {path}, as "language_model": "..."',
            ) from error
    return RunnableLambda(_Answerer(model).answers, name=GRAPH_PROMPT.name)


def _language_model(record: Path) -> str | None:
    """Return the path of the language model that the record of a graph prompt names, if it names one."""
    try:
        place = json.loads(record.read_text("utf-8")).get("language_model")
    except (OSError, ValueError, RecursionError, AttributeError):
        return None  # `_read_record` reports a damaged record
    return place if isinstance(place, str) else None


@dataclass(frozen=True)
class _Answerer:
    """A graph prompt; `answers` returns its answers as a list, each once."""

    model: kg_retrievers.GraphPromptModel

    def answers(self, value: Any, config: RunnableConfig) -> list[str]:
        with quiet():
            text = self.model.invoke(value, config)
        return kg_retrievers.methods.g_retriever.graph_prompt.prompts.parse_answers(text)


def refuse_prompts(models: Mapping[str, SavedModel]) -> None:
    """Check that no graph prompt is among the models of retrievers.

    Raises:
        InvalidArgumentError: If there is one.
    """
    if prompt := models.get(GRAPH_PROMPT.name):
        raise InvalidArgumentError(f"{prompt.folder} is a graph prompt itself; wanted the model of a retriever.")
