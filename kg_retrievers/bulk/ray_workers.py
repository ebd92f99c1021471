"""RayWorkers: processes on a cluster, or of this machine, that Ray runs (extra `ray`)."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, TypeVar

from kg_retrievers.bulk.workers import AHEAD, check_count, not_handed_over
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, WorkersError, named_arguments

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else Ray reports to its makers; read when it is imported
try:
    import ray
    from ray.exceptions import RayError, RaySystemError, RayTaskError
except ImportError as missing:
    raise MissingExtraError("RayWorkers", "ray") from missing

Batch = TypeVar("Batch")
Result = TypeVar("Result")

#: How often a batch is given out again after its worker ended, and how often such a worker is started again.
RETRIES, RESTARTS = 3, 20

#: How many seconds an address may take to be reached.
PATIENCE = 10.0


@named_arguments
class RayWorkers:
    """Run Ray processes on a cluster or on this machine.

    Use it in a `with` block, which ends the processes.

    Ray starts a worker again if it ends, on another machine if need be, and gives it its batches once more, at most
    `RETRIES` times. Each worker keeps one processor for itself. Ray sends the work to each worker, with the keys of a
    language model. This package and the folder of an index, under the same path, must be on every machine.

    Args:
        address: The address of a running cluster that includes this machine, such as `10.0.0.1:6379`, or "auto" for the
            cluster that runs here. None starts Ray on this machine, unless it runs in this process already.
        workers: How many processes. None starts as many as the cluster has processors. If the cluster has room for
            fewer, the others join when there is room.

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
        self._work: Callable[[Any], Any] | None = None
        self._actors: list[Any] = []
        self._started = False

    def __enter__(self) -> Self:
        """Return the workers."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the processes, and Ray if it was started for them."""
        self.close()

    def close(self) -> None:
        """End the processes, and Ray if it was started for them."""
        self._end()
        if self._started:
            ray.shutdown()
        self._started = False

    def map_batches(self, work: Callable[[Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield the result of some work for each batch, in order.

        See `Workers`.
        """
        waiting: deque[Any] = deque()
        try:
            for number, batch in enumerate(batches):
                actors = self._opened(work)
                try:
                    waiting.append(actors[number % len(actors)].carry_out.remote(batch))
                except TypeError as cause:
                    raise not_handed_over("RayWorkers", cause) from cause
                if len(waiting) >= AHEAD * len(actors):
                    yield _result_of(waiting.popleft())
            while waiting:
                yield _result_of(waiting.popleft())
        except WorkersError:
            self._end()
            raise
        finally:
            for future in waiting:
                ray.cancel(future)

    def _opened(self, work: Callable[[Any], Any]) -> list[Any]:
        """Return processes that hold this work, and end processes that hold other work."""
        if not self._actors or self._work != work:
            self._end()
            self._connect()
            try:
                reference = ray.put(work)
            except TypeError as cause:
                raise not_handed_over("RayWorkers", cause) from cause
            resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call, unused-ignore]
            actor = ray.remote(num_cpus=1, max_restarts=RESTARTS, max_task_retries=RETRIES)(_Worker)
            count = self.workers or max(1, int(resources.get("CPU", 1)))
            self._actors = [actor.remote([reference]) for _ in range(count)]
            self._work = work
        return self._actors

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
        self._actors, self._work = [], None


class _Worker:
    """A process at work. It opens the work at its first batch, and keeps it."""

    def __init__(self, reference: list[Any]) -> None:
        self._reference = reference
        self._work: Callable[[Any], Any] | None = None

    def carry_out(self, batch: Any) -> Any:
        """Return the result for a batch."""
        if self._work is None:
            try:
                self._work = ray.get(self._reference[0])
            except RaySystemError as error:
                raise getattr(error, "client_exc", None) or error from None
        return self._work(batch)


def _result_of(future: Any) -> Any:
    """Return a result, or raise the error of the work itself."""
    try:
        return ray.get(future)
    except RayTaskError as error:
        if isinstance(error.cause, Exception) and not isinstance(error.cause, RayError):
            raise error.cause from None
        raise WorkersError(f"RayWorkers: a worker failed ({error.cause}).") from error
    except RayError as error:
        raise WorkersError(
            f"RayWorkers: a worker ended {1 + RETRIES} times at the same batch, or cannot be started again "
            f"({type(error).__name__}).",
            hint_python="If memory ran out, take fewer workers. What was kept by then stays.",
        ) from error


def check_address(address: str) -> tuple[str, int] | None:
    """Return the host and the port of an address, or None for "auto".

    Raises:
        InvalidArgumentError: If it is none.
    """
    host, _, port = address.rpartition(":")
    if address != "auto" and (not host or not port.isdecimal()):
        raise InvalidArgumentError(f'RayWorkers: wanted an address as "10.0.0.1:6379", or "auto", but got {address!r}.')
    return (host, int(port)) if address != "auto" else None


def check_reached(address: str) -> None:
    """Check that a server listens at an address.

    Ray itself would wait for minutes.

    Raises:
        WorkersError: If nobody does.
    """
    if place := check_address(address):
        try:
            socket.create_connection(place, PATIENCE).close()
        except OSError as cause:
            raise WorkersError(f"RayWorkers: no cluster can be reached at {address} ({cause}).") from cause
