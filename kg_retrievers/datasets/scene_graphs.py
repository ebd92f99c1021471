"""SceneGraphs: questions about images of which only the graph of the objects is given, in the layout of GQA.

Hudson, Manning: GQA: A New Dataset for Real-World Visual Reasoning and Compositional Question Answering. CVPR 2019.
arXiv:1902.09506. Data: https://cs.stanford.edu/people/dorarad/gqa (CC BY 4.0)
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from kg_retrievers.datasets.graph_question import GraphQuestion
from kg_retrievers.errors import QuestionsLoadError
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


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
