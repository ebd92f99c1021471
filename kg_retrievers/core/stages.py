"""Define the stages, their shared state, and their runner.

One body runs sync and async.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import cache
from math import floor
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.config import get_callback_manager_for_config, merge_configs, run_in_executor
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from kg_retrievers.core.documents import whole_documents
from kg_retrievers.deadline import await_foreign, call_foreign
from kg_retrievers.errors import InvalidArgumentError, check_known
from kg_retrievers.graph.validation import reasons
from kg_retrievers.redaction import hide_secrets

#: The least confidence of an answer: chosen on the graphs by hand in `benchmarks/own_graphs/dev`.
MIN_CONFIDENCE = 0.5

#: How likely answers are right, in [0, 1].
Confidence = Annotated[float, Field(ge=0, le=1, strict=True)]


def shown_confidence(confidence: float) -> str:
    """Return a confidence with two digits, cut.

    Cutting keeps it from looking like a threshold that it did not reach.

    Example:
        >>> shown_confidence(0.9677)
        '0.96'
    """
    return f"{floor(100 * confidence) / 100:.2f}"


Input = TypeVar("Input")
Output = TypeVar("Output")

#: A runnable, or a function of one argument. The function may return a runnable, which is run on the same input.
Work = Runnable[Any, Any] | Callable[[Any], Any]


@dataclass(frozen=True)
class Call:
    """Run a runnable or a function on an input.

    The body is sent its output.

    Attributes:
        work: The runnable or function.
        input: Its input.
        shown_as: The name and metadata of its run in callbacks. None for the defaults.
    """

    work: Work
    input: Any
    shown_as: RunnableConfig | None = None


@dataclass(frozen=True)
class Event:
    """Send a custom event to LangChain's callbacks.

    The body is sent None.
    """

    name: str
    data: dict[str, Any]


#: A generator that yields requests and returns the output.
Body = Generator[Call | Event, Any, Output]


def run_sync(body: Body[Output], config: RunnableConfig) -> Output:
    """Run a body to its end. The error of a call is raised inside of the body, which may handle it.

    A call ends at the deadline, if there is one (`kg_retrievers.deadline`), and its error holds no secrets. Each call
    is a LangChain run if callbacks listen. Otherwise functions and bodies are called directly.
    """
    watched = _is_watched(config)
    try:
        request = next(body)
        while True:
            try:
                outcome = None
                if isinstance(request, Call):
                    run = _invoke if watched else _call
                    outcome = call_foreign(run, request.work, request.input, config, request.shown_as)
                elif watched:
                    dispatch_custom_event(request.name, request.data, config=config)
            except Exception as error:
                hide_secrets(error)
                request = body.throw(error)
            else:
                request = body.send(outcome)
    except StopIteration as end:
        output: Output = end.value
        return output
    finally:
        body.close()


async def run_async(body: Body[Output], config: RunnableConfig) -> Output:
    """Run a body to its end, like `run_sync`, with functions in a thread."""
    watched = _is_watched(config)
    try:
        request = next(body)
        while True:
            try:
                outcome = None
                if isinstance(request, Call):
                    run = _ainvoke if watched else _acall
                    outcome = await await_foreign(run(request.work, request.input, config, request.shown_as))
                elif watched:
                    await adispatch_custom_event(request.name, request.data, config=config)
            except Exception as error:
                hide_secrets(error)
                request = body.throw(error)
            else:
                request = body.send(outcome)
    except StopIteration as end:
        output: Output = end.value
        return output
    finally:
        body.close()


def _is_watched(config: RunnableConfig) -> bool:
    """Tell whether callbacks listen to the runs and events under a run.

    Callbacks of a context or the environment count, too.
    """
    return bool(get_callback_manager_for_config(config).handlers)


def _invoke(work: Work, input: Any, config: RunnableConfig, shown_as: RunnableConfig | None) -> Any:
    return coerce_to_runnable(work).invoke(input, merge_configs(config, shown_as))


def _call(work: Work, input: Any, config: RunnableConfig, shown_as: RunnableConfig | None) -> Any:
    if isinstance(work, GeneratorRunnable):
        return run_sync(work.body(input), config)
    if isinstance(work, Runnable):
        return work.invoke(input, merge_configs(config, shown_as))
    output = work(input)
    return _call(output, input, config, shown_as) if isinstance(output, Runnable) else output


async def _ainvoke(work: Work, input: Any, config: RunnableConfig, shown_as: RunnableConfig | None) -> Any:
    return await coerce_to_runnable(work).ainvoke(input, merge_configs(config, shown_as))


async def _acall(work: Work, input: Any, config: RunnableConfig, shown_as: RunnableConfig | None) -> Any:
    if isinstance(work, GeneratorRunnable):
        return await run_async(work.body(input), config)
    if isinstance(work, Runnable):
        return await work.ainvoke(input, merge_configs(config, shown_as))
    output = await run_in_executor(config, work, input)
    return await _acall(output, input, config, shown_as) if isinstance(output, Runnable) else output


class GeneratorRunnable(Runnable[Input, Output]):
    """A runnable written once, as a generator body, for sync and async."""

    @abstractmethod
    def body(self, input: Input) -> Body[Output]:
        """Yield requests, and return the output."""

    def invoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Run the body."""
        check_known(f"{type(self).__name__}.invoke", kwargs, ("input", "config"))

        def run(value: Input, run_manager: CallbackManagerForChainRun, config: RunnableConfig) -> Output:
            return run_sync(self.body(value), config)

        return self._call_with_config(run, input, config)

    async def ainvoke(self, input: Input, config: RunnableConfig | None = None, **kwargs: Any) -> Output:
        """Run the body, awaiting its calls."""
        check_known(f"{type(self).__name__}.ainvoke", kwargs, ("input", "config"))

        async def run(value: Input, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig) -> Output:
            return await run_async(self.body(value), config)

        return await self._acall_with_config(run, input, config)


