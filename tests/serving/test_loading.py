"""What the shell and Studio open, load and build by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.embeddings import Embeddings

import kg_retrievers
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, cli, default_embeddings
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import Method, find_method
from kg_retrievers.serving import loading

#: A package as those of LangChain's providers are, which none of the extras installs.
PROVIDER = """
from kg_retrievers import HashedEmbeddings

class HuggingFaceEmbeddings(HashedEmbeddings):
    def __init__(self, model_name):
        if model_name == "refused":
            raise PermissionError("no key is set")
        super().__init__(64)
        self.model_name = model_name
"""


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package of embeddings that LangChain finds."""
    (tmp_path / "langchain_huggingface.py").write_text(PROVIDER, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("langchain_huggingface", None)


# --- a former version -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "today"), [("pcst", "g-retriever"), ("cypher", "sg-rag"), ("triple-similarity", "kaping")]
)
def test_former_names_go_on_working(old: str, today: str) -> None:
    assert find_method(old).name == today


def test_the_name_of_a_class_leads_to_its_method() -> None:
    with pytest.raises(InvalidArgumentError, match="no method 'PCSTRetriever'; did you mean 'g-retriever'"):
        find_method("PCSTRetriever")


# --- retrievers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [one for one in registry.METHODS if not one.needs], ids=lambda method: method.name)
def test_each_method_is_built_by_its_name(method: Method, index: GraphIndex) -> None:
    retriever = loading.build_retriever(method, index, {"k": 2})
    assert type(retriever) is method.load_retriever()
    assert type(retriever).__name__ == method.class_name
    assert retriever.k == 2


def test_a_database_is_opened_for_who_runs_queries_alone(index: GraphIndex) -> None:
    executor = kg_retrievers.LadybugExecutor.from_graph(index.graph)
    opened = []

    def open_once() -> kg_retrievers.LadybugExecutor:
        opened.append(executor)
        return executor

    with executor:
        loading.build_retriever(find_method("simgrag"), index, executor=open_once)
        assert not opened
        loading.build_retriever(find_method("sg-rag"), index, executor=open_once)
        assert len(opened) == 1


def test_an_answerer_retrieves_nothing() -> None:
    saved = loading.SavedModel("films.prompt", registry.GRAPH_PROMPT, None, "c0ffee")
    with pytest.raises(InvalidArgumentError, match=r"films.prompt answers, and retrieves nothing"):
        loading.choose_method(None, {"graph-prompt": saved})


def test_what_is_not_trained_has_no_model() -> None:
    method = find_method("simgrag")
    for load in (method.load_model, method.load_trainer):
        with pytest.raises(InvalidArgumentError, match="simgrag has no trained model"):
            load()


# --- embeddings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("embeddings", "record", "name"),
    [
        (default_embeddings(), {}, loading.STATIC),
        (HashedEmbeddings(), {}, loading.HASHED),
        (HashedEmbeddings(), {"embeddings_name": "hashed"}, loading.HASHED),
    ],
)
def test_an_index_that_was_built_in_python_opens_with_its_own_embeddings(
    tmp_path: Path, embeddings: Embeddings, record: dict[str, str], name: str
) -> None:
    graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
    built = GraphIndex.build(graph, embeddings, tmp_path, **record)
    assert loading.recorded_embeddings(tmp_path) == name
    assert loading.open_index(tmp_path).fingerprint == built.fingerprint


@pytest.mark.usefixtures("provider")
def test_any_embeddings_of_langchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of the index keeps their name."""
    (tmp_path / "films.tsv").write_text("Her\tdirected_by\tSpike Jonze\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    name = "huggingface:small"
    assert cli.main(["index", "films.tsv", "--output", "films.index", "--embeddings", name]) == 0
    assert loading.recorded_embeddings("films.index") == name
    assert loading.open_index("films.index").dimension == 64
    assert cli.main(["ask", "films.index", "Who directed Her?"]) == 0


@pytest.mark.usefixtures("provider")
def test_embeddings_that_cannot_be_used() -> None:
    for name, reason in (
        ("huggingface:refused", "no key is set"),
        ("cohere:model", "pip install langchain-cohere"),
        ("nobody:model", "Provider 'nobody' is not supported"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"the embeddings '{name}' cannot be used: .*{reason}"):
            loading.load_embeddings(name)


def test_embeddings_of_langchain_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.embeddings", None)
    with pytest.raises(MissingExtraError, match=r"the embeddings 'cohere:small' needs .*\[langchain\]"):
        loading.load_embeddings("cohere:small")
    with pytest.raises(MissingExtraError, match=r"the embeddings 'openai:small' needs .*\[openai\]"):
        loading.load_embeddings("openai:small")
