"""Let a language model explore a graph by its tools.

`explore_agent` works within a budget, and checks the citations of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer, Overwrite, RetryPolicy
from typing_extensions import TypedDict

from kg_retrievers.agents.answers import TEXTS
from kg_retrievers.agents.nodes import STOPPED, BudgetedNode, State, citation_problem, final
from kg_retrievers.agents.results import Answer, Fact, shorten
from kg_retrievers.agents.state import AnswerState, Budget, WorkflowOutput
from kg_retrievers.agents.toolkit import KnowledgeGraphToolkit, no_such_tool, read_result
from kg_retrievers.agents.workflow import RETRY
from kg_retrievers.chains.cited_answer import CitedAnswer, check_answer, no_answer
from kg_retrievers.chains.evidence import MARK, ShownEvidence
from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.documents import agrees, documents_of
from kg_retrievers.core.facts_prompt import FACTS_ARE_DATA
from kg_retrievers.core.replies import marked_answers, without_reasoning
from kg_retrievers.core.stages import Body, Call
from kg_retrievers.core.structured_replies import guarded
from kg_retrievers.datasets import check_question
from kg_retrievers.errors import BudgetError, InvalidArgumentError, named_arguments
from kg_retrievers.graph import Evidence, Triple
from kg_retrievers.graph.verbalize import as_data
from kg_retrievers.index import GraphIndex, PartRequest

#: The version of the prompt. It changes with any change of its words.
VERSION = "1"

#: The first message of the agent.
SYSTEM_PROMPT: str = TEXTS["explore"].format(facts_are_data=FACTS_ARE_DATA)

#: The most calls of tools in one message of the model.
MOST_CALLS = 8

#: How often the model is asked for a final answer if its citations fail.
ATTEMPTS = 2

#: The default budget of an agent.
BUDGET = Budget(llm_calls=12, tokens=100_000, seconds=120)


class ExploreState(AnswerState, total=False):
    """The state of an exploring agent.

    Attributes:
        question: The question.
        messages: The conversation of the model with its tools.
        documents: All facts that tools returned, as one Document.
        found: The last answer of a tool, as data, and the question that the tool was asked.
    """

    question: str
    messages: list[AnyMessage] | None
    documents: list[Document] | None
    found: dict[str, Any] | None


class ExploreInput(TypedDict):
    """The input of an exploring agent."""

    question: str


@named_arguments
def explore_agent(
    model: BaseChatModel,
    index_or_toolkit: GraphIndex | KnowledgeGraphToolkit,
    *,
    budget: Budget = BUDGET,
    prompt: str = SYSTEM_PROMPT,
    retry: RetryPolicy | None = RETRY,
    checkpointer: Checkpointer = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    r"""Return an agent that answers a question by exploring a graph with tools.

    It takes `{"question": ...}` and returns a `WorkflowOutput`. The facts that tools return are numbered through the
    whole run. The citations of the final answer are checked as in a workflow, and the model is asked once more if they
    fail. An answer that then cites no fact is not given: `answer` says so, and `reason` says why. If the budget is used
    up, the last answer that a tool gave is the answer, if there is one, and `stopped` says which limit it was.

    Args:
        model: A chat model that calls tools.
        index_or_toolkit: The indexed graph, a view of it, or a toolkit with settings of your own.
        budget: The most calls of models, tokens and seconds. Set `llm_calls`: a model need never stop by itself.
        prompt: In place of ours.
        retry: As of `build_workflow`.
        checkpointer: As of LangGraph.

    Raises:
        InvalidArgumentError: If the model calls no tools, or an argument is of another type.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> from kg_retrievers.testing import ScriptedChatModel
        >>> graph = KnowledgeGraph.from_triples([("Her", "director", "Spike Jonze")])
        >>> call = {"name": "facts", "args": {"entity": "Her"}, "id": "1", "type": "tool_call"}
        >>> model = ScriptedChatModel(replies=[AIMessage("", tool_calls=[call]), "It is [1].\nAnswer: Spike Jonze"])
        >>> agent = explore_agent(model, GraphIndex.build(graph, default_embeddings()))
        >>> output = agent.invoke({"question": "Who made Her?"})
        >>> output["answer"], output["citations"][0]["triple"], output["cost"]["llm_calls"]
        ('Spike Jonze', ['Her', 'director', 'Spike Jonze'], 2)
    """
    who = "explore_agent"
    toolkit = index_or_toolkit
    if isinstance(toolkit, GraphIndex):
        toolkit = KnowledgeGraphToolkit(toolkit)
    for what, value, wanted in (
        ("model", model, BaseChatModel),
        ("index_or_toolkit", toolkit, KnowledgeGraphToolkit),
        ("budget", budget, Budget),
        ("prompt", prompt, str),
    ):
        if not isinstance(value, wanted):
            raise InvalidArgumentError(f"{who}: {what} must be a {wanted.__name__}, but got {value!r:.100}.")
    tools = {tool.name: tool for tool in toolkit.get_tools()}
    try:
        bound = guarded(model.bind_tools([*tools.values()]))
    except NotImplementedError as cause:
        raise InvalidArgumentError(
            f"{who}: {type(model).__name__} cannot call tools. Take a model that can."
        ) from cause

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(
        ExploreState, input_schema=ExploreInput, output_schema=WorkflowOutput
    )
    start: Any = partial(_start, prompt)
    check: Any = partial(_check, toolkit.index)
    graph.add_node("prepare", start)
    asks: Any = BudgetedNode("model", partial(_ask, bound), budget)
    acts: Any = BudgetedNode("tools", partial(_act, tools), budget)
    graph.add_node("model", asks, retry_policy=retry)
    graph.add_node("tools", acts)
    graph.add_node("check_citations", check)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "model")
    graph.add_conditional_edges("model", _after_model, ["tools", "check_citations"])
    graph.add_conditional_edges(
        "tools", lambda state: "check_citations" if state.get("stopped") else "model", ["model", "check_citations"]
    )
    graph.add_conditional_edges(
        "check_citations", lambda state: "model" if state.get("feedback") else END, ["model", END]
    )
    # The budget ends the run, and not the number of steps, unless nothing limits the calls.
    steps = 10_000 if budget.llm_calls is None else 2 * budget.llm_calls + 10
    return graph.compile(checkpointer, name="ExploreAgent").with_config({"recursion_limit": steps})


def _start(prompt: str, state: State) -> dict[str, Any]:
    """Check the question, and clear the state of an earlier one."""
    question: Any = state.get("question")
    check_question(question, "explore_agent")
    cleared: dict[str, Any] = dict.fromkeys([*AnswerState.__annotations__, "documents", "found"])
    messages = [SystemMessage(prompt), HumanMessage(question)]
    fresh = {"messages": messages, "spending": Overwrite([]), "run": uuid4().hex, "attempts": 0, "citable": []}
    return {**cleared, **fresh, "evidence": ""}


def _ask(model: Runnable[Any, Any], state: State, counter: CostCounter) -> Body[dict[str, Any]]:
    """Ask the model, and report its last answer's faults."""
    messages = list(state["messages"])
    if "feedback" in state:
        messages.append(HumanMessage(state["feedback"]))
    reply = yield Call(model.with_config(callbacks=[counter]), messages)
    return {"messages": [*messages, reply], "feedback": None}


