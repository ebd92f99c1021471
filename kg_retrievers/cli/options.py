"""The options that several commands share, in groups, and their possible values.

A group is a dataclass. A command that takes one has its fields as options.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from inspect import signature
from os import W_OK, access
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

import typer

import kg_retrievers
from kg_retrievers.database.login import address_in, checked_url
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods import registry
from kg_retrievers.serving.access import read_object
from kg_retrievers.serving.loading import HASHED, SPARQL_SCHEMES, STATIC, is_database_file, is_public, is_uri

if TYPE_CHECKING:
    from kg_retrievers.bulk import Workers as WorkersOfBulk
    from kg_retrievers.datasets import Question
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index import GraphIndex

Whole = TypeVar("Whole", "KnowledgeGraph", "GraphIndex")

#: The title above the options that few users need.
ADVANCED = "Advanced"

#: The title above the options that say how a graph is read.
GRAPH_PANEL = "How the graph is read"

#: The schemes of a Neo4j database's URI.
NEO4J_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")

#: The arguments of readers that are lists of texts.
LISTS = (*("facts", "text_relations", "languages", "label_predicates", "alias_predicates", "type_predicates"), "graphs")

#: The arguments of readers that are mappings, of which `--read` sets a part each.
MAPPINGS = ("limits", "prefixes")

#: The fields that `--field` refuses: other options set them, or a shell cannot write their values.
TAKEN_FIELDS = ("index", "llm", "examples", "model", "k", "executor", "preset")


# --- what an option may be --------------------------------------------------------------------------------------------


def hop_numbers(text: str) -> list[int]:
    """Take numbers of hops between commas, and return each once, ascending."""
    if not all(part.isdecimal() and int(part) for part in text.split(",")):
        raise typer.BadParameter(f"wanted integers with commas between them, such as 1,2,3, but got {text!r}")
    return sorted({int(part) for part in text.split(",")})


def method_name(text: str) -> str:
    """Take the name of a method, or an alias."""
    try:
        return registry.find_method(text).name
    except InvalidArgumentError as error:
        raise typer.BadParameter(error.on_shell.rstrip(".")) from None


def place(text: str) -> str:
    """Take a file, a folder, or the URI of a graph database. The message shows no URI, which may hold a password."""
    if not is_uri(text):
        return text
    scheme, _, rest = text.partition("://")
    try:
        if scheme.lower() in NEO4J_SCHEMES:
            address_in(text)
        elif scheme.lower() in SPARQL_SCHEMES:
            checked_url(f"{scheme.lower().removeprefix('sparql+')}://{rest}")
        else:
            raise InvalidArgumentError(
                "wanted a file, or a URI such as bolt://localhost:7687 that begins with one of "
                f"{', '.join((*NEO4J_SCHEMES, *SPARQL_SCHEMES))}"
            )
    except InvalidArgumentError as error:
        raise typer.BadParameter(str(error).rstrip(".")) from None
    return text


def database_place(text: str) -> str:
    """Take a URI, the file of a LadybugDB database, or a new file."""
    path = Path(place(text))
    if not is_uri(text) and not is_public(text) and not is_database_file(text) and (path.exists() or ":" in path.name):
        shown = f", but got {text!r}" if path.exists() else ""  # else it may be an address with a password
        raise typer.BadParameter(f"wanted a URI such as bolt://localhost:7687, a LadybugDB file or a new one{shown}")
    return text


def vectors_place(text: str) -> str:
    """Take the address of a vector store."""
    from kg_retrievers.index.stores import read_address  # loads numpy, which the help does not need

    try:
        read_address(text)
    except InvalidArgumentError as error:
        raise typer.BadParameter(error.on_shell.rstrip(".")) from None
    return text


def embeddings_name(text: str) -> str:
    """Take the name of embeddings. The folder of a local model becomes absolute."""
    kind, _, model = text.partition(":")
    if text not in (STATIC, HASHED) and not (kind and model):
        raise typer.BadParameter(
            f"wanted {STATIC}, {HASHED}, local:MODEL_OR_FOLDER or PROVIDER:MODEL, but got {text!r}"
        )
    if kind == "local" and Path(model).is_dir():
        return f"local:{Path(model).resolve()}"
    return text


def llm_name(text: str) -> str:
    """Take the provider and the name of a language model."""
    provider, _, model = text.partition(":")
    if not provider.strip() or not model.strip():
        raise typer.BadParameter(
            f"wanted PROVIDER:MODEL, such as openai:gpt-4.1-mini or ollama:llama3.2, but got {text!r}"
        )
    return text


def workers_name(text: str) -> str:
    """Take a number of processes, or Ray, with the address of a cluster or without."""
    kind, colon, address = text.partition(":")
    if not (text.isdecimal() and int(text)) and not (kind == "ray" and bool(colon) == bool(address)):
        raise typer.BadParameter(
            f"wanted a number of processes, ray or ray:ADDRESS such as ray:10.0.0.1:6379, but got {text!r}"
        )
    return text


def new_file(text: str) -> str:
    """Take the name of a file that can be written."""
    file = Path(text)
    if text == "-":
        raise typer.BadParameter("wanted a file name, but got '-'")
    if not file.parent.is_dir() or file.is_dir() or not access(file if file.exists() else file.parent, W_OK):
        raise typer.BadParameter(f"wanted a file name in a folder that is there, but {text!r} cannot be written")
    return text


def open_workers(name: str | None) -> AbstractContextManager[WorkersOfBulk | None]:
    """Return the workers that `--workers` names, or None for this process alone. The end of a `with` block ends them.

    Raises:
        MissingExtraError: If Ray is needed and not installed.
    """
    if name is None:
        return nullcontext()
    if name.isdecimal():
        from kg_retrievers.bulk import LocalWorkers

        return LocalWorkers(int(name))
    from kg_retrievers.bulk.ray_workers import RayWorkers

    return RayWorkers(name.partition(":")[2] or None)


def conditions(text: str) -> dict[str, Any]:
    """Take the conditions of a view."""
    try:
        return read_object(text)
    except ValueError:
        example = '{"tenant": "a", "confidence": {">=": 0.5}, "deleted": null}'
        raise typer.BadParameter(
            f"wanted a JSON object with each key once, such as '{example}', but got {text!r}"
        ) from None


def assignment(option: str, text: str, example: str) -> tuple[str, str]:
    """Return the name and the text of a NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name.replace(".", "_").isidentifier():
        raise InvalidArgumentError(f"{option}: wanted NAME=VALUE, such as {example}, but got {text!r}.")
    return name, value


