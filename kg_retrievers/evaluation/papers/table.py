"""What a published table is: its columns, its rows, and how each row is asked here; names alone, no method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kg_retrievers.datasets.question_sets import QuestionFormat
from kg_retrievers.errors import InvalidArgumentError, did_you_mean

#: How a language model stands behind a row: the paper has none; ours is asked without one, too; or nothing is asked.
UseOfLLM = Literal["none", "optional", "needed"]

#: How much of a table is asked here.
State = Literal["whole", "in part", "not"]

#: What is counted in the data themselves, and asked of no method.
STATISTICS = "statistics"


#: The `prompting` of G-Retriever whose replies list what supports the answer, for the figures of `grounding_of`.
SUPPORT = "support"


@dataclass(frozen=True)
class Questions:
    """The questions behind a column.

    Attributes:
        format: The name of the set, as `read_question_set` takes it.
        split: The part of it.
        hops: How many facts its questions join; None for all.
    """

    format: QuestionFormat
    split: str = "test"
    hops: int | None = None

    @property
    def name(self) -> str:
        """The set, its hops and its part, as the files of records have them."""
        hops = f"-{self.hops}-hop" if self.hops else ""
        return f"{self.format}{hops}.{self.split}"


@dataclass(frozen=True)
class Group:
    """Some of the questions: those with `low` to `high` of what `by` counts, or without `high` all from `low` on."""

    by: Literal["hops", "answers", "entities"]
    low: int
    high: int | None = None

    def holds(self, count: int | None) -> bool:
        """Tell whether a question with so many is one of them."""
        return count is not None and self.low <= count and (self.high is None or count <= self.high)


@dataclass(frozen=True)
class Column:
    """A column of figures.

    Attributes:
        name: The head, as the paper has it.
        questions: What is asked.
        metric: Our metric of the evidence or of the answers by key; None where only a written answer has this figure.
        text_metric: Our metric of written answers; None where the paper's figure is none of these.
        unit: What the paper prints for 1 of ours, such as 100 for percent.
        group: Which of the questions count; None for all.
        learned: The set that trained models learned from; empty for the one that is asked.
    """

    name: str
    questions: Questions
    metric: str | None
    text_metric: str | None = None
    unit: float = 1.0
    group: Group | None = None
    learned: QuestionFormat | Literal[""] = ""


@dataclass(frozen=True)
class Training:
    """A model that a row needs. It learns from the split `train` of a set, and the split `dev` says when to stop.

    Attributes:
        method: The name of what is trained.
        label: Which of the models of the method it is; empty for that of the paper.
        fields: Settings beside those of the preset "paper".
        evidence: The method whose evidence a graph prompt learns from; empty for all of a question's graph.
        limit: How many questions it learns from; None for all.
    """

    method: str
    label: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    evidence: str = ""
    limit: int | None = None

    @property
    def name(self) -> str:
        """The method and which of its models it is, such as "subgraph-rag-mlp"."""
        return f"{self.method}-{self.label}" if self.label else self.method


@dataclass(frozen=True)
class Run:
    """How a row is asked.

    Attributes:
        method: The name of the method, of several joined by "+", or `STATISTICS`.
        label: Which of the runs of the method it is; empty for that of the paper.
        fields: Fields beside those of the preset "paper".
        of_set: What is otherwise for one set, by its format: attributes of this class; None where it is not asked.
        examples: How many labelled questions of the split `train` the method gets; 0 for none.
        answer_shots: How many of these the prompt for the answer shows, where a language model reads; 0 for none.
        training: What trains its model; None where it has none.
        learned: The set that its model learned from; empty for the one that is asked, "other" for WebQSP and CWQ
            crossed.
        llm: How a language model stands behind it.
        calls: How many calls of a language model a question takes in the paper.
        tokens: How many tokens a question's prompts and replies have, about.
    """

    method: str
    label: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    of_set: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict, hash=False)
    examples: int = 0
    answer_shots: int = 0
    training: Training | None = None
    learned: str = ""
    llm: UseOfLLM = "none"
    calls: int = 0
    tokens: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """The method and which of its runs it is, as the files of records have them."""
        return f"{self.method}-{self.label}" if self.label else self.method

    def on(self, format: str) -> Run | None:
        """Return the run as it is for one set; None where it is not asked."""
        own = self.of_set.get(format, {})
        return None if own is None else replace(self, **{"of_set": {}, **own})


@dataclass(frozen=True)
class Row:
    """A row of figures.

    Attributes:
        name: The method, as the paper has it.
        run: How it is asked here; None where it is not.
        figures: The paper's figures, one a column; None where it has none.
        why: Why it is not asked, or what differs in asking it.
        metric: Our metric, where rows have figures of different kinds; empty for that of the column.
        needs_llm: Whether it says nothing without a language model, though its run can be asked without one.
    """

    name: str
    run: Run | None
    figures: tuple[float | None, ...]
    why: str = ""
    metric: str = ""
    needs_llm: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a paper, or a figure with numbers.

    Attributes:
        number: Its number, as "3"; of a figure "figure-3".
        caption: What it shows, in our words.
        columns: The columns.
        rows: The rows.
        why: Why it is not asked as a whole; beside what the rows say.
        llm: The language model of the paper.
    """

    number: str
    caption: str
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    why: str = ""
    llm: str = ""

    @property
    def state(self) -> State:
        """How much of it is asked here, given the paper's language model and text encoder."""
        if all(row.run is None for row in self.rows):
            return "not"
        return "in part" if self.reasons else "whole"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not asked as a whole: of the table, then of its rows, each reason once."""
        return tuple(dict.fromkeys(filter(None, (self.why, *(row.why for row in self.rows)))))


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper and its tables.

    Attributes:
        name: The name of its method, as the shell takes it.
        title: How it is called.
        embeddings: The text encoder of the paper.
        llm: The language model that most of its tables have.
        tables: All of its tables, and the figures with numbers.
    """

    name: str
    title: str
    embeddings: str
    llm: str
    tables: tuple[Table, ...]

    def table(self, number: str) -> Table:
        """Return a table by its number.

        Raises:
            InvalidArgumentError: If there is none.
        """
        tables = {table.number: table for table in self.tables}
        if number not in tables:
            near = did_you_mean(number, tables) or f"there are {', '.join(tables)}."
            raise InvalidArgumentError(f"{self.title} has no table {number!r}; {near}")
        return tables[number]


#: Why rows of other systems are not asked.
OTHERS = "a system of others, which is none of this package's methods"

#: Why tables without figures are not asked.
SHOWN = "it shows examples or texts, and no figures"
