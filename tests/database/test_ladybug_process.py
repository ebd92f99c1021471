"""The process of the embedded database: what a query can do to it, and what its host sees of that."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kg_retrievers.database import ladybug, ladybug_process
from kg_retrievers.database.ladybug import LadybugExecutor
from kg_retrievers.database.ladybug_process import PROCESSES, ProcessSession, _answer_in
from kg_retrievers.database.ladybug_worker import SessionError
from kg_retrievers.deadline import await_foreign_function, call_foreign, deadline
from kg_retrievers.errors import (
    BudgetError,
    DatabaseCancelledError,
    DatabaseCrashError,
    DatabaseError,
    DatabaseMemoryError,
    DatabaseQueryError,
    DatabaseTimeoutError,
    InvalidArgumentError,
)
from kg_retrievers.graph import KnowledgeGraph

#: How much memory and time each hostile query may take here.
MEMORY, TIMEOUT = 1 << 29, 1.0

MILLION = " ".join(f"UNWIND [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] AS i{number}" for number in range(6))
#: What LadybugDB does not stop.
UNSTOPPABLE = f"{MILLION} {MILLION.replace('i', 'j')} RETURN sum(i0 * j0) AS total"
REPLACED = "'aaaaaaaaaa'"
for _ in range(12):
    REPLACED = f"replace({REPLACED}, 'a', 'aaaaaaaaaa')"
CLIQUE = [f"(n{i})-[:r]->(n{j})" for i in range(11) for j in range(i)]

#: Queries by what they do. They are sent as they are, without the check, which is to refuse some of them besides.
HOSTILE = {
    "a large SKIP": "MATCH (n) RETURN n ORDER BY CAST(n AS STRING) SKIP 1000000 LIMIT 3",
    "a chain of 18.9 kB": "RETURN 1" + " + 1" * 4720 + " AS x",
    "nested replace": f"RETURN size({REPLACED}) AS x",
    "a star of 16 parts": "MATCH " + ", ".join(f"(a)-[:r]->(b{i})" for i in range(16)) + " RETURN count(*)",
    "a clique of 11 nodes": "MATCH " + ", ".join(CLIQUE) + " RETURN count(*)",
    "products that do not stop": UNSTOPPABLE,
    "a list of all": "MATCH (a), (b), (c), (d), (e) RETURN collect(a.key + b.key + c.key + d.key + e.key) AS x",
    "sorted products": "MATCH (a), (b), (c), (d), (e) RETURN a, b, c, d, e ORDER BY a.key + b.key + c.key + d.key",
}


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples((f"e{i}", "r", f"e{j}") for i in range(20) for j in range(20))


@pytest.fixture
def executor(graph: KnowledgeGraph) -> Iterator[LadybugExecutor]:
    with LadybugExecutor.from_graph(graph, max_memory=MEMORY) as executor:
        yield executor


def process_of(executor: LadybugExecutor) -> subprocess.Popen[bytes]:
    (session,) = idle(executor)
    return session._process


def idle(executor: LadybugExecutor) -> list[ProcessSession]:
    return [session for session in executor._pool._free.queue if session]


def resident(process_id: int | str) -> int:
    """How many bytes of memory a process has, at most since it began."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):  # it has ended
        return 0


class Watch:
    """Notes the most memory that the processes of an executor have together with what the host gains."""

    def __init__(self, executor: LadybugExecutor) -> None:
        self._executor, self._done, self.most = executor, threading.Event(), 0
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        before = resident("self")
        while not self._done.wait(0.02):
            sessions: list[Any] = [*self._executor._pool._busy, *idle(self._executor)]
            now = sum(resident(session._process.pid) for session in sessions)
            self.most = max(self.most, now + resident("self") - before)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def works(executor: LadybugExecutor) -> bool:
    return executor.run("MATCH (n {key: 'e1'}) RETURN n.key").rows == (("e1",),)


