"""From files of any format, found by name, suffix or content, to the rows of a knowledge graph."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

from kg_retrievers.errors import GraphLoadError, Hints, InvalidArgumentError, did_you_mean, first_of, listed
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.exports import export_rows, is_apoc_row, is_neo4j_header, read_apoc, read_neo4j_files
from kg_retrievers.graph.readers.frameworks.networkx_graphs import read_node_link, read_xml
from kg_retrievers.graph.readers.opening import check_needs, open_bytes, plain_name, read_errors
from kg_retrievers.graph.readers.rdf.wikidata import is_wikidata
from kg_retrievers.graph.readers.tables.delimited import open_table, read_entity_table, read_fact_table
from kg_retrievers.graph.readers.tables.frames import FrameReader, add_entities
from kg_retrievers.graph.readers.tables.json_rows import DECODER, add_rows, json_rows, numbered, read_json
from kg_retrievers.graph.readers.text_files import FORMATS, FileOptions, TextFile
from kg_retrievers.paths import checked_path

GraphFormat = Literal[
    "tsv", "csv", "pipe", "jsonl", "json", "node-link", "parquet", "arrow", "graphml", "gexf",
    "nt", "nq", "ttl", "trig", "rdf", "jsonld", "n3", "wikidata", "neo4j-csv", "apoc-jsonl",
]  # fmt: skip

#: The formats of RDF.
RDF = tuple(format for format in get_args(GraphFormat) if "names" in FORMATS[format])

#: The formats whose nodes have ids that hold within their file.
OWN_IDS = ("graphml", "gexf", "node-link", "apoc-jsonl")

#: A file or folder, or several.
GraphPaths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

#: The formats by the suffixes of files, and what `Reading` calls them.
SUFFIXES = {suffix: format for format in get_args(GraphFormat) for suffix in FORMATS[format]["suffixes"]}
SHOWN: dict[str, str] = {format: about["shown"] for format, about in FORMATS.items()}

#: For a graph that is in memory, in a server or on the web.
_NO_FILE: Hints = {
    "hint_python": "Save a file of the web first. A graph: KGRetriever.from_index(GraphIndex.build(graph)). A server: "
    "GraphIndex.connect(Neo4jExecutor(address), embeddings), of SPARQL SparqlExecutor(address).",
    "hint_shell": "Save a file of the web first, and name a database as GRAPH.",
}

#: How many bytes of a file tell its format.
PREFIX = 1 << 14

#: How many bytes of JSON hold its first row.
_JSON_START = 1 << 20

#: The beginnings of files, white space aside, in the order in which they are looked for.
_CONTENTS: tuple[tuple[re.Pattern[bytes], GraphFormat], ...] = (
    (re.compile(rb"PAR1"), "parquet"),
    (re.compile(rb"ARROW1"), "arrow"),
    (re.compile(rb"(?:<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE.*?>|\s)*<(?:\w+:)?RDF\b", re.DOTALL), "rdf"),
    (re.compile(rb"(?:<\?xml.*?\?>|<!--.*?-->|\s)*<graphml\b", re.DOTALL), "graphml"),
    (re.compile(rb"(?:<\?xml.*?\?>|<!--.*?-->|\s)*<gexf\b", re.DOTALL), "gexf"),
    (re.compile(rb"(?:#[^\n]*\n|\s)*(?:@prefix|@base|PREFIX|BASE)\s", re.IGNORECASE), "ttl"),
    (re.compile(rb"(?:#[^\n]*\n|\s)*(?:<[^>\s]+>|_:\S+)\s+<[^>\s]+>\s+[^\n]+\.\s*(?:\n|$)"), "nt"),
    (re.compile(rb"\s*[{\[]"), "json"),
)


def find_format(path: Path, format: GraphFormat | None, options: FileOptions) -> GraphFormat | None:
    """Return the format of a file or folder, or None for a table whose delimiter is still to be found.

    Raises:
        GraphLoadError: If it cannot be read.
        InvalidArgumentError: If there is no such format.
    """
    if format is not None and format not in get_args(GraphFormat):
        names = get_args(GraphFormat)
        near = did_you_mean(str(format), names)
        raise InvalidArgumentError(
            f"format is {', '.join(map(repr, names))} or None, but got {format!r}; {near}".rstrip("; ")
        )
    if format is None and os.path.isdir(path):
        return "neo4j-csv"
    found = format or SUFFIXES.get(Path(plain_name(path)).suffix) or _content_format(path, options)
    is_json = found == "json" or (found == "jsonl" and format is None)
    return _json_format(path, found, options) if found and is_json else found


def _json_format(path: Path, found: GraphFormat, options: FileOptions) -> GraphFormat:
    """Return what JSON holds: rows in lines or an array, APOC's, Wikidata's, JSON-LD, or a graph of nodes and links."""
    start = _json_start(path, options)
    if is_wikidata(start):
        return "wikidata"
    is_array = start.startswith("[")
    try:
        row = DECODER.raw_decode(start[1:].lstrip())[0] if is_array else DECODER.decode(start.partition("\n")[0])
    except (ValueError, RecursionError):  # no JSON, or a document of several lines
        row = None
    if is_apoc_row(row):
        return "apoc-jsonl"
    if found == "jsonl":
        return found
    if isinstance(row, dict) and row.keys() & {"@context", "@graph", "@id"}:
        return "jsonld"
    if row is None and re.search(r'"@(?:context|graph|id)"\s*:', start[:PREFIX]):
        return "jsonld"
    if is_array:
        return "json"
    return "jsonl" if isinstance(row, dict) and "nodes" not in row else "node-link"


def _json_start(path: Path, options: FileOptions) -> str:
    with open_bytes(path, options.limits, by_line=False) as opened:
        return opened.read(_JSON_START).decode(options.codec, "ignore").lstrip("\ufeff \t\r\n")


def _content_format(path: Path, options: FileOptions) -> GraphFormat | None:
    with open_bytes(path, options.limits, by_line=False) as opened:
        start = opened.read(PREFIX).removeprefix(b"\xef\xbb\xbf")
    return next((format for pattern, format in _CONTENTS if pattern.match(start)), None)


def graph_files(paths: GraphPaths, options: FileOptions, *, is_rdf: bool = False) -> list[Path]:
    """Return the files that hold a graph: some files, and the files of folders in the order of their names.

    A folder of CSV files of Neo4j stays a folder. Files of other suffixes in a folder are left out, and with `is_rdf`
    all that are no RDF.

    Raises:
        GraphLoadError: If a folder holds no graph.
        InvalidArgumentError: If there is no path.
    """
    given: list[Any] = [*paths] if isinstance(paths, Iterable) and not isinstance(paths, str) else [paths]
    for one in given or [paths]:
        if not isinstance(one, str | os.PathLike) or "://" in str(one):
            raise InvalidArgumentError(f"KnowledgeGraph: wanted the path of a file, but got {one!r:.100}.", **_NO_FILE)
    found = list[Path]()
    for path in (checked_path(one, GraphLoadError) for one in given):
        inside = _files_in(path, options) if path.is_dir() else [path]
        found += [file for file in inside if not is_rdf or file == path or find_format(file, None, options) in RDF]
    check_needs(found, options.limits)
    return found


def _files_in(folder: Path, options: FileOptions) -> list[Path]:
    from kg_retrievers.graph.storage.parts import own_files  # reads graphs, too

    with read_errors(folder):
        tables = csv_files(folder)
    if any(_is_neo4j(path, options) for path in tables):
        return [folder]
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))
    found = [path for path in files if Path(plain_name(path)).suffix in SUFFIXES]
    if not found or own_files(folder):
        raise GraphLoadError(
            "is a folder without graph files; wanted files such as .ttl, .csv or .jsonl, or CSV files of Neo4j.",
            folder,
            hint_python="A folder that `save` wrote: KnowledgeGraph.open(path).",
            hint_shell="",
        )
    return found


def _is_neo4j(path: Path, options: FileOptions) -> bool:
    with suppress(GraphLoadError):  # the reader raises it, which knows all files
        _, _, first = open_table(path, "csv", options, 2)
        return bool(first) and is_neo4j_header(first[0].cells)
    return False


def csv_files(folder: Path) -> Sequence[Path]:
    """Return the CSV files of a folder, packed or not, in the order of their names."""
    return [path for path in sorted(folder.iterdir()) if Path(plain_name(path)).suffix == ".csv" and path.is_file()]


def add_entity_file(path: Path, options: FileOptions, builder: GraphBuilder) -> None:
    """Add labels, aliases, types and attributes from a file of entities.

    A row of a table is `entity<TAB>label`, or the table has a header with entity (or id, key, node), label (or name),
    aliases and types. Further columns are attributes. JSON may hold entities only.

    Raises:
        GraphLoadError: If the file cannot be read, a line is malformed, or there are no entities.
        InvalidArgumentError: If its format is none of tables or JSON.
    """
    found = find_format(path, None, options)
    skipped = builder.skipped
    if found in ("parquet", "arrow"):
        count = _add_arrow_entities(path, found, options, builder)
    elif found in ("jsonl", "json"):
        count = add_rows(TextFile(path, options), builder, with_facts=False, is_array=found == "json")
    elif found in (None, "tsv", "csv", "pipe", "neo4j-csv"):
        count = _add_table_entities(path, found, options, builder)
    else:
        raise InvalidArgumentError(f"{path} is {found}, which is read with the graph alone; wanted a table or JSON.")
    if not count:
        lines = builder.skipped - skipped
        message = f"no entities, {lines} malformed lines. Wanted an entity a line, as in entity<TAB>label."
        raise GraphLoadError(message, path)


def _add_table_entities(path: Path, format: GraphFormat | None, options: FileOptions, builder: GraphBuilder) -> int:
    file, layout, first = open_table(path, format, options, 2)
    if format == "neo4j-csv" or (first and is_neo4j_header(first[0].cells)):
        read_neo4j_files([path], options, builder)
        return 1
    count = read_entity_table(file, layout, first, builder)
    builder.skipped += file.skipped
    return count


def _add_arrow_entities(path: Path, format: GraphFormat, options: FileOptions, builder: GraphBuilder) -> int:
    from kg_retrievers.graph.readers.tables.arrow_files import ArrowFile

    table = ArrowFile(path, format, options.limits)
    try:
        return add_entities(builder, table, options.attributes, str(path), options.on_error)
    except InvalidArgumentError as error:
        raise GraphLoadError(error.message.removeprefix(f"{path}: "), path, hint_python=error.hint_python) from error


#: The formats of tables of facts. None is text whose delimiter is to be found.
_TABLES = (None, "tsv", "csv", "pipe", "parquet", "arrow")


def read_graph_rows(
    path: str | os.PathLike[str],
    *,
    entities: str | os.PathLike[str] | None = None,
    format: GraphFormat | None = None,
    **options: Any,
) -> GraphBuilder:
    """Read a graph from a file, or from a folder if its format is a folder.

    - "tsv": `head<TAB>relation<TAB>tail`, with quotes as in RFC 4180 if all of the file is so written.
    - "csv": the same with commas, semicolons or another delimiter, and quotes as in RFC 4180.
    - "pipe": `head|relation|tail`.
    - "jsonl" and "json": rows of JSON, one per line or element of an array (see `JsonRows`).
    - "parquet", "arrow": a table (see `FrameReader`).
    - "graphml", "gexf", "node-link": nodes and edges with attributes.
    - "nt", "nq", "ttl", "trig", "rdf", "jsonld", "n3", "wikidata": as `KnowledgeGraph.from_rdf`
      reads them by default.
    - "neo4j-csv", "apoc-jsonl": see `read_neo4j_files` and `read_apoc`. A document of arrows.app or APOC is found if
      "node-link" is, too.

    Files with the suffixes of gzip, bzip2, xz and Zstandard are unpacked on the way.

    Args:
        path: The file or folder.
        entities: A second file that describes entities.
        format: What it holds; None goes by suffix, then by content.
        **options: The fields of `FileOptions`, for both files; `columns` for the first.

    Raises:
        GraphLoadError: If the file cannot be read, a line is malformed, a limit is exceeded, or there are no triples.
        InvalidArgumentError: If an argument has no such value, or contradicts the format.
    """
    given = FileOptions(**options)
    place = Path(path)
    found = find_format(place, format, given)
    given.check_columns(has_source=found in _TABLES)
    given.check_known(place, found or "csv", entities is not None)
    builder = _READERS.get(found or "", _read_table)(place, found, given)
    if found not in RDF:  # whose reader says itself that there is nothing
        _check_has_facts(builder, place)
        builder.reading.options = given.given
    _add_entities(entities, options, builder)
    return builder


def _add_entities(entities: str | os.PathLike[str] | None, options: Mapping[str, Any], builder: GraphBuilder) -> None:
    if entities is not None:
        about = {**options, "columns": None, "header": None, "facts": ()}
        if plain_name(Path(entities)).endswith(".tsv"):
            about["delimiter"] = None
        add_entity_file(Path(entities), FileOptions(**about), builder)


def read_graph_files(
    paths: GraphPaths,
    *,
    entities: str | os.PathLike[str] | None = None,
    ontology: GraphPaths = (),
    format: GraphFormat | None = None,
    **options: Any,
) -> list[GraphBuilder]:
    """Read the files of a graph: all of RDF as one, and each other file by itself.

    Args:
        paths: The files or folders.
        entities: A further file that describes entities.
        ontology: Files of RDF that only describe.
        format: What each file holds; None goes by suffix, then by content.
        **options: The fields of `FileOptions`.

    Raises:
        GraphLoadError: As `read_graph_rows`.
        InvalidArgumentError: As `read_graph_rows`, and if there is an ontology without RDF.
    """
    given = FileOptions(**options)
    files = graph_files(paths, given)
    formats = [find_format(path, format, given) for path in files]
    rdf = [path for path, found in zip(files, formats, strict=True) if found in RDF]
    with_own_ids = [path for path, found in zip(files, formats, strict=True) if found in OWN_IDS]
    if len(with_own_ids) > 1:
        raise InvalidArgumentError(
            f"{with_own_ids[0]} and {with_own_ids[1]} name nodes by ids of their own, so that one id may mean two "
            "things. Read each file by itself, or write the facts of both into one table."
        )
    if ontology and not rdf:
        raise InvalidArgumentError(
            f"ontology: {files[0]} holds no RDF, and an ontology describes a graph of RDF.",
            hint_python="Give entities= a table of labels and types.",
            hint_shell="Give --entities a table of labels and types.",
        )
    if len(rdf) < 2 and not ontology:
        rdf = []
    read = list[GraphBuilder]()
    if rdf:
        read.append(_read_several(rdf, format, ontology, given))
        _add_entities(entities, options, read[0])
    for path in files:
        if path not in rdf:
            try:
                read.append(read_graph_rows(path, entities=None if read else entities, format=format, **options))
            except GraphLoadError as error:
                _tell_others(error, [str(file) for file in files if file != path])
                raise
    return read


def _tell_others(error: GraphLoadError, others: Sequence[str]) -> None:
    """Say how to leave out one of several files."""
    if others:
        error.hint_python += f" If it is no part of the graph, name the others: {listed(others, 3)}."
        error.hint_shell += f" If it is no part of the graph, name the others: {first_of(others, 3, ' --also ')}"


def _check_has_facts(builder: GraphBuilder, path: Path) -> None:
    if not len(builder):
        if builder.reading.format == SHOWN["neo4j-csv"] and not builder.skipped:
            hint = "Name the folder that holds the file of its relationships, too."
            raise GraphLoadError("holds nodes and no relationships.", path, hint_python=hint)
        empty = "the file is empty: " if path.is_file() and not path.stat().st_size else ""
        raise GraphLoadError(
            f"{empty}no triples, {builder.skipped} malformed lines. Below a header, if there is one, wanted a triple a "
            "line, as in head<TAB>relation<TAB>tail.",
            path,
        )


# --- each kind of format ----------------------------------------------------------------------------------------------


def _read_table(path: Path, format: GraphFormat | None, options: FileOptions) -> GraphBuilder:
    """Read delimited text, whose first row may show an export of Neo4j."""
    file, layout, first = open_table(path, format, options, 3)
    if options.columns is None and options.header is not False and first and is_neo4j_header(first[0].cells):
        options.check_known(path, "neo4j-csv")
        return _read_neo4j(path, format, options)
    builder = GraphBuilder(format=SHOWN[layout.format])
    builder.reading.understood["cells"] = layout.shown
    read_fact_table(file, layout, first, builder)
    builder.skipped += file.skipped
    return builder


def _read_json(path: Path, format: GraphFormat | None, options: FileOptions) -> GraphBuilder:
    builder = GraphBuilder(format=SHOWN[str(format)])
    add_rows(TextFile(path, options), builder, with_facts=True, is_array=format == "json")
    return builder


def _read_neo4j(path: Path, format: GraphFormat | None, options: FileOptions) -> GraphBuilder:
    builder = GraphBuilder(format=SHOWN["neo4j-csv"])
    read_neo4j_files(csv_files(path) if os.path.isdir(path) else [path], options, builder)
    return builder


def _read_apoc(path: Path, format: GraphFormat | None, options: FileOptions) -> GraphBuilder:
    start = _json_start(path, options)
    if re.match(r'\{\s*"(?:nodes|rels|relationships|style)"', start):
        return _read_node_link(path, format, options)
    builder, file = GraphBuilder(format=SHOWN["apoc-jsonl"]), TextFile(path, options)
    read_apoc(file, builder, json_rows(file, is_array=start.startswith("[")))
    return builder


def _read_arrow(path: Path, format: GraphFormat | None, options: FileOptions) -> GraphBuilder:
    from kg_retrievers.graph.readers.tables.arrow_files import ArrowFile

    builder, table = GraphBuilder(), ArrowFile(path, str(format), options.limits)
    reader = FrameReader(builder, options.on_error, path, options.limits, options.attributes)
    reader.add_facts(table, options.named_columns, options.facts)
    return builder


def _read_node_link(path: Path, format: GraphFormat | None, options: FileOptions) -> GraphBuilder:
    """Read a document: a graph of nodes and links, or an export of APOC or arrows.app."""
    file = TextFile(path, options)
    document = read_json(file, json.JSONDecoder())
    rows = export_rows(document)
    if rows is None:
        return read_node_link(path, document, options)
    options.check_known(path, "apoc-jsonl")
    builder = GraphBuilder(format=SHOWN["apoc-jsonl"] if "rels" in document else "arrows.app JSON")
    read_apoc(file, builder, numbered(file, rows))
    return builder


def _read_rdf(path: Path, format: GraphFormat | None, options: FileOptions) -> GraphBuilder:
    return _read_several([path], format, (), options)


def _read_several(
    paths: Sequence[Path], format: GraphFormat | None, ontology: GraphPaths, options: FileOptions
) -> GraphBuilder:
    from kg_retrievers.graph.readers.rdf.sources import read_rdf
    from kg_retrievers.graph.readers.rdf.statements import RdfOptions

    describing = graph_files(ontology, options, is_rdf=True) if ontology else ()
    return read_rdf(paths, format, RdfOptions(on_error=options.on_error, limits=options.limits), describing)


_READERS: dict[str, Callable[[Path, GraphFormat | None, FileOptions], GraphBuilder]] = {
    "jsonl": _read_json,
    "json": _read_json,
    "apoc-jsonl": _read_apoc,
    "neo4j-csv": _read_neo4j,
    "parquet": _read_arrow,
    "arrow": _read_arrow,
    "graphml": read_xml,
    "gexf": read_xml,
    "node-link": _read_node_link,
    **dict.fromkeys(RDF, _read_rdf),
}
