"""The options of all commands."""

from __future__ import annotations

import argparse
from importlib.metadata import version

from kg_retrievers.cli import argument_types
from kg_retrievers.cli.built_methods import NAMED_BY_OPTIONS
from kg_retrievers.cli.compare import ALL
from kg_retrievers.cli.mcp import add_mcp
from kg_retrievers.cli.measurement import SOURCES
from kg_retrievers.cli.own_graphs import GRAPH_FORMATS
from kg_retrievers.cli.parser import Options, Parser, Renamed
from kg_retrievers.cli.question_options import (
    GRAPH_LEFT_OUT,
    QUESTION_FORMATS,
    add_graph_of_questions,
    add_measurement,
    add_questions,
    add_table,
    examples_help,
)
from kg_retrievers.cli.reading_options import add_reading_options
from kg_retrievers.cli.serve import add_serve
from kg_retrievers.cli.shared_options import (
    FIELD_HELP,
    METHODS,
    MODEL_HELP,
    UNION_HELP,
    add_connection,
    add_database,
    add_embedding_cache,
    add_embeddings,
    add_field,
    add_graph,
    add_json_file,
    add_json_flag,
    add_k,
    add_llm,
    add_model,
    add_preset,
    add_reading,
    add_vectors,
    add_workers,
    one_of_methods,
)
from kg_retrievers.cli.train_graph_prompt import NAMED_IN_TRAINING, SETTINGS
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT

EPILOG = """\
examples:
  kg-retrievers demo
  kg-retrievers info films.csv
  kg-retrievers ask films.csv "Who directed Her?"
  kg-retrievers index films.csv --output films.index
  kg-retrievers ask films.index "Who directed Her?" --llm openai:gpt-4.1-mini
  kg-retrievers serve films.index
  kg-retrievers update films.index --add new.csv --remove old.csv
  kg-retrievers questions films.csv --output questions.jsonl
  kg-retrievers train subgraph-rag --graph films.index --questions questions.jsonl --output films.model
  kg-retrievers ask films.index "Who directed Her?" --model films.model
  kg-retrievers train graph-prompt --llm Qwen/Qwen2.5-0.5B-Instruct --graph films.index --questions questions.jsonl \\
    --output films.prompt
  kg-retrievers index bolt://localhost:7687 --key Movie=title --key Person=name --output movies.index
  kg-retrievers index bolt://localhost:7687 --key name --vectors postgresql://reader@localhost/names
  kg-retrievers ask bolt://localhost:7687 "Who ...?" --key name --vectors postgresql://reader@localhost/names
  kg-retrievers evaluate --graph films.index --data questions.jsonl --format jsonl --json figures.json
  kg-retrievers mcp films.index

exit codes: 0 evidence found, or done; 1 no evidence found; 2 a mistake, told on one line of stderr; 130 interrupted.
"""


def make_parser() -> Parser:
    """Return the parser of the arguments; `options.command` is the name of the command."""
    debug = Parser(add_help=False)
    debug.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show an error's traceback")
    parser = Parser(
        prog="kg-retrievers",
        description="Fetch the part of a knowledge graph that answers a question.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[debug],
    )
    parser.add_argument("--version", action="version", version=f"kg-retrievers {version('kg-retrievers')}")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands", required=True, dest="command")

    def command(name: str, about: str) -> Parser:
        return commands.add_parser(name, help=about, description=f"{about}.", parents=[debug])

    _ask(command("ask", "Answer a question from a graph, with the evidence"))
    _index(command("index", "Index a graph once, for many questions"))
    _update(command("update", "Change a saved graph and its index: add facts, remove facts"))
    _info(command("info", "Show what was understood of a graph, and what is in it"))
    _write_questions(command("questions", "Write questions with answers and patterns from a graph alone"))
    _train(command("train", "Train a method on questions with answers"))
    _evaluate(command("evaluate", "Measure a method on questions whose answers are known"))
    _compare(command("compare", "Put several methods, or earlier runs, side by side"))
    add_mcp(command("mcp", "Serve a graph to agents over MCP, the Model Context Protocol"))
    add_serve(command("serve", "Open a page in the browser that asks a graph"))
    command("demo", "Ask the sample graph a few questions; no download, no API key")
    command("warm-up", "Compile all methods now, so that no first question waits for it")
    parser.commands = commands.choices
    return parser