# --- hostile queries --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds the memory")
@pytest.mark.parametrize(
    "what",
    [*list(HOSTILE)[::4], *(pytest.param(one, marks=pytest.mark.heavy) for n, one in enumerate(HOSTILE) if n % 4)],
)
def test_the_host_outlives(executor: LadybugExecutor, what: str) -> None:
    """It gets a typed error or an answer soon after the limit, and memory stays under the limit and 200 MB."""
    assert works(executor)
    start = time.monotonic()
    with Watch(executor) as watch:
        try:
            executor._fetch(HOSTILE[what], {}, 1001, TIMEOUT)
        except DatabaseError as error:
            told = str(error)
            assert told.startswith("LadybugExecutor: the query ")
    assert time.monotonic() - start < TIMEOUT + 20
    assert watch.most < MEMORY + 200e6
    assert works(executor)


def test_a_crash_is_an_error_of_its_query(executor: LadybugExecutor) -> None:
    for _ in range(2):
        with pytest.raises(DatabaseCrashError, match=r"took the database down \(SIGSEGV\); nothing was lost") as caught:
            executor._fetch(HOSTILE["a large SKIP"], {}, 10, 10.0)
        assert caught.value.reason == "The query took the database down (SIGSEGV)."
        assert works(executor)


def test_memory_is_limited(executor: LadybugExecutor) -> None:
    for what in ("nested replace", "a list of all"):
        with pytest.raises(DatabaseMemoryError, match=r"more memory than it may take .* or raise max_memory"):
            executor._fetch(HOSTILE[what], {}, 10, 60.0)
        assert works(executor)


def test_an_answer_that_is_too_large_does_not_reach_the_host(
    graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladybug_process, "ANSWER_PART", 1 << 6)
    with LadybugExecutor.from_graph(graph, max_memory=1 << 26) as executor:
        text = "x" * (2 << 20)
        with pytest.raises(DatabaseMemoryError, match=r"its answer has more than 1,048,576 bytes"):
            executor._fetch("RETURN $text AS x", {"text": text}, 10, 60.0)
        assert executor._fetch("RETURN $text AS x", {"text": text[:1000]}, 10, 60.0).rows == [[text[:1000]]]
    with pytest.raises(InvalidArgumentError, match=r"max_memory is 1000\. Wanted 67108864 bytes or more, or None"):
        LadybugExecutor.from_graph(graph, max_memory=1000)


def test_time_is_limited(graph: KnowledgeGraph) -> None:
    """Also while a query is planned."""
    with LadybugExecutor.from_graph(graph) as executor:
        threads = threading.active_count()
        for what in ("a clique of 11 nodes", "products that do not stop"):
            start = time.monotonic()
            with pytest.raises(DatabaseTimeoutError, match=r"longer than 0\.5 s and was stopped"):
                executor._fetch(HOSTILE[what], {}, 10, 0.5)
            assert time.monotonic() - start < 20
            assert works(executor)
        assert threading.active_count() == threads


def test_the_start_of_a_process_is_part_of_the_time(executor: LadybugExecutor) -> None:
    """A query that comes too early for the process that replaces another fails, and the process starts."""
    assert works(executor)
    process_of(executor).kill()
    process_of(executor).wait()
    with pytest.raises(DatabaseTimeoutError, match=r"longer than 0\.02 s"):
        executor._fetch("RETURN 1", {}, 1, 0.02)
    process = process_of(executor)
    assert works(executor)
    assert process_of(executor) is process


def late() -> BudgetError:
    return BudgetError("too late")


@pytest.mark.heavy
@pytest.mark.parametrize("threaded", [False, True])
def test_a_deadline_stops_a_query(executor: LadybugExecutor, threaded: bool) -> None:
    """Whether it runs in the thread of its caller or in one of its own; the next query finds a process."""
    assert works(executor)
    process = process_of(executor)
    ask = partial(call_foreign, executor._fetch) if threaded else executor._fetch
    start = time.monotonic()
    with deadline(0.5, late):
        with pytest.raises(BudgetError, match="too late"):
            ask(UNSTOPPABLE, {}, 10, 100.0)
        assert time.monotonic() - start < 20
        with pytest.raises(BudgetError, match="too late"):
            executor.run("RETURN 1")
    assert wait_until(lambda: process.poll() is not None)
    assert works(executor)
    assert wait_until(lambda: not executor._pool._busy)


