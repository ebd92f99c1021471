"""The part of a question that asks: without greetings, context and courtesy, spelt as the graph has its words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from itertools import islice, pairwise

from kg_retrievers.index import FUNCTION_WORDS, QuestionEntity
from kg_retrievers.index.embeddings import TokenTable
from kg_retrievers.questions.words import WORDS, any_of

#: Words by which a text asks for something unknown. A text without is a claim.
ASKING = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|how|why|name|list|give|show|tell|find)\b", re.IGNORECASE
)

#: How a sentence begins that asks for yes or no.
_AUXILIARY = re.compile(r"(?:and |but |so )?(?:is|are|was|were|do|does|did|has|have|had|can|could)\b", re.IGNORECASE)

#: The end of a sentence.
_END = re.compile(
    r"(?<![.!?])(?<!\b[A-Za-z])(?<!\b[A-Z][a-z])(?<!\b[A-Z][a-z][a-z])(?<!\be\.g)(?<!\bi\.e)[.!?]+(?=\s|$)|(?<![.!?])[!?]+(?=\s|$)"
    r"|\n|:(?=\s)|\s[-\u2013\u2014]\s|,(?=\s(?i:who|whom|whose|what|which|when|where|how|why)\b[^,]*$)"
)

#: The text before a colon or dash is a sentence of its own if somebody speaks in it, or if the rest names one thing by
#: a pronoun. Otherwise it is a topic, as in "lakes in Norway: how many are there".
_OF_ONE = re.compile(r"\b(?:it|its|he|him|his|she|her)\b", re.IGNORECASE)
_PAUSES = frozenset([":", "-", "\u2013", "\u2014", ","])

#: Words that may stand before a comma beside the name of an entity, as in "the film Her, who directed it".
_NAMED_TOPIC = re.compile(r"\W*(?:(?:the|this|that|our|my)\s+)?(?:\w+\s+)?_\W*", re.IGNORECASE)
_STORY = re.compile(rf"\b{any_of('words of a story')}\b", re.IGNORECASE)

#: Words before a question: greetings and courtesy, of which some need a sign behind them. After an indirect opening,
#: "if", "whether" or a word that asks follows.
_BEFORE = re.compile(
    rf"\s*(?:{any_of('greetings')}\b[,:;!.\s]*|{any_of('asides before a sign')}\b\s*[,:;!.]\s*|(?:and|but|so)\s"
    rf"|{any_of('indirect openings')}\b(?: about| again)?[,:;]?\s*"
    r"(?=(?:if|whether|who|whom|whose|what|which|when|where|how|why|in|on|at|to|from|for|by)\b)(?:(?:if|whether)\s+)?)",
    re.IGNORECASE,
)

#: Courtesy after a question.
_AFTER = re.compile(rf"(?<![,\s])[,\s]*\b{any_of('courtesy after a question')}\s*(?=[?.!\s]*$)", re.IGNORECASE)

#: In how many of the last characters courtesy is looked for.
LONGEST_COURTESY = 60

#: Asks whether an earlier statement is right.
_CHECKS = re.compile(r"(?:is|was|isn't|wasn't) (?:that|this|it) (?:right|true|correct|so|the case)\?", re.IGNORECASE)

#: Words for an entity of an earlier sentence.
_PRONOUN = re.compile(r"\b(?:it|its|he|him|his|she|her|they|them|their|this|that one)\b", re.IGNORECASE)


def asked_part(question: str, slots: Sequence[QuestionEntity]) -> tuple[str, list[QuestionEntity]]:
    """Return the part of a question that asks, and its entities in their places there.

    An entity that an earlier sentence names belongs to it if the part names none, or has a pronoun for it.

    Args:
        question: The question.
        slots: Its entities.

    Example:
        >>> seven = QuestionEntity(14, 20, "Line 7", ("l7",), 1, False)
        >>> text, slots = asked_part("Hi! We missed Line 7 today. Do you know who runs it? Thx", [seven])
        >>> text, slots[0].start, slots[0].end
        ('who runs it?', 12, 12)
    """
    spans = [(slot.start, slot.end) for slot in slots if slot.start < slot.end]
    first, last = _sentence(question, spans)
    first, last = _without_courtesy(question, first, last, spans)
    inside = [slot for slot in slots if first <= slot.start < slot.end <= last]
    text = question[first:last]
    moved = [replace(slot, start=slot.start - first, end=slot.end - first) for slot in inside]
    outside = [slot for slot in slots if slot not in inside]
    if sum(not slot.given for slot in outside) > 1 and not inside:
        return question, list(slots)
    belongs = not inside or _has_pronoun(text, moved)
    moved += [replace(slot, start=len(text), end=len(text)) for slot in outside if belongs or slot.given]
    order = {slot.entities: at for at, slot in enumerate(slots)}
    return text, sorted(moved, key=lambda slot: order[slot.entities])


def _divides(question: str, end: re.Match[str], spans: Sequence[tuple[int, int]], story: re.Match[str] | None) -> bool:
    """Tell whether a sign divides two sentences: after a pause what follows names one thing by a pronoun."""
    sign = end[0].strip()
    follows = _OF_ONE.search(question[end.end() :]) is not None
    if sign == ",":
        named = [(low, high) for low, high in spans if high <= end.start()]
        before = question[: end.start()]
        for low, high in reversed(named):
            before = f"{before[:low]}_{before[high:]}"
        return follows and _NAMED_TOPIC.fullmatch(before) is not None
    return follows or sign not in _PAUSES or (story is not None and story.end() <= end.start())


def _sentence(question: str, spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the span of the last sentence that asks, with the sentences after it that end in a question mark."""
    story = _STORY.search(question)
    ends = [
        one.end()
        for one in _END.finditer(question)
        if not any(low <= one.start() < high for low, high in spans) and _divides(question, one, spans, story)
    ]
    parts = [part for part in pairwise([0, *ends, len(question)]) if question[slice(*part)].strip()]
    texts = [question[slice(*part)].strip() for part in parts]
    marked = [text.endswith("?") for text in texts]
    if any(map(_CHECKS.fullmatch, texts)):
        return 0, len(question)
    if sum(one and bool(ASKING.search(text)) for one, text in zip(marked, texts, strict=True)) > 1:
        return 0, len(question)
    asks = [at for at, text in enumerate(texts) if ASKING.search(text) or _AUXILIARY.match(text)]
    chosen = [at for at in asks if marked[at] or (at + 1 < len(parts) and marked[at + 1] and not asks[-1] > at)] or asks
    if not chosen:
        return 0, len(question)
    last = chosen[-1]
    while last + 1 < len(parts) and marked[last + 1] and not marked[last]:
        last += 1
    return parts[chosen[-1]][0], parts[last][1]


