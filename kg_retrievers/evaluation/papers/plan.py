"""From a table to what is asked: each figure's cell, every cell once, and what is left out with the reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kg_retrievers.datasets.question_sets import QuestionFormat
from kg_retrievers.evaluation.papers.table import STATISTICS, Column, Questions, Row, Run, Table

#: What is trained on a causal language model, and answers from evidence.
PROMPT = "graph-prompt"

#: The set that "the other one" stands for.
_OTHER: dict[QuestionFormat, QuestionFormat] = {"webqsp": "cwq", "cwq": "webqsp"}


@dataclass(frozen=True)
class Cell:
    """A run over questions, which one or several figures of a table come from.

    Attributes:
        run: How they are asked, as it is for their set.
        questions: The questions.
        learned: The set that its model learned from; empty where it has none.
        reads: Whether a language model reads the evidence and writes an answer.
    """

    run: Run
    questions: Questions
    learned: QuestionFormat | Literal[""] = ""
    reads: bool = False

    @property
    def name(self) -> str:
        """Its name, as files are called: "subgraph-rag@webqsp.test"."""
        learned = f"-of-{self.learned}" if self.learned not in ("", self.questions.format) else ""
        return f"{self.run.name}{learned}@{self.questions.name}{'.llm' if self.uses_llm else ''}"

    @property
    def model(self) -> str:
        """The name of its trained model, as "subgraph-rag.webqsp"; empty where it has none."""
        return f"{self.run.training.name}.{self.learned}" if self.run.training else ""

    @property
    def formats(self) -> tuple[str, ...]:
        """The set that is asked, and that its model learned from."""
        return tuple(dict.fromkeys(filter(None, (self.questions.format, self.learned))))

    @property
    def is_tuned(self) -> bool:
        """Whether its model is trained on a causal language model."""
        return self.run.training is not None and self.run.training.method == PROMPT

    @property
    def uses_llm(self) -> bool:
        """Whether it calls a language model, a graph prompt's aside."""
        return self.reads and self.run.llm != "none"


@dataclass(frozen=True)
class Plan:
    """What is asked for a table.

    Attributes:
        table: The table.
        cells: By the positions of row and column.
        left_out: Why other figures are not asked, by the name of their row or column.
    """

    table: Table
    cells: Mapping[tuple[int, int], Cell]
    left_out: Mapping[str, str]

    @property
    def distinct(self) -> tuple[Cell, ...]:
        """The cells, each once."""
        return tuple(dict.fromkeys(self.cells.values()))

    def without(self, missing: Mapping[Cell, Mapping[str, str]]) -> Plan:
        """Return the plan without the cells whose questions are missing, each with the reasons by the set."""
        kept = {at: cell for at, cell in self.cells.items() if not missing.get(cell)}
        left_out = dict(self.left_out)
        for reasons in missing.values():
            left_out.update(reasons)
        return replace(self, cells=kept, left_out=left_out)


def plan_table(
    table: Table, *, llm: bool = False, causal_lm: bool = False, models: Collection[str] = (), split: str | None = None
) -> Plan:
    """Return what is asked for a table.

    Args:
        table: The table.
        llm: Whether a language model is given.
        causal_lm: Whether one is given that graph prompts are trained on.
        models: The names of trained models that are given.
        split: The part that is asked in place of the paper's.

    Example:
        >>> from kg_retrievers.evaluation.papers import find_paper
        >>> plan = plan_table(find_paper("simgrag").table("1"))
        >>> [cell.name for cell in plan.distinct][0], plan.left_out["KAPING"]
        ('simgrag@metaqa-1-hop.test', 'needs a language model: --llm PROVIDER:MODEL')
    """
    cells: dict[tuple[int, int], Cell] = {}
    left_out: dict[str, str] = {}
    for at, row in enumerate(table.rows):
        if row.run is None:
            left_out[row.name] = row.why
            continue
        for column_at, column in enumerate(table.columns):
            cell = _cell(row.run, column, llm, split)
            if cell is None:
                left_out.setdefault(f"{row.name}, {column.name}", row.why)
            elif lacking := _lacking(row, column, cell, llm, causal_lm, models):
                left_out.setdefault(row.name if _needs_llm(row, cell) or cell.model else column.name, lacking)
            elif metric_of(row, column, cell):
                cells[at, column_at] = cell
    return Plan(table, cells, left_out)


def metric_of(row: Row, column: Column, cell: Cell) -> str | None:
    """Return our metric for a figure: of the written answer where there is one."""
    return row.metric or (column.text_metric if cell.reads and column.text_metric else column.metric)


def _cell(run: Run, column: Column, llm: bool, split: str | None) -> Cell | None:
    format = column.questions.format
    own = run.on(format)
    if own is None:
        return None
    learned: QuestionFormat | Literal[""] = ""
    if own.training:
        learned = column.learned or (_OTHER[format] if own.learned == "other" else format)
    has_prompt = own.training is not None and own.training.method == PROMPT
    reads = has_prompt or (llm and own.llm != "none" and own.method != STATISTICS)
    questions = replace(column.questions, split=split) if split else column.questions
    return Cell(own, questions, learned, reads)


def _lacking(row: Row, column: Column, cell: Cell, llm: bool, causal_lm: bool, models: Collection[str]) -> str:
    """Return what a figure needs and is not given; nothing where all is there."""
    if cell.is_tuned and not causal_lm and cell.model not in models:
        return f"needs a causal language model: --causal-lm NAME_OR_FOLDER, or --model {cell.model}=FOLDER"
    if llm or cell.run.llm == "none":
        return ""
    is_written = metric_of(row, column, cell) is None and column.text_metric
    return "needs a language model: --llm PROVIDER:MODEL" if _needs_llm(row, cell) or is_written else ""


def _needs_llm(row: Row, cell: Cell) -> bool:
    return row.needs_llm or cell.run.llm == "needed"
