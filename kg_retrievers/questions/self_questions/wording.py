"""The text of a question: the request of a shape, said in one of many ways."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from string import Formatter
from typing import Literal, NamedTuple

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
from kg_retrievers.questions.words import WORDS

#: Past forms that keep "was" where others have "is": one is born once, and located all the time.
_ONCE = frozenset({"born", "buried", "founded", "published", "released", "made", "written"})


class Start(NamedTuple):
    """The start of a step: an entity's name, or a noun phrase for the end of an earlier step."""

    text: str
    plural: bool = False
    form: Literal["name", "noun", "clause"] = "name"


#: The phrases for the ends of a step, by their kind, each for one end and for several:
#:
#: - nouns: noun phrases for the ends, such as "the director of Her", "Her's director".
#: - predicates: verbs of the ends, such as "has the genre Drama" and "have the genre Drama".
#: - identities: nouns of the ends, such as "is the genre of Her" and "are the genre of Her".
#: - gaps: acts of the start, as a question and as a clause, such as "did Ann direct" and "Ann directed".
#: - reduced: words that follow their noun at once, such as "directed by Ann", "whose genre is Drama".
#: - adverbs: words that follow "where" or "when", such as "was Ann born".
#: - amounts: words that follow "how many", of a number, such as "employees does Acme have".
#: - possessions: words that follow "what" or "which", such as "genre does Her have".
StepPhrases = dict[str, list[tuple[str, str]]]

