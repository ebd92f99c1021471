"""What `evaluate` and `compare` share: questions over a graph, and a run of one method over them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from os import W_OK, access
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import kg_retrievers
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.graph_prompt import make_answerer
from kg_retrievers.cli.load import load_llm, read_index, share_examples
from kg_retrievers.cli.show import announce_compilation, note, status
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, did_you_mean
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT, Method
from kg_retrievers.serving.loading import SavedModel, build_retriever

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.datasets import Question
    from kg_retrievers.evaluation import Report
    from kg_retrievers.index import GraphIndex

#: What may stand behind the name of a method: what it is given. Without it, all that there is.
SOURCES = ("plain", "examples", "llm")

#: What `--field` does not set: other options do, or nothing that a shell can write.
NAMED_BY_OPTIONS = ("index", "llm", "examples", "model", "k", "retrievers", "executor")


@dataclass(frozen=True)
class Choice:
    """The method that is asked, or several of which the evidence is fused, and which of `SOURCES` it gets, if named."""

    methods: tuple[Method, ...]
    source: str = ""

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a name such as "simgrag+g-retriever:examples".

        Raises:
            InvalidArgumentError: If there is no such method or source.
        """
        names, colon, source = text.partition(":")
        if colon and source not in SOURCES:
            wanted = " or ".join(f":{name}" for name in SOURCES)
            near = did_you_mean(source, SOURCES) or f"wanted {wanted}."
            raise InvalidArgumentError(f"a method is not given {source!r}, as in {text!r}; {near}")
        return cls(registry.find_methods(names), source)

    @property
    def name(self) -> str:
        """The name, as reports have it."""
        names = registry.joined_names(self.methods)
        return f"{names}:{self.source}" if self.source else names


@dataclass(frozen=True)
class Task:
    """Questions over a graph, and what a method may be given to answer them; a graph prompt, and what answers by it."""

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
        """Those of `SOURCES` that there are."""
        given = {"plain": True, "examples": self.examples is not None, "llm": self.llm is not None}
        return [source for source in SOURCES if given[source]]


@dataclass(frozen=True)
class Contestant:
    """A retriever that was built, and with what; `models` by the names of their methods, a graph prompt included."""

    choice: Choice
    retriever: BaseKGRetriever
    llm: BaseChatModel | None
    examples: Sequence[Question] | None
    models: Mapping[str, SavedModel]
    answerer: Runnable[Any, list[str]] | None

    @property
    def answers_by(self) -> Runnable[Any, Any] | None:
        """What answers from the evidence: a graph prompt, or else the language model."""
        return self.answerer or self.llm


def make_task(options: argparse.Namespace, models: Mapping[str, SavedModel], prompt: SavedModel | None) -> Task:
    """Read what the options name, but for the trained models."""
    data = {"format": options.format, "only_hops": options.hops}
    drawn = {"limit": options.limit, "seed": options.seed}
    split = options.split or ("dev" if options.format == "metaqa" else None)
    with status(f"reading {options.data}"):
        questions = kg_retrievers.read_question_set(options.data, split=split, **data, **drawn)
        examples, dropped = _examples(options, questions, split, data)
    llm = load_llm(options.llm)
    index = read_index(options)
    _note_lost_answers(questions, index)
    if options.unanswerable:
        with status("making unanswerable questions"):
            questions += kg_retrievers.unanswerable_questions(
                questions, index.graph, options.unanswerable, seed=options.seed
            )
    settings = {name: getattr(options, name) for name in ("graph", "data", "format")}
    settings |= {"split": split, "hops": options.hops, "limit": options.limit, "unanswerable": options.unanswerable}
    settings |= {"llm": options.llm, "field": dict(options.field)}
    settings["examples"] = examples and {
        "data": options.examples,
        "split": options.examples_split or split,
        "given": len(examples),
        "dropped": dropped,
        "digest": _digest(examples),
    }
    return Task(
        index=index,
        questions=questions,
        examples=examples,
        llm=llm,
        models=models,
        prompt=prompt,
        answerer=make_answerer(prompt, index) if prompt else None,
        database=QueryDatabase(options, index.graph),
        settings=settings,
    )


def _note_lost_answers(questions: Sequence[Question], index: GraphIndex) -> None:
    """Note how many questions have answers of which the graph holds none."""
    lost = [one for one in questions if one.answers and not any(key in index.graph.entities for key in one.answers)]
    if lost:
        note(
            f"the graph holds no gold answer of {len(lost)} of {len(questions)} questions, as of {lost[0].text!r:.200}"
        )


