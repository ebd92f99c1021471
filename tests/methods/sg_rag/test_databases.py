"""Cypher retrieval over several databases: the same found on each, and what users see when a database fails."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from arcadedb import ArcadeDB, is_installed

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Question
from kg_retrievers.database.executor import Executor
from kg_retrievers.errors import KGRetrieversError, StaleIndexError
from kg_retrievers.methods.sg_rag.retriever import CypherRetriever
from kg_retrievers.sample import load_graph, load_questions

pytest.importorskip("ladybug")

from kg_retrievers.database.ladybug import LadybugExecutor

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from cypher_databases import Answers, drawn

# --- the same is found ------------------------------------------------------------------------------------------------


def differing(answers: Answers, questions: Sequence[Question], executor: Executor) -> tuple[list[str], int]:
    """The questions to which a database and the memory have other answers, and to how many there are some."""
    found = []
    other = []
    for question in questions:
        for topic_given in (True, False):
            by_database = answers.by_retriever("database", question, topic_given)
            found.append(bool(by_database.triples))
            if by_database != answers.in_memory(executor):
                other.append(question.text)
    return other, sum(found)


@pytest.mark.heavy
def test_the_sample_graph_in_memory_and_on_ladybug() -> None:
    index = GraphIndex.build(load_graph(), HashedEmbeddings())
    questions = [replace(question, pattern=None) for question in load_questions()]
    with LadybugExecutor.from_graph(index.graph) as executor:
        answers = Answers(index, questions, {"database": executor})
        other, found = differing(answers, questions, executor)
        assert not other
        assert found > 0.9 * 2 * len(questions)


# --- what goes wrong --------------------------------------------------------------------------------------------------

FACTS = [("Her", "directed_by", "Jonze"), ("Adaptation", "directed_by", "Jonze"), ("Her", "starring", "Adams")]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
EXAMPLES = [Question("Which films did Jonze direct?", answers=("Her", "Adaptation"))]
QUESTION = "Which films did Jonze direct?"


def over(executor: Executor, **fields: Any) -> CypherRetriever:
    return CypherRetriever.from_index(INDEX, examples=EXAMPLES, executor=executor, **fields)


def fails(retriever: CypherRetriever, error: type[KGRetrieversError], words: str, **given: Any) -> None:
    """Ask in both ways; each must fail with the error, and soon."""
    for ask in (retriever.invoke, lambda *args, **named: asyncio.run(retriever.ainvoke(*args, **named))):
        start = time.monotonic()
        with pytest.raises(error, match=words):
            ask(QUESTION, **given)
        assert time.monotonic() - start < 30


def test_facts_have_changed_since_the_graph_was_indexed() -> None:
    changed = INDEX.graph.with_changes(added=[("Arrival", "directed_by", "Jonze")])
    with LadybugExecutor.from_graph(changed) as executor:
        fails(over(executor), StaleIndexError, "'Arrival'.*Index the graph of this database again")


def test_a_relation_has_gone_since_the_graph_was_indexed() -> None:
    changed = INDEX.graph.with_changes(removed=[fact for fact in FACTS if fact[1] == "directed_by"])
    with LadybugExecutor.from_graph(changed) as executor:
        fails(over(executor), StaleIndexError, "relation 'directed_by', the database has not.*ndex the graph")


# --- a real server ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def arcadedb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArcadeDB]:
    if not is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    with ArcadeDB(tmp_path_factory.mktemp("arcadedb"), ["metaqa"], memory=1024) as server:
        yield server


@pytest.mark.heavy
def test_300_questions_of_metaqa_in_memory_and_over_bolt(arcadedb: ArcadeDB, metaqa_graph: KnowledgeGraph) -> None:
    index = GraphIndex.build(metaqa_graph, HashedEmbeddings())
    arcadedb.load(metaqa_graph, "metaqa")
    examples, measured = drawn(100)
    with arcadedb.executor("metaqa", explain=False) as executor:
        answers = Answers(index, examples, {"database": executor})
        for questions in measured.values():
            assert differing(answers, questions, executor) == ([], 200)  # with the topic given, and without
