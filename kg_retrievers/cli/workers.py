"""The option `--workers`: processes of this machine, or those of Ray."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kg_retrievers.bulk import Workers

#: Stands for Ray, alone or before the address of a cluster.
RAY = "ray"


def workers_name(text: str) -> str:
    """Take a number of processes, or Ray, with the address of a cluster or without."""
    kind, colon, address = text.partition(":")
    if not (text.isdecimal() and int(text)) and not (kind == RAY and bool(colon) == bool(address)):
        raise argparse.ArgumentTypeError(
            f"wanted a number of processes, {RAY} or {RAY}:ADDRESS as {RAY}:10.0.0.1:6379, but got {text!r}"
        )
    return text


def open_workers(name: str | None) -> AbstractContextManager[Workers | None]:
    """Return the workers that the option names, which the end of a `with` block ends; None for this process alone.

    Raises:
        MissingExtraError: If Ray is needed and not installed.
    """
    if name is None:
        return nullcontext()
    if name.isdecimal():
        from kg_retrievers.bulk import LocalWorkers

        return LocalWorkers(int(name))
    from kg_retrievers.bulk.ray_workers import RayWorkers

    return RayWorkers(name.partition(":")[2] or None)
