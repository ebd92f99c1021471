"""From files, and from graphs of rdflib, to RDF statements by pyoxigraph. Only this file imports it."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, MissingExtraError
from kg_retrievers.graph.readers.opening import Limits, check_regular, limit_error, open_bytes, plain_name, skip_hints
from kg_retrievers.graph.readers.rdf.guards import SHORTEN, GuardedFile, guard_of
from kg_retrievers.graph.readers.text_files import FORMATS as FILE_FORMATS

#: The formats: the other names of each, the suffixes of its files among them.
FORMATS: Mapping[str, Sequence[str]] = {one["shown"]: one["names"] for one in FILE_FORMATS.values() if "names" in one}

#: The formats whose parser goes on behind an error.
LINE_FORMATS = ("N-Triples", "N-Quads")
_RECOVERABLE = (*LINE_FORMATS, "Turtle", "TriG")

#: The formats by their names.
NAMES = {name: format for format, names in FORMATS.items() for name in (format.lower(), *names)}


def rdf_format(path: Path, format: str | None) -> str:
    """Return the name of a format: as given, else by the suffix of a file.

    Raises:
        InvalidArgumentError: If there is no such format.
        GraphLoadError: If the suffix says none, or there is no such file.

    Example:
        >>> rdf_format(Path("films.ttl.gz"), None), rdf_format(Path("films"), "application/n-triples")
        ('Turtle', 'N-Triples')
    """
    if format is not None:
        found = NAMES.get(format.partition(";")[0].strip().lower()) if isinstance(format, str) else None
        if found is None:
            raise InvalidArgumentError(f"format is one of {', '.join(FORMATS)}, or its media type, but got {format!r}.")
        return found
    found = NAMES.get(Path(plain_name(path)).suffix.lstrip("."))
    if found is None:
        check_regular(path)  # a missing file is the likelier mistake
        raise GraphLoadError(
            "its suffix says no format of RDF.",
            path,
            hint_python=f"Give format=, one of {', '.join(FORMATS)}. Read a table with from_file(path).",
            hint_shell=f"Give --read format=, one of {', '.join(FORMATS)}.",
        )
    return found


#: How a document names the context of schema.org, which may stand behind others in a list.
_SCHEMA_ORG = re.compile(
    rb'("@context"\s*:\s*(?:\[\s*(?:"[^"]*"\s*,\s*)*)?)"https?://schema\.org/?(?:docs/jsonldcontext\.json(?:ld)?)?"'
)

#: This context: its vocabulary, and the properties whose values are addresses, of schema-dts 2.1 (Apache-2.0).
_SCHEMA_ORG_FILE = Path(__file__).parents[2] / "schema_org.json"


class RdfFile:
    """The statements of a file.

    Args:
        path: The file; `.gz`, `.bz2` and `.xz` are unpacked on the way.
        format: As of `rdf_format`.
        base_iri: What relative IRIs are relative to.
        on_error: "raise", or "skip" to count malformed statements in `skipped`.
        limits: What the file may hold.

    Attributes:
        format: The name of the format.
        module: The module that parses it.
        skipped: How many lines of malformed statements were skipped.
        prefixes: The prefixes that the file declares; complete when all statements were read.
    """

    def __init__(self, path: Path, format: str | None, base_iri: str | None, on_error: str, limits: Limits) -> None:
        """Check the format; nothing is read yet."""
        self.path, self.format = path, rdf_format(path, format)
        self._base_iri, self._on_error, self._limits = base_iri, on_error, limits
        self.module = oxigraph()
        self.skipped, self._last_line = 0, -1
        self._file: GuardedFile | None = None
        self.prefixes: dict[str, str] = {}

    def read(self, begin: Callable[[dict[str, str]], None], take: Callable[[Iterable[Any]], None]) -> None:
        """Hand all statements to a function, which is called again behind each malformed one.

        Args:
            begin: Gets the prefixes that stand before the first statement.
            take: Gets the statements.

        Raises:
            GraphLoadError: If the file cannot be read, is malformed or exceeds a limit.
        """
        with open_bytes(self.path, self._limits, by_line=self.format in LINE_FORMATS) as file:
            guard = guard_of(self.format, self._refuse, 4 * self._limits.cell_length)
            self._file = GuardedFile(file, guard)
            names_context = self.format == "JSON-LD" and _SCHEMA_ORG.search(file.peek())
            statements = self._parse(self._with_context(self._file) if names_context else self._file)
            first: list[Any] | None = None
            while True:
                try:
                    if first is None:
                        first = [*islice(statements, 1)]
                        begin(dict(statements.prefixes))
                        take(first)
                    take(statements)
                    break
                except SyntaxError as error:
                    self._reject(error)
                except MemoryError as error:
                    if not str(error).startswith("Reached the buffer"):
                        raise
                    self._refuse("a statement has more than 16 MiB, the most that the parser takes.", SHORTEN)
            self.prefixes = dict(statements.prefixes)

    def _with_context(self, file: GuardedFile) -> io.BytesIO:
        """Return a document with the context of schema.org in place of its address; it is read as a whole."""
        parts: list[bytes] = []
        while part := file.read():
            parts.append(part)
            if file.size > self._limits.document_bytes:
                self._refuse(f"a document of more than {self._limits.document_bytes:,} bytes", limit="document_bytes")
        context = b" ".join(_SCHEMA_ORG_FILE.read_bytes().split())
        return io.BytesIO(_SCHEMA_ORG.sub(lambda found: found[1] + context, b"".join(parts)))

    def _parse(self, file: Any) -> Any:
        try:
            format = self.module.RdfFormat.from_extension(FORMATS[self.format][0])
            return self.module.parse(file, format=format, base_iri=self._base_iri)
        except ValueError as error:
            raise InvalidArgumentError(f"base_iri is no absolute IRI: {self._base_iri!r} ({error}).") from None

    def _refuse(self, message: str, advice: str = "", limit: str | None = None) -> NoReturn:
        message = f"{message.removesuffix('.')}, before byte {self._file.size if self._file else 0:,}"
        if limit is not None:
            raise limit_error(self.path, None, message, limit)
        raise GraphLoadError(f"{message}.", self.path, hint_python=advice)

    def _reject(self, error: SyntaxError) -> None:
        """Raise for a malformed statement, or count its line."""
        if self._on_error == "skip" and self.format in _RECOVERABLE:
            self.skipped += error.lineno != self._last_line
            self._last_line = error.lineno or -1
            return
        reason = re.sub(r"^Parser error (at|between) ", "", str(error.msg)).removesuffix(".")
        message = f"is no {self.format}: {reason}."
        raise GraphLoadError(message, self.path, error.lineno, **self._advice(str(error)))

    def _advice(self, message: str) -> dict[str, str]:
        if "Invalid UTF-8" in message or "invalid utf-8" in message:
            told = "RDF is UTF-8 in every format. Write the file as UTF-8, if it is Latin-1:"
            rewritten = 'Path("new").write_text(Path("old").read_text("latin-1"), "utf-8")'
            shell = f"{told} iconv -f latin1 -t utf-8 {shlex.quote(str(self.path))} > FILE"
            return {"hint_python": f"{told} {rewritten}", "hint_shell": shell}
        if "No scheme" in message and self.format not in LINE_FORMATS:
            advice = "A relative IRI needs a base:"
            return {"hint_python": f'{advice} base_iri="http://...".', "hint_shell": f"{advice} --read base_iri=IRI."}
        if "has not been declared" in message:
            return {"hint_python": "Declare it in the first line of the file: @prefix NAME: <http://...> ."}
        if "LoadDocumentCallback" in message:
            return {
                "hint_python": "A context on another server is never fetched, and only that of schema.org is known: "
                "write the context into the file."
            }
        if self.format not in _RECOVERABLE:
            return {"hint_python": f"Nothing behind an error of {self.format} can be read: correct the file."}
        return skip_hints("statement")


def oxigraph() -> Any:
    """Return the module pyoxigraph.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import pyoxigraph
    except ImportError:
        raise MissingExtraError("RDF", "rdf") from None
    return pyoxigraph


