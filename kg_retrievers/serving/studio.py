"""The workflow that `langgraph.json` names, set up by environment variables, for LangGraph's server and Studio.

- KG_RETRIEVERS_INDEX: the folder of an index, as `kg-retrievers index` saves it; required.
- KG_RETRIEVERS_METHOD: the method by its name on the shell, or several as in simgrag+pcst; by default that of the
  model, else "simgrag".
- KG_RETRIEVERS_LLM: a language model as provider:model, for the method and the answer; none by default.
- KG_RETRIEVERS_MODEL: the folder of a trained model, as `kg-retrievers train` saves it, for a method that needs one; or
  several folders, as in PATH.
"""

from __future__ import annotations

import os

import kg_retrievers
from kg_retrievers.agents import Workflow
from kg_retrievers.cli.load import (
    AND,
    RETRIEVERS,
    asked_method,
    build_retriever,
    make_llm,
    open_index,
    read_models,
)
from kg_retrievers.errors import InvalidArgumentError


def workflow() -> Workflow:
    """Return the workflow over the index that the environment names.

    Raises:
        InvalidArgumentError: If KG_RETRIEVERS_INDEX is not set, KG_RETRIEVERS_METHOD is no method, or
            KG_RETRIEVERS_MODEL is of another method, or not set for one that is trained.
        ModelLoadError: If a folder holds no model.
    """
    folder, named = os.environ.get("KG_RETRIEVERS_INDEX"), os.environ.get("KG_RETRIEVERS_METHOD") or None
    if not folder:
        raise InvalidArgumentError(
            "set KG_RETRIEVERS_INDEX to the folder of an index: kg-retrievers index FILE --output FOLDER"
        )
    if named and not all(one in RETRIEVERS for one in named.split(AND)):
        raise InvalidArgumentError(
            f"KG_RETRIEVERS_METHOD is one of {sorted(RETRIEVERS)}, or several joined by {AND}, but got {named!r}."
        )
    folders = os.environ.get("KG_RETRIEVERS_MODEL")
    models = read_models(folders.split(os.pathsep) if folders else [])
    method, llm = asked_method(named, models), make_llm(os.environ.get("KG_RETRIEVERS_LLM") or None)
    retriever = build_retriever(method, open_index(folder), {}, llm=llm, examples={}, models=models)
    return kg_retrievers.build_workflow(retriever, llm)
