"""Natural questions about single facts, with the mention of their topic masked although its name is not given.

Sources (CC BY 3.0): SimpleQuestions on Freebase, validation part (A. Bordes, N. Usunier, S. Chopra, J. Weston:
Large-scale Simple Question Answering with Memory Networks, arXiv:1506.02075), and its mapping to Wikidata
(D. Diefenbach, T. P. Tanon, K. Singh, P. Maret: Question Answering Benchmarks for Wikidata, ISWC 2017).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

#: Words that hold a question together and are hardly part of a name.
FUNCTION_WORDS = frozenset([
    "what", "which", "who", "whom", "whose", "where", "when", "is", "was", "are", "were", "did", "does", "do", "of",
    "'s", "how", "by", "in", "on", "at", "from", "to", "a", "an", "the", "for", "with", "that", "be", "been", "has",
    "have", "had", "and", "or", "as",
])  # fmt: skip

#: A mention hardly ends, or begins, with one of these.
_NO_END = frozenset(["of", "in", "by", "is", "from", "was", "'s", "for", "are", "to", "with"])
_NO_BEGINNING = frozenset([
    "what", "which", "who", "where", "is", "was", "of", "'s", "how", "did", "does", "by", "when", "are",
])  # fmt: skip


class NaturalQuestion(NamedTuple):
    """A question whose topic is masked.

    Attributes:
        words: The question, lower case, with `TOPIC` for its mention.
        relation: The id of the relation.
        backward: Whether it asks for the subject.
        source: "wikidata", "freebase", or "ours".
        topic: The entity that it names.
        answer: An entity that answers it.
        clear: Whether all of its rarer words are usual with the relation.
    """

    words: tuple[str, ...]
    relation: str
    backward: bool
    source: str
    topic: str
    answer: str
    clear: bool


#: Stands for the entity that a walk starts from; and for another entity that the question names.
TOPIC, OTHER = "[x]", "[y]"


def words_of(text: str) -> list[str]:
    """Return the words and signs of a question, lower case."""
    return re.findall(r"[a-z0-9]+|'s|[^\sa-z0-9]", text.lower().replace("\u2019", "'"))


def read_questions(folder: Path) -> list[tuple[list[str], str, bool, str, str, str]]:
    """Return the words, the relation, whether the subject is asked for, the source, the topic and an answer."""
    rows = []
    for name in ("simplequestions_wikidata_train.txt", "simplequestions_wikidata_valid.txt"):
        for line in (folder / name).read_text("utf-8").splitlines():
            topic, relation, answer, question = line.split("\t")
            words = words_of(question.strip().rstrip("?"))
            rows.append((words, "P" + relation[1:], relation[0] == "R", "wikidata", topic, answer))
    for line in (folder / "simplequestions_freebase_valid.txt").read_text("utf-8").splitlines():
        topic, relation, answer, question = line.split("\t")
        words = words_of(question.strip().rstrip("?"))
        rows.append((words, "/" + relation.split("/", 1)[1], False, "freebase", topic, answer))
    return rows


class _Mentions:
    """Finds the span that names the topic by a likelihood ratio, in rounds.

    A word speaks for the mention by how usual it is inside of mentions, against how usual it is with the relation when
    this question is left out.
    """

    def __init__(self, rows: Sequence[tuple[list[str], str, bool, str, str, str]]) -> None:
        self.rows = rows
        self.with_relation: dict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
        self.words: Counter[str] = Counter()
        for words, relation, backward, *_ in rows:
            self.with_relation[relation, backward].update(words)
            self.words.update(words)
        self.total = sum(self.words.values())
        self.sizes = {key: sum(counts.values()) for key, counts in self.with_relation.items()}
        roots = {word: count**0.5 for word, count in self.words.items()}
        whole = sum(roots.values())
        self.background = {word: root / whole for word, root in roots.items()}
        self.inside = dict(self.background)

    def round(self) -> list[tuple[int, int]]:
        """Return the spans, and learn from them which words are usual inside."""
        spans = [self._span(words, relation, backward) for words, relation, backward, *_ in self.rows]
        counts: Counter[str] = Counter()
        for (words, *_), (start, end) in zip(self.rows, spans, strict=True):
            counts.update(words[start:end])
        total = max(1, sum(counts.values()))
        self.inside = {word: 0.9 * counts[word] / total + 0.1 * share for word, share in self.background.items()}
        return spans

    def _span(self, words: list[str], relation: str, backward: bool) -> tuple[int, int]:
        counts, size = self.with_relation[relation, backward], self.sizes[relation, backward]
        gains = []
        for word in words:
            everywhere = (self.words[word] - 0.95) / self.total
            outside = (counts[word] - 1 + 40 * everywhere) / (size + 39)
            rare = 0.7 if self.words[word] < 1200 and word not in FUNCTION_WORDS else 0.0
            gains.append(math.log(self.inside[word]) - math.log(outside) + rare)
        best, best_sum = (0, 0), -math.inf
        for start in range(len(words)):
            total = -5.0 if words[start] in _NO_BEGINNING else 0.0
            for end in range(start + 1, len(words) + (start > 0)):
                total += gains[end - 1] - 0.3
                ends = total - 4.0 * (words[end - 1] in _NO_END)
                if ends > best_sum:
                    best, best_sum = (start, end), ends
        return best


def masked_questions(folder: Path) -> list[NaturalQuestion]:
    """Read the questions and mask their topics; those in which no mention is found are left out."""
    rows = read_questions(folder)
    mentions = _Mentions(rows)
    spans = [mentions.round() for _ in range(3)][-1]
    found = []
    for (words, relation, backward, source, topic, answer), (start, end) in zip(rows, spans, strict=True):
        rest = words[:start] + words[end:]
        if start == end or len(rest) < 2:
            continue
        usual = mentions.with_relation[relation, backward]
        strange = [
            w for w in rest if w.isalpha() and w not in FUNCTION_WORDS and mentions.words[w] < 40 and usual[w] < 3
        ]
        masked = (*words[:start], TOPIC, *words[end:])
        found.append(NaturalQuestion(masked, relation, backward, source, topic, answer, not strange))
    return found
