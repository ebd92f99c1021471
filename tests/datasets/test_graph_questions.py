"""The GraphQA benchmark's question sets, each question with its graph: published layouts, and what can be wrong."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from langchain_core.documents import Document

from kg_retrievers.datasets import (
    GraphQuestion,
    Question,
    read_explagraphs,
    read_scene_graphs,
    read_webqsp,
    write_questions,
)
from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError
from kg_retrievers.graph import Triple
from kg_retrievers.methods.g_retriever.graph_prompt import GraphPromptExample


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


def triples(question: GraphQuestion) -> list[tuple[str, ...]]:
    return [tuple(triple) for triple in question.graph.triples()]


def test_a_question_with_a_graph_is_a_question(tmp_path: Path) -> None:
    (question,) = read_explagraphs(write(tmp_path / "dev.tsv", "one\ttwo\tsupport\t(a; causes; b)\n"))
    assert isinstance(question, Question)
    write_questions(tmp_path / "out.jsonl", [question])
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {"question": question.text, "answers": ["support"]}


# --- ExplaGraphs ------------------------------------------------------------------------------------------------------

ROW = "Cannabis should be legal.\tIt's not bad.\tsupport\t(cannabis; synonym of; marijuana)(legal; causes; available)"


@pytest.mark.parametrize("header", ["", "arg1\targ2\tlabel\tgraph\n"])
def test_explagraphs_row(tmp_path: Path, header: str) -> None:
    more = '"The ""three strikes"" law"\ttoo é\tcounter\t (a b; is a ;c)  (c; not causes; a b) '
    first, second = read_explagraphs(write(tmp_path / "train.tsv", f"{header}{ROW}\n\n{more}\n"))
    assert first.text == (
        "Argument 1: Cannabis should be legal.\nArgument 2: It's not bad.\nQuestion: Do argument 1 and argument 2 "
        "support or counter each other? Answer in one word in the form of 'support' or 'counter'."
    )
    assert (first.answers, first.id) == (("support",), "0")
    assert triples(first) == [("cannabis", "synonym of", "marijuana"), ("legal", "causes", "available")]
    assert second.text.startswith('Argument 1: The "three strikes" law\nArgument 2: too é\n')
    assert (second.answers, second.id) == (("counter",), "1")
    assert triples(second) == [("a b", "is a", "c"), ("c", "not causes", "a b")]


@pytest.mark.parametrize(
    "row",
    [
        "only one cell",
        "a\tb\tsupport",
        "a\tb\tsupport\t(a; r; b)\tmore",
        " \tb\tsupport\t(a; r; b)",
        "a\t\tsupport\t(a; r; b)",
        "a\tb\tSupport\t(a; r; b)",
        "a\tb\tneutral\t(a; r; b)",
        "a\tb\tsupport\t",
        "a\tb\tsupport\t(a; r)",
        "a\tb\tsupport\t(a; r; b; c)",
        "a\tb\tsupport\t(a; ; b)",
        "a\tb\tsupport\t(a; r; b) and",
        "a\tb\tsupport\t(a; r; b)(c; r",
        '"a\tb\tsupport\t(a; r; b)',
    ],
)
def test_malformed_explagraphs_row(tmp_path: Path, row: str) -> None:
    path = write(tmp_path / "dev.tsv", f"{ROW}\n{row}\n")
    with pytest.raises(QuestionsLoadError, match="wanted 'argument<TAB>argument<TAB>support or counter") as caught:
        read_explagraphs(path)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_explagraphs_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(QuestionsLoadError, match="No such file"):
        read_explagraphs(tmp_path / "absent.tsv")


def test_explagraphs_without_a_row(tmp_path: Path) -> None:
    with pytest.raises(QuestionsLoadError, match="wanted rows below the header"):
        read_explagraphs(write(tmp_path / "dev.tsv", "arg1\targ2\tlabel\tgraph\n"))


def test_explagraphs_with_a_cell_that_is_too_long(tmp_path: Path) -> None:
    cell = "a" * (csv.field_size_limit() + 1)  # of the whole process; the readers of graphs raise it
    path = write(tmp_path / "dev.tsv", f"{ROW}\n{cell}\tb\tsupport\t(a; r; b)\n")
    with pytest.raises(QuestionsLoadError, match="larger than field limit") as caught:
        read_explagraphs(path)
    assert (caught.value.path, caught.value.line) == (path, 2)


@pytest.mark.real
def test_published_explagraphs(data_dir: Path) -> None:
    """The sizes are those of the paper, table 2."""
    questions = read_explagraphs(data_dir / "explagraphs" / "train_dev.tsv")
    assert len(questions) == 2_766
    assert [question.answers for question in questions].count(("support",)) == 1_534
    assert mean(len(question.graph.entities) for question in questions) == pytest.approx(5.17, abs=0.005)
    assert mean(len(question.graph) for question in questions) == pytest.approx(4.25, abs=0.005)
    assert not any('""' in question.text for question in questions)
    assert questions[-1].id == "2765"


# --- WebQSP -----------------------------------------------------------------------------------------------------------

BIEBER = {
    "id": "WebQTest-0",
    "question": "what is the name of justin bieber brother",
    "answer": ["Jaxon Bieber", "Jaxon Bieber"],
    "q_entity": ["Justin Bieber"],
    "a_entity": ["Jaxon Bieber"],
    "graph": [
        ["Justin Bieber", "people.person.parents", "Jeremy Bieber"],
        ["Jeremy Bieber", "people.person.children", "Jaxon Bieber"],
        ["Jeremy Bieber", "people.person.children", "Jaxon Bieber"],
        ["Justin Bieber", "common.topic.article", ""],
    ],
    "choices": [],
}


def test_webqsp_rows(tmp_path: Path) -> None:
    empty = BIEBER | {"id": "é", "graph": [], "answer": []}
    text = f"\ufeff{json.dumps(BIEBER)}\n\n{json.dumps(empty, ensure_ascii=False)}"
    first, second = read_webqsp(write(tmp_path / "test.jsonl", text))
    assert (first.id, first.text) == ("WebQTest-0", "what is the name of justin bieber brother")
    assert (first.seed_entities, first.answers) == (("Justin Bieber",), ("Jaxon Bieber",))
    assert triples(first) == [tuple(triple) for triple in BIEBER["graph"][:2]]
    assert (second.id, second.answers, len(second.graph), len(second.graph.entities)) == ("é", (), 0, 0)


def test_webqsp_is_read_as_it_is_asked_for(tmp_path: Path) -> None:
    questions = read_webqsp(write(tmp_path / "test.jsonl", f"{json.dumps(BIEBER)}\n{{"))
    assert isinstance(questions, Iterator)
    assert next(questions).id == "WebQTest-0"
    with pytest.raises(QuestionsLoadError) as caught:
        next(questions)
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"{", "no valid JSON at column 2"),
        (b"[" * 100_000, "recursion"),
        (b'{"question": "\xe8"}', "in UTF-8, but got other bytes"),
        ([1], "must be a valid dictionary, but got [1]"),
        (BIEBER | {"question": " "}, "the text must not be empty, but got ' '"),
        (BIEBER | {"id": 5}, "id must be a valid string, but got 5"),
        (BIEBER | {"graph": None}, "graph must be a valid list, but got None"),
        (BIEBER | {"graph": [["a", "r"]]}, "graph.0.2 is missing in ['a', 'r']"),
        (BIEBER | {"graph": [["a", "r", 5]]}, "graph.0.2 must be a valid string, but got 5"),
        (BIEBER | {"graph": [["a", "r", "\ud800"]]}, "half a surrogate pair"),
        (BIEBER | {"answer": "Jaxon Bieber"}, "answer must be a valid list, but got 'Jaxon Bieber'"),
        ({key: value for key, value in BIEBER.items() if key != "q_entity"}, "q_entity is missing in"),
    ],
)
def test_malformed_webqsp_row(tmp_path: Path, row: Any, message: str) -> None:
    path = tmp_path / "test.jsonl"
    bad = row if isinstance(row, bytes) else json.dumps(row).encode()
    path.write_bytes(json.dumps(BIEBER).encode() + b"\n\n" + bad + b"\n")
    with pytest.raises(QuestionsLoadError) as caught:
        list(read_webqsp(path))
    assert (caught.value.path, caught.value.line) == (path, 3)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


def test_webqsp_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(QuestionsLoadError, match="No such file"):
        list(read_webqsp(tmp_path / "absent.jsonl"))
    with pytest.raises(QuestionsLoadError, match="the file is empty"):
        list(read_webqsp(write(tmp_path / "empty.jsonl", "\n \n")))


# --- SceneGraphs ------------------------------------------------------------------------------------------------------

BANANA = {"name": "banana", "attributes": ["small", "yellow"], "x": 248, "y": 55, "w": 64, "h": 34}
SPOTS = {"name": "spots", "attributes": [], "x": 245, "y": 92, "w": 26, "h": 16, "relations": []}
STRAW = {"name": "straw", "attributes": ["white"], "x": 402, "y": 55, "w": 15, "h": 95}
SCENE = {
    "width": 500,
    "height": 375,
    "objects": {
        "67": BANANA | {"relations": [{"object": "62", "name": "to the left of"}, {"object": "62", "name": "near"}]},
        "65": SPOTS,
        "62": STRAW | {"relations": [{"object": "67", "name": "to the right of"}]},
    },
}
ASKED = {"imageId": "2370799", "question": "Is the banana yellow?", "answer": "yes", "isBalanced": True}


def scene_files(tmp_path: Path, graphs: Any, questions: Any) -> tuple[Path, Path]:
    return (
        write(tmp_path / "train_sceneGraphs.json", json.dumps(graphs)),
        write(tmp_path / "questions.json", json.dumps(questions)),
    )


def test_scene_graphs(tmp_path: Path) -> None:
    again = ASKED | {"question": "What is near the straw?", "answer": "banana"}
    files = scene_files(tmp_path, {"2370799": SCENE, "7": {"objects": {}}}, {"0531": ASKED, "é": again})
    first, second = read_scene_graphs(*files)
    assert (first.id, first.text, first.answers) == ("0531", "Is the banana yellow?", ("yes",))
    assert (second.id, second.answers) == ("é", ("banana",))
    assert first.graph is second.graph
    assert triples(first) == [
        ("2370799/67", "to the left of", "2370799/62"),
        ("2370799/67", "near", "2370799/62"),
        ("2370799/62", "to the right of", "2370799/67"),
    ]
    assert {first.graph.label(key) for key in first.graph.entities} == {  # the words of the paper, table 9
        "name: banana; attribute: small, yellow; (x,y,w,h): (248, 55, 64, 34)",
        "name: spots; (x,y,w,h): (245, 92, 26, 16)",
        "name: straw; attribute: white; (x,y,w,h): (402, 55, 15, 95)",
    }


def test_scene_graph_questions_as_a_table(tmp_path: Path) -> None:
    graphs, _ = scene_files(tmp_path, {"2370799": SCENE, "7": {"objects": {}}}, {})
    table = write(
        tmp_path / "questions.CSV",
        'q_id,image_id,question,answer,full_answer\n5,2370799,"Is it small, yellow?",yes,\n6,7,What is it?,sky,\n',
    )
    first, second = read_scene_graphs(graphs, table)
    assert (first.id, first.text, first.answers) == ("0", "Is it small, yellow?", ("yes",))
    assert (second.id, len(second.graph.entities)) == ("1", 0)


def changed(**parts: Any) -> dict[str, Any]:
    """The scene with another banana."""
    banana = {**SCENE["objects"]["67"], **parts}
    return SCENE | {"objects": SCENE["objects"] | {"67": {key: part for key, part in banana.items() if part != ()}}}


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        ([], "list indices"),
        ({}, "'objects' is missing"),
        ({"objects": [1]}, "no attribute 'items'"),
        ({"objects": {"1": "banana"}}, "string indices"),
        (changed(name=()), "'name' is missing"),
        (changed(h=()), "'h' is missing"),
        (changed(x="left"), "invalid literal"),
        (changed(x=float("inf")), "cannot convert float infinity"),
        (changed(attributes="yellow"), "the attributes are 'yellow'"),
        (changed(attributes=[5]), "expected str instance"),
        (changed(relations=[{"object": "62"}]), "'name' is missing"),
        (changed(relations=[{"object": "62", "name": ""}]), "three non-empty texts"),
        (changed(relations=[{"object": "61", "name": "near"}]), "'61', in a relation of '67', is none of its objects"),
    ],
)
def test_malformed_scene_graph(tmp_path: Path, scene: Any, message: str) -> None:
    graphs, questions = scene_files(tmp_path, {"2370799": scene}, {"0531": ASKED})
    with pytest.raises(QuestionsLoadError, match="under the image '2370799', but") as caught:
        read_scene_graphs(graphs, questions)
    assert caught.value.path == graphs
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([ASKED], "wanted an object with questions"),
        ({}, "wanted questions, but there is none"),
        ({"0531": "Is it?"}, "wanted an object with a question under '0531'"),
        ({"0531": ASKED | {"question": ""}}, "question '0531' must have texts"),
        ({"0531": ASKED | {"answer": None}}, "question '0531' must have texts"),
        ({"0531": ASKED | {"imageId": "5"}}, "question '0531' is about the image '5', which is not in"),
        ({"0531": ASKED | {"imageId": 2370799}}, "question '0531' is about the image 2370799, which is not in"),
    ],
)
def test_malformed_scene_graph_question(tmp_path: Path, questions: Any, message: str) -> None:
    files = scene_files(tmp_path, {"2370799": SCENE}, questions)
    with pytest.raises(QuestionsLoadError) as caught:
        read_scene_graphs(*files)
    assert caught.value.path == files[1]
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message", "line"),
    [
        (b"question,answer,image_id\nIs it?,yes,2370799\nIs it?,yes\n", "question '1' is about the image None", 3),
        (b"question,answer,image_id\n,yes,2370799\n", "question '0' must have texts", 2),
        (b"question,answer,imageId\nIs it?,yes,2370799\n", "columns ['image_id'], too", 1),
        (b"", "columns ['answer', 'image_id', 'question'], too", 1),
        (b"question,answer,image_id\n\xe8,yes,2370799\n", "cannot be read", None),
        (b"question,answer,image_id\n", "wanted questions, but there is none", None),
    ],
)
def test_malformed_table_of_questions(tmp_path: Path, table: bytes, message: str, line: int | None) -> None:
    graphs, _ = scene_files(tmp_path, {"2370799": SCENE}, {})
    path = tmp_path / "questions.csv"
    path.write_bytes(table)
    with pytest.raises(QuestionsLoadError) as caught:
        read_scene_graphs(graphs, path)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert message in str(caught.value)


def test_scene_graphs_that_cannot_be_read(tmp_path: Path) -> None:
    graphs, questions = scene_files(tmp_path, {"2370799": SCENE}, {"0531": ASKED})
    with pytest.raises(QuestionsLoadError, match="No such file"):
        read_scene_graphs(tmp_path / "absent.json", questions)
    with pytest.raises(QuestionsLoadError, match="wanted an object with images"):
        read_scene_graphs(write(tmp_path / "list.json", "[]"), questions)
    with pytest.raises(QuestionsLoadError, match="no valid JSON at column 1") as caught:
        read_scene_graphs(write(tmp_path / "cut.json", '{"5":\n}'), questions)
    assert caught.value.line == 2
    with pytest.raises(QuestionsLoadError, match="no valid JSON: maximum recursion"):
        read_scene_graphs(graphs, write(tmp_path / "deep.json", "[" * 100_000))


# --- examples of graph prompts ----------------------------------------------------------------------------------------


def test_the_evidence_of_an_example() -> None:
    first = Document("", metadata={"triples": [["a", "r", "b"]], "labels": {"a": "A"}})
    second = Document("", metadata={"triples": (("b", "r", "c"), ("a", "r", "b"))})
    example = GraphPromptExample.of_documents("Why?", ["x"], [first, second])
    assert example.triples == (Triple("a", "r", "b"), Triple("b", "r", "c"))
    assert example.labels == {"a": "A"}


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"triples": None},
        {"triples": "abc"},
        {"triples": ["abc"]},
        {"triples": [5]},
        {"triples": [["a", "b"]]},
        {"triples": [[1, 2, 3]]},
        {"triples": [["a", "r", None]]},
        {"triples": [], "labels": None},
        {"triples": [], "labels": ["a"]},
        {"triples": [], "labels": {"a": 5}},
        {"triples": [], "labels": {5: "a"}},
    ],
)
def test_evidence_that_is_none(metadata: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="graph prompt: wanted Evidence, a Path, or a Document"):
        GraphPromptExample.of_documents("Why?", ["x"], [Document("", metadata=metadata)])


def test_evidence_is_documents() -> None:
    with pytest.raises(InvalidArgumentError, match="but got 'a text'"):
        GraphPromptExample.of_documents("Why?", ["x"], ["a text"])  # type: ignore[list-item]


@pytest.mark.parametrize("triples", [("abc",), (5,), (None,), (("a", "r"),), (("a", "r", 5),), "abc", 5, None])
def test_triples_of_an_example_that_are_none(triples: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"GraphPromptExample: triples\S* (must be|is missing)"):
        GraphPromptExample("Why?", ("x",), triples)
