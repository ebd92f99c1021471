"""ZeroShotPatternGenerator: joins the entities of a question by the words of the question, on a graph never seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise, product
from typing import Any

import numpy as np

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import Known, Pattern, Term, Unknown, readable
from kg_retrievers.graph.adjacency import is_backward, relation_of, reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.pattern import decide, excludes_named, turns
from kg_retrievers.graph.values import read_value
from kg_retrievers.index import EntityLinker, GraphIndex, QuestionEntity
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.index.hints import unknown_names
from kg_retrievers.questions.casual import ASKING, asked_part, spelt
from kg_retrievers.questions.reading import LinkingGenerator, Reading, node_of, type_nouns
from kg_retrievers.questions.self_questions.english import is_plural, singular_of
from kg_retrievers.questions.zero_shot.direction import agrees, asked_end, claimed, relation_says
from kg_retrievers.questions.zero_shot.ranking import (
    COVERED,
    MAX_FRONTIER,
    WALK_FEATURES,
    Asked,
    LackedStep,
    Surroundings,
    best_lacked,
    compare_directions,
    coverage,
    rank_walks,
    walk_features,
)
from kg_retrievers.questions.zero_shot.scorer import KINDS, MAX_HOPS, RelationScorer, relation_scorer, softmax
from kg_retrievers.questions.zero_shot.sentence_encoder import Encoder, StepMeanings, read_phrase, sentence_encoder
from kg_retrievers.questions.zero_shot.steps import (
    GraphSteps,
    asked_again,
    asked_kind,
    asked_noun,
    masked_text,
    question_words,
    schema_words,
    words_to_cover,
)

#: How sure a reading is compared with a likelier one that leads to nothing of the kind that the question names.
OTHER_KIND = 0.8


#: The share of the ends of a type, from -1 to 1, below which they are of another type.
OTHER_TYPE = -0.5

#: The greatest margin, and the least logarithm, that count.
MOST_MARGIN, LEAST_LOG = 0.5, -5.0


@dataclass(frozen=True)
class RankedWalk:
    """A walk from an entity of the question.

    Attributes:
        slot: The entity it starts from.
        labels: The adjacency labels of its steps.
        probability: How likely the question asks for its ends, of all walks found from the entity; in [0, 1].
    """

    slot: QuestionEntity
    labels: tuple[int, ...]
    probability: float


@dataclass(frozen=True)
class Understanding:
    """The request of a question.

    Attributes:
        arms: The walks that together lead to what is asked for: one, or one from each of several entities.
        walks: All walks found from the first of these entities, the likeliest first.
        ends: The ids of the entities to which all arms lead.
        confidence: How likely the arms are right, in [0, 1].
        unplaced: The words of the question that they do not cover.
        nearest: The relations that came nearest, the nearest first.
        lacked: The adjacency label of the step that the entity lacks and the question asks for, while others have it.
        lacking: A clause that says so, if there is one.
        onward: The adjacency label of one more step, by which all arms go on together, if there is one.
    """

    arms: tuple[RankedWalk, ...]
    walks: tuple[RankedWalk, ...]
    ends: Array
    confidence: float
    unplaced: tuple[str, ...]
    nearest: tuple[str, ...]
    lacked: int | None
    lacking: tuple[str, ...]
    onward: int | None = None


@dataclass(frozen=True)
class Arm:
    """The walks from one entity of a question, the best first.

    Attributes:
        slot: The entity.
        asked: What the question says.
        walks: Their adjacency labels.
        features: Their features, (n, `len(WALK_FEATURES)`).
        scores: Their scores, (n).
        words: How well they cover each telling word of the question, (n, words).
        end_words: The same with the words for their ends, (n, words).
        ends: The ids of the entities where the first of them end.
        nothing: How likely nothing around the entity fits, by the scorer.
        direction: See `compare_directions`, of the first step of the best walk.
        lacked: The step that the entity lacks and that the question asks for most likely, if like entities have one.
        slot_count: How many entities the question names.
    """

    slot: QuestionEntity
    asked: Asked
    walks: list[tuple[int, ...]]
    features: Array
    scores: Array
    words: Array
    end_words: Array
    ends: list[Array]
    nothing: float
    direction: float
    lacked: LackedStep | None
    slot_count: int

    @property
    def possession(self) -> float:
        """The logarithm of how likely the best walk is asked for, compared with the lacked step, at most 0."""
        return 0.0 if self.lacked is None else min(float(self.scores[0]) - self.lacked.score, 0.0)

    @property
    def is_named_lacked(self) -> bool:
        """Whether words of the question name the step that the entity lacks, rather than its best walk."""
        if self.lacked is None:
            return False
        named = self.lacked.words >= COVERED
        return bool(named.any() if self.possession < 0 else (named & (self.words[0] < COVERED)).any())

    def alike(self, chosen: int) -> list[int]:
        """Return the walks with the same ends as one of them."""
        return [i for i, ends in enumerate(self.ends) if np.array_equal(ends, self.ends[chosen])]

    def share(self, chosen: int) -> float:
        """Return how likely the question asks for the ends of a walk."""
        return float(softmax(self.scores)[self.alike(chosen)].sum())

    def margin(self, chosen: int) -> float:
        """Return how much better a walk fits the question than all that lead to other ends."""
        meanings = self.features[:, WALK_FEATURES.index("meaning")]
        others = np.delete(meanings, self.alike(chosen))
        return float(meanings[chosen] - others.max(initial=0.0))


@dataclass(frozen=True)
class Choice:
    """One walk from each of some entities.

    Attributes:
        arms: The walks to choose from.
        walks: The position of the one chosen of each arm.
    """

    arms: Sequence[Arm]
    walks: Sequence[int]

    @property
    def pairs(self) -> list[tuple[Arm, int]]:
        """Each arm with the position of its walk."""
        return list(zip(self.arms, self.walks, strict=True))

    @cached_property
    def ends(self) -> Array:
        """The ids of the entities where all of the walks end, ascending."""
        return reduce(np.intersect1d, [arm.ends[walk] for arm, walk in self.pairs])

    @cached_property
    def covered(self) -> Array:
        """How well the walks together cover each telling word of the question, (words)."""
        return np.asarray(np.max([arm.words[walk] for arm, walk in self.pairs], axis=0))

    @cached_property
    def ends_covered(self) -> Array:
        """The same with the words for their ends, (words)."""
        return np.asarray(np.max([arm.end_words[walk] for arm, walk in self.pairs], axis=0))

    @property
    def placed(self) -> Array:
        """How well the walks account for each telling word (words). The noun of the target may name their ends."""
        asked = self.arms[0].asked.words
        nouns = {id(word) for word in asked_noun(asked)}
        is_noun = np.array([id(word) in nouns for word in words_to_cover(asked)] or [False], bool)
        return np.where(is_noun, self.ends_covered, self.covered)

    def least(self, feature: str) -> float:
        """Return the least value of a feature of the walks.

        That of "measure" is 1 if they lead to numbers of the question's measure, -1 if to those of another, otherwise
        0. That of "said" is -1 if one leads to the other end than the question says.
        """
        at = WALK_FEATURES.index(feature)
        return float(min(arm.features[walk, at] for arm, walk in self.pairs))

    def features(self) -> Array:
        """Return the features of how sure it is that the question asks for the walks, see `CONFIDENCE_FEATURES`."""
        rows = np.stack([arm.features[walk] for arm, walk in self.pairs])
        feature = dict(zip(WALK_FEATURES, rows.T, strict=True))
        lengths = 1 + feature["two steps"] + 2 * feature["three steps"]
        margin = min(arm.margin(walk) for arm, walk in self.pairs)
        # Walks that meet tell their directions, and what they lack, themselves.
        first, alone = self.arms[0], len(self.arms) == 1
        return np.array([
            1.0,
            (feature["log probability"] / lengths).min(),
            np.log(max(min(arm.share(walk) for arm, walk in self.pairs), 1e-6)),
            float(not alone),
            np.log(max(*(arm.nothing for arm in self.arms), 1e-6)),
            feature["kind"].min(),
            np.clip(self.ends_covered, 0, 1).mean(),
            feature["meaning"].min(),
            np.clip(margin, -MOST_MARGIN, MOST_MARGIN),
            feature["type"].min(),
            max(first.direction, LEAST_LOG) if alone else 0.0,
            max(first.possession, LEAST_LOG) if alone else 0.0,
            feature["said"].min(),
            feature["measure"].min(),
            float(feature["kind"].min() < 0),
            float(feature["type"].min() < OTHER_TYPE),
            float(first.slot_count - len(self.arms)),
        ])  # fmt: skip


def _without_times(understood: Understanding, times: Sequence[QuestionEntity]) -> Understanding:
    """Return what a question may ask for, with less confidence if it leaves out a time or number of the question."""
    taken = [arm.slot for arm in understood.arms]
    is_left = any(slot not in taken for slot in times)
    return replace(understood, confidence=understood.confidence * LIMIT_LEFT_OUT) if is_left else understood


def meeting_walks(arms: Sequence[Arm]) -> Choice | None:
    """Return walks that all lead to a common entity, with the highest sum of scores, or None if none do."""
    logs = [np.log(softmax(arm.scores)[: len(arm.ends)]) for arm in arms]
    combinations = product(*(range(len(of_arm)) for of_arm in logs))
    ranked = sorted(
        (-sum(of_arm[i] for of_arm, i in zip(logs, chosen, strict=True)), chosen) for chosen in combinations
    )
    choices = (Choice(arms, chosen) for _, chosen in ranked)
    return next((choice for choice in choices if len(choice.ends)), None)


#: How many entities of a question are looked at, the likeliest first.
MAX_SLOTS = 4

#: How many walks of an entity are compared as a whole, and of how many of the best the ends are looked up.
WALKS_COMPARED, WALKS_FOLLOWED = 50, 8

#: How many readings of a question are returned.
READINGS = 8

#: How many relations are named as the nearest.
NEAREST = 3

#: The factor of the confidence if a walk leads to the other end than a question says, as from a boss to reports.
OTHER_END = 0.5

#: The factor of the confidence if "who" or "where" leads to a date or number.
VALUE_FOR_THING = 0.5

#: The factor of the confidence if the question limits its answers by a time or by a value that is left out.
LIMIT_LEFT_OUT = 0.5

#: The factor of the confidence if a walk leads to a value that no word of the question names.
OTHER_VALUE = 0.5

#: The logit of the direction of a claim whose words say it.
SAID = 20.0

#: How much the encoder's cosines count beside the logits of the scorer for the direction of a claim.
MEANING_OF_DIRECTION = 20.0


class ZeroShotPatternGenerator(LinkingGenerator):
    """Joins the entities that a question names by the relations that its words ask for. No model, no examples.

    One entity: of the walks of up to three steps around it, the one that the whole question asks for. Several: the
    unknown to which such a walk leads from each of them, if there is one, or a walk from one of them, whichever is
    surer. A text without a question word that names two entities, as a claim does, is the fact that joins them, if
    there is one. Walks are scored by the relation scorer (`docs/model-card.md`). They are then ranked as a whole by how
    well their words and those of the question cover each other (see `kg_retrievers.questions.zero_shot.ranking`).

    Cost: some milliseconds, and no call of a language model.

    Args:
        index: The indexed graph.
        linker: Finds the entities of a question where none are given.
        scorer: In place of the package's.
        encoder: In place of the package's.

    Raises:
        EntityLinkingError: From `invoke`, if no entity is found, or the one found has no facts.
    """

    def __init__(
        self,
        index: GraphIndex,
        *,
        linker: EntityLinker | None = None,
        scorer: RelationScorer | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        """Take the index; the relations of the graph are read when first needed."""
        super().__init__(index, linker)
        self.scorer, self.encoder = scorer, encoder
        #: The addition to the logit of the confidence, by labelled questions of the graph.
        self.trust = 0.0

    @property
    def _scorer(self) -> RelationScorer:
        return self.scorer or relation_scorer()

    @property
    def steps(self) -> GraphSteps:
        """The steps of the graph, read when first needed."""
        scorer, whole = self._scorer, self.index.whole
        return whole.derived.get(
            "zero-shot steps", (whole.graph, scorer), lambda: GraphSteps(whole.graph, scorer, token_table())
        )

    @property
    def _encoder(self) -> Encoder:
        return self.encoder or sentence_encoder()

    @property
    def _meanings(self) -> StepMeanings:
        """The vectors of the steps of the graph."""
        encoder, whole = self._encoder, self.index.whole
        steps = self.steps
        return whole.derived.get("step meanings", (whole.graph, encoder), lambda: StepMeanings(steps.phrases, encoder))

    def asked_part(self, question: str, slots: Sequence[QuestionEntity]) -> tuple[str, list[QuestionEntity]]:
        """Return the part of a question that asks, spelt as the graph has its words, and its entities there."""
        graph = self.index.whole.graph
        things = [slot for slot in slots if slot.given or not graph.are_classes(slot.entities)]
        return spelt(*asked_part(question, things), self.words_to_spell, token_table())

    @property
    def words_to_spell(self) -> frozenset[str]:
        """The words of the graph's relations and types."""
        graph = self.index.whole.graph
        return self.index.whole.derived.get("words to spell", (graph,), lambda: schema_words(graph))

    def _generate(self, input: Mapping[str, Any]) -> Pattern:
        return self.read(input).pattern

    def read(self, input: Mapping[str, Any]) -> Reading:
        """Return the request of a question, as `QuestionReader.read` does."""
        question, slots = input["question"], self.entities(input)
        if not slots:
            raise EntityLinkingError(f"ZeroShotPatternGenerator: found no entity in {question!r}.")
        reading = self._read(input, question, slots)
        if not reading.unplaced or "walks" in input:
            return reading
        values = self._values_named(question, reading.unplaced)
        if values:
            narrowed = self._read(input, question, [*slots, *values])
            known = {node.text for node in narrowed.pattern.nodes if isinstance(node, Known)}
            if all(value.name in known for value in values):
                return narrowed
        elif slots[0].given or not unknown_names(masked_text(question, slots), reading.unplaced):
            return reading
        doubted = replace(reading.pattern, confidence=(reading.confidence or 0.0) * LIMIT_LEFT_OUT)
        return replace(reading, pattern=doubted)

    def _values_named(self, question: str, unplaced: Sequence[str]) -> list[QuestionEntity]:
        """Return entities that plural nouns left over name, such as "comedies" the genre "comedy"."""
        graph, nouns, found = self.index.graph, type_nouns(self.index), list[QuestionEntity]()
        for word in filter(is_plural, unplaced):
            single = singular_of(word)
            keys = [key for name in (single, single.capitalize()) for key in graph.entities_named(name)]
            place = re.search(rf"\b{re.escape(word)}\b", question, re.IGNORECASE)
            if place and keys and nouns.named([word]) is None and not graph.are_classes(keys):
                found.append(QuestionEntity(*place.span(), graph.label(keys[0]), (*keys,), len(keys), False))
        return found

    def _read(self, input: Mapping[str, Any], question: str, slots: Sequence[QuestionEntity]) -> Reading:
        if "walks" in input:
            return self._walks(question, slots, input["walks"], input.get("max_hops", MAX_HOPS))
        states = len(slots) > 1 and not ASKING.search(question)
        if states and (claim := self._claim(question, slots[:2])):
            return Reading(claim)
        best, *others = self._understood(question, slots, MAX_HOPS, WALKS_FOLLOWED)
        others = [replace(one, confidence=min(one.confidence, best.confidence)) for one in others]
        best, *others = self._of_kind_first(question, slots, [best, *others])
        read: dict[object, Pattern] = {}
        for one in (self._beyond_blank_nodes(question, slots, best), best, *others):
            pattern = self._pattern(one, self._asked_type(question, slots, one.ends))
            read.setdefault(pattern.triples, pattern)
        likeliest, *alternatives = list(read.values())[:READINGS]
        return Reading(likeliest, tuple(alternatives))

    def _of_kind_first(
        self, question: str, slots: Sequence[QuestionEntity], understood: list[Understanding]
    ) -> list[Understanding]:
        """Return what a question may ask for, beginning with what leads to things of the kind that it names."""
        kind = type_nouns(self.index).asked(masked_text(question, slots))
        if kind is None:
            return understood
        members, untyped = self._of_type(kind)
        fits = [bool(np.isin(one.ends, members).any() or np.isin(one.ends, untyped).any()) for one in understood]
        if fits[0] or not any(fits):
            return understood
        first = fits.index(True)
        chosen = replace(understood[first], confidence=understood[0].confidence * OTHER_KIND)
        return [chosen, *understood[:first], *understood[first + 1 :]]

    def _beyond_blank_nodes(
        self, question: str, slots: Sequence[QuestionEntity], understood: Understanding
    ) -> Understanding:
        """Return what a question may ask for, one step further if it leads to blank nodes alone, which have no name.

        The step is the likeliest that leads to things which the question does not name, or to values. "What" and
        "which" may ask for the blank nodes themselves.
        """
        graph, ends = self.index.graph, understood.ends
        is_blank = len(ends) and all(graph.entities[end].startswith("_:") for end in ends[:MAX_FRONTIER].tolist())
        if not is_blank or asked_kind(masked_text(question, slots)) is None:
            return understood
        topic = understood.arms[0].slot
        further = self.understand_from(question, slots, topic, max_hops=1, starts=ends)
        around = Surroundings(graph.adjacency, ends, self.steps)
        named = [graph.entities.find(key) for slot in slots for key in slot.entities]
        for walk in further.walks if further else ():
            reached = around.ends(walk.labels, revisits=False)
            if len(reached) and not np.isin(reached, named).any():
                return replace(understood, ends=reached, onward=walk.labels[0])
        return understood

    def _asked_type(self, question: str, slots: Sequence[QuestionEntity], ends: Array) -> str | None:
        """Return the type that a noun names; None if no end is of it, and some have no type at all."""
        kind = type_nouns(self.index).asked(masked_text(question, slots))
        if kind is None:
            return None
        of_kind, untyped = (bool(np.isin(ends, some).any()) for some in self._of_type(kind))
        return kind if of_kind or not untyped else None

    def _of_type(self, kind: str) -> tuple[Array, Array]:
        """Return the ids of the entities of a type, or of one below it, and of those without type."""
        graph = self.index.graph
        members = kind_members(graph, kind)
        of_kind = np.empty(0, np.int64) if members is None else members
        return of_kind, graph.untyped if len(graph.types) else np.empty(0, np.int64)

    def _walks(self, question: str, slots: Sequence[QuestionEntity], most: int, max_hops: int) -> Reading:
        """Return the likeliest walks; the confidence of each falls with its probability."""
        understood = self.understand(question, slots, max_hops=max_hops, max_walks=most)
        first, *others = understood.walks
        patterns = [self._pattern(understood, None)]
        for walk in others if len(understood.arms) == 1 else ():
            share = understood.confidence * walk.probability / first.probability
            patterns.append(self._pattern(replace(understood, arms=(walk,), confidence=share), None))
        return Reading(patterns[0], tuple(patterns[1:]))

    def understand(
        self, question: str, slots: Sequence[QuestionEntity], *, max_hops: int = MAX_HOPS, max_walks: int = 16
    ) -> Understanding:
        """Return the request of a question.

        Args:
            question: The question.
            slots: Its entities, the likeliest first.
            max_hops: The most steps of a walk.
            max_walks: How many walks to return.

        Raises:
            EntityLinkingError: If no entity has facts.
        """
        return self._understood(question, slots, max_hops, max_walks)[0]

    def _understood(
        self, question: str, slots: Sequence[QuestionEntity], max_hops: int, max_walks: int
    ) -> list[Understanding]:
        """Return what a question may ask for: what it does, as `understand` finds it, and then what is less likely."""
        every = self._understandings(question, slots[:MAX_SLOTS], min(max_hops, MAX_HOPS), max_walks)
        times = [slot for slot in slots if not slot.given and read_value(slot.name) is not None]
        found = [(_without_times(one, times), is_best) for one, is_best in every]
        if not found:
            raise EntityLinkingError(
                f"ZeroShotPatternGenerator: {slots[0].name!r} has no facts in the graph, so there is nothing to follow."
            )
        best = max((understood for understood, is_best in found if is_best), key=lambda one: one.confidence)
        others = sorted((one for one, _ in found if one is not best), key=lambda one: -one.confidence)
        return [best, *others]

    def understand_from(
        self,
        question: str,
        slots: Sequence[QuestionEntity],
        topic: QuestionEntity,
        *,
        max_hops: int = MAX_HOPS,
        starts: Sequence[int] | Array | None = None,
    ) -> Understanding | None:
        """Return the request by walks from one of a question's entities, or None if this has no facts.

        Args:
            question: The question.
            slots: Its entities.
            topic: The one from which walks start.
            max_hops: The most steps of a walk.
            starts: The ids of the entities that are meant; None for those of the topic.
        """
        around = self._around(topic) if starts is None else Surroundings(self.index.graph.adjacency, starts, self.steps)
        arm = self._arm(question, slots, slots, topic, max_hops, around)
        return None if arm is None else self._understanding(Choice([arm], [0]), WALKS_COMPARED)

    def _understandings(
        self, question: str, slots: Sequence[QuestionEntity], max_hops: int, max_walks: int
    ) -> Iterator[tuple[Understanding, bool]]:
        """Yield the best star of all entities, and walks from each to different ends; True with the best of each."""
        starts = [(slot, self._around(slot)) for slot in slots]
        if len(slots) > 1:
            arms = [
                arm for slot, around in starts if (arm := self._arm(question, slots, slots, slot, max_hops, around))
            ]
            if len(arms) == len(slots) and (chosen := meeting_walks(arms)):
                yield self._understanding(chosen, max_walks), True
        for slot, around in starts:
            if arm := self._arm(question, [slot], slots, slot, max_hops, around):
                for walk in range(len(arm.ends)):
                    if arm.alike(walk)[0] == walk:
                        yield self._understanding(Choice([arm], [walk]), max_walks), walk == 0

    def _around(self, slot: QuestionEntity) -> Surroundings:
        """Return where walks from an entity of a question lead."""
        graph = self.index.graph
        starts = [graph.entities.find(key) for key in slot.entities[: slot.best]]
        return Surroundings(graph.adjacency, starts, self.steps)

    def _arm(
        self,
        question: str,
        slots: Sequence[QuestionEntity],
        every: Sequence[QuestionEntity],
        topic: QuestionEntity,
        max_hops: int,
        around: Surroundings,
    ) -> Arm | None:
        """Rank the walks from an entity. None if it has no facts."""
        steps, masked = self.steps, masked_text(question, slots, topic)
        encoded = self._scorer.encode(masked)
        found, nothing = rank_walks(self._scorer, encoded, steps.states, around, max_hops=max_hops)
        found = found[:WALKS_COMPARED]
        walks = [walk.labels for walk in found]
        if not walks:
            return None
        text = masked_text(question, slots)
        kind = type_nouns(self.index).asked(text)
        of_type = None if kind is None else self._of_type(kind)
        meaning = self._encoder.vectors([read_phrase(masked_text(question, every, topic))])[0]
        words = question_words(token_table(), text)
        asked = Asked(words, asked_kind(text), kind, asked_end(masked), meaning, asked_again(text))
        covered = coverage(words, walks, steps)
        logs = [walk.log_probability for walk in found]
        features = walk_features(asked, walks, logs, covered, steps, self._meanings)
        scores = features @ self._scorer.walk_weights
        excluded = excludes_named(question, [slot.name for slot in slots])
        order, ends = list[int](), list[Array]()
        ranked = np.argsort(-scores, kind="stable").tolist()
        for position in ranked:
            if len(ends) < WALKS_FOLLOWED:
                labels = walks[position]
                revisits = decide(None, excluded=excluded, turning=self._turning(labels))
                reached = around.ends(labels, revisits=revisits.allowed)
                if not len(reached):
                    continue
                if of_type is not None and (inside := np.isin(reached, of_type[0])).any():
                    reached = reached[inside | np.isin(reached, of_type[1])]
                ends.append(reached)
            order.append(position)
        if not ends:
            return None
        walks = [walks[position] for position in order]
        direction = 0.0
        if steps.alike[relation_of(first := walks[0][0])]:
            direction = compare_directions(self._scorer, encoded, steps.states, around, first)
        placed, own = covered.words[order], around.onward(())
        lacked = best_lacked(self._scorer, encoded, asked, steps, own, placed[0], self._meanings)
        features, scores, by_ends = features[order], scores[order], covered.ends[order]
        claims = not ASKING.search(question) and topic.start == min(slot.start for slot in every)
        count = 1 if claims else len(every)  # a claim names what it says of its first entity
        return Arm(topic, asked, walks, features, scores, placed, by_ends, ends, nothing, direction, lacked, count)

    def _turning(self, labels: Sequence[int]) -> bool:
        """Return whether a walk turns round, so that it may lead back to its start."""
        return turns([bool(is_backward(label)) for label in labels]) or self.steps.turns_back(labels)

    def _undoes(self, labels: Sequence[int]) -> bool:
        """Return whether a walk turns back by a stored inverse, so that its pattern does not show that it does."""
        return self.steps.turns_back(labels) and not turns([bool(is_backward(label)) for label in labels])

    def _understanding(self, choice: Choice, max_walks: int) -> Understanding:
        first = choice.arms[0]
        words = first.asked.words
        logit = choice.features() @ self._scorer.confidence_weights + self.trust
        confidence = float(1 / (1 + np.exp(-logit)))
        covered, nearest = choice.placed, self._nearest(choice.arms)
        kind, measures = KINDS[self.steps.kinds[first.walks[choice.walks[0]][-1]]], choice.least("measure")
        if kind and first.asked.kind == "":
            confidence *= VALUE_FOR_THING
        elif kind and not (covered >= COVERED).any() and measures <= 0 and (first.asked.kind != kind or measures < 0):
            confidence *= OTHER_VALUE
        if len(choice.arms) == 1 and len(first.walks[choice.walks[0]]) == 1 and choice.least("said") < 0:
            confidence *= OTHER_END
        lacked, lacking = None, tuple[str, ...]()
        is_named = len(choice.arms) == 1 and first.is_named_lacked and any(word.telling for word in words)
        if first.lacked and is_named:
            covered, lacked = first.lacked.words, first.lacked.label
            lacking = (self._lacking(first, lacked),)
            nearest = tuple(dict.fromkeys([self._relation(lacked), *nearest]))[:NEAREST]
        compared = zip(words_to_cover(words), covered.tolist(), strict=False)  # without words, one cosine of 0
        unplaced = [word.text for word, cosine in compared if cosine < COVERED]
        probabilities = softmax(first.scores).tolist()
        ranked = [RankedWalk(first.slot, walk, share) for walk, share in zip(first.walks, probabilities, strict=True)]
        taken = [RankedWalk(arm.slot, arm.walks[walk], arm.share(walk)) for arm, walk in choice.pairs]
        return Understanding(
            arms=tuple(taken),
            walks=tuple(ranked[:max_walks]),
            ends=choice.ends,
            confidence=confidence,
            unplaced=tuple(dict.fromkeys(unplaced)),
            nearest=nearest,
            lacked=lacked,
            lacking=lacking,
        )

    def _nearest(self, arms: Sequence[Arm]) -> tuple[str, ...]:
        """Return the relations of the likeliest walks."""
        labels = (label for arm in arms for walk in arm.walks for label in walk)
        return tuple(dict.fromkeys(map(self._relation, labels)))[:NEAREST]

    def _relation(self, label: int) -> str:
        return self.index.graph.relations[relation_of(label)]

    def _lacking(self, arm: Arm, label: int) -> str:
        """Return a clause that says which step an entity lacks, and which of its own is the likeliest."""
        relation, name = readable(self._relation(label)), arm.slot.name
        lacking = (
            f"no {relation!r} leads to {name!r:.200}" if is_backward(label) else f"{name!r:.200} has no {relation!r}"
        )
        has = next((walk[0] for walk in arm.walks if not is_backward(walk[0])), None)
        own = "" if has is None else f"; it has {readable(self._relation(has))!r}"
        where = "among the facts that were fetched" if self.index.truncated else "in this graph"
        return f"{lacking} {where}{own}"

    def _pattern(self, understood: Understanding, kind: str | None) -> Pattern:
        """Return the walks as a pattern that ends in one unknown, of a type if one is asked for."""
        triples: list[tuple[Term, Term, Term]] = []
        between = sum(len(arm.labels) - 1 for arm in understood.arms)
        target = met = Unknown(f"entity {between + 1}", kind)
        if understood.onward is not None:
            met, target = Unknown(target.name), Unknown(f"entity {between + 2}", kind)
        middle = (Unknown(f"entity {number}") for number in range(1, between + 1))
        for arm in understood.arms:
            nodes: list[Term] = [node_of(arm.slot), *(next(middle) for _ in arm.labels[1:]), met]
            triples += [self._triple(*ends, label) for ends, label in zip(pairwise(nodes), arm.labels, strict=True)]
        if understood.onward is not None:
            triples.append(self._triple(met, target, understood.onward))
        return Pattern.of(
            *triples,
            target=target.name,
            directed=True,
            revisits=False if any(self._undoes(arm.labels) for arm in understood.arms) else None,
            typed=True if kind else None,
            source="zero-shot",
            confidence=understood.confidence,
            unplaced=understood.unplaced,
            nearest=understood.nearest,
            lacking=understood.lacking,
            truncated=self.index.truncated,
        )

    def _claim(self, question: str, slots: Sequence[QuestionEntity]) -> Pattern | None:
        """Return the fact that joins two entities by the relation that the words name best, if one does.

        A claim asks for no answer, so that nothing is said of how likely one is right.
        """
        first, second = slots
        around, there = (self._around(slot) for slot in slots)
        arm = self._arm(question, slots, slots, first, 1, around)
        walks = [] if arm is None else arm.walks
        walks = [walk for walk in walks if np.isin(around.ends(walk, revisits=True), there.starts).any()]
        if not walks:
            return None
        label, back = walks[0][0], int(reversed_label(walks[0][0]))
        if (back,) in walks and self.direction(question, slots, first, label) < 0:
            label = back
        fact = self._triple(node_of(first), node_of(second), label)
        return Pattern.of(fact, directed=True, source="zero-shot", truncated=self.index.truncated)

    def direction(self, question: str, slots: Sequence[QuestionEntity], first: QuestionEntity, label: int) -> float:
        """Return how much more a claim says a step from one of its two entities than the opposite step, as a logit.

        Args:
            question: The claim.
            slots: Its two entities.
            first: The one from which the step leads to the other.
            label: The adjacency label of the step.
        """
        masked = {slot: masked_text(question, slots, slot) for slot in slots}
        claim, relation = claimed(masked[first]), relation_says(self.steps.names[relation_of(label)])
        forward = agrees(claim, relation) if claim and relation else None
        if forward is not None:
            return SAID if forward != is_backward(label) else -SAID
        logit = 0.0
        for slot, text in masked.items():
            step = label if slot is first else int(reversed_label(label))
            both = [step, int(reversed_label(step))]
            meaning, encoded = self._encoder.vectors([read_phrase(text)])[0], self._scorer.encode(text)
            cosines = (self._meanings.joined([(one,) for one in both]) @ meaning).astype(np.float64)
            states, start = self.steps.states.take(np.array(both)), self._scorer.begin(encoded)
            said, opposite = self._scorer.decide(encoded, start, 0, states).steps[0]
            logit += MEANING_OF_DIRECTION * float(cosines[0] - cosines[1]) + float(said - opposite)
        return logit

    def _triple(self, here: Term, there: Term, label: int) -> tuple[Term, Term, Term]:
        relation = Known(self.index.graph.relations[relation_of(label)])
        return (there, relation, here) if is_backward(label) else (here, relation, there)
