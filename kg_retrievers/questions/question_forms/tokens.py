"""The words of a question with its entities as slots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kg_retrievers.index import FUNCTION_WORDS, QuestionEntity

#: The most words of a question that has a form.
MAX_TOKENS = 200

_WORD = re.compile(r"\d[\d,.]*\d(?:s\b)?|\w+(?:[-'’]\w+)*|[^\w\s]")

#: Shortened words, and what they stand for. `'s` is "is" after a question word and before anything but a noun.
_SHORT = re.compile(r"(?i)\b(ca|wo|sha|do|does|did|is|are|was|were|has|have|had|could|would|should)n['’]t\b")
_FULL = {"ca": "can", "wo": "will", "sha": "shall"}


@dataclass(frozen=True)
class Token:
    """A word of a question, or an entity that it names.

    Attributes:
        text: As written.
        slot: The entity, or None.
    """

    text: str
    slot: QuestionEntity | None = None

    @property
    def word(self) -> str:
        """The word without case; "" for an entity."""
        return "" if self.slot else self.text.casefold()

    @property
    def telling(self) -> bool:
        """Whether it is a word that may name something of the graph."""
        return bool(self.word) and self.word[0].isalpha() and self.word not in FUNCTION_WORDS


def tokens_of(question: str, slots: Sequence[QuestionEntity]) -> list[Token]:
    """Return the words and the entities of a question, in its order; what it does not name is left out.

    Example:
        >>> [token.text for token in tokens_of("Which isn't in it?", [])]
        ['Which', 'is', 'not', 'in', 'it', '?']
    """
    found, at = list[Token](), 0
    for slot in sorted(slots, key=lambda slot: slot.start):
        if at <= slot.start < slot.end:
            found += _words(question[at : slot.start])
            if found and found[-1].word == "the":
                found.pop()
            found.append(Token(slot.name, slot))
            at = slot.end
    return [*found, *_words(question[at:])]


def _words(text: str) -> Iterator[Token]:
    full = _SHORT.sub(lambda match: f"{_FULL.get(match[1].casefold(), match[1])} not", text)
    full = re.sub(r"(?i)\b(what|who|where|which|how)['’]s\b", r"\1 is", full)
    for match in _WORD.finditer(full):
        word = re.sub(r"['’]s$", "", match[0])
        if word not in ("s", "'", "’"):
            yield Token(word)


def question_of(tokens: Sequence[Token]) -> tuple[str, list[QuestionEntity]]:
    """Return the text of some tokens, and their entities by their places in it.

    Example:
        >>> question_of([Token("Who"), Token("Ann", QuestionEntity(9, 12, "Ann", ("a",), 1, False))])[0]
        'Who Ann'
    """
    text, slots = "", list[QuestionEntity]()
    for token in tokens:
        start = len(text) + bool(text)
        text = f"{text} {token.text}" if text else token.text
        if token.slot:
            slots.append(replace(token.slot, start=start, end=len(text)))
    return text, slots


def telling_words(tokens: Sequence[Token], without: Sequence[Token] = ()) -> str:
    """Return the telling words of some tokens, a blank between them, without some other tokens.

    Example:
        >>> telling_words(tokens_of("Which huts have the most beds?", []), [Token("huts")])
        'beds'
    """
    return " ".join(token.word for token in tokens if token.telling and token not in without)


def words_of(tokens: Sequence[Token]) -> str:
    """Return the words of some tokens, a blank between them; "_" for an entity."""
    return " ".join(token.word or "_" for token in tokens)
