"""From the options to the graph, its index, its database, and the methods that ask it."""

from __future__ import annotations

import inspect
import logging
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import kg_retrievers
from kg_retrievers.cli.options import LISTS, QUERY_METHODS, Connection, Graph, QuestionSet, Reading, option_of
from kg_retrievers.cli.options import Embeddings as EmbeddingsOption
from kg_retrievers.cli.show import note, on_terminal, status
from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, StaleIndexError, check_known
from kg_retrievers.methods.registry import GRAPH_PROMPT, Method
from kg_retrievers.serving import loading

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables import Runnable

    from kg_retrievers.database.executor import Executor
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index import GraphIndex
    from kg_retrievers.index.server_names import About, ServerNames

#: The most seconds of one query about the whole graph.
TIMEOUT = 60.0

#: The arguments of `--read` for a Neo4j database.
OF_NEO4J = frozenset(("database", "explain"))

#: The arguments of `--read` for a SPARQL endpoint.
OF_ENDPOINTS = frozenset(
    ("languages", "label_predicates", "alias_predicates", "type_predicates", "literals", "prefixes", "graphs")
)

#: From so many triples on, `--database` is named to a user who loads a graph into a database for one run.
MANY_TRIPLES = 100_000

_SILENT = logging.NullHandler()


@dataclass(frozen=True)
class Source:
    """A graph as the options name it.

    Args:
        place: A file, a folder, a URI, or the name of a public endpoint.
        reading: How it is read.
        embeddings: The name of the embeddings of its index, if it is not the default.
        connection: Whether it stays in its database.
    """

    place: Graph
    reading: Reading
    embeddings: EmbeddingsOption = None
    connection: Connection = Connection()

    @property
    def stays(self) -> bool:
        """Whether the graph stays in its database, as the graph of a public endpoint always does."""
        return self.connection != Connection() or loading.is_public(self.place)

    @property
    def of_files(self) -> dict[str, Any]:
        """The arguments that say how a file is read."""
        return {name: value for name, value in self.reading.given.items() if name not in OF_NEO4J}

    def command(self, name: str, *arguments: str) -> str:
        """Return a command on this graph."""
        words = ["kg-retrievers", name, self.place, *arguments, *self.reading.words]
        if self.embeddings is not None:
            words += ["--embeddings", self.embeddings]
        if self.connection.vectors is not None:
            words += ["--vectors", self.connection.vectors]
        return shlex.join(words)

    def check_size(self) -> None:
        """Check that the graph can be read as a whole, unlike graphs of public endpoints.

        Raises:
            InvalidArgumentError: If it cannot.
        """
        if loading.is_public(self.place):
            raise InvalidArgumentError(
                f"{self.place} is too large to be read as a whole. Ask it: kg-retrievers ask {self.place} 'Who ...?'"
            )

    def check(self, database: str | None = None) -> None:
        """Check that the options for databases come with a database.

        Args:
            database: Where queries run, if that is another place.

        Raises:
            InvalidArgumentError: If they do not.
        """
        connection, place, given = self.connection, self.place, self.reading.given
        if self.stays and not loading.is_database(place):
            flags = {"--connect": connection.connect, "--vectors": connection.vectors}
            names = " and ".join(flag for flag, value in flags.items() if value) or "--max-facts"
            kind = "a folder" if Path(place).is_dir() else "no LadybugDB file"
            why = f"{place} is {kind}" if Path(place).exists() else f"there is no file {place}"
            raise InvalidArgumentError(
                f"{names}: for a graph that stays in a database, but {why}. "
                "Leave it out, or name a database: bolt://localhost:7687, or a LadybugDB file."
            )
        if self.reading.view_arguments and (self.stays or database is not None):
            raise InvalidArgumentError(
                "--view and --as-of narrow a graph in memory, but a database answers with all that it holds. "
                f"Leave out {'--database' if database else '--connect, --vectors and --max-facts'}, or these."
            )
        if self.stays and database is not None:
            raise InvalidArgumentError("--database: a graph that stays in its database is queried there. Leave it out.")
        databases = [*([place] if loading.is_database(place) else []), *([database] if database else [])]
        graph_databases = [where for where in databases if not loading.is_endpoint(where)]
        if self.reading.keys and not graph_databases:
            why = "a SPARQL endpoint names its entities by IRIs" if databases else "none is given"
            raise InvalidArgumentError(f"--key is for a graph database, but {why}. Leave it out.")
        of_neo4j = OF_NEO4J.intersection(given)
        if of_neo4j and not any(map(loading.is_uri, graph_databases)):
            raise InvalidArgumentError(
                f"--read {min(of_neo4j)} is for a Neo4j database, such as bolt://localhost:7687. Leave it out."
            )
        if loading.is_database(place):
            known = OF_ENDPOINTS if loading.is_endpoint(place) else OF_NEO4J
            known = known if self.stays else known | {"text_relations", "attributes"}
            if strange := [name for name in given if name not in known]:
                raise InvalidArgumentError(
                    f"{place} is a graph database. Leave out what says how to read a file: {', '.join(strange)}."
                )


