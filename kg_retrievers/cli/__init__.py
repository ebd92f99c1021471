"""The command kg-retrievers. The modules of a command are imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

#: The exit code after Ctrl-C.
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: The arguments; those of the process by default.
    """
    try:
        from kg_retrievers.cli.shell import run  # here, so that Ctrl-C is quiet during the imports, too

        return run(argv)
    except KeyboardInterrupt:
        print("kg-retrievers: interrupted", file=sys.stderr)
        return INTERRUPTED
