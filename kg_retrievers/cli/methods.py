"""The methods that options name, with their trained models, examples and graph prompts."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kg_retrievers.cli.options import QUERY_METHODS
from kg_retrievers.cli.show import note, status
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT, Method
from kg_retrievers.serving.loading import RECORD, SavedModel, choose_methods, read_models

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

    from kg_retrievers.datasets import Question
    from kg_retrievers.index import GraphIndex


@dataclass(frozen=True)
class Models:
    """The methods that are asked, and their trained models.

    Attributes:
        methods: The methods.
        of_retrievers: Their trained models, by the names of the methods.
        prompt: The graph prompt that answers from the evidence, if there is one.
        fields: The fields of the retriever.
    """

    methods: tuple[Method, ...]
    of_retrievers: Mapping[str, SavedModel]
    prompt: SavedModel | None
    fields: dict[str, Any]

    def check_database(self, database: str | None) -> None:
        """Check that one of the methods runs queries, if `--database` is given.

        Raises:
            InvalidArgumentError: If none does.
        """
        if database is not None and not any(method.runs_queries for method in self.methods):
            raise InvalidArgumentError(
                f"--database is for {QUERY_METHODS}, but asked is {registry.joined_names(self.methods)}. "
                f"Leave it out, or: --method {QUERY_METHODS}"
            )


def load_models(folders: Sequence[str], method: str | None, fields: dict[str, Any]) -> Models:
    """Read the trained models of folders, and choose the methods.

    Args:
        folders: The folders of models.
        method: The name of the method; None for that of the only model, else the default.
        fields: The fields of the retriever. With a graph prompt alone, those of its training come first.

    Raises:
        MissingExtraError: If a graph prompt needs a package that is not installed.
        ModelLoadError: If a model is missing or damaged.
    """
    models, prompt = read_trained(folders)
    if prompt is not None and method is None and not models:
        method, of_training, models = _retriever_of_training(prompt)
        fields = of_training | fields
    return Models(choose_methods(method, models), models, prompt, fields)


def read_trained(folders: Sequence[str]) -> tuple[dict[str, SavedModel], SavedModel | None]:
    """Read the trained models of folders: those of retrievers by their names, and a graph prompt.

    Raises:
        MissingExtraError: If a graph prompt needs a package that is not installed.
        ModelLoadError: If a model is missing or damaged.
    """
    with status("reading the trained models"):
        models = read_models(folders)
    prompt = models.pop(GRAPH_PROMPT.name, None)
    if prompt is not None:
        with status("loading the libraries of language models"), quiet():
            pass
    return models, prompt


def _retriever_of_training(prompt: SavedModel) -> tuple[str, dict[str, Any], dict[str, SavedModel]]:
    """Return the method, the fields and the models of the retriever in a graph prompt's training."""
    path = Path(prompt.folder) / RECORD
    if not path.exists():  # of a training in Python
        return GRAPH_PROMPT.default_method, {}, {}
    try:
        record = json.loads(path.read_text("utf-8"))
        named = record["method"]
        method = registry.joined_names(registry.find_methods(named)) if named else GRAPH_PROMPT.default_method
        fields, folders = dict(record["fields"].items()), [*record["models"]]
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise ModelLoadError("damaged; wanted the retriever of the training. Name one: --method ...", path) from error
    try:
        return method, fields, read_models(folders)
    except ModelLoadError as error:
        raise ModelLoadError(
            f"its training had the retriever {method}, whose model is missing ({error.message}) Name its folder: "
            "--model ...",
            prompt.folder,
        ) from error


def share_examples(methods: Sequence[Method], examples: Sequence[Question] | None) -> dict[str, Sequence[Question]]:
    """Return the examples for each method that can use them, and note why others get none.

    Args:
        methods: The method, or several. A single method refuses unusable examples itself.
        examples: Labelled questions, if there are some.
    """
    shared: dict[str, Sequence[Question]] = {}
    if examples is None:
        return shared
    for method in dict.fromkeys(method for method in methods if method.labels):
        if len(methods) > 1 and not any(getattr(one, label) for one in examples for label in method.labels):
            labels = " or ".join(f'"{label}"' for label in method.labels)
            note(f"{method.name} goes without the examples, none of which has {labels}")
        else:
            shared[method.name] = examples
    return shared


# --- graph prompts ----------------------------------------------------------------------------------------------------


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


def load_answerer(prompt: SavedModel, index: GraphIndex) -> Runnable[Any, list[str]]:
    """Return a Runnable that answers from evidence with a graph prompt, with a list of texts.

    Raises:
        ModelLoadError: If the model is damaged, or its language model cannot be loaded.
        ModelMismatchError: If that is another one, or the index has other embeddings.
    """
    from langchain_core.runnables import RunnableConfig, RunnableLambda

    from kg_retrievers.methods.g_retriever.graph_prompt.prompts import parse_answers

    path = Path(prompt.folder) / RECORD
    with status(f"reading {prompt.folder}"), quiet():
        try:
            place = _language_model(path)
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

    def answers(value: Any, config: RunnableConfig) -> list[str]:
        with quiet():
            return parse_answers(model.invoke(value, config))

    return RunnableLambda(answers, name=GRAPH_PROMPT.name)


def _language_model(record: Path) -> str | None:
    """Return the path of the language model that the record of a graph prompt names, if it names one."""
    try:
        place = json.loads(record.read_text("utf-8")).get("language_model")
    except (OSError, ValueError, RecursionError, AttributeError):
        return None  # `_retriever_of_training` reports a damaged record
    return place if isinstance(place, str) else None
