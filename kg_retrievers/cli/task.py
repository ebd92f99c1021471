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
from typing import TYPE_CHECKING, Any

import kg_retrievers
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.graph_prompt import make_answerer
from kg_retrievers.cli.load import (
    AND,
    CYPHER,
    GRAPH_PROMPT,
    RETRIEVERS,
    UNION,
    TrainedModel,
    build_retriever,
    make_llm,
    method_class,
    method_names,
    read_index,
    share_examples,
)
from kg_retrievers.cli.show import compilation_told, remark, working
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError

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
class Task:
    """Questions over a graph, and what a method may be given to answer them; a graph prompt, and what answers by it."""

    index: GraphIndex
    questions: Sequence[Question]
    examples: Sequence[Question] | None
    llm: BaseChatModel | None
    models: Mapping[str, TrainedModel]
    prompt: TrainedModel | None
    answerer: Runnable[Any, list[str]] | None
    database: QueryDatabase
    settings: dict[str, Any]

    @property
    def sources(self) -> list[str]:
        """Those of `SOURCES` that there are."""
        given = {"plain": True, "examples": self.examples is not None, "llm": self.llm is not None}
        return [source for source in SOURCES if given[source]]


@dataclass(frozen=True)
class Method:
    """A retriever that was built, and with what; `models` by the names of their methods, a graph prompt included."""

    name: str
    retriever: BaseKGRetriever
    llm: BaseChatModel | None
    examples: Sequence[Question] | None
    models: Mapping[str, TrainedModel]
    answerer: Runnable[Any, list[str]] | None

    @property
    def answering(self) -> Runnable[Any, Any] | None:
        """What the answers hang on: a graph prompt, or else the language model."""
        return self.answerer or self.llm


def make_task(options: argparse.Namespace, models: Mapping[str, TrainedModel], prompt: TrainedModel | None) -> Task:
    """Read what the options name, but for the trained models."""
    data = {"format": options.format, "only_hops": options.hops}
    drawn = {"limit": options.limit, "seed": options.seed}
    split = options.split or ("dev" if options.format == "metaqa" else None)
    with working(f"reading {options.data}"):
        questions = kg_retrievers.read_question_set(options.data, split=split, **data, **drawn)
        examples, dropped = _examples(options, questions, split, data)
    llm = make_llm(options.llm)
    index = read_index(options)
    lost = [one for one in questions if one.answers and not any(key in index.graph.entities for key in one.answers)]
    if lost:
        remark(
            f"the graph holds no gold answer of {len(lost)} of {len(questions)} questions, as of {lost[0].text!r:.200}"
        )
    if options.unanswerable:
        with working("making unanswerable questions"):
            questions += kg_retrievers.unanswerable_questions(
                questions, index.graph, options.unanswerable, seed=options.seed
            )
    return Task(
        index=index,
        questions=questions,
        examples=examples,
        llm=llm,
        models=models,
        prompt=prompt,
        answerer=make_answerer(prompt, index) if prompt else None,
        database=QueryDatabase(options, index.graph),
        settings={
            "graph": options.graph,
            "data": options.data,
            "format": options.format,
            "split": split,
            "hops": options.hops,
            "limit": options.limit,
            "unanswerable": options.unanswerable,
            "llm": options.llm,
            "field": dict(options.field),
            "examples": None
            if examples is None
            else {
                "data": options.examples,
                "split": options.examples_split or split,
                "given": len(examples),
                "dropped": dropped,
                "digest": _digest(examples),
            },
        },
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


def build_method(method: str, task: Task, options: argparse.Namespace) -> Method:
    """Build a method, or several and their union, each with what it can use of what is given."""
    joined, _, source = method.partition(":")
    if source and source not in task.sources:
        option = {"examples": "--examples", "llm": "--llm"}[source]
        raise InvalidArgumentError(f"the method {method!r} needs {option}.")
    llm = task.llm if source in ("", "llm") else None
    examples = task.examples if source in ("", "examples") else None
    fields = dict(options.field) | ({} if options.k is None else {"k": options.k})
    if fields and options.command == "compare":  # a field of one of the methods is not one of all
        kinds = [getattr(kg_retrievers, kind) for kind in (*RETRIEVERS.values(), UNION)]
        others = {field for kind in kinds for field in kind.model_fields}
        if left := sorted(fields.keys() & others - set(method_class(method).model_fields)):
            remark(f"{joined} has no field {', '.join(left)}; it goes without")
            fields = {field: value for field, value in fields.items() if field not in left}
    shared = share_examples(method, examples, llm)
    models = {name: task.models[name] for name in method_names(method) if name in task.models}
    given: dict[str, Any] = {"llm": llm, "examples": shared, "models": models, "database": task.database}
    retriever = build_retriever(method, task.index, fields, **given)
    if task.prompt:
        models[GRAPH_PROMPT] = task.prompt
    return Method(method, retriever, llm, examples if shared else None, models, task.answerer)


def run_method(method: Method, task: Task, options: argparse.Namespace, records: str | Path | None) -> Report:
    """Ask a method all questions."""
    used = {
        "llm": method.llm and task.settings["llm"],
        "examples": method.examples and task.settings["examples"],
        "model": _weights(method),
        "database": task.database.where if CYPHER in method_names(method.name) else None,
    }
    begun = records and Path(records).is_file()
    try:
        with compilation_told():
            report = kg_retrievers.evaluate(
                method.retriever,
                task.questions,
                answerer=method.answerer or (method.llm and kg_retrievers.LLMCitedAnswerer(method.llm)),
                topic=options.topic,
                method=method.name,
                seed=options.seed,
                settings=task.settings | used,
                records=records,
                progress=sys.stderr.isatty(),
            )
    except BaseException as error:
        if records and not isinstance(error, KGRetrieversError):
            remark(f"what was measured is in {records}; the same command goes on from there")
        raise
    if begun:
        remark(f"what was measured before was taken from {records}")
    return report


def _weights(method: Method) -> str | dict[str, str] | None:
    """Return what tells the trained models apart, wherever they lie: of several, by the names of their methods."""
    weights = {name: model.weights for name, model in method.models.items()}
    several = AND in method.name or GRAPH_PROMPT in weights
    return (weights if several else weights[method.name.partition(":")[0]]) if weights else None


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
