"""Where nobody listens, there are no runs, and everything comes out as with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnablePassthrough
from langchain_core.runnables.config import ensure_config, var_child_runnable_config

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
    return ensure_config({"callbacks": manager, "tags": ["mine"]})


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
        RunnableLambda(deeper),
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
