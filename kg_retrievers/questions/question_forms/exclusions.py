"""What must not hold: "not", "without", "neither", "other than"."""

from __future__ import annotations

import re

from kg_retrievers.questions.question_forms.forms import AUXILIARY, Reading
from kg_retrievers.questions.question_forms.tokens import Token
from kg_retrievers.questions.self_questions.verbs import verb_of

NEGATIVE = frozenset(
    ["not", "no", "never", "without", "neither", "none", "cannot", "nobody", "lacking", "lack", "lacks", "missing"]
)
#: These begin the clause themselves.
_OWN_VERB = frozenset(["without", "lacking", "lack", "lacks", "missing"])
_EXCEPT = re.compile(
    r"(?:, )?\b(?:but not|and not|except(?: for| from)?|excluding|excepting|apart from|aside from|other than|besides"
    r"|save for|not counting|not including|leaving out|leaving aside|outside of)\b"
)
_STARTS_CLAUSE = frozenset(["but", "that", "who", "which", "whose", "and"])
_RELATIVE = frozenset(["who", "that", "which"])
_TAKES_BASE = AUXILIARY - frozenset(["am", "is", "are", "was", "were", "has", "have", "had"])
_DROPPED = {
    *NEGATIVE, *_STARTS_CLAUSE, "nor", "any", "ever", "do", "does", "did", "there", "we", "know", "those", "ones",
    "one", "of", "are", "is", "was", "were", "it", "a", "an", "the",
}  # fmt: skip


def take_exclusion(reading: Reading) -> None:
    """Cut off the clause that must not hold."""
    if reading.polar or not reading.tokens or reading.tokens[0].word in ("if", "when", "while", "because"):
        return
    if found := reading.search(_EXCEPT):
        _cut(reading, found[0], found[0])
        return
    words = [token.word for token in reading.tokens]
    at = next((at for at, word in enumerate(words) if word in NEGATIVE), None)
    if at is not None:
        _cut(reading, _start(reading, words, at), at)


def _start(reading: Reading, words: list[str], at: int) -> int:
    """Return where the clause begins in which a negative word stands."""
    starts = [
        i for i in range(1, at)
        if words[i] in _STARTS_CLAUSE
        and (i > 1 or reading.tokens[0].slot or reading.tokens[0].telling)
        and words[i - 1] != ","
    ]  # fmt: skip
    last = max((i for i in range(at) if reading.tokens[i].slot), default=-1)
    if (
        starts
        and last >= starts[-1]
        and not (last == starts[-1] + 1 and last + 1 < at and words[last + 1] in AUXILIARY)
    ):
        starts = []  # "players that were born in Graz never": the clause has ended
    verbs = [i for i in range(max(last, 0) + 1, at) if words[i] in AUXILIARY]
    start = starts[-1] if starts else verbs[-1] if verbs and words[at] not in _OWN_VERB else at
    if words[at] == "neither" and start == at and at > 1 and not reading.tokens[at - 1].slot:
        start -= 1  # its verb, as in "which favour neither"
    return start


def _cut(reading: Reading, start: int, at: int) -> None:
    """Take the clause that begins at a position; it ends at a comma or at "but"."""
    tokens = reading.tokens
    ends = (
        i for i in range(at + 1, len(tokens) - 1)
        if i > start + 1
        and (
            tokens[i].word == "but"
            or (tokens[i].word == "," and start == 0)
            or (tokens[i].word in (",", "and") and _begins_other(tokens, start, i + 1))
            or (start == at and _goes_on(tokens, start, i))
        )
    )  # fmt: skip
    end = next(ends, len(tokens))
    kept = tuple(token for token in tokens[start:end] if token.slot or not _is_dropped(token.word, start == at))
    reading.negative = kept or tuple(tokens[at:end])
    rest = tokens[end + (end < len(tokens) and tokens[end].word in (",", "but", "and")) :]
    reading.tokens = [*tokens[:start], *rest]


def _goes_on(tokens: list[Token], start: int, at: int) -> bool:
    """Tell whether the clause around the negative one goes on with its verb, as in "not born in Graz work in"."""
    before = tokens[at - 1]
    if tokens[at].word in AUXILIARY:
        return before.slot is not None or (before.telling and tokens[start].word in _OWN_VERB)
    return before.slot is not None and _is_present(tokens[at].word)


def _is_present(word: str) -> bool:
    """Tell whether a word is a form of a verb that no auxiliary verb but "do" and its like takes."""
    verb = verb_of(word)
    return verb is not None and word in (verb.base, verb.third) and word != verb.participle


def _begins_other(tokens: list[Token], start: int, at: int) -> bool:
    """Tell whether a clause begins at a position that the negative word before it does not reach.

    It reaches forms that its own auxiliary verb takes, too, as in "do not live in Graz and work in Linz".
    """
    if tokens[at - 1].word != "and" and tokens[at].word in _RELATIVE:  # "not born in Graz, which is in Austria"
        return False
    at += tokens[at].word == "and"
    first, rest = tokens[min(at, len(tokens) - 1)], tokens[at + 1 :]
    if not any(token.slot or token.telling for token in rest) or any(token.word in NEGATIVE for token in rest[:2]):
        return False
    if first.word in AUXILIARY or first.word in _RELATIVE:
        return True
    verb = verb_of(first.word)
    if verb is None or not tokens[start].word:
        return False
    return first.word != verb.base if tokens[start].word in _TAKES_BASE else _is_present(first.word)


def _is_dropped(word: str, excepted: bool) -> bool:
    kept = () if excepted else ("of", "are", "is", "was", "were", "it", "a", "an", "the", "those", "one", "ones")
    return word in (",", "except", "excluding", "excepting", "apart", "aside", "from", "other", "than", "besides") or (
        word in _DROPPED and word not in kept
    )
