"""Asks the cells of a table: reads the sets, trains the models that are missing, and evaluates."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import kg_retrievers as kg
from benchmarks.papers.baselines import BASELINES, JoinedRetriever
from benchmarks.papers.factkg import read_factkg
from benchmarks.papers.figures import Figure, statistics_of
from benchmarks.papers.graphqa import read_graphqa_explagraphs, read_graphqa_scene_graphs
from benchmarks.papers.tables import PROMPT, STATISTICS, Cell, Questions
from benchmarks.papers.worked_examples import with_answer_shots, with_verdict_shots
from kg_retrievers.chains import FactVerifier
from kg_retrievers.core.checkpoint import holds_model
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import GraphQuestion, join_graphs
from kg_retrievers.datasets.question_sets import draw_questions
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods import registry
from kg_retrievers.serving.loading import STATIC, load_embeddings, load_llm

#: The folders of the sets, and the file of the graph if all questions share one.
FOLDERS = {
    "metaqa": (("metaqa", "MetaQA"), "kb.txt"),
    "webqsp": (("webqsp", "RoG-webqsp"), ""),
    "cwq": (("cwq", "RoG-cwq"), ""),
    "explagraphs": (("explagraphs", "expla_graphs"), ""),
    "scene-graphs": (("scene-graphs", "scene_graphs"), ""),
    "factkg": (("factkg", "FactKG"), ""),
}

#: The sets that only the papers need, each with its reader of a folder and a split.
_OWN_READERS: dict[str, Any] = {
    "explagraphs": read_graphqa_explagraphs,
    "scene-graphs": read_graphqa_scene_graphs,
    "factkg": read_factkg,
}

#: The split that says when a training stops, if it is not called "validation".
_VALIDATION = {"metaqa": "dev", "factkg": "dev"}

#: The method whose paper trains on the states of a sentence model.
_READS_STATES = "gnn-rag"


class Bench:
    """Asks cells with the options of the command.

    Args:
        paper: The name of the paper, for the files of records.
        options: See `benchmarks.papers.__main__`.
    """

    def __init__(self, paper: str, options: Namespace) -> None:
        """Check the options."""
        self.options, self.home, self.paper = options, Path(options.records), paper
        self.models: dict[str, str] = dict(options.model)
        self._indexes: dict[str, kg.GraphIndex] = {}

    @cached_property
    def embeddings(self) -> Any:
        """The embeddings that `--embeddings` names."""
        return load_embeddings(self.options.embeddings or STATIC)

    @cached_property
    def llm(self) -> Any:
        """The language model that `--llm` names."""
        return load_llm(self.options.llm)

    def lacks(self, cell: Cell) -> str:
        """Return what a cell needs and is not there; nothing if all is there."""
        for format in dict.fromkeys([cell.questions.format, cell.learned]):
            if format and self.folder(format) is None:
                return f"needs the set {format} in {Path(self.options.data) / FOLDERS[format][0][0]}"
        training = cell.training
        if training is None or training["method"] != _READS_STATES or cell.model in self.models:
            return ""
        if (self.options.embeddings or "").startswith("local:"):
            return ""
        return "needs --embeddings local:MODEL, since the training reads the states of its tokens"

    def folder(self, format: str) -> Path | None:
        """Return the folder of a set, or None if it is not there."""
        names, graph = FOLDERS[format]
        places = [Path(self.options.data) / name for name in names]
        return next((place for place in places if place.is_dir() and (place / graph).exists()), None)

    def graph_file(self, format: str) -> Path | None:
        """Return the file of the graph that all questions of a set share."""
        folder, name = self.folder(format), FOLDERS[format][1]
        return folder / name if folder and name else None

    def questions(self, asked: Questions, limit: int | None) -> list[kg.Question]:
        """Read questions, at most `limit` of each number of hops."""
        hops = [asked.hops] if asked.hops else None
        data: Any = self.folder(asked.format)
        format: Any = asked.format
        seed = self.options.seed
        if format in _OWN_READERS:
            return draw_questions(_OWN_READERS[format](data, asked.split), limit, seed)
        return kg.read_question_set(data, format, split=asked.split, only_hops=hops, limit=limit, seed=seed)

    def index(self, format: str, questions: Sequence[kg.Question]) -> kg.GraphIndex:
        """Return the index of the graph that all questions share, or else of their own graphs as one."""
        path = self.graph_file(format)
        if path is None:
            return kg.GraphIndex.build(join_graphs(questions), self.embeddings, cache=self._cache)
        if format not in self._indexes:
            self._indexes[format] = kg.GraphIndex.build(
                kg.KnowledgeGraph.from_file(path), self.embeddings, cache=self._cache
            )
        return self._indexes[format]

    @property
    def _cache(self) -> Path:
        return self.home / _file_name(f"vectors-{self.options.embeddings or STATIC}.sqlite")

    def records(self, cell: Cell) -> Path:
        """Return the file that keeps a cell's measurements."""
        parts = [cell.name, self.options.limit, cell.uses_llm and self.options.llm, self.options.embeddings]
        return self.home / self.paper / _file_name(".".join(str(part) for part in parts if part) + ".jsonl")

    def report(self, cell: Cell) -> tuple[kg.Report, list[kg.Question]]:
        """Ask a cell; questions that an earlier run asked come from its records."""
        questions = self.questions(cell.questions, self.options.limit)
        examples = self._examples(cell, questions)
        index = self.index(cell.questions.format, examples or questions[:1])
        retriever = self.retriever(cell, index, examples, self.llm if cell.uses_llm else None)
        records = self.records(cell)
        records.parent.mkdir(parents=True, exist_ok=True)
        report = kg.evaluate(
            retriever,
            questions,
            answerer=self._answerer(cell, retriever, index, examples),
            method=cell.key,
            seed=self.options.seed,
            settings={"embeddings": self.options.embeddings or STATIC, "llm": self.options.llm, "cell": cell.name},
            records=records,
            embedding_cache=self._cache,
            progress=True,
        )
        return report, questions

    def retriever(
        self, cell: Cell, index: kg.GraphIndex, examples: Sequence[kg.Question] | None, llm: Any
    ) -> BaseKGRetriever:
        """Build the retriever of a cell, with the settings of the paper if the method has them; `+` joins methods."""
        names = cell.run["method"].split("+")
        built = []
        for name in names:
            method = find_method(name)
            kind = method.load_retriever()
            given: dict[str, Any] = dict(cell.run.get("fields", {})) if len(names) == 1 else {}
            answer = given.get("answer_prompt")
            if isinstance(answer, str) and answer not in kind.answer_prompts:
                raise InvalidArgumentError(f"{name} has no prompt {answer!r}.")
            if "paper" in kind.presets:
                given["preset"] = "paper"
            if method.trainer and cell.training and cell.training["method"] == name:
                given["model"] = self.trained(cell)
            built.append(kind.from_index(index, llm=llm, examples=examples, **given))
        return built[0] if len(built) == 1 else JoinedRetriever.of(*built)

    def trained(self, cell: Cell) -> Path:
        """Return the folder of a cell's model; train it first if it is not there."""
        training = cell.training
        assert training is not None, cell.name
        named = ".".join(filter(None, [cell.model, self.options.causal_lm, self.options.embeddings]))
        folder = Path(self.models.get(cell.model, self.home / "models" / _file_name(named)))
        if holds_model(folder):
            return folder
        if cell.model in self.models:
            raise InvalidArgumentError(f"--model {cell.model}={folder}: there is no model in this folder.")
        folder.parent.mkdir(parents=True, exist_ok=True)
        validation = _VALIDATION.get(cell.learned, "validation")
        learned = self.questions(
            Questions(cell.learned, self.options.train_split, cell.questions.hops), training.get("limit")
        )
        validating = self.questions(Questions(cell.learned, validation, cell.questions.hops), None)
        fields = training.get("fields", {})
        if training["method"] == PROMPT:
            parts = [self._prompt_examples(cell, part) for part in (learned, validating)]
            train = registry.GRAPH_PROMPT.load_trainer()
            train(self.options.causal_lm, self.embeddings, *parts, output=folder, progress=True, **fields)
            return folder
        train = find_method(training["method"]).load_trainer()
        index = self.index(cell.learned, learned[:1])
        train(
            index, learned, validating, output=folder, seed=self.options.seed, preset="paper", progress=True, **fields
        )
        return folder

    def statistics(self, cell: Cell) -> Mapping[str, Figure]:
        """Count a set."""
        path = self.graph_file(cell.questions.format)
        graph = None if path is None else kg.KnowledgeGraph.from_file(path)
        return statistics_of(self.questions(cell.questions, self.options.limit), graph, self.options.seed)

    def estimate(self, cells: Sequence[Cell]) -> tuple[int, int, int, int]:
        """Return how many questions are asked, and the calls and tokens by the sizes of the paper's prompts."""
        asked = calls = given = written = 0
        for cell in cells:
            if cell.run["method"] == STATISTICS:
                continue
            count = len(self.questions(cell.questions, self.options.limit))
            asked += count
            if cell.uses_llm:
                tokens = cell.run.get("tokens", (0, 0))
                calls += count * cell.run.get("calls", 0)
                given += count * tokens[0]
                written += count * tokens[1]
        return asked, calls, given, written

    def _examples(self, cell: Cell, questions: Sequence[kg.Question]) -> list[kg.Question] | None:
        """Return labelled questions of the split "train" that are not measured."""
        count = cell.run.get("examples")
        if not count:
            return None
        measured = {question.text.casefold() for question in questions}
        labelled = self.questions(cell.questions._replace(split=self.options.train_split), count)
        return [question for question in labelled if question.text.casefold() not in measured]

    def _answerer(
        self, cell: Cell, retriever: Any, index: kg.GraphIndex, examples: Sequence[kg.Question] | None
    ) -> Any:
        """Return what writes answers, or None."""
        if cell.is_prompt:
            model = registry.GRAPH_PROMPT.load_model()
            return model.from_pretrained(self.trained(cell), index.embeddings, self.options.causal_lm)
        if not cell.uses_llm:
            return None
        if cell.run["method"] == "none":
            return retriever.answerer(self.llm)
        claims, shots, prompt = cell.questions.format == "factkg", cell.run.get("answer_shots"), None
        if shots and examples:
            plain = self.retriever(cell, index, examples, None)
            prompt = (with_verdict_shots if claims else with_answer_shots)(plain, examples, shots=shots)
        if claims:
            return FactVerifier(self.llm, prompt=prompt, otherwise="refuted")
        return kg.llm_answerer(prompt or retriever.answer_prompt, self.llm)

    def _prompt_examples(self, cell: Cell, questions: Sequence[kg.Question]) -> list[Any]:
        """Return examples for a graph prompt: of each question's graph, or of what is retrieved from it."""
        made = []
        for question in questions:
            if not isinstance(question, GraphQuestion):
                raise InvalidArgumentError(f"{cell.name}: graph prompts learn from questions with their own graphs.")
            retriever = None
            if (cell.training or {}).get("evidence"):
                index = kg.GraphIndex.build(question.graph, self.embeddings, cache=self._cache)
                retriever = self.retriever(cell, index, None, None)
            made.append(kg.GraphPromptExample.of_graph(question, retriever))
        return made


def find_method(name: str) -> registry.Method:
    """Return a method of the registry or a baseline."""
    baselines = {method.name: method for method in BASELINES}
    return baselines[name] if name in baselines else registry.find_method(name)


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.@-]", "-", text)
