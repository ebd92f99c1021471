"""The papers' tables as data, the plan of a table, the baselines, and a table measured on a small set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.papers.__main__ import main
from benchmarks.papers.baselines import BASELINES, JoinedRetriever
from benchmarks.papers.measure import find_method
from benchmarks.papers.tables import STATISTICS, find_table, paper_names, plan_table, read_paper, state
from kg_retrievers import (
    GraphIndex,
    NeighborhoodRetriever,
    SimGRAGRetriever,
    default_embeddings,
    evaluate,
    read_questions,
)
from kg_retrievers.errors import NoEvidenceError
from kg_retrievers.sample import load_graph
from kg_retrievers.testing import ScriptedChatModel

PAPERS = ("g-retriever", "gnn-rag", "sg-rag", "simgrag", "subgraph-rag")
SAMPLE = Path(__file__).parents[2] / "kg_retrievers" / "sample"


def test_there_are_five_papers() -> None:
    assert tuple(paper_names()) == PAPERS


@pytest.mark.parametrize("name", PAPERS)
def test_tables_are_complete(name: str) -> None:
    """Each row has a figure per column and a run or a reason, and each run is of a method that exists."""
    paper = read_paper(name)
    for table in paper["tables"]:
        assert state(table) != "not" or table.get("why") or table["rows"]
        for row in table.get("rows", ()):
            assert len(row["figures"]) == len(table["columns"])
            assert "run" in row or row["why"]
            if "run" in row:
                methods = paper["runs"][row["run"]]["method"].split("+")
                assert methods == [STATISTICS] or [find_method(one).name for one in methods] == methods


def test_rows_that_need_a_language_model_are_left_out_without_one() -> None:
    paper = read_paper("simgrag")
    table = find_table(paper, "1")
    plan = plan_table(paper, table)
    assert plan.distinct[0].name == "simgrag@metaqa-1-hop.test"
    assert plan.left_out["KAPING"] == "needs a language model: --llm PROVIDER:MODEL"
    asked = plan_table(paper, table, llm=True)
    assert "kaping@metaqa-1-hop.test.llm" in [cell.name for cell in asked.distinct]
    assert {metric for _, metric in asked.cells.values()} == {"text_hits@1", "text_accuracy"}


@pytest.mark.parametrize("name", [method.name for method in BASELINES if method.name != "none"])
def test_baselines_find_facts(name: str) -> None:
    index = GraphIndex.build(load_graph(), default_embeddings())
    retriever: Any = find_method(name).load_retriever().from_index(index, k=5)
    documents = retriever.invoke("Who directed Her?")
    assert 1 <= len(documents) <= 5
    assert documents == retriever.invoke("Who directed Her?")
    assert all(document.metadata["triples"] and not document.metadata["answers"] for document in documents)


def test_random_triples_leave_answers_out() -> None:
    index = GraphIndex.build(load_graph(), default_embeddings())
    retriever = find_method("random").load_retriever().from_index(index, without_answers=True)
    found = retriever.invoke("Who directed Her?", left_out=["Spike Jonze"])
    assert found
    assert not any("Spike Jonze" in triple for document in found for triple in document.metadata["triples"])


def test_a_language_model_answers_without_evidence() -> None:
    index = GraphIndex.build(load_graph(), default_embeddings())
    retriever: Any = find_method("none").load_retriever().from_index(index)
    with pytest.raises(NoEvidenceError):
        retriever.invoke("Who directed Her?", on_refusal="raise")
    (question,) = [one for one in read_questions(SAMPLE / "questions.jsonl") if one.answers][:1]
    llm = ScriptedChatModel(replies=[question.answers[0]])
    report = evaluate(retriever, [question], answerer=retriever.answerer(llm))
    assert report.metrics["text_hit"] == 1


def test_joined_retrievers_give_what_any_of_them_finds() -> None:
    index = GraphIndex.build(load_graph(), default_embeddings())
    first = SimGRAGRetriever.from_index(index)
    both = JoinedRetriever.of(first, NeighborhoodRetriever.from_index(index, granularity="triple", k=3))
    found = [document.metadata for document in both.invoke("Who directed Her?")]
    assert found[0]["answers"] == ["Spike Jonze"]
    facts = [tuple(map(tuple, one["triples"])) for one in found]
    assert len(set(facts)) == len(facts) > 1
    assert all(len(one) == 1 for one in facts)


def test_a_table_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "data" / "metaqa"
    home.mkdir(parents=True)
    graph = load_graph()
    home.joinpath("kb.txt").write_text("\n".join("|".join(triple) for triple in graph.triples()), "utf-8")
    films = [(one.head, one.tail) for one in graph.triples(relation="directed_by")]
    rows = [f"who directed [{film}]\t{director}" for film, director in films]
    kinds = ["movie_to_director", "movie_to_director_to_movie", "movie_to_director_to_movie_to_genre"]
    for hop, kind in enumerate(kinds, start=1):
        (home / f"{hop}-hop").mkdir(parents=True)
        for split in ("test", "train"):
            part = rows[split == "test" :: 2]
            (home / f"{hop}-hop" / f"qa_{split}.txt").write_text("\n".join(part), "utf-8")
            (home / f"{hop}-hop" / f"qa_{split}_qtype.txt").write_text(f"{kind}\n" * len(part), "utf-8")
    options = ["--data", str(tmp_path / "data"), "--records", str(tmp_path / "kept"), "--json", str(tmp_path / "out")]
    assert main(["simgrag", "--table", "1", *options]) == 0
    shown = capsys.readouterr().out
    assert "left out: KAPING: needs a language model" in shown
    figures = json.loads((tmp_path / "out").read_text("utf-8"))["figures"]
    (ours,) = [one for one in figures if one["row"] == "SimGRAG" and "1-hop" in one["column"]]
    assert (ours["paper"], ours["ours"], ours["n"]) == (98.0, 100.0, len(rows[1::2]))
