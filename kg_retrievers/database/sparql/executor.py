"""Runs SPARQL at an endpoint, and reads parts of the graph behind it."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

from kg_retrievers.database.executor import Executor
from kg_retrievers.database.sparql.endpoint import Endpoint
from kg_retrievers.database.sparql.facts import SparqlParts
from kg_retrievers.database.sparql.safety import CheckedSparql, check_read_only, written
from kg_retrievers.database.sparql.schema import SparqlSchema, read_schema
from kg_retrievers.database.sparql.terms import Blank, Solutions, Term, is_sendable, read_term, value_term, written_term
from kg_retrievers.database.sparql.tokens import refusal
from kg_retrievers.database.sparql.vocabulary import PRESETS, Preset, Vocabulary
from kg_retrievers.database.values import Relationship, Rows
from kg_retrievers.errors import DatabaseUnavailableError, InvalidArgumentError, named_arguments
from kg_retrievers.graph import GraphBuilder
from kg_retrievers.graph.attributes import SOURCE, VALIDITY, Where
from kg_retrievers.graph.building import Reading
from kg_retrievers.graph.operations import short
from kg_retrievers.graph.parts import MAX_TIMEOUT, TIMEOUT
from kg_retrievers.graph.readers.rdf.sources import read_rdf
from kg_retrievers.graph.readers.rdf.statements import expanded
from kg_retrievers.graph.readers.text_files import Attributes

_FACT = re.compile(r"([hrt])(\d+)")


def read_solutions(found: Mapping[str, Any], wanted: Sequence[str], is_cut: bool, url: str) -> Solutions:
    """Read a result in JSON.

    Args:
        found: The result.
        wanted: The names of the columns.
        is_cut: Whether the endpoint says that it cut it off.
        url: Its address.

    Raises:
        DatabaseUnavailableError: If it has another form, or other columns.
    """
    try:
        if missing := set(wanted).difference(found["head"]["vars"]):
            raise KeyError(f"no column {min(missing)}")
        rows = [[None if (term := row.get(name)) is None else read_term(term) for name in wanted]
                for row in found["results"]["bindings"]]  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError) as cause:
        raise DatabaseUnavailableError(
            f"SparqlExecutor: {url} does not answer as a SPARQL endpoint: its result has another form "
            f"({type(cause).__name__}: {cause!s:.100}). Is this the address of its queries?"
        ) from cause
    return Solutions(wanted, rows, is_cut)


def fact_columns(columns: Sequence[str]) -> list[int]:
    """Return the numbers of the facts with all three terms in a result, sorted.

    Example:
        >>> fact_columns(["target", "h0", "r0", "t0", "h1"])
        [0]
    """
    found: dict[int, set[str]] = {}
    for match in filter(None, map(_FACT.fullmatch, columns)):
        found.setdefault(int(match[2]), set()).add(match[1])
    return sorted(number for number, parts in found.items() if len(parts) == 3)


def rows_of(found: Solutions, checked: CheckedSparql, limit: int, reader: SparqlParts) -> Rows:
    """Turn terms into keys, and three columns of a fact into one.

    Rows are sorted by their values, unless the query has an order of its own. Those that are equal by key, as where
    literals differ in their language alone, are one.
    """
    stored = found.rows[:limit]
    facts = fact_columns(checked.columns)
    of_facts = {f"{letter}{number}" for number in facts for letter in "hrt"}
    plain = [name for name in checked.columns if name not in of_facts]
    at = {name: position for position, name in enumerate(checked.columns)}
    key_of = reader.of_terms(term for row in stored for term in row)
    triples = reader.by_rows([[row[at[f"{letter}{n}"]] for letter in "hrt"] for row in stored for n in facts])
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for number, row in enumerate(stored):
        values: list[Any] = [_key(row[at[name]], key_of) for name in plain]
        of_row = triples[number * len(facts) : (number + 1) * len(facts)]
        shown = (None if fact is None else Relationship(fact, {}) for fact in of_row)
        rows.setdefault((*values, *of_row), (*values, *shown))
    order = list(rows) if checked.order_by else sorted(rows, key=_sort_key)
    truncated = len(found.rows) > limit or found.is_cut
    return Rows((*plain, *(f"r{number}" for number in facts)), tuple(rows[one] for one in order), truncated)


def _key(term: Term | None, keys: Mapping[Term, str]) -> str | None:
    if isinstance(term, Blank):
        return f"_:{term.value}"
    return None if term is None else keys[term]


def _sort_key(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(value is not None, () if value is None else tuple(value) if isinstance(value, tuple) else (value,))
            for value in row]  # fmt: skip


#: The most bytes of an answer, and the requests a second to a public endpoint.
MAX_BYTES, POLITE = 64 << 20, 2.0

_VARIABLE = re.compile(r"\?(\w+)")

#: A named graph that no endpoint has.
NO_GRAPH = "urn:kg-retrievers:no-graph"

#: The digits of a number that is a parameter.
MAX_DIGITS = 100

#: How many seconds the whole graph, and its schema may take to read.
READING_TIMEOUT, SCHEMA_TIMEOUT = MAX_TIMEOUT, 600.0


@named_arguments
class SparqlExecutor(Executor):
    """Runs SELECT at a SPARQL endpoint, and reads parts of the graph behind it.

    Any other query, as one that may do more than read, raises `SparqlSafetyError`.

    The graph is the one that `KnowledgeGraph.from_rdf` reads from the same triples, without blank nodes, which no query
    can name: keys are prefixed names, labels, aliases and types are descriptions, a literal is an entity by its text.
    If the endpoint writes literals in another form, such as Oxigraph with "01"^^xsd:integer, that form counts.

    In a query, `$name` is a parameter, and `?name` a variable. A text is the key of an entity: it stands, as a list
    does, in `VALUES ?x { $name }` or `IN ($name)`. Rows hold keys, too, and numbers as texts. Three columns `?h0`,
    `?r0` and `?t0` are the head, relation and tail of a fact. They become one column `r0`, a `Relationship`.

    Name and password come from the environment variables SPARQL_USERNAME and SPARQL_PASSWORD, or a token from
    SPARQL_TOKEN. Nothing is sent before the first query. Requests that only read are sent again, up to four times, if
    the server is busy or the connection breaks. The executor waits as long as the server asks for. A redirect is
    refused.

    Args:
        url: The address of the endpoint's queries, such as "http://localhost:7878/query". None for the address of the
            preset.
        preset: "wikidata" or "dbpedia", which set how their triples are read, and their addresses. Other arguments go
            before it.
        languages: As of `KnowledgeGraph.from_rdf`, and so are the next five.
        label_predicates: Predicates of labels, best first.
        alias_predicates: Predicates of aliases.
        type_predicates: Predicates of types, as "wdt:P31".
        literals: "drop" leaves out the facts whose tails are literals.
        prefixes: Prefixes in addition to the well-known ones: {prefix: namespace}.
        namespaces: How the IRIs of relations begin, such as "dbo:". Triples of other predicates are no facts. None for
            all.
        requests_per_second: The most requests per second, above 0. None for no limit, except 2 with a preset.
        max_bytes: The most bytes of an answer, 1 or more.
        user_agent: Who asks. Public endpoints want an address of yours in it.
        graphs: The IRIs or short forms of named graphs. Each query sees only these. None for everything that the
            endpoint shows.

    Raises:
        InvalidArgumentError: If the address is none or holds a password, or another argument has no such value.

    Example:
        >>> executor = SparqlExecutor("http://localhost:7878/query", prefixes={"ex": "http://example.org/"})
        >>> executor.dialect
        'sparql'
    """

    dialect = "sparql"

    def __init__(
        self,
        url: str | None = None,
        *,
        preset: Preset | None = None,
        languages: Sequence[str] | None = None,
        label_predicates: Sequence[str] | None = None,
        alias_predicates: Sequence[str] | None = None,
        type_predicates: Sequence[str] | None = None,
        literals: Literal["keep", "drop"] | None = None,
        prefixes: Mapping[str, str] | None = None,
        namespaces: Sequence[str] | None = None,
        requests_per_second: float | None = None,
        max_bytes: int = MAX_BYTES,
        user_agent: str | None = None,
        graphs: Sequence[str] | None = None,
    ) -> None:
        """Prepare the connections."""
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self._made_with = given
        if preset is not None and preset not in PRESETS:
            raise InvalidArgumentError(f"SparqlExecutor: preset is {preset!r}. Wanted one of {sorted(PRESETS)}.")
        known: dict[str, Any] = {} if preset is None else dict(PRESETS[preset])
        known_url = known.pop("url", None)
        if (address := url or known_url) is None:
            raise InvalidArgumentError("SparqlExecutor: got neither url= nor preset=. Name the address of an endpoint.")
        if requests_per_second is not None and not 0 < requests_per_second < float("inf"):
            raise InvalidArgumentError(f"SparqlExecutor: requests_per_second is {requests_per_second}, not above 0.")
        if type(max_bytes) is not int or max_bytes < 1:
            raise InvalidArgumentError(f"SparqlExecutor: max_bytes is {max_bytes!r}, no integer from 1.")
        options = {field.name for field in fields(Vocabulary)} - {"graphs"}  # the endpoint chooses them
        known |= {name: value for name, value in given.items() if name in options and value is not None}
        self.vocabulary = Vocabulary(**known)
        if graphs is not None and (isinstance(graphs, str) or not graphs):
            raise InvalidArgumentError(f"SparqlExecutor: graphs is {graphs!r}. Wanted a list of IRIs of named graphs.")
        self.graphs = tuple(expanded("SparqlExecutor: graphs", graphs or (), self.vocabulary.names))
        is_public = address == known_url
        self._endpoint = Endpoint(
            address,
            user_agent=user_agent or f"kg-retrievers/{version('kg-retrievers')}",
            requests_per_second=requests_per_second or (POLITE if is_public else None),
            max_bytes=max_bytes,
            login=not is_public,
        )
        self._closed, self._reading = False, threading.RLock()
        self._schema: SparqlSchema | None = None
        self._parts = SparqlParts(self._ask, self.schema)

    @property
    def url(self) -> str:
        """The address of the endpoint."""
        return self._endpoint.url

    @property
    def is_view(self) -> bool:
        """Whether only some named graphs are seen."""
        return bool(self.graphs)

    def view(self, where: Where, as_of: date | str | None, validity: tuple[str, str]) -> SparqlExecutor:
        """Return an executor whose queries see only some named graphs.

        It serves `GraphIndex.view`.

        Args:
            where: `{"source": ...}` with the IRI or short form of one named graph, or several.
            as_of: None, since no triple says when it holds.
            validity: As by default.

        Raises:
            InvalidArgumentError: If other facts are wanted, or this executor sees only some named graphs.
        """
        wanted = where.get(SOURCE)
        graphs = [wanted] if isinstance(wanted, str) else wanted
        are_names = isinstance(graphs, list | tuple | set | frozenset) and all(isinstance(one, str) for one in graphs)
        if self.graphs or (as_of, tuple(validity)) != (None, VALIDITY) or len(where) != 1 or not are_names:
            asked = f"where={short(dict(where))}" + (f", as_of={as_of!r}" if as_of is not None else "")
            raise InvalidArgumentError(
                f"GraphIndex.view: {self!r} can be narrowed to named graphs alone, and once, by "
                f"where={{'source': ['http://example.org/graph', ...]}}, but got {asked}.",
                hint_python="Else read the RDF and narrow that: KnowledgeGraph.from_rdf(path).view(...).",
            )
        return type(self)(**self._made_with | {"graphs": sorted(cast("Collection[str]", graphs))})

    def __repr__(self) -> str:
        """Show the address of the endpoint, and the graphs if they are chosen.

        Name and password are not shown.
        """
        chosen = f", graphs={list(self.graphs)}" if self.graphs else ""
        return f"SparqlExecutor({self.url!r}{chosen})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the address and the options.

        The login is read from the environment again.
        """
        return partial(type(self), **self._made_with), ()

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._endpoint.close()

    # --- queries -----------------------------------------------------------------------------------------------------

    def schema(self, *, refresh: bool = False) -> SparqlSchema:
        """Return the relations and types of the endpoint.

        See `Executor.schema`.

        If the endpoint cannot list them in time, they come from a sample, and `sampled` says so.
        """
        with self._within(SCHEMA_TIMEOUT, "schema"), self._reading:
            if self._schema is None or refresh:
                self._check_graphs()
                self._schema = read_schema(self._ask, self.vocabulary)
                self._parts.forget()
            return self._schema

    def _check_graphs(self) -> None:
        """Check that the endpoint keeps to the graphs that it is given.

        It must find nothing in a graph that nobody has.
        """
        if self.graphs and self._ask("SELECT ?s WHERE { ?s ?p ?o } LIMIT 1", graphs=[NO_GRAPH]).rows:
            raise InvalidArgumentError(
                f"{self!r}: the endpoint ignores the parameter default-graph-uri of SPARQL 1.1, which chooses named "
                "graphs, and would show all facts.",
                hint_python="Read the RDF and narrow that: KnowledgeGraph.from_rdf(path).view(...).",
            )

    def _run(self, query: str, parameters: Mapping[str, Any], limit: int, timeout: float) -> Rows:
        given = dict(parameters)
        checked = check_read_only(query, parameters=given, namespaces=self.vocabulary.names.namespaces)
        if self.graphs and (other := next((token for token in checked.tokens if token.word == "GRAPH"), None)):
            raise refusal(query, other, f", where only {list(self.graphs)} are seen. Leave GRAPH out")
        terms = {name: self._terms(name, given[name]) for name in checked.parameters}
        found = self._ask(written(checked, terms, limit + 1), checked.columns)
        return rows_of(found, checked, limit, self._parts)

    def _terms(self, name: str, value: Any) -> list[str]:
        """Return the terms of a parameter, as SPARQL writes them."""
        match value:
            case bool() | float():
                return [written_term(value_term(value))]
            case int() if abs(value) < 10**MAX_DIGITS:
                return [written_term(value_term(value))]
            case str() if is_sendable(value):
                return [written_term(term) for term in self._parts.terms(value)]
            case list() | tuple() if all(isinstance(part, str | bool | int | float) for part in value):
                return list(dict.fromkeys(term for part in value for term in self._terms(name, part)))
        raise InvalidArgumentError(
            f"SparqlExecutor.run: the parameter ${name} holds a {type(value).__name__}. Wanted the key of an entity, a "
            f"number of at most {MAX_DIGITS} digits, a bool, or a list of these."
        )

    def _ask(self, query: str, columns: Sequence[str] | None = None, graphs: Sequence[str] | None = None) -> Solutions:
        """Send a query.

        The columns of this package's queries are the variables before the first bracket.
        """
        if self._closed:
            raise DatabaseUnavailableError(f"{self!r} is closed. Make another one.")
        found, is_cut = self._endpoint.select(query, self.graphs if graphs is None else graphs)
        wanted = _VARIABLE.findall(query.partition("{")[0]) if columns is None else columns
        return read_solutions(found, wanted, is_cut, self.url)

    # --- parts of the graph ------------------------------------------------------------------------------------------

    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        """Return None: an endpoint would look at all of its triples."""
        return None

    def _queries(self, timeout: float) -> SparqlParts:
        return self._parts

    def reading(self, *, timeout: float = TIMEOUT) -> Reading:
        """Return that it is read as RDF is."""
        return Reading("SPARQL")

    def read_graph(self, page_size: int, attributes: Attributes = "facts") -> GraphBuilder:
        """Read the whole graph, for `KnowledgeGraph.from_executor`. Extra: `rdf`.

        All triples come in one answer, as N-Triples, which is read like a file. `page_size` is not needed.

        Raises:
            DatabaseUnavailableError: If the answer has fewer triples than the endpoint says it holds.
            GraphLoadError: If there are none.
            MissingExtraError: Without the extra `rdf`.
        """
        if attributes != "facts":
            raise InvalidArgumentError(
                f"{self!r}: attributes= is for property graphs. Leave it out.",
                hint_python="Without facts that have literals: SparqlExecutor(..., literals='drop').",
            )
        with self._within(READING_TIMEOUT, "read_graph"), tempfile.TemporaryDirectory() as folder:
            self._check_graphs()
            path = Path(folder) / "graph.nt"
            wanted = self._read_wanted()
            count = self._ask(f"SELECT (COUNT(*) AS ?triples) WHERE {{ {wanted} }}").number()
            self._endpoint.download(f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ {wanted} }}", self.graphs, str(path))
            with open(path, "rb") as file:
                lines = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
            if lines < count:
                raise DatabaseUnavailableError(
                    f"{self!r} gave {lines:,} of {count:,} triples. Raise its limit, or load a dump by "
                    "KnowledgeGraph.from_rdf(path)."
                )
            builder = read_rdf(path, "nt", self.vocabulary)
        builder.reading.format = "SPARQL"
        return builder

    def _read_wanted(self) -> str:
        """Return the patterns that find all facts and descriptions."""
        vocabulary = self.vocabulary
        about = (*vocabulary.labels, *vocabulary.aliases, *vocabulary.types)
        is_relation = " && ".join(vocabulary.relations("?p"))
        if not is_relation:
            return "?s ?p ?o"
        return f"?s ?p ?o FILTER({is_relation} || ?p IN ({', '.join(f'<{iri}>' for iri in about)}))"
