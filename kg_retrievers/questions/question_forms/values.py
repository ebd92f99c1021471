"""Finds the relation whose values a question compares."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from kg_retrievers.graph.adjacency import relation_of, reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.value_columns import ValueColumns
from kg_retrievers.graph.values import Value, unit_symbol
from kg_retrievers.index.token_table import TokenTable
from kg_retrievers.questions.question_forms.asking import Asker, Way, likeliest
from kg_retrievers.questions.question_forms.tokens import Token, telling_words
from kg_retrievers.questions.zero_shot.graph_steps import GraphSteps
from kg_retrievers.questions.zero_shot.reading import question_words

#: How much the nearest word of a relation counts, as a cosine; and the share of a class that has a value of it.
NAME_WEIGHT, SHARE_WEIGHT = 3.0, 1.0

#: The same of an adjective, which says little else: "the heaviest".
ADJECTIVE_WEIGHT = 8.0

#: The least cosine of a word with a measure for it to be one, and how much less near it is to what it is none of.
A_MEASURE, OTHER_MEASURE = 0.5, 0.25

#: How much less likely a second step makes a value.
STEP_COST = 2.5

#: What the usual units measure, in words of which those for a property are near to its adjectives.
_MEASURES = {
    "length distance height width": "m km cm mm ft inch yd mile mi",
    "weight mass": "g kg t lb mg oz",
    "duration time": "s min h day week month year",
    "area size": "ha acre m² km² sqm sqkm",
    "volume": "l ml m³",
    "power": "W kW MW GW hp",
    "speed": "km/h kmh mph m/s kn",
    "temperature": "°C °F K C F",
    "price cost money": "€ $ £ ¥ EUR USD GBP CHF JPY euro euros dollar dollars pound pounds",
}
_MEASURED_IN = {unit: words for words, units in _MEASURES.items() for unit in units.split()}

#: What a date of something is called where an adjective alone asks for its age.
_BEGINNINGS = "born birth founded opened released built started"


class ValueFinder:
    """Finds relations that lead from a class to dates, numbers or truth values.

    Args:
        asker: Ranks walks.
        steps: The relations in words.
        columns: The values of the graph.
        table: Gives the vectors of words.
    """

    def __init__(self, asker: Asker, steps: GraphSteps, columns: ValueColumns, table: TokenTable) -> None:
        """Keep them."""
        self._asker, self._steps, self._columns, self._table = asker, steps, columns, table
        self._classes = asker.classes
        self._measured_by: dict[int, str] = {}
        self._measures = {
            words: np.stack([word.vector for word in question_words(table, words)]) for words in _MEASURES
        }

    def find(
        self,
        tokens: Sequence[Token],
        span: tuple[int, int],
        group: int,
        kinds: Collection[str],
        *,
        words: str = "",
        unit: str = "",
        max_steps: int = 1,
        weight: float | None = None,
    ) -> Way | None:
        """Return the likeliest walk from a class to values.

        Args:
            tokens: A text that asks for the value.
            span: Where it speaks of the class.
            group: The class.
            kinds: What the values may be.
            words: Words that may name the relation; those of the text where it is empty.
            unit: The unit that the numbers must have, where some of the graph have it.
            max_steps: The most steps.
            weight: How much the words count; None for `NAME_WEIGHT`.
        """
        rest = [token for at, token in enumerate(tokens) if not span[0] <= at < span[1]]
        words = words or telling_words(rest)
        ways = self._asker.from_class(tokens, span, group, max_steps=max_steps)
        return self.best(ways, group, kinds, words, unit, weight)

    def best(
        self,
        ways: Sequence[Way],
        group: int,
        kinds: Collection[str],
        words: str,
        unit: str = "",
        weight: float | None = None,
    ) -> Way | None:
        """Return the likeliest of some walks that leads to values; its logarithm counts what its name says."""
        rows = [word.vector for word in question_words(self._table, words) if word.telling]
        found = [
            replace(way, log=way.log + self._named(way, rows, weight or NAME_WEIGHT) + self._shared(way, group))
            for way in ways
            if self._fits(way, kinds, unit) and not self.is_other_measure(words, way.labels[-1])
        ]
        return likeliest(found) if found else None

    def _fits(self, way: Way, kinds: Collection[str], unit: str) -> bool:
        if self._classes.end_kind(way.labels) not in kinds:
            return False
        if not unit:
            return True
        units = self._columns.units[self._classes.members[self._classes.end_of(way.labels)]]
        return bool((units == self._columns.unit_symbols.get(unit_symbol(unit), -1)).mean() > 0.5)

    def _named(self, way: Way, rows: Sequence[np.ndarray], weight: float) -> float:
        own = self._words_of(way.labels[-1])
        best = max((float((own @ row).max()) for row in rows), default=0.0)
        return weight * best - STEP_COST * (len(way.labels) - 1)

    def _words_of(self, label: int) -> Array:
        """Return the vectors of the words of a relation, and of those for what the unit of its values measures."""
        own, measured = self._steps.words[relation_of(label)], self._measured(label)
        return np.concatenate([own, self._measures[measured]]) if measured else own

    def _measured(self, label: int) -> str:
        """Return what the unit of most values measures to which a label leads, one of `_MEASURES`; "" for none."""
        group = int(self._classes.of_label[label])
        if group not in self._measured_by:
            units = self._columns.units[self._classes.members[group]]
            most = int(np.bincount(units[units > 0]).argmax()) if (units > 0).any() else 0
            symbol = next((name for name, number in self._columns.unit_symbols.items() if number == most), "")
            self._measured_by[group] = _MEASURED_IN.get(symbol, "") if most else ""
        return self._measured_by[group]

    def is_other_measure(self, words: str, label: int) -> bool:
        """Whether words ask for a measure that the unit of some values contradicts: a price is not in kilograms."""
        measured = self._measured(label)
        if not measured:
            return False
        rows = [word.vector for word in question_words(self._table, words) if word.telling]
        for row in rows:
            near = {name: float((vectors @ row).max()) for name, vectors in self._measures.items()}
            if max(near.values()) >= A_MEASURE and near[measured] < max(near.values()) - OTHER_MEASURE:
                return not any(float((self._words_of(label) @ other).max()) >= A_MEASURE for other in rows)
        return False

    def _shared(self, way: Way, group: int) -> float:
        """Return the logarithm of the share of a class that has the first relation of a walk."""
        if group < 0:
            return 0.0
        heads = self._classes.counts[reversed_label(way.labels[0])]
        return SHARE_WEIGHT * float(np.log(min(heads / max(self._classes.size_of(group), 1), 1.0)))

    def has_unit(self, way: Way) -> bool:
        """Whether most of the values where a walk ends have a unit."""
        members = self._classes.members[self._classes.end_of(way.labels)]
        return bool((self._columns.units[members] > 0).mean() > 0.5)

    def nearness_of_steps(self, words: str, way: Way) -> float:
        """Return the least cosine of the relations of a walk with the nearest of some words."""
        return min(self.nearness(words, Way((label,), 0.0, 0.0)) for label in way.labels)

    def nearness(self, words: str, way: Way) -> float:
        """Return the cosine of the nearest word of a walk's last relation with some words."""
        rows = [word.vector for word in question_words(self._table, words)]
        own = self._words_of(way.labels[-1])
        return max((float((own @ row).max()) for row in rows), default=0.0)


def kinds_of(value: Value, said: str = "") -> tuple[str, ...]:
    """Return what values may be compared with one, where what is said of it leaves this open."""
    if said and value.first and value.number is not None:
        return (said,)
    dates = ("date",) if value.first else ()
    return (*dates, "number") if value.number is not None else dates


def dimension_words(adjective: str, time: bool, more: str) -> str:
    """Return words that name what an adjective measures."""
    return f"{adjective} {more or (_BEGINNINGS if time else '')}".strip()
