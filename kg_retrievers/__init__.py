"""Fetch the part of a knowledge graph that answers a question.

Published methods serve as drop-in retrievers.

The names in `__init__.pyi` are loaded when they are first used, so that `import kg_retrievers` costs next to nothing.
"""

from __future__ import annotations

from typing import Any

import lazy_loader

_load, _, _names = lazy_loader.attach_stub(__name__, __file__)

#: Names that need an extra are loaded by name and not by a star, and so are the functions that train.
_NEED_EXTRAS = frozenset(
    {
        "CausalLM",
        "GraphPromptExample",
        "GraphPromptModel",
        "KnowledgeGraphMiddleware",
        "LadybugExecutor",
        "Neo4jExecutor",
        "RayWorkers",
        "SparqlExecutor",
        "as_llama_index",
        "as_llama_index_tools",
        "graph_prompt_examples",
    }
)

__all__ = ["__version__", *(name for name in _names if name not in _NEED_EXTRAS and not name.startswith("train_"))]


def __getattr__(name: str) -> Any:
    """Load an exported name from the module that defines it."""
    if name == "__version__":
        from importlib.metadata import version

        return version("kg-retrievers")
    try:
        return _load(name)
    except AttributeError:
        from kg_retrievers.errors import did_you_mean  # here, so that a command soon listens to Ctrl-C

        hint = did_you_mean(name, _names) or "dir(kg_retrievers) lists its names."
        raise AttributeError(f"module 'kg_retrievers' has no attribute {name!r}; {hint}".rstrip("; ")) from None


def __dir__() -> list[str]:
    """The exported names."""
    return sorted({*__all__, *_names})
