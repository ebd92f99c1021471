"""What `evaluate` and `compare` measure: questions over a graph, and what methods may get."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import kg_retrievers
from kg_retrievers.cli.connection import is_connected
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.graph_prompt import make_answerer
from kg_retrievers.cli.load import read_index
from kg_retrievers.cli.own_graphs import (
    GRAPH_FORMATS,
    check_no_graph_options,
    first_index,
    graphs_file,
)
from kg_retrievers.cli.show import note, status
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.loading import SavedModel, load_llm

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from kg_retrievers.datasets import Question
    from kg_retrievers.index import GraphIndex

#: The sources that may follow the name of a method; without one, it gets all sources that are given.
SOURCES = ("plain", "examples", "llm")


@dataclass(frozen=True)
class Measurement:
    """Questions over a graph, and the objects that methods are built from.

    Attributes:
        index: The indexed graph.
        questions: The questions with known answers.
        examples: The labelled questions, if some are given.
        llm: The language model, if one is given.
        models: The trained models of methods, by the names of these.
        prompt: The graph prompt, if one is given.
        answerer: Answers from evidence with the graph prompt.
        database: The database for queries.
        settings: The settings that records keep.
    """

    index: GraphIndex
    questions: Sequence[Question]
    examples: Sequence[Question] | None
    llm: BaseChatModel | None
    models: Mapping[str, SavedModel]
    prompt: SavedModel | None
    answerer: Runnable[Any, list[str]] | None
    database: QueryDatabase
    settings: dict[str, Any]

    @property
    def sources(self) -> list[str]:
        """The sources of `SOURCES` that are given."""
        given = {"plain": True, "examples": self.examples is not None, "llm": self.llm is not None}
        return [source for source in SOURCES if given[source]]


def read_measurement(
    options: argparse.Namespace, models: Mapping[str, SavedModel], prompt: SavedModel | None
) -> Measurement:
    """Read the files and load the language model that the options name; the trained models were read before."""
    from kg_retrievers.evaluation.evaluate import describe_lost_answers

    if options.answers and options.llm is None:
        raise InvalidArgumentError(
            "--answers says how --llm is asked. Name a language model, too: --llm provider:model, or leave it out."
        )
    own = options.format in GRAPH_FORMATS
    if own:
        check_no_graph_options(options)
    data = {"format": options.format, "only_hops": options.hops, **graphs_file(options)}
    drawn = {"limit": options.limit, "seed": options.seed}
    split = options.split or ("dev" if options.format == "metaqa" else None)
    with status(f"reading {options.data}"):
        questions = kg_retrievers.read_question_set(options.data, split=split, **data, **drawn)
        examples, dropped = _examples(options, questions, split, data)
    with status("loading the language model"):
        llm = load_llm(options.llm)
    index = first_index(options, questions, examples) if own or options.graph is None else read_index(options)
    if lost := describe_lost_answers(index, questions):
        note(lost)
    if options.unanswerable:
        if index.is_connected:
            raise InvalidArgumentError(
                "--unanswerable is for a graph that is read, but this one stays in its database. Leave it out."
            )
        with status("making unanswerable questions"):
            questions += kg_retrievers.unanswerable_questions(
                questions, index.graph, options.unanswerable, seed=options.seed
            )
    return Measurement(
        index=index,
        questions=questions,
        examples=examples,
        llm=llm,
        models=models,
        prompt=prompt,
        answerer=make_answerer(prompt, index) if prompt else None,
        database=QueryDatabase(options, index),
        settings=_settings(options, split, examples, dropped),
    )


def _settings(
    options: argparse.Namespace, split: str | None, examples: Sequence[Question] | None, dropped: int
) -> dict[str, Any]:
    """Return the settings that records keep."""
    settings = {
        "graph": options.graph,
        "data": options.data,
        "format": options.format,
        "split": split,
        "hops": options.hops,
        "limit": options.limit,
        "unanswerable": options.unanswerable,
        "llm": options.llm,
        "field": dict(options.field),
        "examples": None,
    }
    if options.preset:
        settings["preset"] = options.preset
    if is_connected(options):
        settings |= {"vectors": options.vectors, "max_facts": options.max_facts}
    if examples is not None:
        settings["examples"] = {
            "data": options.examples,
            "split": options.examples_split or split,
            "given": len(examples),
            "dropped": dropped,
            "digest": _digest(examples),
        }
    return settings


def _examples(
    options: argparse.Namespace, questions: Sequence[Question], split: str | None, data: dict[str, Any]
) -> tuple[list[Question] | None, int]:
    """Return the labelled questions without the measured ones, and how many were dropped."""
    if options.examples is None:
        if options.examples_split or options.examples_limit:
            flag = "--examples-split" if options.examples_split else "--examples-limit"
            raise InvalidArgumentError(f"{flag} says which part of --examples to take; give that, too.")
        return None, 0
    drawn = {"limit": options.examples_limit, "seed": options.seed}
    labelled = kg_retrievers.read_question_set(options.examples, split=options.examples_split or split, **data, **drawn)
    measured = {_folded(question.text) for question in questions}
    kept = [question for question in labelled if _folded(question.text) not in measured]
    if not kept:
        raise InvalidArgumentError(
            f"all of the {len(labelled)} examples are among the questions that are measured. Measure fewer with "
            "--limit, or name other examples: --examples-split."
        )
    return kept, len(labelled) - len(kept)


def _digest(questions: Sequence[Question]) -> str:
    """Return 32 hexadecimal digits that change with the questions."""
    rows = json.dumps([question.to_dict() for question in questions])
    return blake2b(rows.encode(), digest_size=16).hexdigest()


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
