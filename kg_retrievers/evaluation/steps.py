"""At which step a wrong question failed: SimGRAG's error analysis, made by rules.

Cai et al., "SimGRAG: Leveraging Similar Subgraphs for Knowledge Graphs Driven Retrieval-Augmented Generation", Findings
of ACL 2025, arXiv:2412.15272: section 6.4, table 2 and appendix D. The paper's three steps are "pattern", "search" and
"answer" here; "linking" comes before them in the methods that begin at the entities of a question.

*Differs*: the authors read each error themselves. Here rules look at a record and blame the first step that went wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from langchain_core.callbacks import BaseCallbackHandler

from kg_retrievers.core.stages import STAGE_EVENT
from kg_retrievers.errors import (
    EntityLinkingError,
    LowConfidenceError,
    ModelCallError,
    PatternError,
    QuerySafetyError,
    ReplyError,
)
from kg_retrievers.evaluation.records import Record, Step

#: The steps, in their order.
STEPS: tuple[Step, ...] = get_args(Step)

# The errors of a retriever that say that it failed to find out what to look for.
_OF_PATTERN = (LowConfidenceError, PatternError, QuerySafetyError, ReplyError, ModelCallError)


class StageTrace(BaseCallbackHandler):
    """Keeps what the stages of a retriever found on their way.

    Attributes:
        linked: The keys of the entities that were linked; None where no stage links, or they were given.
        pattern: The first pattern that was generated, as a dictionary; else None.
        step: The step that the last error names; None where it names none, or there was no error.
    """

    run_inline = True

    def __init__(self) -> None:
        """Start with nothing."""
        self.linked: list[str] | None = None
        self.pattern: dict[str, Any] | None = None
        self.step: Step | None = None

    def on_retriever_error(self, error: BaseException, **_: object) -> None:
        """Keep the step that an error names; those of the parts of a union come before its own."""
        self.step = step_of(error)

    def on_custom_event(self, name: str, data: Mapping[str, object], **_: object) -> None:
        """Keep the entities and the pattern of a stage."""
        if name != STAGE_EVENT:
            return
        linked, pattern = data.get("seed_entities"), data.get("pattern")
        if isinstance(linked, list):
            self.linked = list(dict.fromkeys([*(self.linked or []), *linked]))
        if isinstance(pattern, dict) and self.pattern is None:
            self.pattern = pattern


def step_of(error: BaseException) -> Step | None:
    """Return the step that an error or refusal of a retriever names; None where what was found has to tell.

    Example:
        >>> step_of(EntityLinkingError("no entity was found"))
        'linking'
    """
    if isinstance(error, EntityLinkingError):
        return "linking"
    return "pattern" if isinstance(error, _OF_PATTERN) else None


def failed_step(record: Record, proposes_answers: bool = True) -> Step | None:
    """Return the step at which a question failed; None where it was answered right.

    - What an error or refusal names: no entity found is "linking", a question that was not understood surely enough, or
      a reply that says no pattern, query or relation paths, is "pattern"; an error of the answerer is "answer".
    - "answer": the retriever proposed a gold answer, and the answerer did not write it.
    - "linking": a seed entity of the question was not linked, where a stage links.
    - "search": the evidence holds no gold answer; or there is evidence for an unanswerable question, and no answerer.
    - "answer": the evidence holds one, or an answerer has to conclude what no entity of the graph says, and what is
      written, or else proposed, is wrong.
    """
    if not is_failure(record, proposes_answers):
        return None
    if record["step"]:
        return record["step"]
    metrics = record["metrics"]
    if record["error"] is None and (metrics.get("hit") == 1 or metrics.get("exact_value") == 1):
        return "answer"
    if record["linked"] is not None and not set(record["seed_entities"] or ()).issubset(record["linked"]):
        return "linking"
    if not record["answerable"]:
        return "search" if record["prediction"] is None else "answer"
    can_hold = record["gold_in_graph"] is not False or record["prediction"] is None
    is_held = metrics.get("answer_recall") or metrics.get("label_in_evidence")
    return "search" if (can_hold and not is_held) or not (record["triples"] or record["nodes"]) else "answer"


def count_steps(records: Sequence[Record], proposes_answers: bool = True) -> dict[Step, int]:
    """Return how many questions failed at each step."""
    failed = [failed_step(record, proposes_answers) for record in records]
    return {step: failed.count(step) for step in STEPS}


def is_failure(record: Record, proposes_answers: bool = True) -> bool:
    """Whether a question was not answered right: by what was written, else by what was proposed or the evidence."""
    if not record["answerable"]:
        return not record["refused"]
    if record["error"] is not None:
        return True
    written = record["metrics"].get("text_hit")
    if written is not None:
        return written == 0
    found = record["metrics"]["hit" if proposes_answers else "answer_recall"]
    return found == 0 or record["metrics"].get("exact_value") == 0
