"""The options of all commands."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Collection, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from kg_retrievers.cli.compare import ALL
from kg_retrievers.cli.database import SCHEMES
from kg_retrievers.cli.load import query_methods, quoted
from kg_retrievers.cli.measurement import NAMED_BY_OPTIONS, SOURCES, MethodChoice
from kg_retrievers.cli.reading_options import add_reading_options
from kg_retrievers.cli.show import note
from kg_retrievers.cli.train_graph_prompt import GRAPH_FORMATS, NAMED_IN_TRAINING, SCENE_GRAPHS, SETTINGS
from kg_retrievers.database.neo4j_login import address_in
from kg_retrievers.errors import InvalidArgumentError, did_you_mean
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT, SEPARATOR
from kg_retrievers.serving.loading import HASHED, STATIC, is_database_file, is_uri

EPILOG = """\
examples:
  kg-retrievers demo
  kg-retrievers info films.csv
  kg-retrievers ask films.csv "Who directed Her?"
  kg-retrievers index films.csv --output films.index
  kg-retrievers ask films.index "Who directed Her?" --llm openai:gpt-4.1-mini
  kg-retrievers update films.index --add new.csv --remove old.csv
  kg-retrievers questions films.csv --output questions.jsonl
  kg-retrievers train subgraph-rag --graph films.index --questions questions.jsonl --output films.model
  kg-retrievers ask films.index "Who directed Her?" --model films.model
  kg-retrievers train graph-prompt --llm Qwen/Qwen2.5-0.5B-Instruct --graph films.index --questions questions.jsonl \\
    --output films.prompt
  kg-retrievers index bolt://localhost:7687 --key Movie=title --key Person=name --output movies.index
  kg-retrievers evaluate --graph films.index --data questions.jsonl --format jsonl --json figures.json