#: Part of a sentence, whether the step leads backward, a kind of phrase, and the templates of such phrases. The text
#: after a bar is the phrase for several ends, or the clause of a gap. A phrase is left out if a word of it is missing.
_TEMPLATES: list[tuple[str, bool, str, list[str]]] = [*map(tuple, WORDS["phrases of steps"])]


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
        >>> step_phrases(read_relation("directed_by"), True, Start("Ann"))["gaps"]
        [('did Ann direct', 'Ann directed')]
        >>> [text for text, _ in step_phrases(read_relation("birth_place"), False, Start("Ann"))["nouns"]]
        ['the birth place of Ann', "Ann's birth place"]
    """
    if words.form == "noun of" and backward:
        words, backward = RelationWords("noun", words.words), False
    verb = words.verb
    parts: list[tuple[str, bool]] = [(words.form, backward)]
    if words.form == "noun" and (verb := verb_of_agent(singular_of(words.words))):
        parts.append(("passive", backward))
    elif words.form == "passive":
        parts.append(("agent", backward))
    elif words.form == "verb" and words.is_past and not words.words:
        parts.append(("passive", not backward))
    filling = _filling(words, verb, start)
    phrases: StepPhrases = defaultdict(list)
    for part in parts:
        for form, leads_back, kind, templates in _TEMPLATES:
            ways = [template.partition("|") for template in templates if part == (form, leads_back)]
            for one, _, several in ways:
                fields = [name for _, name, *_ in Formatter().parse(one + several) if name]
                if all(filling[name] is not None for name in fields):
                    phrases[kind].append((one.format_map(filling), (several or one).format_map(filling)))
    return phrases


def _filling(words: RelationWords, verb: Verb | None, start: Start) -> dict[str, str | None]:
    """Return what stands for the fields of `_TEMPLATES`; None for words that are missing."""
    said, verb = words.words, verb or Verb("", "", "", "")
    one, amount = singular_of(said), said.removeprefix("number of ")
    before, _, last = said.rpartition(" ")
    once = said.partition(" ")[0] in _ONCE
    says_one, say_several = (verb.past, verb.past) if words.is_past else (verb.third, verb.base)
    return {
        "x": start.text,
        "name": start.text if start.form == "name" else None,
        "owner": start.text + ("'" if start.text.endswith("s") else "'s") if start.form != "clause" else None,
        "is": be(start.plural),
        "was": be(start.plural, past=True),
        "do": "did" if words.is_past else "do" if start.plural else "does",
        "words": said,
        "one": one,
        "agreeing": said if start.plural else one,
        "amount": amount if amount != said else None,
        "stands": be(start.plural, once),
        "one stands": be(False, once),
        "several stand": be(True, once),
        "before": before if before and last in ("in", "at", "on") else None,
        "base": verb.base or None,
        "base before": verb.base if verb.base and said else None,
        "past": verb.past,
        "past alone": None if verb.base else verb.past,
        "participle": said if words.form == "passive" else verb.participle,
        "agent": verb.agent or None,
        "gerund": verb.gerund if verb.gerund and not words.is_past else None,
        "says one": says_one,
        "say several": say_several,
        "says": say_several if start.plural else says_one,
        "rest": f" {said}" if said else "",
    }


#: The words before or after a noun phrase.
_FRAMES = ("Name {}.", "Tell me {}.", "Give me {}.", "I am looking for {}.", "{}?", "{}", "Do you know {}?", "Find {}")
_LISTS = ("List {}.", "Show me {}.", "Name {}.", "I want a list of {}.", "{}", "{}?", "Find {}")

#: The words before a clause with a question word: "who directed Her".
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
            end = replace(end, noun=f"other {end.noun}")
        if len(shape.walks) > 1:
            text = self._conjunction(shape.walks, end, several)
        else:
            text = self._walk(shape.walks[0], end, several, shape.others)
        return self._typed_by_a_person(text, [self._names[walk.start] for walk in shape.walks])

    def _walk(self, walk: Walk, end: EndWords, several: bool, names_end: bool) -> str:
        phrases, words = self._phrases(walk.labels[-1], self._start(walk))
        noun = end.plural if several else end.noun
        nouns = [f"which {noun}"] + ([] if names_end else list(end.asks))
        if names_end:
            phrases["predicates"] += phrases["identities"]
        ways = [
            [f"{asks} {one[several and ' ' in asks]}?" for one in phrases["predicates"] for asks in nouns],
            [f"{asks} {question}?" for question, _ in phrases["gaps"] for asks in nouns],
            [
                self._framed(f"the {noun} {clause}", end, several)
                for clause in (*_texts(phrases["reduced"]), *_clauses(phrases, end, several))
            ],
        ]
        if not names_end:
            ways.append([f"{asks} {text}?" for text in _texts(phrases["possessions"]) for asks in ("what", "which")])
            ways.append(self._by_noun_phrase(_texts(phrases["nouns"]), end, is_plural(words.words)))
            ways.append([f"{end.adverb} {text}?" for text in _texts(phrases["adverbs"]) if end.adverb])
            ways.append([f"how many {text}?" for text in _texts(phrases["amounts"]) if end.kind == "number"])
        return self._random.choice(self._random.choice([way for way in ways if way]))

    def _conjunction(self, walks: Sequence[Walk], end: EndWords, several: bool) -> str:
        found = [self._phrases(walk.labels[0], Start(self._names[walk.start]))[0] for walk in walks]
        for phrases in found:
            phrases["predicates"] += phrases["identities"]
        noun = end.plural if several else end.noun
        clauses = [
            self._random.choice(_clauses(phrases, end, several) or _texts(phrases["reduced"])) for phrases in found
        ]
        texts = [self._framed(f"the {noun} {' and '.join(clauses)}", end, several)]
        if all(phrases["predicates"] for phrases in found):
            chosen = [self._random.choice(phrases["predicates"]) for phrases in found]
            texts.append(f"which {noun} {' and '.join(predicate[several] for predicate in chosen)}?")
            texts.append(self._asked(self._random.choice(end.asks), " and ".join(_texts(chosen))))
        return self._random.choice(texts)

    def _start(self, walk: Walk) -> Start:
        """Return the noun phrase of all steps but the last."""
        start = Start(self._names[walk.start])
        for label, size in zip(walk.labels[:-1], walk.sizes, strict=False):
            end, several = self._end(label), size > 1
            phrases, words = self._phrases(label, start)
            noun = end.plural if several else end.noun
            ways = [
                [Start(f"the {noun} {text}", several, "clause") for text in _shortest(phrases, end, several)],
                [Start(text, is_plural(words.words), "noun") for text in _texts(phrases["nouns"])],
            ]
            start = self._random.choice(self._random.choice([way for way in ways if way]))
        return start

    def _by_noun_phrase(self, nouns: Sequence[str], end: EndWords, plural: bool) -> list[str]:
        """By the noun that the relation has for the ends: "What is Ann's birth place?"."""
        framed = [self._framed(text, end, plural) for text in nouns]
        return framed + [self._asked(self._random.choice(end.asks), f"{be(plural)} {text}") for text in nouns]

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
        words, backward = self._names.relation_words[relation_of(label)], is_backward(label)
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


def _texts(phrases: Sequence[tuple[str, str]]) -> list[str]:
    return [text for text, _ in phrases]


def _clauses(phrases: StepPhrases, end: EndWords, several: bool) -> list[str]:
    """Return the relative clauses that may follow a noun for the ends."""
    about = [f"{end.relative} {predicate[several]}" for predicate in phrases["predicates"]]
    return [*about, *(f"that {gap}" for _, gap in phrases["gaps"])]


def _shortest(phrases: StepPhrases, end: EndWords, several: bool) -> list[str]:
    """Return what may follow a noun within a longer question: where possible, no clause that parts its verb from it."""
    about = [f"{end.relative} {predicate[several]}" for predicate in phrases["predicates"]]
    if found := [*_texts(phrases["reduced"]), *about]:
        return found
    return [] if phrases["nouns"] else [f"that {gap}" for _, gap in phrases["gaps"]]