def json_or_text(text: str) -> Any:
    """Return the value of a text of JSON, or the text if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def field_values(texts: Sequence[str], example: str, taken: Collection[str]) -> dict[str, Any]:
    """Return the values of `--field` by name.

    Args:
        texts: Each NAME=VALUE.
        example: What a message shows.
        taken: The names that other options set, or that a shell cannot write.
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, value = assignment("--field", text, example)
        if name in taken:
            option = ": give --k" if name == "k" else ""
            raise InvalidArgumentError(f"--field: {name} comes from other options{option}, but got {text!r}.")
        values[name] = json_or_text(value)
    return values


# --- single options ---------------------------------------------------------------------------------------------------


def option(metavar: str, help: str, *flags: str, panel: str | None = None, **more: Any) -> Any:
    """Return an option with a value, without a default in its help."""
    return typer.Option(*flags, metavar=metavar, help=help, show_default=False, rich_help_panel=panel, **more)


def flag(name: str, help: str, panel: str | None = None) -> Any:
    """Return an option without a value."""
    return typer.Option(name, help=help, rich_help_panel=panel)


_OTHERS = ", ".join(name for name in registry.method_names() if name != registry.DEFAULT.name)
METHODS_HELP = f"{registry.DEFAULT.name} (default), {_OTHERS}."
USE_EXAMPLES = ", ".join(method.name for method in registry.METHODS if method.labels)
QUERY_METHODS = " or ".join(method.name for method in registry.METHODS if method.runs_queries)

_GRAPH = "A file, a folder of files or of `index`, a database (file or URI), or a SPARQL endpoint."