def _without_courtesy(question: str, first: int, last: int, spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return where a sentence begins and ends without what people say around a question."""
    low, high = first, last
    while (match := _BEFORE.match(question, low, high)) and match.end() > low and not _meets(match.span(), spans):
        low = match.end()
    while (match := _AFTER.search(question, max(low, high - LONGEST_COURTESY), high)) and not _meets(
        match.span(), spans
    ):
        high = match.start()
    low += len(question[low:high]) - len(question[low:high].lstrip())
    words = re.findall(r"\w+", question[low:high])
    return (low, high) if len(words) > 1 else (first, last)


def outside(form: re.Pattern[str], text: str, spans: Sequence[tuple[int, int]]) -> Iterator[re.Match[str]]:
    """Yield each place of a form in a text outside some spans, such as the names of entities."""
    return (found for found in form.finditer(text) if not _meets(found.span(), spans))


def _meets(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(low < span[1] and span[0] < high for low, high in others)


def _has_pronoun(text: str, slots: Sequence[QuestionEntity]) -> bool:
    return next(outside(_PRONOUN, text, [(slot.start, slot.end) for slot in slots]), None) is not None


#: The shortest word that is taken for misspelt, and how alike it must be to a word of the graph, and to a frequent
#: word.
SHORTEST, LIKE_GRAPH, LIKE_FREQUENT = 4, 0.75, 0.82

#: How much more alike a frequent word must be than a word of the graph.
OF_GRAPH = 0.12

#: How many words of a question are looked at.
MOST_SPELT = 60

#: How many tokens of the table are frequent words.
FREQUENT = 9_000

#: Pieces that end the forms of a word.
_ENDINGS = frozenset(WORDS["pieces that end forms"])


def spelt(
    question: str, slots: Sequence[QuestionEntity], graph_words: Collection[str], table: TokenTable
) -> tuple[str, list[QuestionEntity]]:
    """Return a question whose unknown words are spelt like words of the graph or frequent ones, and its entities there.

    Args:
        question: The question.
        slots: Its entities, which are left as they are.
        graph_words: The words of the graph's relations and types.
        table: Knows the frequent words.
    """
    spans = [(slot.start, slot.end) for slot in slots]
    parts, moves, at = list[str](), list[tuple[int, int]](), 0
    for match in islice(re.finditer(rf"(?<![\w'-])[a-z]{{{SHORTEST},30}}(?![\w'-])", question), MOST_SPELT):
        word = match.group()
        if _meets(match.span(), spans) or (better := _better(word, graph_words, table)) is None:
            continue
        parts += [question[at : match.start()], better]
        moves.append((match.start(), len(better) - len(word)))
        at = match.end()
    if not parts:
        return question, list(slots)

    def moved(position: int) -> int:
        return position + sum(by for start, by in moves if start < position)

    text = "".join([*parts, question[at:]])
    return text, [replace(slot, start=moved(slot.start), end=moved(slot.end)) for slot in slots]


def _better(word: str, graph_words: Collection[str], table: TokenTable) -> str | None:
    """Return how a word is spelt that nothing knows; None if it is known, or nothing is like it."""
    if word in graph_words or word in FUNCTION_WORDS:
        return None
    first, *others = (table.tokens[id] for id in table.ids_of_word(word))
    if not others or (len(first) >= SHORTEST - 1 and len(others) == 1 and others[0] in _ENDINGS):
        return None
    near = [one for one in graph_words if one[:1] == word[0] and abs(len(one) - len(word)) <= 2]
    of_graph = get_close_matches(word, sorted(near), 1, LIKE_GRAPH)
    frequent = get_close_matches(word, _frequent(table).get(word[0], ()), 1, LIKE_FREQUENT)
    if not frequent or (of_graph and _likeness(frequent[0], word) <= _likeness(of_graph[0], word) + OF_GRAPH):
        found = of_graph
    else:
        found = frequent
    return found[0] if found and not _is_form(word, found[0]) else None


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _is_form(word: str, other: str) -> bool:
    """Whether one word is a form of another: a plural, a past, a superlative."""
    return word.startswith(other[:-1]) or other.startswith(word[:-1]) or word.endswith("est")


@lru_cache(maxsize=2)
def _frequent(table: TokenTable) -> dict[str, list[str]]:
    """Return frequent words by their first letter."""
    found: dict[str, list[str]] = {}
    for word in table.tokens[1:FREQUENT]:
        if len(word) >= SHORTEST and word.isalpha():
            found.setdefault(word[0], []).append(word)
    return found
