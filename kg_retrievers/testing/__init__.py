"""For tests of code that uses or extends this package: a tiny graph, a scripted chat model, the contract of retrievers.

`RetrieverContract` needs the extra `test`; the rest needs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kg_retrievers.testing.chat_model import ScriptedChatModel
from kg_retrievers.testing.tiny_graph import tiny_graph

if TYPE_CHECKING:
    from kg_retrievers.testing.contract import RetrieverContract

__all__ = ["RetrieverContract", "ScriptedChatModel", "tiny_graph"]

_LAZY = {"RetrieverContract": "kg_retrievers.testing.contract"}


def __getattr__(name: str) -> Any:
    """Load what needs pytest only when it is asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'kg_retrievers.testing' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
