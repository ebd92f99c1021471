"""RayWorkers: processes on a cluster, or of this machine, that Ray runs (extra `ray`)."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Self, TypeVar
from uuid import uuid4

from kg_retrievers.bulk.local import check_count, not_handed_over
from kg_retrievers.bulk.workers import AHEAD, AT_ONCE
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, WorkersError

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else Ray reports to its makers; read when it is imported
try:
    import ray
    from ray.exceptions import RayError, RaySystemError, RayTaskError
except ImportError as missing:
    raise MissingExtraError("RayWorkers", "ray") from missing

Batch = TypeVar("Batch")
Result = TypeVar("Result")

#: How often a batch is given out again after its worker ended.
RETRIES = 3

#: How often a worker that ended is started again.
RESTARTS = 20

#: How many seconds an address may take to be reached.
PATIENCE = 10.0


class RayWorkers:
    """Processes that Ray runs, on a cluster or on this machine; to be used in a `with` block, which ends them.

    A worker that ends is started again, on another machine if need be, and gets its batches once more, at most
    `RETRIES` times. Each keeps one processor for itself. What is handed to a worker is sent as Ray sends it, the keys
    of a language model included; this package has to be installed where the workers are, and the folder of an index has
    to be there under the same path.

    Args:
        address: The address of a running cluster, as `10.0.0.1:6379`, of which this machine is a part; or "auto" for
            the one that runs here. None starts Ray on this machine, unless it is already running in this process.
        workers: How many processes; None for as many as the cluster has processors. More than it has room for join
            when there is room.

    Raises:
        MissingExtraError: If Ray is not installed.
        InvalidArgumentError: If there are less than 1, or the address is none.
    """

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """Start nothing yet."""
        if workers is not None:
            check_count("RayWorkers", workers)
        if address is not None:
            check_address(address)
        self.address, self.workers = address, workers
        self._actors: list[Any] = []
        self._shared: _Shared | None = None
        self._started = False

    def __enter__(self) -> Self:
        """Return the workers."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the processes, and Ray where it was started for them."""
        self.close()

    def close(self) -> None:
        """End the processes, and Ray where it was started for them."""
        self._end()
        if self._started:
            ray.shutdown()
        self._started = False

    def map_batches(self, work: Callable[[Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield what some work gives for each batch, in order; see `Workers`."""
        waiting = iter(batches)
        for first in waiting:
            try:
                yield from _in_order(self._opened(), self._share(work), chain([first], waiting))
            except WorkersError:
                self._end()
                raise

    def _opened(self) -> list[Any]:
        """Return the processes."""
        if not self._actors:
            self._connect()
            resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call, unused-ignore]
            count = self.workers or max(1, int(resources.get("CPU", 1)))
            actor = ray.remote(num_cpus=1, max_restarts=RESTARTS, max_task_retries=RETRIES)(_Worker)
            self._actors = [actor.remote() for _ in range(count)]
        return self._actors

    def _share(self, work: Callable[[Any], Any]) -> _Shared:
        """Give the work to Ray, unless it was given last."""
        if self._shared is None or self._shared.work != work:
            try:
                self._shared = _Shared(work, [ray.put(work)], uuid4().hex)
            except TypeError as cause:
                raise not_handed_over("RayWorkers", cause) from cause
        return self._shared

    def _connect(self) -> None:
        """Connect to the cluster, or start Ray."""
        if ray.is_initialized():
            return
        options: dict[str, Any] = {"logging_level": "warning", "log_to_driver": False}
        if self.address is None:
            options |= {"address": "local", "num_cpus": self.workers, "include_dashboard": False}
        else:
            check_reached(self.address)
            options["address"] = self.address
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError, RayError) as cause:
            raise WorkersError(f"RayWorkers: Ray cannot be started or reached ({cause}).") from cause
        self._started = True

    def _end(self) -> None:
        for actor in self._actors:
            ray.kill(actor)
        self._actors, self._shared = [], None


class _Shared(NamedTuple):
    """Work that is given to Ray: the work, a list with a reference to it, and an id."""

    work: Callable[[Any], Any]
    reference: list[Any]
    id: str


class _Worker:
    """A process at work; it opens the work before its first batch, and keeps it."""

    def __init__(self) -> None:
        self._id = ""
        self._work: Callable[[Any], Any] = _no_work

    def open(self, id: str, reference: list[Any]) -> None:
        """Open the work; where this fails, it does so with its own error."""
        if self._id != id:
            try:
                self._work, self._id = ray.get(reference[0]), id
            except RaySystemError as error:
                raise getattr(error, "client_exc", None) or error from None

    def carry_out(self, id: str, reference: list[Any], batch: Any) -> Any:
        """Return the result for a batch."""
        self.open(id, reference)  # a worker that was started again has not
        return self._work(batch)


def _no_work(_: Any) -> Any:
    """Stand for the work before it is opened."""


def _in_order(actors: list[Any], shared: _Shared, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the results of batches in order; each worker that has opened the work gets `AT_ONCE` of them."""
    about = (shared.id, shared.reference)
    running: dict[Any, tuple[Any, int]] = {actor.open.remote(*about): (actor, -1) for actor in actors}
    free, done = deque[Any](), dict[int, Any]()
    numbered, given, told, more = enumerate(batches), 0, 0, True
    try:
        while more or told < given:
            (ended,), _ = ray.wait(list(running), num_returns=1)
            actor, number = running.pop(ended)
            if number < 0:
                _result_of(ended)
                free.extend([actor] * AT_ONCE)
            else:
                done[number] = ended
                free.append(actor)
            while told in done:
                yield _result_of(done.pop(told))
                told += 1
            while more and free and given - told < AHEAD * len(actors):
                if more := (pair := next(numbered, None)) is not None:
                    actor = free.popleft()
                    running[_sent(actor, *about, pair[1])] = actor, pair[0]
                    given += 1
    finally:
        for waiting in running:
            ray.cancel(waiting)


def _sent(actor: Any, *arguments: Any) -> Any:
    try:
        return actor.carry_out.remote(*arguments)
    except TypeError as cause:
        raise not_handed_over("RayWorkers", cause) from cause


def _result_of(ended: Any) -> Any:
    """Return a result, or raise the error of the work itself."""
    try:
        return ray.get(ended)
    except RayTaskError as error:
        if isinstance(error.cause, Exception) and not isinstance(error.cause, RayError):
            raise error.cause from None
        raise WorkersError(f"RayWorkers: a worker failed ({error.cause}).") from error
    except RayError as error:
        raise WorkersError(
            f"RayWorkers: a worker ended {1 + RETRIES} times at the same batch, or cannot be started again "
            f"({type(error).__name__}).",
            hint_python="Where memory ran out, take fewer workers. What was kept by then stays.",
        ) from error


def check_address(address: str) -> tuple[str, int] | None:
    """Return the host and the port of an address; None for "auto".

    Raises:
        InvalidArgumentError: If it is none.
    """
    host, _, port = address.rpartition(":")
    if address != "auto" and (not host or not port.isdecimal()):
        raise InvalidArgumentError(f'RayWorkers: wanted an address as "10.0.0.1:6379", or "auto", but got {address!r}.')
    return (host, int(port)) if address != "auto" else None


def check_reached(address: str) -> None:
    """Check that somebody listens at an address, for which Ray itself would wait for minutes.

    Raises:
        WorkersError: If nobody does.
    """
    if place := check_address(address):
        try:
            socket.create_connection(place, PATIENCE).close()
        except OSError as cause:
            raise WorkersError(f"RayWorkers: no cluster can be reached at {address} ({cause}).") from cause
