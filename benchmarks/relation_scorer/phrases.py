"""Noun phrases for what a walk leads to, around the phrase for where it begins, by a small English grammar."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from benchmarks.relation_scorer.english import BY, LIKE_A_VERB, STATIVE, ends_loosely, gerund, noun_phrase, plural
from benchmarks.relation_scorer.natural import TOPIC, NaturalQuestion
from benchmarks.relation_scorer.relations import Relation


class Hop(NamedTuple):
    """A relation that is crossed, from its subject to its object or back."""

    relation: Relation
    backward: bool


class Phrases:
    """Writes phrases at random.

    Args:
        known: The relations by id.
        questions: Natural questions, from which phrases are taken.
        random: Where chance comes from.
    """

    def __init__(self, known: dict[str, Relation], questions: Sequence[NaturalQuestion], random: Random) -> None:
        """Take phrases from the questions."""
        self.random = random
        self.freebase = [id for id in known if id.startswith("/")]
        self.questions: dict[tuple[str, bool], list[str]] = defaultdict(list)
        self.phrases: dict[tuple[str, bool], list[str]] = defaultdict(list)
        for question in questions:
            if question.clear and question.relation in known:
                text = " ".join(question.words)
                key = (question.relation, question.backward)
                self.questions[key].append(text)
                if phrase := noun_phrase(text):
                    self.phrases[key].append(phrase)

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.random.choice(options)

    def noun(self, hop: Hop) -> str:
        """Return a noun for what a hop leads to."""
        counts = hop.relation.end_nouns[not hop.backward]
        if counts and self.random.random() < 0.75:
            usual = [noun for noun, count in counts.items() if count > 1] or list(counts)
            return self.random.choices(usual, [counts[noun] for noun in usual])[0]
        return self.pick(
            "thing", "item", "one", "work", "entity", "person", "people", "object", "name", "place", "group"
        )

    def name(self, names: Sequence[str], *, plain: bool = False) -> str:
        """Return one of the names of a relation; a plain one is a noun, if one is."""
        nouns = [name for name in names if not LIKE_A_VERB.match(name) and not ends_loosely(name)]
        return self.random.choice(nouns or list(names)) if plain else self.random.choice(names)

    def phrase(self, hop: Hop, around: str) -> str:
        """Return a noun phrase for what a hop leads to from what another phrase names."""
        mined = self.phrases.get((hop.relation.id, hop.backward))
        if mined and self.random.random() < 0.35:
            return self.random.choice(mined).replace(TOPIC, around)
        if (own := hop.relation.phrases[hop.backward]) and self.random.random() < 0.75:
            return self.random.choice(own).replace(TOPIC, around)
        if hop.relation.verbs and self.random.random() < 0.8:
            return self._verb_phrase(hop, around)
        if hop.relation.inverse and self.random.random() < 0.35:
            hop, names = Hop(hop.relation, not hop.backward), hop.relation.inverse
        else:
            names = hop.relation.names
        return self._backward(hop, names, around) if hop.backward else self._forward(hop, names, around)

    def _verb_phrase(self, hop: Hop, x: str) -> str:
        verb = self.random.choice(hop.relation.verbs)
        agent, patient = self._roles(hop.relation)
        of = f" {verb.preposition}" if verb.preposition else ""
        noun = self.noun(hop)
        nouns = plural(noun) if self.random.random() < 0.6 else noun
        if hop.backward:  # the agents of what x is
            options = [
                f"the {nouns} that {verb.past}{of} {x}",
                f"who {verb.third}{of} {x}",
                f"whoever {verb.past}{of} {x}",
            ]
            options += [f"{nouns} {gerund(verb.base)}{of} {x}", f"the {nouns} who {verb.base}{of} {x}"]
            options += [f"those who {verb.base}{of} {x}", f"the one that {verb.third}{of} {x}"]
            if agent:
                agent = plural(agent) if self.random.random() < 0.4 else agent
                options += [f"the {agent} of {x}", f"{x} 's {agent}"] * 3 + [
                    f"the {agent} at {x}",
                    f"the {agent} for {x}",
                ]
            return self.random.choice(options)
        options = [
            f"the {nouns} that {x} {verb.past}{of}",
            f"what {x} {verb.third}{of}",
            f"{nouns} {x} {verb.third}{of}",
        ]
        options += [f"the {nouns} {x} {verb.past}{of}", f"the {nouns} which {x} {verb.third}{of}"]
        if not verb.preposition and verb.base != "have":
            options += [f"{nouns} {verb.participle} by {x}", f"the {nouns} that are {verb.participle} by {x}"]
            options += [f"the {nouns} {verb.participle} by {x}", f"{x} {verb.participle} {nouns}"]
        if patient:
            patient = plural(patient) if self.random.random() < 0.5 else patient
            options += [f"the {patient} of {x}", f"{x} 's {patient}"] * 3
        return self.random.choice(options)

    def _roles(self, relation: Relation) -> tuple[str, str]:
        """Return a noun for who does what a verb says, and for whom it is done to, "" for none."""
        nouns = [[noun for noun in relation.end_nouns[end] if noun] for end in (False, True)]
        agent, patient = (self.random.choice(some) if some else "" for some in nouns)
        return agent, patient

    def _forward(self, hop: Hop, names: Sequence[str], x: str) -> str:
        name, noun = self.name(names), self.noun(hop)
        nouns = plural(noun) if self.random.random() < 0.5 else noun
        if found := BY.match(name):
            verb = found[1]
            return self.pick(
                f"the person who {verb} {x}", f"who {verb} {x}", f"the one {x} was {name}", f"{noun} that {verb} {x}",
                f"whoever {verb} {x}", f"the {nouns} that {verb} {x}", f"the {noun} {x} was {name}",
            )  # fmt: skip
        if found := STATIVE.match(name):
            state = f"{found[1]} {found[2]}"
            return self.pick(
                f"the {noun} {x} is {state}", f"the {noun} where {x} is {found[1]}", f"what {x} is {state}",
                f"the {nouns} that {x} was {state}", f"the {noun} {found[2]} which {x} is {found[1]}",
                f"where {x} is {found[1]}",
            )  # fmt: skip
        name = self.name(names, plain=self.random.random() < 0.85)
        name = plural(name) if self.random.random() < 0.3 and not ends_loosely(name) else name
        return self.pick(
            f"the {name} of {x}", f"{x} 's {name}", f"{name} of {x}", f"{x} 's {name}", f"the {name} of {x}",
            f"the {name} for {x}", f"{name} that {x} has", f"the {name} in {x}", f"{x} {name}", f"its {name} for {x}",
        )  # fmt: skip

    def _backward(self, hop: Hop, names: Sequence[str], x: str) -> str:
        name, noun = self.name(names), self.noun(hop)
        nouns = plural(noun) if self.random.random() < 0.6 else noun
        if found := BY.match(name):
            verb = found[1]
            return self.pick(
                f"{nouns} {name} {x}", f"the {nouns} {name} {x}", f"the {nouns} that {x} {verb}",
                f"the {nouns} {x} {verb}", f"{nouns} which {x} {verb}", f"{x} {verb} {nouns}",
                f"{nouns} that were {name} {x}",
            )  # fmt: skip
        if found := STATIVE.match(name):
            state = f"{found[1]} {found[2]}"
            return self.pick(
                f"{nouns} {state} {x}", f"the {nouns} that are {state} {x}", f"{nouns} {found[2]} {x}", f"{x} {nouns}",
                f"everything {state} {x}", f"the {nouns} {state} {x}", f"{nouns} which were {state} {x}",
            )  # fmt: skip
        name = self.name(names, plain=self.random.random() < 0.85)
        return self.pick(
            f"the {nouns} whose {name} is {x}", f"{nouns} with {name} {x}", f"the {nouns} that have {x} as {name}",
            f"{nouns} {x} is the {name} of", f"the {nouns} with {x} as their {name}",
            f"the {nouns} that {x} is {name} of", f"{nouns} having {name} {x}", f"{nouns} of {name} {x}",
            f"{nouns} {name} {x}", f"the {name} {x} {nouns}",
        )  # fmt: skip

    def shared(self, hop: Hop, x: str) -> str:
        """Return a phrase for a walk along a relation and back: those that have the same."""
        name, noun = self.name(hop.relation.names), self.noun(Hop(hop.relation, True))
        nouns = plural(noun) if self.random.random() < 0.7 else noun
        object = self.noun(Hop(hop.relation, False))
        if found := BY.match(name):
            verb, label = found[1], hop.relation.names[0]
            return self.pick(
                f"the {nouns} that are also {name} the {label} of {x}", f"{nouns} {name} the {label} of {x}",
                f"other {nouns} {name} the same {object} as {x}", f"{nouns} that the {label} of {x} also {verb}",
                f"{nouns} {verb} by whoever {verb} {x}", f"the {nouns} whose {label} also {verb} {x}",
                f"{nouns} {verb} by the {object} who {verb} {x}", f"what else did the {label} of {x} {verb}",
            )  # fmt: skip
        if found := STATIVE.match(name):
            state = f"{found[1]} {found[2]}"
            return self.pick(
                f"other {nouns} {state} the same {object} as {x}", f"{nouns} {state} the {object} {x} is {state}",
                f"{nouns} {state} the same {object} as {x}", f"what else is {state} the {object} of {x}",
            )  # fmt: skip
        name = self.name(hop.relation.names, plain=True)
        names = plural(name) if self.random.random() < 0.5 else name
        return self.pick(
            f"the {nouns} that share {names} with {x}", f"{nouns} with the same {name} as {x}",
            f"other {nouns} whose {name} is that of {x}", f"{nouns} sharing a {name} with {x}",
            f"the {nouns} that have the {names} of {x}", f"{nouns} that have the same {name} as {x}",
            f"{nouns} having a common {name} with {x}", f"the {nouns} whose {names} are also {names} of {x}",
            f"other {nouns} of the {name} of {x}", f"{nouns} by the same {name} as {x}",
            f"other {nouns} by the {name} of {x}",
        )  # fmt: skip

    def joined(self, hop: Hop, x: str) -> str:
        """Return a phrase for a walk against a relation and back along it: those that have it together with x."""
        name, noun = self.name(hop.relation.names, plain=True), self.noun(Hop(hop.relation, True))
        nouns, names = plural(noun), plural(name)
        objects = plural(self.noun(Hop(hop.relation, False)))
        verb = self.random.choice(hop.relation.verbs) if hop.relation.verbs else None
        if verb is not None and not verb.preposition and self.random.random() < 0.6:
            return self.pick(
                f"others {verb.participle} by the {nouns} that {verb.past} {x}",
                f"what else is {verb.participle} by {x} 's {noun}",
                f"{objects} {verb.participle} by the same {noun} as {x}", f"fellow {objects} of {x}",
            )  # fmt: skip
        return self.pick(
            f"the {names} who share {nouns} with {x}", f"co-{names} of {x}",
            f"the other {names} of the {nouns} with {x}", f"fellow {names} of {x}",
            f"the {objects} who are {names} together with {x}", f"{x} 's co-{names}",
            f"{objects} that are {name} of the same {noun} as {x}", f"{names} of {nouns} that have {x} as {name}",
            f"who is {name} along with {x}", f"the {names} in the same {nouns} as {x}",
        )  # fmt: skip