Graph = Annotated[str, typer.Argument(metavar="GRAPH", help=_GRAPH, parser=place, show_default=False)]
GraphOption = Annotated[str | None, option("GRAPH", "The graph, as `ask` takes it.", "--graph", parser=place)]
Method = Annotated[str | None, option("NAME", METHODS_HELP, parser=method_name)]
K = Annotated[int | None, option("N", "How many pieces of evidence.", "--k", min=1)]
Field = Annotated[list[str], option("NAME=VALUE", "A field, such as max_tokens=150.")]
Llm = Annotated[str | None, option("PROVIDER:MODEL", "A language model; needs its key.", parser=llm_name)]
Preset = Annotated[Literal["paper"] | None, option("paper", "The settings of the method's paper.", panel=ADVANCED)]
Seed = Annotated[int, option("N", "Of random numbers (default: 0).", min=0)]
Embeddings = Annotated[
    str | None,
    option("WHICH", "static (default), hashed, local:MODEL or PROVIDER:MODEL.", parser=embeddings_name, panel=ADVANCED),
]
EmbeddingCache = Annotated[str | None, option("FILE", "Keep vectors for further runs.", panel=ADVANCED)]
Workers = Annotated[str | None, option("N", "N processes, or ray\\[:ADDRESS].", parser=workers_name, panel=ADVANCED)]
Vectors = Annotated[
    str | None, option("ADDRESS", "The vector store of its names.", parser=vectors_place, panel=ADVANCED)
]
Json = Annotated[bool, flag("--json", "One JSON object on stdout.")]


