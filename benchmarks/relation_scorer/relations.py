"""Relations to ask about: Wikidata's properties (CC0), Freebase's relations, and relations and verbs by hand."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.relation_scorer.natural import TOPIC, NaturalQuestion, words_of
from benchmarks.relation_scorer.verbs import WORDS, Verb, VerbGroup, events, measures, states, verb_groups, verbs
from kg_retrievers.questions.zero_shot.steps import relation_words

#: Wikidata's properties of which one is the other the other way round, or a wider one: "child" of "father".
_INVERSE = """
P40 P22|P40 P25|P155 P156|P361 P527|P36 P1376|P749 P355|P108 P1830|P184 P185|P1066 P802|P800 P50|P463 P527|P137 P127
P1365 P1366|P527 P361|P131 P150|P26 P26|P3373 P3373|P451 P451|P47 P47|P190 P190|P185 P184|P802 P1066|P156 P155|P355 P749
"""
_WIDER = {"P22": "P40", "P25": "P40"}  # a father and a mother: edges from the child, named "parent"

#: Names of wider relations, general kinship: a graph may say "parent" where the question says "father".
_HYPERNYMS = {"P22": ["parent", "parents"], "P25": ["parent", "parents"], "P40": ["children", "child", "offspring"]}


@dataclass
class Relation:
    """A relation and how people and graphs call it.

    Attributes:
        id: Wikidata's, Freebase's, or one of ours: "verb:", "state:", "event:", "measure:" or "said:" and its words.
        names: Names of the edge from subject to object, the label first.
        inverse: Names of the same edge from object to subject, where they are known.
        kind: What the objects are: "", "date" or "number".
        context: What the subjects are, as the name says it.
        verbs: The verbs that say it.
        participle: What happens at a date: "founded".
        asked: Questions with `TOPIC` for its objects (False) and its subjects (True), where it has some of its own.
        phrases: Noun phrases with `TOPIC` for the same.
        end_nouns: What subjects (False) and objects (True) are called, by how often.
    """

    id: str
    names: list[str]
    inverse: list[str] = field(default_factory=list)
    kind: str = ""
    context: str = ""
    verbs: tuple[Verb, ...] = ()
    participle: str = ""
    asked: dict[bool, list[str]] = field(default_factory=lambda: {False: [], True: []})
    phrases: dict[bool, list[str]] = field(default_factory=lambda: {False: [], True: []})
    end_nouns: dict[bool, Counter[str]] = field(default_factory=lambda: {False: Counter(), True: Counter()})

    @property
    def is_entity(self) -> bool:
        """Whether the objects are entities, from which a walk can go on."""
        return not self.kind


def _some(word: str) -> tuple[str, ...]:
    return (word,) if word else ()


def _clean(name: str) -> str:
    return re.sub(r"\s*\(.*?\)", "", name.lower()).strip()


def _wikidata(folder: Path) -> Iterable[Relation]:
    rows = [json.loads(line) for line in (folder / "wikidata_properties.jsonl").read_text("utf-8").splitlines()]
    labels = {row["id"]: _clean(row["label"]) for row in rows}
    inverse = defaultdict(list)
    for pair in _INVERSE.replace("\n", "|").split("|"):
        if pair:
            one, other = pair.split()
            inverse[one].append(labels.get(other, ""))
            inverse[other].append(labels.get(one, ""))
    kinds = {"WikibaseItem": "", "Time": "date", "Quantity": "number", "String": "text", "Monolingualtext": "text"}
    for row in rows:
        if row["type"] not in kinds:
            continue
        names = [labels[row["id"]], *(_clean(alias) for alias in row["aliases"] if len(alias) < 34)]
        names += _HYPERNYMS.get(row["id"], [])
        names = [name for name in dict.fromkeys(names) if name]
        if names:
            yield Relation(row["id"], names, [name for name in inverse[row["id"]] if name], kinds[row["type"]])


def _verbal(group: VerbGroup) -> Relation:
    names, inverse = list[str](), list[str]()
    for verb in group.verbs:
        of = f" {verb.preposition}" if verb.preposition else ""
        names += [f"{verb.third}{of}", f"{verb.base}{of}", f"{verb.past}{of}"]
        if verb.base == "be":
            names += [verb.preposition] * 2
        elif not verb.preposition:
            inverse += [f"{verb.participle} by", f"is {verb.participle} by", f"was {verb.participle} by"]
    for agent in group.agents:
        names += [f"{agent} of", f"is {agent} of"]
        inverse += [agent, agent, f"has {agent}", f"{agent}s"]
    for patient in group.patients:
        names += [patient, patient, f"has {patient}"]
        inverse += [f"{patient} of"]
    first = group.verbs[0]
    id = f"verb:{first.base} {first.preposition}".strip() + (" group" if len(group.verbs) > 1 else "")
    nouns = {False: Counter(group.agents), True: Counter(group.patients)}
    return Relation(id, names, inverse, verbs=group.verbs, end_nouns=nouns)


def _stative(state: str, noun: str) -> Relation:
    names = [state, f"is {state}", state, *([noun, f"has {noun}"] if noun else [])]
    return Relation(f"state:{state}", names)


def _eventful(participle: str, nouns: Sequence[str]) -> Relation:
    names = [f"{participle} on", f"{participle} in", f"date {participle}", f"{participle} date", f"year {participle}"]
    for noun in nouns:
        names += [f"{noun} date", f"date of {noun}", f"year of {noun}", f"{noun} year", noun]
    names += [f"was {participle} on", participle, f"{participle} at"]
    return Relation(f"event:{participle}", names, kind="date", participle=participle)


def _concepts() -> Iterable[Relation]:
    """Yield the relations of `words/phrasings`, with questions and phrases of their own."""
    for path in sorted((WORDS / "phrasings").glob("*.jsonl")):
        for position, line in enumerate(path.read_text("utf-8").splitlines()):
            row = json.loads(line)
            nouns = {end: Counter(dict.fromkeys(row[key], 2)) for end, key in ((False, "subjects"), (True, "objects"))}
            yield Relation(
                f"said:{path.stem} {position}",
                row["names"],
                row["inverse"],
                row["kind"],
                asked={False: about_topic(row["forward"]), True: about_topic(row["backward"])},
                phrases={False: about_topic(row["forward_phrases"]), True: about_topic(row["backward_phrases"])},
                end_nouns=nouns,
            )


def about_topic(texts: Iterable[str]) -> list[str]:
    """Return texts as `words_of` splits them, with `TOPIC` for the word X."""
    return [" ".join(words_of(re.sub(r"\bX\b", " \0 ", text))).replace("\0", TOPIC) for text in texts]


def relations(folder: Path, questions: Sequence[NaturalQuestion]) -> dict[str, Relation]:
    """Return all relations by id, with the nouns that natural questions use for their ends."""
    known = {relation.id: relation for relation in _wikidata(folder)}
    for id in sorted({question.relation for question in questions if question.source == "freebase"}):
        name, context = relation_words(id)
        known[id] = Relation(id, [name], context=context)
    singles = [VerbGroup((verb,), _some(verb.agent), _some(verb.patient)) for verb in verbs()]
    groups = verb_groups()
    ours = [_verbal(group) for group in [*singles, *groups]] + [_stative(*state) for state in states()]
    ours += [_eventful(*event) for event in events()]
    for noun, asked in measures():
        own = {False: about_topic(asked), True: []}
        ours.append(Relation(f"measure:{noun}", [noun, f"has {noun}"], kind="number", asked=own))
    ours += _concepts()
    known.update({relation.id: relation for relation in ours})
    _count_nouns(known, questions)
    return known


#: Words after "what" that are no noun for what is asked for.
_NO_NOUN = frozenset([
    "is", "was", "are", "were", "did", "does", "do", "the", "a", "of", "'s", "in", "has", "have", "for", "to", "type",
    "kind", "name", "that", "could", "can", "would",
])  # fmt: skip


def _count_nouns(known: dict[str, Relation], questions: Sequence[NaturalQuestion]) -> None:
    """Count the nouns after "what" and "which": what the entities that are asked for are called."""
    for question in questions:
        if question.relation not in known:
            continue
        counts = known[question.relation].end_nouns[not question.backward]
        topic = question.words.index(TOPIC)
        for position, word in enumerate(question.words[: topic - 1]):
            noun = question.words[position + 1]
            if word in ("what", "which") and noun.isalpha() and noun not in _NO_NOUN:
                counts[noun] += 1
                break
        found = re.match(
            r"(?:what is|what 's|who is|name|list|give me) (?:an?|the|some|one) (\w+)", " ".join(question.words)
        )
        if found and found[1] not in _NO_NOUN:
            counts[found[1]] += 1
