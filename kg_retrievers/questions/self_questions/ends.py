"""What the ends of a step are: persons, places, dates, numbers, or what the graph's types call them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kg_retrievers.graph import KnowledgeGraph, local_name, readable
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.graph.columns import spread
from kg_retrievers.questions.self_questions.relation_grammar import read_relation
from kg_retrievers.questions.self_questions.verbs import verb_of_agent

EndKind = Literal["person", "place", "date", "number", "thing", "unknown"]

#: How many ends of a relation are looked at, and the share of them that decides what all are.
ENDS_SEEN, SHARE = 200, 0.8

#: Words in the names of types that say that something is a person, or a place.
_PERSON = frozenset({"person", "persons", "people", "human", "humans", "individual"})
_PLACE = frozenset(
    {"place", "location", "city", "town", "village", "country", "state", "region", "continent", "county"}
)

_DATE = re.compile(
    r"-?\d{4}(?:[-/]\d{1,2}(?:[-/]\d{1,2}(?:T.*)?)?)?|\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{1,2} [^\W\d]+ \d{4}"
)
_NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?(?:[eE][-+]?\d+)?\s?%?")

#: The plurals that no rule gives.
_PLURALS = {"person": "people", "child": "children", "man": "men", "woman": "women", "foot": "feet", "mouse": "mice"}


@dataclass(frozen=True)
class EndWords:
    """The words for what a step leads to.

    Attributes:
        kind: What it is.
        noun: A noun for one of it.
        plural: A noun for several.
    """

    kind: EndKind
    noun: str
    plural: str

    @classmethod
    def of(cls, kind: EndKind, noun: str) -> EndWords:
        """Add the plural."""
        return cls(kind, noun, plural_of(noun))

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
    """Return the words for what the steps with an adjacency label lead to.

    What most ends are called says whether they are dates or numbers; their types say whether they are persons or places
    and what one is called. Without types, the relation can say it: somebody directs what is "directed by" them.

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
    if _most(names, _DATE):
        return EndWords.of("date", "date")
    if _most(names, _NUMBER):
        return EndWords.of("number", "number")
    kinds = Counter(kind for end in ends.tolist() for kind in graph.entity_types(end))
    shared = [graph.types[kind] for kind, count in kinds.items() if count >= SHARE * len(ends)]
    if shared:
        return _of_types(graph, shared)
    return EndWords.of("person", "person") if _seems_person(graph, label) else EndWords.of("unknown", "one")


def _of_types(graph: KnowledgeGraph, types: Sequence[str]) -> EndWords:
    """Return the words for what has these types; the rarest of them is its noun, if it is short."""
    rarest = min(types, key=lambda kind: (len(graph.type_entities(graph.types.find(kind))), kind))
    words = {word for kind in types for word in (type_noun(kind) or readable(kind).casefold()).split()}
    kind: EndKind = "person" if words & _PERSON else "place" if words & _PLACE else "thing"
    return EndWords.of(kind, type_noun(rarest) or kind)


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


def _most(names: Sequence[str], pattern: re.Pattern[str]) -> bool:
    fitting = sum(pattern.fullmatch(name.strip()) is not None for name in names)
    return bool(names) and fitting >= SHARE * len(names)
