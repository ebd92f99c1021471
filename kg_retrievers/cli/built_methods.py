"""The methods that `evaluate` and `compare` measure: chosen by name, built from what is given, and asked."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import kg_retrievers
from kg_retrievers.cli.load import share_examples
from kg_retrievers.cli.measurement import SOURCES, Measurement
from kg_retrievers.cli.own_graphs import (
    all_have_graphs,
)
from kg_retrievers.cli.show import announce_compilation, note, on_terminal, status
from kg_retrievers.cli.workers import open_workers
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, did_you_mean
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT, Method
from kg_retrievers.serving.loading import SavedModel, build_retriever

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.prompts import BasePromptTemplate
    from langchain_core.runnables import Runnable

    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.datasets import Question
    from kg_retrievers.evaluation import Report

#: The fields that `--field` refuses: other options set them, or a shell cannot write their values.
NAMED_BY_OPTIONS = ("index", "llm", "examples", "model", "k", "retrievers", "executor", "preset")


@dataclass(frozen=True)
class MethodChoice:
    """A method, or several whose evidence is fused, and the one of `SOURCES` that it gets; by default all of them."""

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
class BuiltMethod:
    """A retriever, and the objects that it was built from.

    Attributes:
        choice: The method and its source.
        retriever: The retriever.
        llm: The language model that it got.
        examples: The labelled questions that it got.
        models: Its trained models by the names of their methods, with a graph prompt.
        answerer: Answers from evidence with the graph prompt.
        prompt: Asks for the answer or the verdict with worked examples of the user's; None where it has ours.
    """

    choice: MethodChoice
    retriever: BaseKGRetriever
    llm: BaseChatModel | None
    examples: Sequence[Question] | None
    models: Mapping[str, SavedModel]
    answerer: Runnable[Any, list[str]] | None
    prompt: BasePromptTemplate[Any] | None

    @property
    def answers_by(self) -> Runnable[Any, Any] | None:
        """The graph prompt, or else the language model, which answers from the evidence."""
        return self.answerer or self.llm

    def make_answerer(self, answers: str) -> Runnable[Any, Any] | None:
        """Return what answers from the evidence; None where nothing does.

        Args:
            answers: "cited" for answers with citations, "prompt" for those to the answer prompt of the method,
                "verdict" for whether a claim holds.
        """
        from kg_retrievers.chains import FactVerifier  # not at the front door

        if self.llm is None or self.answerer:
            return self.answerer
        if answers == "verdict":
            return FactVerifier(self.llm, prompt=self.prompt, otherwise="refuted")
        if answers == "cited":
            return kg_retrievers.LLMCitedAnswerer(self.llm)
        prompt = self.prompt or self.retriever.answer_prompt
        return kg_retrievers.llm_answerer(prompt, self.llm)


def build_method(choice: MethodChoice, measurement: Measurement, options: argparse.Namespace) -> BuiltMethod:
    """Build a method, or the union of several, each from the sources that it can use."""
    if choice.source and choice.source not in measurement.sources:
        raise InvalidArgumentError(f"the method {choice.name!r} needs --{choice.source}.")
    llm = measurement.llm if choice.source in ("", "llm") else None
    examples = measurement.examples if choice.source in ("", "examples") else None
    shared = share_examples(choice.methods, examples)
    models = {
        method.name: measurement.models[method.name] for method in choice.methods if method.name in measurement.models
    }
    build = partial(
        build_retriever,
        choice.methods,
        measurement.index,
        _fields_of(choice, options),
        examples=shared,
        models=models,
        executor=None if all_have_graphs(measurement.questions) else lambda: measurement.database.executor,
        preset=_preset_of(choice, options),
    )
    retriever = build(llm=llm)
    prompt = _with_shots(build(), measurement, options) if options.answer_shots else None
    if measurement.prompt:
        models[GRAPH_PROMPT.name] = measurement.prompt
    return BuiltMethod(choice, retriever, llm, examples if shared else None, models, measurement.answerer, prompt)


def _with_shots(
    retriever: BaseKGRetriever, measurement: Measurement, options: argparse.Namespace
) -> BasePromptTemplate[Any]:
    """Return the prompt with worked examples, whose evidence a retriever finds that calls no language model.

    So the prompt is the same each time, and a run that was broken off goes on.
    """
    from kg_retrievers.chains import with_answer_shots, with_verdict_shots  # not at the front door

    if measurement.examples is None or measurement.llm is None or options.answers in (None, "cited"):
        raise InvalidArgumentError(
            "--answer-shots shows --examples to --llm, in the prompt of --answers prompt or of --answers verdict: give "
            "these, too."
        )
    write = with_verdict_shots if options.answers == "verdict" else with_answer_shots
    with status("finding the evidence of the worked examples"):
        return write(retriever, measurement.examples, shots=options.answer_shots)


def _fields_of(choice: MethodChoice, options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields to set; `compare` drops those that other methods have and this one lacks."""
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


def _preset_of(choice: MethodChoice, options: argparse.Namespace) -> str | None:
    """Return the preset to take; `compare` takes none for what lacks it."""
    preset: str | None = options.preset
    if preset is None or options.command != "compare":
        return preset
    lacking = [method.name for method in choice.methods if preset not in method.load_retriever().presets]
    if lacking:
        note(f"{', '.join(lacking)} has no preset {preset}; {choice.name} goes without")
    return None if lacking else preset


def run_method(
    built: BuiltMethod, measurement: Measurement, options: argparse.Namespace, records: str | Path | None
) -> Report:
    """Ask a method all questions."""
    runs_queries = any(method.runs_queries for method in built.choice.methods)
    used = {
        "llm": built.llm and measurement.settings["llm"],
        "examples": built.examples and measurement.settings["examples"],
        "model": _weights(built),
        "database": measurement.database.where if runs_queries else None,
    }
    begun = records and Path(records).is_file()
    try:
        with announce_compilation(), warnings.catch_warnings(), open_workers(options.workers) as workers:
            warnings.filterwarnings("ignore", "evaluate: the graph holds no gold answer")  # told when the data was read
            report = kg_retrievers.evaluate(
                built.retriever,
                measurement.questions,
                answerer=built.make_answerer(options.answers or "cited"),
                topic=options.topic,
                method=built.choice.name,
                seed=options.seed,
                settings=measurement.settings | used,
                records=records,
                embedding_cache=options.embedding_cache,
                progress=on_terminal(),
                workers=workers,
            )
    except BaseException as error:
        if records and Path(records).is_file() and not isinstance(error, KGRetrieversError):
            note(f"what was measured is in {records}; the same command goes on from there")
        raise
    if begun:
        note(f"what was measured before was taken from {records}")
    return report


def _weights(built: BuiltMethod) -> str | dict[str, str] | None:
    """Return the digest of the trained model, which does not depend on its folder; several by method."""
    weights = {name: model.weights for name, model in built.models.items()}
    if not weights:
        return None
    several = len(built.choice.methods) > 1 or GRAPH_PROMPT.name in weights
    return weights if several else weights[built.choice.methods[0].name]
