"""Work on many batches: in this process, or shared among processes of this machine."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from kg_retrievers.errors import InvalidArgumentError, WorkersError, named_arguments

Batch = TypeVar("Batch")
Result = TypeVar("Result")

#: How many batches for each worker are ahead of the first one that is not done, at most.
AHEAD = 4

#: The work of this process, if it is a worker.
_WORK: list[Callable[[Any], Any]] = []


@runtime_checkable
class Workers(Protocol):
    """Processes that share work on batches: `LocalWorkers`, or `RayWorkers`."""

    def map_batches(self, work: Callable[[Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield the result of some work for each batch, in order.

        Args:
            work: Gives the result for a batch, and nothing else. Each worker gets one copy, and keeps it for the next
                call with equal work.
            batches: The batches. Workers take no more than they are about to need.

        Raises:
            InvalidArgumentError: If the work or a batch cannot be handed to another process.
            WorkersError: If workers cannot be started, or end before they are done.
        """
        ...


def map_batches(
    work: Callable[[Batch], Result], batches: Iterable[Batch], workers: Workers | None = None
) -> Iterator[Result]:
    """Yield the result of some work for each batch, in order.

    Without workers, the work runs in this process.

    An error of the work is raised in place of its result, after the results before it.

    Example:
        >>> list(map_batches(sum, [[1, 2], [3]]))
        [3, 3]
    """
    return map(work, batches) if workers is None else workers.map_batches(work, batches)


@named_arguments
class LocalWorkers:
    """Run processes of this machine that share work on batches.

    Use it in a `with` block, which ends the processes.

    The processes start when they are first needed, and import the main program. A script that uses them guards its main
    part with `if __name__ == "__main__":`. If a process ends before its work is done, so does the run.

    Args:
        workers: How many processes, 1 or more.

    Raises:
        InvalidArgumentError: If there are less than 1.

    Example:
        >>> with LocalWorkers(2) as workers:
        ...     list(workers.map_batches(sum, [[1, 2], [3]]))
        [3, 3]
    """

    def __init__(self, workers: int) -> None:
        """Start nothing yet."""
        check_count("LocalWorkers", workers)
        self.workers = workers
        self._work: Callable[[Any], Any] | None = None
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        """Return the workers."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the processes."""
        self.close()

    def close(self) -> None:
        """End the processes after the work that they have begun."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = self._work = None

    def map_batches(self, work: Callable[[Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield the result of some work for each batch, in order.

        See `Workers`.
        """
        waiting: deque[Future[Result]] = deque()
        try:
            for batch in batches:
                pool = self._opened(work)
                waiting.append(pool.submit(_carry_out, batch))
                if len(waiting) >= AHEAD * self.workers:
                    yield _result_of(waiting.popleft())
            while waiting:
                yield _result_of(waiting.popleft())
        except BrokenProcessPool as cause:
            self.close()
            raise WorkersError(
                "LocalWorkers: a process ended before its work was done.",
                hint_python="Where memory ran out, take fewer workers. What was kept by then stays.",
            ) from cause
        finally:
            for future in waiting:
                future.cancel()

    def _opened(self, work: Callable[[Any], Any]) -> ProcessPoolExecutor:
        """Return processes that hold this work, and end processes that hold other work."""
        if self._pool is None or self._work != work:
            self.close()
            try:
                pickle.dumps(work)
            except (TypeError, AttributeError, pickle.PicklingError) as cause:
                raise not_handed_over("LocalWorkers", cause) from cause
            context = get_context("spawn")  # a fork would copy threads' locks as they are
            self._pool = ProcessPoolExecutor(self.workers, context, _keep, (work,))
            self._work = work
        return self._pool


def check_count(who: str, workers: object) -> None:
    """Check that a number of workers is one.

    Raises:
        InvalidArgumentError: If not.
    """
    if not isinstance(workers, int) or workers < 1:
        raise InvalidArgumentError(f"{who}: workers must be an integer of 1 or more, but got {workers!r:.100}.")


def check_workers(who: str, workers: object) -> None:
    """Check that the argument of a function can share work.

    Raises:
        InvalidArgumentError: If it is neither `Workers` nor None.
    """
    if not isinstance(workers, Workers | None):
        raise InvalidArgumentError(
            f"{who}: workers must be LocalWorkers(n), RayWorkers() or None, but got {workers!r:.100}."
        )


def not_handed_over(who: str, cause: Exception) -> InvalidArgumentError:
    """Return the error to raise if an object cannot be pickled."""
    return InvalidArgumentError(
        f"{who}: what is shared cannot be handed to another process ({' '.join(str(cause).split()):.200}).",
        hint_python="Do without workers.",
        hint_shell="Do without --workers.",
    )


def _keep(work: Callable[[Any], Any]) -> None:
    _WORK[:] = [work]


def _carry_out(batch: Any) -> Any:
    return _WORK[0](batch)


def _result_of(future: Future[Result]) -> Result:
    try:
        return future.result()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        if "pickle" not in str(error):
            raise
        raise not_handed_over("LocalWorkers", error) from error
