"""why_not: what keeps an entity out of what a retriever finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.retriever import PART_HOPS, BaseKGRetriever
from kg_retrievers.drawing import Drawing
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.explanation.course import overcome
from kg_retrievers.explanation.joining import joining_facts
from kg_retrievers.explanation.lifting import combined, lift
from kg_retrievers.explanation.run import Place, Run
from kg_retrievers.explanation.shown import shown_as_html
from kg_retrievers.explanation.wording import lift_lines, shell_lines
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.shown_text import one_line
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index import PartRequest, link_question, linker_of

__all__ = ["WhyNot", "combined", "lift", "why_not"]


#: What to do where the graph has other facts than the question is read to ask for.
MISREAD = "If the question means that, it is read wrongly: rephrase it, give examples, or a pattern."


@dataclass(frozen=True)
class WhyNot:
    """Why a retriever does not find an entity.

    Attributes:
        question: The question.
        entity: The key of the entity.
        label: What it is called.
        retriever: The class of the retriever.
        place: Where the entity stands, if it is found after all.
        obstacles: What keeps it out, in the order in which the stages run; each shows once those before it are lifted.
        lifted: Whether the retriever was run with all of them lifted and finds the entity; None where it was not run,
            since the graph stays in a database and facts are lacking.
        known: The keys of the entities that the question names.
        joining: A shortest chain of facts that joins them with the entity, with facts that the graph lacks where those
            lift an obstacle; nothing where none does.
        labels: What the entities of these are called, by key.
        present: A shortest chain that joins them by facts of the graph alone, where `joining` has others.
    """

    question: str
    entity: str
    label: str
    retriever: str
    place: Place | None
    obstacles: tuple[Obstacle, ...]
    lifted: bool | None
    known: tuple[str, ...] = ()
    joining: tuple[Triple, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    present: tuple[Triple, ...] = ()

    @property
    def found(self) -> bool:
        """Whether the entity is found, so that nothing keeps it out."""
        return self.place is not None

    @property
    def lift(self) -> Lift:
        """What lifts all obstacles together."""
        return combined([obstacle.lift for obstacle in self.obstacles])

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        told = ("question", "entity", "label", "retriever", "found", "lifted")
        return {
            **{name: getattr(self, name) for name in told},
            "place": None if self.place is None else dict(vars(self.place)),
            "obstacles": [obstacle.to_dict() for obstacle in self.obstacles],
            "lift": self.lift.to_dict(),
            "known": list(self.known),
            "joining": [list(fact) for fact in self.joining],
            "present": [list(fact) for fact in self.present],
        }

    @property
    def text(self) -> str:
        """Plain lines: what keeps the entity out, one thing after the other, and what would bring it in."""
        return self._told(lift_lines)

    @property
    def shell_text(self) -> str:
        """The same lines with the options of `kg-retrievers ask` that would bring it in."""
        return self._told(shell_lines)

    def _told(self, changes: Callable[[Lift], list[str]]) -> str:
        label = one_line(self.label)
        if self.place is not None:
            where = "an answer" if self.place.role == "answer" else "in the facts"
            return f"{label!r} is found by the {self.retriever}: it is {where} of Document {self.place.rank}."
        lines = [f"{label!r} is not found by the {self.retriever} for the question: {one_line(self.question)}"]
        for number, obstacle in enumerate(self.obstacles, 1):
            why = obstacle.why.replace("_", " ")
            lines.append(f"{number}. {why} (at {obstacle.stage}): {one_line(obstacle.text)}")
            lines += [f"   To change it: {change}" for change in changes(obstacle.lift)]
        return "\n".join([*lines, self._outcome, *self._doubt])

    @property
    def _doubt(self) -> list[str]:
        """A line on what joins the entities in the graph, where the question is read to ask for other facts."""
        if not self.present:
            return []
        chain = ", ".join(
            " -> ".join((self.labels[fact.head], readable(fact.relation), self.labels[fact.tail]))
            for fact in self.present
        )
        return [f"What joins them in the graph: {one_line(chain)}. {MISREAD}"]

    @property
    def _outcome(self) -> str:
        if not self.obstacles:
            return "Nothing can be said of why: the method names nothing that keeps it out."
        if self.lifted is None:
            return "It was not tried, since the graph stays in its database."
        this = "this" if len(self.obstacles) == 1 else "all of this"
        if self.lifted:
            return f"With {this} changed, it is found: it was tried."
        return f"With {this} changed, it is still not found, and nothing more can be said of why."

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    def draw(self) -> Drawing:
        """Return a picture of what joins the entities of the question, marked as known, with the entity, as the answer.

        Relations of facts that the graph lacks say so.
        """
        lacking = set(self.lift.facts)
        facts = [
            Triple(fact.head, f"lacking: {fact.relation}", fact.tail) if fact in lacking else fact
            for fact in dict.fromkeys((*self.joining, *self.lift.facts))
        ]
        keys = dict.fromkeys((*(end for fact in facts for end in (fact.head, fact.tail)), *self.known, self.entity))
        labels = {key: self.labels.get(key, key) for key in keys}
        return Drawing(tuple(facts), labels, frozenset([self.entity]), frozenset(self.known) - {self.entity})

    def _repr_html_(self) -> str:
        return shown_as_html(self.text, self.draw())


def why_not(retriever: BaseKGRetriever, question: str, entity: str, **inputs: Any) -> WhyNot:
    """Return what keeps an entity out of what a retriever finds for a question.

    The retriever is run, and the first thing that keeps the entity out is named, with what lifts it. With that lifted,
    it is run again, until the entity is found: among the answers where the method proposes answers, else in the facts.

    Cost: one run for each obstacle and one more; of a union, as many again of its members for each. What a language
    model wrote in the first run is used in the others.

    Args:
        retriever: The retriever.
        question: The question.
        entity: The key of the entity, or a label or alias that no other entity has.
        **inputs: Further arguments of `invoke`, as they were given.

    Raises:
        EntityLinkingError: If the graph has no such entity.
        InvalidArgumentError: If the entity is no text, or as `invoke`.
    """
    if not isinstance(retriever, BaseKGRetriever):
        raise InvalidArgumentError(f"why_not: wanted a retriever of this package, but got {retriever!r:.200}.")
    if retriever.closed_book:
        raise InvalidArgumentError(f"why_not: the {type(retriever).__name__} looks at no graph.")
    if not isinstance(entity, str):
        raise InvalidArgumentError(f"why_not: wanted the key or name of one entity, but got {entity!r:.200}.")
    (key,) = linker_of(retriever.index).resolve([entity])
    course = overcome(retriever, question, key, inputs, as_answer=retriever.proposes_answers)
    now, obstacles, known = course.retriever, course.obstacles, _known(course.retriever, course.run)
    lacking = tuple(fact for obstacle in obstacles for fact in obstacle.lift.facts)
    around = PartRequest((key, *known), PART_HOPS, between=True)
    graphs = [index.part(around).graph for index in (now.index, retriever.index)]
    facts, present, labels = _joining(graphs[0], graphs[1], known, key, lacking)
    return WhyNot(
        question,
        key,
        labels[key],
        type(retriever).__name__,
        course.first,
        obstacles,
        course.lifted,
        known,
        facts,
        labels,
        present,
    )


def _known(retriever: BaseKGRetriever, run: Run) -> tuple[str, ...]:
    """Return the entities that the question is read to name: those of the state, of the Documents, or of its words."""
    seeds = run.state.get("seed_entities") or ()
    named = [key for one in run.documents for _, key in one.metadata["details"].get("entities") or ()]
    if seeds or named:
        return tuple(dict.fromkeys(seeds or named))
    with suppress(EntityLinkingError):
        return tuple(link_question(linker_of(retriever.index), run.state["question"])[0])
    return ()


class _Joined(NamedTuple):
    """Chains of facts, with those that lift an obstacle and of the graph alone, and what their entities are called."""

    facts: tuple[Triple, ...]
    present: tuple[Triple, ...]
    labels: dict[str, str]


def _joining(
    lifted: KnowledgeGraph, graph: KnowledgeGraph, known: Sequence[str], key: str, lacking: Sequence[Triple]
) -> _Joined:
    """Return what joins an entity with the known ones; of the graph alone only where facts are lacking."""
    facts = joining_facts(lifted, known, key)
    present = joining_facts(graph, known, key) if lacking else ()
    ends = (end for fact in (*facts, *present, *lacking) for end in (fact.head, fact.tail))
    keys = dict.fromkeys((key, *known, *ends))
    return _Joined(facts, present, {one: lifted.label(one) if one in lifted.entities else one for one in keys})
