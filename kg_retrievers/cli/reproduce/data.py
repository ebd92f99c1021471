"""Where the question sets of the papers lie: each in a folder of its own, below the one that is named, or in that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kg_retrievers.evaluation.papers.table import Questions


@dataclass(frozen=True)
class Layout:
    """How a set lies on disk.

    Attributes:
        title: What the set is called.
        folders: What its folder may be called.
        files: What one of must be in it; "{split}" stands for the part that is asked.
        graph: The file of the graph that all questions are about; empty where each has its own.
    """

    title: str
    folders: tuple[str, ...]
    files: tuple[str, ...]
    graph: str = ""


_ROWS = ("{split}*.jsonl", "{split}*.parquet", "data/{split}-*.parquet", "{split}/state.json")

#: The sets, by their formats.
LAYOUTS = {
    "metaqa": Layout("MetaQA", ("metaqa", "MetaQA"), ("kb.txt",), "kb.txt"),
    "webqsp": Layout("WebQSP in the layout of RoG", ("webqsp", "RoG-webqsp"), _ROWS),
    "cwq": Layout("CWQ in the layout of RoG", ("cwq", "RoG-cwq"), _ROWS),
    "explagraphs": Layout("ExplaGraphs", ("explagraphs", "expla_graphs"), ("train_dev.tsv",)),
    "scene-graphs": Layout("SceneGraphs", ("scene-graphs", "scene_graphs"), ("questions.csv",)),
    "factkg": Layout("FactKG", ("factkg", "FactKG"), ("{split}*.jsonl",)),
}


@dataclass(frozen=True)
class DataSet:
    """A set that was found.

    Attributes:
        format: Its format.
        folder: Its folder.
    """

    format: str
    folder: Path

    @property
    def graph(self) -> Path | None:
        """The graph that all its questions are about, if there is one."""
        name = LAYOUTS[self.format].graph
        return self.folder / name if name else None


def find_set(home: Path, questions: Questions) -> DataSet | str:
    """Return the set that questions are of, or on one line which file is wanted where."""
    layout = LAYOUTS[questions.format]
    files = [name.format(split=questions.split) for name in layout.files]
    for folder in (*(home / name for name in layout.folders), home):
        if any(any(folder.glob(name)) for name in files):
            return DataSet(questions.format, folder)
    wanted = " or ".join(files)
    return f"{layout.title} is not here: wanted {wanted} in {home / layout.folders[0]} or in {home} itself"
