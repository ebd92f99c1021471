"""A step of a walk in words: from where it starts, by a relation in one direction, to its ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kg_retrievers.questions.self_questions.ends import singular_of
from kg_retrievers.questions.self_questions.relation_grammar import RelationWords
from kg_retrievers.questions.self_questions.verbs import Verb, verb_of_agent

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
        >>> from kg_retrievers.questions.self_questions.relation_grammar import read_relation
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
