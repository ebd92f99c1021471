"""The options of a graph's first reading, for the files that change it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kg_retrievers.cli.reading_options import ANY_RDF, OPTIONS
from kg_retrievers.cli.show import note

if TYPE_CHECKING:
    from kg_retrievers.graph import KnowledgeGraph

#: The formats of RDF that have no named graphs.
ONE_GRAPH = ("nt", "ttl", "rdf", "n3", "wikidata")


def reused_options(graph: KnowledgeGraph, path: Path, format: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a graph was read, but for what is given, if a file has the same format, or both are RDF; and say so.

    Args:
        graph: The graph.
        path: The file.
        format: Its format.
        given: The arguments that options of the command set.
    """
    if not _is_alike(format, graph.reading.format):
        return {}
    reused = {name: value for name, value in graph.reading.options.items() if name not in given}
    if format in ONE_GRAPH:
        reused.pop("graphs", None)
    words: list[str] = []
    for option in OPTIONS.values():
        if option.argument in reused:
            value = reused[option.argument]
            words += option.words([*value.items()] if isinstance(value, dict) else value)
    if words:
        note(f"{path} is read as the graph was, with {shlex.join(words)}; the same options change it")
    return reused


def _is_alike(format: str, shown: str) -> bool:
    """Return whether a format is that which `Reading` shows, or both are RDF."""
    from kg_retrievers.graph.readers.files import SHOWN  # loads numpy
    from kg_retrievers.graph.readers.rdf.parsing import FORMATS

    return shown in FORMATS if format in ANY_RDF else SHOWN.get(format) == shown
