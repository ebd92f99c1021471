"""The workflow that `langgraph.json` names, set up by environment variables, for LangGraph's server and Studio.

- KG_RETRIEVERS_INDEX: the folder of an index, as `kg-retrievers index` saves it; required.
- KG_RETRIEVERS_METHOD: the method by its name on the shell; "simgrag" by default.
- KG_RETRIEVERS_LLM: a language model as provider:model, for the method and the answer; none by default.
- KG_RETRIEVERS_MODEL: the folder of a trained model, as `kg-retrievers train` saves it; for a method that needs one.
"""

from __future__ import annotations

import os

import kg_retrievers
from kg_retrievers.agents import Workflow
from kg_retrievers.cli.load import RETRIEVERS, open_index
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
    if name not in RETRIEVERS:
        raise InvalidArgumentError(f"KG_RETRIEVERS_METHOD is one of {sorted(RETRIEVERS)}, but got {name!r}.")
    llm_name, model = os.environ.get("KG_RETRIEVERS_LLM"), os.environ.get("KG_RETRIEVERS_MODEL") or None
    llm = kg_retrievers.load_chat_model(llm_name) if llm_name else None
    retriever = getattr(kg_retrievers, RETRIEVERS[name]).from_index(open_index(folder), llm=llm, model=model)
    return kg_retrievers.build_workflow(retriever, llm)
