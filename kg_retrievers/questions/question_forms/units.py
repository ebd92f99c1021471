"""Refuse a question in another unit than the numbers of its pattern: nothing is converted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kg_retrievers.errors import LowConfidenceError
from kg_retrievers.graph import Known, Pattern, readable
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.graph.values import TIMES, is_only_unit, known_unit, named_unit
from kg_retrievers.questions.question_forms.forms import Token
from kg_retrievers.questions.question_forms.values import WalkFinder
from kg_retrievers.questions.words import NUMBERS

#: The units of spans between dates, which limit no number if no number of a pattern is a time.
_OF_DATES = frozenset(["day", "week", "month", "year"])


def check_units(question: str, tokens: Sequence[Token], pattern: Pattern, walks: WalkFinder) -> None:
    """Refuse a question that names a unit which no number of its pattern has.

    Args:
        question: The question.
        tokens: Its words.
        pattern: Its pattern.
        walks: Knows the units of relations.

    Raises:
        LowConfidenceError: If the units differ.
    """
    units = _units_of(pattern, walks)
    own = {known_unit(unit) or unit for unit in units.values()}
    asked = list(_units_in([token.word for token in tokens], walks, own))
    asked += [literal.unit for condition in pattern.conditions for literal in condition.literals if literal.unit]
    own |= {"lb", "£"} if own & {"lb", "£"} and "pounds" in (*asked, *units.values()) else set()
    for unit in asked:
        symbol = known_unit(unit)
        if own and symbol and symbol != "%" and symbol not in own:
            stated = ", ".join(f"{relation!r:.100} is in {own_unit!r}" for relation, own_unit in units.items())
            message = f"QuestionReader: {question!r:.200} asks in {unit!r}, but {stated}. Units are not converted."
            hint = f"Ask in {' or '.join(dict.fromkeys(units.values()))}."
            raise LowConfidenceError(message, 0.0, [unit], [*units], hint_python=hint, hint_agent=hint)


def _units_in(words: Sequence[str], walks: WalkFinder, own: Collection[str]) -> Iterator[str]:
    """Yield the words of a question that are units, rather than a noun for things or another word."""
    nouns = {at for start, end, _ in walks.kinds.spans(words) for at in range(start, end)}
    for at, word in enumerate(words):
        before, following = words[at - 1] if at else "", "".join(words[at + 1 : at + 2])
        is_asked = (before == "in" and not following.isalnum()) or before == "many"
        is_meant = at not in nouns and (is_only_unit(word) or before in NUMBERS or is_asked)
        is_span = known_unit(word) in _OF_DATES and TIMES.isdisjoint(own) and before not in ("in", "many")
        if known_unit(word) and not is_span and (is_meant or before[:1].isdigit()):
            yield word


def _units_of(pattern: Pattern, walks: WalkFinder) -> dict[str, str]:
    """Return the units of the relations and attributes of a pattern, by their names in words."""
    found = {readable(one.name): named_unit(readable(one.name)) for one in pattern.attributes}
    for _, relation, _ in (*pattern.triples, *pattern.absent):
        if isinstance(relation, Known) and relation.text in walks.graph.relations:
            label = label_of(walks.graph.relations.find(relation.text), False)
            found[readable(relation.text)] = walks.unit_of(label)
    return {name: unit for name, unit in found.items() if unit}