exit codes: 0 evidence found, or done; 1 no evidence found; 2 a mistake, told on one line of stderr; 130 interrupted.
"""

#: An example of a union.
UNION_EXAMPLE = SEPARATOR.join(("simgrag", "g-retriever"))

#: The help on several methods, on fields and on graph prompts among the models.
UNION_HELP = f"{UNION_EXAMPLE} asks both and fuses what they find"
FIELD_HELP = f"a field of the retriever, with several methods of {registry.UNION.class_name} alone"
MODEL_HELP = f"; one of {GRAPH_PROMPT.name} answers from what the method finds, by default that of its training"

#: How methods are named.
METHODS = f"NAME[{SEPARATOR}NAME]"

#: How questions over one graph are written.
FORMATS = ("metaqa", "pathquestion", "jsonl")

#: The help on graphs that are no files of another program.
GRAPH_HELP = "a folder of `index`, a LadybugDB file, or a URI of a Neo4j database, as bolt://localhost:7687"


class _Parser(argparse.ArgumentParser):
    """Parses arguments, and reports a mistake on one line with the nearest option or choice."""

    #: The parsers of the commands, by name.
    commands: dict[str, _Parser]

    def error(self, message: str) -> NoReturn:
        shown = re.sub(r"://\S*@", "://...@", message)  # an argument may hold a password
        end = "" if shown.endswith("?") else "."
        raise InvalidArgumentError(f"{shown}{end} See: {self.prog} --help") from None

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = self.commands[options.command]
            flags = re.findall(r"--[\w-]+", parser.format_usage())
            near = "put a text of several words in quotes"
            if unknown[0].startswith("--"):
                near = did_you_mean(unknown[0].partition("=")[0], flags)
            parser.error(f"unrecognized arguments: {' '.join(unknown)}{near and f'; {near}'}")
        return options

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        near = did_you_mean(str(value), map(str, action.choices))
        choices = f"choose from {', '.join(map(str, action.choices))}"
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {near or choices}")


class _Renamed(argparse.Action):
    """Takes the value of an option under its name of an earlier version, and notes the name of today."""

    def __call__(self, _: argparse.ArgumentParser, options: argparse.Namespace, value: Any, flag: Any = None) -> None:
        note(f"{flag} is called --{self.dest.replace('_', '-')} now")
        setattr(options, self.dest, value)


_Options = _Parser | argparse._ArgumentGroup


def make_parser() -> _Parser:
    """Return the parser of the arguments; `options.command` is the name of the command."""
    debug = _Parser(add_help=False)
    debug.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show an error's traceback")
    parser = _Parser(
        prog="kg-retrievers",
        description="Fetch the part of a knowledge graph that answers a question.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[debug],
    )
    parser.add_argument("--version", action="version", version=f"kg-retrievers {version('kg-retrievers')}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True, dest="command")

    def command(name: str, about: str) -> _Parser:
        return commands.add_parser(name, help=about, description=f"{about}.", parents=[debug])

    _ask(command("ask", "Answer a question from a graph, with the evidence"))
    _index(command("index", "Index a graph once, for many questions"))
    _update(command("update", "Change a saved graph and its index: add facts, remove facts"))
    _info(command("info", "Show what was understood of a graph, and what is in it"))
    _write_questions(command("questions", "Write questions with answers and patterns from a graph alone"))
    _train(command("train", "Train a method on questions with answers"))
    _evaluate(command("evaluate", "Measure a method on questions whose answers are known"))
    _compare(command("compare", "Put several methods, or earlier runs, side by side"))
    command("demo", "Ask the sample graph a few questions; no download, no API key")
    parser.commands = commands.choices
    return parser


# --- the commands -----------------------------------------------------------------------------------------------------


def _ask(ask: _Parser) -> None:
    _graph(ask)
    _embeddings(ask)
    _llm(ask)
    ask.add_argument("question", metavar="QUESTION", help="the question, in quotes")
    ask.add_argument(
        "--method",
        type=_methods,
        metavar=METHODS,
        help=f"{_one_of_methods()}; {UNION_HELP}",
    )
    _model(ask, MODEL_HELP)
    ask.add_argument("--examples", metavar="FILE", help=f"{_examples()}, as JSON lines; other methods use none")
    ask.add_argument("--k", type=_count, metavar="N", help="how many pieces of evidence (default: the method's)")
    ask.add_argument(
        "--min-confidence",
        type=_share,
        metavar="P",
        help="refuse a question whose answers are less likely right, from 0 to 1 (default: the method's); 0: none",
    )
    _field(ask, FIELD_HELP, "max_distance=0.5", NAMED_BY_OPTIONS)
    _database(ask)
    ask.add_argument("--seed", action="append", default=[], metavar="NAME", help="an entity it is about; repeatable")
    _json_flag(ask)


def _index(index: _Parser) -> None:
    _graph(index)
    _embeddings(index)
    index.add_argument("--output", required=True, metavar="FOLDER", help="where to save it")
    index.add_argument("--triples", action="store_true", help="embed every triple as well, for kaping")


def _update(update: _Parser) -> None:
    update.add_argument("index", metavar="INDEX", help="a folder of `index`")
    files = {"--add": "facts to add, with what the file says about entities", "--remove": "facts to remove"}
    for flag, about in files.items():
        update.add_argument(flag, action="append", default=[], metavar="FILE", help=f"{about}; repeatable")
    update.add_argument(
        "--remove-source",
        action="append",
        default=[],
        metavar="NAME",
        help="a source to remove, with the facts that are from no other one; repeatable",
    )
    update.add_argument("--source", metavar="NAME", help="where the facts of --add are from")
    _embeddings(update)
    add_reading_options(update, "--graph-format", "--format")
    _json_flag(update)


def _info(info: _Parser) -> None:
    _graph(info)
    info.add_argument("--verify", action="store_true", help="of a folder: compare all of it with its checksums")
    _json_flag(info)


def _write_questions(questions: _Parser) -> None:
    _graph(questions)
    questions.add_argument("--output", required=True, metavar="FILE", help="a new file, as JSON lines")
    questions.add_argument("--count", type=_count, default=1000, metavar="N", help="how many (default: 1000)")
    questions.add_argument("--seed", type=_from_zero, default=0, metavar="N", help="of all that is drawn (default: 0)")
    questions.add_argument(
        "--max-hops", type=int, choices=(1, 2, 3), default=3, help="the most facts that a walk joins (default: 3)"
    )
    questions.add_argument(
        "--llm",
        metavar="PROVIDER:MODEL",
        help="a language model that says each question in other words, a call each, as in openai:gpt-4.1-mini; "
        "its key is read from the environment, as OPENAI_API_KEY",
    )
    _json_flag(questions)


def _train(train: _Parser) -> None:
    methods = sorted(entry.name for entry in registry.trainable())
    train.add_argument("method", choices=methods, metavar="METHOD", help=f"one of {', '.join(methods)}")
    questions = train.add_argument_group("what it learns from")
    also = f"; left out where each question has a graph of its own, and for {SCENE_GRAPHS} the file of all these"
    _graph_of_questions(questions, required=False, also=also)
    splits = "metaqa: train (default), train_ntm for paraphrases, ..."
    also = f"; {', '.join(GRAPH_FORMATS)} are for {GRAPH_PROMPT.name}: each question has a graph of its own"
    _questions(questions, "--questions", splits, (*FORMATS, *GRAPH_FORMATS), default="jsonl", also=also)
    questions.add_argument(
        "--validation",
        metavar="FILE_OR_FOLDER",
        help="questions that say when to stop, written as --questions (default: a tenth of these)",
    )
    questions.add_argument("--validation-split", metavar="NAME", help="a part of them; metaqa: dev (default), ...")
    training = train.add_argument_group("how it learns")
    training.add_argument("--output", required=True, metavar="FOLDER", help="where to save the model; if begun, go on")
    training.add_argument(
        "--num-examples",
        type=_count,
        metavar="N",
        help="how many questions to look at, each time counted; more take longer; not for "
        f"{GRAPH_PROMPT.name}, which has --field epochs=N",
    )
    training.add_argument("--visits", type=_count, action=_Renamed, dest="num_examples", help=argparse.SUPPRESS)
    _embeddings(training)
    _field(
        training,
        f"a setting of the training or the model, or for {GRAPH_PROMPT.name} of the retriever that it answers from",
        "max_nodes=1000",
        NAMED_IN_TRAINING,
    )
    _prompt_training(train.add_argument_group(f"for {GRAPH_PROMPT.name} alone"))
    _reading(train, "--graph-format")
    _json_flag(train)


def _prompt_training(prompt: _Options) -> None:
    """Add the options for training a graph prompt."""
    prompt.add_argument(
        "--llm",
        metavar="NAME_OR_FOLDER",
        help="the causal language model of Hugging Face that is to read the graphs, as in Qwen/Qwen2.5-0.5B-Instruct; "
        "it is downloaded where it is not there",
    )
    prompt.add_argument(
        "--setting",
        choices=SETTINGS,
        help=f"of the paper: a graph encoder (default: {SETTINGS[0]}), learned tokens in its place, or it and adapters",
    )
    prompt.add_argument(
        "--method",
        dest="retriever",
        type=_methods,
        metavar=METHODS,
        help="the retriever that it answers from, without a language model (default: "
        f"{GRAPH_PROMPT.default_method}; for "
        f"{', '.join(GRAPH_FORMATS)} none, so all of a question's graph is read); {UNION_HELP}",
    )
    _model(prompt)


def _evaluate(evaluate: _Parser) -> None:
    _measurement(evaluate, required=True)
    evaluate.add_argument(
        "--method",
        type=_method,
        metavar=f"{METHODS}[:WITH]",
        help=f"{_one_of_methods()}, with all that is "
        f"given, or :WITH one of {', '.join(SOURCES)}; a method that cannot use both examples and a language model "
        f"gets the latter; {UNION_HELP}",
    )
    evaluate.add_argument(
        "--records", type=_file, metavar="FILE", help="keep what is measured as JSON lines; if there, go on"
    )
    _json_file(evaluate, "the figures")


def _compare(compare: _Parser) -> None:
    compare.add_argument("runs", nargs="*", metavar="RECORDS", help="files of records that `evaluate` wrote")
    _measurement(compare, required=False)
    compare.add_argument(
        "--method",
        type=_method_or_all,
        action="append",
        default=[],
        metavar=f"{METHODS}[:WITH]",
        help=f"as with `evaluate`; repeatable; {ALL} for every method, :WITH each of what is given; what cannot be "
        "built is left out",
    )
    compare.add_argument(
        "--records", type=_file, metavar="FOLDER", help="keep what is measured, a file a method; if there, go on"
    )
    compare.add_argument(
        "--failures", type=_from_zero, default=10, metavar="N", help="how many failures of each to tell (default: 10)"
    )
    _json_file(compare, "the figures and failures")


def _one_of_methods() -> str:
    names = ", ".join(registry.method_names())
    return f"one of {names} (default: that of --model, else {registry.DEFAULT.name})"


def _examples() -> str:
    """Return the help on examples: the methods that use them, and their labels."""
    uses = [f"{method.name} (with {quoted(method.labels)})" for method in registry.METHODS if method.labels]
    return f"labelled questions, for {', '.join(uses)}"


# --- options that several commands share ------------------------------------------------------------------------------


def _graph(parser: _Parser) -> None:
    parser.add_argument(
        "graph",
        type=_place,
        metavar="GRAPH",
        help=f"a file of any format (CSV, TSV, JSON, RDF, Parquet, GraphML ...; also packed), {GRAPH_HELP}",
    )
    _reading(parser, "--format", "--graph-format")  # as the other commands call it


def _reading(parser: _Parser, *format_flags: str) -> None:
    add_reading_options(parser, *format_flags)
    database = parser.add_argument_group(
        "how a graph database is read", "User name and password come from NEO4J_USERNAME and NEO4J_PASSWORD."
    )
    database.add_argument(
        "--key",
        type=_key,
        action="append",
        default=[],
        metavar="[LABEL=]PROPERTY",
        help="the property that names a node, of those with a label or of all (default: key); repeatable",
    )
    database.add_argument("--database-name", metavar="NAME", help="a Neo4j database that is not the server's default")
    parser.set_defaults(database=None)


def _embeddings(parser: _Options) -> None:
    parser.add_argument(
        "--embeddings",
        type=_embeddings_name,
        metavar="WHICH",
        help=f"{STATIC} (words and letters) or {HASHED} (letters), which need no download, local:MODEL_OR_FOLDER "
        "(sentence-transformers) or PROVIDER:MODEL (LangChain), as openai:text-embedding-3-small; default: those that "
        f"a folder was built with, else {STATIC}",
    )


def _database(parser: _Options) -> None:
    parser.add_argument(
        "--database",
        type=_database_place,
        metavar="URI_OR_FILE",
        help=f"where {query_methods()} runs its queries: a Neo4j database, as bolt://localhost:7687, or a LadybugDB "
        "file, made of the graph if it is not there (default: GRAPH if it is a database, else one for this run alone)",
    )


def _llm(parser: _Options) -> None:
    parser.add_argument(
        "--llm",
        metavar="PROVIDER:MODEL",
        help="a language model for the method and the answer, as in openai:gpt-4.1-mini; "
        "its key is read from the environment, as OPENAI_API_KEY; "
        f"beside a --model of {GRAPH_PROMPT.name}, for the method alone",
    )


def _model(parser: _Options, also: str = "") -> None:
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a trained model that `train` saved, for the method that it was trained for; repeatable" + also,
    )


def _field(parser: _Options, what: str, example: str, named_elsewhere: Collection[str]) -> None:
    parser.add_argument(
        "--field",
        type=partial(_assignment, example=example, named_elsewhere=named_elsewhere),
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"{what}, VALUE as JSON or else a text, as in {example}; repeatable",
    )


def _json_flag(parser: _Parser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, and nothing else")


def _json_file(parser: _Parser, what: str) -> None:
    parser.add_argument("--json", metavar="FILE", help=f"write {what} to a file; - for stdout, and nothing else")


def _graph_of_questions(questions: _Options, required: bool, also: str = "") -> None:
    about = f"a file of any format, {GRAPH_HELP}{also}"
    questions.add_argument("--graph", type=_place, required=required, metavar="GRAPH", help=about)


def _questions(
    questions: _Options,
    flag: str,
    splits: str,
    formats: Collection[str] = FORMATS,
    *,
    default: str | None = None,
    required: bool = True,
    also: str = "",
) -> None:
    """Add the options for questions: `formats` are the formats they may have, `also` continues the help on these."""
    questions.add_argument(flag, required=required, metavar="FILE_OR_FOLDER", help="the questions")
    questions.add_argument(
        "--format",
        choices=formats,
        default=default,
        required=required and default is None,
        help=f"how the questions are written{f' (default: {default})' if default else ''}{also}",
    )
    questions.add_argument("--split", metavar="NAME", help=splits)
    questions.add_argument(
        "--hops", type=_hops, metavar="1,2,3", help="questions that join so many facts (default: all)"
    )
    questions.add_argument("--limit", type=_count, metavar="N", help="at most so many of each number of hops")
    questions.add_argument("--seed", type=_from_zero, default=0, metavar="N", help="of all that is drawn (default: 0)")


def _measurement(parser: _Parser, required: bool) -> None:
    """Add the options for a measurement: the questions, the graph, and the sources of methods."""
    questions = parser.add_argument_group("what is asked")
    splits = "metaqa: dev (default), dev_ntm for paraphrases, ..."
    _graph_of_questions(questions, required)
    _questions(questions, "--data", splits, required=required)
    questions.add_argument(
        "--unanswerable", type=_count, metavar="N", help="add so many questions that the graph cannot answer"
    )
    questions.add_argument(
        "--topic",
        choices=("given", "linked"),
        default="given",
        help="tell the method the entities of a question where the data do (default), or let it find them",
    )
    method = parser.add_argument_group("what a method gets")
    _embeddings(method)
    method.add_argument("--k", type=_count, metavar="N", help="how many pieces of evidence (default: the method's)")
    _model(method, MODEL_HELP)
    _field(method, FIELD_HELP, "max_distance=0.5", NAMED_BY_OPTIONS)
    method.add_argument(
        "--examples", metavar="FILE_OR_FOLDER", help=f"{_examples()}, written as --data; what is measured is left out"
    )
    method.add_argument("--examples-split", metavar="NAME", help="the part of --examples to take (default: as --split)")
    _llm(method)
    _database(method)
    _reading(parser, "--graph-format")


# --- what an option may be --------------------------------------------------------------------------------------------


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted an integer of 1 or more, but got {text!r}")
    return int(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"wanted a number from 0 to 1, but got {text!r}")
    return value


def _from_zero(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"wanted an integer of 0 or more, but got {text!r}")
    return int(text)


def _hops(text: str) -> list[int]:
    if not all(part.isdecimal() and int(part) for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"wanted integers with commas between them, as 1,2,3, but got {text!r}")
    return sorted({int(part) for part in text.split(",")})


def _method(text: str) -> str:
    try:
        return MethodChoice.of(text).name
    except InvalidArgumentError as error:
        raise _argument_error(error) from None


def _methods(text: str) -> str:
    if ":" in text:
        raise argparse.ArgumentTypeError(f"wanted a method, or several as in {UNION_EXAMPLE}, but got {text!r}")
    try:
        return registry.joined_names(registry.find_methods(text))
    except InvalidArgumentError as error:
        raise _argument_error(error) from None


def _argument_error(error: InvalidArgumentError) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(error.on_shell.rstrip("."))


def _method_or_all(text: str) -> str:
    return text if text == ALL else _method(text)


def _place(text: str) -> str:
    if is_uri(text):  # which is not shown, since it may hold a password
        if text.partition("://")[0].lower() not in SCHEMES:
            raise argparse.ArgumentTypeError(
                f"wanted a file, or a URI as bolt://localhost:7687 that begins with one of {', '.join(SCHEMES)}"
            )
        try:
            address_in(text)
        except InvalidArgumentError as error:
            raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error
    return text


def _database_place(text: str) -> str:
    path = Path(_place(text))
    if not is_uri(text) and not is_database_file(text) and (path.exists() or ":" in path.name):
        shown = f", but got {text!r}" if path.exists() else ""  # else it may be an address with a password
        raise argparse.ArgumentTypeError(f"wanted a URI as bolt://localhost:7687, a LadybugDB file or a new one{shown}")
    return text


def _key(text: str) -> tuple[str, str]:
    label, equals, name = text.rpartition("=")
    if not name or (equals and not label):
        raise argparse.ArgumentTypeError(f"wanted PROPERTY or LABEL=PROPERTY, as Person=name, but got {text!r}")
    return label, name


def _file(text: str) -> str:
    if text == "-":
        raise argparse.ArgumentTypeError("wanted a name, since records are also read, but got '-'")
    return text


def _assignment(text: str, example: str, named_elsewhere: Collection[str]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"wanted NAME=VALUE, as {example}, but got {text!r}")
    if name in named_elsewhere:
        raise argparse.ArgumentTypeError(f"{name} comes from other options, but got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _embeddings_name(text: str) -> str:
    kind, _, model = text.partition(":")
    if text not in (STATIC, HASHED) and not (kind and model):
        raise argparse.ArgumentTypeError(
            f"wanted {STATIC}, {HASHED}, local:MODEL_OR_FOLDER or PROVIDER:MODEL, but got {text!r}"
        )
    if kind == "local" and Path(model).is_dir():
        return f"local:{Path(model).resolve()}"
    return text
