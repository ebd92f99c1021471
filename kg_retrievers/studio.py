"""The workflow that `langgraph.json` names, set up by environment variables, for LangGraph's server and Studio.

- KG_RETRIEVERS_INDEX: the folder of an index, as `kg-retrievers index` saves it; required.
- KG_RETRIEVERS_METHOD: the method by its name on the shell, or several as in simgrag+pcst; "simgrag" by default.
- KG_RETRIEVERS_LLM: a language model as provider:model, for the method and the answer; none by default.
- KG_RETRIEVERS_MODEL: the folder of a trained model, as `kg-retrievers train` saves it; for a method that needs one. Of
  several methods it may be several folders, as in PATH.
"""

from __future__ import annotations

import os
from typing import Any

import kg_retrievers
from kg_retrievers.agents import Workflow
from kg_retrievers.base import BaseKGRetriever
from kg_retrievers.cli.load import (
    AND,
    RETRIEVERS,
    asked_method,
    build_retriever,
    method_class,
    open_index,
    read_models,
)
from kg_retrievers.errors import InvalidArgumentError


def workflow() -> Workflow:
    """Return the workflow over the index that the environment names.

    Raises:
        InvalidArgumentError: If KG_RETRIEVERS_INDEX is not set, KG_RETRIEVERS_METHOD is no method, or
            KG_RETRIEVERS_MODEL is set for a method that is not trained, or not set for one that is.
        ModelLoadError: If that folder holds no model of the method.
    """
    folder, name = os.environ.get("KG_RETRIEVERS_INDEX"), os.environ.get("KG_RETRIEVERS_METHOD") or "simgrag"
    if not folder:
        raise InvalidArgumentError(
            "set KG_RETRIEVERS_INDEX to the folder of an index: kg-retrievers index FILE --output FOLDER"
        )
    names = name.split(AND)
    if not all(one in RETRIEVERS for one in names):
        raise InvalidArgumentError(
            f"KG_RETRIEVERS_METHOD is one of {sorted(RETRIEVERS)}, or several joined by {AND}, but got {name!r}."
        )
    llm_name, model = os.environ.get("KG_RETRIEVERS_LLM"), os.environ.get("KG_RETRIEVERS_MODEL") or None
    llm = kg_retrievers.load_chat_model(llm_name) if llm_name else None
    models: dict[str, Any] = {name: model}
    if len(names) > 1:
        read = read_models(model.split(os.pathsep) if model else [])
        models = {one: read[one].model for one in read if asked_method(name, read)}
    index = open_index(folder)

    def build(one: str) -> BaseKGRetriever:
        return method_class(one).from_index(index, llm=llm, model=models.get(one))

    return kg_retrievers.build_workflow(build_retriever(name, build, {}), llm)
