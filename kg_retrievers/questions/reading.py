"""A question as patterns, the types that its nouns name, and the base of readers without a language model."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any, NamedTuple, Self

from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Term, Unknown, local_name, readable
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.kinds import kind_names
from kg_retrievers.index import (
    FUNCTION_WORDS,
    EntityLinker,
    GraphIndex,
    QuestionEntity,
    check_index,
    linker_of,
    question_entities,
)
from kg_retrievers.index.embeddings import mean_rows, token_table
from kg_retrievers.questions.self_questions.english import is_plural, plural_of, singular_of, type_noun, verb_of
from kg_retrievers.questions.words import NUMBERS

#: The words for hundredths. Beside another word of its name they mean a relation, otherwise a share.
PERCENT = frozenset(["percent", "percentage", "pct", "%", "(%)"])

#: The words before a noun for the answers.
_ASKS = re.compile(
    r"\b(?:which|what|list|name|give|show|find|all)\b(?: (?:me|all|the|other|of|any|some|these|those))* "
    rf"(?:(?:{'|'.join(NUMBERS[2:])}|\d+) )?"
)

#: The other place of such a noun: before a statement about the answers.
_THE_THAT = re.compile(r"\bthe (?=(?:[\w-]+ ){1,3}(?:that|which|who)\b)")

#: Before such a place, these say that something else is asked for: "who made all films", "the hall in which films run".
_ASKS_OTHER = re.compile(r"\b(?:who|whom|whose|where|when|why|how|the)\b")

#: The most words of a noun.
MOST_WORDS = 3

#: From which cosine on a word means a type of another name, and how much less near the next type must be. "firm" and
#: "company" have .69, "town" and "city" .64, "boat" and "ship" .53, "train" and "bus" .40.
SYNONYM, MARGIN = 0.66, 0.1

_WORD = re.compile(r"'s\b|[\w-]+|[^\w\s]")

#: Forms of these follow a noun that ends in -s, as in "which film stars are from Graz".
_AUXILIARY = frozenset(["am", "is", "are", "was", "were", "do", "does", "did", "has", "have", "had"])


class TypeNouns:
    """The nouns for the types of a graph, singular and plural.

    Args:
        graph: Has the types.

    Example:
        >>> types = {"A": ["OilPainting"], "B": ["Print"]}
        >>> nouns = TypeNouns(KnowledgeGraph.from_triples([("A", "beside", "B")], types=types))
        >>> nouns.named(["prints"]), nouns.named(["oil", "paintings"]), nouns.named(["painting"]), nouns.named(["room"])
        ('Print', 'OilPainting', 'OilPainting', None)
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        """Read the names of the types."""
        whole, last = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        names = kind_names(graph)
        for name in names:
            local = name if "://" in name or " " in name else re.split(r"[:/#]", name)[-1]
            noun = type_noun(local).replace("-", " ")
            for form in {noun, plural_of(noun)} if noun else ():
                whole[form].append(name)
                last[form.split()[-1]].append(name)
        self._types = {noun: names[0] for noun, names in {**last, **whole}.items() if len(names) == 1}
        #: Whether the graph has types.
        self.has_types = bool(names)
        #: The words of the names of relations.
        self.relation_words = set[str]()
        #: The words beside "percent" in these names.
        self.percent_words = set[str]()
        for name in graph.relations:
            words = {*readable(local_name(name)).casefold().split()}
            self.relation_words |= words
            self.percent_words |= words - PERCENT if words & PERCENT else set()

    def usual(self, word: str) -> str:
        """Return a noun for the type clearly nearest to a word, as "companies" for "firms", otherwise the word."""
        folded = word.casefold()
        kind = None if folded in self._types else self._nearest(folded)
        nouns = [noun for noun in self._types if self._types[noun] == kind] if kind else []
        return next((noun for noun in nouns if is_plural(noun) == is_plural(folded)), nouns[0] if nouns else word)

    @cached_property
    def _vectors(self) -> Array:
        """The vectors of the nouns."""
        return mean_rows(token_table(), list(map(singular_of, self._types)))

    def _nearest(self, word: str) -> str | None:
        verb = verb_of(word)
        is_noun = word.isalpha() and (verb is None or verb.also_noun) and not word.endswith(("ing", "ed"))
        if not is_noun or word in FUNCTION_WORDS or word in self.relation_words or not self._types:
            return None
        cosines = self._vectors @ mean_rows(token_table(), [singular_of(word)])[0]
        best = dict[str, float]()
        for kind, cosine in zip(self._types.values(), cosines.tolist(), strict=True):
            best[kind] = max(cosine, best.get(kind, 0.0))
        first, *others = sorted(best, key=lambda kind: -best[kind])
        second = best[others[0]] if others else SYNONYM  # alone, it must be nearer
        return first if best[first] >= SYNONYM and best[first] - second >= MARGIN else None

    def named(self, noun: Sequence[str]) -> str | None:
        """Return the type that a noun names, by its whole name or last word, or None if none or several fit."""
        return self._types.get(" ".join(noun).casefold().replace("-", " "))

    def spans(self, words: Sequence[str]) -> list[tuple[int, int, str]]:
        """Return where words name types, in order: the first position, the one after the last, and the type.

        Of those that overlap, the first and longest is taken.

        Example:
            >>> graph = KnowledgeGraph.from_triples([("A", "shows", "B")], types={"A": ["oil painting"], "B": ["room"]})
            >>> TypeNouns(graph).spans("oil paintings in each room".split())
            [(0, 2, 'oil painting'), (4, 5, 'room')]
        """
        found, at = list[tuple[int, int, str]](), 0
        while at < len(words):
            sizes = range(min(MOST_WORDS, len(words) - at), 0, -1)
            named = ((size, self.named(words[at : at + size])) for size in sizes if all(words[at : at + size]))
            size, kind = next(((size, kind) for size, kind in named if kind), (1, None))
            if kind:
                found.append((at, at + size, kind))
            at += size
        return found

    def asked(self, question: str) -> str | None:
        """Return the type of a question's target, if its noun names one.

        Args:
            question: The question without the entities that it names.

        Example:
            >>> graph = KnowledgeGraph.from_triples([("A", "shows", "B")], types={"A": ["film"]})
            >>> nouns = TypeNouns(graph)
            >>> nouns.asked("Which films show a bridge?"), nouns.asked("Show me the film that shows it.")
            ('film', 'film')
            >>> [nouns.asked(text) for text in ("What film genre is it?", "Which films or plays show it?")]
            [None, None]
        """
        folded = question.casefold()
        for opening in (_ASKS, _THE_THAT):
            if found := opening.search(folded):
                other = _ASKS_OTHER.search(folded[: found.start()])
                return None if other else self._begins(_WORD.findall(folded[found.end() :]))
        return None

    def of_noun(self, noun: Sequence[str], following: str = "") -> str | None:
        """Return the type that the noun of a form names: all of its words, or else the last one.

        Args:
            noun: Its words.
            following: The word after it; with "and" or "or" other things are asked for, too.
        """
        if not noun or following in ("and", "or"):
            return None
        modifier = len(noun) > 1 and self.named(noun[:-1]) is not None
        return self.named(noun) or (None if modifier else self.named(noun[-1:]))

    def _begins(self, words: Sequence[str]) -> str | None:
        """Return the type that the first words name as a noun of its own."""
        telling = list(takewhile(lambda word: word[0].isalnum() and word not in FUNCTION_WORDS, words))
        for end in range(min(len(telling), MOST_WORDS), 0, -1):
            if kind := self.named(words[:end]):
                return kind if self._ends(words, end) else None
        return None

    def _ends(self, words: Sequence[str], end: int) -> bool:
        """Whether a noun ends at a position, rather than standing before another noun or being one of two."""
        following, after = [*words[end : end + 2], "", ""][:2]
        if following in ("'s", "and", "or", ",", "&", "/"):
            return False
        if not following or not following[0].isalnum() or following in FUNCTION_WORDS:
            return True
        if words[end - 1].endswith("s") and self.named([following]) is None:
            return True
        verb = verb_of(following)
        if verb is None:
            return False
        return following in (verb.past, verb.participle) or (following == verb.third and after not in _AUXILIARY)