def _after_model(state: State) -> str:
    last = state["messages"][-1]
    calls = isinstance(last, AIMessage) and (last.tool_calls or last.invalid_tool_calls)
    return "tools" if calls and not state.get("stopped") else "check_citations"


def _act(tools: Mapping[str, BaseTool], state: State, counter: CostCounter) -> Body[dict[str, Any]]:
    """Run the tools that the model calls, in order, and number their facts."""
    last, replies = state["messages"][-1], list[ToolMessage]()
    seen = _Facts(list(state["citable"]), state["evidence"].split("\n") if state["evidence"] else [])
    update: dict[str, Any] = {}
    for number, call in enumerate([*last.tool_calls, *last.invalid_tool_calls]):
        name, id = str(call["name"]), call["id"] or f"call {number}"
        said, status = "", "error"
        if number >= MOST_CALLS:
            said = f"only {MOST_CALLS} tools are called at once. Call the others again."
        elif name not in tools:
            said = no_such_tool(name, [*tools])
        elif not isinstance(call["args"], dict):
            said = as_data(f"{name}: the arguments are no JSON object: {shorten(str(call['args']), 200)}")
        else:
            given = {"name": name, "args": call["args"], "id": id, "type": "tool_call"}
            try:
                message: ToolMessage = yield Call(tools[name].with_config(callbacks=[counter]), given)
            except BudgetError as error:
                update["stopped"] = str(error)
                break
            said, status = message.text, message.status
            if message.artifact is not None:
                result = read_result(name, message.artifact)
                said = result.in_words(seen.mark)
                if isinstance(result, Answer) and result.refusal is None and result.citations:
                    update["found"] = {"question": str(call["args"].get("question")), "answer": message.artifact}
        replies.append(ToolMessage(said, tool_call_id=id, name=name, status=status))
    kept = {"citable": seen.citable, "evidence": "\n".join(seen.lines)}
    return {**update, **kept, "messages": [*state["messages"], *replies]}


