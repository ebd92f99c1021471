"""Words of a question that its pattern leaves out, although they limit what is asked for."""

from __future__ import annotations

from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain, takewhile

import numpy as np

from kg_retrievers.core.retriever import texts_in
from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.index import QuestionEntity
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.index.hints import unknown_names
from kg_retrievers.index.names import FUNCTION_WORDS, words_of
from kg_retrievers.questions.reading import TypeNouns
from kg_retrievers.questions.words import NUMBERS, WORDS
from kg_retrievers.questions.zero_shot.steps import masked_text, read_word

#: Words that are read by the form of a question.
_OF_FORMS = frozenset(chain(NUMBERS, ["top", "bottom", "best", "worst"], *map(words_of, chain(WORDS, texts_in(WORDS)))))

#: Words with a capital that are no names.
_OF_DATES = frozenset(name.lower() for name in (*month_name, *month_abbr, *day_name, *day_abbr))

#: A word that is less near to the words of a pattern, as a cosine, is left out.
NEAR = 0.2

#: Words before a further place or part, and the articles between them and its noun.
_LIMITING = frozenset(["in", "at", "from", "with", "without", "by", "on", "near", "have", "has", "had"])
_BETWEEN = frozenset(["a", "an", "the", "any", "some", "no"])


def left_out(
    question: str,
    slots: Sequence[QuestionEntity],
    pattern: Pattern,
    nouns: TypeNouns,
    schema: Collection[str],
    *,
    by_form: bool,
) -> list[str]:
    """Return words of a question that limit what is asked for, and that its pattern leaves out.

    These are words before the noun of a type, as in "the tallest wooden bridge". If a form was read, they are also
    names, as in "the tallest bridge in Berlin", and words of a further place or part, as in "bridges with lifts".

    Args:
        question: The question.
        slots: Its entities.
        pattern: The pattern.
        nouns: The nouns of the graph's types.
        schema: The words of the graph's relations and types.
        by_form: Whether the form of the question was read, and not only its words.

    Returns:
        The words, folded, in their order. They are none if the pattern leaves out nothing.
    """
    nodes, text, table = [*pattern.nodes, *pattern.alone], masked_text(question, slots), token_table()
    asked, unknown = words_of(text), [node for node in nodes if isinstance(node, Unknown)]
    keys = {key for slot in slots for key in slot.entities}
    linked = [node for node in nodes if isinstance(node, Known) and node.entity in keys]
    named = {*(node.name for node in unknown), *(node.text for node in linked)}
    parts = replace(pattern, unplaced=(), nearest=(), lacking=()).to_dict()
    said = {word for one in texts_in(parts) if one not in named for word in words_of(one)}
    stems = {*map(_stem, chain(said, schema, _OF_DATES, FUNCTION_WORDS))}
    left = [word for word in asked if _stem(word) not in stems]
    others = [node for node in nodes if isinstance(node, Known) and node not in linked]
    if by_form and (names := _names(text, left, others)):
        return names
    rows = np.stack([read_word(table, word).vector for word in sorted(said)])
    unread = {word for word in left if _is_plain(word) and (rows @ read_word(table, word).vector).max() < NEAR}
    limits = [*_before_nouns(asked, nouns), *(_of_parts(asked) if by_form and any(one.type for one in unknown) else ())]
    return [word for word in asked if word in unread and word in limits]


def _names(text: str, left: Sequence[str], others: Sequence[Known]) -> list[str]:
    """Return the words of names that stand for nothing in a pattern, of which some nodes are not in the text."""
    asked = words_of(text)
    otherwise = [node for node in others if set(asked).isdisjoint(words_of(node.text))]  # as Japan for "Japanese"
    return [word for name in unknown_names(text, left)[len(otherwise) :] for word in words_of(name)]


def _stem(word: str) -> str:
    return word.removesuffix("s")


def _is_plain(word: str) -> bool:
    """Tell whether a word is no number, no comparative or superlative, and is not read by the form of a question."""
    return word.isalpha() and not word.endswith(("est", "er")) and word not in _OF_FORMS


def _before_nouns(asked: Sequence[str], nouns: TypeNouns) -> Iterator[str]:
    """Yield the words directly before the nouns of types."""
    for start, _, _ in nouns.spans(asked):
        yield from takewhile(lambda word: word.isalpha() and word not in FUNCTION_WORDS, reversed(asked[:start]))


def _of_parts(asked: Sequence[str]) -> Iterator[str]:
    """Yield the words of further places or parts."""
    for at in range(1, len(asked)):
        before = asked[at - 2] if at > 1 and asked[at - 1] in _BETWEEN else asked[at - 1]
        if before in _LIMITING:
            yield asked[at]
