"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from kg_retrievers.cli import argument_types
from kg_retrievers.cli.argument_types import UNION_EXAMPLE
from kg_retrievers.cli.load import query_methods
from kg_retrievers.cli.parser import Options, Parser
from kg_retrievers.cli.reading_options import add_reading_options
from kg_retrievers.cli.workers import workers_name
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT, SEPARATOR
from kg_retrievers.serving.loading import HASHED, PUBLIC, STATIC

#: The help on several methods, on fields and on graph prompts among the models.
UNION_HELP = f"{UNION_EXAMPLE} asks both and fuses what they find"
FIELD_HELP = f"a field of the retriever, with several methods of {registry.UNION.class_name} alone"
MODEL_HELP = f"; one of {GRAPH_PROMPT.name} answers from what the method finds, by default that of its training"

#: How methods are named.
METHODS = f"NAME[{SEPARATOR}NAME]"

#: The names of presets.
PRESETS = ("paper",)

#: The help on graphs that are no files of another program.
GRAPH_HELP = (
    "a folder of `index`, a LadybugDB file, a URI of a Neo4j database, as bolt://localhost:7687, or of a SPARQL "
    f"endpoint, as http://localhost:7878/query, or one of {', '.join(PUBLIC)}"
)


def one_of_methods() -> str:
    """Return the help on the name of a method."""
    names = ", ".join(registry.method_names())
    return f"one of {names} (default: that of --model, else {registry.DEFAULT.name})"


def add_graph(parser: Parser) -> None:
    """Add the graph, and how it is read."""
    parser.add_argument(
        "graph",
        type=argument_types.place,
        metavar="GRAPH",
        help=f"a file of any format (CSV, TSV, JSON, RDF, Parquet, GraphML ...; also packed), {GRAPH_HELP}",
    )
    add_reading(parser, "--format", "--graph-format")  # as the other commands call it


def add_reading(parser: Parser, *format_flags: str) -> None:
    """Add how a graph is read, from a file or a database."""
    add_reading_options(parser, *format_flags)
    database = parser.add_argument_group(
        "how a graph database is read",
        "User name and password come from NEO4J_USERNAME and NEO4J_PASSWORD, those of a SPARQL endpoint from "
        "SPARQL_USERNAME and SPARQL_PASSWORD, or SPARQL_TOKEN.",
    )
    database.add_argument(
        "--key",
        type=argument_types.key,
        action="append",
        default=[],
        metavar="[LABEL=]PROPERTY",
        help="the property that names a node, of those with a label or of all (default: key); repeatable",
    )
    database.add_argument("--database-name", metavar="NAME", help="a Neo4j database that is not the server's default")
    database.add_argument(
        "--no-explain",
        dest="explain",
        action="store_false",
        help="do not ask the database whether a query only reads, where it cannot tell, as ArcadeDB; the check of this "
        "package and a user who may only read stay",
    )
    parser.set_defaults(database=None, connect=False, vectors=None, max_facts=None)


def add_vectors(parser: Options, what: str) -> None:
    """Add the vector store of the names of a graph that stays in its database."""
    parser.add_argument(
        "--vectors",
        type=argument_types.vectors,
        metavar="ADDRESS",
        help=f"{what}: postgresql://user@host/database (pgvector), chroma://host:8000/collection, "
        "milvus://host:19530/collection, or a new or old FOLDER.db (Milvus Lite); passwords come from PGPASSWORD or "
        "~/.pgpass, CHROMA_TOKEN, MILVUS_TOKEN",
    )


def add_connection(parser: Parser) -> None:
    """Add how a graph is asked that stays in its database."""
    group = parser.add_argument_group(
        "a graph that stays in its database", "Each question fetches the part of the graph that it looks at."
    )
    group.add_argument(
        "--connect",
        action="store_true",
        help="leave the graph in its database; without --vectors, only names that are written exactly are found",
    )
    add_vectors(group, "leave the graph in its database, and find names in this store, which `index` has filled")
    group.add_argument(
        "--max-facts",
        type=argument_types.positive_integer,
        metavar="N",
        help="the most facts that a question fetches (default: 20000)",
    )


def add_embeddings(parser: Options) -> None:
    """Add the embeddings."""
    parser.add_argument(
        "--embeddings",
        type=argument_types.embeddings_name,
        metavar="WHICH",
        help=f"{STATIC} (words and letters) or {HASHED} (letters), which need no download, local:MODEL_OR_FOLDER "
        "(sentence-transformers) or PROVIDER:MODEL (LangChain), as openai:text-embedding-3-small; default: those that "
        f"a folder was built with, else {STATIC}",
    )
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run the code that a model of local:MODEL brings; it can do whatever you can",
    )


def add_embedding_cache(parser: Options) -> None:
    """Add the file of vectors."""
    parser.add_argument(
        "--embedding-cache",
        type=argument_types.file,
        metavar="FILE",
        help="keep the vectors of names for the next time, where each question has a graph of its own; made if new",
    )


def add_database(parser: Options) -> None:
    """Add the graph database that runs queries."""
    parser.add_argument(
        "--database",
        type=argument_types.database_place,
        metavar="URI_OR_FILE",
        help=f"where {query_methods()} runs its queries: a Neo4j database, as bolt://localhost:7687, or a LadybugDB "
        "file, made of the graph if it is not there (default: GRAPH if it is a database, else one for this run alone)",
    )


def add_workers(parser: Options, what: str) -> None:
    """Add the processes that share the work."""
    parser.add_argument(
        "--workers",
        type=workers_name,
        metavar="N|ray[:ADDRESS]",
        help=f"{what} in N processes of this machine, or on Ray, started here or at the ADDRESS of a cluster "
        "(default: in this process)",
    )


def add_llm(parser: Options) -> None:
    """Add the language model."""
    parser.add_argument(
        "--llm",
        metavar="PROVIDER:MODEL",
        help="a language model for the method and the answer, as in openai:gpt-4.1-mini; "
        "its key is read from the environment, as OPENAI_API_KEY; "
        f"beside a --model of {GRAPH_PROMPT.name}, for the method alone",
    )


def add_k(parser: Options) -> None:
    """Add how much evidence is wanted."""
    parser.add_argument(
        "--k",
        type=argument_types.positive_integer,
        metavar="N",
        help="how many pieces of evidence (default: the method's)",
    )


def add_model(parser: Options, also: str = "") -> None:
    """Add trained models; `also` continues the help."""
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a trained model that `train` saved, for the method that it was trained for; repeatable" + also,
    )


def add_field(parser: Options, what: str, example: str, named_elsewhere: Collection[str]) -> None:
    """Add fields of the retriever, but for those that other options name."""
    parser.add_argument(
        "--field",
        type=partial(argument_types.assignment, example=example, named_elsewhere=named_elsewhere),
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"{what}, VALUE as JSON or else a text, as in {example}; repeatable",
    )


def add_preset(parser: Options, what: str) -> None:
    """Add the settings of the method's paper."""
    parser.add_argument(
        "--preset",
        choices=PRESETS,
        help=f"the settings of the method's paper for {what}; what other options set wins",
    )


def add_json_flag(parser: Parser) -> None:
    """Add the choice of JSON on stdout."""
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, and nothing else")


def add_json_file(parser: Parser, what: str) -> None:
    """Add the choice of a file of JSON, or stdout."""
    parser.add_argument("--json", metavar="FILE", help=f"write {what} to a file; - for stdout, and nothing else")
