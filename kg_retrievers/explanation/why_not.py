"""why_not: the change that brings an entity into the results of a retriever, found by trying.

A limit is known by the name of a field or of an argument of `invoke` alone, so that a new method needs no code here.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal, NamedTuple

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables.config import ensure_config, merge_configs
from pydantic_core import to_jsonable_python

from kg_retrievers import errors
from kg_retrievers.algorithms.chains import shortest_chains
from kg_retrievers.core.retriever import PART_HOPS, BaseKGRetriever, check_retriever
from kg_retrievers.core.stages import MAX_K, STAGE_EVENT
from kg_retrievers.drawing import Drawing
from kg_retrievers.errors import named_arguments
from kg_retrievers.explanation.explain import shown_as_html
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.operations import MAX_CHAIN
from kg_retrievers.graph.verbalize import lone_entities_of, one_line, readable
from kg_retrievers.index import PartRequest, link_question, linker_of

#: How the value of a limit is raised: by one hop at a time, by factors, by divisors, or to the values given.
Lifted = Literal["farther", "more", "less"] | tuple[Any, ...]

#: The factors for "more", and the divisors for "less", the mildest first.
FACTORS, DIVISORS = (2, 10, 100), (2, 10, 10_000)

#: How many hops farther "farther" looks.
MORE_HOPS = 3


class Limit(NamedTuple):
    """A field or an argument of `invoke` that may keep an entity out.

    Attributes:
        name: Its name.
        lifted: How its value is raised.
        reason: How it keeps an entity out.
    """

    name: str
    lifted: Lifted
    reason: str


#: All limits, in the order in which they are lifted.
LIMITS = (
    Limit("min_confidence", (0.0,), "the question is not understood surely enough"),
    Limit("k", (MAX_K,), "others rank higher"),
    Limit("max_tokens", "more", "other facts are likelier to hold the answer"),
    Limit("max_hops", "farther", "the entity is farther away"),
    Limit("max_nodes", "more", "too many entities are nearer"),
    Limit("max_triples", "more", "too many facts come first"),
    Limit("k_nodes", "more", "too few entities are considered"),
    Limit("k_relations", "more", "too few relations are considered"),
    Limit("k_types", "more", "too few types are considered"),
    Limit("edge_cost", "less", "the facts that lead there cost too much"),
    Limit("threshold", "less", "the model scores it lower"),
    Limit("max_candidates", "more", "too many candidates score higher"),
    Limit("beam_width", "more", "too few relation paths are proposed"),
    Limit("max_paths", "more", "too many paths come first"),
    Limit("max_rows", "more", "the query returns more rows"),
    Limit("max_bindings", "more", "too many bindings come first"),
    Limit("max_scans", "more", "the search ends before"),
    Limit("max_distance", (None,), "the facts fit the pattern too badly"),
    Limit("direction", ("ignore",), "facts point the other way"),
    Limit("node_types", ("ignore",), "the entity has another type"),
    Limit("distinct", ("known", "none"), "unknowns may not share an entity"),
    Limit("ties", ("merge",), "equals are cut off"),
    Limit("lone_entities", (True,), "entities without facts are left out"),
    Limit("granularity", ("subgraph",), "its facts stand in better evidence"),
)

#: Arguments of `invoke`, each with its option of `kg-retrievers ask`.
OPTIONS = {"k": "--k", "min_confidence": "--min-confidence", "seed_entities": "--entity"}


@dataclass(frozen=True)
class Change:
    """Another value for a field or for an argument of `invoke`.

    Attributes:
        name: The name of the field or argument.
        value: Its new value.
        reason: How the old value keeps an entity out.
        is_input: Whether it is an argument of `invoke`.
    """

    name: str
    value: Any
    reason: str
    is_input: bool = False

    @property
    def in_python(self) -> str:
        """The change in the words of Python."""
        written = f"{self.name}={one_line(repr(self.value))}"
        return f"invoke(..., {written})" if self.is_input else f"the field {written}"

    @property
    def on_shell(self) -> str:
        """The options of `kg-retrievers ask`."""
        if self.is_input:
            values = self.value if isinstance(self.value, list) else [self.value]
            return " ".join(f"{OPTIONS[self.name]} {shlex.quote(one_line(str(value)))}" for value in values)
        value = self.value if isinstance(self.value, str) else json.dumps(self.value)
        return f"--field {shlex.quote(f'{self.name}={value}')}"


def possible_changes(retriever: BaseKGRetriever, inputs: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes that lift each limit of a retriever, the mildest of each limit first.

    Args:
        retriever: The retriever.
        inputs: The arguments of `invoke`.
    """
    fields = type(retriever).model_fields
    for limit in LIMITS:
        if limit.name in fields:
            values = _values(limit, inputs.get(limit.name, getattr(retriever, limit.name)))
            highest = [most for one in fields[limit.name].metadata if (most := getattr(one, "le", None))]
            if highest and limit.lifted == "more":
                values = list(dict.fromkeys(min(value, *highest) for value in values))
            yield from (Change(limit.name, value, limit.reason, limit.name in OPTIONS) for value in values)