def type_nouns(index: GraphIndex) -> TypeNouns:
    """Return the nouns for the types of an indexed graph, read when first needed."""
    return index.derived.get("type nouns", (index.graph,), lambda: TypeNouns(index.graph))


#: Ours. The confidence from which on no language model is asked.
SURE = 0.8


@dataclass(frozen=True)
class Reading:
    """The request that a question is read as.

    Attributes:
        pattern: The likeliest pattern. It has the source, the nearest relations and what the entities lack.
        alternatives: Other patterns, the likeliest first, each with its own confidence.
    """

    pattern: Pattern
    alternatives: tuple[Pattern, ...] = ()

    @property
    def confidence(self) -> float | None:
        """How likely the pattern is right, in [0, 1], or None if nothing is known about it."""
        return self.pattern.confidence

    @property
    def unplaced(self) -> tuple[str, ...]:
        """The words of the question that the pattern does not account for."""
        return self.pattern.unplaced

    @property
    def is_sure(self) -> bool:
        """Whether no language model need be asked: the confidence is `SURE`, and no word is left over."""
        return self.confidence is not None and self.confidence >= SURE and not self.unplaced


#: A generator of your own: any Runnable from `{"question", "seed_entities"}` to a pattern or a reading. If it has
#: `calls_model`, `prompts` or `with_index`, retrievers use them.
PatternGenerator = Runnable[Any, Pattern] | Runnable[Any, Reading]