# --- the commands -----------------------------------------------------------------------------------------------------


def _ask(ask: Parser) -> None:
    add_graph(ask)
    add_embeddings(ask)
    add_llm(ask)
    ask.add_argument("question", metavar="QUESTION", help="the question, in quotes")
    ask.add_argument(
        "--method",
        type=argument_types.methods,
        metavar=METHODS,
        help=f"{one_of_methods()}; {UNION_HELP}",
    )
    add_model(ask, MODEL_HELP)
    ask.add_argument("--examples", metavar="FILE", help=f"{examples_help()}, as JSON lines; other methods use none")
    add_k(ask)
    ask.add_argument(
        "--min-confidence",
        type=argument_types.share,
        metavar="P",
        help="refuse a question whose answers are less likely right, from 0 to 1 (default: the method's); 0: none",
    )
    add_preset(ask, "the retriever")
    add_field(ask, FIELD_HELP, "max_distance=0.5", NAMED_BY_OPTIONS)
    add_database(ask)
    ask.add_argument("--seed", action="append", default=[], metavar="NAME", help="an entity it is about; repeatable")
    explained = "say how the question leads to the best evidence"
    ask.add_argument("--explain", dest="explained", action="store_true", help=explained)  # --no-explain is of databases
    ask.add_argument("--why-not", metavar="ENTITY", help="say what keeps an entity out of what is found")
    add_connection(ask)
    add_json_flag(ask)


def _index(index: Parser) -> None:
    add_graph(index)
    add_embeddings(index)
    index.add_argument("--output", metavar="FOLDER", help="where to save it")
    add_vectors(index, "leave the graph in its database, and load its names into this store; once begun, go on")
    index.add_argument("--triples", action="store_true", help="embed every triple as well, for kaping")
    add_workers(index, "embed")


def _update(update: Parser) -> None:
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
    add_embeddings(update)
    add_reading_options(update, "--graph-format", "--format")
    add_json_flag(update)


def _info(info: Parser) -> None:
    add_graph(info)
    info.add_argument("--verify", action="store_true", help="of a folder: compare all of it with its checksums")
    add_connection(info)
    add_embeddings(info)
    add_json_flag(info)


def _write_questions(questions: Parser) -> None:
    add_graph(questions)
    questions.add_argument("--output", required=True, metavar="FILE", help="a new file, as JSON lines")
    questions.add_argument(
        "--count", type=argument_types.positive_integer, default=1000, metavar="N", help="how many (default: 1000)"
    )
    questions.add_argument(
        "--seed", type=argument_types.natural_number, default=0, metavar="N", help="of all that is drawn (default: 0)"
    )
    questions.add_argument(
        "--max-hops", type=int, choices=(1, 2, 3), default=3, help="the most facts that a walk joins (default: 3)"
    )
    add_json_flag(questions)


