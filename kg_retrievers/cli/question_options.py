"""The options for questions, and for a measurement with them."""

from __future__ import annotations

from collections.abc import Collection

from kg_retrievers.cli import argument_types
from kg_retrievers.cli.built_methods import NAMED_BY_OPTIONS
from kg_retrievers.cli.load import quoted
from kg_retrievers.cli.own_graphs import FACTKG, GRAPH_FORMATS, SCENE_GRAPHS
from kg_retrievers.cli.parser import Options, Parser
from kg_retrievers.cli.shared_options import (
    FIELD_HELP,
    GRAPH_HELP,
    MODEL_HELP,
    add_database,
    add_embedding_cache,
    add_embeddings,
    add_field,
    add_k,
    add_llm,
    add_model,
    add_preset,
    add_reading,
    add_workers,
)
from kg_retrievers.methods import registry

#: How questions over one graph are written.
QUESTION_FORMATS = ("metaqa", "pathquestion", "jsonl", FACTKG)

#: The help on a graph that need not be named.
GRAPH_LEFT_OUT = (
    f"; left out where each question has a graph of its own; for {SCENE_GRAPHS} the file of these, unless it lies "
    "beside the questions"
)

#: What the rows of a table group questions by.
GROUPS = ("hops", "kind", "seed_entities", "answers")


def examples_help() -> str:
    """Return the help on examples: the methods that use them, and their labels."""
    uses = [f"{method.name} (with {quoted(method.labels)})" for method in registry.METHODS if method.labels]
    return f"labelled questions, for {', '.join(uses)}"


def add_graph_of_questions(questions: Options, also: str) -> None:
    """Add the graph that questions are about; `also` continues the help."""
    about = f"a file of any format, {GRAPH_HELP}{also}"
    questions.add_argument("--graph", type=argument_types.place, metavar="GRAPH", help=about)


def add_questions(
    questions: Options,
    flag: str,
    splits: str,
    formats: Collection[str] = QUESTION_FORMATS,
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
        "--hops", type=argument_types.hops, metavar="1,2,3", help="questions that join so many facts (default: all)"
    )
    questions.add_argument(
        "--limit", type=argument_types.positive_integer, metavar="N", help="at most so many of each number of hops"
    )
    questions.add_argument(
        "--seed", type=argument_types.natural_number, default=0, metavar="N", help="of all that is drawn (default: 0)"
    )


def add_measurement(parser: Parser, required: bool) -> None:
    """Add the options for a measurement: the questions, the graph, and the sources of methods."""
    questions = parser.add_argument_group("what is asked")
    splits = "metaqa: dev (default), dev_ntm for paraphrases, ..."
    add_graph_of_questions(questions, also=GRAPH_LEFT_OUT)
    formats = (*QUESTION_FORMATS, *GRAPH_FORMATS)
    also = f"; those of {', '.join(GRAPH_FORMATS)} have a graph each"
    add_questions(questions, "--data", splits, formats, required=required, also=also)
    questions.add_argument(
        "--unanswerable",
        type=argument_types.positive_integer,
        metavar="N",
        help="add so many questions that the graph cannot answer",
    )
    questions.add_argument(
        "--topic",
        choices=("given", "linked"),
        default="given",
        help="tell the method the entities of a question where the data do (default), or let it find them",
    )
    method = parser.add_argument_group("what a method gets")
    add_embeddings(method)
    add_embedding_cache(method)
    add_k(method)
    add_model(method, MODEL_HELP)
    add_preset(method, "the retriever")
    add_field(method, FIELD_HELP, "max_distance=0.5", NAMED_BY_OPTIONS)
    method.add_argument(
        "--examples",
        metavar="FILE_OR_FOLDER",
        help=f"{examples_help()}, written as --data; what is measured is left out",
    )
    method.add_argument("--examples-split", metavar="NAME", help="the part of --examples to take (default: as --split)")
    method.add_argument(
        "--examples-limit",
        type=argument_types.positive_integer,
        metavar="N",
        help="at most so many of --examples of each number of hops, drawn by --seed",
    )
    add_llm(method)
    method.add_argument(
        "--answers",
        choices=("cited", "prompt", "verdict"),
        help="ask --llm for answers with citations (default), with the answer prompt of the method, or for the verdict "
        "on a claim, where what the evidence does not support is refuted",
    )
    add_database(method)
    add_workers(method, "ask")
    add_reading(parser, "--graph-format")


def add_table(parser: Parser) -> None:
    """Add the options for what the table shows."""
    parser.add_argument(
        "--by",
        choices=GROUPS,
        default=GROUPS[0],
        help=f"show the figures of questions alike in this below those of all (default: {GROUPS[0]})",
    )
    parser.add_argument(
        "--figure",
        action="append",
        default=[],
        metavar="NAME",
        help="show this figure of --json, too, as coverage or hits@10; repeatable",
    )
