"""The "truthy" statements of Wikidata as N-Triples, or any other RDF of Wikidata."""

from __future__ import annotations

from pathlib import Path

from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.file_options import FileOptions
from kg_retrievers.graph.readers.opening import plain_name
from kg_retrievers.graph.readers.rdf.parsing import NAMES
from kg_retrievers.graph.readers.rdf.sources import read_rdf
from kg_retrievers.graph.readers.rdf.statements import RdfOptions

#: "instance of".
TYPE = "wdt:P31"


def read_wikidata(path: Path, options: FileOptions) -> GraphBuilder:
    """Read a dump: what P31 ("instance of") says are types, and relations are called as their properties are.

    Raises:
        GraphLoadError: If the file cannot be read, is malformed, or exceeds a limit.
        MissingExtraError: Without the extra `rdf`.
    """
    about = RdfOptions(type_predicates=(TYPE,), on_error=options.on_error, limits=options.limits)
    return read_rdf(path, wikidata_format(path), about)


def wikidata_format(path: Path) -> str | None:
    """Return the format of RDF in which a dump is written: None where the suffix says it, N-Triples otherwise."""
    return None if Path(plain_name(path)).suffix.lstrip(".") in NAMES else "nt"
