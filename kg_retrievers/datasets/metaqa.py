"""MetaQA: film questions of one, two and three hops, and their paraphrases.

Zhang, Dai, Kozareva, Smola, Song: Variational Reasoning for Question Answering with Knowledge Graph. AAAI 2018.
arXiv:1709.04071. Data: https://github.com/yuyuz/MetaQA (CC BY 3.0).
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from kg_retrievers.datasets.types import Question, read_lines
from kg_retrievers.errors import QuestionsLoadError
from kg_retrievers.graph.pattern import Known, Pattern, Term, Unknown
from kg_retrievers.paths import checked_path

#: The relation in `kb.txt` from a movie, always its head, to the thing that a question type calls by this word.
RELATIONS = {
    "director": "directed_by",
    "writer": "written_by",
    "actor": "starred_actors",
    "genre": "has_genre",
    "language": "in_language",
    "year": "release_year",
    "tags": "has_tags",
    "tag": "has_tags",
    "imdbrating": "has_imdb_rating",
    "imdbvotes": "has_imdb_votes",
}

#: A published row: `question with [topic]<TAB>answer|answer`. No name in `kb.txt` holds a bracket.
_ROW = re.compile(r"([^\[\]\t]*)\[([^\[\]\t]+)\]([^\[\]\t]*)\t([^\t|][^\t]*)")


def read_metaqa(folder: str | Path, hop: int, split: str = "dev", *, paraphrases: bool = False) -> list[Question]:
    """Read the questions of one hop and split, in the published layout.

    The question types, if present, give `kind` and `pattern`, with the relations of `kb.txt` in stored direction. Gold
    answers of several hops never hold the topic. The pattern leaves it to the matcher to exclude it.

    Args:
        folder: The folder that holds `1-hop`, `2-hop` and `3-hop`.
        hop: 1, 2 or 3.
        split: "train", "dev" or "test".
        paraphrases: Read the machine-made paraphrases (`ntm`) of the same questions instead.

    Raises:
        QuestionsLoadError: If a file is missing, a row is malformed, or there is not one question type a question.
    """
    home = checked_path(folder, QuestionsLoadError) / f"{hop}-hop"
    plain, ntm = (f"qa_{split}.txt", f"vanilla/qa_{split}.txt"), (f"ntm/qa_{split}.txt", f"qa_{split}_ntm.txt")
    names = ntm if paraphrases else plain
    path = _first_file(home, *names)
    if path is None:
        raise QuestionsLoadError(f"wanted {names[0]!r} or {names[1]!r} here; {_told_of(home, paraphrases)}", home)
    rows = read_lines(path)
    kinds_name = f"qa_{split}_qtype.txt"
    kinds_path = _first_file(home, kinds_name, f"vanilla/{kinds_name}", f"ntm/{kinds_name}")
    kinds = _read_kinds(kinds_path, hop, len(rows)) if kinds_path else [None] * len(rows)

    questions = []
    for (line, text), kind in zip(rows, kinds, strict=True):
        row = _ROW.fullmatch(text)
        if row is None:
            raise QuestionsLoadError(
                f"wanted 'question with [topic]<TAB>answer|answer', but got {text!r:.200}.", path, line
            )
        before, topic, after, answers = row.groups()
        questions.append(
            Question(
                text=f"{before}{topic}{after}".strip(),
                seed_entities=(topic,),
                answers=tuple(dict.fromkeys(filter(None, answers.split("|")))),
                pattern=_pattern(topic, kind) if kind else None,
                kind=kind,
            )
        )
    return questions


def _told_of(home: Path, paraphrases: bool) -> str:
    """Return which splits there are, or that there is no such folder."""
    if not home.is_dir():
        return "there is no such folder."
    pattern = re.compile(r"qa_([a-z]+)(_ntm)?\.txt")
    found = [(file.parent, pattern.fullmatch(file.name)) for file in home.glob("**/qa_*.txt")]
    splits = {match[1] for folder, match in found if match and paraphrases == bool(match[2] or folder.name == "ntm")}
    return f"there is: {', '.join(sorted(splits)) or 'no split'}."


def _first_file(folder: Path, *names: str) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read_kinds(path: Path, hop: int, count: int) -> list[str | None]:
    kinds: list[str | None] = []
    for line, text in read_lines(path):
        kind = text.strip()
        steps = list(pairwise(kind.split("_to_")))
        if len(steps) != hop or any("movie" not in step or RELATIONS.keys().isdisjoint(step) for step in steps):
            wanted = f"wanted a question type of {hop} steps, each between 'movie' and one of {list(RELATIONS)}"
            raise QuestionsLoadError(f"{wanted}, but got {kind!r:.200}.", path, line)
        kinds.append(kind)
    if len(kinds) != count:
        raise QuestionsLoadError(f"wanted one question type for each of {count} questions, but got {len(kinds)}.", path)
    return kinds


def _pattern(topic: str, kind: str) -> Pattern:
    words = kind.split("_to_")
    unknowns = [f"{word} {words[1:position].count(word) + 1}" for position, word in enumerate(words[1:], start=1)]
    nodes: list[Term] = [Known(topic), *map(Unknown, unknowns)]
    triples = [
        (here, RELATIONS[to], there) if word == "movie" else (there, RELATIONS[word], here)
        for (here, there), (word, to) in zip(pairwise(nodes), pairwise(words), strict=True)
    ]
    return Pattern.of(*triples, target=unknowns[-1])
