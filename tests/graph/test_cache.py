"""Locks in forks of a process whose threads hold them."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from kg_retrievers.graph.cache import LocalLock

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]


def takes_in_fork(lock: LocalLock) -> bool:
    """Tell whether a fork gets the lock within 20 s."""
    child = os.fork()
    if not child:
        signal.alarm(20)
        with lock:
            os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def test_what_a_thread_holds_is_free_in_a_fork() -> None:
    lock, held, ended = LocalLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            ended.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(60)
        assert takes_in_fork(lock)
        assert thread.is_alive()  # and holds it
    finally:
        ended.set()
        thread.join()
