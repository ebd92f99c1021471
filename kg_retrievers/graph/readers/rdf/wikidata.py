"""The "truthy" statements of Wikidata as N-Triples, or any other RDF of Wikidata."""

from __future__ import annotations

from pathlib import Path

from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.file_options import FileOptions
from kg_retrievers.graph.readers.limits import Limits
from kg_retrievers.graph.readers.opening import plain_name
from kg_retrievers.graph.readers.rdf.sources import read_rdf
from kg_retrievers.graph.readers.rdf.statements import RDF_LIMITS, RdfOptions

#: "instance of".
TYPE = "wdt:P31"


def read_wikidata(path: Path, options: FileOptions) -> GraphBuilder:
    """Read a dump: what P31 ("instance of") says are types, and relations are called as their properties are.

    Raises:
        GraphLoadError: If the file cannot be read, is malformed, or exceeds a limit.
        MissingExtraError: Without the extra `rdf`.
    """
    has_suffix = Path(plain_name(path)).suffix in (".nt", ".nq", ".ttl", ".trig", ".rdf", ".json", ".jsonld")
    limits = RDF_LIMITS if options.limits == Limits() else options.limits
    about = RdfOptions(type_predicates=(TYPE,), on_error=options.on_error, limits=limits)
    builder = read_rdf(path, None if has_suffix else "nt", about)
    builder.reading.understood["preset"] = f"wikidata: types by {TYPE}"
    return builder
