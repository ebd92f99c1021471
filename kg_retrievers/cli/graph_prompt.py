"""What a graph prompt answers on the shell, from the evidence of any retriever."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kg_retrievers
from kg_retrievers.cli.load import GRAPH_PROMPT, RECORD, RETRIEVERS, TrainedModel, method_names, read_models
from kg_retrievers.cli.show import working
from kg_retrievers.errors import ModelLoadError

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable, RunnableConfig

    import kg_retrievers.methods.g_retriever.graph_prompt.prompts
    from kg_retrievers.index import GraphIndex

#: The retriever in front where none is named: that of the paper.
IN_FRONT = "pcst"


@contextmanager
def quiet() -> Iterator[None]:
    """Keep off the shell what the libraries of language models say on their own."""
    threshold = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _ = kg_retrievers.CausalLM  # loads transformers
            sys.modules["transformers"].utils.logging.disable_progress_bar()
            yield
    finally:
        logging.disable(threshold)


def read_asked_models(options: argparse.Namespace) -> tuple[dict[str, TrainedModel], TrainedModel | None]:
    """Read the trained models that are named: those of retrievers, and a graph prompt.

    Where neither a method nor the model of one is named, the options become those of the graph prompt's training.

    Raises:
        InvalidArgumentError: If two are of one method.
        MissingExtraError: If what a graph prompt needs is not installed.
        ModelLoadError: If a folder holds no model, or a damaged one.
    """
    models = read_models(options.model)
    prompt = models.pop(GRAPH_PROMPT, None)
    if prompt:
        with working("loading what answers"), quiet():
            pass
        if not options.method and not models:
            models = _as_in_training(options, prompt)
    return models, prompt


def _as_in_training(options: argparse.Namespace, prompt: TrainedModel) -> dict[str, TrainedModel]:
    """Let the retriever be that which a graph prompt was trained with; return its models."""
    options.method, path = IN_FRONT, Path(prompt.folder) / RECORD
    if not path.exists():  # of a training in Python
        return {}
    try:
        record = json.loads(path.read_text("utf-8"))
        options.method, given, folders = record["method"] or IN_FRONT, record["fields"].items(), [*record["models"]]
        if not RETRIEVERS.keys() >= {*method_names(options.method)}:
            raise LookupError
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ModelLoadError("damaged; wanted the retriever of the training. Name one: --method ...", path) from error
    options.field = [*given, *options.field]
    try:
        return read_models(folders)
    except ModelLoadError as error:
        raise ModelLoadError(
            f"its training had the retriever {options.method}, whose model is missing ({error}) Name its folder: "
            "--model ...",
            prompt.folder,
        ) from error


def make_answerer(prompt: TrainedModel, index: GraphIndex) -> Runnable[Any, list[str]]:
    """Return what answers from evidence, with a list of texts.

    Raises:
        ModelLoadError: If the model is damaged, or its language model cannot be loaded.
        ModelMismatchError: If that is another one, or the index has other embeddings.
    """
    from langchain_core.runnables import RunnableLambda

    with working(f"reading {prompt.folder}"), quiet():
        try:
            model = kg_retrievers.GraphPromptModel.from_pretrained(prompt.folder, index.embeddings)
        except ModelLoadError as error:
            if Path(prompt.folder) in (error.path, *error.path.parents):
                raise
            raise ModelLoadError(
                f"its language model {error.path} cannot be loaded: {error.__cause__!s:.300} Put it back, or write its "
                f"place into {prompt.folder}/config.json.",
                prompt.folder,
            ) from error
    return RunnableLambda(_Answerer(model).answers, name=GRAPH_PROMPT)


@dataclass(frozen=True)
class _Answerer:
    """A graph prompt that may be asked; `answers` returns what it writes as a list, each answer once."""

    model: kg_retrievers.GraphPromptModel

    def answers(self, value: Any, config: RunnableConfig) -> list[str]:
        with quiet():
            text = self.model.invoke(value, config)
        parts = map(str.strip, text.split(kg_retrievers.methods.g_retriever.graph_prompt.prompts.ANSWER_SEPARATOR))
        return list(dict.fromkeys(filter(None, parts)))
