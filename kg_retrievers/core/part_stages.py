"""Runs the stages of a retriever on the parts of a connected graph that they look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor

from kg_retrievers.core.stages import Stage
from kg_retrievers.core.untraced import UntracedRunnable, ainvoke, invoke
from kg_retrievers.index import GraphIndex
from kg_retrievers.index.reach import Reach

#: From the state to what a stage looks at.
Reaches = Callable[[Mapping[str, Any]], Reach]


class PartStage(UntracedRunnable[Mapping[str, Any], dict[str, Any]]):
    """Runs a stage with the part of the graph at hand that it looks at; one that calls a model runs once.

    Args:
        stage: The stage.
        index: The connected index.
        reach: Returns what the stage looks at.
    """

    def __init__(self, stage: Stage, index: GraphIndex, reach: Reaches) -> None:
        """Take the arguments."""
        self._stage, self._index, self._reach = stage, index, reach

    def run_untraced(self, input: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        """Run it."""
        for attempt in self._index.attempts(self._reach(input), once=self._stage.calls_model):
            with attempt:
                update: dict[str, Any] = invoke(self._stage.run, input, config)
        return update

    async def arun_untraced(self, input: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        """Run it; parts are fetched in a thread."""
        reach = await run_in_executor(config, self._reach, input)
        attempts = self._index.attempts(reach, once=self._stage.calls_model)
        while attempt := await run_in_executor(config, next, attempts, None):
            with attempt:
                update: dict[str, Any] = await ainvoke(self._stage.run, input, config)
        return update
