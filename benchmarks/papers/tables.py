"""The published tables, read from `tables/*.json`, and the plan of a table: which run gives which figure.

A paper has runs and tables. A run says how a row is asked: the method, its fields beside those of the preset "paper",
the labelled questions (`examples`, of which the prompt shows `answer_shots`), the training of its model, and whether a
language model reads the evidence (`llm`: "none", "optional" or "needed"). `of_set` changes a run for one question set.
A column says what is asked (`set`, `split`, `hops`) and what is measured (`metric` of the evidence, `text_metric` of
written answers). A row without a run is not asked, and `why` gives the reason.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from kg_retrievers.errors import InvalidArgumentError

#: The method of a run that counts the data.
STATISTICS = "statistics"

#: What is trained on a causal language model and answers from evidence.
PROMPT = "graph-prompt"

_FOLDER = Path(__file__).parent / "tables"

#: The set on which a run "of the other set" learned.
_OTHER = {"webqsp": "cwq", "cwq": "webqsp"}


class Questions(NamedTuple):
    """Some questions of a set."""

    format: str
    split: str = "test"
    hops: int | None = None

    @property
    def name(self) -> str:
        """The set, the hops and the split."""
        return f"{self.format}{f'-{self.hops}-hop' if self.hops else ''}.{self.split}"


@dataclass(frozen=True)
class Cell:
    """A run over some questions; equal cells are asked once.

    Attributes:
        key: The name of the run in the file, and the settings that differ for its set.
        run: The run as it is for this set.
        questions: The questions.
        learned: The set on which its model learned; empty without a model.
        reads: Whether a language model reads the evidence.
    """

    key: str
    run: Mapping[str, Any] = field(compare=False)
    questions: Questions
    learned: str
    reads: bool

    @property
    def name(self) -> str:
        """A name for files."""
        learned = f"-of-{self.learned}" if self.learned not in ("", self.questions.format) else ""
        return f"{self.key.replace('/', '-')}{learned}@{self.questions.name}{'.llm' if self.uses_llm else ''}"

    @property
    def training(self) -> Mapping[str, Any] | None:
        """What trains its model."""
        found: Mapping[str, Any] | None = self.run.get("training")
        return found

    @property
    def model(self) -> str:
        """The name of its model, such as "subgraph-rag-mlp.webqsp"; empty without one."""
        if self.training is None:
            return ""
        label = self.training.get("label", "")
        return f"{self.training['method']}{f'-{label}' if label else ''}.{self.learned}"

    @property
    def is_prompt(self) -> bool:
        """Whether a graph prompt answers."""
        return self.training is not None and self.training["method"] == PROMPT

    @property
    def uses_llm(self) -> bool:
        """Whether `--llm` is called."""
        return self.reads and self.run.get("llm", "none") != "none"


class Plan(NamedTuple):
    """What is asked for a table: a cell and a metric per figure, by row and column, and why others are left out."""

    cells: dict[tuple[int, int], tuple[Cell, str]]
    left_out: dict[str, str]

    @property
    def distinct(self) -> list[Cell]:
        """The cells, each once."""
        return list(dict.fromkeys(cell for cell, _ in self.cells.values()))


def paper_names() -> list[str]:
    """Return the names of the papers."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def read_paper(name: str) -> dict[str, Any]:
    """Read a paper.

    Raises:
        InvalidArgumentError: If there is no such paper.
    """
    if name not in paper_names():
        raise InvalidArgumentError(f"there is no paper {name!r}. Wanted one of {', '.join(paper_names())}.")
    paper: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return paper


def find_table(paper: Mapping[str, Any], number: str) -> dict[str, Any]:
    """Return a table of a paper.

    Raises:
        InvalidArgumentError: If there is no such table.
    """
    tables: dict[str, dict[str, Any]] = {table["number"]: table for table in paper["tables"]}
    if number not in tables:
        raise InvalidArgumentError(f"{paper['title']} has no table {number!r}. Wanted one of {', '.join(tables)}.")
    return tables[number]


def state(table: Mapping[str, Any]) -> str:
    """Return how much of a table is asked: "whole", "in part" or "not"."""
    if not any("run" in row for row in table.get("rows", ())):
        return "not"
    return "in part" if reasons(table) else "whole"


def reasons(table: Mapping[str, Any]) -> list[str]:
    """Return why a table is not asked as a whole, each reason once."""
    parts = [table, *table.get("rows", ()), *table.get("columns", ())]
    return list(dict.fromkeys(part["why"] for part in parts if "why" in part))


def plan_table(
    paper: Mapping[str, Any],
    table: Mapping[str, Any],
    *,
    llm: bool = False,
    causal_lm: bool = False,
    models: Collection[str] = (),
    split: str | None = None,
) -> Plan:
    """Return the plan of a table.

    Args:
        paper: The paper.
        table: Its table.
        llm: Whether a language model is given.
        causal_lm: Whether one is given for graph prompts.
        models: The names of trained models that are given.
        split: The split to ask in place of the paper's.
    """
    plan = Plan({}, {})
    for at, row in enumerate(table.get("rows", ())):
        if "run" not in row:
            plan.left_out[row["name"]] = row.get("why", "not asked")
            continue
        for column_at, column in enumerate(table["columns"]):
            cell = _cell(paper, row["run"], column, llm, split)
            if cell is None:
                plan.left_out[f"{row['name']}, {column['name']}"] = row.get("why", "not asked on this set")
                continue
            metric = row.get("metric") or (cell.reads and column.get("text_metric")) or column.get("metric")
            needed = _needs(row, cell, llm, causal_lm, models)
            if not needed and metric is None:
                needed = column.get("why") or "needs a language model: --llm PROVIDER:MODEL"
            if needed:
                plan.left_out.setdefault(row["name"] if metric else column["name"], needed)
            else:
                plan.cells[at, column_at] = cell, metric
    return plan


def _cell(paper: Mapping[str, Any], key: str, column: Mapping[str, Any], llm: bool, split: str | None) -> Cell | None:
    run: dict[str, Any] = dict(paper["runs"][key])
    format = column["set"]
    changes = run.pop("of_set", {}).get(format, {})
    if changes is None:
        return None
    run |= changes
    learned = ""
    if "training" in run:
        learned = column.get("learned") or (_OTHER[format] if run.get("learned") == "other" else format)
    prompt = "training" in run and run["training"]["method"] == PROMPT
    reads = prompt or (llm and run.get("llm", "none") != "none")
    asked = Questions(format, split or column.get("split", "test"), column.get("hops"))
    return Cell(key, run, asked, learned, reads)


def _needs(row: Mapping[str, Any], cell: Cell, llm: bool, causal_lm: bool, models: Collection[str]) -> str:
    """Return what a row needs and is not given; nothing if all is given."""
    if cell.is_prompt and not causal_lm and cell.model not in models:
        return f"needs a causal language model: --causal-lm NAME_OR_FOLDER, or --model {cell.model}=FOLDER"
    if not llm and (row.get("needs_llm") or cell.run.get("llm") == "needed"):
        return "needs a language model: --llm PROVIDER:MODEL"
    return ""
