"""Grammar of English: the verbs, the meaning of a relation's name, and nouns for the ends of its facts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal
from urllib.parse import unquote

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.graph.columns import spread

#: Words by what they are: verbs, of which irregular ones stand with base, past and participle, prepositions, and
#: participles that say how something is, where other past forms with a preposition say what it did: "starred in".
_WORDS: dict[str, list[str]] = json.loads((files(__package__) / "english.json").read_text("utf-8"))

#: Regular verbs of several syllables, or with an unstressed end, that double their last letter all the same.
_DOUBLING = frozenset({"admit", "commit", "control", "occur", "permit", "program", "refer", "transfer", "transmit"})

_VOWELS = "aeiou"


@dataclass(frozen=True)
class Verb:
    """The forms of a verb. `base` and `third` are empty if only a past form is known.

    Attributes:
        base: As in "did write".
        third: As in "writes".
        past: As in "wrote".
        participle: As in "was written".
        agent: Who does it, as in "writer"; may be no word that people use.
        gerund: As in "writing".
        also_noun: Whether its base and third forms are nouns as well: "award", "awards".
    """

    base: str
    third: str
    past: str
    participle: str
    agent: str = ""
    gerund: str = ""
    also_noun: bool = False


def verb_of(word: str) -> Verb | None:
    """Return the verb that a word is a form of. Of an unknown past form only this form is known.

    Example:
        >>> verb_of("written").past, verb_of("colonized").base, verb_of("colour")
        ('wrote', '', None)
    """
    if known := _FORMS.get(word):
        return known
    return Verb("", "", word, word) if re.fullmatch(r"[^\W\d_]{2,}ed", word) else None


def verb_of_agent(noun: str) -> Verb | None:
    """Return the verb for the activity that a noun of agent names.

    Example:
        >>> verb_of_agent("writer").base, verb_of_agent("river")
        ('write', None)
    """
    return _AGENTS.get(noun)


def _stem(base: str) -> str:
    """Return a base as it stands before "ed" and "er"."""
    if base.endswith("y") and base[-2] not in _VOWELS:
        return base[:-1] + "i"
    is_short = re.fullmatch(rf"[^{_VOWELS}]*[{_VOWELS}][^{_VOWELS}wxy]", base)
    return base + base[-1] if is_short or base in _DOUBLING else base


def _agent(base: str) -> str:
    if base.endswith(("ate", "ct", "it")):
        return base.removesuffix("e") + "or"
    return f"{base}r" if base.endswith("e") else f"{_stem(base)}er"


def _gerund(base: str) -> str:
    if base.endswith("ie"):
        return base.removesuffix("ie") + "ying"
    if base.endswith("e") and not base.endswith("ee"):
        return base.removesuffix("e") + "ing"
    return (base if base.endswith("y") else _stem(base)) + "ing"


def _verb(base: str, past: str = "", participle: str = "", *, also_noun: bool = False) -> Verb:
    """Return the forms of a verb, the regular ones if only the base is given."""
    past = past or (f"{_stem(base)}d" if base.endswith("e") else f"{_stem(base)}ed")
    third = f"{base}es" if base.endswith("o") else plural_of(base)
    return Verb(base, third, past, participle or past, _agent(base), _gerund(base), also_noun)


#: How the names of ends are written that are dates or numbers without a unit.
_VALUES: dict[EndKind, re.Pattern[str]] = {
    "date": re.compile(
        r"-?\d{4}(?:[-/]\d{1,2}(?:[-/]\d{1,2}(?:T.*)?)?)?|\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{1,2} [^\W\d]+ \d{4}"
    ),
    "number": re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?(?:[eE][-+]?\d+)?\s?%?"),
}

#: The plurals that no rule gives.
_PLURALS = {"person": "people", "child": "children", "man": "men", "woman": "women", "foot": "feet", "mouse": "mice"}


def plural_of(noun: str) -> str:
    """Return the plural of a noun.

    Example:
        >>> plural_of("animated film"), plural_of("city"), plural_of("person")
        ('animated films', 'cities', 'people')
    """
    before, blank, last = noun.rpartition(" ")
    if last.casefold() in _PLURALS:
        return before + blank + _PLURALS[last.casefold()]
    if re.search(r"[^aeiou]y$", last):
        return noun[:-1] + "ies"
    return noun + ("es" if re.search(r"(?:s|x|z|ch|sh)$", last) else "s")


_VERBS = [
    *(_verb(*forms.split()) for forms in _WORDS["irregular verbs"]),
    *(_verb(base, also_noun=True) for base in _WORDS["verbs that are as often nouns"]),
    *map(_verb, _WORDS["regular verbs"]),
]

#: Every form but the agent. If two verbs share one, as "found", the form of the last counts.
_FORMS = {form: verb for verb in _VERBS for form in (verb.base, verb.third, verb.past, verb.participle, verb.gerund)}
_AGENTS = {verb.agent: verb for verb in _VERBS}


#: How a name reads: "TAIL is HEAD's ...", "HEAD is the ... of TAIL", "HEAD was ... by TAIL", "HEAD ... TAIL",
#: "HEAD is ... TAIL".
Form = Literal["noun", "noun of", "passive", "verb", "copula"]

#: Words that may stand before a noun, such as "in".
PREPOSITIONS = frozenset(_WORDS["prepositions"])
_STATES = frozenset(_WORDS["participles of states"])

#: Words before a noun. A name such as "lists_no_items" is read as it stands.
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

    A noun is taken for the tail's role to the head, as in most graphs: "Ann parent Bob" says that Bob is Ann's parent.
    The rules are for English. In another language every name is a noun.

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
    if words[0] in PREPOSITIONS and len(words) > 1 and words[-1] not in PREPOSITIONS:
        return RelationWords("noun", " ".join(words[1:]))
    first, rest = verb_of(words[0]), words[1:]
    if words[-1] == "by" and len(words) == 2 and first and words[0] in (first.past, first.participle):
        return RelationWords("passive", words[0], first)
    if be or (words[0] in _STATES and set(rest).issubset(PREPOSITIONS) and rest):
        return RelationWords("noun", "kind") if words in (["a"], ["an"]) else _state(words)
    if first and _is_verb(words, first):
        return RelationWords("verb", " ".join(rest), first, words[0] in (first.past, first.participle))
    if words[-1] == "of" and len(words) > 1:
        return RelationWords("noun of", " ".join(words[:-1]))
    if first and rest and words[0] == first.third and (found := _with_object(first, rest)):
        return found
    return _state(words)


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
        return set(words[1:]).issubset(PREPOSITIONS) or (is_form and words[-1] in PREPOSITIONS)
    if words[0] in (verb.past, verb.participle):
        return words[0] != verb.base
    if words[0] == verb.gerund:
        return words[0] not in _NOUNS_IN_ING.split()
    return words[0] == verb.third and not verb.also_noun


def _with_object(verb: Verb, rest: list[str]) -> RelationWords | None:
    """Return how a verb with its object reads: "cites statute" is a noun, "depends on service" is "depends on"."""
    if verb.also_noun or rest[0] == "of" or rest[0] in _DETERMINERS:
        return None
    if rest[0] in PREPOSITIONS:
        return RelationWords("verb", rest[0], verb)
    return RelationWords("noun", " ".join(rest))


def _state(words: list[str]) -> RelationWords:
    if words[-1] == "of" and len(words) > 1 and words[0] not in _STATES:
        return RelationWords("noun of", " ".join(word for word in words[:-1] if word not in ("a", "an", "the")))
    if words[-1] in PREPOSITIONS:
        return RelationWords("copula", " ".join(words))
    return RelationWords("noun", " ".join(words))


EndKind = Literal["person", "place", "date", "number", "thing", "unknown"]

#: How many ends of a relation are looked at, and the share of them that decides the kind of all.
ENDS_SEEN, SHARE = 200, 0.8

#: Words in the names of types that say that something is a person, or a place.
_PERSON = frozenset({"person", "persons", "people", "human", "humans", "individual"})
_PLACE = frozenset(_WORDS["places"])


@dataclass(frozen=True)
class EndWords:
    """The words for the ends of a step.

    Attributes:
        kind: What it is.
        noun: A noun for one of it.
    """

    kind: EndKind
    noun: str

    @property
    def plural(self) -> str:
        """A noun for several."""
        return plural_of(self.noun)

    @property
    def asks(self) -> tuple[str, ...]:
        """The question words for it as a subject."""
        return {"person": ("who",), "unknown": ("what", "who")}.get(self.kind, ("what",))

    @property
    def relative(self) -> str:
        """The pronoun that begins a relative clause about it."""
        return "who" if self.kind == "person" else "that"

    @property
    def adverb(self) -> str:
        """The question word in place of a preposition and it, if there is one."""
        return {"place": "where", "date": "when"}.get(self.kind, "")


def is_plural(noun: str) -> bool:
    """Tell whether a noun seems to stand for several.

    Example:
        >>> is_plural("starred actors"), is_plural("children"), is_plural("address"), is_plural("status")
        (True, True, False, False)
    """
    last = noun.rpartition(" ")[2]
    return last in _PLURALS.values() or bool(re.search(r"[^\Wsiu]s$", last))


def singular_of(noun: str) -> str:
    """Return the noun for one, of a noun for one or several.

    Example:
        >>> singular_of("starred actors"), singular_of("children"), singular_of("address")
        ('starred actor', 'child', 'address')
    """
    if not is_plural(noun):
        return noun
    before, blank, last = noun.rpartition(" ")
    irregular = {several: one for one, several in _PLURALS.items()}
    if last in irregular:
        return before + blank + irregular[last]
    return noun.removesuffix("ies") + "y" if re.search(r"[^aeiou]ies$", noun) else noun.removesuffix("s")


def end_words(graph: KnowledgeGraph, label: int) -> EndWords:
    """Return the words for the ends of the steps with an adjacency label.

    The names of most ends say whether they are dates or numbers. Their types say whether they are persons or places,
    and how one is called. Without types, the relation can say it: somebody directs a thing that is "directed by" them.

    Args:
        graph: The graph.
        label: The label of the steps.

    Example:
        >>> from kg_retrievers.testing import tiny_graph
        >>> graph = tiny_graph()
        >>> end_words(graph, 2 * graph.relations.find("directed_by")).kind
        'person'
    """
    ends = spread(graph.relation_samples.ends_of(label), ENDS_SEEN)
    names = [graph.names[int(graph.labels[end])] for end in ends.tolist()]
    for value, pattern in _VALUES.items():
        if len([*filter(pattern.fullmatch, names)]) >= SHARE * len(names) > 0:
            return EndWords(value, value)
    kinds = Counter(kind for end in ends.tolist() for kind in graph.entity_types(end))
    shared = [graph.types[kind] for kind, count in kinds.items() if count >= SHARE * len(ends)]
    if shared:
        return _of_types(graph, shared)
    return EndWords("person", "person") if _seems_person(graph, label) else EndWords("unknown", "one")


def _of_types(graph: KnowledgeGraph, types: Sequence[str]) -> EndWords:
    """Return the words for what has these types; the rarest of them is its noun, if it is short."""
    rarest = min(types, key=lambda kind: (len(graph.type_entities(graph.types.find(kind))), kind))
    words = {word for kind in types for word in (type_noun(kind) or readable(kind).casefold()).split()}
    kind: EndKind = "person" if words & _PERSON else "place" if words & _PLACE else "thing"
    return EndWords(kind, type_noun(rarest) or kind)


def type_noun(kind: str) -> str:
    """Return the name of a type as a noun, if it is one to three words.

    Example:
        >>> type_noun("AnimatedFilm"), type_noun("http://example.org/Film"), type_noun("dbo:Film")
        ('animated film', 'film', 'film')
    """
    words = read_relation(kind).words.casefold() if "://" in kind else _spaced(local_name(kind))
    return words if len(words.split()) in (1, 2, 3) and words[0].isalpha() else ""


def _spaced(kind: str) -> str:
    name = readable(kind[:1].lower() + kind[1:] if kind[1:2].islower() else kind)
    return name.casefold() if re.fullmatch(r"[\w -]+", name) else ""


def _seems_person(graph: KnowledgeGraph, label: int) -> bool:
    """Tell whether the name of a relation says that persons are what a step leads to."""
    words = read_relation(graph.relations[relation_of(label)])
    backward = is_backward(label)
    if words.form == "passive":
        return not backward
    if words.form in ("noun", "noun of"):
        agent = verb_of_agent(singular_of(words.words).rpartition(" ")[2])
        return agent is not None and backward == (words.form == "noun of")
    return False