# --- files and folders ------------------------------------------------------------------------------------------------


def read_file(path: Path, given: Mapping[str, Any], earlier: KnowledgeGraph | None = None) -> KnowledgeGraph:
    """Read a graph from a file with those of `--also`, or from the files of a folder.

    Args:
        path: The file or folder.
        given: The arguments of the reader that options set.
        earlier: A graph that it changes. A file of the same format is read as that graph was.

    Raises:
        InvalidArgumentError: If an argument is not for this format.
        GraphLoadError: If it cannot be read.
    """
    from kg_retrievers.graph.readers.files import RDF, find_format, graph_files
    from kg_retrievers.graph.readers.opening import Limits, needs_of
    from kg_retrievers.graph.readers.text_files import FileOptions  # loads numpy

    arguments = dict(given)
    wanted = inspect.signature(Limits).parameters.keys()
    check_known("--read", arguments.get("limits", {}), wanted, "limit")
    arguments["limits"] = limits = Limits(**arguments.get("limits", {}))
    about = {"encoding": arguments["encoding"]} if "encoding" in arguments else {}
    options = FileOptions(**about, limits=limits)
    files = graph_files([path, *arguments.pop("also", ())], options)
    formats = [find_format(file, arguments.get("format"), options) or "csv" for file in files]
    format, is_rdf = formats[0], all(one in RDF for one in formats)
    if earlier is not None:
        arguments = _reused(earlier, path, format, is_rdf, arguments) | arguments
    kind = kg_retrievers.KnowledgeGraph
    read, other = (kind.from_rdf, kind.from_file) if is_rdf else (kind.from_file, kind.from_rdf)
    known, foreign = (inspect.signature(one).parameters.keys() - {"path", "source"} for one in (read, other))
    shown, others = ("RDF", "tables and property graphs") if is_rdf else (format, "RDF")
    if strange := next((name for name in arguments if name in foreign and name not in known), None):
        raise InvalidArgumentError(f"{option_of(strange)} is for {others}, but {path} is {shown}. Leave it out.")
    check_known("--read", arguments, sorted(known))
    if is_rdf and earlier is not None:
        arguments.setdefault("schema", "describe")
    if is_rdf and len(files) == 1:
        arguments["format"] = format
    if needs := needs_of(files).told:
        note(f"reading {path}: {needs}")
    with status(f"reading {path}"):
        graph: KnowledgeGraph = read(files, **arguments)
    if graph.skipped:
        note(f"malformed lines of {path} that were skipped: {graph.skipped}")
    return graph


