"""WebQSP and CWQ in the layouts they are published in, and what can be wrong with them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from question_files import ids, write_lines

from kg_retrievers import KnowledgeGraph, read_question_set
from kg_retrievers.datasets import GraphQuestion, Question, join_graphs, read_webqsp
from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError


def row(number: int) -> dict[str, Any]:
    graph = [[f"t{number}", "r", f"a{number}"], [f"t{number}", "r", ""]]
    asked = {"id": f"WebQTrn-{number}", "question": f"what is {number}", "answer": [f"a{number}"]}
    return asked | {"q_entity": [f"t{number}"], "a_entity": [f"a{number}"], "graph": graph, "choices": []}


ROWS = [row(number) for number in range(40)]


def write_saved(folder: Path, rows: list[Any], parts: int = 2) -> Path:
    """Write what `save_to_disk` of the package `datasets` writes: streams of Arrow, and a state that names them."""
    pyarrow = pytest.importorskip("pyarrow")
    folder.mkdir(parents=True)
    names = [f"data-{part:05}-of-{parts:05}.arrow" for part in range(parts)]
    size = -(-len(rows) // parts)
    for part, name in enumerate(names):
        table = pyarrow.Table.from_pylist(rows[part * size : (part + 1) * size])
        with pyarrow.ipc.new_stream(str(folder / name), table.schema) as stream:
            stream.write_table(table, max_chunksize=7)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}), "utf-8")
    (folder / "dataset_info.json").write_text("{}", "utf-8")
    return folder


def write_parquet(path: Path, rows: list[Any]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


# --- WebQSP and CWQ ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["webqsp", "cwq"])
def test_one_set_in_every_layout(tmp_path: Path, format: Any) -> None:
    write_parquet(tmp_path / "hub" / "data" / "test-00001-of-00002.parquet", ROWS[20:])
    write_parquet(tmp_path / "hub" / "data" / "test-00000-of-00002.parquet", ROWS[:20])
    write_parquet(tmp_path / "hub" / "data" / "validation-00000-of-00001.parquet", ROWS[:3])
    write_saved(tmp_path / "dict" / "test", ROWS)
    write_saved(tmp_path / "dict" / "train", ROWS[:5])
    read = [
        read_question_set(write_lines(tmp_path / "lines" / "test.jsonl", ROWS), format),
        read_question_set(tmp_path / "lines", format, split="test"),
        read_question_set(write_parquet(tmp_path / "test.parquet", ROWS), format),
        read_question_set(write_saved(tmp_path / "saved", ROWS), format),
        read_question_set(tmp_path / "hub", format, split="test"),
        read_question_set(tmp_path / "dict", format, split="test"),
    ]
    for questions in read:
        assert ids(questions) == [one["id"] for one in ROWS]
        first = questions[0]
        assert isinstance(first, GraphQuestion)
        assert (first.text, first.answers, first.seed_entities) == ("what is 0", ("a0",), ("t0",))
        assert list(map(tuple, first.graph.triples())) == [("t0", "r", "a0")]
    assert len(read_question_set(tmp_path / "hub", format, split="dev")) == 3
    assert len(read_question_set(tmp_path / "dict", format, split="train")) == 5
    drawn = read_question_set(tmp_path / "hub", format, split="test", limit=5, seed=1)
    assert ids(drawn) == ids(read_question_set(tmp_path / "dict", format, split="test", limit=5, seed=1))
    assert len(drawn) == 5
    assert ids(drawn) != ids(read_question_set(tmp_path / "hub", format, split="test", limit=5, seed=2))


def test_malformed_rows_are_named_in_every_layout(tmp_path: Path) -> None:
    bad = [*ROWS[:30], ROWS[30] | {"question": " "}]
    saved = write_saved(tmp_path / "saved", bad, parts=1)
    files = {
        write_lines(tmp_path / "test.jsonl", bad): None,
        write_parquet(tmp_path / "test.parquet", bad): None,
        saved: saved / "data-00000-of-00001.arrow",
    }
    for path, file in files.items():
        with pytest.raises(QuestionsLoadError, match="the question is empty") as caught:
            list(read_webqsp(path))
        assert (caught.value.path, caught.value.line) == (file or path, 31)


def test_folders_that_hold_no_such_split(tmp_path: Path) -> None:
    write_lines(tmp_path / "set" / "test.jsonl", ROWS)
    for split in ("train", "validation"):
        with pytest.raises(InvalidArgumentError, match=rf"of which there is no {split!r}\. .*there are: test\."):
            list(read_webqsp(tmp_path / "set", split))
    with pytest.raises(InvalidArgumentError, match=r"of which none is named\. .*there are: test\."):
        list(read_webqsp(tmp_path / "set"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgumentError, match=r"holds no split; wanted files as test\.jsonl or test-00000"):
        list(read_webqsp(tmp_path / "empty"))


def test_files_that_are_no_json_lines(tmp_path: Path) -> None:
    (tmp_path / "rows").write_bytes(pickle.dumps({"a claim": {}}))
    with pytest.raises(QuestionsLoadError, match="wanted JSON lines, one object a line"):
        list(read_webqsp(tmp_path / "rows"))
    with pytest.raises(QuestionsLoadError, match="wanted a text file, but it cannot be read"):
        list(read_webqsp(tmp_path / "none.jsonl"))


def test_a_file_has_no_split(tmp_path: Path) -> None:
    write_lines(tmp_path / "set" / "test.jsonl", ROWS)
    with pytest.raises(InvalidArgumentError, match="is no folder, so it has no split 'test'"):
        list(read_webqsp(tmp_path / "set" / "test.jsonl", "test"))
    with pytest.raises(InvalidArgumentError, match="holds one data set without splits, not 'test'"):
        list(read_webqsp(write_saved(tmp_path / "saved", ROWS), "test"))


@pytest.mark.parametrize("name", ["test.parquet", "test.arrow"])
def test_tables_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(QuestionsLoadError, match="test") as caught:
        list(read_webqsp(tmp_path / name))
    assert caught.value.path == tmp_path / name
    (tmp_path / name).write_bytes(b"no table")
    with pytest.raises(QuestionsLoadError) as caught:
        list(read_webqsp(tmp_path / name))
    assert str(caught.value).count(str(tmp_path / name)) == 1
    empty = write_parquet(tmp_path / "empty.parquet", [])
    with pytest.raises(QuestionsLoadError, match="the file is empty"):
        list(read_webqsp(empty))


# --- GraphQA ----------------------------------------------------------------------------------------------------------


def test_hops_are_refused_where_nothing_tells_them(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "test.jsonl", ROWS)
    with pytest.raises(InvalidArgumentError, match="questions of cwq do not say how many hops they take"):
        read_question_set(path, "cwq", only_hops=[1])


def test_graphs_of_examples_are_joined_by_keys() -> None:
    first = KnowledgeGraph.from_triples([("m1", "r", "m2")], labels={"m2": "Rome"})
    second = KnowledgeGraph.from_triples([("m2", "s", "m3")])
    joined = join_graphs([GraphQuestion("?", graph=graph, id="0") for graph in (first, second, first)])
    assert (len(joined), len(joined.entities), joined.label("m2")) == (2, 3, "Rome")
    assert len(join_graphs([Question("?")])) == 0
