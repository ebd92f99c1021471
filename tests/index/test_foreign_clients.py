"""Clients of embeddings and vector stores that hang, drip or send garbage: in time, and typed."""

from __future__ import annotations

import threading
import time
from typing import Any

import openai
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import OpenAIEmbeddings
from misbehaving import ENDLESS_REPLY, Conduct, MisbehavingServer, http, say_nothing, send

from kg_retrievers import Budget, GraphIndex, HashedEmbeddings, TripleSimilarityRetriever, build_workflow
from kg_retrievers.deadline import deadline
from kg_retrievers.errors import BudgetError, InvalidArgumentError, KGRetrieversError, ModelCallError
from kg_retrievers.index.embeddings import embed
from kg_retrievers.index.server_names import ServerNames, StoredName, letters_of, name_key
from kg_retrievers.index.vector_store import VectorStoreSearch
from kg_retrievers.testing import tiny_graph

#: In seconds: a budget, and how much later a busy machine may end it. Each fault lasts a minute.
LIMIT, LATE = 0.5, 20.0
KEY = "a-key-that-nobody-may-see"
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


class Switched(Embeddings):
    """Hashed embeddings, until they are switched to a client."""

    model = "switched"

    def __init__(self) -> None:
        self.client: Embeddings = HashedEmbeddings()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.client.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.client.embed_query(text)


def client(server: MisbehavingServer) -> OpenAIEmbeddings:
    settings: dict[str, Any] = {"base_url": f"http://127.0.0.1:{server.port}/v1", "api_key": KEY, "max_retries": 0}
    return OpenAIEmbeddings(model="m", check_embedding_ctx_length=False, timeout=60, **settings)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@both
@pytest.mark.parametrize("conduct", [ENDLESS_REPLY, say_nothing], ids=["drip", "silence"])
async def test_embeddings_end_at_the_budget(conduct: Conduct, asynchronous: bool) -> None:
    embeddings = Switched()
    retriever = TripleSimilarityRetriever.from_index(GraphIndex.build(tiny_graph(), embeddings))
    retriever.invoke("Who starred in Amélie?")  # so that everything is compiled
    with MisbehavingServer(conduct) as server:
        embeddings.client = client(server)
        workflow = build_workflow(retriever, budget=Budget(seconds=LIMIT))
        question = {"question": "Who directed the film Amélie with Audrey Tautou?"}
        began = time.monotonic()
        got = await workflow.ainvoke(question) if asynchronous else workflow.invoke(question)
        assert time.monotonic() - began < LIMIT + LATE
        assert "seconds is used up" in got["stopped"]
        assert server.reached.is_set()


GARBAGE: dict[str, bytes] = {
    "html": http(b"<html>"),
    "null": http(b"null"),
    "no data": http(b"{}"),
    "data is a number": http(b'{"data": 3}'),
    "a vector of texts": http(b'{"object":"list","data":[{"index":0,"embedding":["a","b"]}],"model":"m"}'),
    "a vector of null": http(b'{"object":"list","data":[{"index":0,"embedding":[null]}],"model":"m"}'),
    "no vector": http(b'{"object":"list","data":[{"index":0,"embedding":null}],"model":"m"}'),
    "an empty vector": http(b'{"object":"list","data":[{"index":0,"embedding":[]}],"model":"m"}'),
    "too few vectors": http(b'{"object":"list","data":[],"model":"m"}'),
    "the key": http(b'{"error":{"message":"Wrong key ' + KEY.encode() + b'"}}', "401 No"),
}


@pytest.mark.parametrize("reply", GARBAGE.values(), ids=GARBAGE)
def test_garbage_for_vectors_is_a_typed_error(reply: bytes) -> None:
    with MisbehavingServer(send(reply)) as server, pytest.raises((KGRetrieversError, openai.OpenAIError)) as caught:
        embed(client(server), ["Her"])
    assert KEY not in str(caught.value) + repr(caught.value) + repr(vars(caught.value).get("body"))


@pytest.mark.parametrize("rows", [None, 3, ["text"], [None], [[1, "x"]], [[10**400]], [{"a": 1}]])
def test_embeddings_that_return_something_else(rows: Any) -> None:
    class Odd(Switched):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            returned: list[list[float]] = rows
            return returned

    with pytest.raises(InvalidArgumentError, match="embed_documents returned"):
        embed(Odd(), ["Her"])


class Store(InMemoryVectorStore):
    """A store that does what a test says."""

    hits: Any = ()

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        if callable(self.hits):
            return list(self.hits())
        return list(self.hits)


@pytest.mark.parametrize("hits", [[(Document("x", metadata={"number": 1}), None)], [None], [1]])
def test_a_store_that_returns_something_else(hits: Any) -> None:
    store = Store(HashedEmbeddings(8))
    store.hits = hits
    with pytest.raises((InvalidArgumentError, ModelCallError)):
        VectorStoreSearch(store, "l2").near(HashedEmbeddings(8).embed_array(["Her"])[0], 1)


def test_what_another_program_wrote_into_the_store_is_no_name() -> None:
    embeddings = HashedEmbeddings(8)
    store = Store(embeddings)
    names = ServerNames(VectorStoreSearch(store, "l2"), embeddings)
    names.add([StoredName("Her", ("her",), False)])
    foreign = Document("x", metadata={"number": "first"})
    kept = store.get_by_ids([name_key(letters_of("Her"), 0)])[0]
    store.hits = [(foreign, 0.0), (kept, 0.5)]
    (near,) = names.nearest(embeddings.embed_array(["Her"]), 1)
    assert [one.name.name for one in near] == ["Her"]


def test_a_store_without_end_ends_at_the_budget() -> None:

    go_on, store = threading.Event(), Store(HashedEmbeddings(8))
    store.hits = lambda: [go_on.wait(60)]
    began = time.monotonic()
    with deadline(LIMIT, lambda: BudgetError("too late")), pytest.raises(BudgetError, match="too late"):
        VectorStoreSearch(store, "l2").near(HashedEmbeddings(8).embed_array(["Her"])[0], 1)
    assert time.monotonic() - began < LIMIT + LATE
    go_on.set()
