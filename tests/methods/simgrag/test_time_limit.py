"""The timer that ends searches."""

from __future__ import annotations

import time

import numpy as np

from kg_retrievers.methods.simgrag.matching.solving import stopped_after


def wait_for(stop: np.ndarray, seconds: float) -> bool:
    """Return whether the flag is set within some seconds."""
    until = time.monotonic() + seconds
    while not stop[0] and time.monotonic() < until:
        time.sleep(0.001)
    return bool(stop[0])


def test_each_search_is_stopped_at_its_own_time() -> None:
    flags = [np.zeros(1, np.int64) for _ in range(3)]
    with stopped_after(60, flags[0]), stopped_after(0.01, flags[1]), stopped_after(None, flags[2]):
        assert wait_for(flags[1], 20)
        assert [int(flag[0]) for flag in flags] == [0, 1, 0]


def test_a_search_that_has_ended_is_not_stopped() -> None:
    stop = np.zeros(1, np.int64)
    with stopped_after(0.01, stop):
        pass
    assert not wait_for(stop, 0.1)
