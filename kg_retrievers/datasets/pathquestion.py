"""PathQuestion: questions with their gold path through a part of Freebase.

Zhou, Huang, Zhu: An Interpretable Reasoning Network for Multi-Relation Question Answering. COLING 2018.
arXiv:1801.04726. Data: https://github.com/zmtkeke/IRN
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from kg_retrievers.datasets.types import Question, read_lines
from kg_retrievers.errors import QuestionsLoadError
from kg_retrievers.graph import Known, Pattern, Term, Triple, Unknown

#: A published row: `question<TAB>answer(answer/answer/)<TAB>a#relation#b#relation#c#<end>#c`.
_ROW = re.compile(r"([^\t]+)\t[^\t(]+\(([^\t/][^\t]*)\)\t([^\t]+)#<end>#[^\t#]+")


def read_pathquestion(path: str | Path) -> list[Question]:
    """Read a published file of questions, such as `PQ-2H.txt`.

    Names keep their underscores, as in the graph. `triples` is the gold path, which leads to one of the answers.
    `pattern` is the path with all but its first entity unknown, and finds all of them. `kind` is the relation path. The
    gold answers come from plain walks, which may revisit an entity.

    Args:
        path: The file, in UTF-8.

    Raises:
        QuestionsLoadError: If the file cannot be read, or a row is malformed; names the line.
    """
    questions = []
    for line, text in read_lines(path):
        row = _ROW.fullmatch(text)
        walk = row[3].split("#") if row else []
        if row is None or len(walk) % 2 == 0 or len(walk) < 3 or "" in walk:
            raise QuestionsLoadError(
                f"wanted 'question<TAB>answer(answer/answer/)<TAB>a#relation#b#<end>#b', but got {text!r:.200}.",
                path,
                line,
            )
        entities, relations = walk[::2], walk[1::2]
        unknowns = [f"entity {position}" for position in range(1, len(entities))]
        nodes: list[Term] = [Known(entities[0]), *map(Unknown, unknowns)]
        steps = [(a, r, b) for (a, b), r in zip(pairwise(nodes), relations, strict=True)]
        questions.append(
            Question(
                text=row[1],
                seed_entities=(entities[0],),
                answers=tuple(dict.fromkeys(filter(None, row[2].split("/")))),
                pattern=Pattern.of(*steps, target=unknowns[-1]),
                triples=tuple(Triple(a, r, b) for (a, b), r in zip(pairwise(entities), relations, strict=True)),
                kind=" -> ".join(relations),
            )
        )
    return questions
