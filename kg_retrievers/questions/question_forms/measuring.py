"""Which values of a class a form compares: those that it limits, or that an adjective measures."""

from __future__ import annotations

from collections.abc import Sequence

from kg_retrievers.questions.question_forms.arms import SAME_NAME
from kg_retrievers.questions.question_forms.asking import Way, likeliest
from kg_retrievers.questions.question_forms.classes import GraphClasses
from kg_retrievers.questions.question_forms.forms import Degree, Form
from kg_retrievers.questions.question_forms.literals import Limit
from kg_retrievers.questions.question_forms.spans import asking, span_of
from kg_retrievers.questions.question_forms.tokens import Token, telling_words, words_of
from kg_retrievers.questions.question_forms.values import ADJECTIVE_WEIGHT, ValueFinder, dimension_words, kinds_of


class Measuring:
    """Finds the walks to values.

    Args:
        classes: The classes of the graph.
        values: Finds relations of values.
    """

    def __init__(self, classes: GraphClasses, values: ValueFinder) -> None:
        """Keep both."""
        self._classes, self._values = classes, values

    def limit_way(self, form: Form, limit: Limit, group: int) -> Way | None:
        """Return the likeliest walk from a class to the values that a limit is about."""
        kinds, ways = kinds_of(limit.value, limit.kind), list[Way]()
        words = telling_words(form.clause, form.noun)
        span = span_of(form.clause, form.noun)
        for kind in kinds:
            text, at = asking(form.clause, span, "when" if kind == "date" else "how many")
            unit = limit.value.unit if kind == "number" else ""
            way = self._values.find(text, at, group, (kind,), words=words, unit=unit, max_steps=2)
            ways += [way] if way else []
        return likeliest(ways) if ways else None

    def degree_way(self, form: Form, degree: Degree, group: int) -> Way | None:
        """Return the walk to the values by which an adjective compares."""
        kinds = ("date",) if degree.time else ("number",)
        adjective = words_of(degree.words[:1])
        more = " ".join(token.word for token in degree.words[1:])
        telling = telling_words(form.clause, form.noun)
        words = dimension_words(adjective, degree.time and not telling, more or telling)
        opening = "when was" if degree.time else f"how {adjective} is"
        text = [*map(Token, opening.split()), Token("it"), *map(Token, (more or telling).split())]
        at = len(opening.split())
        weight = None if degree.time or more or telling else ADJECTIVE_WEIGHT
        return self._values.find(text, (at, at + 1), group, kinds, words=words, weight=weight)

    def number_way(
        self, noun: Sequence[Token], group: int, rest: Sequence[Token] = (), least: float = SAME_NAME
    ) -> Way | None:
        """Return the walk to the number of something, where a relation is called so.

        Args:
            noun: What there is a number of.
            group: The class that has the number.
            rest: More words of the question, as in "sleep more people".
            least: How near the relation must be to one of all these words.
        """
        own = [token.word for token in noun if token.word]
        text = [Token("how"), Token("many"), *noun, *rest, Token("has"), Token("it")]
        ways = (
            self._values.find(text, (len(text) - 1, len(text)), group, ("number",), words=words)
            for words in (" ".join(own), " ".join(token.word for token in rest))
            if words
        )
        return next(
            (way for way in ways if way and self._is_called(way, [*own, *(token.word for token in rest)], least)), None
        )

    def _is_called(self, way: Way, words: Sequence[str], least: float) -> bool:
        """Whether the relation of a number is nearer to a word than all that can be counted."""
        named = max((self._values.nearness(word, way), word) for word in words)
        return named[0] >= least and named[0] > self._classes.closeness(named[1])

    def truth_way(self, form: Form, group: int) -> Way | None:
        """Return the walk to the truth value that a clause names, as "huts that have a winter room"."""
        words = telling_words(form.clause, form.noun)
        text = [Token("it"), *(token for token in form.clause if token not in form.noun)]
        way = self._values.find(text, (0, 1), group, ("truth",), words=words)
        return way if way and self._values.nearness(words, way) >= SAME_NAME else None
