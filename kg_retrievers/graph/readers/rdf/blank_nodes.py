"""Labels of blank nodes, made of their contents: "audit (auditor: Ann Lee, year: 2020)"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.iris import WELL_KNOWN, local_words
from kg_retrievers.graph.readers.rdf.annotations import Facts
from kg_retrievers.graph.readers.rdf.statements import Names
from kg_retrievers.graph.verbalize import readable

#: How many relations of a blank node are shown, how many tails of each, and how deep blank nodes are nested.
MOST_RELATIONS, MOST_TAILS, DEEPEST = 5, 5, 2

#: How many characters of a literal, and of a whole label, are shown.
LONGEST, LONGEST_LABEL = 60, 400

_FIRST, _REST = (f"{WELL_KNOWN['rdf']}{part}" for part in ("first", "rest"))


class BlankNodeLabels:
    """Gives blank nodes labels.

    Args:
        blanks: Their numbers.
        facts: The facts.
        names: The labels of other things.
        iris: The IRI of each number.
        texts: The texts of literals.
    """

    def __init__(
        self, blanks: Array, facts: Facts, names: Names[int], iris: Sequence[str], texts: Sequence[str]
    ) -> None:
        """Look up the facts of the blank nodes."""
        self._names, self._iris, self._texts, self._blanks = names, iris, texts, {*blanks.tolist()}
        self._held = defaultdict[int, dict[int, list[int]]](dict)
        self._nouns = dict[int, int]()
        for row in np.flatnonzero(np.isin(facts.heads, blanks)).tolist():
            said = self._held[int(facts.heads[row])]
            said.setdefault(int(facts.relations[row]), []).append(int(facts.tails[row]))
        for node, noun in ((facts.typed, facts.kinds), (facts.tails, facts.relations)):
            for at in np.flatnonzero(np.isin(node, blanks)).tolist():
                if not iris[noun[at]].startswith("_:"):
                    self._nouns.setdefault(int(node[at]), int(noun[at]))

    def label(self, number: int, depth: int = DEEPEST) -> str:
        """Return the label of a blank node."""
        if given := self._names.label(number):
            return given
        held = self._held.get(number, {})
        noun = self._words(self._nouns[number]) if number in self._nouns else "thing"
        if not held or not depth:
            return f"unnamed {noun}"
        if items := self._items(number):
            return _shortened(f"list ({', '.join(self._word(item, depth) for item in items)})")
        parts = [
            f"{self._words(relation)}: {', '.join(self._word(tail, depth) for tail in tails[:MOST_TAILS])}"
            for relation, tails in [*held.items()][:MOST_RELATIONS]
        ]
        return _shortened(f"{noun} ({', '.join(parts)})")

    def _items(self, number: int) -> list[int]:
        """Return the first members of a list of RDF."""
        items, seen = list[int](), set[int]()
        while len(items) < MOST_TAILS and number in self._held and number not in seen:
            seen.add(number)
            held = {self._iris[relation]: tails for relation, tails in self._held[number].items()}
            items += held.get(_FIRST, [])[:1]
            number = held.get(_REST, [-1])[0]
        return items

    def _word(self, tail: int, depth: int) -> str:
        if tail < 0:
            text = self._texts[~tail]
            return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
        return self.label(tail, depth - 1) if tail in self._blanks else self._words(tail, is_relation=False)

    def _words(self, number: int, is_relation: bool = True) -> str:
        """Return a label, or else the end of an IRI, which is split into words for relations and types."""
        if label := self._names.label(number):
            return label
        local = local_words(self._iris[number]) or self._iris[number]
        return readable(local).lower() if is_relation else local


def _shortened(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"{label[:LONGEST_LABEL]}..."
