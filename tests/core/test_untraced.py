"""Where nobody listens, there are no runs, and everything comes out as with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnablePassthrough
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from langchain_core.tracers.context import collect_runs

from kg_retrievers.core.untraced import UntracedRunnable, ainvoke, invoke
from kg_retrievers.testing import ScriptedChatModel


class Runs(BaseCallbackHandler):
    """Keeps the names of the runs."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, *args: Any, name: str | None = None, **kwargs: Any) -> None:
        self.names.append(str(name))

    def on_chat_model_start(self, *args: Any, tags: list[str] | None = None, **kwargs: Any) -> None:
        self.names.append(f"model {sorted(tags or ())}")


def run_sync(runnable: Runnable[Any, Any], input: Any, config: RunnableConfig) -> Any:
    return invoke(runnable, input, config)


def run_async(runnable: Runnable[Any, Any], input: Any, config: RunnableConfig) -> Any:
    return asyncio.run(ainvoke(runnable, input, config))


both_ways = pytest.mark.parametrize("run", [run_sync, run_async], ids=["sync", "async"])
Run = Callable[[Runnable[Any, Any], Any, RunnableConfig], Any]


def config_of(*handlers: BaseCallbackHandler) -> RunnableConfig:
    manager = CallbackManager(list(handlers), inheritable_handlers=list(handlers))
    return {"callbacks": manager, "tags": ["mine"]}


class Double(UntracedRunnable[int, int]):
    """Doubles a number."""

    def run_untraced(self, input: int, config: RunnableConfig) -> int:
        return 2 * input


class OtherDouble(Double):
    """Has an `invoke` of its own, which counts."""

    def invoke(self, input: int, config: RunnableConfig | None = None, **kwargs: Any) -> int:
        return 2 * input + 1

    async def ainvoke(self, input: int, config: RunnableConfig | None = None, **kwargs: Any) -> int:
        return 2 * input + 1


class Adder:
    """Adds a number, as a method."""

    def add(self, value: int) -> int:
        return value + 1


def with_config(value: int, config: RunnableConfig) -> list[Any]:
    return [value, config["tags"]]


def numbers(value: int) -> Any:
    yield [value]
    yield [value + 1]


async def awaited(value: int) -> int:
    return value - 1


def deeper(value: int) -> Runnable[int, int]:
    return Double() | RunnableLambda(Adder().add)


def deeper_by_run(value: int) -> Runnable[int, int]:
    return RunnableLambda(Adder().add, afunc=awaited)


def later(value: int) -> Runnable[int, int]:
    return RunnableLambda(awaited)


def context_of(value: int) -> list[Any]:
    config = ensure_config()
    return [config[name] for name in ("tags", "metadata", "recursion_limit", "configurable")]


def any_values(*values: int) -> tuple[int, ...]:
    return values


class Context(Double):
    """Returns what it finds in its context."""

    def run_untraced(self, input: int, config: RunnableConfig) -> Any:
        return context_of(input)


@both_ways
@pytest.mark.parametrize(
    "runnable",
    [
        RunnableLambda(Adder().add),
        RunnableLambda(lambda value: value * value),
        RunnableLambda(str),
        RunnableLambda(with_config),
        RunnableLambda(numbers),
        RunnableLambda(Adder().add, afunc=awaited),
        RunnableLambda(any_values),
        RunnableLambda(deeper),
        RunnableLambda(deeper_by_run),
        RunnablePassthrough(),
        Double(),
        OtherDouble(),
        Double() | RunnableLambda(Adder().add) | OtherDouble() | RunnableLambda(lambda value: -value),
        (Double() | RunnableLambda(str)).with_config(tags=["more"]),
    ],
)
def test_outputs_are_those_of_runs(run: Run, runnable: Runnable[Any, Any]) -> None:
    watcher = Runs()
    assert run(runnable, 3, config_of()) == run(runnable, 3, config_of(watcher))


@both_ways
@pytest.mark.parametrize("runnable", [RunnableLambda(context_of), Context(), Double() | RunnableLambda(context_of)])
def test_what_runs_around_it_is_known_inside(run: Run, runnable: Runnable[Any, Any]) -> None:
    """As LangGraph's writer of a stream and the id of its thread, which stand in the config of a node."""

    def node(config: RunnableConfig) -> Runnable[int, list[Any]]:
        return RunnableLambda(lambda value: run(runnable, value, config))

    around: RunnableConfig = {"configurable": {"thread_id": "t"}, "recursion_limit": 7, "metadata": {"by": "me"}}
    found = node(config_of()).invoke(3, around)
    assert found == node(config_of(Runs())).invoke(3, around)
    assert found == [["mine"], {"by": "me"}, 7, {"thread_id": "t"}]


def test_a_function_may_return_what_only_awaits() -> None:
    assert [run_async(RunnableLambda(later), 3, config) for config in (config_of(), config_of(Runs()))] == [2, 2]


@both_ways
def test_a_handler_that_each_run_takes_from_the_context_is_told(run: Run) -> None:
    with collect_runs() as seen:
        assert run(Double() | RunnableLambda(Adder().add), 3, config_of()) == 7
    assert [one.name for one in seen.traced_runs] == ["RunnableSequence"]


@both_ways
def test_runs_are_made_where_somebody_listens(run: Run) -> None:
    watcher = Runs()
    assert run(Double() | RunnableLambda(Adder().add), 3, config_of(watcher)) == 7
    assert watcher.names == ["RunnableSequence", "Double", "add"]
    assert (Double().invoke(2, {"callbacks": [watcher]}), watcher.names[-1]) == (4, "Double")


@both_ways
def test_errors_come_out(run: Run) -> None:
    with pytest.raises(ZeroDivisionError):
        run(RunnableLambda(lambda value: 1 // value), 0, config_of())


@both_ways
def test_a_model_inside_of_a_function_knows_the_tags(run: Run) -> None:
    watcher = Runs()
    model = ScriptedChatModel(replies=["yes"], callbacks=[watcher])
    assert run(RunnableLambda(lambda question: model.invoke(question).text), "?", config_of()) == "yes"
    assert watcher.names == ["model ['mine']"]


def test_nothing_is_left_behind() -> None:
    before = var_child_runnable_config.get()
    invoke(RunnableLambda(lambda value: value), 1, config_of())
    assert var_child_runnable_config.get() is before
