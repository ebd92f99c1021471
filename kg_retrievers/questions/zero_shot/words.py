"""Reads a question without the entities that it names: its text for the scorer, and its words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile, takewhile
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.pattern import excludes_named
from kg_retrievers.index import FUNCTION_WORDS, QuestionEntity
from kg_retrievers.index.embeddings import UNKNOWN, TokenTable, words
from kg_retrievers.questions.zero_shot.scorer import OTHER, TOPIC

#: What the words of a question say of the kind of its answers, one of `KINDS`; the first in the question counts.
_ASKS = (
    ("date", re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month)s?\b|(?<!same )\b(?:date|year)\b")),
    ("number", re.compile(r"\bhow (?!do\b|does\b|did\b|is\b|are\b|was\b|were\b|can\b)\w+|\bnumber of\b")),
    ("", re.compile(r"\b(?:who|whom|whose|where)\b")),
)


#: Words that a noun for the answers follows, and those that may stand between.
_BEFORE_NOUNS = frozenset(["which", "what", "list", "name", "give", "show", "find"])
_BETWEEN = frozenset(["the", "me", "all", "other", "of", "any", "some", "names"])


#: What stands for an entity that a question does not name.
_PRONOUN = re.compile(r"\b(?:it|its|he|him|his|she|her|hers|they|them|their)\b", re.IGNORECASE)


#: Words that ask for others of which the same holds as of the entity that a question names, beside those of
#: `kg_retrievers.graph.pattern.EXCLUDING`.
_SHARING = re.compile(
    r"\b(?:same|shar(?:e|es|ed|ing)|in common|together|alike|too)\b"
    r"|\b(?:band|class|flat|house|room|school|ship|team|work)-?mates?\b",
    re.IGNORECASE,
)


class Word(NamedTuple):
    """A word of a text.

    Attributes:
        text: The word, folded.
        vector: The mean of the rows of its tokens, a unit vector; zero for a word that the table does not know.
        telling: Whether it may name a relation: it is no function word and no sign.
        known: Whether the table has some of its tokens.
    """

    text: str
    vector: Array
    telling: bool
    known: bool


def masked_text(question: str, slots: Sequence[QuestionEntity], topic: QuestionEntity | None = None) -> str:
    """Return a question with `TOPIC` for one of its entities and `OTHER` for the others.

    Where the question does not name the topic, it is put for the first pronoun, or else at the end.

    Args:
        question: The question.
        slots: Its entities.
        topic: The one where walks start; None leaves all entities out.

    Example:
        >>> ann, bob = (QuestionEntity(start, start + 3, "", (), 0, False) for start in (9, 17))
        >>> masked_text("Who knew Ann and Bob?", [ann, bob], bob)
        'Who knew [y] and [x]'
        >>> given = QuestionEntity(15, 15, "Ann", ("Ann",), 1, True)
        >>> masked_text("Who is her aunt?", [given], given)
        'Who is [x] aunt'
    """
    parts, at = list[str](), 0
    for slot in sorted(slots, key=lambda slot: slot.start):
        if at <= slot.start < slot.end:
            parts += [question[at : slot.start], " " if topic is None else TOPIC if slot is topic else OTHER]
            at = slot.end
    text = "".join([*parts, question[at:]]).strip().rstrip("?.! ")
    if topic is None or topic.start < topic.end:
        return text
    told, replaced = _PRONOUN.subn(TOPIC, text, count=1)
    return told if replaced else f"{text} {TOPIC}"


def asked_kind(question: str) -> str | None:
    """Return the kind of value that a question asks for, one of `KINDS`, or None where its words do not say.

    Example:
        >>> asked_kind("When was it built?"), asked_kind("How tall is it?"), asked_kind("Who built it the same year?")
        ('date', 'number', '')
        >>> asked_kind("Which films came out in the same year?")
    """
    folded = question.casefold()
    found = [(match.start(), kind) for kind, words in _ASKS if (match := words.search(folded))]
    return min(found)[1] if found else None


def asks_for_others(text: str) -> bool:
    """Tell whether words of a question, without its entities, ask for others that are like the entity it names.

    Example:
        >>> [asks_for_others(text) for text in ("Who shares an office with", "who else is at", "teammates of")]
        [True, True, True]
        >>> asks_for_others("What is the climate and the common name of")
        False
    """
    return bool(_SHARING.search(text)) or excludes_named(text)


def question_words(table: TokenTable, text: str) -> list[Word]:
    """Return the words of a text without entities."""
    return [read_word(table, word) for word in words(text)]


def read_word(table: TokenTable, word: str) -> Word:
    """Return a word as the function `words` found it in a text."""
    ids = [id for id in table.token_ids(word) if id != UNKNOWN]
    vector = table.rows(ids).mean(axis=0) if ids else np.zeros(table.dimension, np.float32)
    telling = word[0].isalnum() and word not in FUNCTION_WORDS
    return Word(word, vector / (np.linalg.norm(vector) + np.float32(1e-9)), telling, bool(ids))


def words_to_cover(question: Sequence[Word]) -> list[Word]:
    """Return the words that may name a relation; all words, where none may."""
    return [word for word in question if word.telling] or list(question)


def asked_noun(question: Sequence[Word]) -> list[Word]:
    """Return the words that say what the answers are: those after "which", "what" or the like, up to a function word.

    Example:
        >>> from kg_retrievers.index.embeddings import token_table
        >>> [word.text for word in asked_noun(question_words(token_table(), "in which old towns is it"))]
        ['old', 'towns']
    """
    texts = [word.text for word in question]
    start = next((at for at, text in enumerate(texts) if text in _BEFORE_NOUNS), None)
    if start is None:
        return []
    after = dropwhile(lambda word: word.text in _BETWEEN, question[start + 1 :])
    return list(takewhile(lambda word: word.telling, after))
