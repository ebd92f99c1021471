"""ExplaGraphs: two arguments, a small graph of common sense between them, and whether they support each other.

Saha, Yadav, Bauer, Bansal: ExplaGraphs: An Explanation Graph Generation Task for Structured Commonsense Reasoning.
EMNLP 2021. arXiv:2104.07644. Data: https://explagraphs.github.io (MIT)
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from kg_retrievers.datasets.graph_question import GraphQuestion
from kg_retrievers.datasets.types import read_lines
from kg_retrievers.errors import QuestionsLoadError
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph

#: The labels, which are the answers.
LABELS = ("support", "counter")

#: What is asked, in the words of the paper (figure 2).
ASKED = (
    "Question: Do argument 1 and argument 2 support or counter each other? "
    "Answer in one word in the form of 'support' or 'counter'."
)

_HEADER = ["arg1", "arg2", "label", "graph"]
_TRIPLE = re.compile(r"\s*\(([^;()]*);([^;()]*);([^;()]*)\)\s*")


def read_explagraphs(path: str | Path) -> list[GraphQuestion]:
    """Read a published file, such as `train.tsv`, or G-Retriever's `train_dev.tsv`, which has a header.

    A row is `argument<TAB>argument<TAB>label<TAB>(head; relation; tail)(head; relation; tail)`. The text is the two
    arguments and what is asked, the answer "support" or "counter", `id` the number of the row from 0. Entities are the
    names as they are written.

    Differs from G-Retriever's code: its text ends in "Answer:", which is left to the prompt.

    Args:
        path: The file, in UTF-8.

    Raises:
        QuestionsLoadError: If the file cannot be read or holds no row, or a row is malformed; names the line.
    """
    rows = []
    for line, text in read_lines(path):
        try:
            rows.append((line, next(csv.reader([text], delimiter="\t"))))
        except csv.Error as error:
            raise QuestionsLoadError(
                f"wanted cells between tabs, but they cannot be read: {error}.", path, line
            ) from error
    if rows[0][1] == _HEADER:
        del rows[0]
    if not rows:
        raise QuestionsLoadError("wanted rows below the header, but there is none.", path)
    questions = []
    for number, (line, cells) in enumerate(rows):
        triples = _triples(cells[3]) if len(cells) == 4 and cells[0].strip() and cells[1].strip() else []
        if not triples or cells[2] not in LABELS:
            raise QuestionsLoadError(
                "wanted 'argument<TAB>argument<TAB>support or counter<TAB>(head; relation; tail)(head; relation; "
                f"tail)', but got {cells!r:.300}.",
                path,
                line,
            )
        questions.append(
            GraphQuestion(
                f"Argument 1: {cells[0]}\nArgument 2: {cells[1]}\n{ASKED}",
                answers=(cells[2],),
                graph=KnowledgeGraph.from_triples(triples),
                id=str(number),
                in_words=True,
            )
        )
    return questions


def _triples(text: str) -> list[tuple[str, ...]]:
    """Return the triples of a text that holds nothing else; else none."""
    triples = [tuple(map(str.strip, row)) for row in _TRIPLE.findall(text)]
    return [] if _TRIPLE.sub("", text) or not all(map(all, triples)) else triples
