"""Fetch the part of a knowledge graph that answers a question: published methods as drop-in retrievers.

The names in `__init__.pyi` are loaded when they are first used, so that `import kg_retrievers` costs next to nothing.
"""

from __future__ import annotations

import sys
from typing import Any

import lazy_loader

from kg_retrievers.errors import did_you_mean, warn_renamed

_load, _, _names = lazy_loader.attach_stub(__name__, __file__)

#: Names of earlier versions, each with that of today. One works for one minor version.
_RENAMED = {"check_names": "check_grounding", "LinkedPatternGenerator": "ZeroShotPatternGenerator"}

#: What needs an extra is loaded by its name and not by a star, and so are the functions that train.
_NEED_EXTRAS = frozenset(
    {
        "CausalLM",
        "GraphPromptExample",
        "GraphPromptModel",
        "KnowledgeGraphMiddleware",
        "LadybugExecutor",
        "Neo4jExecutor",
        "PathReader",
        "RayWorkers",
        "RelationPathPlanner",
        "Spans",
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
        warn_renamed(f"kg_retrievers.{name}", _RENAMED[name])
        return _load(_RENAMED[name])
    try:
        return _load(name)
    except AttributeError:
        hint = did_you_mean(name, _names)
        raise AttributeError(f"module 'kg_retrievers' has no attribute {name!r}; {hint}".rstrip("; ")) from None


def __dir__() -> list[str]:
    """The exported names."""
    return sorted({*__all__, *_names})


def _documents_html(what: Any) -> str | None:
    """Return what a notebook shows of Documents; None of other things, for which nothing is loaded."""
    first = what[0] if isinstance(what, list) and what else what
    if type(first).__name__ != "Document":
        return None
    from kg_retrievers.drawing.notebooks import documents_html

    return documents_html(what)


def _show_documents_in_notebooks() -> None:
    """Let IPython, where it runs, show Documents of retrievers, and lists of them, as pictures."""
    running = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    formatter = getattr(running, "display_formatter", None)
    if formatter is not None:
        of_html = formatter.formatters["text/html"]
        of_html.for_type_by_name("langchain_core.documents.base", "Document", _documents_html)
        of_html.for_type(list, _documents_html)


_show_documents_in_notebooks()
