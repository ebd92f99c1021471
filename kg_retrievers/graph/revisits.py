"""Decides whether an unknown of a pattern may be an entity that the pattern names: whether a walk may return.

One rule for the matcher, for Cypher and for relation paths:

1. What the pattern states decides (`Pattern.revisits`), by whoever wrote it or by the answers of examples.
2. Else a walk may not return where words of the question exclude the entity, as in "What else did they direct?", or
   where it has both a forward and a backward step, as one to the other films of a director. Any other walk may, as one
   to the parents of a child.
3. Where only one of these two reasons holds and nothing is found, the search is repeated and the walk may return.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kg_retrievers.graph.pattern import Known, Pattern, Term, Unknown

#: Words that exclude the entity that the question names.
EXCLUDING = re.compile(
    r"\b(?:another|others?|else|also|besides|fellow)\b|\bco-\w|\bsame\b.*\bas\b", re.IGNORECASE | re.DOTALL
)


class Revisits(NamedTuple):
    """Whether an unknown may be an entity that the pattern names.

    Attributes:
        allowed: Whether it may.
        certain: Whether that holds even if nothing is found.
    """

    allowed: bool
    certain: bool


def decide_revisits(pattern: Pattern, question: str = "") -> Revisits:
    """Decide whether an unknown of a pattern may be an entity that the pattern names.

    The walks of a pattern lead from its known nodes over its unknown ones. Two steps of which one has an unknown
    relation count as a forward and a backward one.

    Args:
        pattern: The pattern.
        question: Its question; the names that the pattern knows do not count as words.

    Example:
        >>> by, child = Unknown("director"), Unknown("child")
        >>> decide_revisits(Pattern.of(("Her", "directed by", by), (Unknown("film"), "directed by", by)))
        Revisits(allowed=False, certain=False)
        >>> decide_revisits(Pattern.of(("Ann", "child", child), (child, "parent", Unknown("parent"))))
        Revisits(allowed=True, certain=True)
    """
    if pattern.revisits is not None:
        return Revisits(pattern.revisits, True)
    names = [node.text for node in pattern.nodes if isinstance(node, Known)]
    return decide(None, excluded=excludes_named(question, names), turning=_turns_somewhere(pattern))


def decide(stated: bool | None, *, excluded: bool, turning: bool) -> Revisits:
    """Decide whether a walk may return to the entity from which it starts.

    Args:
        stated: What whoever wrote the walk says, or None.
        excluded: Whether words of the question exclude the entity.
        turning: Whether the walk has both a forward and a backward step.
    """
    if stated is not None:
        return Revisits(stated, True)
    return Revisits(allowed=not (excluded or turning), certain=excluded == turning)


def excludes_named(question: str, names: Iterable[str] = ()) -> bool:
    """Tell whether the words of a question exclude the entities that it names from the answers.

    Args:
        question: The question.
        names: The names of these entities, whose own words do not count.

    Example:
        >>> excludes_named("Who else directed Her?"), excludes_named("Who directed The Other?", ["The Other"])
        (True, False)
    """
    rest = question
    for name in sorted(filter(None, names), key=len, reverse=True):
        rest = re.sub(re.escape(name), "_", rest, flags=re.IGNORECASE)
    return EXCLUDING.search(rest) is not None


def turns(backward: Sequence[bool]) -> bool:
    """Tell whether a walk has both a forward and a backward step.

    Args:
        backward: Whether each step is backward.
    """
    return any(backward) and not all(backward)


#: Where a walk of a pattern is: at a node, by an edge, with the directions of its steps so far.
_Place = tuple[Term, int, frozenset[bool]]


def _turns_somewhere(pattern: Pattern) -> bool:
    """Tell whether a walk from a known node over unknown ones, which never goes straight back, has both directions."""
    known: list[_Place] = [(node, -1, frozenset()) for node in pattern.nodes if isinstance(node, Known)]
    waiting, seen = deque(known), set(known)
    while waiting:
        here, came, directions = waiting.popleft()
        for edge, (head, relation, tail) in enumerate(pattern.triples):
            there = tail if here == head else head
            if edge == came or here not in (head, tail) or isinstance(there, Known):
                continue
            crossed = {False, True} if isinstance(relation, Unknown) else {here != head}
            place = there, edge, directions | crossed
            if directions and len(place[2]) == 2:
                return True
            if place not in seen:
                seen.add(place)
                waiting.append(place)
    return False
