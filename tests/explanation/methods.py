"""Every method of the registry, and the marks of its tests."""

from __future__ import annotations

import pytest

from kg_retrievers.methods.registry import METHODS

#: The methods whose tests are part of the default run. Those of the others are heavy.
SAMPLE = ("neighborhood", "kaping", "g-retriever")

each_method = pytest.mark.parametrize(
    "method", [pytest.param(one, id=one.name, marks=[pytest.mark.heavy] * (one.name not in SAMPLE)) for one in METHODS]
)
