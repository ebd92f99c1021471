"""The text of a question: what a shape asks for, said in one of many ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import is_backward, label_of, relation_of
from kg_retrievers.questions.self_questions.english import (
    EndWords,
    RelationWords,
    Verb,
    end_words,
    is_plural,
    singular_of,
    verb_of_agent,
)
from kg_retrievers.questions.self_questions.shapes import Names, Shape, Walk

#: Past forms that keep "was" where others have "is": one is born once, and located all the time.
_ONCE = frozenset({"born", "buried", "founded", "published", "released", "made", "written"})


@dataclass(frozen=True)
class Start:
    """Where a step starts: an entity's name, or a noun phrase for what an earlier step leads to."""

    text: str
    plural: bool = False
    form: Literal["name", "noun", "clause"] = "name"

    def be(self, past: bool = False) -> str:
        """Return the form of "be"."""
        return be(self.plural, past)

    @property
    def do(self) -> str:
        """The form of "do"."""
        return "do" if self.plural else "does"

    @property
    def possessive(self) -> str:
        """The possessive form."""
        return self.text + ("'" if self.text.endswith("s") else "'s")


@dataclass(frozen=True)
class StepPhrases:
    """The ways to say what a step leads to.

    Attributes:
        nouns: Noun phrases for the ends: "the director of Her", "Her's director".
        predicates: What the ends do or have, of one and of several: "has the genre Drama", "have the genre Drama".
        identities: What the ends are, of one and of several: "is the genre of Her", "are the genre of Her".
        gaps: What the start does to them, as a question and as a clause: "did Ann direct", "Ann directed".
        reduced: What follows their noun at once: "directed by Ann", "whose genre is Drama".
        adverbs: What follows "where" or "when": "was Ann born".
        amounts: What follows "how many", of a number: "employees does Acme have".
        possessions: What follows "what" or "which": "genre does Her have".
    """

    nouns: tuple[str, ...] = ()
    predicates: tuple[tuple[str, str], ...] = ()
    identities: tuple[tuple[str, str], ...] = ()
    gaps: tuple[tuple[str, str], ...] = ()
    reduced: tuple[str, ...] = ()
    adverbs: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    possessions: tuple[str, ...] = ()

    def __add__(self, other: StepPhrases) -> StepPhrases:
        """Return the ways of both."""
        return StepPhrases(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def be(plural: bool, past: bool = False) -> str:
    """Return the form of "be"."""
    return ("were" if plural else "was") if past else ("are" if plural else "is")


def step_phrases(words: RelationWords, backward: bool, start: Start) -> StepPhrases:
    """Return the ways to say a step.

    Args:
        words: What the relation's name says.
        backward: Whether the step leads from the relation's tail to its head.
        start: Where it starts.

    Example:
        >>> from kg_retrievers.questions.self_questions.english import read_relation
        >>> step_phrases(read_relation("directed_by"), True, Start("Ann")).gaps
        (('did Ann direct', 'Ann directed'),)
        >>> step_phrases(read_relation("birth_place"), False, Start("Ann")).nouns
        ('the birth place of Ann', "Ann's birth place")
    """
    if words.form == "noun":
        return _of_noun(words, backward, start)
    if words.form == "noun of":
        return _of_noun_of(words.words, backward, start)
    if words.form == "copula":
        return _of_copula(words.words, backward, start)
    assert words.verb is not None
    if words.form == "passive":
        return _passive(words.verb, words.words, backward, start) + _agent_noun(words.verb, backward, start)
    return _of_verb(words, words.verb, backward, start)


def _of_noun(words: RelationWords, backward: bool, start: Start) -> StepPhrases:
    """HEAD's NOUN is TAIL."""
    noun, x = words.words, start.text
    amount = noun.removeprefix("number of ")
    if not backward:
        owned = () if start.form == "clause" else (f"{start.possessive} {noun}",)
        found = StepPhrases(
            nouns=(f"the {noun} of {x}", *owned),
            identities=((f"is the {singular_of(noun)} of {x}", f"are the {noun} of {x}"),),
            amounts=(f"{amount} {start.do} {x} have",) if amount != noun else (),
            possessions=(f"{noun} {start.do} {x} have",),
        )
    elif start.form == "name":
        one = singular_of(noun)
        found = StepPhrases(
            predicates=((f"has the {one} {x}", f"have the {one} {x}"), (f"has {x} as {one}", f"have {x} as {one}")),
            reduced=(f"whose {one} is {x}", f"with the {one} {x}", f"with {x} as {one}"),
        )
    else:
        one = noun if start.plural else singular_of(noun)
        found = StepPhrases(
            predicates=((f"has {x} as {one}", f"have {x} as {one}"),), reduced=(f"whose {one} {start.be()} {x}",)
        )
    agent = verb_of_agent(singular_of(noun))
    return found + _passive(agent, agent.participle, backward, start) if agent else found


def _of_noun_of(noun: str, backward: bool, start: Start) -> StepPhrases:
    """HEAD is the NOUN of TAIL."""
    if backward:
        return _of_noun(RelationWords("noun", noun), False, start)
    x, is_ = start.text, start.be()
    return StepPhrases(
        gaps=(
            (f"{is_} {x} {noun} of", f"{x} {is_} {noun} of"),
            (f"{is_} {x} the {noun} of", f"{x} {is_} the {noun} of"),
        ),
        reduced=(f"whose {noun} {is_} {x}", f"with {x} as {noun}"),
    )


def _passive(verb: Verb, participle: str, backward: bool, start: Start) -> StepPhrases:
    """HEAD was PARTICIPLE by TAIL; TAIL PAST HEAD."""
    x, was, past = start.text, start.be(past=True), verb.past
    if backward:
        return StepPhrases(
            predicates=((f"was {participle} by {x}", f"were {participle} by {x}"),),
            gaps=((f"did {x} {verb.base}", f"{x} {past}"),) if verb.base else (),
            reduced=(f"{participle} by {x}",),
        )
    return StepPhrases(
        predicates=((f"{past} {x}", f"{past} {x}"),),
        gaps=((f"{was} {x} {participle} by", f"{x} {was} {participle} by"),),
    )


def _agent_noun(verb: Verb, backward: bool, start: Start) -> StepPhrases:
    """TAIL is the AGENT of HEAD, where the verb has one."""
    if not verb.agent or backward:
        return StepPhrases()
    owned = () if start.form == "clause" else (f"{start.possessive} {verb.agent}",)
    return StepPhrases(nouns=(f"the {verb.agent} of {start.text}", *owned))


def _of_verb(words: RelationWords, verb: Verb, backward: bool, start: Start) -> StepPhrases:
    """HEAD VERB TAIL, with a preposition or without."""
    x, rest = start.text, f" {words.words}" if words.words else ""
    do = "did" if words.is_past else start.do
    finite = verb.past if words.is_past else verb.third
    if backward:
        several = verb.past if words.is_past else verb.base
        doing = (f"{verb.gerund}{rest} {x}",) if verb.gerund and not words.is_past else ()
        found = StepPhrases(predicates=((f"{finite}{rest} {x}", f"{several}{rest} {x}"),), reduced=doing)
    else:
        says = verb.past if words.is_past else verb.base if start.plural else verb.third
        asked = ((f"{do} {x} {verb.base}{rest}", f"{x} {says}{rest}"),) if verb.base else ()
        adverbs = (f"{do} {x} {verb.base}",) if verb.base and words.words else ()
        found = StepPhrases(gaps=asked, adverbs=adverbs) if asked else StepPhrases(reduced=(f"that {x} {says}{rest}",))
    if words.words:
        return found
    return found + _passive(verb, verb.participle, not backward, start) if words.is_past else found


def _of_copula(rest: str, backward: bool, start: Start) -> StepPhrases:
    """HEAD is REST TAIL."""
    before, _, last = rest.rpartition(" ")
    past = rest.partition(" ")[0] in _ONCE
    x, is_ = start.text, start.be(past)
    if backward:
        return StepPhrases(
            predicates=((f"{be(False, past)} {rest} {x}", f"{be(True, past)} {rest} {x}"),), reduced=(f"{rest} {x}",)
        )
    adverbs = (f"{is_} {x} {before}",) if before and last in ("in", "at", "on") else ()
    return StepPhrases(gaps=((f"{is_} {x} {rest}", f"{x} {is_} {rest}"),), adverbs=adverbs)


#: What precedes a noun phrase, or what follows it.
_FRAMES = ("Name {}.", "Tell me {}.", "Give me {}.", "I am looking for {}.", "{}?", "{}", "Do you know {}?", "Find {}")
_LISTS = ("List {}.", "Show me {}.", "Name {}.", "I want a list of {}.", "{}", "{}?", "Find {}")

#: What precedes a clause with a question word: "who directed Her".
_INDIRECT = ("Tell me {}.", "Can you tell me {}?", "Do you know {}?", "I want to know {}.", "I would like to know {}")

#: How often a question is asked straight, and how often it is typed without capital and mark.
STRAIGHT, CARELESS = 0.75, 0.25


class QuestionWriter:
    """Puts shapes into words by the grammar of English.

    Args:
        graph: The graph.
        names: What its entities and relations are called.
        random: Chooses among the ways to say it.
    """

    def __init__(self, graph: KnowledgeGraph, names: Names, random: Random) -> None:
        """Start without any words for ends."""
        self._graph, self._names, self._random = graph, names, random
        self._ends: dict[int, EndWords] = {}

    def write(self, shape: Shape) -> str:
        """Return one of the ways to ask for the answers of a shape."""
        several = len(shape.answers) > 1
        end = self._end(shape.walks[0].labels[-1])
        if shape.others:
            end = replace(end, noun=f"other {end.noun}", plural=f"other {end.plural}")
        if len(shape.walks) > 1:
            text = self._conjunction(shape.walks, end, several)
        else:
            text = self._walk(shape.walks[0], end, several, shape.others)
        return self._typed_by_a_person(text, [self._names[walk.start] for walk in shape.walks])

    def _walk(self, walk: Walk, end: EndWords, several: bool, names_end: bool) -> str:
        start = self._start(walk)
        phrases, words = self._phrases(walk.labels[-1], start)
        nouns = [f"which {end.plural if several else end.noun}"] + ([] if names_end else list(end.asks))
        if names_end:
            phrases = replace(phrases, predicates=phrases.predicates + phrases.identities)
        noun = end.plural if several else end.noun
        ways = [
            [f"{asks} {one[several and ' ' in asks]}?" for one in phrases.predicates for asks in nouns],
            [f"{asks} {question}?" for question, _ in phrases.gaps for asks in nouns],
            [
                self._framed(f"the {noun} {clause}", end, several)
                for clause in (*phrases.reduced, *_clauses(phrases, end, several))
            ],
        ]
        if not names_end:
            ways.append([f"{asks} {text}?" for text in phrases.possessions for asks in ("what", "which")])
            ways.append(self._by_noun_phrase(phrases, end, is_plural(words.words)))
            ways.append([f"{end.adverb} {text}?" for text in phrases.adverbs if end.adverb])
            ways.append([f"how many {text}?" for text in phrases.amounts if end.kind == "number"])
        return self._random.choice(self._random.choice([way for way in ways if way]))

    def _conjunction(self, walks: Sequence[Walk], end: EndWords, several: bool) -> str:
        found = [self._phrases(walk.labels[0], Start(self._names[walk.start]))[0] for walk in walks]
        found = [replace(phrases, predicates=phrases.predicates + phrases.identities) for phrases in found]
        noun = end.plural if several else end.noun
        clauses = [self._random.choice(_clauses(phrases, end, several) or phrases.reduced) for phrases in found]
        texts = [self._framed(f"the {noun} {' and '.join(clauses)}", end, several)]
        if all(phrases.predicates for phrases in found):
            chosen = [self._random.choice(phrases.predicates) for phrases in found]
            texts.append(f"which {noun} {' and '.join(predicate[several] for predicate in chosen)}?")
            texts.append(self._asked(self._random.choice(end.asks), " and ".join(one for one, _ in chosen)))
        return self._random.choice(texts)

    def _start(self, walk: Walk) -> Start:
        """Return the noun phrase of all steps but the last."""
        start = Start(self._names[walk.start])
        for label, size in zip(walk.labels[:-1], walk.sizes, strict=False):
            end, several = self._end(label), size > 1
            phrases, words = self._phrases(label, start)
            noun = end.plural if several else end.noun
            ways = [[Start(f"the {noun} {text}", several, "clause") for text in _shortest(phrases, end, several)]]
            ways.append([Start(text, is_plural(words.words), "noun") for text in phrases.nouns])
            start = self._random.choice(self._random.choice([way for way in ways if way]))
        return start

    def _by_noun_phrase(self, phrases: StepPhrases, end: EndWords, plural: bool) -> list[str]:
        """By the noun that the relation has for the ends: "What is Ann's birth place?"."""
        framed = [self._framed(text, end, plural) for text in phrases.nouns]
        return framed + [self._asked(self._random.choice(end.asks), f"{be(plural)} {text}") for text in phrases.nouns]

    def _framed(self, noun_phrase: str, end: EndWords, several: bool) -> str:
        if self._random.random() < 0.4:
            asks = "who" if end.kind == "person" else "what"
            return f"{asks} {be(several)} {noun_phrase}?"
        return self._random.choice(_LISTS if several else _FRAMES).replace("{}", noun_phrase)

    def _asked(self, asks: str, clause: str) -> str:
        """Return a clause with a question word before it, asked straight or within another sentence."""
        if self._random.random() < STRAIGHT or clause.startswith(("is ", "are ")):
            return f"{asks} {clause}?"
        return self._random.choice(_INDIRECT).replace("{}", f"{asks} {clause}")

    def _phrases(self, label: int, start: Start) -> tuple[StepPhrases, RelationWords]:
        """Return the ways to say a step; what happened at a date was done then."""
        words, backward = self._names.relation_words(relation_of(label)), is_backward(label)
        tails = self._end(label_of(relation_of(label), False))
        if words.form == "verb" and words.is_past and not words.words and words.verb and tails.kind == "date":
            words = RelationWords("copula", f"{words.verb.participle} in")
        return step_phrases(words, backward, start), words

    def _end(self, label: int) -> EndWords:
        if label not in self._ends:
            self._ends[label] = end_words(self._graph, label)
        return self._ends[label]

    def _typed_by_a_person(self, text: str, names: Sequence[str]) -> str:
        """Begin with a capital, as most people do, or leave out capital and mark; names stay as they are."""
        is_careless = self._random.random() < CARELESS
        if is_careless and text[-1] in "?." and all(name in text[:-1] for name in names):
            text = text[:-1]
        if text.startswith(tuple(names)):
            return text
        return (text[:1].lower() if is_careless else text[:1].upper()) + text[1:]


def _clauses(phrases: StepPhrases, end: EndWords, several: bool) -> list[str]:
    """Return the relative clauses that may follow a noun for the ends."""
    about = [f"{end.relative} {predicate[several]}" for predicate in phrases.predicates]
    return [*about, *(f"that {gap}" for _, gap in phrases.gaps)]


def _shortest(phrases: StepPhrases, end: EndWords, several: bool) -> list[str]:
    """Return what may follow a noun within a longer question: where possible, no clause that parts its verb from it."""
    about = [f"{end.relative} {predicate[several]}" for predicate in phrases.predicates]
    if found := [*phrases.reduced, *about]:
        return found
    return [] if phrases.nouns else [f"that {gap}" for _, gap in phrases.gaps]