def _examples(
    options: argparse.Namespace, questions: Sequence[Question], split: str | None, data: dict[str, Any]
) -> tuple[list[Question] | None, int]:
    """Return the labelled questions but those that are measured, and how many of these there were."""
    if options.examples is None:
        if options.examples_split:
            raise InvalidArgumentError("--examples-split says which part of --examples to take; give that, too.")
        return None, 0
    labelled = kg_retrievers.read_question_set(options.examples, split=options.examples_split or split, **data)
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


def build_method(choice: Choice, task: Task, options: argparse.Namespace) -> Contestant:
    """Build a method, or several and their union, each with what it can use of what is given."""
    if choice.source and choice.source not in task.sources:
        raise InvalidArgumentError(f"the method {choice.name!r} needs --{choice.source}.")
    llm = task.llm if choice.source in ("", "llm") else None
    examples = task.examples if choice.source in ("", "examples") else None
    shared = share_examples(choice.methods, examples, llm)
    models = {method.name: task.models[method.name] for method in choice.methods if method.name in task.models}
    retriever = build_retriever(
        choice.methods,
        task.index,
        _fields_of(choice, options),
        llm=llm,
        examples=shared,
        models=models,
        executor=lambda: task.database.executor,
    )
    if task.prompt:
        models[GRAPH_PROMPT.name] = task.prompt
    return Contestant(choice, retriever, llm, examples if shared else None, models, task.answerer)


def _fields_of(choice: Choice, options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields that are set; in a comparison, without those that other methods have and this one lacks."""
    fields = dict(options.field)
    if options.k is not None:
        fields["k"] = options.k
    if not fields or options.command != "compare":
        return fields
    of_others: set[str] = set()
    for method in (*registry.METHODS, registry.UNION):
        of_others |= method.load_retriever().model_fields.keys()
    own = registry.retriever_class(choice.methods).model_fields
    if missing := sorted(fields.keys() & of_others - own.keys()):
        note(f"{registry.joined_names(choice.methods)} has no field {', '.join(missing)}; it goes without")
    return {name: value for name, value in fields.items() if name not in missing}


def run_method(contestant: Contestant, task: Task, options: argparse.Namespace, records: str | Path | None) -> Report:
    """Ask a method all questions."""
    runs_queries = any(method.runs_queries for method in contestant.choice.methods)
    used = {
        "llm": contestant.llm and task.settings["llm"],
        "examples": contestant.examples and task.settings["examples"],
        "model": _weights(contestant),
        "database": task.database.where if runs_queries else None,
    }
    begun = records and Path(records).is_file()
    try:
        with announce_compilation():
            report = kg_retrievers.evaluate(
                contestant.retriever,
                task.questions,
                answerer=contestant.answerer or (contestant.llm and kg_retrievers.LLMCitedAnswerer(contestant.llm)),
                topic=options.topic,
                method=contestant.choice.name,
                seed=options.seed,
                settings=task.settings | used,
                records=records,
                progress=sys.stderr.isatty(),
            )
    except BaseException as error:
        if records and not isinstance(error, KGRetrieversError):
            note(f"what was measured is in {records}; the same command goes on from there")
        raise
    if begun:
        note(f"what was measured before was taken from {records}")
    return report


def _weights(contestant: Contestant) -> str | dict[str, str] | None:
    """Return what tells the trained models apart, wherever they lie: of several, by the names of their methods."""
    weights = {name: model.weights for name, model in contestant.models.items()}
    if not weights:
        return None
    several = len(contestant.choice.methods) > 1 or GRAPH_PROMPT.name in weights
    return weights if several else weights[contestant.choice.methods[0].name]


def check_output(path: str | None) -> None:
    """Check before the work begins that a file can be written after it."""
    if path is not None and path != "-":
        folder = Path(path).parent
        if not folder.is_dir() or not access(folder, W_OK) or Path(path).is_dir():
            raise InvalidArgumentError(f"{path} cannot be written: wanted a file name in a folder that is there.")


def write_output(path: str, text: str) -> None:
    """Write to a file, or to stdout if it is called "-"."""
    if path == "-":
        print(text, flush=True)
    else:
        Path(path).write_text(text + "\n", "utf-8")
