"""The words of names and questions: without case, accents and signs; those of general English; how alike two are."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from functools import cache

from kg_retrievers.index.embeddings import folded
from kg_retrievers.index.token_table import token_table

_WORD = re.compile(r"[^\W_]+")

#: How many letters of two texts are compared: nobody misspells a longer name.
MOST_LETTERS = 400

#: No mentions by themselves in lower case: an entity may be called "Her", "It" or "Up".
FUNCTION_WORDS = frozenset(
    _WORD.findall(
        "a about after all also am an and any are as at be been before but by can could d did do does during each find "
        "for from get give had has have he her him his how i if in into is it its list ll m many may me more most much "
        "my name no not of off on one or other our out over please re s same see shall she should show so some such t "
        "tell than that the their them then there these they this those to under up us ve was we were what when where "
        "which while who whom whose why will with would you your"
    )
)


def words_of(text: str) -> list[str]:
    """Return the runs of letters and digits of a text, folded.

    Example:
        >>> words_of("Amélie's garden_gnome")
        ['amelie', 's', 'garden', 'gnome']
    """
    return _WORD.findall(folded(text))


def likeness(a: str, b: str, least: float = 0.0) -> float:
    """Return the letters that two texts share in order, as a share of the longer text, in [0, 1].

    Of longer texts than `MOST_LETTERS` only the beginnings are compared, since the time grows with both lengths.

    Args:
        a: A text.
        b: Another.
        least: A smaller share counts as 0, which is told sooner.

    Example:
        >>> likeness("Spike Jonze", "spike jonez")
        0.9090909090909091
    """
    a, b = (" ".join(words_of(text[:MOST_LETTERS])) for text in (a, b))
    longer = max(len(a), len(b), 1)
    if (Counter(a) & Counter(b)).total() < least * longer:
        return 0.0
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    share = sum(block.size for block in blocks) / longer
    return share if share >= least else 0.0


def telling_words(text: str) -> set[str]:
    """Return the words of a text that tell it from others: of three letters or more, and no function words.

    Example:
        >>> sorted(telling_words("The Girl in the Park"))
        ['girl', 'park']
    """
    return {word for word in words_of(text) if len(word) > 2} - FUNCTION_WORDS


def english_share(word: str) -> float:
    """Return about how many of all words of English text are a word: 0.1 / rank, by Zipf's law; 0 if it is rare.

    The rank is that of the token table, whose tokens are in the order of their frequency from "the" on.

    Example:
        >>> english_share("the"), english_share("with") > english_share("screenplay") > english_share("xyzzy")
        (0.1, True)
    """
    rank = _ranks().get(word, 0)
    return 0.1 / rank if rank > 0 else 0.0


@cache
def _ranks() -> dict[str, int]:
    tokens = token_table().tokens
    most_frequent = tokens.index("the")
    return {token: rank for rank, token in enumerate(tokens[most_frequent:], 1)}


def has_capitals(text: str) -> bool:
    """Return whether any letter of a text is a capital."""
    return any(map(str.isupper, text))