def _reused(graph: KnowledgeGraph, path: Path, format: str, is_rdf: bool, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a graph was read, except for what is given, if a file has the same format, or both are RDF."""
    from kg_retrievers.graph.readers.files import SHOWN  # loads numpy
    from kg_retrievers.graph.readers.rdf.parsing import FORMATS

    shown = graph.reading.format
    if not (shown in FORMATS if is_rdf else SHOWN.get(format) == shown):
        return {}
    reused = {name: value for name, value in graph.reading.options.items() if name not in given}
    if is_rdf and format not in ("nq", "trig"):  # the others have no named graphs
        reused.pop("graphs", None)
    lists = {name: value if name in LISTS else [value] for name, value in reused.items()}
    if words := [f"--read {name}={one}" for name, values in lists.items() for one in values]:
        note(f"{path} is read as the graph was, with {' '.join(words)}; the same options change it")
    if is_rdf:
        reused["prefixes"] = graph.prefixes | given.get("prefixes", {})
    return reused


def read_graph(source: Source, database: str | None = None) -> KnowledgeGraph:
    """Read the graph of a file, of a folder that `index` saved, or of a database.

    Args:
        source: The graph.
        database: Where queries run, if that is another place.
    """
    source.check(database)
    source.check_size()
    path, given = Path(source.place), source.reading.given
    if loading.is_database(source.place):
        with status(f"reading {source.place}"), closing(open_database(source.place, source)) as executor:
            more = {name: given[name] for name in ("attributes", "text_relations") if name in given}
            return source.reading.view_of(kg_retrievers.KnowledgeGraph.from_executor(executor, **more))
    given = source.of_files
    return source.reading.view_of(_read_folder(path, given) if path.is_dir() else read_file(path, given))


def _read_folder(path: Path, given: Mapping[str, Any]) -> KnowledgeGraph:
    """Open what `index` saved in a folder, or read the files of a graph in it.

    Raises:
        InvalidArgumentError: If it was saved, and options say how to read a file.
        GraphLoadError: If it holds no graph.
    """
    try:
        graph = kg_retrievers.KnowledgeGraph.open(path)
    except GraphLoadError:
        from kg_retrievers.graph.storage.parts import own_files  # loads numpy

        if own_files(path):
            raise
        return read_file(path, given)
    check_saved_folder(path, given)
    return graph


def check_saved_folder(path: Path, given: Mapping[str, Any]) -> None:
    """Check that no option says how to read a file if `index` saved the graph.

    Raises:
        InvalidArgumentError: If one does.
    """
    if given:
        options = ", ".join(map(option_of, given))
        raise InvalidArgumentError(
            f"{path} holds a graph that was read already, but got {options}. Leave it out, or index the files again: "
            f"kg-retrievers index FILE {options} ... --output {path}"
        )


def read_index(source: Source, database: str | None = None) -> GraphIndex:
    """Open the index of a folder, index the graph of a file or database in memory, or connect to a database.

    Args:
        source: The graph.
        database: Where queries run, if that is another place.
    """
    from kg_retrievers.graph.storage.parts import is_saved  # loads numpy

    source.check(database)
    if source.stays:
        return connect(source)
    folder = Path(source.place)
    if not (folder.is_dir() and is_saved(folder)):
        graph = read_graph(source, database)
        return kg_retrievers.GraphIndex.build(graph, embeddings_of(source.embeddings), progress=on_terminal())
    check_saved_folder(folder, source.of_files)
    whole = kg_retrievers.GraphIndex.open(folder, embeddings_of(source.embeddings, loading.recorded_embeddings(folder)))
    return source.reading.view_of(whole)


def index_of_graphs(
    asked: QuestionSet,
    embeddings: str | None,
    cache: str | None,
    questions: Sequence[Any],
    examples: Sequence[Any] | None = None,
) -> GraphIndex:
    """Index the graph that a retriever is built on before it is moved to the graph of each question.

    That is the graph of the first question. If there are examples, it is all their graphs as one, from which they
    teach.

    Raises:
        InvalidArgumentError: If some question has no graph, so that one must be named.
    """
    datasets = kg_retrievers.datasets
    if not questions or not all(isinstance(question, datasets.GraphQuestion) for question in questions):
        raise InvalidArgumentError(f"--graph must name the graph that the questions of {asked.format} are about.")
    graph = datasets.join_graphs(examples) if examples else questions[0].graph
    return kg_retrievers.GraphIndex.build(
        graph, embeddings_of(embeddings), cache=cache, progress=on_terminal() and bool(examples)
    )


def embeddings_of(name: str | None, default: str = loading.STATIC) -> Embeddings:
    """Return the embeddings of a name, if there is one, else the default ones."""
    name = name or default
    with status(f"loading {name}"):
        return loading.load_embeddings(name)


# --- databases --------------------------------------------------------------------------------------------------------


def open_database(where: str, source: Source) -> Executor:
    """Open an existing database.

    Raises:
        InvalidArgumentError: If --key names labels for LadybugDB.
        MissingExtraError: If its extra is not installed.
        DatabaseError: If it is a file that cannot be opened.
    """
    given = source.reading.given
    if loading.is_endpoint(where):
        arguments: dict[str, Any] = {name: value for name, value in given.items() if name in OF_ENDPOINTS}
        if loading.is_public(where):
            return kg_retrievers.SparqlExecutor(preset=where, **arguments)  # type: ignore[arg-type]  # a preset's name
        scheme, _, rest = where.partition("://")
        return kg_retrievers.SparqlExecutor(f"{scheme.lower().removeprefix('sparql+')}://{rest}", **arguments)
    # The keys belong to the graph, from which a file was made.
    keys = {} if loading.is_uri(source.place) and not loading.is_uri(where) else source.reading.keys
    key: dict[str, Any] = {"key": keys.get("", keys)} if keys else {}
    if loading.is_uri(where):
        logging.getLogger("neo4j").addHandler(_SILENT)  # its warnings address authors of queries
        arguments = {name: value for name, value in given.items() if name in OF_NEO4J}
        return kg_retrievers.Neo4jExecutor(where, **arguments, **key)
    if keys and "" not in keys:
        raise InvalidArgumentError(
            f"{where}: LadybugDB has a primary key for each label, or --key PROPERTY for all. Leave out --key."
        )
    return kg_retrievers.LadybugExecutor(where, **key)


def query_place(source: Source, database: str | None) -> str | None:
    """Return the URI or file of the database for queries. None stands for a database in memory, as for each view."""
    if source.reading.view_arguments:
        return None
    return source.place if database is None and loading.is_database(source.place) else database


@contextmanager
def query_database(source: Source, database: str | None, index: GraphIndex) -> Iterator[Callable[[], Executor]]:
    """Give a function that opens the database for queries, or makes it from the graph. Close it at the end.

    Args:
        source: The graph.
        database: Where queries run, if the options say so.
        index: The indexed graph.

    Raises:
        InvalidArgumentError: If it lacks the keys that `--key` names.
        MissingExtraError: If its extra is not installed.
        DatabaseError: If it cannot be opened, reached or made.
    """
    where = query_place(source, database)
    with ExitStack() as at_end:
        if index.is_connected:
            connected = cast("Executor", index.reader)
            at_end.callback(connected.close)
            yield lambda: connected
            return

        @cache
        def executor() -> Executor:
            if where is None or not (loading.is_uri(where) or loading.is_public(where) or Path(where).exists()):
                return at_end.enter_context(closing(_loaded_database(index.graph, where)))
            opened = at_end.enter_context(closing(open_database(where, source)))
            opened.schema()  # reports a mistake before the first question
            return opened

        yield executor


def _loaded_database(graph: KnowledgeGraph, where: str | None) -> Executor:
    made = kg_retrievers.LadybugExecutor.from_graph(graph, where, progress=on_terminal())
    if where is not None:
        note(f"the graph was loaded into the new database {where}, which is there for the next time")
    elif len(graph) >= MANY_TRIPLES:
        note("the graph is loaded into a database each time; one that stays: --database FILE")
    return made


# --- graphs that stay in their databases ------------------------------------------------------------------------------


def connect(source: Source) -> GraphIndex:
    """Connect to the graph, and to the store of its names if the options name one.

    Raises:
        StaleIndexError: If the store is not there, or holds no names, those of another graph or of other embeddings.
        DatabaseError: If a server cannot be reached, or lets nobody in.
    """
    embeddings = embeddings_of(source.embeddings)
    connection = source.connection
    names = None if connection.vectors is None else open_names(source, embeddings)
    database = open_database(source.place, source)
    try:
        if names is not None and loaded_names(names, source).position is not None:
            note(f"not all names are in {connection.vectors} yet; the rest of them: {source.command('index')}")
        more = {} if connection.max_facts is None else {"max_facts": connection.max_facts}
        with status(f"connecting to {source.place}"):
            if names is not None:
                names.check_graph(database)
            store = None if names is None else names.store
            return kg_retrievers.GraphIndex.connect(database, embeddings, store, **more)
    except BaseException:
        database.close()
        raise


def open_names(source: Source, embeddings: Embeddings, *, create: bool = False) -> ServerNames:
    """Open the store that `--vectors` names.

    Args:
        source: The graph.
        embeddings: The model of the names.
        create: Whether to make its table or collection if there is none.

    Raises:
        StaleIndexError: If there is no such table or collection, and `create` is false.
        MissingExtraError: If its extra is not installed.
        DatabaseError: If it cannot be reached, or lets nobody in.
    """
    from kg_retrievers.index.server_names import ServerNames  # loads numpy
    from kg_retrievers.index.stores import open_store

    vectors = str(source.connection.vectors)
    try:
        with status(f"opening {vectors}"):
            return ServerNames(open_store(vectors, embeddings, create=create), embeddings)
    except StaleIndexError as error:
        hint = f"Check the address, or load the names first: {source.command('index')}"
        raise StaleIndexError(error.message, hint_shell=hint) from error


def loaded_names(names: ServerNames, source: Source) -> About:
    """Return a store's description of its names.

    Raises:
        StaleIndexError: If it holds none, or those of other embeddings.
    """
    about = names.about
    if about is None or not about.count:
        raise StaleIndexError(
            f"{source.connection.vectors} holds no names.", hint_shell=f"Load them first: {source.command('index')}"
        )
    return about


# --- methods ----------------------------------------------------------------------------------------------------------


def load_models(
    folders: Sequence[str], method: str | None
) -> tuple[Method, loading.SavedModel | None, loading.SavedModel | None]:
    """Return the chosen method, its trained model, and the graph prompt that answers, if any.

    Args:
        folders: The folders of models.
        method: The name of the method; None for that of the only model, else the default.
    """
    models, prompt = read_trained(folders)
    if prompt is not None and not models:
        method = method or GRAPH_PROMPT.default_method
    chosen = loading.choose_method(method, models)
    return chosen, loading.model_of(chosen, models), prompt


def read_trained(folders: Sequence[str]) -> tuple[dict[str, loading.SavedModel], loading.SavedModel | None]:
    """Read the trained models of folders: models of retrievers by their names, and a graph prompt."""
    with status("reading the trained models"):
        models = loading.read_models(folders)
    return models, models.pop(GRAPH_PROMPT.name, None)


def check_database(method: Method, database: str | None) -> None:
    """Check that the method runs queries, if `--database` is given.

    Raises:
        InvalidArgumentError: If it does not.
    """
    if database is not None and not method.runs_queries:
        raise InvalidArgumentError(
            f"--database is for {QUERY_METHODS}, but asked is {method.name}. Leave it out, or: --method {QUERY_METHODS}"
        )


def load_answerer(prompt: loading.SavedModel, index: GraphIndex) -> Runnable[Any, list[str]]:
    """Return a Runnable that answers from evidence with a graph prompt, with a list of texts.

    Raises:
        MissingExtraError: If its extra is not installed.
        ModelLoadError: If the model is damaged, or its language model cannot be loaded.
        ModelMismatchError: If that is another one, or the index has other embeddings.
    """
    from langchain_core.runnables import RunnableConfig, RunnableLambda

    with status(f"reading {prompt.folder}"), warnings.catch_warnings(action="ignore"):
        kind = GRAPH_PROMPT.load_model()  # raises if its extra is missing
        import transformers

        from kg_retrievers.methods.g_retriever.graph_prompt.prompts import parse_answers

        transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        model = kind.from_pretrained(prompt.folder, index.embeddings)

    def answers(value: Any, config: RunnableConfig) -> list[str]:
        with warnings.catch_warnings(action="ignore"):
            return parse_answers(model.invoke(value, config))

    return RunnableLambda(answers, name=GRAPH_PROMPT.name)
