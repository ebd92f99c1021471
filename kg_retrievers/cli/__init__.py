"""The command kg-retrievers. The modules of a command are imported when it is called."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from typing import Any

__all__ = ["main"]

#: The exit code after Ctrl-C.
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: The arguments; those of the process by default.
    """
    try:
        with _interruptible(ends=argv is None):
            from kg_retrievers.cli.shell import run  # here, so that Ctrl-C is quiet during the imports, too

            return run(argv)
    except KeyboardInterrupt:
        print("kg-retrievers: interrupted", file=sys.stderr)
        return INTERRUPTED


#: Holds something from the first Ctrl-C on.
_INTERRUPTS: list[bool] = []


def check_interrupted() -> None:
    """Raise the interrupt that other code has turned into an error of its own.

    Raises:
        KeyboardInterrupt: If there was one.
    """
    if _INTERRUPTS:
        raise _Interrupted


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C. After a plain KeyboardInterrupt in an import, Python would end the process with a code of its own."""


def _interrupt(*_: Any) -> None:
    _INTERRUPTS.append(True)
    raise _Interrupted


def _interrupt_again(ignored: Any) -> None:
    """Repeat an interrupt that Python swallowed, as in a callback of an import."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        Timer(0.01, signal.raise_signal, [signal.SIGINT]).start()
    else:
        sys.__unraisablehook__(ignored)


@contextmanager
def _interruptible(ends: bool) -> Iterator[None]:
    """Raise `_Interrupted` at Ctrl-C. If the process ends afterwards, Ctrl-C ends it without a word from then on."""
    usual, hook = signal.default_int_handler, sys.unraisablehook
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not usual:
        yield
        return
    _INTERRUPTS.clear()
    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _interrupt_again
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if ends else usual)
        sys.unraisablehook = hook
