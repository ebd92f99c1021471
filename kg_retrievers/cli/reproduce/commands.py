"""The commands of this package that a table is made of: one that indexes, some that train, one `evaluate` a cell."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kg_retrievers.cli.reproduce.data import DataSet
from kg_retrievers.evaluation.papers.plan import PROMPT, Cell
from kg_retrievers.evaluation.papers.table import Questions
from kg_retrievers.methods import registry
from kg_retrievers.serving.loading import STATIC

#: The preset of a method's paper.
PRESET = "paper"

#: What the split is called that says when a training stops.
_VALIDATION = {"metaqa": "dev", "factkg": "dev"}

#: The methods whose paper's training reads the states of a sentence model, and what then has to be named.
READS_STATES = ("gnn-rag",)
_SENTENCE_MODEL = "local:"

#: The sets of claims, of which a verdict is asked.
CLAIMS = ("factkg",)

#: Fields that have an option of their own.
_OPTIONS_OF_FIELDS = {"k": "--k", "setting": "--setting"}


@dataclass(frozen=True)
class Commands:
    """Writes the commands for the cells of a table.

    Attributes:
        options: The options of `reproduce`.
        sets: The sets that were found, by format.
        home: The folder that keeps records, those of each paper in a folder, and models and indexes.
        models: The folders of trained models that are given, by name.
    """

    options: argparse.Namespace
    sets: Mapping[str, DataSet]
    home: Path
    models: Mapping[str, str]

    def parts(self, cell: Cell) -> list[Questions]:
        """Return the questions that a cell needs: those asked, its examples, and what its model learns from."""
        parts = [cell.questions]
        if cell.run.examples:
            parts.append(replace(cell.questions, split=self._examples_split))
        if cell.learned and cell.model not in self.models:
            hops = cell.questions.hops
            splits = ("train", _VALIDATION.get(cell.learned, "validation"))
            parts += [Questions(cell.learned, split, hops) for split in splits]
        return parts

    def lacks(self, cell: Cell) -> str:
        """Return which embeddings the training of a cell's model needs; nothing where it has them."""
        training, embeddings = cell.run.training, self.options.embeddings or STATIC
        if training is None or training.method not in READS_STATES or cell.model in self.models:
            return ""
        if embeddings.startswith(_SENTENCE_MODEL):
            return ""
        return f"needs --embeddings {_SENTENCE_MODEL}MODEL, since the training reads the states of its tokens"

    def records(self, cell: Cell) -> Path:
        """Return the file that keeps what is measured."""
        parts = [cell.name]
        if self.options.limit:
            parts.append(f"{self.options.limit}")
        if cell.uses_llm:
            parts.append(self.options.llm)
        parts += self._made_with(cell)
        return self.home / str(self.options.paper) / f"{_file_name('.'.join(parts))}.jsonl"

    def model(self, cell: Cell) -> Path:
        """Return the folder of a cell's trained model, one for each language model and embeddings."""
        name = ".".join([cell.model, *self._made_with(cell)])
        return Path(self.models.get(cell.model, self.home / "models" / _file_name(name)))

    def graph(self, format: str) -> Path | None:
        """Return the index of the graph that all questions of a set are about, if there is one."""
        name = f"{format}-{self.options.embeddings or STATIC}"
        return self.home / "indexes" / _file_name(name) if self.sets[format].graph else None

    def index(self, format: str) -> list[str]:
        """Return the command that makes this index."""
        return ["index", str(self.sets[format].graph), "--output", str(self.graph(format)), *self._embeddings]

    def evaluate(self, cell: Cell) -> list[str]:
        """Return the command that asks a cell."""
        words = ["evaluate", *self._graph(cell.questions.format), *self._questions(cell), "--method", cell.run.method]
        if has_preset(cell.run.method):
            words += ["--preset", PRESET]
        words += _fields(cell.run.fields)
        if cell.run.examples:
            words += ["--examples", self._data(cell.questions.format), "--examples-split", self._examples_split]
            words += ["--examples-limit", str(cell.run.examples)]
        if cell.model:
            words += ["--model", str(self.model(cell))]
        if cell.uses_llm:
            answers = "verdict" if cell.questions.format in CLAIMS else "prompt"
            words += ["--llm", self.options.llm, "--answers", answers]
            words += ["--answer-shots", str(cell.run.answer_shots)] if cell.run.answer_shots else []
        words += self._database(cell)
        return [*words, *self._embeddings, "--records", str(self.records(cell))]

    def train(self, cell: Cell) -> list[str]:
        """Return the command that trains a cell's model."""
        training, format = cell.run.training, cell.learned
        assert training is not None, cell.name
        data = self._data(format)
        words = ["train", training.method, *self._graph(format), "--questions", data, "--format", format]
        words += ["--split", "train", "--validation", data, "--validation-split", _VALIDATION.get(format, "validation")]
        if cell.questions.hops:
            words += ["--hops", str(cell.questions.hops)]
        if training.limit:
            words += ["--limit", str(training.limit)]
        words += ["--seed", str(self.options.seed), *_fields(training.fields), *self._embeddings]
        if training.method == PROMPT:
            words += ["--llm", self.options.causal_lm]
        if training.method != PROMPT:
            words += ["--preset", PRESET]
        elif training.evidence:
            words += ["--method", training.evidence, *_fields(cell.run.fields)]
        return [*words, "--output", str(self.model(cell))]

    def _made_with(self, cell: Cell) -> list[str]:
        """Return the causal language model and the embeddings that are named, for the name of a file."""
        causal_lm = [Path(self.options.causal_lm).name] if cell.is_tuned and self.options.causal_lm else []
        return [*causal_lm, *([self.options.embeddings] if self.options.embeddings else [])]

    def _graph(self, format: str) -> list[str]:
        """Return the options for the graph of all questions, or for the vectors of the names in those of each."""
        index = self.graph(format)
        if index is not None:
            return ["--graph", str(index)]
        return ["--embedding-cache", str(self.home / _file_name(f"vectors-{self.options.embeddings or STATIC}"))]

    def _database(self, cell: Cell) -> list[str]:
        """Return the option for the database of the graph of all questions, if the method asks one."""
        runs_queries = any(method.runs_queries for method in registry.find_methods(cell.run.method))
        if not runs_queries or not self.sets[cell.questions.format].graph:
            return []
        return ["--database", str(self.home / "databases" / f"{cell.questions.format}.lbug")]

    def _data(self, format: str) -> str:
        return str(self.sets[format].folder)

    def _questions(self, cell: Cell) -> list[str]:
        asked = cell.questions
        words = ["--data", self._data(asked.format), "--format", asked.format, "--split", asked.split]
        words += ["--hops", str(asked.hops)] if asked.hops else []
        words += ["--limit", str(self.options.limit)] if self.options.limit else []
        return [*words, "--seed", str(self.options.seed)]

    @property
    def _examples_split(self) -> str:
        return self.options.examples_split or "train"

    @property
    def _embeddings(self) -> list[str]:
        return ["--embeddings", self.options.embeddings] if self.options.embeddings else []


def has_preset(method: str) -> bool:
    """Whether all methods of a run have the preset of their papers."""
    return all(PRESET in one.load_retriever().presets for one in registry.find_methods(method))


def _fields(fields: Mapping[str, Any]) -> list[str]:
    """Return the options that set fields."""
    words: list[str] = []
    for name, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value)
        words += [_OPTIONS_OF_FIELDS[name], text] if name in _OPTIONS_OF_FIELDS else ["--field", f"{name}={text}"]
    return words


def _file_name(text: str) -> str:
    """Return a text that any file may be called."""
    return re.sub(r"[^\w.@-]", "-", text)
