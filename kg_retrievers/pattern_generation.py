"""Question -> Pattern: by a language model, by labelled examples, or by the entities that the question names."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, PatternParseError
from kg_retrievers.graph import Known, Pattern, Term, Unknown, readable
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import (
    FUNCTION_WORDS,
    MASK,
    EntityLinker,
    GraphIndex,
    QuestionEntity,
    embed,
    find_name,
    mask,
    question_entities,
)
from kg_retrievers.prompts import check_model, check_placeholders
from kg_retrievers.prompts.simgrag import PATTERN_PROMPT, REPAIR_PROMPT, parse_pattern
from kg_retrievers.questions import Question, check_questions
from kg_retrievers.steps import Call, SteppedRunnable, Steps

#: How many of the nearest examples are tried on the graph before the nearest of all is taken.
EXAMPLES_TRIED = 10

#: How much nearer to the words of a question two relations together must be than one alone, to be preferred.
SECOND_HOP = 0.25

#: How many entities a second hop starts from at the most, when `LinkedPatternGenerator` looks for its relations.
ENTITIES_FOLLOWED = 100

#: The words by which a text asks for something unknown.
ASKING = frozenset({"who", "whom", "whose", "what", "which", "when", "where", "how", "why", "name", "list"})

#: What a question word asks for; the other function words of a question name no relation.
ASKED = {"when": "date", "where": "place"}


class LLMPatternGenerator(SteppedRunnable[Mapping[str, Any], Pattern]):
    """Asks a language model for the pattern (SimGRAG, section 4.1), and once more where its reply is unreadable.

    Args:
        llm: The language model; set its temperature to 0 for equal replies on every run.
        prompt: In place of ours, with the placeholder `question`.
        repair_prompt: In place of ours, with the placeholders `question`, `reply` and `error`.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or a prompt has other placeholders.
        PatternParseError: From `invoke`, if the second reply is unreadable, too.
    """

    def __init__(
        self,
        llm: BaseLanguageModel[Any],
        *,
        prompt: BasePromptTemplate[Any] = PATTERN_PROMPT,
        repair_prompt: BasePromptTemplate[Any] = REPAIR_PROMPT,
    ) -> None:
        """Check the model and the prompts."""
        check_model(llm, "LLMPatternGenerator")
        check_placeholders(prompt, ["question"], "LLMPatternGenerator: prompt")
        check_placeholders(repair_prompt, ["question", "reply", "error"], "LLMPatternGenerator: repair_prompt")
        self.llm = llm
        self.prompts = {"pattern": prompt, "repair": repair_prompt}

    def steps(self, input: Mapping[str, Any]) -> Steps[Pattern]:
        """Ask, read, and if need be ask again with the reason."""
        values = {"question": input["question"]}
        reply = yield Call(self.prompts["pattern"] | self.llm | StrOutputParser(), values)
        try:
            return parse_pattern(reply)
        except PatternParseError as error:
            values |= {"reply": error.reply, "error": error.reason}
        reply = yield Call(self.prompts["repair"] | self.llm | StrOutputParser(), values)
        return parse_pattern(reply)


class _LinkingGenerator(Runnable[Mapping[str, Any], Pattern]):
    """What the two generators without a language model share: finding the entities of a question."""

    def __init__(self, index: GraphIndex, linker: EntityLinker | None) -> None:
        if not isinstance(index, GraphIndex):
            raise InvalidArgumentError(
                f"{type(self).__name__}: wanted a GraphIndex, but got {index!r:.100}. Make one: GraphIndex.build(...)."
            )
        self.index = index
        self.linker = linker or EntityLinker(index)

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> Pattern:
        """Return the pattern of `{"question", "seed_entities"}`; "entities" may hold them as they were found."""
        return self._call_with_config(self._generate, input, config)

    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        raise NotImplementedError

    def _slots(self, input: Mapping[str, Any]) -> list[QuestionEntity]:
        """Return the entities of a question, the likeliest first: those given, else those found in it."""
        found: list[QuestionEntity] | None = input.get("entities")
        return found or question_entities(self.linker, input["question"], input.get("seed_entities") or ())


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


class ExamplePatternGenerator(_LinkingGenerator):
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
                label = 2 * relations[relation.text] + (slot != head)
                turned = not self._has_labels(entities, [label]) and self._has_labels(entities, [label ^ 1])
                labels.append(label ^ 1 if turned else label)
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
        for entity in entities:
            if (number := graph.entities.find(entity)) < 0:
                continue
            row = graph.adjacency.labels[graph.adjacency.indptr[number] : graph.adjacency.indptr[number + 1]]
            if all((places := np.searchsorted(row, [label, label + 1]))[0] < places[1] for label in labels):
                return True
        return False


class LinkedPatternGenerator(_LinkingGenerator):
    """Joins the entities that the question names by the relations nearest to its other words. No model, no examples.

    One entity: the relation of it, or the two relations of a walk from it, whose words the question covers best. Two
    or more: the unknown that each of them is joined to, if there is one; for a text without a question word, as a claim
    or a yes-or-no question, rather the fact that joins the first two, if there is one.

    Args:
        index: The indexed graph.
        linker: Finds the entities of a question where none are given.

    Raises:
        EntityLinkingError: From `invoke`, if no entity is found, or the one found has no facts.
    """

    def __init__(self, index: GraphIndex, *, linker: EntityLinker | None = None) -> None:
        """Take the index."""
        super().__init__(index, linker)

    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        if not (slots := self._slots(input)):
            raise EntityLinkingError(f"LinkedPatternGenerator: found no entity in {input['question']!r}.")
        phrases = _phrases(mask(input["question"], [(slot.start, slot.end) for slot in slots]))
        likeness = self._likeness([phrase.text for phrase in phrases])
        starts = [[self.index.graph.entities.find(entity) for entity in slot.entities] for slot in slots]
        if len(slots) > 1:
            asks = not ASKING.isdisjoint(re.findall(r"\w+", input["question"].casefold()))
            ways = (self._join, self._fact) if asks else (self._fact, self._join)
            for way in ways:
                if pattern := way(slots, starts, likeness):
                    return pattern
        return self._walk(slots[0], starts[0], phrases, likeness)

    def _likeness(self, words: Sequence[str]) -> Array:
        """Return how near each phrase is to each relation, above the average over relations; (phrases, relations)."""
        relations = self.index.embed([readable(relation) for relation in self.index.graph.relations])
        cosines = self.index.embed(words) @ relations.T if words else np.zeros((1, len(relations)))
        means = cosines.sum(axis=1, keepdims=True) / max(len(relations), 1)
        above: Array = np.maximum(cosines - means, 0.0)
        return above

    def _around(self, entities: Sequence[int]) -> dict[int, list[int]]:
        """Return what some entities are joined to, by adjacency label."""
        adjacency = self.index.graph.adjacency
        around: dict[int, list[int]] = {}
        for entity in entities[:ENTITIES_FOLLOWED]:
            row = slice(adjacency.indptr[entity], adjacency.indptr[entity + 1])
            for label, neighbor in zip(adjacency.labels[row].tolist(), adjacency.neighbors[row].tolist(), strict=True):
                around.setdefault(label, []).append(neighbor)
        return around

    def _walk(self, slot: QuestionEntity, start: Sequence[int], phrases: Sequence[_Phrase], likeness: Array) -> Pattern:
        """The hop, or the two hops, from an entity whose relations the words name best."""
        starts, ends = np.array([(phrase.start, phrase.end) for phrase in phrases] or [(0, 1)]).T
        overlap = (starts[:, None] < ends) & (starts < ends[:, None])
        options: list[tuple[float, tuple[int, ...]]] = []
        for label, middle in self._around(start).items():
            first = likeness[:, label >> 1]
            options.append((float(first.max()) + SECOND_HOP, (label,)))
            for onward in self._around(middle):
                second = likeness[:, onward >> 1]
                sums = first[:, None] + second[None, :]
                sums[overlap] = 0.0  # one word names one relation
                options.append((float(sums.max()), (label, onward)))
        if not options:
            raise EntityLinkingError(
                f"LinkedPatternGenerator: {slot.name!r} has no facts in the graph, so there is nothing to follow."
            )
        _, labels = min(options, key=lambda option: (-option[0], option[1]))
        nodes: list[Term] = [slot.term, *(Unknown(f"entity {hop}") for hop in range(1, len(labels) + 1))]
        triples = [self._triple(nodes[hop], nodes[hop + 1], label) for hop, label in enumerate(labels)]
        return Pattern.of(*triples, target=f"entity {len(labels)}", source="linked")

    def _join(
        self, slots: Sequence[QuestionEntity], starts: Sequence[Sequence[int]], likeness: Array
    ) -> Pattern | None:
        """One unknown that is joined to every entity, by the relations that the words name best."""
        best = []
        common: set[int] | None = None
        for start in starts:
            around = self._around(start)
            reached = {neighbor for neighbors in around.values() for neighbor in neighbors}
            common = reached if common is None else common & reached
        if not common:
            return None
        for start in starts:
            labels = [label for label, reached in self._around(start).items() if common & set(reached)]
            best.append(min(labels, key=lambda label: (-float(likeness[:, label >> 1].max()), label)))
        triples = [self._triple(slot.term, Unknown("entity 1"), label) for slot, label in zip(slots, best, strict=True)]
        return Pattern.of(*triples, target="entity 1", source="linked")

    def _fact(
        self, slots: Sequence[QuestionEntity], starts: Sequence[Sequence[int]], likeness: Array
    ) -> Pattern | None:
        """The fact that joins the first two entities, by the relation that the words name best."""
        there = set(starts[1])
        labels = [label for label, reached in self._around(starts[0]).items() if there & set(reached)]
        if not labels:
            return None
        label = min(labels, key=lambda label: (-float(likeness[:, label >> 1].max()), label))
        return Pattern.of(self._triple(slots[0].term, slots[1].term, label), source="linked")

    def _triple(self, here: Term, there: Term, label: int) -> tuple[Term, Term, Term]:
        relation = Known(self.index.graph.relations[label >> 1])
        return (there, relation, here) if label & 1 else (here, relation, there)


@dataclass(frozen=True)
class _Phrase:
    """A word of a question, or two in a row, and which words these are."""

    text: str
    start: int
    end: int


def _phrases(text: str) -> list[_Phrase]:
    """The words that may name a relation, and with the word before or after; question words as what they ask for."""
    words = re.findall(r"[^\W_]+|_", text.casefold())
    telling = [word != MASK and (word not in FUNCTION_WORDS or word in ASKED) for word in words]
    found = [_Phrase(ASKED.get(word, word), i, i + 1) for i, word in enumerate(words) if telling[i]]
    for i, (one, two) in enumerate(pairwise(words)):
        if (telling[i] or telling[i + 1]) and MASK not in (one, two):
            found.append(_Phrase(f"{one} {two}", i, i + 2))
    return found


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
