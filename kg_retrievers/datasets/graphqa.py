"""GraphQA as G-Retriever lays it out: a folder for ExplaGraphs and one for SceneGraphs, each split 6:2:2.

He et al., "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering", NeurIPS
2024, arXiv:2402.07630, section 4. Its third set, WebQSP, is that of RoG: `read_webqsp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kg_retrievers.datasets.explagraphs import read_explagraphs
from kg_retrievers.datasets.graph_question import GraphQuestion
from kg_retrievers.datasets.scene_graphs import read_scene_graphs
from kg_retrievers.datasets.splits import read_indices, split_graphqa
from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError

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


def read_graphqa_scene_graphs(
    data: Path, split: str | None = None, graphs: str | Path | None = None
) -> list[GraphQuestion]:
    """Read SceneGraphs, split by images.

    Args:
        data: The file of questions, or the folder with `questions.csv`, and perhaps `split/train_indices.txt`, ...
        split: "train", "val" or "test"; all by default.
        graphs: The file of graphs; by default the one file `*sceneGraphs.json` beside the questions.

    Raises:
        InvalidArgumentError: If there is no such split.
        QuestionsLoadError: If a file is missing or cannot be read, or something in it is malformed.
    """
    file = data / "questions.csv" if data.is_dir() else data
    questions = read_scene_graphs(_graphs_beside(file) if graphs is None else graphs, file)
    return _part(questions, data, split, by_graph=True)


def _graphs_beside(questions: Path) -> Path:
    found = sorted(questions.parent.glob("*sceneGraphs.json"))
    if len(found) != 1:
        raise QuestionsLoadError(
            f"wanted one file *sceneGraphs.json of graphs beside it, but there are {len(found)}.",
            questions,
            hint_python="Name it: read_question_set(..., graphs=FILE).",
            hint_shell="Name it: --graph FILE.",
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
