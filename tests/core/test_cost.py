"""What the calls of language models cost, and a limit to them."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from kg_retrievers.core.cost import CostCounter
from kg_retrievers.errors import BudgetError
from kg_retrievers.testing import ScriptedChatModel

PROMPT = "Who directed Her?"  # 17 letters: 5 tokens, at 4 a token


def model(*replies: str | Exception) -> ScriptedChatModel:
    return ScriptedChatModel(replies=list(replies))


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_calls_and_tokens_are_counted(asynchronous: bool) -> None:
    counter, llm = CostCounter(), model("Spike Jonze", TimeoutError("late"))
    config: dict[str, list[CostCounter]] = {"callbacks": [counter]}
    _ = await llm.ainvoke(PROMPT, config) if asynchronous else llm.invoke(PROMPT, config)  # type: ignore[arg-type]
    assert counter.cost(0.5) == {"llm_calls": 1, "input_tokens": 5, "output_tokens": 3, "seconds": 0.5}
    with pytest.raises(TimeoutError):
        _ = await llm.ainvoke(PROMPT, config) if asynchronous else llm.invoke(PROMPT, config)  # type: ignore[arg-type]
    assert counter.cost(1) == {"llm_calls": 2, "input_tokens": 10, "output_tokens": 3, "seconds": 1}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("limits", "message"), [({"llm_calls": 1}, "no more calls of a language model"), ({"tokens": 8}, "no more tokens")]
)
async def test_a_call_beyond_a_limit_is_refused(limits: dict[str, int], message: str, asynchronous: bool) -> None:
    counter, llm = CostCounter(**limits), model("Spike Jonze", "never said")
    llm.invoke(PROMPT, {"callbacks": [counter]})
    with pytest.raises(BudgetError, match=message):
        _ = (
            await llm.ainvoke(PROMPT, {"callbacks": [counter]})
            if asynchronous
            else llm.invoke(PROMPT, {"callbacks": [counter]})
        )
    assert len(llm.prompts) == counter.llm_calls == 1


def test_threads_share_a_counter() -> None:
    counter, llm = CostCounter(), model(*["Spike Jonze"] * 8)
    threads = [threading.Thread(target=llm.invoke, args=(PROMPT, {"callbacks": [counter]})) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counter.llm_calls, counter.input_tokens, counter.output_tokens) == (8, 40, 24)


@pytest.mark.parametrize("count", ["many", None, -3, float("nan"), float("inf"), 10**400, True, [], 2.5])
def test_usage_that_is_no_count_is_not_believed(count: object) -> None:
    counter, run = CostCounter(tokens=1000), uuid4()
    counter.on_llm_start({}, [PROMPT], run_id=run)
    message = AIMessage("Spike Jonze")
    message.usage_metadata = {"input_tokens": count, "output_tokens": count}  # type: ignore[typeddict-item, typeddict-unknown-key]
    counter.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]), run_id=run)
    assert counter.cost(0) == {"llm_calls": 1, "input_tokens": 5, "output_tokens": 3, "seconds": 0}
