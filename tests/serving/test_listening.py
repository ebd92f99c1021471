"""Addresses to listen on; tests/cli test what listens there."""

from __future__ import annotations

import pytest

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.listening import address_of, listen


def test_an_address_is_free_or_told() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address_of(taken) == f"http://127.0.0.1:{port}/"
        with pytest.raises(InvalidArgumentError, match=f"at port {port}"):
            listen("127.0.0.1", port)
    with pytest.raises(InvalidArgumentError, match="cannot listen"):
        listen("no.such.name.invalid", 0)