def test_a_deadline_stops_the_loading(graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladybug, "load_graph", lambda execute, *_, **options: execute(UNSTOPPABLE))
    with deadline(2.0, late), pytest.raises(BudgetError, match="too late"):
        LadybugExecutor.from_graph(graph)


# --- the process ------------------------------------------------------------------------------------------------------


def test_it_ends_with_the_executor(graph: KnowledgeGraph) -> None:
    executor = LadybugExecutor.from_graph(graph)
    process = process_of(executor)
    executor.close()
    assert process.returncode == -signal.SIGKILL
    executor = LadybugExecutor.from_graph(graph)
    process, folder = process_of(executor), executor.path.parent
    del executor
    assert process.returncode == -signal.SIGKILL
    assert not folder.exists()


PROGRAM = """
import os, sys, time
from kg_retrievers import KnowledgeGraph, LadybugExecutor
executor = LadybugExecutor.from_graph(KnowledgeGraph.from_triples([("a", "r", "b")]))
(session,) = filter(None, executor._pool._free.queue)
print(session._process.pid, executor.path.parent, flush=True)
"""


def ended(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def wait_until(what: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while not what() and time.monotonic() < until:
        time.sleep(0.02)
    return what()


#: Further ends of a host.
REST = ("os.kill(os.getpid(), 15)", "os._exit(1)")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), 9)", "sys.exit()", *(pytest.param(one, marks=pytest.mark.heavy) for one in REST)]
)
def test_nothing_stays_however_the_host_ends(end: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM + end], capture_output=True, text=True, timeout=120)
    process_id, folder = done.stdout.split()
    assert wait_until(lambda: ended(int(process_id)) and not Path(folder).exists()), done.stderr


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"9" * 10_000,
        b'{"columns": ["a"], "stored": [true], "rows": [[1, 2]]}',
        b'{"columns": [1], "stored": [true], "rows": []}',
        b'{"columns": 1, "stored": [], "rows": []}',
        b'{"columns": [], "stored": [], "rows": 7}',
        b'\xff{"columns": [], "stored": [], "rows": []}',
    ],
)
def test_an_answer_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(SessionError, match="it answered"):
        _answer_in(data)


