"""Names that a question misspells, letter by letter, and the names that it may have meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from kg_retrievers.index.graph_index import GraphIndex
from kg_retrievers.index.mentions import FUZZY_SCORE, LinkedEntity, Match, QuestionText
from kg_retrievers.index.words import FUNCTION_WORDS, MOST_LETTERS, english_share, likeness, telling_words, words_of

#: The least share of equal letters between a fuzzy mention and a name: one wrong letter in six passes. On MetaQA dev
#: with a random typo in each topic, 81 % are linked right by it and 1 % wrong; of names that are not in the graph, 1 %.
FUZZY_SHARE = 0.83

#: The least share of equal letters of a name that is suggested, unless it has a word of the question; or the least
#: share between a word of the name and one of the question.
SUGGESTED_SHARE, SUGGESTED_WORD_SHARE = 0.6, 0.8

#: A fuzzy mention that holds a name gives way to it where its first or last word has a lesser share of equal letters
#: with each word of the misspelt name: "Acme CEO" is not "Acme Co".
WORD_SHARE = 0.7

#: How many near names a fuzzy mention is compared with; of how many words it is at most; how many mentions are tried.
FUZZY_NAMES, FUZZY_WORDS, FUZZY_WINDOWS = 8, 10, 256

Window = tuple[int, int]
IsGeneric = Callable[[str], bool]


def misspelt_windows(text: QuestionText, matches: Sequence[Match], is_generic: IsGeneric) -> list[Window]:
    """Return where misspelt names may be: runs of capitalised words that are not all matched, else anywhere.

    Args:
        text: The question.
        matches: The mentions found in it.
        is_generic: Whether a word names no entity.

    Returns:
        The first and last token of each.
    """
    covered = text.covered(matches)
    may_be = [not covered[at] and not is_generic(token.word) for at, token in enumerate(text.tokens)]
    windows = list(islice(_capital_windows(text, may_be), FUZZY_WINDOWS))
    if windows or matches:
        return windows
    return list(islice(_all_windows(text, is_generic), FUZZY_WINDOWS))


def _capital_windows(text: QuestionText, may_be: Sequence[bool]) -> Iterator[Window]:
    """Yield windows of capitalised words of which one may be misspelt."""
    runs = capital_runs(text)
    for at, (first, _) in enumerate(runs):
        capitals: list[int] = []
        for begin, last in islice(runs, at, at + FUZZY_WORDS):
            capitals += range(begin, last + 1)
            if len(capitals) > FUZZY_WORDS or last - first > 2 * FUZZY_WORDS:
                break
            if any(may_be[token] for token in capitals):
                yield first, last


def _all_windows(text: QuestionText, is_generic: IsGeneric) -> Iterator[Window]:
    for first in range(len(text.tokens)):
        for last in range(first, min(first + FUZZY_WORDS, len(text.tokens))):
            words = [token.word for token in text.tokens[first : last + 1]]
            ends_in_name = words[0] and words[-1] and words[-1] not in FUNCTION_WORDS
            is_spelt_right = first == last and english_share(words[0]) > 0
            if ends_in_name and not is_spelt_right and not all(map(is_generic, words)):
                yield first, last


def capital_runs(text: QuestionText) -> list[Window]:
    """Return the first and last token of each run of capitalised words."""
    runs: list[Window] = []
    for at, token in enumerate(text.tokens):
        if token.capital and not text.opens(at):
            goes_on = runs and runs[-1][1] == at - 1
            runs.append((runs.pop()[0] if goes_on else at, at))
    return runs


def near_entities(index: GraphIndex, texts: Sequence[str]) -> list[list[LinkedEntity]]:
    """Return the entities whose names are near to each text in their letters, by falling share of equal ones.

    A name is near that has `SUGGESTED_SHARE` of the letters, or a telling word of the text, if perhaps misspelt.
    """
    graph, found = index.graph, dict[str, list[LinkedEntity]]()
    distinct = list(dict.fromkeys(texts))
    for text, candidates in zip(distinct, index.nearest_entities(distinct, FUZZY_NAMES), strict=True):
        near, telling = [], telling_words(text)
        for key in (graph.entities[id] for id in candidates.ids.tolist()):
            names = (graph.label(key), *graph.aliases(key))
            share = max(_share(text, name, telling) for name in names)
            if share > 0:
                near.append(LinkedEntity(key, names[0], FUZZY_SCORE * share, "fuzzy"))
        found[text] = sorted(near, key=lambda entity: -entity.score)
    return [found[text] for text in texts]


def _share(text: str, name: str, telling: set[str]) -> float:
    of_name = telling_words(name[:MOST_LETTERS])
    pairs = ((word, other) for word in telling for other in of_name if len(telling) <= 2)  # of a long text, too many
    is_near = telling & of_name or any(likeness(*pair, SUGGESTED_WORD_SHARE) for pair in pairs)
    return likeness(text, name, 0.0 if is_near else SUGGESTED_SHARE)


def misspelt(
    text: QuestionText,
    windows: Sequence[Window],
    near: Sequence[Sequence[LinkedEntity]],
    matches: Sequence[Match],
    max_candidates: int,
) -> list[Match]:
    """Return the windows that are near enough to a name, the nearest first.

    Args:
        text: The question.
        windows: The windows.
        near: What `near_entities` found for each.
        matches: The mentions found by name, full or short.
        max_candidates: How many entities a mention may have.
    """
    covered, spans = text.covered(matches), {match[:2] for match in matches}
    found = []
    for (first, last), entities in zip(windows, near, strict=True):
        close = tuple(entity for entity in entities if entity.score >= FUZZY_SCORE * FUZZY_SHARE)
        swallows = any(covered[first : last + 1]) and close and _has_other_word(text, first, last, close[0].label)
        match = text.match(first, last, close[:max_candidates])
        if close and not swallows and match[:2] not in spans:
            found.append(match)
    return sorted(found, key=lambda match: -match.candidates[0].score)


def _has_other_word(text: QuestionText, first: int, last: int, name: str) -> bool:
    """Return whether the first or the last word of a window is like no word of a name."""
    of_name = words_of(name)
    words = (text.tokens[first].word, text.tokens[last].word)
    return any(max((likeness(word, one) for one in of_name), default=0.0) < WORD_SHARE for word in words if word)


def nearest_labels(entities: Iterable[LinkedEntity]) -> list[str]:
    """Return the labels of the three entities with the highest scores."""
    best = sorted(entities, key=lambda entity: -entity.score)
    return list(dict.fromkeys(entity.label for entity in best))[:3]