def _train(train: Parser) -> None:
    methods = sorted(entry.name for entry in registry.trainable())
    train.add_argument("method", choices=methods, metavar="METHOD", help=f"one of {', '.join(methods)}")
    questions = train.add_argument_group("what it learns from")
    add_graph_of_questions(questions, also=GRAPH_LEFT_OUT)
    splits = "metaqa: train (default), train_ntm for paraphrases, ..."
    also = f"; those of {', '.join(GRAPH_FORMATS)} have a graph each, and the latter two are for {GRAPH_PROMPT.name}"
    add_questions(questions, "--questions", splits, (*QUESTION_FORMATS, *GRAPH_FORMATS), default="jsonl", also=also)
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
        type=argument_types.positive_integer,
        metavar="N",
        help="how many questions to look at, each time counted; more take longer; not for "
        f"{GRAPH_PROMPT.name}, which has --field epochs=N",
    )
    training.add_argument(
        "--llm",
        metavar="NAME_OR_FOLDER",
        help=f"the causal language model of Hugging Face that reads the graphs, for {GRAPH_PROMPT.name}, as in "
        "Qwen/Qwen2.5-0.5B-Instruct; it is downloaded where it is not there",
    )
    training.add_argument(
        "--visits", type=argument_types.positive_integer, action=Renamed, dest="num_examples", help=argparse.SUPPRESS
    )
    add_embeddings(training)
    add_embedding_cache(training)
    add_preset(training, "the training and the model")
    add_workers(training, "find entities and candidates")
    add_field(
        training,
        f"a setting of the training or the model, or for {GRAPH_PROMPT.name} of the retriever that it answers from",
        "max_nodes=1000",
        NAMED_IN_TRAINING,
    )
    _prompt_training(train.add_argument_group(f"for {GRAPH_PROMPT.name} alone"))
    add_reading(train, "--graph-format")
    add_json_flag(train)


def _prompt_training(prompt: Options) -> None:
    """Add the options for training a graph prompt."""
    prompt.add_argument(
        "--setting",
        choices=SETTINGS,
        help=f"of the paper: a graph encoder (default: {SETTINGS[0]}), learned tokens in its place, or it and adapters",
    )
    prompt.add_argument(
        "--method",
        dest="retriever",
        type=argument_types.methods,
        metavar=METHODS,
        help="the retriever that it answers from, without a language model (default: "
        f"{GRAPH_PROMPT.default_method}; for "
        f"{', '.join(GRAPH_FORMATS)} none, so all of a question's graph is read); {UNION_HELP}",
    )
    add_model(prompt)


def _evaluate(evaluate: Parser) -> None:
    add_measurement(evaluate, required=True)
    evaluate.add_argument(
        "--answer-shots",
        type=argument_types.positive_integer,
        metavar="N",
        help="show so many of --examples in the prompt of --answers prompt or verdict, in place of ours, where it has "
        f"a place for them, as that of {registry.DEFAULT.name}",
    )
    add_connection(evaluate)
    evaluate.add_argument(
        "--method",
        type=argument_types.method,
        metavar=f"{METHODS}[:WITH]",
        help=f"{one_of_methods()}, with all that is "
        f"given, or :WITH one of {', '.join(SOURCES)}; a method that cannot use both examples and a language model "
        f"gets the latter; {UNION_HELP}",
    )
    evaluate.add_argument(
        "--records",
        type=argument_types.file,
        metavar="FILE",
        help="keep what is measured as JSON lines; if there, go on",
    )
    add_table(evaluate)
    add_json_file(evaluate, "the figures")


def _compare(compare: Parser) -> None:
    compare.add_argument("runs", nargs="*", metavar="RECORDS", help="files of records that `evaluate` wrote")
    add_measurement(compare, required=False)
    compare.set_defaults(answer_shots=None)
    add_connection(compare)
    compare.add_argument(
        "--method",
        type=argument_types.method_or_all,
        action="append",
        default=[],
        metavar=f"{METHODS}[:WITH]",
        help=f"as with `evaluate`; repeatable; {ALL} for every method, :WITH each of what is given; what cannot be "
        "built is left out",
    )
    compare.add_argument(
        "--records",
        type=argument_types.file,
        metavar="FOLDER",
        help="keep what is measured, a file a method; if there, go on",
    )
    compare.add_argument(
        "--failures",
        type=argument_types.natural_number,
        default=10,
        metavar="N",
        help="how many failures of each to tell (default: 10)",
    )
    add_table(compare)
    add_json_file(compare, "the figures and failures")
