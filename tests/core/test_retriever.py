"""One body for sync and async, and what every retriever inherits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import ConfigDict

from kg_retrievers import KGRetriever, KnowledgeGraph, SimGRAGRetriever
from kg_retrievers.core.prompts import AnswerPrompt
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import REFUSAL_EVENT, Body, Call, GeneratorRunnable, RetrievalState, Stage
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, NoEvidenceError, StaleIndexError
from kg_retrievers.graph import Evidence
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.methods.simgrag.prompts import ANSWER_PROMPT
from kg_retrievers.testing import tiny_graph

GRAPH = tiny_graph()
INDEX = GraphIndex.build(GRAPH, HashedEmbeddings())
AMELIE = tuple(GRAPH.triples("Amélie"))


# --- bodies ---


class Watcher(BaseCallbackHandler):
    """Keeps custom events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.events.append((name, data))


def by_sync(body: Body[Any], watcher: Watcher) -> Any:
    return OneBody(body).invoke(None, {"callbacks": [watcher]})


def by_async(body: Body[Any], watcher: Watcher) -> Any:
    return asyncio.run(OneBody(body).ainvoke(None, {"callbacks": [watcher]}))


class OneBody(GeneratorRunnable[None, Any]):
    """Runs one body."""

    def __init__(self, body: Body[Any]) -> None:
        self.kept = body

    def body(self, input: None) -> Body[Any]:
        return self.kept


both_ways = pytest.mark.parametrize("run", [by_sync, by_async], ids=["sync", "async"])


def fails(error: Exception) -> Runnable[Any, Any]:
    def fail(value: Any) -> Any:
        raise error

    return RunnableLambda(fail, name="fail")


@both_ways
def test_error_that_nobody_handles(run: Callable[[Body[Any], Watcher], Any]) -> None:
    closed = []

    def body(error: Exception) -> Body[None]:
        try:
            yield Call(fails(error), 1)
        finally:
            closed.append(True)

    with pytest.raises(TimeoutError, match="late"):
        run(body(TimeoutError("late")), Watcher())
    with pytest.raises(RuntimeError):  # it would otherwise look like the end of the body
        run(body(StopIteration("end")), Watcher())
    assert closed == [True, True]


async def test_functions_do_not_block_the_event_loop() -> None:
    def body() -> Body[int]:
        thread: int = yield Call(lambda _: threading.get_ident(), None)
        return thread

    assert await OneBody(body()).ainvoke(None) != threading.get_ident()


# --- a retriever in few words ---


class ToyState(RetrievalState, total=False):
    number: int


class Toy(BaseKGRetriever):
    """Counts the letters of the question, then returns facts about Amélie."""

    state_class: ClassVar[type] = ToyState
    model_config = ConfigDict(frozen=False)

    found: tuple[Evidence, ...] = tuple(
        Evidence((triple,), 1 - number / 10, (triple.tail,)) for number, triple in enumerate(AMELIE)
    )
    #: What the first stage writes, in place of what it declares.
    wrote: dict[str, Any] | None = None
    error: Exception | None = None
    answer_prompt: AnswerPrompt = ANSWER_PROMPT

    @classmethod
    def from_index(cls, index: GraphIndex, **fields: Any) -> Self:
        return cls(index=index, **fields)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (
            Stage("count", RunnableLambda(self._count), ("number",)),
            Stage("fetch", RunnableLambda(self._fetch), ("answers", "documents")),
        )

    def _count(self, state: ToyState) -> dict[str, Any]:
        if self.error:
            raise self.error
        return {"number": len(state["question"])} if self.wrote is None else self.wrote

    def _fetch(self, state: ToyState) -> dict[str, Any]:
        return {"answers": [str(state["number"])], "documents": self.documents_from(self.found, state["k"])}


def toy(**fields: Any) -> Toy:
    return Toy.from_index(INDEX, **fields)


def ask_sync(retriever: Toy, **inputs: Any) -> list[Document]:
    return retriever.invoke("Who?", **inputs)


def ask_async(retriever: Toy, **inputs: Any) -> list[Document]:
    return asyncio.run(retriever.ainvoke("Who?", **inputs))


asked = pytest.mark.parametrize("ask", [ask_sync, ask_async], ids=["sync", "async"])


@asked
@pytest.mark.parametrize("wrote", [{}, {"number": 1, "numbr": 2}, {"numbr": 1}], ids=str)
def test_stage_writes_what_it_declares(ask: Callable[..., list[Document]], wrote: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="the stage 'count' wrote"):
        ask(toy(wrote=wrote))


# --- refusal ---

LOST = EntityLinkingError("Found nothing.", ["Her"])


@asked
def test_refusal_is_told_once(ask: Callable[..., list[Document]], caplog: pytest.LogCaptureFixture) -> None:
    watcher = Watcher()
    assert ask(toy(error=LOST), config={"callbacks": [watcher]}) == []
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "Found nothing. Did you mean: 'Her'?")
    ]
    reason = "Found nothing. Did you mean: 'Her'?"
    told = {"retriever": "Toy", "question": "Who?", "reason": reason, "kind": "EntityLinkingError"}
    assert watcher.events == [(REFUSAL_EVENT, told)]


@asked
def test_nothing_found_is_a_refusal(ask: Callable[..., list[Document]]) -> None:
    with pytest.raises(NoEvidenceError, match=r"Toy: nothing in the graph fits the question 'Who\?'"):
        ask(toy(found=()), on_refusal="raise")
    assert ask(toy(found=())) == []


