"""Words of a question that its pattern leaves out, although they limit what is asked for."""

from __future__ import annotations

from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, takewhile

import numpy as np

from kg_retrievers.core.retriever import texts_in
from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.index import QuestionEntity
from kg_retrievers.index.embeddings import TokenTable
from kg_retrievers.index.hints import unknown_names
from kg_retrievers.index.names import FUNCTION_WORDS, words_of
from kg_retrievers.questions.question_forms.forms import NUMBERS
from kg_retrievers.questions.words import WORDS
from kg_retrievers.questions.zero_shot.steps import masked_text, read_word

#: Words that are read by the form of a question, and words with a capital that are no names.
_OF_FORMS = frozenset(chain(NUMBERS, *map(words_of, chain(WORDS, texts_in(WORDS)))))
_OF_DATES = frozenset(name.lower() for name in (*month_name, *month_abbr, *day_name, *day_abbr))

#: A word that is less near to the words of a pattern, as a cosine, is left out.
NEAR = 0.2

#: Words before what limits a thing, and words between.
_LIMITING = frozenset(["in", "at", "from", "with", "without", "by", "on", "near", "have", "has", "had"])
_BETWEEN = frozenset(["a", "an", "the", "any", "some", "no"])


def left_out(
    question: str, slots: Sequence[QuestionEntity], pattern: Pattern, schema: Collection[str], table: TokenTable
) -> list[str]:
    """Return words of a question that limit what is asked for, and that its pattern leaves out.

    These are names, as in "the tallest bridge in Berlin". If the pattern has a type, they are also the words before
    its noun, as in "the tallest wooden bridge", and those of a further place or part, as in "bridges with lifts".

    Args:
        question: The question.
        slots: Its entities.
        pattern: The pattern.
        schema: The words of the graph's relations and types.
        table: Tells which words are near in meaning.
    """
    nodes, text = [*pattern.nodes, *pattern.alone], masked_text(question, slots)
    asked, unknown = words_of(text), [node for node in nodes if isinstance(node, Unknown)]
    named = {node.name for node in unknown}
    said = {word for one in texts_in(pattern.to_dict()) if one not in named for word in words_of(one)}
    stems = {*map(_stem, chain(said, schema, _OF_DATES, FUNCTION_WORDS))}
    left = [word for word in asked if _stem(word) not in stems]
    names = unknown_names(text, left)
    keys = {key for slot in slots for key in slot.entities}
    known = {node for node in nodes if isinstance(node, Known) and node.entity not in keys}
    otherwise = [node for node in known if set(asked).isdisjoint(words_of(node.text))]  # as Japan for "Japanese"
    found = [word for name in names[len(otherwise) :] for word in words_of(name)]
    types = {_stem(word) for node in unknown if node.type for word in words_of(node.type)}
    if types and not found:
        rows = np.stack([read_word(table, word).vector for word in sorted(said)])
        unread = {word for word in left if _is_plain(word) and (rows @ read_word(table, word).vector).max() < NEAR}
        found = [word for word in _limits(asked, types) if word in unread]
    return found


def _stem(word: str) -> str:
    return word.removesuffix("s")


def _is_plain(word: str) -> bool:
    """Tell whether a word is no number, no comparative or superlative, and is not read by the form of a question."""
    return word.isalpha() and not word.endswith(("est", "er")) and word not in _OF_FORMS


def _limits(asked: Sequence[str], types: Collection[str]) -> Iterator[str]:
    """Yield the words before the noun of a type, and the words of further places or parts."""
    for at, word in enumerate(asked):
        phrase = [word, *takewhile(lambda other: other not in FUNCTION_WORDS, asked[at + 1 :])]
        before = asked[at - 2 : at] if at > 1 and asked[at - 1] in _BETWEEN else asked[max(at - 1, 0) : at]
        if (at and _stem(phrase[-1]) in types) or (before and before[0] in _LIMITING):
            yield word
