"""Rules of English that the questions are made by: forms of words, and which names are verbs or states."""

from __future__ import annotations

import re

#: A name such as "directed by", one such as "located in", and the beginnings of names that are no nouns.
BY = re.compile(r"^(?:\w+ )?(\w+(?:ed|en|de|ten|wn|ng|et|nt|ld|ght)) by$")
STATIVE = re.compile(
    r"^(?:is |are |was )?(\w+(?:ed|en|rn|wn|de|nt)) (in|at|on|to|from|for|with|of|as|after|into|about)$"
)
LIKE_A_VERB = re.compile(r"^(is|are|has|have|was|be|in|at|on|by|of|to|from|located|based)\b")

#: Questions that ask for a noun phrase begin with one of these.
_LEADS = (
    "what is|what are|what 's|whats|who is|who are|who 's|name|list|find|tell me|give me|can you name|what was|who was"
)


def plural(noun: str) -> str:
    """Return the plural of a noun, by rule."""
    if noun in ("person", "child", "man", "woman"):
        return {"person": "people", "child": "children", "man": "men", "woman": "women"}[noun]
    if noun.endswith("s"):
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("sh", "ch", "x", "z")) else "s")


def ends_loosely(name: str) -> bool:
    """Return whether a name ends with a preposition."""
    return name.endswith((" by", " of", " in", " at", " to", " on", " for", " with", " from"))


def gerund(base: str) -> str:
    """Return "running" for "run"."""
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + (base[-1] if base in ("run", "sit", "win", "stop", "plan") else "") + "ing"


def noun_phrase(question: str) -> str:
    """Return the noun phrase that a natural question asks for, or nothing."""
    if found := re.match(rf"^(?:{_LEADS}) ((?:an?|the|some|one|any)? ?.*\[x\].*)$", question):
        return found[1].strip()
    if found := re.match(
        r"^(?:what|which) (\w+) (?:is|are|was|were) "
        r"((?:\w+ed|by|in|from|on|of|about|written|set|made|known) .*\[x\].*)$",
        question,
    ):
        return f"{plural(found[1])} {found[2]}"
    if found := re.match(r"^(?:what|which) (\w+) (?:did|does|do) (.*\[x\].*)$", question):
        return f"the {found[1]} {found[2]}"
    if found := re.match(r"^who ((?:\w+ed|wrote|made|is|was|sang|plays|played|sings) .*\[x\].*)$", question):
        return f"the person who {found[1]}"
    return ""
