"""Common English verbs, states, events and measures, by which questions about relations are made; by hand."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Verb(NamedTuple):
    """A transitive verb, or a verb with its preposition.

    Attributes:
        base: "manage".
        third: "manages".
        past: "managed".
        participle: "managed".
        agent: Who does it, or "".
        patient: Whom it is done to, or "".
        preposition: "to" of "report to", or "".
    """

    base: str
    third: str
    past: str
    participle: str
    agent: str
    patient: str
    preposition: str


#: Word lists, an entry a line after a first line that says how to read it.
WORDS = Path(__file__).parent / "words"


def _entries(name: str) -> list[str]:
    return (WORDS / f"{name}.txt").read_text("utf-8").splitlines()[1:]


def _rows(name: str) -> list[list[str]]:
    return [entry.split() for entry in _entries(name)]


def _read_irregular() -> dict[str, tuple[str, str]]:
    rows = (entry.split(", ") for entry in _entries("irregular"))
    return {base: (past, participle) for base, past, participle in rows}


#: The past and the participle of irregular verbs.
_IRREGULAR = _read_irregular()


def _forms(base: str) -> tuple[str, str, str]:
    if base in ("be", "have"):
        return {"be": "is", "have": "has"}[base], *_IRREGULAR[base]
    if " " in base:
        first, rest = base.split(" ", 1)
        third, past, participle = (f"{form} {rest}" for form in _forms(first))
        return third, *_IRREGULAR.get(base, (past, participle))
    consonant_y = base.endswith("y") and base[-2] not in "aeiou"
    if consonant_y:
        third, past = base[:-1] + "ies", base[:-1] + "ied"
    else:
        third = base + ("es" if base.endswith(("s", "sh", "ch", "x", "z")) else "s")
        past = base + ("d" if base.endswith("e") else "ed")
    doubled = {"stop": "stopped", "ship": "shipped", "refer": "referred", "occur": "occurred", "commit": "committed"}
    past = doubled.get(base, past)
    return third, *_IRREGULAR.get(base, (past, past))


def verbs() -> list[Verb]:
    """Return the verbs, transitive ones first."""
    found = [Verb(base, *_forms(base), *_nouns(rest), "") for base, *rest in _rows("transitive")]
    for base, preposition, *rest in _rows("prepositional"):
        found.append(Verb(base, *_forms(base), *_nouns(rest), preposition))
    return found


class VerbGroup(NamedTuple):
    """Verbs of about one meaning, and nouns for who does it and whom it is done to."""

    verbs: tuple[Verb, ...]
    agents: tuple[str, ...]
    patients: tuple[str, ...]


def verb_groups() -> list[VerbGroup]:
    """Return the groups of verbs."""
    groups = []
    for line in _entries("groups"):
        named, agents, patients = (part.replace("-", "").split() for part in line.split("|"))
        of_group = []
        for word in named:
            base, _, preposition = word.replace("_", " ").partition(":")
            of_group.append(Verb(base, *_forms(base), "", "", preposition))
        nouns = (tuple(noun.replace("_", " ") for noun in part) for part in (agents, patients))
        groups.append(VerbGroup(tuple(of_group), *nouns))
    return groups


def _nouns(words: list[str]) -> tuple[str, str]:
    agent, patient = ("" if word == "-" else word for word in words)
    return agent, patient


def states() -> list[tuple[str, str]]:
    """Return states, as "located in", each with a noun for what follows, or ""."""
    return [(" ".join(words[:2]), "" if words[2] == "-" else " ".join(words[2:])) for words in _rows("states")]


def events() -> list[tuple[str, list[str]]]:
    """Return participles of what happens at a date, each with the nouns of that."""
    return [(participle, nouns.split(",")) for participle, nouns in _rows("events")]


def measures() -> list[tuple[str, list[str]]]:
    """Return names of measures, each with questions about it in which X stands for the entity."""
    rows = (entry.split(": ") for entry in _entries("measures"))
    return [(noun, questions.split(", ")) for noun, questions in rows]
