"""Test code that uses or extends this package: a tiny graph, a scripted chat model, the contract of retrievers.

`RetrieverContract` needs the extra `test`. The rest needs nothing.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kg_retrievers.testing.chat_model import ScriptedChatModel
from kg_retrievers.testing.tiny_graph import tiny_graph

if TYPE_CHECKING:
    from kg_retrievers.testing.contract import RetrieverContract

__all__ = ["RetrieverContract", "ScriptedChatModel", "tiny_graph"]

_CONTRACT = "kg_retrievers.testing.contract"


def __getattr__(name: str) -> Any:
    """Load the contract when it is asked for, so that the rest is there without pytest."""
    if name != "RetrieverContract":
        raise AttributeError(f"module 'kg_retrievers.testing' has no attribute {name!r}")
    if _CONTRACT not in sys.modules:
        with suppress(ImportError):  # the contract says what is missing
            import pytest

            pytest.register_assert_rewrite(_CONTRACT)
    from kg_retrievers.testing.contract import RetrieverContract

    return RetrieverContract
