"""Fetch the part of a knowledge graph that answers a question: published methods as drop-in retrievers.

The names in `__init__.pyi` are loaded when they are first used, so that `import kg_retrievers` costs next to nothing.
"""

from __future__ import annotations

import warnings
from typing import Any

import lazy_loader

_load, _, _names = lazy_loader.attach_stub(__name__, __file__)

#: Names of earlier versions, each with that of today. They go with the next minor version.
_RENAMED = {"check_names": "check_grounding"}

#: What needs an extra is loaded by its name and not by a star, and so are the functions that train.
_NEED_EXTRAS = frozenset(
    {
        "CausalLM",
        "GraphPromptExample",
        "GraphPromptModel",
        "KnowledgeGraphMiddleware",
        "LadybugExecutor",
        "Neo4jExecutor",
        "as_llama_index",
        "graph_prompt_examples",
    }
)

__all__ = ["__version__", *(name for name in _names if name not in _NEED_EXTRAS and not name.startswith("train_"))]


def __getattr__(name: str) -> Any:
    """Load an exported name from the module that defines it."""
    if name == "__version__":
        from importlib.metadata import version

        return version("kg-retrievers")
    if name in _RENAMED:
        today = _RENAMED[name]
        warnings.warn(f"kg_retrievers.{name} is called {today} now.", DeprecationWarning, stacklevel=2)
        return _load(today)
    return _load(name)


def __dir__() -> list[str]:
    """The exported names."""
    return sorted({*__all__, *_names})
