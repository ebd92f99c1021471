"""Build the nodes of workflows.

They are stages of retrievers, whole retrievers, and the steps from evidence to a checked answer.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.runnables import Runnable
from langgraph.config import get_stream_writer
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from kg_retrievers.agents.refusals import Reason, read_reason, summarize_reasons
from kg_retrievers.agents.state import NOTHING, Budget, cost_of, total
from kg_retrievers.chains.cited_answer import (
    CitedAnswer,
    ExtractiveCitedAnswerer,
    answer_unread,
    check_answer,
    check_draft,
    no_answer,
)
from kg_retrievers.chains.evidence import AnswerInput, ShownEvidence, show_evidence
from kg_retrievers.core.cost import Cost, CostCounter
from kg_retrievers.core.documents import documents_answers, whole_documents, why_unsure
from kg_retrievers.core.replies import NO_ANSWER, drop_model_advice, refusal_of
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable, Stage
from kg_retrievers.errors import BudgetError, NoEvidenceError, RefusalError, ReplyError
from kg_retrievers.graph.verbalize import as_data
from kg_retrievers.index import PartRequest
from kg_retrievers.questions.follow_up import FollowUpReader, with_turn

State = Mapping[str, Any]

#: The body of a node: from the state and the counter of its model calls to the keys it writes.
Work = Callable[[State, CostCounter], Body[dict[str, Any]]]

#: How many failed attempts are remembered, so that later attempts know their cost.
FAILURES_KEPT = 1000

#: Stands for the answer if a budget ended the run before there was evidence.
STOPPED = "The run was stopped before it found an answer."

#: Takes back an earlier refusal.
NOT_REFUSED = {"reason": None, "refusal": None}

#: How often the answerer is asked where citations fail.
ATTEMPTS = 2


class BudgetedNode(GeneratorRunnable[State, dict[str, Any]]):
    """Run work within a budget and record its cost.

    The node sends its output to streams in custom mode.
    """

    def __init__(self, name: str, work: Work, budget: Budget) -> None:
        """Take the name, the work and the budget of the whole run."""
        self.name, self.work, self.budget = name, work, budget
        self._failed: OrderedDict[str, tuple[Cost, float]] = OrderedDict()  # what failed attempts cost, and since when

    def body(self, input: State) -> Body[dict[str, Any]]:
        """Run the work, or report that the budget is used up."""
        state = {key: value for key, value in input.items() if value is not None}
        state["question"] = state.get("asked_as", state["question"])
        info = get_runtime().execution_info
        task = info.task_id if info else ""
        began, counter = time.perf_counter(), CostCounter()
        earlier, first = self._failed.get(task, (NOTHING, began))
        if info and info.node_attempt > 1:  # with the pauses between the attempts
            earlier = Cost(**{**earlier, "seconds": began - first})
        else:
            first = began
        try:
            until_now = total([cost_of(state), earlier])
            counter = self.budget.counter(until_now)
            with self.budget.deadline(until_now):
                update = yield from self.work(state, counter)
        except BudgetError as error:
            update = {"stopped": str(error)}
        except Exception:
            self._failed[task] = total([earlier, counter.cost(time.perf_counter() - began)]), first
            if len(self._failed) > FAILURES_KEPT:
                self._failed.popitem(last=False)
            raise
        self._failed.pop(task, None)
        shown = {key: value for key, value in update.items() if key != "documents"}
        get_stream_writer()({"node": self.name, **shown})
        cost = total([earlier, counter.cost(time.perf_counter() - began)])
        return {**update, "spending": [{**cost, "node": self.name, "run": state["run"]}]}


def prepare(retriever: BaseKGRetriever, keys: Sequence[str], optional: Sequence[str], state: State) -> dict[str, Any]:
    """Check the inputs.

    It clears the values that an earlier question left on the thread.
    """
    given = {key: state[key] for key in optional if state.get(key) is not None}
    fresh = retriever.initial_state(state.get("question"), **given)  # type: ignore[arg-type]
    cleared: dict[str, Any] = dict.fromkeys(keys)
    return cleared | fresh | {"given": given, "spending": Overwrite([]), "run": uuid4().hex, "attempts": 0}


def understand(reader: FollowUpReader, state: State, counter: CostCounter) -> Body[dict[str, Any]]:
    """Rewrite a follow-up so that it stands alone.

    It is not rewritten if the caller gives the entities.
    """
    if "seed_entities" in state:
        return {"asked_as": state["question"]}
    given = {"question": state["question"], "turns": state.get("turns")}
    try:
        asked_as = yield Call(reader.with_config(callbacks=[counter]), given)
    except RefusalError as error:
        return {"reason": as_data(str(error)), "refusal": refusal_of(error)}
    return {"asked_as": asked_as}


def run_stage(
    retriever: BaseKGRetriever, stage: Stage, keys: Sequence[str], state: State, counter: CostCounter
) -> Body[dict[str, Any]]:
    """Run a stage.

    It is skipped if its outcome was supplied or the run has a reason to end.
    """
    given = {key: state[key] for key in keys if key in state}
    if "reason" in state or "stopped" in state or all(key in given for key in stage.writes):
        return {}
    try:
        run = stage.run.with_config(callbacks=[counter])
        update: dict[str, Any] = yield Call(run, given, stage.shown_as(type(retriever).__name__))
    except RefusalError as error:
        drop_model_advice(error, retriever)
        return record_refusal(state, retriever, type(retriever).__name__, error)
    update = stage.checked(update, type(retriever).__name__)
    return update | {"retriever": type(retriever).__name__}


def run_retriever(retriever: BaseKGRetriever, name: str, state: State, counter: CostCounter) -> Body[dict[str, Any]]:
    """Ask a whole retriever: a fallback, or one of several."""
    given, inputs = state.get("given") or {}, dict[str, Any](on_refusal="raise")
    inputs |= {name: given[name] for name in ("k", "min_confidence") if name in given}
    seeds = state.get("seed_entities", [])
    known = retriever.index.part(PartRequest(tuple(seeds))).graph.entities
    if held := [seed for seed in seeds if seed in known]:
        inputs["seed_entities"] = held
    bound = retriever.with_config(callbacks=[counter]).bind(**inputs)
    try:
        documents = yield Call(bound, state["question"])
    except RefusalError as error:
        return record_refusal(state, retriever, name, error)
    if not documents and state.get("documents"):  # unsure evidence of an earlier one stays
        return {}
    return {"documents": documents, "answers": documents_answers(documents), "retriever": name, **NOT_REFUSED}


def run_agent(agent: Runnable[Any, Any], name: str, state: State, counter: CostCounter) -> Body[dict[str, Any]]:
    """Ask an agent that is the last resort.

    Its answer goes to the check of citations as a draft.
    """
    output = yield Call(agent.with_config(callbacks=[counter]), {"question": state["question"]})
    documents = whole_documents(output.get("documents") or [], "build_workflow: the fallback")
    if not documents or not output.get("answers"):
        stopped = output.get("stopped")
        text = output.get("reason") or stopped or output.get("answer") or NO_ANSWER
        refused = record_refusal(state, agent, name, NoEvidenceError(text))
        return refused | ({"stopped": stopped} if stopped else {})
    shown = show_evidence(documents, "numbered")
    return {
        "documents": documents,
        "evidence": shown.text,
        "citable": shown.citable,
        "draft": {key: output[key] for key in ("answer", "answers", "explanation", "citations")},
        "attempts": ATTEMPTS,
        "retriever": name,
        **NOT_REFUSED,
    }


def record_refusal(state: State, retriever: object, name: str, error: RefusalError) -> dict[str, Any]:
    """Return the update after a retriever refuses the question.

    It holds the reasons of all retrievers, the most telling first.
    """
    before: dict[str, Reason] = state.get("refusals") or {}
    reason = read_reason(error, retriever)
    refusals = {**before, name: reason}
    update: dict[str, Any] = {"refusals": refusals}
    if not state.get("documents"):  # unsure evidence of an earlier one stays
        update["retriever"] = name
    if not before:
        return {**update, "reason": as_data(str(error)), "refusal": refusal_of(error)}
    if reason["text"] not in [earlier["text"] for earlier in before.values()]:
        update["reason"] = summarize_reasons(refusals, with_hint=True)
    if reason["rank"] < min(earlier["rank"] for earlier in before.values()):
        update["refusal"] = refusal_of(error)
    return update


def verbalize(show: Callable[..., ShownEvidence], state: State) -> dict[str, Any]:
    """Write the text for the answerer.

    It also writes the triples that the text numbers, and why these are unsure.
    """
    shown, why = show(state["documents"]), why_unsure(state["documents"])
    return {"evidence": shown.text, "citable": shown.citable} | ({"reason": as_data(why)} if why else {})


def answer(answerer: Runnable[AnswerInput, Any], state: State, counter: CostCounter) -> Body[dict[str, Any]]:
    """Ask the answerer.

    The second time, it adds the fault of the first draft.

    If the reply of its model cannot be read, it writes the reason, and the evidence answers in its place.
    """
    if "stopped" in state:
        return {}
    keys = ["question", "documents", "evidence", "citable"] + (["feedback", "draft"] if "feedback" in state else [])
    given = {key: state[key] for key in keys if key in state} | _refusals(state)
    try:
        draft = yield Call(answerer.with_config(callbacks=[counter]), given)
    except ReplyError as error:
        draft = state.get("draft") or answer_unread(given, error)  # type: ignore[arg-type]
        return {"draft": draft, "attempts": ATTEMPTS, "feedback": None, "reason": as_data(str(error))}
    check_draft(draft, answerer, "answer")
    return {"draft": draft, "attempts": state["attempts"] + 1, "feedback": None}


def _refusals(state: State) -> dict[str, str]:
    """Return why retrievers gave no evidence, as part of the input of an answerer."""
    refusals = state.get("refusals")
    return {"refusals": summarize_reasons(refusals, with_hint=False)} if refusals else {}


def check_citations(parse_answers: Mapping[str, Callable[[str], list[str]]], state: State) -> dict[str, Any]:
    """Take the draft as the answer.

    It leaves out citations of facts that were not shown.

    If citations fail, it writes their fault, so that the answerer is asked again.

    Args:
        parse_answers: Reads the answers from a draft that is a text, by the name of the retriever that was asked last.
        state: The state of the run.
    """
    draft, shown = state.get("draft"), ShownEvidence(state.get("evidence") or "", state.get("citable") or [])
    if draft is None:  # the budget was used up before
        given: Any = {key: state[key] for key in ("question", "documents", "evidence", "citable")}
        draft = ExtractiveCitedAnswerer().invoke(given | _refusals(state))
    parse, documents = parse_answers.get(state.get("retriever") or ""), state.get("documents") or []
    checked = check_answer(draft, shown, parse_answers=parse, documents=documents)
    problem = citation_problem(checked, is_text=isinstance(draft, str)) if shown.citable else None
    if problem and state["attempts"] < ATTEMPTS and not state.get("stopped"):
        return {"feedback": f"{problem}; cite by number, 1 to {len(shown.citable)}."}
    unchecked = f"The answer cannot be checked: {problem}." if problem and not checked["citations"] else None
    reason = state.get("reason") or unchecked
    return final(state, reason=reason, **checked)


def citation_problem(checked: CitedAnswer, is_text: bool) -> str | None:
    """Return the fault of an answer's citations.

    A text need not cite.
    """
    rejected = checked["rejected_citations"]
    if rejected == 1:
        return "1 citation names a fact that was not shown"
    if rejected:
        return f"{rejected} citations name facts that were not shown"
    if checked["answers"] and not checked["citations"] and not is_text and checked.get("value") is None:
        return "its answers cite no fact"
    return None


def refuse(state: State) -> dict[str, Any]:
    """Say why there is no answer."""
    stopped = state.get("stopped")
    refused = {**no_answer(state), "explanation": "", "documents": []}  # type: ignore[arg-type]
    if stopped:
        refused["answer"] = STOPPED
    reason = state.get("reason") or (None if stopped else "Nothing in the graph fits the question.")
    return final(state, **refused) | {"reason": reason}


def final(state: State, **values: Any) -> dict[str, Any]:
    """Return the update of a run's last node.

    The turn of the question joins the turns before it.
    """
    ended = {**values, "draft": None, "feedback": None, "cost": cost_of(state), "turns": state.get("turns") or []}
    if asked_as := state.get("asked_as"):
        given = (state.get("seed_entities") or []) if "seed_entities" in state["given"] else []
        ended["turns"] = with_turn(ended["turns"], asked_as, _shown_keys({**state, **values}), given)
    return ended


def _shown_keys(state: State) -> list[str]:
    """Return the keys of the answers in the order of display.

    If none is shown, these are all proposed keys.
    """
    documents = state.get("documents") or []
    keys = documents_answers(documents)
    labels = {key: label for one in documents for key, label in (one.metadata.get("labels") or {}).items()}
    shown = [key for name in state.get("answers") or [] for key in keys if name in (key, labels.get(key))]
    return list(dict.fromkeys(shown)) or keys
