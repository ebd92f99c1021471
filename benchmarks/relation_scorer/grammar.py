"""Questions about walks of one to three relations and about two walks that meet, by a small English grammar."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.relation_scorer.english import BY, LIKE_A_VERB, STATIVE, gerund, plural
from benchmarks.relation_scorer.natural import TOPIC
from benchmarks.relation_scorer.phrases import Hop, Phrases
from benchmarks.relation_scorer.relations import Relation
from benchmarks.relation_scorer.verbs import Verb
from kg_retrievers.questions.zero_shot.steps import relation_words

#: The share of Freebase's relations that are presented as the second of two that a node without a name joins.
JOINED = 0.12

#: Openings of a question around a noun phrase.
_OPENINGS = (
    "what is {}", "who is {}", "which are {}", "{}", "{}", "what are {}", "name {}", "can you tell me {}", "who are {}",
    "tell me {}", "i want to know {}", "what was {}", "please give me {}", "which is {}", "list {}", "who was {}",
    "show me {}", "find {}", "give {}", "do you know {}", "what 's {}", "who 's {}", "give me the names of {}",
    "what is the name of {}", "{} please", "what were {}", "all {}",
)  # fmt: skip


class Grammar(Phrases):
    """Writes questions at random."""

    def question(self, hop: Hop, x: str) -> str:
        """Return a question for what a hop leads to."""
        chance = self.random.random()
        asked = self.questions.get((hop.relation.id, hop.backward))
        if asked and chance < 0.4:
            return self.random.choice(asked).replace(TOPIC, x)
        if (own := hop.relation.asked[hop.backward]) and chance < 0.75:
            return self.random.choice(own).replace(TOPIC, x)
        if chance < 0.75 and (written := self._clause(hop, x)):
            return written
        return self.opened(self.phrase(hop, x))

    def opened(self, phrase: str) -> str:
        """Return a question around a phrase."""
        if phrase.startswith(("what ", "who ", "where ", "whoever ")) and self.random.random() < 0.6:
            return phrase
        if phrase.startswith("the ") and self.random.random() < 0.15:
            phrase = phrase[4:]
        return self.random.choice(_OPENINGS).format(phrase)

    def _clause(self, hop: Hop, x: str) -> str:
        relation = hop.relation
        if relation.verbs:
            return self._verb_clause(hop, x)
        if relation.kind == "date":
            return "" if hop.backward else self._date_clause(relation, x)
        name, noun = self.name(relation.names), self.noun(hop)
        nouns = plural(noun) if self.random.random() < 0.5 else noun
        if found := BY.match(name):
            verb = found[1]
            if hop.backward:
                return self.pick(
                    f"what did {x} {verb}", f"{x} {verb} which {nouns}", f"what {nouns} did {x} {verb}",
                    f"which {nouns} were {name} {x}", f"what was {name} {x}", f"what has {x} {verb}",
                )  # fmt: skip
            return self.pick(
                f"who {verb} {x}", f"{x} was {name} who", f"{x} is {name} whom", f"which {noun} {verb} {x}",
                f"by whom was {x} {verb}", f"which person {verb} {x}", f"who was {x} {name}",
            )  # fmt: skip
        if found := STATIVE.match(name):
            verb, preposition = found[1], found[2]
            if hop.backward:
                return self.pick(
                    f"what is {verb} {preposition} {x}", f"which {nouns} are {verb} {preposition} {x}",
                    f"what {nouns} are {preposition} {x}", f"who was {verb} {preposition} {x}",
                    f"which {noun} is {verb} {preposition} {x}",
                )  # fmt: skip
            return self.pick(
                f"where is {x} {verb}", f"what is {x} {verb} {preposition}",
                f"{preposition} which {noun} is {x} {verb}", f"what {noun} is {x} {verb} {preposition}",
                f"where was {x} {verb}", f"which {noun} was {x} {verb} {preposition}",
            )  # fmt: skip
        name = self.name(relation.names, plain=True)
        names = plural(name)
        if hop.backward:
            return self.pick(
                f"{x} is the {name} of what", f"which {noun} has {x} as {name}", f"what {nouns} have {name} {x}",
                f"which {nouns} have {x} as their {name}", f"{x} is {name} in which {nouns}",
                f"for what {nouns} is {x} the {name}", f"whose {name} is {x}", f"who has {x} as {name}",
            )  # fmt: skip
        return self.pick(
            f"{x} has what {name}", f"what {name} does {x} have", f"what {names} are there for {x}",
            f"which {name} is {x} in", f"for {x} what is the {name}", f"what {name} is {x}",
            f"which {name} {x} belongs to", f"{x} 's {name} is what", f"{x} have what {names}",
            f"which {names} does {x} have",
        )  # fmt: skip

    def _verb_clause(self, hop: Hop, x: str) -> str:
        verb = self.random.choice(hop.relation.verbs)
        if verb.base == "be":
            return self._copula_clause(hop, verb.preposition, x)
        of = f" {verb.preposition}" if verb.preposition else ""
        noun = self.noun(hop)
        nouns = plural(noun)
        if hop.backward:
            options = [f"who {verb.third}{of} {x}", f"who {verb.past}{of} {x}", f"which {noun} {verb.third}{of} {x}"]
            options += [
                f"what {verb.third}{of} {x}",
                f"which {nouns} {verb.base}{of} {x}",
                f"who all {verb.base}{of} {x}",
            ]
            options += [f"who is {gerund(verb.base)}{of} {x}", f"which {nouns} {verb.past}{of} {x}"]
            if not verb.preposition:
                options += [f"who is {x} {verb.participle} by", f"by whom was {x} {verb.participle}"]
                options += [f"what is {x} {verb.participle} by", f"which {noun} was {x} {verb.participle} by"]
            return self.random.choice(options)
        options = [f"who does {x} {verb.base}{of}", f"what does {x} {verb.base}{of}", f"what did {x} {verb.base}{of}"]
        options += [f"which {nouns} does {x} {verb.base}{of}", f"which {noun} did {x} {verb.base}{of}"]
        options += [f"{x} {verb.third}{of} what", f"{x} {verb.past}{of} whom", f"whom does {x} {verb.base}{of}"]
        if verb.preposition in ("at", "in", "on", "into"):
            options += [
                f"where does {x} {verb.base}",
                f"where did {x} {verb.base}",
                f"{verb.preposition} which {noun} does {x} {verb.base}",
            ]
        if verb.preposition:
            options += [f"{verb.preposition} whom does {x} {verb.base}", f"what is {x} {gerund(verb.base)}{of}"]
        else:
            options += [f"what is {verb.participle} by {x}", f"which {nouns} are {verb.participle} by {x}"]
            options += [f"who was {verb.participle} by {x}", f"which {nouns} were {verb.participle} by {x}"]
        return self.random.choice(options)

    def _copula_clause(self, hop: Hop, state: str, x: str) -> str:
        noun = self.noun(hop)
        nouns = plural(noun)
        if hop.backward:
            return self.pick(
                f"who is {state} {x}", f"what is {state} {x}", f"which {nouns} are {state} {x}",
                f"which {noun} is {state} {x}", f"who was {state} {x}", f"{nouns} {state} {x}",
            )  # fmt: skip
        return self.pick(
            f"what is {x} {state}", f"who is {x} {state}", f"which {noun} is {x} {state}",
            f"which {nouns} is {x} {state}", f"who was {x} {state}", f"{x} is {state} what",
        )  # fmt: skip

    def _date_clause(self, relation: Relation, x: str) -> str:
        name = self.name(relation.names)
        done = relation.participle
        if not done:
            words = [word for each in relation.names for word in each.split()]
            done = self.random.choice([w for w in words if w.endswith("ed")] or [name])
        return self.pick(
            f"when was {x} {done}", f"when did {x} {done}", f"in what year was {x} {done}", f"what year {x} {done}",
            f"{x} was {done} in which year", f"when is the {name} of {x}", f"on what date was {x} {done}",
            f"{x} {done} when", f"which years were {x} {done}", f"what is the {name} of {x}",
            f"what year was {x} {done}", f"since when is {x} {done}", f"when were {x} {done}", f"{done} year of {x}",
            f"date {x} was {done}",
        )  # fmt: skip

    def walk_text(self, hops: Sequence[Hop], text: str) -> str:
        """Return a question for what hops lead to from what a text names."""
        left = list(hops)
        while left:
            hop = left.pop(0)
            if left and left[0] == Hop(hop.relation, not hop.backward) and self.random.random() < 0.7:
                left.pop(0)
                text = self.joined(hop, text) if hop.backward else self.shared(hop, text)
                text = text if left else self.opened(text)
            else:
                text = self.phrase(hop, text) if left else self.question(hop, text)
        return text

    def star_text(self, first: Hop, second: Hop, one: str, two: str) -> str:
        """Return a question for what two hops from two phrases lead to."""
        if second == first and self.random.random() < 0.6:
            both = self.random.choice([f"both {one} and {two}", f"{one} and {two}", f"{one} and also {two}"])
            return self.opened(self.phrase(first, both))
        phrase = self.phrase(first, one) if self.random.random() < 0.7 else self.question(first, one)
        text = f"{phrase} {self._tail(second, two)}"
        return self.opened(text) if self.random.random() < 0.6 else text

    def _tail(self, hop: Hop, y: str) -> str:
        """Return words after a phrase that say what else holds."""
        verb = self.random.choice(hop.relation.verbs) if hop.relation.verbs else None
        name = self.name(hop.relation.names, plain=True)
        if verb is not None:
            return self._verb_tail(verb, hop, y)
        if not hop.backward:
            return self.pick(
                f"who is also {name} of {y}", f"and {name} of {y}", f"that is {y} 's {name}", f"and the {name} of {y}",
            )  # fmt: skip
        stated = [n for n in hop.relation.names if n.endswith((" by", " in", " at", " to", " on", " with", " for"))]
        if stated and self.random.random() < 0.6:
            state = self.random.choice(stated)
            return self.pick(f"{state} {y}", f"and {state} {y}", f"that are {state} {y}", f"that was {state} {y}")
        return self.pick(
            f"whose {name} is {y}", f"with {name} {y}", f"and with {name} {y}", f"that has {y} as {name}", f"in {y}",
            f"from {y}", f"and {name} {y}", f"and has {name} {y}", f"with {y}", f"by {y}",
        )  # fmt: skip

    def _verb_tail(self, verb: Verb, hop: Hop, y: str) -> str:
        of = f" {verb.preposition}" if verb.preposition else ""
        if hop.backward:
            return self.pick(
                f"that {verb.third}{of} {y}", f"and {verb.third}{of} {y}", f"who also {verb.past}{of} {y}",
                f"and {verb.base}{of} {y}",
            )  # fmt: skip
        return self.pick(
            f"that {y} {verb.past}{of}", f"{verb.participle} by {y}", f"and {verb.participle} by {y}",
            f"which {y} {verb.third}{of}",
        )  # fmt: skip

    def name_in_graph(self, hop: Hop) -> tuple[str, str, bool]:
        """Return how a graph may call the relation: its words, what its subjects are, and whether it is turned."""
        relation, chance = hop.relation, self.random.random()
        if relation.id.startswith("/"):
            name, context = relation_words(relation.id)
            if self.random.random() < JOINED:  # Freebase joins two relations by a node without a name
                before, context = relation_words(self.random.choice(self.freebase))
                name = " ".join(dict.fromkeys(f"{before} {name}".split()))
            return name, context if chance < 0.75 else "", False
        if relation.inverse and chance < 0.4:
            return self.random.choice(relation.inverse), "", True
        name = relation.names[0] if self.random.random() < 0.45 else self.random.choice(relation.names)
        if not relation.verbs and not relation.id.startswith("state:"):
            extra = self.random.random()
            if extra < 0.06 and not LIKE_A_VERB.match(name):
                name = f"has {name}"
        return name, "", False