# --- groups -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """How a graph is read."""

    columns: Annotated[str | None, option("HEAD,RELATION,TAIL", "The columns of a table.", panel=GRAPH_PANEL)] = None
    entities: Annotated[str | None, option("FILE", "Labels, aliases and types.", panel=GRAPH_PANEL)] = None
    also: Annotated[list[str], option("FILE", "A further file of the graph.", panel=GRAPH_PANEL)] = field(
        default_factory=list
    )
    ontology: Annotated[list[str], option("FILE", "RDF that only describes.", panel=GRAPH_PANEL)] = field(
        default_factory=list
    )
    read: Annotated[list[str], option("NAME=VALUE", "An argument, such as languages=de.", panel=GRAPH_PANEL)] = field(
        default_factory=list
    )
    key: Annotated[list[str], option("[LABEL=]PROPERTY", "The key of a node in a database.", panel=GRAPH_PANEL)] = (
        field(default_factory=list)
    )
    view: Annotated[Any, option("JSON", "Facts with these attributes.", parser=conditions, panel=GRAPH_PANEL)] = None
    as_of: Annotated[str | None, option("DATE", "Facts that hold on this day.", panel=GRAPH_PANEL)] = None
    validity: Annotated[tuple[str, str] | None, option("FROM TO", "Attributes of --as-of.", panel=GRAPH_PANEL)] = None

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of the reader that the options set.

        An argument that takes a list has one value per `--read`. NAME.PART=VALUE sets a part of a mapping.
        """
        values: dict[str, Any] = {}
        for text in self.read:
            name, value = assignment("--read", text, "delimiter=;")
            name, _, part = name.partition(".")
            if part or name in MAPPINGS:
                if not part or name not in MAPPINGS:
                    raise InvalidArgumentError(f"--read: wanted limits.NAME=N or prefixes.NAME=IRI, but got {text!r}.")
                values.setdefault(name, {})[part] = json_or_text(value) if name == "limits" else value
            elif name in LISTS:
                values.setdefault(name, []).append(value)
            else:
                values[name] = json_or_text(value)
        if self.columns is not None:
            values["columns"] = self.columns.split(",")
        if self.entities is not None:
            values["entities"] = self.entities
        return values | {name: files for name in ("also", "ontology") if (files := getattr(self, name))}

    @property
    def keys(self) -> dict[str, str]:
        """The property that names a node, by label. The empty text stands for all labels.

        Raises:
            InvalidArgumentError: If a text is no property, or there is one for all labels and one for some.
        """
        keys: dict[str, str] = {}
        for text in self.key:
            label, equals, name = text.rpartition("=")
            if not name or (equals and not label):
                raise InvalidArgumentError(
                    f"--key: wanted PROPERTY or LABEL=PROPERTY, such as Person=name, but got {text!r}."
                )
            keys[label] = name
        if "" in keys and len(self.key) > 1:
            raise InvalidArgumentError(
                "--key PROPERTY is for all nodes. Give it once, or --key LABEL=PROPERTY for each label."
            )
        return keys

    @property
    def view_arguments(self) -> dict[str, Any]:
        """The arguments of `GraphIndex.view` that the options set."""
        given = {"where": self.view, "as_of": self.as_of, "validity": self.validity}
        return {name: value for name, value in given.items() if value is not None}

    def view_of(self, whole: Whole) -> Whole:
        """Return the view of a graph or index that the options describe, or the whole without them.

        Raises:
            InvalidArgumentError: If there is no such view.
        """
        if self.validity and self.as_of is None:
            raise InvalidArgumentError("--validity names the attributes that --as-of looks at. Give --as-of, too.")
        try:
            return whole.view(**self.view_arguments) if self.view_arguments else whole
        except InvalidArgumentError as error:
            message = f"--{error.message}".replace("--view: as_of ", "--as-of: it ")
            message = message.replace("--view: validity: ", "--validity: ")
            raise InvalidArgumentError(message, **error.hints) from error

    @property
    def words(self) -> list[str]:
        """The words of a command that read a graph in the same way."""
        view = None if self.view is None else json.dumps(self.view, ensure_ascii=False)
        given = [("--columns", self.columns), ("--entities", self.entities), ("--view", view), ("--as-of", self.as_of)]
        given += [("--also", file) for file in self.also] + [("--ontology", file) for file in self.ontology]
        given += [("--read", text) for text in self.read] + [("--key", text) for text in self.key]
        words = [word for name, value in given if value is not None for word in (name, value)]
        return words + (["--validity", *self.validity] if self.validity else [])


def option_of(argument: str) -> str:
    """Return the option that sets an argument of a reader."""
    return f"--{argument}" if argument in signature(Reading).parameters else f"--read {argument}"


@dataclass(frozen=True)
class Connection:
    """A graph that stays in its database."""

    connect: Annotated[bool, flag("--connect", "Leave the graph in its database.", ADVANCED)] = False
    vectors: Vectors = None
    max_facts: Annotated[int | None, option("N", "Leave it there; fetch so many facts.", min=1, panel=ADVANCED)] = None


@dataclass(frozen=True)
class Given:
    """The things that a method gets in addition to the graph."""

    llm: Llm = None
    examples: Annotated[str | None, option("FILE", f"For {USE_EXAMPLES}.")] = None
    model: Annotated[list[str], option("FOLDER", "A trained model of `train`.")] = field(default_factory=list)
    preset: Preset = None
    database: Annotated[
        str | None, option("URI_OR_FILE", f"The database of {QUERY_METHODS}.", parser=database_place, panel=ADVANCED)
    ] = None


Format = Literal["jsonl", "metaqa", "pathquestion", "webqsp", "cwq"]


@dataclass(frozen=True)
class QuestionSet:
    """The questions that are read, and the graph that they are about."""

    graph: GraphOption = None
    format: Annotated[Format, option("FORMAT", f"{', '.join(get_args(Format))} (default: jsonl).")] = "jsonl"
    split: Annotated[str | None, option("NAME", "A part, such as test.")] = None
    hops: Annotated[Any, option("1,2,3", "Questions that join so many facts.", parser=hop_numbers)] = None
    limit: Annotated[int | None, option("N", "At most N of each number of hops.", min=1)] = None
    seed: Seed = 0

    @property
    def have_graphs(self) -> bool:
        """Whether each question has a graph of its own."""
        return self.format in ("webqsp", "cwq")

    def read(self, path: str, split: str | None, limit: int | None = None) -> list[Question]:
        """Read the questions of a file or folder."""
        return kg_retrievers.read_question_set(
            path, split=split, format=self.format, only_hops=self.hops, limit=limit, seed=self.seed
        )

    def read_part(self, path: str, split: str) -> list[Question]:
        """Read a file, or this split of a folder. PathQuestion has no splits."""
        return self.read(path, split if Path(path).is_dir() and self.format != "pathquestion" else None)

    def check_graph(self, reading: Reading, others: Mapping[str, Any]) -> None:
        """Check that nothing is said about one graph if each question has its own.

        Args:
            reading: How a graph is read.
            others: The values of other options about one graph.

        Raises:
            InvalidArgumentError: If something is said.
        """
        if not self.have_graphs:
            return
        given = {"--graph": self.graph, "--hops": self.hops, **others}
        flags = [flag for flag, value in given.items() if value] + reading.words[:1]
        if flags:
            raise InvalidArgumentError(
                f"{flags[0]} is for questions about one graph, and those of {self.format} have a graph each. "
                "Leave it out."
            )
