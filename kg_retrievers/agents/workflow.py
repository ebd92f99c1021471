"""Builds the LangGraph workflow of any retriever: its stages, then verbalize, answer and check_citations."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, get_args, get_type_hints

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer, Command, RetryPolicy, StateSnapshot, StateUpdate

from kg_retrievers.agents import nodes
from kg_retrievers.agents.state import Budget, WorkflowOutput, state_types
from kg_retrievers.chains import CitedAnswerer, EvidenceStyle, ExtractiveCitedAnswerer, LLMCitedAnswerer, show_evidence
from kg_retrievers.chains.answer import Answerer, CitingModel, choose_answerer
from kg_retrievers.chains.evidence import check_token_budget
from kg_retrievers.core.documents import why_unsure
from kg_retrievers.core.retriever import BaseKGRetriever, check_retriever
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, check_known, named_arguments
from kg_retrievers.graph.verbalize import approximate_tokens
from kg_retrievers.questions.follow_up import FollowUpReader, check_turns

_worth_it: Any = RetryPolicy().retry_on


def _may_pass(error: Exception) -> bool:
    """Tell whether another attempt may help.

    None helps if this package has raised an error of its own.
    """
    return not isinstance(error, KGRetrieversError) and bool(_worth_it(error))


#: How nodes that call a model are tried again by default: three times, unless the error says that it is of no use.
RETRY = RetryPolicy(retry_on=_may_pass)

#: The nodes of every workflow, except the nodes that retrieve.
NODES = ("prepare", "understand", "verbalize", "answer", "check_citations", "refuse")


class Workflow(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled LangGraph graph with checked inputs.

    It refuses inputs that it does not know, starts each question of a thread clean, and checks values that a person
    writes into the state of an interrupted run (`update_state`).
    """

    def __init__(self, *, retriever: BaseKGRetriever, optional_inputs: Sequence[str], **compiled: Any) -> None:
        """Take the arguments of a compiled graph, and the retriever that checks the inputs."""
        super().__init__(**compiled)
        self.retriever, self.optional_inputs = retriever, optional_inputs

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Stream as LangGraph does, in the same modes."""
        return super().stream(self._whole_input(input, config), config, **kwargs)

    def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Stream as LangGraph does, in the same modes."""
        return super().astream(self._whole_input(input, config), config, **kwargs)

    def bulk_update_state(self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Check the values, then update as LangGraph does.

        `update_state` calls it.

        Raises:
            InvalidArgumentError: If a key is not to be edited, or not any more, or a value is out of range. If a value
                cannot be read, other errors of this package are possible, such as a `PatternError`.
        """
        return super().bulk_update_state(config, self._checked(supersteps, self.get_state(config)))

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Do as `bulk_update_state`, for `aupdate_state`."""
        return await super().abulk_update_state(config, self._checked(supersteps, await self.aget_state(config)))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Show the nodes as Mermaid text.

        LangGraph would have a server on the network draw it.
        """
        mermaid = self.get_graph().draw_mermaid()
        return {"text/plain": repr(self), "text/markdown": f"```mermaid\n{mermaid}\n```"}

    def __repr__(self) -> str:
        """Return the name and the nodes."""
        return f"{self.name}({', '.join(self.builder.nodes)})"

    def _whole_input(self, input: Any, config: RunnableConfig | None) -> Any:
        if isinstance(input, Command) and isinstance(input.update, Mapping):
            return replace(input, update=self._readable(input.update))
        if input is None or isinstance(input, Command):  # to go on
            return input
        if not isinstance(input, Mapping):
            raise InvalidArgumentError(f'{self.name}: the input is {{"question": ...}}, but got {input!r:.100}.')
        known = ["question", *self.optional_inputs, "turns"]
        # A node of another graph is given the state of that graph.
        is_node = bool((config or {}).get("configurable", {}).get("checkpoint_ns"))
        check_known(self.name, [] if is_node else input, known, "input")
        given = {key: input[key] for key in self.optional_inputs if input.get(key) is not None}
        self.retriever.initial_state(input.get("question"), **given)  # type: ignore[arg-type]
        whole = {key: input.get(key) for key in known}
        if whole["turns"] is None:  # those of the thread stay
            del whole["turns"]
        else:
            whole["turns"] = check_turns(whole["turns"], self.name)
        return whole

    def _readable(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a person's edits of the state, checked and as stages write them."""
        known = [*self.optional_inputs, "documents", "answers"]
        if strange := sorted(set(values) - set(known)):
            more = " Another question is asked with invoke." if "question" in strange else ""
            raise InvalidArgumentError(f"{self.name}: {strange} cannot be edited; a person may edit {known}.{more}")
        if empty := [key for key, value in values.items() if value is None]:
            raise InvalidArgumentError(f"{self.name}: got None for {empty}; leave out what is not edited.")
        return self.retriever.check_named_inputs(values)

    def _checked(self, supersteps: Sequence[Sequence[StateUpdate]], state: StateSnapshot) -> list[list[StateUpdate]]:
        here = state.next[0] if state.next else None
        stages = {stage.name: stage.writes for stage in self.retriever.stages}

        def checked(update: StateUpdate) -> StateUpdate:
            if not update.values:
                return update
            values, node = self._readable(update.values), update.as_node
            inputs = sorted(set(values) & set(self.optional_inputs))
            if inputs and node is None and here in ("verbalize", "answer", "check_citations", "refuse", None):
                raise InvalidArgumentError(
                    f"{self.name}: {inputs} cannot be edited any more, the evidence has been retrieved. Ask again: "
                    'invoke({"question": ..., ' + f"{inputs[0]!r}: ...}})."
                )
            if node is None and here in stages:  # a stage before may be needed after all
                earlier = [*stages.values()][: [*stages].index(here)]
                after = {**state.values, **values}
                if any(after.get(key) is None for writes in earlier for key in writes):
                    node = "understand"
            if inputs:  # the question is no longer refused
                values |= {"reason": None, "refusals": None, "refusal": None}
            return update._replace(values=values, as_node=node)

        return [[checked(update) for update in step] for step in supersteps]


class WorkflowBuilder:
    """Add nodes to a graph that answers questions.

    `build_workflow` and `build_router` differ in how they retrieve.
    """

    def __init__(
        self,
        name: str,
        state: tuple[type, type, tuple[str, ...]],
        output: type,
        answerer: Runnable[Any, Any],
        budget: Budget | None,
        retry: RetryPolicy | None,
    ) -> None:
        """Begin with an empty graph.

        Raises:
            InvalidArgumentError: If an argument is of another type.
        """
        for what, value, wanted in (("budget", budget, Budget), ("retry", retry, RetryPolicy)):
            if value is not None and not isinstance(value, wanted):
                raise InvalidArgumentError(
                    f"{name}: {what} must be a {wanted.__name__} or None, but got {value!r:.100}."
                )
        self.name, self.answerer, self.budget, self.retry = name, answerer, budget or Budget(), retry
        state_type, input_type, self.optional = state
        self.keys = [key for key in get_type_hints(state_type) if key not in ("spending", "run", "turns")]
        self.graph: StateGraph[Any, Any, Any, Any] = StateGraph(
            state_type, input_schema=input_type, output_schema=output
        )

    def add(self, name: str, work: nodes.Work, calls_model: bool) -> None:
        """Add a node that works within the budget.

        A node that calls a model is tried again.
        """
        node: Runnable[Any, Any] = nodes.BudgetedNode(name, work, self.budget)
        self.graph.add_node(name, node, retry_policy=self.retry if calls_model else None)

    def add_free(self, name: str, function: Callable[[Any], dict[str, Any]]) -> None:
        """Add a node that costs nothing worth counting."""
        node: Any = function
        self.graph.add_node(name, node)

    def add_beginning(self, retriever: BaseKGRetriever, llm: BaseLanguageModel[Any] | None, after: str) -> None:
        """Add the nodes before retrieval: prepare, and understand.

        After understand, unclear follow-ups are refused.

        Args:
            retriever: Checks the inputs. Its graph serves to understand follow-ups.
            llm: Rewrites the follow-ups that the rules do not understand. By default, the answerer's model.
            after: The node after them.
        """
        model = llm or (self.answerer.llm if isinstance(self.answerer, LLMCitedAnswerer) else None)
        self.add_free("prepare", partial(nodes.prepare, retriever, self.keys, self.optional))
        self.add("understand", partial(nodes.understand, FollowUpReader(retriever.index, model)), model is not None)
        self.graph.add_edge(START, "prepare")
        self.graph.add_edge("prepare", "understand")
        self.graph.add_conditional_edges(
            "understand", lambda state: after if state.get("asked_as") else "refuse", [after, "refuse"]
        )

    def add_fallback(self, fallback: BaseKGRetriever | CompiledStateGraph[Any, Any, Any, Any], name: str) -> None:
        """Add the node of a second retriever or of an agent.

        The node has the name of the retriever in the state.

        Raises:
            InvalidArgumentError: If it is neither.
        """
        if not isinstance(fallback, BaseKGRetriever | CompiledStateGraph):
            raise InvalidArgumentError(
                f"{self.name}: fallback must be a BaseKGRetriever or an agent, but got {fallback!r:.100}."
            )
        if isinstance(fallback, BaseKGRetriever):
            calls_model = any(stage.calls_model for stage in fallback.stages)
            self.add("fallback", partial(nodes.run_retriever, fallback, name), calls_model)
        else:
            self.add("fallback", partial(nodes.run_agent, fallback, fallback.name), calls_model=True)

    def add_answering(
        self,
        style: EvidenceStyle,
        max_tokens: int | None,
        count_tokens: Callable[[str], int],
        retrievers: Mapping[str, BaseKGRetriever],
    ) -> None:
        """Add the nodes after retrieval.

        These are verbalize, answer and check_citations, and refuse for runs without documents.

        Args:
            style: How the answerer is shown the evidence.
            max_tokens: The most tokens of evidence that it is shown.
            count_tokens: Counts them.
            retrievers: The retrievers by their names in the state. They read the answers from a text.

        Raises:
            InvalidArgumentError: If the style is unknown, or numbers no facts for an answerer that cites them.
        """
        cites = isinstance(self.answerer, CitingModel | ExtractiveCitedAnswerer)
        if style not in get_args(EvidenceStyle) or (cites and style != "numbered"):
            raise InvalidArgumentError(
                f'{self.name}: evidence_style is "numbered" or, for an answerer without citations, "documents", but '
                f"got {style!r} for {type(self.answerer).__name__}."
            )
        check_token_budget(max_tokens, count_tokens, self.name)
        show = partial(show_evidence, style=style, max_tokens=max_tokens, count_tokens=count_tokens)
        self.add_free("verbalize", partial(nodes.verbalize, show))
        self.add("answer", partial(nodes.answer, self.answerer), not isinstance(self.answerer, ExtractiveCitedAnswerer))
        parse_answers = {name: one.parse_answers for name, one in retrievers.items()}
        self.add_free("check_citations", partial(nodes.check_citations, parse_answers))
        self.add_free("refuse", nodes.refuse)
        self.graph.add_edge("verbalize", "answer")
        self.graph.add_edge("answer", "check_citations")
        self.graph.add_conditional_edges(
            "check_citations", lambda state: "answer" if state.get("feedback") else END, ["answer", END]
        )
        self.graph.add_edge("refuse", END)

    def compile(
        self,
        retriever: BaseKGRetriever,
        checkpointer: Checkpointer,
        interrupt_before: Sequence[str],
    ) -> Workflow:
        """Return the workflow.

        Raises:
            InvalidArgumentError: If a node to interrupt before does not exist.
        """
        if isinstance(interrupt_before, str) or (strange := sorted(set(interrupt_before) - set(self.graph.nodes))):
            shown = interrupt_before if isinstance(interrupt_before, str) else strange
            raise InvalidArgumentError(
                f"{self.name}: interrupt_before is a list of nodes, but got {shown!r}; the nodes are "
                f"{list(self.graph.nodes)}."
            )
        if interrupt_before and checkpointer is None:
            warnings.warn(
                f"{self.name}: interrupt_before stops the run, and without a checkpointer it cannot go on: give "
                "checkpointer=InMemorySaver(), unless a server of LangGraph or an outer graph brings one.",
                stacklevel=4,
            )
        compiled = self.graph.compile(checkpointer, interrupt_before=list(interrupt_before) or None, name=self.name)
        # LangGraph copies a compiled graph in this way too: see its `Pregel.copy`.
        attributes = {name: value for name, value in vars(compiled).items() if name != "__orig_class__"}
        return Workflow(retriever=retriever, optional_inputs=self.optional, **attributes)


def _after_search(otherwise: str) -> Callable[[Mapping[str, Any]], str]:
    """Return the choice of the node after a search.

    An unsure result goes on to the fallback, too.
    """

    def route(state: Mapping[str, Any]) -> str:
        documents = state.get("documents")
        if state.get("draft"):
            return "check_citations"
        if documents and not (otherwise == "fallback" and why_unsure(documents)):
            return "verbalize"
        return "refuse" if state.get("stopped") and not documents else otherwise

    return route


@named_arguments
def build_workflow(
    retriever: BaseKGRetriever,
    answerer: CitedAnswerer | Answerer | BaseLanguageModel[Any] | None = None,
    *,
    fallback: BaseKGRetriever | CompiledStateGraph[Any, Any, Any, Any] | None = None,
    llm: BaseLanguageModel[Any] | None = None,
    evidence_style: EvidenceStyle = "numbered",
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = approximate_tokens,
    budget: Budget | None = None,
    retry: RetryPolicy | None = RETRY,
    checkpointer: Checkpointer = None,
    interrupt_before: Sequence[str] = (),
) -> Workflow:
    """Return the workflow of a retriever.

    Its stages become nodes of the same names, and an answer with citations follows.

    The nodes are `prepare`, `understand`, the stages, `verbalize`, `answer` and `check_citations`. Without evidence,
    `fallback` follows if given, else `refuse`. A draft whose citations fail is asked for once more. A citation of a
    fact that was not shown never reaches the final state. A question that the retriever refuses is answered by
    `NO_ANSWER`, `NOT_UNDERSTOOD` or `SEARCH_ENDED` (see `answer_chain`), with the reason in the state, whatever its
    `on_refusal`. The answers of a text are read by the retriever's `parse_answers`.

    With a checkpointer, later questions of a thread may be follow-ups, such as "and who wrote it?". `asked_as` in the
    output says how the question was understood. If that is not clear, it is refused with the options.

    Its input is `{"question": ...}` with, if wanted, any input of the retriever: `k`, `seed_entities`, and the output
    of a stage, which is then skipped. Its output is a `WorkflowOutput`.

    Args:
        retriever: Any retriever of this package.
        answerer: An answerer with citations or without, a language model, for `LLMCitedAnswerer(llm)`, or None for the
            entities that the best evidence proposes, without a model.
        fallback: Asked if the retriever finds nothing: a retriever, or an agent such as `explore_agent(...)`, whose
            answer is checked and taken as it is.
        llm: Rewrites the follow-ups that the rules of `FollowUpReader` do not understand. By default, the language
            model of the answerer.
        evidence_style: How the answerer is shown the evidence: "numbered" triples, to be cited, or "documents" in the
            words of the retriever. See `show_evidence`.
        max_tokens: The most tokens of evidence that the answerer is shown. None for no limit.
        count_tokens: Counts them, as the model at hand does.
        budget: Limits of a run. At a limit, the run ends with the results that it has.
        retry: How nodes that call a model are tried again. None for never. By default LangGraph's rules say which
            errors are worth it: limits and failures of servers are, Python's own `TimeoutError` is not.
        checkpointer: Keeps the state of each thread.
        interrupt_before: The nodes to stop before, so that a person can look at the state and edit it. It needs a
            checkpointer.

    Raises:
        InvalidArgumentError: If an argument is of another type, or a node to interrupt before does not exist.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")])
        >>> retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> output = build_workflow(retriever).invoke({"question": "Who directed Her?"})
        >>> output["answer"], output["citations"][0]["triple"]
        ('Spike Jonze', ['Her', 'directed_by', 'Spike Jonze'])
    """
    check_retriever(retriever, "build_workflow")
    chosen: Runnable[Any, Any] = choose_answerer(answerer, ExtractiveCitedAnswerer, LLMCitedAnswerer, "build_workflow")
    if taken := sorted({stage.name for stage in retriever.stages} & {*NODES, "fallback"}):
        raise InvalidArgumentError(f"build_workflow: {taken} are nodes of every workflow; call the stages otherwise.")
    title = type(retriever).__name__.removesuffix("Retriever")
    state = state_types(title, retriever.state_class)
    builder = WorkflowBuilder(f"{title}Workflow", state, WorkflowOutput, chosen, budget, retry)
    graph, own = builder.graph, list(get_type_hints(retriever.state_class))
    stages = retriever.running_stages
    builder.add_beginning(retriever, llm, after=stages[0].name)
    for stage in stages:
        builder.add(stage.name, partial(nodes.run_stage, retriever, stage, own), stage.calls_model)
    for one, following in pairwise(stages):
        graph.add_edge(one.name, following.name)
    last = stages[-1].name
    asked = {type(retriever).__name__: retriever}
    if isinstance(fallback, BaseKGRetriever):
        second = type(fallback).__name__
        asked[f"{second}-2" if second in asked else second] = fallback
    builder.add_answering(evidence_style, max_tokens, count_tokens, asked)

    if fallback is not None:
        builder.add_fallback(fallback, [*asked][-1])
        graph.add_conditional_edges("fallback", _after_search("refuse"), ["verbalize", "check_citations", "refuse"])
        graph.add_conditional_edges(last, _after_search("fallback"), ["verbalize", "fallback", "refuse"])
    else:
        graph.add_conditional_edges(last, _after_search("refuse"), ["verbalize", "refuse"])
    return builder.compile(retriever, checkpointer, interrupt_before)