def with_change(
    retriever: BaseKGRetriever, inputs: Mapping[str, Any], change: Change
) -> tuple[BaseKGRetriever, dict[str, Any]]:
    """Return a retriever and its arguments of `invoke` with a change. The given ones stay as they are.

    Raises:
        InvalidArgumentError: If the retriever does not take the value.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, NeighborhoodRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy Adams")])
        >>> retriever = NeighborhoodRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> changed, inputs = with_change(retriever, {"k": 2}, Change("max_hops", 4, "too far"))
        >>> changed.max_hops, inputs
        (4, {'k': 2})
    """
    if change.is_input:
        return retriever, {**inputs, change.name: change.value}
    return retriever.with_fields({change.name: change.value}), dict(inputs)


def _values(limit: Limit, present: Any) -> list[Any]:
    """Return the values that lift a limit, the mildest first, or none if it does not limit anything."""
    if isinstance(limit.lifted, tuple):
        return [value for value in limit.lifted if value != present]
    if present is None:
        return []
    if limit.lifted == "farther":
        return [present + more for more in range(1, MORE_HOPS + 1)]
    if limit.lifted == "more":
        return [present * factor for factor in FACTORS]
    return [float(f"{present / divisor:.2g}") for divisor in DIVISORS]  # readers see the value


#: The seconds after which no further change is tried.
MAX_SECONDS = 30.0

#: The most entities, in addition to the one asked for, that are tried as entities of the question.
TRIED_ENTITIES = 16

#: The next step if no change brings the entity in, or only another question entity.
MISREAD = "If the question means something else, rephrase it, give examples, or a pattern."


@dataclass(frozen=True)
class Place:
    """The place of an entity in the results of a retriever.

    Attributes:
        rank: The rank of the first Document that holds it, from 1.
        role: Whether it is an answer there, or stands in the facts alone.
    """

    rank: int
    role: Literal["answer", "evidence"]

    def __str__(self) -> str:
        """Return it in words."""
        return f"{'an answer' if self.role == 'answer' else 'in the facts'} of Document {self.rank}"


