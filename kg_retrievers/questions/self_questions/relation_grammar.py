"""What the name of a relation says: "directed_by" is a passive, "release_year" a noun."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import unquote

from kg_retrievers.graph import local_name, readable
from kg_retrievers.questions.self_questions.verbs import Verb, verb_of

#: How a name reads: "TAIL is HEAD's ...", "HEAD is the ... of TAIL", "HEAD was ... by TAIL", "HEAD ... TAIL",
#: "HEAD is ... TAIL".
Form = Literal["noun", "noun of", "passive", "verb", "copula"]

_PREPOSITIONS = """
about above across after against along among around as at before behind below beside between beyond by during for from
in inside into near next of off on onto out over per through to towards under upon via with within
"""

#: Participles that say how something is, where other past forms with a preposition say what it did: "starred in".
_STATES = """
admitted affiliated aligned appointed assigned associated attached based bordered born bound brought built buried
categorized classified compared composed concerned configured connected contained created dated dedicated deployed
derived described designed developed devoted disputed employed enacted executed filed filled found founded given
grouped headquartered held hosted inspired installed introduced involved issued kept known licensed linked listed
located made married mounted named ordained oriented owned paid placed produced published registered related released
rooted set shown situated sold spoken stored used written
"""

#: What stands before a noun; a name such as "lists_no_items" is read as it stands.
_DETERMINERS = frozenset({"a", "an", "the", "no", "not", "any", "all", "its", "their"})

#: Nouns that look like "starring".
_NOUNS_IN_ING = "building ending funding landing listing meaning painting ranking rating training"

_BE = frozenset({"is", "was", "are", "were", "be"})
_HAVE = frozenset({"has", "have", "had"})


@dataclass(frozen=True)
class RelationWords:
    """A relation's name as part of a sentence.

    Attributes:
        form: How it reads.
        words: The noun, the participle, what follows the verb, or what follows "is".
        verb: The verb of a passive or of a sentence with a verb.
        is_past: Whether the name has the verb in the past.
    """

    form: Form
    words: str
    verb: Verb | None = None
    is_past: bool = False


@lru_cache(maxsize=10_000)
def read_relation(name: str) -> RelationWords:
    """Read the name of a relation.

    A noun is taken for what the tail is to the head, as in most graphs: "Ann parent Bob" says that Bob is Ann's parent.
    The rules are those of English; in another language every name is a noun.

    Example:
        >>> read_relation("directed_by").form, read_relation("http://example.org/birthPlace").words
        ('passive', 'birth place')
        >>> read_relation("reports to").form, read_relation("capitalOf").form, read_relation("LOCATED_IN").form
        ('verb', 'noun of', 'copula')
    """
    words = _words(name)
    be = words[0] in _BE and len(words) > 1
    if be or (words[0] in _HAVE and len(words) > 1):
        words = words[1:]
    if words[0] in _PREPOSITIONS.split() and len(words) > 1 and words[-1] not in _PREPOSITIONS.split():
        return RelationWords("noun", " ".join(words[1:]))
    first, rest = verb_of(words[0]), words[1:]
    if words[-1] == "by" and len(words) == 2 and first and words[0] in (first.past, first.participle):
        return RelationWords("passive", words[0], first)
    if be or (words[0] in _STATES.split() and _are_prepositions(rest) and rest):
        return RelationWords("noun", "kind") if words in (["a"], ["an"]) else _state(words)
    if first and _is_verb(words, first):
        return RelationWords("verb", " ".join(rest), first, words[0] in (first.past, first.participle))
    if words[-1] == "of" and len(words) > 1:
        return RelationWords("noun of", " ".join(words[:-1]))
    if first and rest and words[0] == first.third and (found := _with_object(first, rest)):
        return found
    if words[-1] in _PREPOSITIONS.split():
        return RelationWords("copula", " ".join(words))
    return RelationWords("noun", " ".join(words))


def _words(name: str) -> list[str]:
    """Return the words of a name: of a URI or a Freebase path those of its last part."""
    last = unquote(name.rstrip("/#:").rpartition("://")[2]) if "://" in name else local_name(name)
    last = re.split(r"[/#]", last.strip("/"))[-1] if len(last.split()) == 1 else last
    last = last.rpartition(".")[2] or last
    words = re.sub(r"[\W_]+", " ", readable(last.lower() if last.isupper() else last)).split()
    return [word.casefold() if not word.isupper() or len(words) == 1 else word for word in words] or [name.strip()]


def _is_verb(words: list[str], verb: Verb) -> bool:
    """Tell whether a name is a verb with what may follow it; a single word may be a noun as well."""
    if len(words) > 1:
        is_form = words[0] in (verb.third, verb.past) and not verb.also_noun  # "shares border with"
        if words[1:] == ["of"] and verb.also_noun:
            return False  # "labels of"
        return _are_prepositions(words[1:]) or (is_form and words[-1] in _PREPOSITIONS.split())
    if words[0] in (verb.past, verb.participle):
        return words[0] != verb.base
    if words[0] == verb.gerund:
        return words[0] not in _NOUNS_IN_ING.split()
    return words[0] == verb.third and not verb.also_noun


def _with_object(verb: Verb, rest: list[str]) -> RelationWords | None:
    """Return how a verb with its object reads: "cites statute" is a noun, "depends on service" is "depends on"."""
    if verb.also_noun or rest[0] == "of" or rest[0] in _DETERMINERS:
        return None
    if rest[0] in _PREPOSITIONS.split():
        return RelationWords("verb", rest[0], verb)
    return RelationWords("noun", " ".join(rest))


def _state(words: list[str]) -> RelationWords:
    if words[-1] == "of" and words[0] not in _STATES.split():
        return RelationWords("noun of", " ".join(word for word in words[:-1] if word not in ("a", "an", "the")))
    if words[-1] in _PREPOSITIONS.split():
        return RelationWords("copula", " ".join(words))
    return RelationWords("noun", " ".join(words))


def _are_prepositions(words: list[str]) -> bool:
    return all(word in _PREPOSITIONS.split() for word in words)