class Steps(GeneratorRunnable[Mapping[str, Any], Any]):
    """A stage with several calls, written as a generator function."""

    def __init__(self, steps: Callable[[Any], Body[Any]]) -> None:
        """Keep the generator function."""
        self._steps = steps

    def body(self, input: Mapping[str, Any]) -> Body[Any]:
        """Make the calls."""
        return self._steps(input)


#: The name of the custom event that is sent after each stage.
STAGE_EVENT = "kg_retrievers.stage"

#: The name of the custom event that is sent when a question is refused.
REFUSAL_EVENT = "kg_retrievers.refused"

#: The name of the logger that warns of refused questions. Its messages hold the question.
REFUSALS_LOGGER = "kg_retrievers.refusals"

#: The keys in the metadata of a stage's run, and of the runs under it: whose stage, and which.
RETRIEVER_KEY, STAGE_KEY = "kg_retriever", "kg_stage"

#: The most Documents that can be asked for.
MAX_K = 1_000_000

#: The form of a question before it is understood: how many entities of the graph it names, or whether it asks for a
#: description ("open").
QuestionShape = Literal["no entity", "one entity", "several entities", "open"]


#: A text that is not blank.
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


#: The arguments of `invoke` that every retriever takes. Others are results of its stages.
INVOKE_TAKES = ("k", "seed_entities", "min_confidence", "on_refusal")

#: For a TypedDict inside of a state, by `with_config`: it has no further keys.
EXACT = ConfigDict(extra="forbid")

#: A number that JSON can hold.
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]


class RetrievalState(TypedDict, total=False):
    """The state that the stages of every retriever share.

    Each method extends it with keys of its own.

    All values are small and JSON-safe, or Documents, so that a workflow can checkpoint them. The types are checked if a
    caller supplies a value or a person edits it.
    """

    question: str
    k: Annotated[int, Field(ge=1, le=MAX_K, strict=True)]
    #: Keys of entities.
    seed_entities: Annotated[list[str], Field(description="a list of keys of entities, such as ['Her']")]
    #: As the field of this name, for one question.
    min_confidence: Confidence
    #: The answers that all evidence with the top score proposes: see `top_answers`.
    answers: list[str]
    documents: list[Document]


@dataclass(frozen=True)
class Stage:
    """One step of a retriever.

    Attributes:
        name: Unique in its retriever. The node in a workflow has the same name.
        work: From the state to the keys it writes: a method, or a runnable.
        writes: These keys. The stage is skipped if the caller supplied all of them.
        calls_model: Whether it calls a language model, so that a retry may help.
    """

    name: str
    work: Work
    writes: tuple[str, ...]
    calls_model: bool = False

    @property
    def run(self) -> Runnable[Any, dict[str, Any]]:
        """The stage as a runnable."""
        return coerce_to_runnable(self.work)

    def shown_as(self, who: str) -> RunnableConfig:
        """Return the name and metadata of its run for callbacks.

        The metadata names the retriever of the stage.

        Args:
            who: The class of its retriever.
        """
        return {"run_name": self.name, "metadata": {RETRIEVER_KEY: who, STAGE_KEY: self.name}}

    def checked(self, update: Mapping[str, Any], who: str) -> dict[str, Any]:
        """Return what the stage wrote, with whole Documents (`whole_documents`).

        Raises:
            InvalidArgumentError: If it wrote other keys than it declares, or Documents that cannot be read.
        """
        if set(update) != set(self.writes):
            raise InvalidArgumentError(
                f"{who}: the stage {self.name!r} wrote {sorted(update)}, but declares {sorted(self.writes)}."
            )
        return with_whole_documents(update, who)


def with_whole_documents(values: Mapping[str, Any], who: str) -> dict[str, Any]:
    """Return values of a state with whole Documents (`whole_documents`)."""
    documents = values.get("documents")
    return {**values, "documents": whole_documents(documents, who)} if documents else dict(values)


def check_types(state_class: type, inputs: Mapping[str, Any], who: str) -> dict[str, Any]:
    """Check the names and types of inputs for a state.

    A tuple becomes a list, and an integer becomes a float if a float is due.

    Args:
        state_class: The TypedDict of the state.
        inputs: Values of some of its keys, but not of "question".
        who: The class that takes them, for the message.

    Raises:
        InvalidArgumentError: If a key is not of the state, or a value is of another type.
    """
    if not inputs:
        return {}
    names = set(get_type_hints(state_class)) - {"question"} | {"on_refusal"}
    check_known(who, inputs, sorted(names), shown=INVOKE_TAKES)
    try:
        checked: dict[str, Any] = _adapter(state_class).validate_python(dict(inputs))
    except ValidationError as error:
        raise InvalidArgumentError(f"{who}: {reasons(error, inputs)}{_forms(state_class, error)}") from None
    return with_whole_documents(checked, who)


def _forms(state_class: type, error: ValidationError) -> str:
    """Return the correct form of the wrong values, as far as the state says it in a `Field(description=...)`."""
    hints = get_type_hints(state_class, include_extras=True)
    names = dict.fromkeys(str(problem["loc"][0]) for problem in error.errors())
    forms = {name: getattr(hints[name], "__metadata__", ()) for name in names}
    described = {name: getattr(part, "description", None) for name, parts in forms.items() for part in parts}
    return "".join(f" {name} is {form}." for name, form in described.items() if form)


@cache
def _adapter(state_class: type) -> TypeAdapter[Any]:
    return TypeAdapter(with_config(ConfigDict(arbitrary_types_allowed=True))(state_class))
