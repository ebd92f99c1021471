"""Reads which of two things is more of something, and whether one is more than the other."""

from __future__ import annotations

from collections.abc import Sequence

from kg_retrievers.graph import Pattern
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.index import QuestionEntity
from kg_retrievers.questions.question_forms.arms import NEAR, Arms, UnreadError, sureness
from kg_retrievers.questions.question_forms.asking import Asker, Way
from kg_retrievers.questions.question_forms.building import PatternBuilder
from kg_retrievers.questions.question_forms.counting import Counting
from kg_retrievers.questions.question_forms.forms import Degree, Form
from kg_retrievers.questions.question_forms.spans import keys_of, node_of
from kg_retrievers.questions.question_forms.values import ValueFinder


class Comparing:
    """Reads comparisons of two.

    Args:
        asker: Ranks walks.
        values: Finds relations of values.
    """

    def __init__(self, asker: Asker, values: ValueFinder) -> None:
        """Keep the classes, and what finds by what they are compared."""
        self._classes, self._graph = asker.classes, asker.graph
        self._counting = Counting(asker, values)

    def read(self, form: Form) -> Pattern:
        """Return the pattern of a form.

        Raises:
            UnreadError: If a part of it is not found.
        """
        at = [at for at, token in enumerate(form.clause) if token.slot]
        slots = [form.clause[i].slot for i in at]
        degree = form.degree
        if len(slots) != 2 or degree is None or form.limits or form.quantity or form.negative:
            raise UnreadError
        keys = keys_of([slot for slot in slots if slot])
        fits = [self._classes.containing([self._graph.entities.find(key)]) for key in keys]
        clause = [token for token in form.clause if not token.slot and token.word not in ("and", "or", ",", ":")]
        best: Arms | None = None
        for group in range(len(self._classes.labels)):
            if not all(of_one[group] for of_one in fits):
                continue
            arms = Arms(group, 0.0, NEAR)
            plain = Form(form.kind, form.noun, tuple(clause), degree=degree)
            if self._counting.add_degree(plain, arms, degree) and (best is None or arms.log > best.log):
                best = arms
        if best is None:
            raise UnreadError
        role, _, way = best.ways[0]
        return self._comparison(form, degree, slots, keys, role, way)

    def _comparison(
        self,
        form: Form,
        degree: Degree,
        slots: Sequence[QuestionEntity | None],
        keys: Sequence[str],
        role: str,
        way: Way,
    ) -> Pattern:
        builder = PatternBuilder(self._graph)
        builder.confidence = sureness([way])
        labels = way.labels if role == "value" else way.back
        counts = "value" if role == "value" else "count"
        if form.kind == "compare":
            sides = [builder.unknown(), builder.unknown()]
            for slot, side in zip(slots, sides, strict=True):
                assert slot
                builder.walk(node_of(slot), labels, side)
            by = tuple(side.name for side in sides)
            comparison = ">" if degree.sign > 0 else "<"
            builder.operation = Operation("compare", by=by, of=counts, comparison=comparison)  # type: ignore[arg-type]
            return builder.pattern()
        by_unknown = builder.unknown()
        builder.walk(builder.target, labels, by_unknown)
        builder.conditions.append(Condition(builder.target.name, "in", tuple(keys)))
        kind = "max" if degree.sign > 0 else "min"
        builder.operation = Operation(kind, by=(by_unknown.name,), of=counts)  # type: ignore[arg-type]
        return builder.pattern()
