"""The commands on a graph that stays in its database, which messages name."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from kg_retrievers.cli.reading_options import OPTIONS


def index_command(options: argparse.Namespace, vectors: str | None = None) -> str:
    """Return the command that loads the names of the graph, into another store if one is given."""
    return graph_command("index", argparse.Namespace(**{**vars(options), "vectors": vectors or options.vectors}))


def graph_command(command: str, options: argparse.Namespace, *arguments: str) -> str:
    """Return a command on the graph that stays in its database, as the options name it."""
    words = ["kg-retrievers", command, options.graph, *arguments]
    for name, option in OPTIONS.items():
        value: Any = getattr(options, name)
        if value is not None:
            words += option.words(value)
    for label, key in options.key:
        words += ["--key", f"{label}={key}" if label else key]
    if options.database_name is not None:
        words += ["--database-name", options.database_name]
    if not options.explain:
        words.append("--no-explain")
    if options.embeddings is not None:
        words += ["--embeddings", options.embeddings]
    if options.trust_remote_code:
        words.append("--trust-remote-code")
    return shlex.join([*words, "--vectors", options.vectors])
