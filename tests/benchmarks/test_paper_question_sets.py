"""The question sets that only the papers need: ExplaGraphs, SceneGraphs and FactKG."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from question_files import ids, triples, write, write_lines

from benchmarks.papers.factkg import read_factkg
from benchmarks.papers.graphqa import (
    read_explagraphs,
    read_graphqa_explagraphs,
    read_graphqa_scene_graphs,
    read_scene_graphs,
)
from kg_retrievers.datasets import GraphQuestion
from kg_retrievers.errors import InvalidArgumentError

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


def write_explagraphs(folder: Path, count: int) -> Path:
    folder.mkdir()
    rows = "".join(f"one {number}\ttwo\tsupport\t(a{number}; causes; b)\n" for number in range(count))
    (folder / "train_dev.tsv").write_text(f"arg1\targ2\tlabel\tgraph\n{rows}", "utf-8")
    return folder


def test_explagraphs_is_split_as_published(tmp_path: Path) -> None:
    model_selection = pytest.importorskip("sklearn.model_selection")
    folder = write_explagraphs(tmp_path / "expla", 43)
    train, rest = model_selection.train_test_split(np.arange(43), test_size=0.4, random_state=42)
    validation, test = model_selection.train_test_split(rest, test_size=0.5, random_state=42)
    for names, part in ((("train",), train), (("val", "validation", "dev"), validation), (("test",), test)):
        for name in names:
            read = read_graphqa_explagraphs(folder, name)
            assert ids(read) == [str(position) for position in sorted(part.tolist())]
    assert len(read_graphqa_explagraphs(folder)) == 43
    assert len(read_graphqa_explagraphs(folder / "train_dev.tsv", "test")) == len(test)
    with pytest.raises(InvalidArgumentError, match="GraphQA has the splits train, val and test, but got 'all'"):
        read_graphqa_explagraphs(folder, "all")


def write_scenes(folder: Path, images: int) -> Path:
    folder.mkdir()
    thing = {"name": "cup", "attributes": [], "x": 1, "y": 2, "w": 3, "h": 4, "relations": []}
    scenes = {str(image): {"objects": {"o": thing}} for image in range(images)}
    (folder / "train_sceneGraphs.json").write_text(json.dumps(scenes))
    lines = [f"{image},What is it?,cup\n" for image in range(images) for _ in range(2)]
    (folder / "questions.csv").write_text("image_id,question,answer\n" + "".join(lines))
    return folder


def test_scene_graphs_are_split_by_images_as_published(tmp_path: Path) -> None:
    model_selection = pytest.importorskip("sklearn.model_selection")
    folder = write_scenes(tmp_path / "scenes", 21)
    np.random.seed(42)
    images = np.random.permutation(np.arange(21))
    train, rest = model_selection.train_test_split(images, test_size=0.4, random_state=42)
    validation, test = model_selection.train_test_split(rest, test_size=0.5, random_state=42)
    for name, part in (("train", train), ("val", validation), ("test", test)):
        read = read_graphqa_scene_graphs(folder, name)
        of_images = {next(iter(one.graph.entities)).partition("/")[0] for one in read}
        assert of_images == {str(image) for image in part.tolist()}
        assert len(read) == 2 * len(part)


CLAIM: dict[str, Any] = {
    "claim": "Adam McQuaid weighed 94.8 kilograms and is from Pleasant Springs, Wisconsin.",
    "Label": [False],
    "Entity_set": ["Adam_McQuaid", '"94802.4"', "Pleasant_Springs,_Wisconsin"],
    "Evidence": {"Adam_McQuaid": [["weight"], ["placeOfBirth"]]},
    "types": ["coll:model", "num2", "substitution", "multi claim"],
}


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        (["written", "num1"], "one-hop"),
        (["coll:model", "num2", "multi claim"], "conjunction"),
        (["existence"], "existence"),
        (["multi hop"], "multi-hop"),
        (["num1", "negation"], "negation"),
        (["written"], None),
    ],
)
def test_claims(tmp_path: Path, types: list[str], kind: str | None) -> None:
    path = write_lines(tmp_path / "test.jsonl", [CLAIM | {"types": types}, CLAIM | {"Label": [True]}])
    first, second = read_factkg(path)
    assert (first.text, first.value, first.kind, first.answers) == (CLAIM["claim"], False, kind, ())
    assert first.seed_entities == ("Adam_McQuaid", "94802.4", "Pleasant_Springs,_Wisconsin")
    assert second.value is True
    assert not isinstance(first, GraphQuestion)
    assert read_factkg(tmp_path, "test") == [first, second]
