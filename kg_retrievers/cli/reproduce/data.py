"""Where the question sets of the papers lie: each in a folder of its own, below the one that is named, or in that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kg_retrievers.errors import KGRetrieversError

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

#: Names of one split in different sets.
_SAME_SPLIT = ("validation", "dev", "val")

#: What the ids of CWQ look like, as WebQTest-832_c334509bb5e02cacae1ba2e80c176499; those of WebQSP end in the number.
_CWQ_ID = re.compile(r"WebQ\w+-\d+_\w+")

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
    for name in layout.folders:
        if _holds(home / name, questions.format, questions.split):
            return DataSet(questions.format, home / name)
    held = ""
    if _holds(home, questions.format, questions.split):
        held = _set_in(home, questions.split)
        if held == questions.format:
            return DataSet(questions.format, home)
    wanted = " or ".join(_files(questions.format, questions.split))
    where = f"{home} itself, which is taken for {LAYOUTS[held].title}" if held else f"{home} itself"
    return f"{layout.title} is not here: wanted {wanted} in {home / layout.folders[0]} or in {where}"


def missing_part(found: DataSet, questions: Questions) -> str:
    """Return which file of a part of MetaQA is wanted where; nothing where it is there, or of another set."""
    from kg_retrievers.datasets.question_sets import PARAPHRASES  # loads numpy, which the help does not need

    if questions.format != "metaqa":
        return ""
    home, split = found.folder / f"{questions.hops}-hop", questions.split
    plain = split.removesuffix(PARAPHRASES)
    names = (f"qa_{plain}.txt", f"vanilla/qa_{plain}.txt")
    if plain != split:
        names = (f"ntm/qa_{plain}.txt", f"qa_{plain}_ntm.txt")
    if any((home / name).is_file() for name in names):
        return ""
    return f"{home}: wanted {names[0]!r} or {names[1]!r} here; give it, or name another part"


def _files(format: str, split: str) -> list[str]:
    splits = _SAME_SPLIT if split in _SAME_SPLIT else (split,)
    return [name.format(split=one) for one in splits for name in LAYOUTS[format].files]


def _holds(folder: Path, format: str, split: str) -> bool:
    return any(any(folder.glob(name)) for name in _files(format, split))


def _set_in(home: Path, split: str) -> str:
    """Return which set a folder is: of several that its files may be, by its name, else by the id of a row."""
    several = [format for format in LAYOUTS if _holds(home, format, split)]
    named = [format for format in several if home.resolve().name in LAYOUTS[format].folders]
    return (named or [_set_of_rows(home, split, several[0])])[0]


def _set_of_rows(home: Path, split: str, otherwise: str) -> str:
    """Return which set the rows of a folder are of, by the first; CWQ's ids are WebQSP's with more behind them."""
    from kg_retrievers.datasets.row_files import read_each_row  # loads numpy, which the help does not need

    try:
        row = next(read_each_row(home, split, dict))
    except (KGRetrieversError, StopIteration):  # it is told when the rows are read
        return otherwise
    if "claim" in row:
        return "factkg"
    return "cwq" if _CWQ_ID.fullmatch(str(row.get("id"))) else otherwise
