"""The command kg-retrievers: ask a graph, index it, let it teach methods, measure them, or see a demonstration.

What a command needs is loaded when it is first used, so that the help and a misspelt option show at once.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from io import TextIOWrapper
from typing import Any

from kg_retrievers.cli.ask import run as run_ask
from kg_retrievers.cli.compare import run as run_compare
from kg_retrievers.cli.demo import run as run_demo
from kg_retrievers.cli.evaluate import run as run_evaluate
from kg_retrievers.cli.index import run as run_index
from kg_retrievers.cli.info import run as run_info
from kg_retrievers.cli.mcp import run as run_mcp
from kg_retrievers.cli.options import make_parser
from kg_retrievers.cli.questions import run as run_questions
from kg_retrievers.cli.serve import run as run_serve
from kg_retrievers.cli.show import message, note
from kg_retrievers.cli.train import run as run_train
from kg_retrievers.cli.update import run as run_update
from kg_retrievers.cli.warm_up import run as run_warm_up
from kg_retrievers.errors import FewerNamesWarning

__all__ = ["main"]

#: What each command runs.
COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "ask": run_ask,
    "serve": run_serve,
    "index": run_index,
    "update": run_update,
    "info": run_info,
    "questions": run_questions,
    "train": run_train,
    "evaluate": run_evaluate,
    "compare": run_compare,
    "mcp": run_mcp,
    "demo": run_demo,
    "warm-up": run_warm_up,
}

#: Exit codes: after a mistake, after Ctrl-C, and when nobody reads the output.
MISTAKE, INTERRUPTED, BROKEN_PIPE = 2, 130, 141

_SILENT = logging.NullHandler()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: The arguments; those of the process by default.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not stream.closed:
            stream.reconfigure(errors="backslashreplace")  # a name that a terminal cannot show must not end the program
    # The library logs why it refuses a question; the commands say so themselves, in their own words.
    logging.getLogger("kg_retrievers").addHandler(_SILENT)
    try:
        code = _run(argv)
    except SystemExit as end:  # of a help text, or a mistake in the arguments
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if (ended := _end_output(code)) == code:
            raise
        return ended
    return _end_output(code)


def _run(argv: Sequence[str] | None) -> int:
    options = argparse.Namespace(debug=False)
    try:
        make_parser().parse_args(argv, options)
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            return COMMANDS[options.command](options)
    except KeyboardInterrupt:
        note("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except Exception as error:
        if options.debug:
            traceback.print_exc()
        note(f"error: {message(error)}")
        return MISTAKE


def _show_warning(otherwise: Callable[..., None], text: Warning | str, category: type[Warning], *more: Any) -> None:
    """Note what a vector store lacks; show other warnings as Python does."""
    if issubclass(category, FewerNamesWarning):
        note(str(text))
    else:
        otherwise(text, category, *more)


def _end_output(code: int) -> int:
    """Write what stdout still holds; return the exit code, another one where nobody takes it."""
    if sys.stdout is None or sys.stdout.closed:
        return code
    try:
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        ended = BROKEN_PIPE
    except OSError as error:
        if not code:  # else it was told
            note(f"error: {message(error)}")
        ended = code or MISTAKE
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed when the process ends
    return ended