class RdflibGraph:
    """The statements of a Graph, Dataset or ConjunctiveGraph of rdflib 7, with the terms of pyoxigraph.

    Args:
        graph: The graph.
        on_error: "raise", or "skip" to count statements with an IRI that is none in `skipped`.

    Attributes:
        skipped: How many statements were skipped.
    """

    format = "rdflib"

    def __init__(self, graph: Any, on_error: str) -> None:
        """Read nothing yet."""
        self._graph, self._on_error, self.module = graph, on_error, oxigraph()
        self.skipped = 0

    @property
    def prefixes(self) -> dict[str, str]:
        """The prefixes that the graph binds, except those of every new graph."""
        bound = {str(prefix): str(namespace) for prefix, namespace in self._graph.namespaces()}
        try:
            usual = {str(prefix): str(namespace) for prefix, namespace in type(self._graph)().namespaces()}
        except TypeError:  # a class of the user's that needs arguments
            usual = {}
        return {prefix: namespace for prefix, namespace in bound.items() if usual.get(prefix) != namespace}

    def read(self, begin: Callable[[dict[str, str]], None], take: Callable[[Iterable[Any]], None]) -> None:
        """Read it, as `RdfFile.read` does."""
        begin(self.prefixes)
        take(self)

    def __iter__(self) -> Iterator[tuple[Any, Any, Any, Any]]:
        """Yield the statements in sorted order, since rdflib keeps none."""
        rows = self._graph.quads((None, None, None, None)) if hasattr(self._graph, "quads") else self._graph
        default = getattr(self._graph, "default_graph", None)  # of a Dataset; a ConjunctiveGraph calls it otherwise
        if default is None:
            default = getattr(self._graph, "default_context", None)
        names = dict[Any, Any].fromkeys((None, getattr(default, "identifier", None)), self.module.DefaultGraph())
        for row in sorted(rows, key=_sort_key):
            graph = getattr(row[3], "identifier", row[3]) if len(row) > 3 else None
            try:
                if graph not in names:
                    names[graph] = self._term(graph)
                yield *map(self._term, row[:3]), names[graph]
            except ValueError as error:  # also half a surrogate pair
                if self._on_error == "raise":
                    raise InvalidArgumentError(
                        f"KnowledgeGraph.from_rdf: {tuple(map(str, row[:3]))!r} is no statement of RDF: {error}.",
                        **skip_hints("statement"),
                    ) from None
                self.skipped += 1

    def _term(self, term: Any) -> Any:
        """Return a term of rdflib as one of pyoxigraph, but a quoted graph as it is."""
        if not isinstance(term, str):
            return term
        if hasattr(term, "language"):
            datatype = getattr(term, "datatype", None)
            about = {"datatype": self.module.NamedNode(str(datatype))} if datatype else {"language": term.language}
            return self.module.Literal(str(term), **about)
        return (self.module.BlankNode if type(term).__name__ == "BNode" else self.module.NamedNode)(str(term))


def is_rdflib(source: Any) -> bool:
    """Return whether something is a graph of rdflib, by its methods."""
    return all(hasattr(source, name) for name in ("triples", "namespaces", "serialize"))


def _sort_key(row: Any) -> list[tuple[str, str]]:
    return [(type(term).__name__, repr(term) if term is not None else "") for term in row]
