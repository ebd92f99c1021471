"""The contract, for a retriever and for fields that a user of the package writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

from kg_retrievers import Evidence, GraphIndex, Question, SimGRAGRetriever
from kg_retrievers.core.documents import top_answers
from kg_retrievers.core.prompts import AnswerPrompt
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import RetrievalState, Stage
from kg_retrievers.index import link_question, linker_of
from kg_retrievers.testing import RetrieverContract
from kg_retrievers.testing.other_process import call_in_other_process, load_test_file


class FactsOfEntities(BaseKGRetriever):
    """The facts of the entities that a question names, as somebody else would write it."""

    answer_prompt: AnswerPrompt = PromptTemplate.from_template("{evidence}\n\n{question}")
    #: The relation to leave out.
    without: str = ""

    @classmethod
    def from_index(
        cls,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
        model: Any = None,
        **fields: Any,
    ) -> Self:
        return cls(index=index, **fields)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (
            Stage("link", RunnableLambda(self._link), ("seed_entities",)),
            Stage("list_facts", RunnableLambda(self._list_facts), ("answers", "documents")),
        )

    def _link(self, state: RetrievalState) -> dict[str, Any]:
        seeds, _ = link_question(linker_of(self.index), state["question"])
        return {"seed_entities": seeds}

    def _list_facts(self, state: RetrievalState) -> dict[str, Any]:
        facts = [fact for seed in state["seed_entities"] for fact in self.graph.triples(seed)]
        kept = [fact for fact in facts if fact.relation != self.without]
        evidence = [Evidence((fact,), score=1.0, answers=(fact.tail,)) for fact in kept]
        return {"answers": top_answers(evidence), "documents": self.documents_from(evidence, state["k"])}


class MySimGRAG(SimGRAGRetriever):
    """A method of the package with a field more and another default."""

    k_nodes: int = 8
    #: Who asks.
    user: str = "nobody"


class TestRetrieverOfAUser(RetrieverContract):
    retriever_class = FactsOfEntities
    exact_k_fields: ClassVar[dict[str, Any]] = {}
    takes_llm = False


@pytest.mark.heavy
class TestSubclassOfAMethod(RetrieverContract):
    retriever_class = MySimGRAG
    exact_k_fields: ClassVar[dict[str, Any]] = {"ties": "break", "user": "me"}


def test_the_other_process_is_one() -> None:
    assert call_in_other_process(os.getpid) == call_in_other_process(os.getpid) != os.getpid()
    here, there = (os.environ.get("PYTHONHASHSEED"), call_in_other_process(os.getenv, "PYTHONHASHSEED"))
    assert here != there
    assert here == os.environ.get("PYTHONHASHSEED")


def test_an_error_in_the_other_process_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        call_in_other_process(divmod, 1, 0)
    with pytest.raises(TypeError, match="pickle"):
        call_in_other_process(repr, iter_of_nothing())


def iter_of_nothing() -> Any:
    yield


@pytest.mark.heavy
def test_another_process_starts_where_one_broke_down() -> None:
    with pytest.raises(BrokenProcessPool):
        call_in_other_process(os._exit, 1)
    assert call_in_other_process(abs, -1) == 1


def test_a_test_file_that_fails_to_load_is_no_module(tmp_path: Path) -> None:
    file = tmp_path / "test_broken.py"
    file.write_text("1 / 0", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            load_test_file(str(file), "test_broken")
    with pytest.raises(ImportError, match=r"notes\.txt"):
        load_test_file(str(tmp_path / "notes.txt"), "notes")