class _Facts:
    """The facts that tools have returned, each with its number."""

    def __init__(self, citable: list[list[str]], lines: list[str]) -> None:
        self.citable, self.lines = citable, lines
        self._numbers = {tuple(triple): number for number, triple in enumerate(citable, 1)}

    def mark(self, fact: Fact) -> str:
        """Return the number of a fact as it stands in a message."""
        if fact.triple not in self._numbers:
            self._numbers[fact.triple] = len(self.citable) + 1
            self.citable.append(list(fact.triple))
            self.lines.append(f"[{len(self.citable)}] {fact.text}")
        return f"[{self._numbers[fact.triple]}] "


def _check(index: GraphIndex, state: State) -> dict[str, Any]:
    """Take the model's last reply as the answer.

    Citations of facts that nobody showed are left out.
    """
    shown = ShownEvidence(state.get("evidence") or "", state.get("citable") or [])
    asked = state.get("found") or {}
    found = Answer.model_validate(asked["answer"]) if asked else None
    documents = _documents(index, state["question"], shown, found)
    nothing = no_answer({"question": state["question"], "documents": []})
    last = state["messages"][-1]
    reason = None
    if state.get("stopped"):
        checked: CitedAnswer = {**nothing, "answer": STOPPED}
        if found is not None and asked["question"].strip() == state["question"].strip():
            cited = [{"triple": one.triple} for one in found.citations]
            draft = {"answer": found.answer, "answers": [one.label for one in found.answers], "citations": cited}
            checked = check_answer(draft, shown, documents=documents)
    else:
        checked = _checked(last.text, shown, documents)
        problem = citation_problem(checked, is_text=False)
        if problem and state["attempts"] + 1 < ATTEMPTS:
            wanted = f"cite by number, 1 to {len(shown.citable)}" if shown.citable else "call a tool first"
            return {
                "feedback": f"Your answer cannot be taken: {problem}; {wanted}.",
                "attempts": state["attempts"] + 1,
            }
        if problem and not checked["citations"]:
            reason = f"The answer of the model cannot be checked: {problem}."
            rejected = checked["rejected_citations"]
            checked = {**nothing, "explanation": reason, "rejected_citations": rejected}
        elif not checked["answers"]:
            reason = "The facts that the model read do not answer the question."
    return final(state, reason=reason, **checked) | {"documents": documents, "retriever": "ExploreAgent"}


def _checked(reply: str, shown: ShownEvidence, documents: list[Document]) -> CitedAnswer:
    """Return the final reply of the model as an answer with checked citations."""
    text, marked, strange = shown.read_marks(without_reasoning(reply))
    answers = [shown.read_marks(answer)[0] for answer in marked_answers(text)]
    answers = [bare for answer in answers if (bare := MARK.sub("", answer).strip())]
    said = text.rpartition("Answer:")[0].strip() or text
    citations, _ = shown.cite(marked, documents)
    if documents and not (answers and all(agrees(answer, documents[0].metadata) for answer in answers)):
        documents = [Document(one.page_content, metadata={**one.metadata, "value": None}) for one in documents]
    draft = {"answers": answers, "explanation": said, "citations": citations}
    return check_answer(draft, shown, strange, documents=documents)


def _documents(index: GraphIndex, question: str, shown: ShownEvidence, found: Answer | None) -> list[Document]:
    """Return all facts that were shown as one Document.

    The Document holds the value of the last operation.
    """
    if not shown.citable:
        return []
    triples = [Triple(*triple) for triple in shown.citable]
    keys = sorted({end for triple in triples for end in (triple.head, triple.tail)})
    graph = index.part(PartRequest(tuple(keys), between=True)).graph
    held = tuple(triple for triple in triples if triple in graph)
    value = None if found is None or found.value is None else found.model_dump()["value"]
    evidence = Evidence(held, score=1.0, value=value)
    return documents_of(
        [evidence], 1, graph, retriever="ExploreAgent", style="grouped", single_triples=False, question=question
    )
