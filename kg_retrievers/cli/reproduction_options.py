"""The options of the command `reproduce`."""

from __future__ import annotations

from kg_retrievers.cli import argument_types
from kg_retrievers.cli.parser import Parser
from kg_retrievers.cli.shared_options import add_embeddings, add_json_file

#: Where records, models and indexes are kept by default.
RECORDS = "reproduced"


def add_reproduction(reproduce: Parser) -> None:
    """Add what is asked, of what, and with which models."""
    reproduce.add_argument(
        "paper", nargs="?", metavar="PAPER", help="the method of the paper; without --table, its tables"
    )
    reproduce.add_argument("--table", metavar="N", help="the number of the table, as 1; of a figure, as figure-3")
    reproduce.add_argument("--dry-run", action="store_true", help="check the data, and tell what is asked and its cost")
    questions = reproduce.add_argument_group("what is asked")
    questions.add_argument(
        "--data",
        metavar="DIR",
        help="the folder of the question sets, each in a folder of its own, as metaqa, or of one",
    )
    questions.add_argument("--split", metavar="NAME", help="the part to ask (default: the paper's)")
    questions.add_argument(
        "--limit", type=argument_types.positive_integer, metavar="N", help="at most so many of each number of hops"
    )
    questions.add_argument(
        "--seed", type=argument_types.natural_number, default=0, metavar="N", help="of all that is drawn (default: 0)"
    )
    methods = reproduce.add_argument_group("what the methods get")
    add_embeddings(methods)
    methods.add_argument(
        "--examples-split", metavar="NAME", help="the part that labelled questions are from (default: train)"
    )
    methods.add_argument(
        "--llm",
        metavar="PROVIDER:MODEL",
        help="a language model for the rows that have one, as in openai:gpt-4.1-mini; without it, methods answer "
        "without one where they can, and the other rows are left out",
    )
    methods.add_argument(
        "--causal-lm",
        metavar="NAME_OR_FOLDER",
        help="a causal language model of Hugging Face, to train graph prompts and the planner of RoG on",
    )
    methods.add_argument(
        "--model",
        type=argument_types.named_folder,
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="a trained model, by its name in the plan (default: it is trained first); repeatable",
    )
    methods.add_argument(
        "--prices",
        metavar="FILE",
        help='the prices of a million tokens as JSON, {"gpt-4.1-mini": {"input": 0.4, "output": 1.6}}',
    )
    reproduce.add_argument(
        "--records",
        type=argument_types.file,
        default=RECORDS,
        metavar="FOLDER",
        help=f"keep what is measured, and trained; if there, go on (default: {RECORDS})",
    )
    add_json_file(reproduce, "the figures")
