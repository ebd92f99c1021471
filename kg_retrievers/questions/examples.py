"""Question -> Pattern by labelled examples, which also tell whether unknowns may be entities that are named."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from math import exp
from typing import Any, NamedTuple, Self

import numpy as np

from kg_retrievers.algorithms.logistic import LogisticPrior, fit_logistic
from kg_retrievers.algorithms.relation_paths import path_ends
from kg_retrievers.datasets import Question, check_questions
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern
from kg_retrievers.graph.adjacency import label_of, relation_of, reversed_label, translated_label
from kg_retrievers.graph.columns import Array, spread
from kg_retrievers.index import (
    MASK,
    EntityLinker,
    GraphIndex,
    PartRequest,
    QuestionEntity,
    check_same_embeddings,
    embed,
    find_name,
    mask,
)
from kg_retrievers.index.graph_search import SIMILARITY_DECIMALS
from kg_retrievers.questions.reading import LinkingGenerator, walks_of

#: How many examples of a template are compared.
EXAMPLES_COMPARED = 5


def learn_revisits(index: GraphIndex, examples: Sequence[Question]) -> list[Question]:
    """Let the patterns of examples state whether unknowns may be the entity that they name, judged by the answers.

    Questions that differ only in their entities, with one pattern, are a template. Of each template, the first
    `EXAMPLES_COMPARED` examples with answers are compared, by how many entities are only answers, or only found. They
    may if that fits more of the examples better than worse. They may not if it fits more of them worse. Otherwise the
    patterns stay as they are. So do patterns that state it already, or that are no walk from one known node. Of a
    connected graph, only the facts that the walks cross are fetched, for many examples at once. An example with more
    facts than a part holds has no say.

    Example:
        >>> from kg_retrievers.graph import Unknown
        >>> from kg_retrievers.index import HashedEmbeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "by", "Jonze"), ("Adaptation", "by", "Jonze")])
        >>> pattern = Pattern.of(("Her", "by", Unknown("x")), (Unknown("y"), "by", Unknown("x")), target="y")
        >>> example = Question("What is by those who made Her?", answers=("Her", "Adaptation"), pattern=pattern)
        >>> learn_revisits(GraphIndex.build(graph, HashedEmbeddings()), [example])[0].pattern.revisits
        True
    """
    templates: dict[_Masked, list[int]] = {}
    for position, example in enumerate(examples):
        if example.pattern is not None and example.pattern.revisits is None:
            templates.setdefault(_masked(example.text, example.pattern)[0], []).append(position)
    voting: dict[tuple[str, ...], list[int]] = {}
    for positions in templates.values():
        answered = [position for position in positions if examples[position].answers]
        for position in answered[:EXAMPLES_COMPARED]:
            if (pattern := examples[position].pattern) and (steps := _steps_of(pattern)):
                voting.setdefault(tuple(relation for relation, _ in steps), []).append(position)
    votes = {
        position: 0 if part.truncated else _vote(part.graph, examples[position])
        for relations, voters in voting.items()
        for part, positions in index.parts(voters, partial(_request, relations, examples))
        for position in positions
    }
    learned = list(examples)
    for positions in templates.values():
        if total := sum(votes.get(position, 0) for position in positions):
            for position in positions:
                pattern = examples[position].pattern
                learned[position] = replace(
                    examples[position], pattern=pattern and replace(pattern, revisits=total > 0)
                )
    return learned


def _request(relations: Sequence[str], examples: Sequence[Question], positions: Sequence[int]) -> PartRequest:
    """Return the part that walks along some relations cross, from the known nodes of some examples."""
    patterns = [pattern for position in positions if (pattern := examples[position].pattern)]
    nodes = [node for pattern in patterns for node in pattern.nodes if isinstance(node, Known)]
    return PartRequest(
        tuple(sorted({node.entity for node in nodes if node.entity is not None})),
        len(relations),
        names=tuple(sorted({node.text for node in nodes if node.entity is None})),
        steps=tuple((relation,) for relation in relations),
    )


def _vote(graph: KnowledgeGraph, example: Question) -> int:
    """Return 1 if the answers fit better where walks may return, -1 if worse, 0 if equally well."""
    if example.pattern is None or (steps := _steps_of(example.pattern)) is None:
        return 0
    (node,) = (node for node in example.pattern.nodes if isinstance(node, Known))
    keys = [node.entity] if node.entity is not None else graph.entities_named(node.text) or [node.text]
    starts = [id for key in keys if (id := graph.entities.find(key)) >= 0]
    relations = [graph.relations.find(relation) for relation, _ in steps]
    if not starts or min(relations) < 0:
        return 0
    labels = [label_of(id, backward) for id, (_, backward) in zip(relations, steps, strict=True)]
    answers = {graph.entities.find(answer) for answer in example.answers}

    def misfit(may_return: bool) -> int:
        """Return how many entities are only answers, or only ends of a walk."""
        ends = [path_ends(graph.adjacency, start, labels, may_return=may_return).tolist() for start in starts]
        return len(set(chain(*ends)) ^ answers)

    onward, back = misfit(False), misfit(True)
    return (back < onward) - (onward < back)


def _steps_of(pattern: Pattern) -> list[tuple[str, bool]] | None:
    """Return the relations from the only known node of a pattern to its target; None if it is no such walk."""
    walks = walks_of(pattern)
    return walks[0].steps if walks and len(walks) == 1 else None


#: The logistic function of a distance that says how likely the example's pattern is right: its value at distance 0 and
#: its slope, in log-odds. Fitted by `benchmarks/example_distance.py` with the default embeddings, on four graphs that
#: nothing is reported on, for 15 and 100 examples (n 2,034, calibration error .03).
LOG_ODDS_AT_ZERO, LOG_ODDS_BY_DISTANCE = 2.95, -6.4

#: How many examples tell how likely a nearest one is right on a graph.
EXAMPLES_ASKED = 100

#: The weight of a question of a new kind. A question whose pattern has other examples has the weight 1.
OTHER_KIND = 0.5

#: How much the two constants above differ between graphs, as variances.
PRIOR_VARIANCES = (1.0, 4.0)


#: How many of the nearest examples are tried on the graph before the nearest of all is taken.
EXAMPLES_TRIED = 10


class FilledExample(NamedTuple):
    """The pattern of an example, with the entities of another question in place of its own.

    Attributes:
        pattern: The pattern.
        text: The example's question.
        distance: How far the two questions are from each other once their entities are masked; in [0, 2], the
            Euclidean distance of their embeddings.
        fits: Whether the entities have the relations of the pattern.
    """

    pattern: Pattern
    text: str
    distance: float
    fits: bool


class _Masked(NamedTuple):
    """What examples have in common that differ only in their entities.

    Attributes:
        question: The question with its entities masked.
        slots: How many entities are masked.
        pattern: The pattern with a slot for each of them, as JSON.
    """

    question: str
    slots: int
    pattern: str


class _Template(NamedTuple):
    """A pattern with slots, its first example, and the adjacency labels that each slot needs.

    An entity fits a slot if it has an edge of every label.
    """

    pattern: Pattern
    example: Question
    labels: Sequence[Sequence[int]]


class _Slot(NamedTuple):
    """What an example has in a slot: a name, and the adjacency labels there, as they are written."""

    name: str
    labels: tuple[int, ...]


class _Option(NamedTuple):
    """A template with entities for its slots; better ones sort first."""

    far: bool
    distance: float
    fewer_slots: int
    position: int
    filled: tuple[QuestionEntity, ...]


class ExamplePatternGenerator(LinkingGenerator):
    """Takes the pattern of the labelled question that is nearest once the entities are masked.

    Examples whose relations the entities of the question do not have are passed over. The masked questions are
    compared with the index's own embeddings. The confidence of a pattern is `confidence_at` of the distance of the two
    questions, with constants that the examples themselves set. It is 0 if the entities lack the pattern's relations.

    Args:
        index: The indexed graph.
        examples: Questions with patterns. Where two differ only in their entities, one is kept. Their answers tell
            whether unknowns may be entities that the pattern names: see `learn_revisits`.
        linker: Finds the entities of a question where none are given.

    Raises:
        InvalidArgumentError: If `examples` is no list of questions, or none has a pattern.
        EntityLinkingError: From `invoke`, if no entity is found.
    """

    def __init__(self, index: GraphIndex, examples: Sequence[Question], *, linker: EntityLinker | None = None) -> None:
        """Mask the examples and embed them."""
        super().__init__(index, linker)
        check_questions(examples, "ExamplePatternGenerator")
        counts: Counter[_Masked] = Counter()
        firsts: dict[_Masked, tuple[Question, list[str]]] = {}  # of each template, the first example and its names
        for example in learn_revisits(index, examples):
            if example.pattern:
                masked, names = _masked(example.text, example.pattern)
                counts[masked] += 1
                firsts.setdefault(masked, (example, names))
        if not counts:
            raise InvalidArgumentError(
                f"ExamplePatternGenerator: got {len(examples)} examples, but none with a pattern. A row is "
                '{"question": ..., "pattern": {"triples": [[head, relation, tail]], "target": ...}}.'
            )
        # By the number of slots, which `_options` searches by bisection. Of equally many, the most frequent first.
        order = sorted(counts, key=lambda masked: (masked.slots, -counts[masked], masked))
        self._add_templates(order, firsts)

    @property
    def questions(self) -> list[Question]:
        """The examples that differ in more than their entities. Of equally many entities, the most frequent first."""
        return [template.example for template in self._templates]

    def with_index(self, index: GraphIndex) -> Self:
        """Return the generator over another graph, with the patterns of the same examples.

        A template whose relations the other graph lacks fits none of its entities.

        Raises:
            ModelMismatchError: If it was indexed with other embeddings than the examples.
        """
        check_same_embeddings(type(self).__name__, self.index, index)
        moved, graph = super().with_index(index), self.index.graph
        if index.origin is self.index.origin:  # relations have the same ids in all parts
            return moved

        def translated(labels: Sequence[int]) -> list[int]:
            return [translated_label(label, graph.relations, index.graph.relations) for label in labels]

        moved._templates = [one._replace(labels=list(map(translated, one.labels))) for one in self._templates]
        return moved

    def _add_templates(self, masked: Sequence[_Masked], firsts: Mapping[_Masked, tuple[Question, list[str]]]) -> None:
        """Keep the templates, each with its embedding, its number of slots and the id of its kind."""
        texts = list(dict.fromkeys(one.question for one in masked))
        vectors = dict(zip(texts, embed(self.index.embeddings, texts, batch_size=1024), strict=True))
        patterns = [replace(Pattern.from_dict(json.loads(one.pattern)), source="examples") for one in masked]
        triples = [triple for pattern in patterns for triple in pattern.triples]
        names = list(dict.fromkeys(triple.relation.text for triple in triples if isinstance(triple.relation, Known)))
        nearest = (found.ids.tolist() for found in self.index.nearest_relations(names, 1))
        relations = {name: ids[0] if ids else -1 for name, ids in zip(names, nearest, strict=True)}
        slots = [
            _Slot(name, _wanted(pattern, _slot_term(slot), relations))
            for one, pattern in zip(masked, patterns, strict=True)
            for slot, name in enumerate(firsts[one][1])
        ]
        parts = self.index.parts(slots, self._request)
        of_slots = (self._labels(part.graph, slot) for part, some in parts for slot in some)
        self._templates = [
            _Template(pattern, firsts[one][0], tuple(next(of_slots) for _ in firsts[one][1]))
            for one, pattern in zip(masked, patterns, strict=True)
        ]
        self._vectors = np.array([vectors[one.question] for one in masked])
        self._slots = np.array([one.slots for one in masked])
        #: Templates of one kind have the same pattern and the same labels.
        keys = [(one.pattern, template.labels) for one, template in zip(masked, self._templates, strict=True)]
        kinds = {key: kind for kind, key in enumerate(dict.fromkeys(keys))}
        self._kinds = np.array([kinds[key] for key in keys])
        self._log_odds = self._learned_log_odds()

    def _learned_log_odds(self) -> tuple[float, float]:
        """Return the constants of `confidence_at` for the graph, by how far examples are from their nearest others.

        The nearest other example has the same pattern or another one. A question of a new kind finds the nearest
        example with another pattern, so that each example stands for such a question too.
        """
        rows = list[tuple[float, bool, float]]()
        for at in spread(np.arange(len(self._kinds)), EXAMPLES_ASKED).tolist():
            others = np.flatnonzero(self._slots == self._slots[at])
            others = others[others != at]
            distances, same = self._distances(others, self._vectors[at]), self._kinds[others] == self._kinds[at]
            if same.any() and not same.all():
                rows.append((float(distances.min()), bool(same[np.argmin(distances)]), 1.0))
            if not same.all():
                rows.append((float(distances[~same].min()), False, OTHER_KIND))
        distance, right, weight = np.array(rows, float).reshape(-1, 3).T
        prior = LogisticPrior((LOG_ODDS_AT_ZERO, LOG_ODDS_BY_DISTANCE), PRIOR_VARIANCES)
        at_zero, slope = fit_logistic(np.stack([np.ones(len(rows)), distance], 1), right, prior, weights=weight)
        return float(at_zero), min(float(slope), 0.0)

    def _distances(self, templates: slice | Array, vector: Array) -> Array:
        """Return how far templates are from a masked question.

        Of unit vectors; other than that of BLAS, this product is the same for equal rows, wherever they stand.
        """
        return np.asarray(np.sqrt(np.maximum(2 - 2 * np.einsum("ij,j->i", self._vectors[templates], vector), 0)))

    def _request(self, slots: Sequence[_Slot]) -> PartRequest:
        """Return the part of a connected graph that tells the labels of the entities in slots."""
        relations = self.index.graph.relations
        wanted = {relations[relation_of(label)] for slot in slots for label in slot.labels if relation_of(label) >= 0}
        return PartRequest(hops=1, names=tuple(sorted({slot.name for slot in slots})), steps=(tuple(sorted(wanted)),))

    def _labels(self, graph: KnowledgeGraph, slot: _Slot) -> tuple[int, ...]:
        """Return the adjacency labels that an entity needs to fill a slot.

        Where the example's own entity has a relation in the other direction only, that direction counts: people write
        patterns either way round.
        """
        labels = []
        entities = graph.entities_named(slot.name) or [slot.name]
        for label in slot.labels:
            other = reversed_label(label)
            turned = not _has_labels(graph, entities, [label]) and _has_labels(graph, entities, [other])
            labels.append(other if turned else label)
        return tuple(labels)

    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        return next(self.nearest(input)).pattern

    def nearest(self, input: Mapping[str, Any]) -> Iterator[FilledExample]:
        """Yield the patterns of examples, each once: the one that `invoke` returns, then the next nearest.

        If none of the `EXAMPLES_TRIED` nearest fits the entities of the question, the first is the nearest of all. All
        others do fit.

        Args:
            input: As for `invoke`.

        Raises:
            EntityLinkingError: If no entity is found, or as many as no example has.
        """
        question, slots = input["question"], self.entities(input)
        options = sorted(option for count in range(len(slots) + 1) for option in self._options(question, slots[:count]))
        if not options:
            raise EntityLinkingError(
                f"ExamplePatternGenerator: found {len(slots)} entities in {question!r}; the examples have "
                f"{' or '.join(map(str, np.unique(self._slots).tolist()))}."
            )
        fitting = (option for option in options if self._fits(option))
        first = next(fitting, options[0])
        chosen = [first] if not first.far else [options[0], first]
        seen: set[Pattern] = set()
        for option in chain(chosen, fitting):
            template = self._templates[option.position]
            terms = {_slot_term(position): slot.term for position, slot in enumerate(option.filled)}
            pattern = template.pattern.with_nodes(terms)
            if pattern not in seen:
                seen.add(pattern)
                fits = option is not options[0] or self._fits(option)
                confidence = confidence_at(option.distance, self._log_odds) if fits else 0.0
                yield FilledExample(
                    replace(pattern, confidence=confidence), template.example.text, option.distance, fits
                )

    def shots(self, input: Mapping[str, Any], count: int) -> list[Question]:
        """Return examples that differ in more than their entities, those nearest to a question first.

        Args:
            input: As for `invoke`; the question need not name an entity.
            count: The most examples.
        """
        try:
            slots = self.entities(input)
        except EntityLinkingError:
            slots = []
        masked = mask(input["question"], [(slot.start, slot.end) for slot in slots])
        vector = self.index.embed([masked])[0]
        cosines = np.einsum("ij,j->i", self._vectors, vector).round(SIMILARITY_DECIMALS)
        return [self._templates[at].example for at in np.argsort(-cosines, kind="stable")[:count].tolist()]

    def _options(self, question: str, slots: Sequence[QuestionEntity]) -> list[_Option]:
        """Return the nearest template of each kind that some entities of a question can fill."""
        filled = tuple(sorted(slots, key=lambda slot: slot.start))
        masked = mask(question, [(slot.start, slot.end) for slot in filled])
        first, last = np.searchsorted(self._slots, [len(slots), len(slots) + 1]).tolist()
        if first == last:
            return []
        distances = self._distances(slice(first, last), self.index.embed([masked])[0])
        nearest = np.argsort(distances, kind="stable")
        ranks = np.sort(np.unique(self._kinds[first:last][nearest], return_index=True)[1])  # the first of each kind
        return [
            _Option(rank >= EXAMPLES_TRIED, float(distances[position]), -len(slots), first + position, filled)
            for rank, position in zip(ranks.tolist(), nearest[ranks].tolist(), strict=True)
        ]

    def _fits(self, option: _Option) -> bool:
        """Whether the entities have the relations that the template needs."""
        labels = self._templates[option.position].labels
        return all(
            _has_labels(self.index.graph, slot.entities, of_slot)
            for slot, of_slot in zip(option.filled, labels, strict=True)
        )


def _wanted(pattern: Pattern, slot: Known, relations: Mapping[str, int]) -> tuple[int, ...]:
    """Return the adjacency labels of the relations at a slot, as they are written."""
    return tuple(
        label_of(relations[relation.text], slot != head)
        for head, relation, tail in pattern.triples
        if isinstance(relation, Known) and slot in (head, tail)
    )


def _has_labels(graph: KnowledgeGraph, entities: Sequence[str], labels: Sequence[int]) -> bool:
    """Whether some of the entities has an edge of every label."""
    ids = [id for entity in entities if (id := graph.entities.find(entity)) >= 0]
    return any(all(graph.adjacency.has_label(id, label) for label in labels) for id in ids)


def confidence_at(distance: float, log_odds: tuple[float, float] = (LOG_ODDS_AT_ZERO, LOG_ODDS_BY_DISTANCE)) -> float:
    """Return how likely the pattern of an example is right, in (0, 1), by the distance of its question.

    Args:
        distance: How far the two questions are from each other once their entities are masked.
        log_odds: The value at distance 0, and the slope.

    Example:
        >>> confidence_at(0.0) > 0.9 > 0.5 > confidence_at(1.0)
        True
    """
    return 1 / (1 + exp(-log_odds[0] - log_odds[1] * distance))


def _slot_term(position: int) -> Known:
    """What stands for the entity of a slot in the pattern of a template."""
    return Known(f"{MASK}{position}")


def _masked(question: str, pattern: Pattern) -> tuple[_Masked, list[str]]:
    """Return a question and its pattern with slots for the entities that both name; and these names, slot by slot."""
    known = sorted((node for node in pattern.nodes if isinstance(node, Known)), key=lambda node: -len(node.text))
    spans: dict[Known, tuple[int, int]] = {}
    hidden = question
    for node in known:
        if span := find_name(node.text, hidden):
            spans[node] = span
            hidden = hidden[: span[0]] + "\0" * (span[1] - span[0]) + hidden[span[1] :]
    order = sorted(spans, key=lambda node: spans[node])
    slots = {node: _slot_term(slot) for slot, node in enumerate(order)}
    written = json.dumps(replace(pattern.with_nodes(slots), source=None, truncated=False).to_dict(), sort_keys=True)
    masked = _Masked(mask(question, list(spans.values())), len(spans), written)
    return masked, [node.text for node in order]