@pytest.mark.heavy
def test_a_process_that_lies(executor: LadybugExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it answers, the host gets a typed error and another process."""
    for node in {"_ID": 1}, {"_RELS": 1, "_NODES": None}:
        lie = {"columns": ["n"], "stored": [True], "rows": [[node]]}
        assert works(executor)
        with monkeypatch.context() as patched:
            patched.setattr(ProcessSession, "_received", lambda *_, lie=lie: json.dumps(lie).encode())
            with pytest.raises(DatabaseCrashError, match="it answered"):
                executor._fetch("RETURN 1", {}, 10, 10.0)
        for session in idle(executor):
            session.close()  # an answer of it was left unread
    deep = {"columns": ["n"], "stored": [False], "rows": [[json.loads("[" * 600 + "]" * 600)]]}
    executor.schema()
    with monkeypatch.context() as patched:
        patched.setattr(ProcessSession, "_received", lambda *_: json.dumps(deep).encode())
        with pytest.raises(DatabaseQueryError, match="nested too deep"):
            executor.run("RETURN 1 AS n")
    for session in idle(executor):
        session.close()
    assert works(executor)


# --- cancelling -------------------------------------------------------------------------------------------------------


def run_in_thread(executor: LadybugExecutor) -> tuple[threading.Thread, list[Exception]]:
    errors: list[Exception] = []

    def work() -> None:
        try:
            executor._fetch(UNSTOPPABLE, {}, 10, 100.0)
        except DatabaseError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert wait_until(lambda: bool(executor._pool._busy))
    return thread, errors


def test_cancel(executor: LadybugExecutor) -> None:
    assert works(executor)
    process = process_of(executor)
    thread, errors = run_in_thread(executor)
    executor.cancel()
    thread.join(30)
    assert isinstance(errors[0], DatabaseCancelledError)
    assert process.poll() is not None  # nothing runs on
    assert works(executor)


@pytest.mark.heavy
def test_an_async_call_is_cancelled(executor: LadybugExecutor) -> None:
    assert works(executor)
    process, threads = process_of(executor), threading.active_count()

    async def cancel() -> None:
        task = asyncio.create_task(await_foreign_function(executor._fetch, UNSTOPPABLE, {}, 10, 100.0))
        while not executor._pool._busy:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    start = time.monotonic()
    asyncio.run(cancel())
    assert time.monotonic() - start < 30
    assert wait_until(lambda: process.poll() is not None and threading.active_count() == threads)
    assert asyncio.run(await_foreign_function(works, executor))


@pytest.mark.heavy
@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_ctrl_c_ends_the_query() -> None:
    program = f"""
import signal, threading, os, time
from kg_retrievers import KnowledgeGraph, LadybugExecutor
signal.signal(signal.SIGINT, signal.default_int_handler)
executor = LadybugExecutor.from_graph(KnowledgeGraph.from_triples([("a", "r", "b")]))
process = next(filter(None, executor._pool._free.queue))._process
threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    executor._fetch({UNSTOPPABLE!r}, {{}}, 10, 100.0)
except KeyboardInterrupt:
    print(process.poll(), len(executor.run("MATCH (n) RETURN n")))
executor.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "-9 2\n", done.stderr


# --- forks and threads ------------------------------------------------------------------------------------------------


def in_fork(what: Callable[[], bool]) -> bool:
    """Call a function in a fork of this process, and wait for what it says for 60 s."""
    process_id = os.fork()
    if process_id == 0:
        right = False
        try:
            right = what()
        finally:
            os._exit(0 if right else 1)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        done, status = os.waitpid(process_id, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.kill(process_id, signal.SIGKILL)
    os.waitpid(process_id, 0)
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_starts_its_own(graph: KnowledgeGraph) -> None:
    with LadybugExecutor.from_graph(graph) as executor:
        assert works(executor)

        def ask_and_close() -> bool:
            right = works(executor)
            executor.close()
            return right

        assert in_fork(ask_and_close)
        assert executor.path.exists()  # the fork did not remove it
        assert works(executor)


@pytest.mark.heavy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_while_a_query_runs(executor: LadybugExecutor) -> None:
    thread, errors = run_in_thread(executor)
    assert in_fork(lambda: works(executor))
    executor.cancel()
    thread.join(30)
    assert isinstance(errors[0], DatabaseCancelledError)


@pytest.fixture
def full_pool(graph: KnowledgeGraph) -> Iterator[LadybugExecutor]:
    """An executor whose processes are all busy."""
    with LadybugExecutor.from_graph(graph) as executor:
        taken = [executor._pool._free.get() for _ in range(PROCESSES)]
        yield executor
        for session in taken:
            executor._pool._free.put(session)


def test_a_wait_for_busy_processes_ends(full_pool: LadybugExecutor) -> None:
    with pytest.raises(DatabaseTimeoutError, match=r"longer than 0\.1 s"):
        full_pool._fetch("RETURN 1", {}, 1, 0.1)
    with deadline(0.2, lambda: BudgetError("no time")), pytest.raises(BudgetError, match="no time"):
        full_pool.run("RETURN 1")


def test_a_wait_for_busy_processes_is_cancelled(full_pool: LadybugExecutor) -> None:
    threads = threading.active_count()

    async def cancel() -> None:
        task = asyncio.create_task(await_foreign_function(full_pool._fetch, "RETURN 1", {}, 1, 100.0))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert wait_until(lambda: threading.active_count() == threads)


@pytest.mark.parametrize("error", [OSError, RuntimeError])
def test_a_process_that_does_not_start_takes_no_place(
    executor: LadybugExecutor, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def refuse(*_: object) -> None:
        raise error("the system starts no more")

    process_of(executor).kill()
    process_of(executor).wait()
    with monkeypatch.context() as patched:
        patched.setattr(ladybug_process, "ProcessSession", refuse)
        for _ in range(PROCESSES):
            with pytest.raises(error, match="no more"):
                executor._fetch("RETURN 1", {}, 1, 1.0)
    assert works(executor)
