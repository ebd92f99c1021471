"""The state of a workflow, its input and its output."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any, NotRequired, Required, get_type_hints

from langchain_core.documents import Document
from pydantic import Field
from typing_extensions import TypedDict

from kg_retrievers.agents.refusals import Reason
from kg_retrievers.chains import Citation
from kg_retrievers.core.cost import Cost, CostCounter
from kg_retrievers.core.stages import RetrievalState
from kg_retrievers.deadline import deadline
from kg_retrievers.errors import BudgetError, InvalidArgumentError
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.questions.follow_up import Turn


class Spending(Cost):
    """The cost of one run of one node.

    Attributes:
        node: The node.
        run: The run that paid. Another run paid for results that a node takes from a cache.
    """

    node: str
    run: str


class AnswerState(TypedDict, total=False):
    """The keys that a workflow adds to the state of a retriever.

    All values are plain, or Documents, so that checkpoints can hold them.

    Attributes:
        asked_as: The question as it was understood, so that it stands alone: other than the question if that is a
            follow-up. None if the reference of a follow-up was not clear.
        turns: The last questions of the thread that were understood, with their answers. An input, too, for callers
            that keep the conversation themselves.
        evidence: The text that the answerer is shown.
        citable: The triples that this text numbers, the first of them being `[1]`.
        draft: The answer before its citations are checked.
        feedback: The fault of the draft, if an answer is asked for once more.
        attempts: How many drafts there were.
        answer: The answer as a text.
        answers: The answers one by one. The retriever's `parse_answers` reads the answers of a text. Until there is an
            answer, the keys of the entities that the retriever proposes.
        explanation: How the facts answer the question.
        citations: The facts that the answer rests on, among the facts that were shown.
        rejected_citations: How many citations of the last draft were left out, since their facts were not shown.
        supported: Whether the name of every answer stands in a fact that is cited. If an operation gave a value,
            whether every answer agrees with it. None if no names are known.
        value: The result of an operation. None without an operation.
        retriever: The retriever that found the documents, or was the last to find none. It is given by its class, with
            "-2" behind it for a fallback of the same class, or by its name in a router.
        reason: Why there is no answer, or no citation.
        refusals: Why each retriever that was asked refused the question, by its name as in `retriever`.
        refusal: The answer if no retriever finds evidence. It fits the reason.
        stopped: Which budget ended the run early. None if none did.
        given: The inputs that the caller gave, except the question.
        run: A name of this run.
        spending: The cost of each node, in this run or in the run that filled the cache.
        cost: The cost of this run.
    """

    asked_as: str | None
    turns: list[Turn] | None
    evidence: str | None
    citable: list[list[str]] | None
    draft: Any
    feedback: str | None
    attempts: int
    answer: str | None
    answers: list[str] | None
    explanation: str | None
    citations: list[Citation] | None
    rejected_citations: int | None
    supported: bool | None
    value: Any
    retriever: str | None
    reason: str | None
    refusals: dict[str, Reason] | None
    refusal: str | None
    stopped: str | None
    given: dict[str, Any] | None
    run: str
    spending: Annotated[list[Spending], operator.add]
    cost: Cost | None


class WorkflowOutput(TypedDict, total=False):
    """The output of a workflow.

    See `AnswerState` and `RetrievalState`.
    """

    question: str
    asked_as: str | None
    turns: list[Turn]
    answer: str
    answers: list[str]
    explanation: str
    citations: list[Citation]
    rejected_citations: int
    supported: bool | None
    value: Any
    documents: list[Document]
    retriever: str
    reason: str | None
    stopped: str | None
    cost: Cost


def state_types(name: str, retrieval: type, further: type = AnswerState) -> tuple[type, type, tuple[str, ...]]:
    """Return the state and input types of a workflow over a retriever's state.

    Also return the names of its optional inputs.

    Raises:
        InvalidArgumentError: If the retriever's state has a key that the workflow needs for itself.
    """
    own = get_type_hints(retrieval, include_extras=True)
    if taken := sorted(set(own) & set(get_type_hints(further)) - set(get_type_hints(RetrievalState))):
        raise InvalidArgumentError(
            f"{name}: a workflow has keys {taken} of its own; call those of the retriever otherwise."
        )
    optional = tuple(key for key in own if key not in ("question", "answers", "documents"))
    # An absent input is written as None, so that nothing stays from an earlier question of the thread.
    nullable: dict[str, Any] = {key: own[key] | None for key in own if key != "question"}
    keys: dict[str, Any] = {"question": str, **nullable, **get_type_hints(further, include_extras=True)}
    given: dict[str, Any] = {"question": Required[str], **{key: NotRequired[nullable[key]] for key in optional}}
    given["turns"] = NotRequired[list[Turn] | None]
    make: Any = TypedDict  # its names are not known before
    return make(f"{name}State", keys, total=False), make(f"{name}Input", given), optional


@checked_dataclass
class Budget:
    """Limits of a run. When a limit is reached, the run ends with the results that it has, and says so.

    None stands for any amount.

    Args:
        llm_calls: Calls of language models. Never exceeded, also not by attempts that failed, except that a run that
            goes on in another process knows nothing of the failed attempts of the first.
        tokens: Tokens of prompts and replies. The call that passes the limit is the last one.
        seconds: Wall time of the nodes and of pauses between their attempts, without the time that a person takes. A
            call that is under way then is cut off. A request that can be cancelled is cancelled, and any other call
            ends later, in a thread of its own.

    Raises:
        InvalidArgumentError: If a limit is negative, or no number.
    """

    llm_calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0)

    def counter(self, cost: Cost) -> CostCounter:
        """Return a counter that allows the rest of the budget.

        Raises:
            BudgetError: If there is no time left.
        """
        if self.seconds is not None and cost["seconds"] >= self.seconds:
            raise BudgetError(f"the budget of {self.seconds:g} seconds is used up.")
        tokens = cost["input_tokens"] + cost["output_tokens"]
        return CostCounter(
            None if self.llm_calls is None else max(self.llm_calls - cost["llm_calls"], 0),
            None if self.tokens is None else max(self.tokens - tokens, 0),
        )

    def deadline(self, cost: Cost) -> AbstractContextManager[None]:
        """Return a block that limits calls to the remaining seconds.

        These are the seconds that are left after a cost.
        """
        left = None if self.seconds is None else self.seconds - cost["seconds"]
        return deadline(left, lambda: BudgetError(f"the budget of {self.seconds:g} seconds is used up."))


#: The cost of nothing.
NOTHING = Cost(llm_calls=0, input_tokens=0, output_tokens=0, seconds=0.0)


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    spent = list(costs)
    return Cost(
        llm_calls=sum(cost["llm_calls"] for cost in spent),
        input_tokens=sum(cost["input_tokens"] for cost in spent),
        output_tokens=sum(cost["output_tokens"] for cost in spent),
        seconds=sum((cost["seconds"] for cost in spent), 0.0),
    )


def cost_of(state: Mapping[str, Any]) -> Cost:
    """Return the cost of a run until now."""
    spending: Sequence[Spending] = state.get("spending") or []
    return total(item for item in spending if item["run"] == state.get("run"))
