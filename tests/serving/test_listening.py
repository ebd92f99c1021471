"""Addresses to listen on; tests/cli test what listens there."""

from __future__ import annotations

import pytest

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.listening import address_of, listen


def test_an_address_is_free_or_told() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert address_of(taken) == f"http://127.0.0.1:{port}/"
        with pytest.raises(InvalidArgumentError, match=f"at port {port}") as no_port:
            listen("127.0.0.1", port)
    assert "--port 0" in no_port.value.on_shell
    with pytest.raises(InvalidArgumentError, match="cannot listen") as no_host:
        listen("no.such.name.invalid", 0)
    assert "--host 127.0.0.1" in no_host.value.on_shell
