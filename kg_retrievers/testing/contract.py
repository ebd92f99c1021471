"""The tests that every retriever passes, as a class to subclass."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from inspect import getfile
from typing import Any, ClassVar, cast, get_type_hints
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from kg_retrievers import errors
from kg_retrievers.agents import build_workflow
from kg_retrievers.chains import answer_chain, cited_answer_chain
from kg_retrievers.core.documents import best_answers, best_text, equally_good
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import STAGE_EVENT
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.types import read_paths
from kg_retrievers.graph.verbalize import lone_entities_of
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.testing.chat_model import ScriptedChatModel
from kg_retrievers.testing.other_process import call_in_other_process, load_test_file
from kg_retrievers.testing.tiny_graph import tiny_graph

try:
    import pytest
    from langchain_tests.integration_tests import RetrieversIntegrationTests

    from kg_retrievers.llama_index import as_llama_index
except ImportError as cause:
    raise errors.MissingExtraError("RetrieverContract", "test") from cause

#: The keys of a Document's metadata.
METADATA = {
    "triples",
    "labels",
    "score",
    "rank",
    "retriever",
    "question",
    "linked",
    "answers",
    "value",
    "confidence",
    "truncated",
    "style",
    "details",
}


class RetrieverContract(RetrieversIntegrationTests):
    """The tests that every retriever of this package passes, on top of LangChain's own.

    A subclass in a test file, whose name begins with "Test", sets `retriever_class`, and overrides the tests that do
    not fit. Needs pytest-asyncio with `asyncio_mode = "auto"`, as LangChain's tests do.

    Attributes:
        retriever_class: The class under test.
        question: A question with at least three Documents under `exact_k_fields`.
        unicode_question: A question in another script, with at least one Document.
        unknown_question: A question that names nothing in the graph.
        unclear_question: A question that names an entity, and asks for something that the graph does not hold. A
            retriever with a language model asks it.
        exact_k_fields: Fields under which exactly k Documents come for k = 1, 2 and 3.
        takes_llm: Whether `from_index(index, llm=...)` gives a retriever that calls the language model.
        links_entities: Whether the retriever looks for entities in the question, so that it can find none.
        pickles: Whether the retriever can be deep-copied and pickled. Set it to False if one of its fields cannot, such
            as an open database.

    Example:
        >>> from kg_retrievers import SimGRAGRetriever
        >>> class TestSimGRAG(RetrieverContract):
        ...     retriever_class = SimGRAGRetriever
        ...     exact_k_fields = {"ties": "break"}
    """

    retriever_class: ClassVar[type[BaseKGRetriever]]
    question: ClassVar[str] = "Who starred in Amélie?"
    unicode_question: ClassVar[str] = "Who directed 千と千尋の神隠し?"
    unknown_question: ClassVar[str] = "Who directed Xyzzyplugh?"
    unclear_question: ClassVar[str] = "How much did the tickets of Amélie cost?"
    exact_k_fields: ClassVar[dict[str, Any]] = {"granularity": "triple"}
    takes_llm: ClassVar[bool] = True
    links_entities: ClassVar[bool] = True
    pickles: ClassVar[bool] = True

    # --- to override ------------------------------------------------------------------------------------------------

    def make_index(self, graph: KnowledgeGraph) -> GraphIndex:
        """Index a graph, by default with hashed embeddings."""
        return GraphIndex.build(graph, HashedEmbeddings())

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        """Build the retriever on an index. `fields` may hold arguments of `from_index`."""
        return self.retriever_class(index, **fields)

    # --- what the tests use -----------------------------------------------------------------------------------------

    def build(self, **fields: Any) -> BaseKGRetriever:
        """Build the retriever on a fresh index of the tiny graph."""
        return self.make_retriever(self.make_index(tiny_graph()), **fields)

    def written(self) -> str:
        """Return the results of a fresh retriever, as text."""
        return _written(self.build(k=3).invoke(self.question))

    def _build_to_pickle(self, **fields: Any) -> BaseKGRetriever:
        if not self.pickles:
            pytest.skip("a field of the retriever cannot be pickled")
        return self.build(**fields)

    def _load_in_other_process(self) -> None:
        call_in_other_process(load_test_file, getfile(type(self)), type(self).__module__)

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        """The class that LangChain's tests call with fields."""
        return cast(type[BaseRetriever], self.build)

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        """The fields under which LangChain's tests want exactly k Documents."""
        return dict(self.exact_k_fields)

    @property
    def retriever_query_example(self) -> str:
        """The question of LangChain's tests."""
        return self.question

    def check_documents(self, retriever: BaseKGRetriever, documents: Sequence[Document]) -> None:
        """Check that Documents are made as documented."""
        graph = tiny_graph() if retriever.index.is_connected else retriever.graph
        entities = set(graph.entities)
        scores = [document.metadata["score"] for document in documents]
        assert scores == sorted(scores, reverse=True)
        assert [document.metadata["rank"] for document in documents] == list(range(1, len(documents) + 1))
        assert len({document.id for document in documents}) == len(documents)
        for document in documents:
            metadata = document.metadata
            assert document.id
            assert document.page_content.strip()
            assert set(metadata) == METADATA | ({"sources", "attributes"} if graph.attribute_names else set())
            assert not _not_plain(metadata), "metadata holds more than plain lists, dicts, numbers and texts"
            assert json.loads(json.dumps(metadata, allow_nan=False)) == metadata
            assert type(metadata["score"]) is float
            assert math.isfinite(metadata["score"])
            assert type(metadata["truncated"]) is bool
            assert metadata["confidence"] is None or 0 <= metadata["confidence"] <= 1
            assert metadata["retriever"] == type(retriever).__name__
            assert metadata["style"] == retriever.style
            for linked in metadata["linked"]:
                assert linked["key"] in {key for _, key in metadata["details"]["entities"]}
                assert linked["how"] == "given" or linked["text"] in metadata["question"]
            alone = lone_entities_of(document)
            assert metadata["triples"] or metadata["value"] is not None or alone
            for triple in metadata["triples"]:
                assert tuple(triple) in graph
            assert set(metadata["answers"]) <= entities
            paths = metadata["details"].get("paths", [])
            assert len(read_paths(paths, [Triple(*triple) for triple in metadata["triples"]])) == len(paths)
            keys = {key for head, _, tail in metadata["triples"] for key in (head, tail)}
            keys |= {*metadata["answers"], *alone}
            assert metadata["labels"] == {key: graph.label(key) for key in keys}

    # --- what comes back --------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_exactly_k_documents(self, k: int) -> None:
        """A field and an argument of `invoke` give the same k Documents."""
        by_field = self.build(**self.exact_k_fields, k=k)
        documents = by_field.invoke(self.question)
        assert len(documents) == k
        self.check_documents(by_field, documents)
        by_argument = self.build(**self.exact_k_fields, k=5 - k)
        assert _written(by_argument.invoke(self.question, k=k)) == _written(documents)

    def test_documents_are_as_documented(self) -> None:
        """Metadata, order, identity and facts hold with the fields' defaults too."""
        retriever = self.build()
        assert type(retriever) is self.retriever_class
        for question in (self.question, self.unicode_question):
            for k in (1, 5):
                documents = retriever.invoke(question, k=k)
                assert 1 <= len(documents) <= k
                self.check_documents(retriever, documents)

    def test_same_list_every_time(self) -> None:
        """Neither a second run nor a second build changes anything."""
        retriever = self.build(k=3)
        lists = {_written(retriever.invoke(self.question)) for _ in range(2)}
        assert lists | {self.written()} == {self.written()}

    def test_same_list_under_another_hash_seed(self) -> None:
        """Nothing depends on the order of a set."""
        self._load_in_other_process()
        assert call_in_other_process(type(self)().written) == self.written()

    def test_same_list_in_a_spawned_process(self) -> None:
        """A retriever that was pickled and sent to another process answers there as here, and comes back."""
        retriever = self._build_to_pickle(k=3)
        self._load_in_other_process()
        expected = _written(retriever.invoke(self.question))
        assert _written(call_in_other_process(retriever.invoke, self.question)) == expected
        returned = call_in_other_process(copy.copy, retriever)
        assert type(returned) is type(retriever)
        assert _written(returned.invoke(self.question)) == expected

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
    def test_same_list_of_a_copy(self, copied: Callable[[BaseKGRetriever], BaseKGRetriever]) -> None:
        """Before and after the first question. A change of the copy leaves the retriever as it is."""
        retriever = self._build_to_pickle(k=3)
        early = copied(retriever)
        expected = _written(retriever.invoke(self.question))
        late = copied(retriever)
        assert {_written(one.invoke(self.question)) for one in (early, late)} == {expected}
        late.k = 1
        assert len(late.invoke(self.question)) == 1
        assert _written(retriever.invoke(self.question)) == expected

    async def test_sync_equals_async(self) -> None:
        """`invoke`, `ainvoke`, `batch` and `abatch` give the same list."""
        retriever = self.build()
        expected = _written(retriever.invoke(self.question, k=3))
        assert _written(await retriever.ainvoke(self.question, k=3)) == expected
        questions = [self.question, self.unicode_question]
        lists = [_written(retriever.invoke(question)) for question in questions]
        assert [_written(documents) for documents in retriever.batch(questions)] == lists
        assert [_written(documents) for documents in await retriever.abatch(questions)] == lists

    def test_threads_get_the_same_list(self) -> None:
        """A fresh retriever that several threads ask at once answers as in one thread."""
        questions = [self.question, self.unicode_question] * 4
        one_by_one = [_written(documents) for documents in map(self.build().invoke, questions)]
        with ThreadPoolExecutor(8) as threads:
            at_once = [_written(documents) for documents in threads.map(self.build().invoke, questions)]
        assert at_once == one_by_one

    # --- in chains and workflows --------------------------------------------------------------------------------------

    async def test_workflow_gives_the_same_list(self) -> None:
        """The stages are nodes of the same names, sync and async, and its citations are triples of the Documents."""
        retriever = self.build()
        expected = _written(retriever.invoke(self.question, k=3))
        workflow = build_workflow(retriever)
        assert {stage.name for stage in retriever.stages} <= set(workflow.get_graph().nodes)
        given = {"question": self.question, "k": 3}
        for output in (workflow.invoke(given), await workflow.ainvoke(given)):
            assert _written(output["documents"]) == expected
            shown = [triple for document in output["documents"] for triple in document.metadata["triples"]]
            assert output["citations"]
            assert all(citation["triple"] in shown for citation in output["citations"])

    def test_workflow_can_be_interrupted_before_every_stage(self) -> None:
        """The state so far can be saved, and the workflow goes on to the same list."""
        retriever = self.build()
        expected = _written(retriever.invoke(self.question))
        names = [stage.name for stage in retriever.stages]
        workflow = build_workflow(retriever, checkpointer=InMemorySaver(), interrupt_before=names)
        workflow.invoke({"question": self.question}, _thread("1"))
        for name in names:
            assert workflow.get_state(_thread("1")).next == (name,)
            output = workflow.invoke(None, _thread("1"))
        assert _written(output["documents"]) == expected

    async def test_workflow_says_why_a_question_is_refused(self) -> None:
        """A question without an entity of the graph is refused with a reason."""
        workflow, question = build_workflow(self._build_to_refuse()), {"question": self.unknown_question}
        for output in (workflow.invoke(question), await workflow.ainvoke(question)):
            assert output["documents"] == output["citations"] == []
            assert output["reason"]

    async def test_chains(self) -> None:
        """Answers, with citations of the evidence and without. A model is shown the evidence."""
        retriever = self.build()
        documents = retriever.invoke(self.question)
        best = equally_good(documents)
        if answers := best_answers(documents):
            assert await answer_chain(retriever).ainvoke(self.question) == best_text(documents)
        cited = cited_answer_chain(retriever).invoke(self.question)
        assert cited["answers"] == answers
        facts = {tuple(triple) for one in best for triple in one.metadata["triples"]}
        assert {tuple(citation["triple"]) for citation in cited["citations"]} == facts
        model = ScriptedChatModel(replies=["by the model"])
        assert answer_chain(retriever, model).invoke(self.question) == "by the model"
        assert documents[0].page_content in model.prompts[0][0].text

    async def test_llama_index_gives_the_same_list(self) -> None:
        """As nodes, sync and async, with all metadata, of which a model is shown none. Its prompts have their names."""
        retriever = self.build()
        bridge = as_llama_index(retriever, k=3)
        assert set(bridge.get_prompts()) == set(retriever.prompts)
        for question in (self.question, self.unicode_question):
            documents = retriever.invoke(question, k=3)
            for found in (bridge.retrieve(question), await bridge.aretrieve(question)):
                assert [node.node_id for node in found] == [document.id for document in documents]
                assert [node.metadata for node in found] == [document.metadata for document in documents]
                assert [node.score for node in found] == [document.metadata["score"] for document in documents]
                for node, document in zip(found, documents, strict=True):
                    assert node.text == document.page_content
                    assert set(node.metadata) == set(node.node.excluded_llm_metadata_keys)

    # --- what is refused --------------------------------------------------------------------------------------------

    async def test_refused_question(self) -> None:
        """It gives no Documents, or raises if `on_refusal` says so, as a field or as an argument."""
        retriever, raising = self._build_to_refuse(), self._build_to_refuse(on_refusal="raise")
        assert retriever.invoke(self.unknown_question) == await retriever.ainvoke(self.unknown_question) == []
        assert raising.invoke(self.unknown_question, on_refusal="empty") == []
        with pytest.raises(errors.EntityLinkingError):
            retriever.invoke(self.unknown_question, on_refusal="raise")
        with pytest.raises(errors.EntityLinkingError):
            await raising.ainvoke(self.unknown_question)

    def _build_to_refuse(self, **fields: Any) -> BaseKGRetriever:
        if not self.links_entities:
            pytest.skip("the method looks for no entities")
        return self.build(**fields)

    def test_empty_graph(self) -> None:
        """Nothing can be found in it, so that a question is refused. An error of the set-up is one of this package."""
        try:
            retriever = self.make_retriever(self.make_index(KnowledgeGraph.from_triples([])))
            documents = retriever.invoke(self.question)
        except errors.KGRetrieversError:
            return
        assert documents == []
        with pytest.raises(errors.RefusalError):
            retriever.invoke(self.question, on_refusal="raise")

    async def test_error_of_the_model_is_raised(self) -> None:
        """A language model that fails does not look like a question without evidence."""
        if not self.takes_llm:
            pytest.skip("the method takes no language model")
        retriever = self.build(llm=ScriptedChatModel(replies=[TimeoutError("no answer")], cycle=True))
        with pytest.raises(TimeoutError, match="no answer"):
            retriever.invoke(self.unclear_question)
        with pytest.raises(TimeoutError, match="no answer"):
            await retriever.ainvoke(self.unclear_question)

    @pytest.mark.parametrize("k", [0, -1, "three", 1.5])
    def test_k_out_of_range_is_refused(self, k: Any) -> None:
        """As a field, by assignment and as an argument."""
        retriever = self.build()
        with pytest.raises(errors.InvalidArgumentError):
            self.build(k=k)
        with pytest.raises(errors.InvalidArgumentError):
            retriever.k = k
        with pytest.raises(errors.InvalidArgumentError, match="k must be"):
            retriever.invoke(self.question, k=k)
        assert retriever.k >= 1

    def test_seed_entities_are_checked(self) -> None:
        """They are keys of the graph, in a list."""
        retriever = self.build()
        with pytest.raises(errors.EntityLinkingError, match="Xyzzyplugh"):
            retriever.invoke(self.question, seed_entities=["Xyzzyplugh"])
        with pytest.raises(errors.InvalidArgumentError, match="list"):
            retriever.invoke(self.question, seed_entities="Amélie")

    # --- stages, events and prompts ---------------------------------------------------------------------------------

    def test_stages_are_declared(self) -> None:
        """Names are unique, the output is part of the state, and the last stage writes Documents."""
        retriever = self.build()
        names = [stage.name for stage in retriever.stages]
        written = [key for stage in retriever.stages for key in stage.writes]
        assert len(set(names)) == len(names)
        assert all(stage.writes for stage in retriever.stages)
        assert set(written) <= set(get_type_hints(retriever.state_class)) - {"question", "k", "min_confidence"}
        assert {"answers", "documents"} <= set(written)

    def test_stages_pass_on_what_a_checkpoint_can_hold(self) -> None:
        """Each stage works on a state that went through JSON, except for its Documents."""
        retriever = self.build(k=3)
        state = retriever.initial_state(self.question)
        for stage in retriever.running_stages:
            update = stage.run.invoke(state)
            assert set(update) == set(stage.writes)
            values = {key: value for key, value in update.items() if key != "documents"}
            assert not _not_plain(values), "the state holds more than plain lists, dicts, numbers and texts"
            state |= json.loads(json.dumps(values, allow_nan=False))
            state |= {key: value for key, value in update.items() if key == "documents"}
        assert _written(state["documents"]) == _written(retriever.invoke(self.question))

    def test_answers_are_those_of_all_evidence_with_the_top_score(self) -> None:
        """Best first, each once, with answers that `k` leaves out if the retriever has looked for them."""
        for k in (1, 3, 100):
            retriever = self.build(k=k)
            state = retriever.initial_state(self.question)
            for stage in retriever.running_stages:
                state |= stage.run.invoke(state)
            found = [document.metadata for document in state["documents"]]
            top = [metadata["answers"] for metadata in found if metadata["score"] == found[0]["score"]]
            answers = list(dict.fromkeys(key for keys in top for key in keys))
            assert state["answers"][: len(answers)] == answers
        assert state["answers"] == answers

    def test_what_is_supplied_is_not_computed(self) -> None:
        """A stage is skipped if the caller hands in its whole output. A caller's values have no confidence."""
        retriever = self.build(k=3)
        expected = _without_confidence(retriever.invoke(self.question))
        names = [stage.name for stage in retriever.stages]
        state, supplied = retriever.initial_state(self.question), dict[str, Any]()
        for count, stage in enumerate(retriever.running_stages, 1):
            update = stage.run.invoke(state)
            state |= update
            supplied |= update
            seen = _SeenEvents()
            documents = retriever.invoke(self.question, {"callbacks": [seen]}, **supplied)
            assert seen.stages == names[count:]
            assert _without_confidence(documents) == expected

    def test_low_confidence_is_refused(self) -> None:
        """A retriever that proposes answers is as sure as is wanted, or states no confidence. A call may want less."""
        retriever = self.build(min_confidence=1.0, on_refusal="raise")
        try:
            documents = retriever.invoke(self.question)
        except errors.LowConfidenceError:
            documents = []
        found = [document.metadata for document in documents]
        proposed = [metadata for metadata in found if metadata["answers"] or metadata["value"] is not None]
        assert {metadata["confidence"] for metadata in proposed} <= {None, 1.0}
        assert retriever.invoke(self.question, min_confidence=0)
        with pytest.raises(errors.InvalidArgumentError, match="min_confidence"):
            retriever.invoke(self.question, min_confidence=1.5)

    async def test_stages_are_seen_and_traced(self) -> None:
        """One event for each stage. Everything that runs is a child of the retriever, and so is a retriever it asks."""
        retriever = self.build()
        names = [stage.name for stage in retriever.stages]
        seen = _SeenEvents()
        retriever.invoke(self.question, {"callbacks": [seen]})
        assert seen.stages == names
        events = [event async for event in retriever.astream_events(self.question, version="v2")]
        assert events[0]["event"] == "on_retriever_start"
        assert events[-1]["event"] == "on_retriever_end"
        root = events[0]["run_id"]
        stages = [event for event in events if event["event"] == "on_custom_event" and event["name"] == STAGE_EVENT]
        own = [event for event in stages if event["run_id"] == root]
        assert [cast(dict[str, Any], event["data"])["stage"] for event in own] == names
        children = [event for event in events if event["run_id"] != root]
        assert all(root in event["parent_ids"] for event in children)
        started = [event for event in children if event["event"].endswith("_start") and event["parent_ids"] == [root]]
        assert len(started) == len(names)

    def test_prompts(self) -> None:
        """They are templates, and the one for answering takes a question and evidence."""
        retriever = self.build()
        assert all(isinstance(prompt, BasePromptTemplate) for prompt in retriever.prompts.values())
        assert retriever.answer_prompt in retriever.prompts.values()
        assert set(retriever.answer_prompt.input_variables) == {"question", "evidence"}
        values = dict.fromkeys(retriever.answer_prompt.input_variables, "{千} {0} %s")
        assert "{千} {0} %s" in retriever.answer_prompt.invoke(values).to_string()


class _SeenEvents(BaseCallbackHandler):
    """Keeps the stages of the retriever, without the stages of retrievers that it asks."""

    def __init__(self) -> None:
        #: The names of the stages that ran.
        self.stages: list[str] = []
        self._root: UUID | None = None

    def on_retriever_start(
        self, serialized: dict[str, Any], query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        if parent_run_id is None:
            self._root = run_id

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if run_id == self._root and name == STAGE_EVENT:
            self.stages.append(data["stage"])


def _thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def _written(documents: Sequence[Document]) -> str:
    """Write Documents as text, in the order of everything they hold."""
    return json.dumps([document.model_dump() for document in documents])


def _without_confidence(documents: Sequence[Document]) -> list[dict[str, Any]]:
    rows = [document.model_dump() for document in documents]
    for row in rows:
        del row["metadata"]["confidence"]
    return rows


def _not_plain(value: Any) -> list[Any]:
    """Return values that are no plain list, dict, number, text, truth value or None. Numpy's numbers are not plain."""
    if type(value) is dict:
        return [found for item in value.items() for part in item for found in _not_plain(part)]
    if type(value) is list:
        return [found for item in value for found in _not_plain(item)]
    return [] if value is None or type(value) in (str, int, float, bool) else [value]
