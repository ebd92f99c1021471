"""The workflow that `langgraph.json` names, set up by environment variables, for LangGraph's server and Studio.

- KG_RETRIEVERS_INDEX: the folder of an index, as `kg-retrievers index` saves it. Required.
- KG_RETRIEVERS_METHOD: the name of the method. Default: the model's own method, or "kg" without a model.
- KG_RETRIEVERS_LLM: a language model as provider:model, for the method and the answer. Default: none.
- KG_RETRIEVERS_MODEL: the folder of a trained model, as `kg-retrievers train` saves it, for a method that needs one.
"""

from __future__ import annotations

import asyncio
import os
from functools import cache

from kg_retrievers.agents import Workflow, build_workflow
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods import registry
from kg_retrievers.serving.loading import (
    build_retriever,
    choose_method,
    load_llm,
    model_of,
    open_index,
    read_models,
)


async def served_workflow() -> Workflow:
    """Return the workflow that `workflow` builds, the same for all runs of a server, which asks for it at each.

    It is built in a thread: a server of LangGraph refuses calls that read files in its event loop. It holds the index
    as it was then. Start the server again to serve a later one.

    Raises:
        KGRetrieversError: As `workflow` does.
    """
    return await asyncio.to_thread(_built_once)


def workflow() -> Workflow:
    """Return the workflow over the index that the environment names.

    Raises:
        InvalidArgumentError: If KG_RETRIEVERS_INDEX is not set, KG_RETRIEVERS_METHOD is no method, or
            KG_RETRIEVERS_MODEL is of another method, or not set for one that is trained.
        ModelLoadError: If a folder holds no model.
    """
    folder = os.environ.get("KG_RETRIEVERS_INDEX")
    if not folder:
        raise InvalidArgumentError(
            "the environment variable KG_RETRIEVERS_INDEX is not set; wanted the folder of an index.",
            hint_python="Save an index: kg-retrievers index FILE --output FOLDER",
        )
    named = os.environ.get("KG_RETRIEVERS_METHOD") or None
    if named:
        _check_method(named)
    model = os.environ.get("KG_RETRIEVERS_MODEL")
    models = read_models([model] if model else [])
    method = choose_method(named, models)
    llm = load_llm(os.environ.get("KG_RETRIEVERS_LLM"))
    return build_workflow(build_retriever(method, open_index(folder), llm=llm, model=model_of(method, models)), llm)


def _check_method(named: str) -> None:
    """Check the name of a method, so that a mistake names the variable."""
    try:
        registry.find_method(named)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"KG_RETRIEVERS_METHOD: {error.message}", **error.hints) from error


_built_once = cache(workflow)
