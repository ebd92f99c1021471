"""The question sets of GraphQA: ExplaGraphs and SceneGraphs, as G-Retriever lays them out and splits them.

He et al., "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering", NeurIPS
2024, arXiv:2402.07630, section 4. Its third set, WebQSP, is that of RoG: `read_webqsp`.

Saha, Yadav, Bauer, Bansal: ExplaGraphs: An Explanation Graph Generation Task for Structured Commonsense Reasoning.
EMNLP 2021. arXiv:2104.07644. Data: https://explagraphs.github.io (MIT)

Hudson, Manning: GQA: A New Dataset for Real-World Visual Reasoning and Compositional Question Answering. CVPR 2019.
arXiv:1902.09506. Data: https://cs.stanford.edu/people/dorarad/gqa (CC BY 4.0)
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.datasets import GraphQuestion
from kg_retrievers.datasets.types import read_lines
from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array

#: The labels, which are the answers.
LABELS = ("support", "counter")

#: What is asked, in the words of the paper (figure 2).
ASKED = (
    "Question: Do argument 1 and argument 2 support or counter each other? "
    "Answer in one word in the form of 'support' or 'counter'."
)

_HEADER = ["arg1", "arg2", "label", "graph"]
_TRIPLE = re.compile(r"\s*\(([^;()]*);([^;()]*);([^;()]*)\)\s*")


def read_explagraphs(path: str | Path) -> list[GraphQuestion]:
    """Read a published file, such as `train.tsv`, or G-Retriever's `train_dev.tsv`, which has a header.

    A row is `argument<TAB>argument<TAB>label<TAB>(head; relation; tail)(head; relation; tail)`. The text is the two
    arguments and what is asked, the answer "support" or "counter", `id` the number of the row from 0. Entities are the
    names as they are written.

    Differs from G-Retriever's code: its text ends in "Answer:", which is left to the prompt.

    Args:
        path: The file, in UTF-8.

    Raises:
        QuestionsLoadError: If the file cannot be read or holds no row, or a row is malformed; names the line.
    """
    rows = []
    for line, text in read_lines(path):
        try:
            rows.append((line, next(csv.reader([text], delimiter="\t"))))
        except csv.Error as error:
            raise QuestionsLoadError(
                f"wanted cells between tabs, but they cannot be read: {error}.", path, line
            ) from error
    if rows[0][1] == _HEADER:
        del rows[0]
    if not rows:
        raise QuestionsLoadError("wanted rows below the header, but there is none.", path)
    questions = []
    for number, (line, cells) in enumerate(rows):
        triples = _triples(cells[3]) if len(cells) == 4 and cells[0].strip() and cells[1].strip() else []
        if not triples or cells[2] not in LABELS:
            raise QuestionsLoadError(
                "wanted 'argument<TAB>argument<TAB>support or counter<TAB>(head; relation; tail)(head; relation; "
                f"tail)', but got {cells!r:.300}.",
                path,
                line,
            )
        questions.append(
            GraphQuestion(
                f"Argument 1: {cells[0]}\nArgument 2: {cells[1]}\n{ASKED}",
                answers=(cells[2],),
                graph=KnowledgeGraph.from_triples(triples),
                id=str(number),
                in_words=True,
            )
        )
    return questions


def _triples(text: str) -> list[tuple[str, ...]]:
    """Return the triples of a text that holds nothing else; else none."""
    triples = [tuple(map(str.strip, row)) for row in _TRIPLE.findall(text)]
    return [] if _TRIPLE.sub("", text) or not all(map(all, triples)) else triples


def read_scene_graphs(graphs: str | Path, questions: str | Path) -> list[GraphQuestion]:
    """Read questions with the graphs of their images.

    - `graphs`: `{image: {"objects": {object: {"name": text, "attributes": [text, ...], "x": 0, "y": 0, "w": 0, "h": 0,
      "relations": [{"name": text, "object": object}, ...]}}}}`, such as `train_sceneGraphs.json`.
    - `questions`: `{id: {"question": text, "answer": text, "imageId": image}}`, such as
      `train_balanced_questions.json`; or CSV with the columns `question`, `answer` and `image_id`, as G-Retriever has
      them: there, `id` is the number of the row from 0.

    Other keys and columns are ignored. An object becomes the entity "image/object", labelled as in G-Retriever (table
    9): "name: banana; attribute: small, yellow; (x,y,w,h): (248, 55, 64, 34)". Objects without relations are entities
    too. Questions about one image share its graph; a split into training and test should not cut between them.

    Args:
        graphs: The file of graphs; all of it is read into memory.
        questions: The file of questions: CSV if its suffix is ".csv", else JSON.

    Raises:
        QuestionsLoadError: If a file cannot be read, or something in it is malformed; names the line, or the image or
            question. If there is no question.
    """
    read = _read_csv if Path(questions).suffix.lower() == ".csv" else _read_json
    images, made, found = _object(_json(graphs), "images", graphs), dict[str, KnowledgeGraph](), []
    for line, name, text, answer, image in read(questions):
        if not (isinstance(text, str) and text.strip() and isinstance(answer, str) and answer.strip()):
            raise QuestionsLoadError(
                f"question {name!r} must have texts under 'question' and 'answer', but got {text!r:.100} and "
                f"{answer!r:.100}.",
                questions,
                line,
            )
        if not isinstance(image, str) or image not in images:
            raise QuestionsLoadError(
                f"question {name!r} is about the image {image!r:.100}, which is not in {graphs}.", questions, line
            )
        if image not in made:
            try:
                made[image] = _graph(image, images[image])
            except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
                raise QuestionsLoadError(
                    "wanted {'objects': {object: {'name', 'attributes', 'x', 'y', 'w', 'h', 'relations': [{'name', "
                    f"'object'}}]}}}}}} under the image {image!r}, but {_reason(error)}.",
                    graphs,
                ) from error
        found.append(GraphQuestion(text, answers=(answer,), graph=made[image], id=name, in_words=True))
    if not found:
        raise QuestionsLoadError("wanted questions, but there is none.", questions)
    return found


_Row = tuple[int | None, str, Any, Any, Any]


def _read_json(path: str | Path) -> list[_Row]:
    rows = _object(_json(path), "questions", path)
    for name, row in rows.items():
        _object(row, f"a question under {name!r}", path)
    return [(None, name, row.get("question"), row.get("answer"), row.get("imageId")) for name, row in rows.items()]


def _read_csv(path: str | Path) -> list[_Row]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns, rows = reader.fieldnames or (), [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise QuestionsLoadError(f"wanted CSV in UTF-8, but it cannot be read: {error}.", path) from error
    if missing := {"question", "answer", "image_id"}.difference(columns):
        raise QuestionsLoadError(f"wanted a header with the columns {sorted(missing)}, too.", path, 1)
    return [
        (line, str(number), row["question"], row["answer"], row["image_id"]) for number, (line, row) in enumerate(rows)
    ]


def _json(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_bytes())
    except OSError as error:
        raise QuestionsLoadError(f"wanted a JSON file, but it cannot be read: {error.strerror}.", path) from error
    except json.JSONDecodeError as error:
        raise QuestionsLoadError(f"no valid JSON at column {error.colno}: {error.msg}.", path, error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise QuestionsLoadError(f"no valid JSON: {error}.", path) from error


def _object(value: Any, what: str, path: str | Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise QuestionsLoadError(f"wanted an object with {what}, but got {value!r:.200}.", path)
    return value


def _graph(image: str, scene: Any) -> KnowledgeGraph:
    objects = scene["objects"]
    triples = []
    for key, thing in objects.items():
        for relation in thing["relations"]:
            if relation["object"] not in objects:
                raise ValueError(f"{relation['object']!r}, in a relation of {key!r}, is none of its objects")
            triples.append((f"{image}/{key}", relation["name"], f"{image}/{relation['object']}"))
    return KnowledgeGraph.from_triples(
        triples, labels={f"{image}/{key}": _label(thing) for key, thing in objects.items()}
    )


def _label(thing: dict[str, Any]) -> str:
    if not isinstance(thing["attributes"], list):
        raise TypeError(f"the attributes are {thing['attributes']!r:.100}")
    attributes = f"; attribute: {', '.join(thing['attributes'])}" if thing["attributes"] else ""
    x, y, w, h = (int(thing[side]) for side in "xywh")
    return f"name: {thing['name']}{attributes}; (x,y,w,h): ({x}, {y}, {w}, {h})"


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


#: The names of splits, each with the field of `SplitQuestions`.
_SPLITS = {"train": "train", "val": "validation", "validation": "validation", "dev": "validation", "test": "test"}


def read_graphqa_explagraphs(data: Path, split: str | None = None) -> list[GraphQuestion]:
    """Read ExplaGraphs, of which `train_dev.tsv` is split.

    Args:
        data: The file, or the folder that holds it, and may hold `split/train_indices.txt` and so on.
        split: "train", "val" or "test"; all by default.

    Raises:
        InvalidArgumentError: If there is no such split.
        QuestionsLoadError: If a file cannot be read, or a row is malformed; names the line.
    """
    file = data / "train_dev.tsv" if data.is_dir() else data
    return _part(read_explagraphs(file), data, split, by_graph=False)


def read_graphqa_scene_graphs(data: Path, split: str | None = None) -> list[GraphQuestion]:
    """Read SceneGraphs, split by images.

    Args:
        data: The file of questions, or the folder with `questions.csv`, and perhaps `split/train_indices.txt`. The one
            file `*sceneGraphs.json` beside it holds the graphs.
        split: "train", "val" or "test"; all by default.

    Raises:
        InvalidArgumentError: If there is no such split.
        QuestionsLoadError: If a file is missing or cannot be read, or something in it is malformed.
    """
    file = data / "questions.csv" if data.is_dir() else data
    questions = read_scene_graphs(_graphs_beside(file), file)
    return _part(questions, data, split, by_graph=True)


def _graphs_beside(questions: Path) -> Path:
    found = sorted(questions.parent.glob("*sceneGraphs.json"))
    if len(found) != 1:
        raise QuestionsLoadError(
            f"wanted one file *sceneGraphs.json of graphs beside it, but there are {len(found)}.",
            questions,
            hint_python="Name it: read_scene_graphs(FILE, questions).",
        )
    return found[0]


def _part(questions: Sequence[GraphQuestion], data: Path, split: str | None, *, by_graph: bool) -> list[GraphQuestion]:
    if split is None:
        return list(questions)
    if split not in _SPLITS:
        raise InvalidArgumentError(f"GraphQA has the splits train, val and test, but got {split!r}.")
    part = _SPLITS[split]
    listed = data / "split" / f"{'val' if part == 'validation' else part}_indices.txt"
    if listed.is_file():
        return read_indices(questions, listed)
    found: list[GraphQuestion] = getattr(split_graphqa(questions, by_graph=by_graph), part)
    return found


class SplitQuestions(NamedTuple):
    """The three parts of a question set, each in the order of the set."""

    train: list[GraphQuestion]
    validation: list[GraphQuestion]
    test: list[GraphQuestion]


def split_graphqa(questions: Sequence[GraphQuestion], *, by_graph: bool = False) -> SplitQuestions:
    """Split ExplaGraphs or SceneGraphs 6:2:2, each question where G-Retriever's code puts it.

    That is a permutation by numpy's first generator with the seed 42, cut as scikit-learn cuts it: of the positions of
    ExplaGraphs, and for SceneGraphs of its images, permuted before.

    Args:
        questions: All questions of the set, in its order.
        by_graph: Whether questions that share a graph stay together, as those of SceneGraphs do.
    """
    keys: list[object] = [one.graph for one in questions] if by_graph else list(range(len(questions)))
    distinct = list(dict.fromkeys(keys))
    order = _permutation(len(distinct)) if by_graph else np.arange(len(distinct))
    rest, train = _cut(order, 0.4)
    test, validation = _cut(rest, 0.5)
    parts = [{distinct[position] for position in part.tolist()} for part in (train, validation, test)]
    split = ([one for one, key in zip(questions, keys, strict=True) if key in part] for part in parts)
    return SplitQuestions(*split)


def _permutation(count: int) -> Array:
    return np.random.RandomState(42).permutation(count)


def _cut(order: Array, share: float) -> tuple[Array, Array]:
    """Return a share of what is in an order, drawn at random, and the rest."""
    permuted, count = order[_permutation(len(order))], ceil(share * len(order))
    return permuted[:count], permuted[count:]


def read_indices(questions: Sequence[GraphQuestion], path: str | Path) -> list[GraphQuestion]:
    """Return the questions whose positions, from 0, a file lists, one a line, in the order of the set.

    G-Retriever writes such files, as `split/test_indices.txt`.

    Raises:
        QuestionsLoadError: If the file cannot be read, or a line is no position of a question; names the line.
    """
    positions = set()
    for line, text in read_lines(path):
        if not text.strip().isdecimal() or int(text) >= len(questions):
            raise QuestionsLoadError(
                f"wanted a number from 0 to {len(questions) - 1:,}, the position of a question, but got {text!r:.100}.",
                path,
                line,
            )
        positions.add(int(text))
    return [questions[position] for position in sorted(positions)]
