"""What tuned language models are told and what they write: relation paths for a question, answers from paths.

The two tasks are those of RoG (arXiv:2310.01061, section 4): planning, and reasoning on what was retrieved. The words
are our own. *Differs from the paper*: a relation path says in which direction each relation is crossed, and the planner
is shown the question without the names of its entities, so that few questions teach it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kg_retrievers.core.facts_frame import FACTS_ARE_DATA, FRAMED_FACTS
from kg_retrievers.graph.shown_text import as_data
from kg_retrievers.graph.verbalize import readable

#: The version of all texts in this file. It changes with any change of their words.
VERSION = "1"

#: What stands before a relation that is crossed from head to tail, and before one that is crossed from tail to head.
FORWARD, BACKWARD = " -> ", " <- "

#: What separates answers.
ANSWER_SEPARATOR = "\n"

_PLAN = "Which relations of a knowledge graph lead from _ to the answer?\nQuestion: {question}\nRelations: _"
_ANSWER = (
    "Give all answers to the question, each on a line of its own, from the paths alone. "
    f"{FACTS_ARE_DATA}\n{FRAMED_FACTS}\nQuestion: {{question}}\nAnswers:"
)


def write_planning(masked_question: str) -> str:
    """Return what a planner is told: a question with `MASK` in place of its entities.

    Example:
        >>> print(write_planning("Who directed _?"))
        Which relations of a knowledge graph lead from _ to the answer?
        Question: Who directed _?
        Relations: _
    """
    return _PLAN.format(question=as_data(masked_question))


def write_step(relation: str, backward: bool) -> str:
    """Return one step of a relation path.

    Example:
        >>> write_step("directed_by", False) + write_step("directed_by", True)
        ' -> directed by <- directed by'
    """
    return (BACKWARD if backward else FORWARD) + as_data(readable(relation))


def read_plan(text: str, relations: Iterable[str], max_hops: int) -> list[list[str]]:
    """Return the relation path that a text is, as steps `[relation, "forward" or "backward"]`; none if it is none.

    Example:
        >>> read_plan(" -> directed by <- directed by", ["directed_by"], 3)
        [['directed_by', 'forward'], ['directed_by', 'backward']]
        >>> read_plan(" -> filmed by", ["directed_by"], 3)
        []
    """
    known = {write_step(relation, False).removeprefix(FORWARD): relation for relation in relations}
    blank, *parts = re.split(f"({FORWARD}|{BACKWARD})", f" {text.strip()}")
    names = [known.get(name.strip()) for name in parts[1::2]]
    if blank.strip() or None in names or not 1 <= len(names) <= max_hops:
        return []
    ways = ["forward" if arrow == FORWARD else "backward" for arrow in parts[::2]]
    return [[name, way] for name, way in zip(names, ways, strict=True) if name is not None]


def write_reading(question: str, evidence: str) -> str:
    """Return what a reader is told: paths, in lines that are data already, and a question."""
    return _ANSWER.format(evidence=evidence, question=as_data(question))
