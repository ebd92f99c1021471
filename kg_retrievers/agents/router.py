"""Route each question to the retriever that suits it.

If that retriever finds nothing, the question goes on to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import coerce_to_runnable
from langgraph.types import Checkpointer, RetryPolicy

from kg_retrievers.agents.nodes import State, Work, run_retriever
from kg_retrievers.agents.state import AnswerState, Budget, WorkflowOutput, state_types
from kg_retrievers.agents.workflow import NODES, RETRY, Workflow, WorkflowBuilder
from kg_retrievers.chains import CitedAnswerer, EvidenceStyle, ExtractiveCitedAnswerer, LLMCitedAnswerer
from kg_retrievers.chains.answer import Answerer, choose_answerer
from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.documents import why_unsure
from kg_retrievers.core.retriever import BaseKGRetriever, check_retriever
from kg_retrievers.core.stages import Body, Call, QuestionShape, RetrievalState
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, named_arguments
from kg_retrievers.graph.verbalize import approximate_tokens
from kg_retrievers.index import GraphIndex, QuestionEntity, linker_of, question_entities
from kg_retrievers.questions.question_forms.forms import tokens_of
from kg_retrievers.questions.question_forms.grammar import read_form

#: Words that ask for a description rather than for entities.
OPEN_WORDS = ("describe", "explain", "tell me about", "summarize", "summarise", "what do you know", "overview")

#: From a question to the name of the retriever to ask, or to several names, in order. None for the order by the rules.
Choice = Runnable[str, Any] | Callable[[str], str | Sequence[str] | None]


class RouterState(AnswerState, total=False):
    """The keys that a router adds to the state of a workflow.

    Attributes:
        methods: The names of the methods in the order in which they are asked.
        tried: How many of them were asked.
        routed_by: The origin of this order: the rule that applied, or "choose".
    """

    methods: list[str] | None
    tried: int | None
    routed_by: str | None


class RouterOutput(WorkflowOutput, total=False):
    """The output of a router.

    It is the output of a workflow, and how the order of the retrievers was decided.
    """

    methods: list[str]
    routed_by: str


@named_arguments
def question_shape(question: str, entities: int) -> QuestionShape:
    """Return the shape of a question that names this number of entities.

    Example:
        >>> question_shape("Describe the films of Wes Anderson.", 1), question_shape("Who directed Her?", 1)
        ('open', 'one entity')
    """
    words = question.casefold()
    if any(words.startswith(word) or f" {word} " in words for word in OPEN_WORDS):
        return "open"
    return "no entity" if entities == 0 else "one entity" if entities == 1 else "several entities"


def _linked(index: GraphIndex, question: str, seeds: Sequence[str]) -> list[QuestionEntity]:
    """Return the entities that are given, or that a question mentions.

    There may be none.
    """
    try:
        return question_entities(linker_of(index), question, seeds)
    except EntityLinkingError:
        return []


@named_arguments
def build_router(
    retrievers: Mapping[str, BaseKGRetriever],
    answerer: CitedAnswerer | Answerer | BaseLanguageModel[Any] | None = None,
    *,
    choose: Choice | None = None,
    llm: BaseLanguageModel[Any] | None = None,
    evidence_style: EvidenceStyle = "numbered",
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = approximate_tokens,
    budget: Budget | None = None,
    retry: RetryPolicy | None = RETRY,
    checkpointer: Checkpointer = None,
    interrupt_before: Sequence[str] = (),
) -> Workflow:
    """Return a workflow that sends a question to the retriever that suits it.

    The nodes are `prepare`, `understand`, `route`, then the retrievers, each a node of its name, until one finds
    evidence. The rest is as in `build_workflow`. `choose`, or rules, decide the order of the retrievers. For the rules,
    the entities that are linked in the question, or given, and its words define its shape (`question_shape`).
    Retrievers whose `suits` holds that shape come first, in the order given. A question that needs an operation by its
    form, and no description, goes first to the retrievers whose `operations` says that they carry it out. `routed_by`
    in the state names the rule that applied.

    Args:
        retrievers: The retrievers by name, on one graph. Their names become the names of the nodes.
        answerer: As in `build_workflow`.
        choose: A function or a Runnable, such as a prompt and a language model. It takes the question and returns the
            name of the retriever to ask, several names in order, or None for the order by the rules.
        llm: As in `build_workflow`, and so are all further arguments.
        evidence_style: How the answerer is shown the evidence.
        max_tokens: The most tokens of evidence that the answerer is shown.
        count_tokens: Counts them.
        budget: Limits of a run. At a limit, the run ends with the results that it has.
        retry: How nodes that call a model are tried again.
        checkpointer: Keeps the state of each thread.
        interrupt_before: The nodes to stop before, including "route" and the names of the retrievers.

    Raises:
        InvalidArgumentError: If there are no retrievers, or a retriever has the name of another node.
    """
    _check(retrievers)
    chosen: Runnable[Any, Any] = choose_answerer(answerer, ExtractiveCitedAnswerer, LLMCitedAnswerer, "build_router")
    state = state_types("Router", RetrievalState, RouterState)
    builder = WorkflowBuilder("Router", state, RouterOutput, chosen, budget, retry)
    first, graph = next(iter(retrievers.values())), builder.graph
    builder.add_beginning(first, llm, after="route")
    builder.add("route", _route(retrievers, choose), isinstance(choose, Runnable))
    graph.add_conditional_edges("route", _next_node, [*retrievers, "refuse"])
    for method, retriever in retrievers.items():
        builder.add(method, partial(_ask, retriever, method), any(stage.calls_model for stage in retriever.stages))
        others = [other for other in retrievers if other != method]
        graph.add_conditional_edges(method, _next_node, [*others, "verbalize", "refuse"])
    builder.add_answering(evidence_style, max_tokens, count_tokens, retrievers)
    return builder.compile(first, checkpointer, interrupt_before)


def _check(retrievers: Mapping[str, BaseKGRetriever]) -> None:
    """Check the retrievers and their names."""
    if not isinstance(retrievers, Mapping) or not retrievers:
        raise InvalidArgumentError(
            f"build_router: wanted retrievers by name, such as {{'kg': retriever}}, but got {retrievers!r:.100}."
        )
    for method, retriever in retrievers.items():
        check_retriever(retriever, "build_router", repr(method))
        if not isinstance(method, str) or method in (*NODES, "route") or not method or {*method} & {*":|"}:
            raise InvalidArgumentError(
                f"build_router: {method!r} is another node, empty, or holds ':' or '|'; call the retriever otherwise."
            )


def _next_node(state: State) -> str:
    """Return the node after a retriever, or after the choice of one."""
    methods, tried = state.get("methods") or [], state.get("tried") or 0
    documents, is_over = state.get("documents"), bool(state.get("stopped")) or tried >= len(methods)
    if documents and (is_over or not why_unsure(documents)):
        return "verbalize"
    return "refuse" if is_over else methods[tried]


def _ask(retriever: BaseKGRetriever, name: str, state: State, counter: CostCounter) -> Body[dict[str, Any]]:
    """Ask a retriever, and count that it was asked."""
    update = yield from run_retriever(retriever, name, state, counter)
    return update | {"tried": state["tried"] + 1}


def _route(retrievers: Mapping[str, BaseKGRetriever], choose: Choice | None) -> Work:
    """Return the node that decides the order of the retrievers.

    Raises:
        InvalidArgumentError: If nothing can choose by `choose`.
    """
    first, names = next(iter(retrievers.values())), list(retrievers)
    try:
        chooser = None if choose is None else coerce_to_runnable(choose)
    except TypeError:
        raise InvalidArgumentError(f"build_router: choose is no function or Runnable: {choose!r:.50}.") from None

    def work(state: State, counter: CostCounter) -> Body[dict[str, Any]]:
        question = state["question"]
        chosen: Any = None
        if chooser is not None:
            chosen = yield Call(chooser.with_config(callbacks=[counter]), question)
        if chosen is not None:
            order = [chosen] if isinstance(chosen, str) else chosen
            if not isinstance(order, list | tuple) or not order or any(name not in names for name in order):
                wanted = f"wanted a name or a list of names of: {', '.join(names)}."
                raise InvalidArgumentError(f"build_router: choose gave {chosen!r:.100}, {wanted}")
            return {"methods": list(dict.fromkeys(order)), "tried": 0, "routed_by": "choose"}
        seeds = state.get("seed_entities") or ()
        entities = _linked(first.index, question, seeds)
        shape = question_shape(question, len(entities))
        order = sorted(retrievers, key=lambda name: shape not in retrievers[name].suits)
        routed_by = f"rule: {shape}"
        form = read_form(tokens_of(question, entities), lambda _: 0.0, ())  # of "how many", "whether" and their like
        if shape != "open" and form is not None:
            order = sorted(order, key=lambda name: not retrievers[name].operations)
            routed_by = "rule: operation"
        return {"methods": order, "tried": 0, "routed_by": routed_by}

    return work
