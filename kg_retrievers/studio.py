"""The workflow that `langgraph.json` names, set up by environment variables, for LangGraph's server and Studio.

- KG_RETRIEVERS_INDEX: the folder of an index, as `kg-retrievers index` saves it; required.
- KG_RETRIEVERS_METHOD: the method by its name on the shell; "simgrag" by default.
- KG_RETRIEVERS_LLM: a language model as provider:model, for the method and the answer; none by default.
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
        InvalidArgumentError: If KG_RETRIEVERS_INDEX is not set, or KG_RETRIEVERS_METHOD is no method.
    """
    folder, name = os.environ.get("KG_RETRIEVERS_INDEX"), os.environ.get("KG_RETRIEVERS_METHOD") or "simgrag"
    if not folder:
        raise InvalidArgumentError(
            "set KG_RETRIEVERS_INDEX to the folder of an index: kg-retrievers index FILE --output FOLDER"
        )
    if name not in RETRIEVERS:
        raise InvalidArgumentError(f"KG_RETRIEVERS_METHOD is one of {sorted(RETRIEVERS)}, but got {name!r}.")
    model = os.environ.get("KG_RETRIEVERS_LLM")
    llm = kg_retrievers.load_chat_model(model) if model else None
    retriever = getattr(kg_retrievers, RETRIEVERS[name]).from_index(open_index(folder), llm=llm)
    return kg_retrievers.build_workflow(retriever, llm)
