"""The one way in which work on many batches is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Batch = TypeVar("Batch")
Result = TypeVar("Result")

#: How many batches a worker has at once: one that it works on, and one that waits.
AT_ONCE = 2

#: How many batches for each worker are ahead of the first one that is not done, at most.
AHEAD = 4


class Workers(Protocol):
    """Processes that share work on batches: `LocalWorkers`, or `RayWorkers`."""

    def map_batches(self, work: Callable[[Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield what some work gives for each batch, in order.

        Args:
            work: Gives the result for a batch, and nothing else. Each worker gets one copy, and keeps it for the next
                call with equal work.
            batches: The batches; no more are taken than the workers are about to need.

        Raises:
            InvalidArgumentError: If the work or a batch cannot be handed to another process.
            WorkersError: If workers cannot be started, or end before they are done.
        """
        ...


def map_batches(
    work: Callable[[Batch], Result], batches: Iterable[Batch], workers: Workers | None = None
) -> Iterator[Result]:
    """Yield what some work gives for each batch, in order; in this process where there are no workers.

    An error of the work is raised in place of its result, after the results before it.

    Example:
        >>> list(map_batches(sum, [[1, 2], [3]]))
        [3, 3]
    """
    return map(work, batches) if workers is None else workers.map_batches(work, batches)