def pattern_of(read: Reading | Pattern) -> Pattern:
    """Return the pattern of a reading. A generator of patterns may return either."""
    return read.pattern if isinstance(read, Reading) else read


class PatternWalk(NamedTuple):
    """A walk of a pattern, from a known node to the target: its relations, and whether each is crossed backward."""

    start: Known
    steps: list[tuple[str, bool]]


def walks_of(pattern: Pattern) -> list[PatternWalk] | None:
    """Return the walks from each known node of a pattern to its target, or None if the pattern is more than walks.

    Example:
        >>> pattern = Pattern.of(("Her", "directed by", Unknown("who")), target="who")
        >>> walks_of(pattern)
        [PatternWalk(start=Known(text='Her', type=None, entity=None), steps=[('directed by', False)])]
    """
    if pattern.attributes or pattern.conditions or pattern.absent or pattern.operation:
        return None
    left, walks = list(pattern.triples), list[PatternWalk]()
    for node in pattern.nodes:
        if not isinstance(node, Known):
            continue
        here: Term = node
        steps = list[tuple[str, bool]]()
        while not (isinstance(here, Unknown) and here.name == pattern.target):
            triple = next((triple for triple in left if here in (triple.head, triple.tail)), None)
            if triple is None or not isinstance(triple.relation, Known):
                return None
            left.remove(triple)
            backward = triple.head != here
            steps.append((triple.relation.text, backward))
            here = triple.head if backward else triple.tail
        walks.append(PatternWalk(node, steps))
    return walks if walks and not left else None


def node_of(slot: QuestionEntity) -> Known:
    """Return the node of an entity, pinned if only one is meant, so that no other is searched for."""
    return Known(slot.name, entity=slot.entities[0]) if slot.best == 1 else slot.term


class LinkingGenerator(Runnable[Mapping[str, Any], Pattern]):
    """A generator without a language model, which starts from the entities of a question."""

    calls_model = False

    def __init__(self, index: GraphIndex, linker: EntityLinker | None) -> None:
        """Take the index and its linker, or another one."""
        check_index(type(self).__name__, index)
        self.index = index
        self.linker = linker or linker_of(index)

    def with_index(self, index: GraphIndex) -> Self:
        """Return the generator over another graph."""
        moved = copy(self)
        moved.index, moved.linker = index, self.linker.with_index(index)
        return moved

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Pattern:
        """Return the pattern of `{"question", "seed_entities"}`. "entities" may hold them as they were found."""
        return self._call_with_config(self._generate, input, config)

    @abstractmethod
    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        """Return the pattern of the input of `invoke`."""

    def entities(self, input: Mapping[str, Any]) -> list[QuestionEntity]:
        """Return the entities of a question, the likeliest first: those given, else those found in it."""
        found: list[QuestionEntity] | None = input.get("entities")
        return found or question_entities(self.linker, input["question"], input.get("seed_entities") or ())