@asked
def test_other_errors_are_no_refusals(ask: Callable[..., list[Document]]) -> None:
    with pytest.raises(TimeoutError):
        ask(toy(error=TimeoutError("late"), on_refusal="empty"))
    with pytest.raises(InvalidArgumentError, match="on_refusal must be 'empty' or 'raise', but got 'no'"):
        ask(toy(), on_refusal="no")


# --- copies ---


@asked
@pytest.mark.parametrize(
    ("inputs", "error", "words"),
    [
        ({"zz": 1}, InvalidArgumentError, "Toy: there is no argument 'zz'; it takes k, seed_entities, min_confidence"),
        ({"numbr": 1}, InvalidArgumentError, "Toy: there is no argument 'numbr'; did you mean 'number'?"),
        ({"k": 0}, InvalidArgumentError, "Toy: k must be greater than or equal to 1, but got 0"),
        ({"k": True}, InvalidArgumentError, "Toy: k must be a valid integer, but got True"),
        ({"seed_entities": 3}, InvalidArgumentError, "seed_entities must be a valid list"),
        ({"seed_entities": "Her"}, InvalidArgumentError, r"is a list of keys of entities, such as \['Her'\]\."),
        ({"seed_entities": ["Her", 3]}, InvalidArgumentError, r"seed_entities.1 must be .* in \['Her', 3\]"),
        ({"seed_entities": ["Amelie"]}, EntityLinkingError, "'Amelie' is no entity key.*'Amélie'"),
        ({"seed_entities": ["Dune"]}, EntityLinkingError, "several entities"),
    ],
    ids=str,
)
def test_inputs_are_checked(
    ask: Callable[..., list[Document]], inputs: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ask(toy(on_refusal="empty"), **inputs)


def test_fields_and_questions_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="Toy: there is no field 'foundd'; did you mean 'found'"):
        toy(foundd=())
    with pytest.raises(InvalidArgumentError, match="Toy: there is no field 'kk'"):
        toy().kk = 3
    with pytest.raises(InvalidArgumentError, match=r"Toy: k must be .* but got 'few'\. It is at least 1 and"):
        toy(k="few")
    with pytest.raises(InvalidArgumentError, match=r"Toy: answer_prompt: .*the prompt has the placeholders"):
        toy().answer_prompt = PromptTemplate.from_template("Mine: {question}")
    with pytest.raises(InvalidArgumentError, match="Toy: the question is empty"):
        toy().invoke(" \n")
    with pytest.raises(AttributeError, match=r"no attribute 'query'.*ask with invoke\(question\)"):
        toy().query("Who directed Her?")


# --- Documents ---


def test_documents_hold_the_evidence() -> None:
    evidence = Evidence(tuple(GRAPH.triples("Q155653", "directed_by")), 0.5, ("Q55400",), True, 0.25, {"by": "hand"})
    (document,) = toy().documents_from([evidence], 5)
    assert document.metadata == {
        "triples": [["Q155653", "directed_by", "Q55400"]],
        "labels": {"Q155653": "千と千尋の神隠し", "Q55400": "宮崎駿"},
        "score": 0.5,
        "rank": 1,
        "retriever": "Toy",
        "answers": ["Q55400"],
        "value": None,
        "confidence": 0.25,
        "truncated": True,
        "style": "grouped",
        "details": {"by": "hand"},
        "question": "",
        "linked": [],
    }
    assert document.page_content == "千と千尋の神隠し -> directed by -> 宮崎駿"
    assert document.id == toy().documents_from([evidence], 1)[0].id


# --- the tool ---


def test_tool() -> None:
    tool = toy().as_tool()
    assert tool.name == "search_knowledge_graph"
    assert list(tool.args) == ["query"]
    assert "Jean-Pierre Jeunet" in tool.invoke({"query": "Who?"})
    named = toy().as_tool(name="films", description="Facts about films.")
    assert (named.name, named.description) == ("films", "Facts about films.")
    with pytest.raises(InvalidArgumentError, match="args_schema"):
        toy().as_tool(dict)
    with pytest.raises(InvalidArgumentError, match="arg_types"):
        toy().as_tool(arg_types={"query": str})


def test_a_retriever_is_built_from_a_file_or_a_saved_folder(tmp_path: Path) -> None:
    file, folder = tmp_path / "films.tsv", tmp_path / "films.index"
    file.write_text("Her\tdirected_by\tSpike Jonze\n", encoding="utf-8")
    GraphIndex.build(KnowledgeGraph.from_file(file), path=folder)
    for place in (file, str(folder)):
        for method in (KGRetriever, SimGRAGRetriever):
            [answer] = method.from_file(place, k=1).invoke("Who directed Her?")
            assert answer.metadata["answers"] == ["Spike Jonze"]


def test_from_file_takes_the_arguments_of_the_reader(tmp_path: Path) -> None:
    file = tmp_path / "films.csv"
    file.write_text("film,what,who\nHer,directed_by,Spike Jonze\n", "utf-8")
    retriever = KGRetriever.from_file(file, columns=("film", "what", "who"), max_tokens=50)
    assert retriever.invoke("Who directed Her?")[0].metadata["answers"] == ["Spike Jonze"]
    GraphIndex.build(KnowledgeGraph.from_file(file, columns=("film", "what", "who")), path=tmp_path / "index")
    with pytest.raises(InvalidArgumentError, match="was read already, but got columns="):
        KGRetriever.from_file(tmp_path / "index", columns=("film", "what", "who"))


def test_a_folder_with_other_embeddings_is_no_folder_for_the_default_ones(tmp_path: Path) -> None:
    GraphIndex.build(tiny_graph(), HashedEmbeddings(64), tmp_path / "index")
    with pytest.raises(StaleIndexError, match=r"was built with .*HashedEmbeddings"):
        KGRetriever.from_file(tmp_path / "index")
