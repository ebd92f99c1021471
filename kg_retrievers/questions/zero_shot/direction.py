"""Which end of a fact is above the other, by the words of a claim and by the name of a relation: boss and report.

Of two ends of one kind, words such as "boss", "trained by" and "tributary of" say which is which. A relation may be
named from the other end ("reports to"), so that both are brought to one form: the end that is above, that comes before
or that acts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from kg_retrievers.questions.self_questions.english import is_plural, verb_of
from kg_retrievers.questions.words import WORDS
from kg_retrievers.questions.zero_shot.scorer import OTHER, TOPIC

_IDLE = frozenset(WORDS["say nothing of a relation"])
_BE = frozenset(["am", "is", "are", "was", "were", "be", "been", "being"])


class Said(NamedTuple):
    """The meaning of words about two ends.

    Attributes:
        stem: The stem of the verb or noun.
        acts: Whether the first end acts, or is what the noun says.
    """

    stem: str
    acts: bool

    @property
    def above(self) -> bool | None:
        """Whether the first end is above the second, or None if the word does not say."""
        if self.stem in _ABOVE:
            return self.acts
        return not self.acts if self.stem in _BELOW else None


@lru_cache(maxsize=4096)
def stem_of(word: str) -> str:
    """Return the common stem of forms of a verb and the noun for its agent.

    Example:
        >>> stem_of("supervised"), stem_of("supervisor"), stem_of("taught"), stem_of("teachers")
        ('supervis', 'supervis', 'teach', 'teach')
    """
    known = None if word.endswith("ee") else verb_of(word)
    word = WORDS["pasts"].get(word) or (known.base if known and known.base else word)
    word = f"{word[:-3]}y" if word.endswith(("ies", "ied")) and len(word) > 4 else word
    if word.endswith("ee"):
        return word
    for endings in (("ing", "es", "ed", "s", "e"), ("er", "or")):
        ending = next((end for end in endings if word.endswith(end) and len(word) - len(end) >= 3), "")
        ending = "" if word.endswith("ss") else ending
        word = word.removesuffix(ending)
    return word.removesuffix("e") if len(word) > 3 else word


_ABOVE = frozenset(map(stem_of, WORDS["nouns above"] + WORDS["verbs above"]))
_BELOW = frozenset(map(stem_of, WORDS["nouns below"] + WORDS["verbs below"]))

#: The stems of nouns that are no verbs.
_NOUNS = (_ABOVE | _BELOW) - frozenset(map(stem_of, WORDS["verbs above"] + WORDS["verbs below"]))

#: Words that end the name of a relation in which the head has the role of the name: "subsidiary of".
_OF = frozenset(["of", "to", "for", "from", "under", "on", "into", "after", "in"])


def claimed(text: str) -> Said | None:
    """Return the meaning of a claim about `TOPIC` and `OTHER`, the first and the second end.

    Example:
        >>> claimed("was [x] trained by [y]"), claimed("is [y] the boss of [x]"), claimed("does [x] report to [y]")
        (Said(stem='train', acts=False), Said(stem='boss', acts=False), Said(stem='report', acts=True))
    """
    parts = re.split(rf"({re.escape(TOPIC)}|{re.escape(OTHER)})", _plain(text))
    if len(parts) != 5:
        return None
    before, one, between, _, after = (part.strip(" ,?.!") for part in parts)
    if own := re.match(r"(?:'s?|’s?)\s+(.+)", between):  # "is a's boss b"
        return _said(_noun(own[1]), one != TOPIC)
    if re.search(r"\b(?:has|have|had)$", before) and re.match(r"(?:an?|the|any)\b", between):  # "has a a boss named b"
        return _said(_noun(between), one != TOPIC)
    if re.fullmatch(r"(?:\w+ly )?(?:has|have|had)", between):  # "does a have b as boss"
        return _said(_noun(after.removeprefix("as ")), one != TOPIC)
    owned = re.match(r"(?:(?:'s?|’s?)\s+)?(.+)", after) if not _telling(between) else None
    if owned and any(map(_tells, _telling(owned[1]))):  # "is a b's boss"
        return _said(_noun(owned[1]), one == TOPIC)
    if not _telling(between):  # "is the boss of a b"
        return _said(_noun(before.removesuffix(" of")), one != TOPIC)
    words = _telling(between)
    if between == words[0] and stem_of(between) in _NOUNS:
        return Said(stem_of(between), one != TOPIC)  # "is a boss b", without the sign of the genitive
    passive = between.endswith(" by") or " by the " in f"{between} " or _is_trained_under(words)
    said = stem_of(words[0] if passive else next((word for word in words if _tells(word)), words[0]))
    return Said(said, (one == TOPIC) != passive)


#: How many words may stand between the entity of a question and the word that tells the direction.
NEAR_WORDS = 4


def asked_end(text: str) -> Said | None:
    """Return a question's words about its answer, the first end, and `TOPIC`, or None if they do not say.

    Example:
        >>> asked_end("who are the direct reports of [x]"), asked_end("who did [x] train"), asked_end("[x] 's boss")
        (Said(stem='report', acts=True), Said(stem='train', acts=False), Said(stem='boss', acts=True))
        >>> asked_end("who was [x] apprenticed under"), asked_end("who was [x] trained under")
        (Said(stem='apprentic', acts=False), Said(stem='train', acts=True))
    """
    words = re.findall(r"\[[xy]\]|'s\b|[\w-]+", _plain(text))
    if TOPIC not in words:
        return None
    at = words.index(TOPIC)
    telling = [place for place, word in enumerate(words) if abs(place - at) <= NEAR_WORDS + 1 and _tells(word)]
    if not telling:
        return None
    owned = next((word for word in words[at + 1 :] if word != "'s"), "")
    asks_verb = words[at - 1 : at] in (["do"], ["does"], ["did"])  # "who did she mentor"
    if not asks_verb and words[-1] not in _OF and _may_be_noun(owned) and _tells(owned):  # "the pupils of his trainer"
        return Said(stem_of(owned), True)
    of_it = [place for place in telling if words[place + 1 : at] in (["of"], ["of", "the"])]
    place = min(of_it or telling, key=lambda one: (abs(one - at), one))
    stem, between = stem_of(words[place]), words[min(place, at) + 1 : max(place, at)]
    if place < at:
        return Said(stem, ("by" not in between or "of" in between) and words[place - 1 : place] != ["whose"])
    if words[place + 1 : place + 2] == ["of"] or words[-1] == "of":  # "what is it part of"
        return Said(stem, False)
    if not {"under", "to"}.isdisjoint([words[0], words[-1]]):  # "who was she apprenticed under"
        return Said(stem, stem in _ABOVE)
    passive = not _BE.isdisjoint([*between, *words[max(at - 1, 0) : at]]) and not words[place].endswith("ing")
    has = "'s" in between or "have" in between or (between == ["as"] and is_plural(words[place]))
    return Said(stem, has or passive or words[-1] == "by")


def relation_says(relation: str) -> Said | None:
    """Return the meaning of a relation's words about head and tail.

    Example:
        >>> relation_says("trained under"), relation_says("reports to"), relation_says("subsidiary of").acts
        (Said(stem='train', acts=False), Said(stem='report', acts=True), True)
    """
    words = relation.casefold().split()
    telling = _telling(" ".join(words)) or words
    if not telling:
        return None
    if words[-1] == "by" or _is_trained_under(words):
        return Said(stem_of(telling[0]), False)
    if words[0] in ("has", "have"):
        return Said(stem_of(telling[-1]), False)
    verb = verb_of(words[0])
    is_noun = len(words) == 1 and stem_of(words[0]) in _NOUNS
    third = words[0].endswith("s") and not words[0].endswith("ss")
    is_verb = words[0] != verb.base if verb else third and len(words) == 1 and not is_noun
    if (is_verb and words != ["reports"]) or words[-1] in _OF:
        return Said(stem_of(next((word for word in telling if _tells(word)), telling[0])), True)
    return Said(stem_of(next((word for word in reversed(telling) if _tells(word)), telling[-1])), False)


def agrees(claim: Said, relation: Said) -> bool | None:
    """Return whether a claim has its first end for the head of a relation, or None if the words do not say.

    Example:
        >>> agrees(Said("boss", True), Said("report", True)), agrees(Said("train", True), Said("train", True))
        (False, True)
    """
    if claim.stem == relation.stem:
        return claim.acts == relation.acts
    if claim.above is None or relation.above is None:
        return None
    return claim.above == relation.above


def _plain(text: str) -> str:
    """Return a text folded, with one word for "look after"."""
    return re.sub(r"\blook(?:s|ed|ing)? after\b", "manage", text.casefold())


def _is_trained_under(words: Sequence[str]) -> bool:
    """Return whether words are those of "trained under": whom somebody trains is under them."""
    return words[-1:] == ["under"] and stem_of(words[0]) in _ABOVE


def _may_be_noun(word: str) -> bool:
    return stem_of(word) in _NOUNS or bool(re.search(r"(?:er|or|ee)s?$", word))


def _said(stem: str | None, acts: bool) -> Said | None:
    return None if stem is None else Said(stem, acts)


def _telling(text: str) -> list[str]:
    return [word for word in re.findall(r"[\w-]+", text) if word not in _IDLE and word not in ("by", "from", "s")]


def _tells(word: str) -> bool:
    return word != "parts" and Said(stem_of(word), True).above is not None


def _noun(text: str) -> str | None:
    """Return the stem of the noun of a phrase."""
    words = _telling(text)
    return stem_of(next((word for word in reversed(words) if _tells(word)), words[-1])) if words else None
