"""The text of a question: what a shape asks for, said in one of many ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import is_backward, label_of, relation_of
from kg_retrievers.questions.self_questions.ends import EndWords, end_words, is_plural
from kg_retrievers.questions.self_questions.names import Names
from kg_retrievers.questions.self_questions.phrases import Start, StepPhrases, be, step_phrases
from kg_retrievers.questions.self_questions.relation_grammar import RelationWords
from kg_retrievers.questions.self_questions.shapes import Shape, Walk

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
        if shape.type is not None:
            end = EndWords.of(end.kind, self._names.type_noun(shape.type))
        if shape.others:
            end = replace(end, noun=f"other {end.noun}", plural=f"other {end.plural}")
        if len(shape.walks) > 1:
            text = self._conjunction(shape.walks, end, several)
        else:
            text = self._walk(shape.walks[0], end, several, shape.type is not None or shape.others)
        return self._typed_by_a_person(text, [self._names[walk.start] for walk in shape.walks])

    def _walk(self, walk: Walk, end: EndWords, several: bool, names_end: bool) -> str:
        start = self._start(walk)
        phrases, words = self._phrases(walk.labels[-1], start)
        nouns = [f"which {end.plural if several else end.noun}"] + ([] if names_end else list(end.asks))
        if names_end:
            phrases = replace(phrases, predicates=phrases.predicates + phrases.identities)
        ways = [_by_predicate(phrases, nouns, several), _by_gap(phrases, nouns), self._by_noun(phrases, end, several)]
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

    def _by_noun(self, phrases: StepPhrases, end: EndWords, several: bool) -> list[str]:
        """By a noun and a clause about it: "Name the films directed by Ann"."""
        noun = end.plural if several else end.noun
        return [self._framed(f"the {noun} {clause}", end, several) for clause in _relatives(phrases, end, several)]

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


def _relatives(phrases: StepPhrases, end: EndWords, several: bool) -> list[str]:
    """Return what may follow a noun for the ends."""
    return [*phrases.reduced, *_clauses(phrases, end, several)]


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


def _by_predicate(phrases: StepPhrases, asking: Sequence[str], several: bool) -> list[str]:
    """By what the ends do or are: "Who directed Her?", "Which films have the genre Drama?"."""
    forms = [(predicate, asks) for predicate in phrases.predicates for asks in asking]
    return [f"{asks} {predicate[several and ' ' in asks]}?" for predicate, asks in forms]


def _by_gap(phrases: StepPhrases, asking: Sequence[str]) -> list[str]:
    """By what the start does or is to the ends: "What did Ann direct?"."""
    return [f"{asks} {question}?" for question, _ in phrases.gaps for asks in asking]