@dataclass(frozen=True)
class WhyNot:
    """Why a retriever does not find an entity.

    Attributes:
        question: The question.
        entity: The key of the entity.
        label: Its label.
        retriever: The class of the retriever.
        place: The place of the entity, if it is found after all.
        refusal: Why the question was refused. Empty if it was not.
        known: The keys of the question entities.
        joining: A shortest chain of facts from a question entity to the entity. Empty if there is none.
        labels: The labels of these facts' entities, by key.
        tried: The changes that were tried, each alone, in their order. Only the last may bring the entity in.
        change: The first change that brings the entity in. None if none does.
        lifted_place: The place of the entity with this change.
        timed_out: Whether `max_seconds` ended the search for a change.
    """

    question: str
    entity: str
    label: str
    retriever: str
    place: Place | None
    refusal: str = ""
    known: tuple[str, ...] = ()
    joining: tuple[Triple, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    tried: tuple[Change, ...] = ()
    change: Change | None = None
    lifted_place: Place | None = None
    timed_out: bool = False

    @property
    def found(self) -> bool:
        """Whether the entity is found, so that nothing keeps it out."""
        return self.place is not None

    @property
    def fields(self) -> dict[str, Any]:
        """The field of the retriever that brings the entity in. Empty if there is none."""
        return {self.change.name: self.change.value} if self.change and not self.change.is_input else {}

    @property
    def inputs(self) -> dict[str, Any]:
        """The argument of `invoke` that brings the entity in. Empty if there is none."""
        return {self.change.name: self.change.value} if self.change and self.change.is_input else {}

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        lift = {"fields": self.fields, "inputs": self.inputs}
        data: dict[str, Any] = to_jsonable_python(self)
        return {**data, "found": self.found, "lift": lift}

    @property
    def text(self) -> str:
        """Plain lines: how the entity is joined with the question, and the change that brings it in."""
        return "\n".join(self.lines(self.change.in_python if self.change else ""))

    @property
    def shell_text(self) -> str:
        """The same lines with the options of `kg-retrievers ask`."""
        return "\n".join(self.lines(self.change.on_shell if self.change else ""))

    def lines(self, words: str) -> Iterator[str]:
        """Yield the lines of the text, with words for the change."""
        label = one_line(self.label)
        if self.place is not None:
            yield f"{label!r} is found by the {self.retriever}: it is {self.place}."
            return
        yield f"{label!r} is not found by the {self.retriever} for the question: {one_line(self.question)}"
        if self.refusal:
            yield f"The question is refused: {one_line(self.refusal)}"
        yield self._joined
        if self.change:
            yield f"It is kept out since {self.change.reason} ({self.change.name})."
            yield f"To change it: {words}"
            yield f"With this changed, it is found: it is {self.lifted_place}."
            if self.known and "seed_entities" in self.inputs:
                yield MISREAD
            return
        names = ", ".join(dict.fromkeys(change.name for change in self.tried))
        time = " before the time was up" if self.timed_out else ""
        yield f"No single change that was tried{time} brings it in: {names}. {MISREAD}"

    @property
    def _joined(self) -> str:
        """A sentence on the facts that join the entity with the question entities."""
        if not self.known:
            return "No entity of the graph was found in the question."
        named = one_line(", ".join(repr(self.labels.get(key, key)) for key in self.known))
        if self.entity in self.known:
            return f"The question names it: {named}."
        if not self.joining:
            return f"The question names {named}. No chain of facts is known that joins them."
        chain = "; ".join(
            " -> ".join((self.labels[fact.head], readable(fact.relation), self.labels[fact.tail]))
            for fact in self.joining
        )
        return f"The question names {named}. A shortest chain of facts that joins them: {one_line(chain)}."

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    def draw(self) -> Drawing:
        """Return a picture of the joining facts, with the question entities as known and the entity as the answer."""
        keys = (*(end for fact in self.joining for end in (fact.head, fact.tail)), *self.known, self.entity)
        labels = {key: self.labels.get(key, key) for key in dict.fromkeys(keys)}
        return Drawing(self.joining, labels, frozenset([self.entity]), frozenset(self.known) - {self.entity})

    def _repr_html_(self) -> str:
        return shown_as_html(self.text, self.draw())


@named_arguments
def why_not(
    retriever: BaseKGRetriever, question: str, entity: str, *, max_seconds: float = MAX_SECONDS, **inputs: Any
) -> WhyNot:
    """Return the change that brings an entity into the results of a retriever.

    The limits of the retriever are lifted one at a time, each mildly first, and it is run again with each. Other
    question entities come last, or first if the question names none. The entity is found if it is among the answers,
    or in the facts if the method proposes no answers.

    Cost: some dozens of runs. A language model is asked in the first run alone.

    Args:
        retriever: The retriever.
        question: The question.
        entity: The key of the entity, or a label or alias that no other entity has.
        max_seconds: After this time no further change is tried. A run that has begun is finished.
        **inputs: Further arguments of `invoke`.

    Raises:
        EntityLinkingError: If the graph has no such entity.
        InvalidArgumentError: If an argument is wrong, or as `invoke`.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, NeighborhoodRetriever, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Adaptation", "directed_by", "Spike Jonze")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> why_not(NeighborhoodRetriever.from_index(index), "Who directed Her?", "Adaptation").fields
        {'max_hops': 2}
    """
    check_retriever(retriever, "why_not", call="why_not(retriever, question, entity)")
    if not isinstance(entity, str):
        raise errors.InvalidArgumentError(f"why_not: wanted the key or name of one entity, but got {entity!r:.200}.")
    (key,) = linker_of(retriever.index).resolve([entity])
    asked = {name: value for name, value in inputs.items() if value is not None and name != "on_refusal"}
    first = _run(retriever, question, key, asked)
    until = monotonic() + max_seconds  # the first run may compile
    given = {**_written_by_model(retriever, first.written), **asked}
    tried, found, timed_out = list[Change](), None, False
    for change in () if first.place else _changes(retriever, given, first, key):
        timed_out = monotonic() > until
        if timed_out or found:
            break
        found = _place_with(retriever, question, key, given, change)
        if found and change.name == "k":  # no more than it takes
            change = replace(change, value=found.rank)
            found = _place_with(retriever, question, key, given, change)
        tried.append(change)
    known = _question_entities(retriever, question, asked, first)
    graph = retriever.index.part(PartRequest((key, *known), PART_HOPS, between=True)).graph
    joining = joining_facts(graph, known, key)
    keys = dict.fromkeys((key, *known, *(end for fact in joining for end in (fact.head, fact.tail))))
    labels = {one: graph.label(one) if one in graph.entities else one for one in keys}
    return WhyNot(
        question,
        key,
        labels[key],
        type(retriever).__name__,
        first.place,
        "" if first.refusal is None else first.refusal.message,
        known,
        joining,
        labels,
        tuple(tried),
        tried[-1] if found else None,
        found,
        timed_out and not found,
    )


class _Run(NamedTuple):
    """One run: the place of the entity, the Documents, the refusal, and the output of each retriever's stages."""

    place: Place | None
    documents: list[Document]
    refusal: errors.RefusalError | None
    written: Mapping[str, Mapping[str, Any]]


class _StagesHeard(BaseCallbackHandler):
    """Keeps the output of the stages of each retriever."""

    run_inline = True

    def __init__(self) -> None:
        self.written: dict[str, dict[str, Any]] = {}

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        if name == STAGE_EVENT:
            update = {key: value for key, value in data.items() if key not in ("retriever", "stage")}
            self.written.setdefault(data["retriever"], {}).update(update)


def _run(retriever: BaseKGRetriever, question: str, key: str, inputs: Mapping[str, Any]) -> _Run:
    heard, refusal, documents = _StagesHeard(), None, list[Document]()
    config = merge_configs(ensure_config(), {"callbacks": [heard]})  # the callbacks of the caller count costs
    try:
        documents = retriever.invoke(question, config, **{**inputs, "on_refusal": "raise"})
    except errors.RefusalError as error:
        refusal = error
    return _Run(_place(documents, key, retriever.proposes_answers), documents, refusal, heard.written)


def _place(documents: Sequence[Document], key: str, as_answer: bool) -> Place | None:
    """Return the place of an entity: in facts if there are no answers to propose, or an operation gave a value."""
    for document in documents:
        metadata = document.metadata
        if key in metadata["answers"]:
            return Place(metadata["rank"], "answer")
        ends = {end for head, _, tail in metadata["triples"] for end in (head, tail)}
        if (not as_answer or metadata["value"] is not None) and (key in ends or key in lone_entities_of(document)):
            return Place(metadata["rank"], "evidence")
    return None


def _changes(retriever: BaseKGRetriever, inputs: Mapping[str, Any], first: _Run, key: str) -> Iterator[Change]:
    """Yield the changes to try, in order."""
    graph, reason = retriever.index.part(PartRequest((key,), 1)).graph, "no question entity leads to it"
    names = [Change("seed_entities", [name], reason, is_input=True) for name in (*_neighbors(graph, key), key)]
    unnamed = isinstance(first.refusal, errors.EntityLinkingError)
    yield from names if unnamed else ()
    for change in possible_changes(retriever, inputs):
        try:
            with_change(retriever, inputs, change)
        except errors.InvalidArgumentError:  # a value that the retriever does not take
            continue
        if change.name == "min_confidence" and isinstance(first.refusal, errors.LowConfidenceError):
            yield replace(change, value=math.floor(first.refusal.confidence * 100) / 100)
        yield change
    yield from () if unnamed else names


def _place_with(
    retriever: BaseKGRetriever, question: str, key: str, inputs: Mapping[str, Any], change: Change
) -> Place | None:
    """Return the place of the entity with a change. None also if the retriever does not take the change."""
    with suppress(errors.KGRetrieversError):  # such as a value that does not fit another field
        changed, given = with_change(retriever, inputs, change)
        return _run(changed, question, key, given).place
    return None


def _written_by_model(retriever: BaseKGRetriever, written: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the output of stages that call a language model, as arguments of `invoke` that replace these calls."""
    own = written.get(type(retriever).__name__, {})
    names = dict.fromkeys(name for stage in retriever.stages if stage.calls_model for name in stage.writes)
    return {name: own[name] for name in names if name in own and name not in ("answers", "documents")}


def _question_entities(
    retriever: BaseKGRetriever, question: str, inputs: Mapping[str, Any], run: _Run
) -> tuple[str, ...]:
    """Return the keys of the question entities: those given, read by the retriever, or named in the question."""
    linker = linker_of(retriever.index)
    if inputs.get("seed_entities"):
        return tuple(linker.resolve(inputs["seed_entities"]))
    read = [key for written in run.written.values() for key in written.get("seed_entities") or ()]
    read += [key for one in run.documents for _, key in one.metadata["details"].get("entities") or ()]
    if not read:
        with suppress(errors.EntityLinkingError):
            read = link_question(linker, question)[0]
    return tuple(dict.fromkeys(read))


def _neighbors(graph: KnowledgeGraph, key: str) -> list[str]:
    """Return some entities that a fact joins with one, in the order of the graph."""
    facts = [*graph.triples(head=key), *graph.triples(tail=key)]
    ends = (end for head, _, tail in facts for end in (head, tail))
    return [end for end in dict.fromkeys(ends) if end != key][:TRIED_ENTITIES]


def joining_facts(graph: KnowledgeGraph, seeds: Sequence[str], entity: str) -> tuple[Triple, ...]:
    """Return a shortest chain of facts from one of some entities to another, or an empty one.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy"), ("Up", "starring", "Amy")])
        >>> [fact.head for fact in joining_facts(graph, ["Her"], "Up")]
        ['Her', 'Up']
    """
    ids = [id for id in (graph.entities.find(seed) for seed in seeds) if id >= 0]
    if not ids:
        return ()
    end = graph.entities.find(entity)
    chains = shortest_chains(graph.adjacency, np.array(sorted(ids)), end, max_hops=MAX_CHAIN) if end >= 0 else []
    return tuple(graph.triple(triple) for triple in chains[0].triples) if chains else ()
