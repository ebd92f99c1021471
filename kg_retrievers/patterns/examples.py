"""Question -> Pattern by labelled examples."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.datasets import Question, check_questions
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph import Known, Pattern
from kg_retrievers.graph.adjacency import label_of, reversed_label
from kg_retrievers.index import (
    MASK,
    EntityLinker,
    GraphIndex,
    QuestionEntity,
    embed,
    find_name,
    mask,
)
from kg_retrievers.patterns.linking_generator import LinkingGenerator

#: How many of the nearest examples are tried on the graph before the nearest of all is taken.
EXAMPLES_TRIED = 10


class FilledExample(NamedTuple):
    """The pattern of an example, with the entities of another question in place of its own.

    Attributes:
        pattern: The pattern.
        text: The example's question.
        distance: How far the two questions are from each other once their entities are masked; in [0, 2], the
            Euclidean distance of their embeddings.
    """

    pattern: Pattern
    text: str
    distance: float


class _Template(NamedTuple):
    """The pattern of examples with numbers for names, the text of the first, and what fits into each slot.

    That is an entity that has an edge of every one of the slot's adjacency labels.
    """

    pattern: Pattern
    text: str
    labels: tuple[tuple[int, ...], ...]


class _Option(NamedTuple):
    """A template that may be filled; those to be preferred come first in order."""

    far: bool
    distance: float
    fewer_slots: int
    number: int
    filled: tuple[QuestionEntity, ...]


class ExamplePatternGenerator(LinkingGenerator):
    """Takes the pattern of the labelled question that is nearest once the entities are masked.

    Examples whose relations the entities of the question do not have are passed over. The masked questions are
    compared with the index's own embeddings.

    Args:
        index: The indexed graph.
        examples: Questions with patterns. Where two differ only in their entities, one is kept.
        linker: Finds the entities of a question where none are given.

    Raises:
        InvalidArgumentError: If `examples` is no list of questions, or none has a pattern.
        EntityLinkingError: From `invoke`, if no entity is found.
    """

    def __init__(self, index: GraphIndex, examples: Sequence[Question], *, linker: EntityLinker | None = None) -> None:
        """Mask the examples and embed them."""
        super().__init__(index, linker)
        check_questions(examples, "ExamplePatternGenerator")
        templates: Counter[tuple[str, int, str]] = Counter()
        filled_by: dict[tuple[str, int, str], tuple[str, list[str]]] = {}
        for example in examples:
            if example.pattern:
                template, names = _template(example.text, example.pattern)
                templates[template] += 1
                filled_by.setdefault(template, (example.text, names))
        if not templates:
            raise InvalidArgumentError(
                f"ExamplePatternGenerator: got {len(examples)} examples, but none with a pattern. A row is "
                '{"question": ..., "pattern": {"triples": [[head, relation, tail]], "target": ...}}.'
            )
        order = sorted(templates, key=lambda template: (-templates[template], template))
        texts = list(dict.fromkeys(masked for masked, _, _ in order))
        vectors = embed(index.embeddings, texts, batch_size=1024)
        row = {text: number for number, text in enumerate(texts)}
        relations: dict[str, int] = {}
        rows: dict[int, list[int]] = {}
        kinds: dict[object, int] = {}
        numbers: dict[int, list[int]] = {}
        self._templates: dict[int, list[_Template]] = {}
        for template in order:
            masked, slots, written = template
            pattern = replace(Pattern.from_dict(json.loads(written)), source="examples")
            text, names = filled_by[template]
            labels = tuple(
                tuple(self._labels(pattern, _slot_term(slot), name, relations)) for slot, name in enumerate(names)
            )
            self._templates.setdefault(slots, []).append(_Template(pattern, text, labels))
            rows.setdefault(slots, []).append(row[masked])
            numbers.setdefault(slots, []).append(kinds.setdefault((written, labels), len(kinds)))
        #: By the number of slots: the embedding of each template, and a number that alike ones have in common.
        self._vectors = {slots: vectors[of_slots] for slots, of_slots in rows.items()}
        self._kinds = {slots: np.array(of_slots) for slots, of_slots in numbers.items()}

    def _labels(self, pattern: Pattern, slot: Known, name: str, relations: dict[str, int]) -> list[int]:
        """Return the adjacency labels that an entity needs to fill a slot.

        Where the example's own entity has a relation in the other direction only, that direction counts: people write
        patterns either way round.
        """
        labels = []
        entities = self.index.graph.entities_named(name) or [name]
        for head, relation, tail in pattern.triples:
            if isinstance(relation, Known) and slot in (head, tail):
                if relation.text not in relations:
                    found = self.index.nearest_relations([relation.text], 1)[0].ids
                    relations[relation.text] = int(found[0]) if len(found) else -1
                label = label_of(relations[relation.text], slot != head)
                other = reversed_label(label)
                turned = not self._has_labels(entities, [label]) and self._has_labels(entities, [other])
                labels.append(other if turned else label)
        return labels

    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        return next(self.nearest(input)).pattern

    def nearest(self, input: Mapping[str, Any]) -> Iterator[FilledExample]:
        """Yield the patterns of examples, each once; first the one that `invoke` returns, then the next nearest.

        Where none of the `EXAMPLES_TRIED` nearest fits the entities of the question, the first is the nearest of all;
        all others do fit.

        Args:
            input: As for `invoke`.

        Raises:
            EntityLinkingError: If no entity is found, or other numbers of them than the examples have.
        """
        question, slots = input["question"], self._slots(input)
        counts = [count for count in range(len(slots) + 1) if count in self._templates]
        options = sorted(option for count in counts for option in self._options(question, slots[:count]))
        if not options:
            raise EntityLinkingError(
                f"ExamplePatternGenerator: found {len(slots)} entities in {question!r}; the examples have "
                f"{' or '.join(map(str, sorted(self._templates)))}."
            )
        fitting = (option for option in options if self._fits(option))
        first = next(fitting, options[0])
        chosen = [first] if not first.far else [options[0], first]
        seen: set[Pattern] = set()
        for option in chain(chosen, fitting):
            template = self._templates[len(option.filled)][option.number]
            terms = {_slot_term(number): slot.term for number, slot in enumerate(option.filled)}
            pattern = template.pattern.with_known(terms)
            if pattern not in seen:
                seen.add(pattern)
                yield FilledExample(pattern, template.text, option.distance)

    def _options(self, question: str, slots: Sequence[QuestionEntity]) -> list[_Option]:
        """Return the nearest template of each kind that some entities of a question can fill."""
        filled = tuple(sorted(slots, key=lambda slot: slot.start))
        masked = mask(question, [(slot.start, slot.end) for slot in filled])
        # Of unit vectors; other than that of BLAS, this product is the same for equal rows, wherever they stand.
        cosines = np.einsum("ij,j->i", self._vectors[len(slots)], self.index.embed([masked])[0])
        distances = np.sqrt(np.maximum(2 - 2 * cosines, 0))
        order = np.argsort(distances, kind="stable")
        places = np.sort(np.unique(self._kinds[len(slots)][order], return_index=True)[1])
        return [
            _Option(place >= EXAMPLES_TRIED, float(distances[number]), -len(slots), number, filled)
            for place, number in zip(places.tolist(), order[places].tolist(), strict=True)
        ]

    def _fits(self, option: _Option) -> bool:
        """Whether the entities have the relations that the template needs."""
        labels = self._templates[len(option.filled)][option.number].labels
        return all(
            self._has_labels(slot.entities, of_slot) for slot, of_slot in zip(option.filled, labels, strict=True)
        )

    def _has_labels(self, entities: Sequence[str], labels: Sequence[int]) -> bool:
        """Whether some of the entities has an edge of every label."""
        graph = self.index.graph
        ids = [id for entity in entities if (id := graph.entities.find(entity)) >= 0]
        return any(all(graph.adjacency.has_label(id, label) for label in labels) for id in ids)


def _slot_term(number: int) -> Known:
    """What stands for the entity of a slot in the pattern of a template."""
    return Known(f"{MASK}{number}")


def _template(question: str, pattern: Pattern) -> tuple[tuple[str, int, str], list[str]]:
    """Return a question with its entities masked, their number, the pattern with numbers for names; and the names."""
    known = sorted((node for node in pattern.nodes if isinstance(node, Known)), key=lambda node: -len(node.text))
    spans: dict[Known, tuple[int, int]] = {}
    hidden = question
    for node in known:
        if span := find_name(node.text, hidden):
            spans[node] = span
            hidden = hidden[: span[0]] + "\0" * (span[1] - span[0]) + hidden[span[1] :]
    order = sorted(spans, key=lambda node: spans[node])
    numbered = {node: _slot_term(number) for number, node in enumerate(order)}
    written = json.dumps(replace(pattern.with_known(numbered), source=None).to_dict(), sort_keys=True)
    return (mask(question, list(spans.values())), len(spans), written), [node.text for node in order]
