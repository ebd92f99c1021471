"""Propose relation paths for a question, by examples or by the question's reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.algorithms.path_mining import WALKS_TRIED, LabelledQuestion, MinedPath, mine_relation_paths
from kg_retrievers.algorithms.relation_paths import follow_relation_path, path_turns
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.datasets import Question, check_questions
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, LowConfidenceError, RefusalError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import is_backward, relation_of, translated_label
from kg_retrievers.index import (
    EntityLinker,
    GraphIndex,
    PartRequest,
    QuestionEntity,
    check_same_embeddings,
    embed,
    link_question,
    linker_of,
    question_entities,
)
from kg_retrievers.index.graph_index import LEARNED_FACTS
from kg_retrievers.index.question_keys import tell_unmatched
from kg_retrievers.questions.examples import confidence_at
from kg_retrievers.questions.reader import EXAMPLE_DISTANCE, QuestionReader
from kg_retrievers.questions.reading import Reading, walks_of

#: The number of questions of a template from which its relation paths are mined.
EXAMPLES_MINED = 10


class MinedQuestion(NamedTuple):
    """A labelled question, by keys.

    Attributes:
        entities: The entities that it names.
        answers: Its answers that the graph holds, at least one.
        size: How many answers it has in all.
    """

    entities: tuple[str, ...]
    answers: tuple[str, ...]
    size: int


def read_templates(
    index: GraphIndex, examples: Sequence[Question], linker: EntityLinker
) -> dict[str, list[MinedQuestion]]:
    """Return the first `EXAMPLES_MINED` examples of each template, a question without its entities.

    Examples that name no entity, or have no answer of the graph, are left out.
    """
    templates: dict[str, list[MinedQuestion]] = {}
    for part, some in index.parts(examples, _named):
        keys = part.graph.entities
        for example in some:
            answers = tuple(answer for answer in example.answers if answer in keys)
            with suppress(EntityLinkingError):
                given = [seed for seed in example.seed_entities if seed in keys]
                entities, masked = link_question(linker, example.text, given)
                if answers and len(templates.get(masked, ())) < EXAMPLES_MINED:
                    question = MinedQuestion(tuple(entities), answers, len(example.answers))
                    templates.setdefault(masked, []).append(question)
    return templates


def _named(examples: Sequence[Question]) -> PartRequest:
    """Return the entities that examples give, and their answers."""
    return PartRequest(
        tuple(sorted({key for example in examples for key in (*example.seed_entities, *example.answers)}))
    )


def mine_template(index: GraphIndex, questions: Sequence[MinedQuestion], *, max_hops: int) -> list[MinedPath]:
    """Return the relation paths that answer the questions of a template, best first.

    Over a connected graph there are none if more than `LEARNED_FACTS` facts are around each of the questions.
    """
    mined = [
        mine_relation_paths(part.graph.adjacency, [_by_ids(part.graph, one) for one in some], max_hops=max_hops)
        for part, some in index.parts(questions, lambda some: _around(some, max_hops))
        if not part.truncated
    ]
    return max(mined, key=lambda paths: paths[0].f1 if paths else 0.0, default=[])


def _around(questions: Sequence[MinedQuestion], max_hops: int) -> PartRequest:
    """Return the part of the graph that walks from the entities of questions may cross."""
    keys = {key for one in questions for key in one.entities}
    answers = {key for one in questions for key in one.answers}
    return PartRequest(tuple(sorted(keys)), max_hops, also=tuple(sorted(answers)), max_facts=LEARNED_FACTS)


def _by_ids(graph: KnowledgeGraph, question: MinedQuestion) -> LabelledQuestion:
    find = graph.entities.find
    return LabelledQuestion([*map(find, question.entities)], [*map(find, question.answers)], question.size)


#: How many templates of the examples propose relation paths.
NEIGHBORS = 3

#: The least share of the best score with which a relation path of the examples is proposed. Chosen of .5 and .75, on
#: the questions of `benchmarks/all_methods.py`: it leaves out none of their answers, and 41 to 96 % of the tokens.
SCORE_SHARE = 0.5


class ExampleRelationPaths(Runnable[Mapping[str, Any], list[dict[str, Any]]]):
    """Propose the relation paths that answer the nearest labelled questions, without a language model.

    Questions that differ only in their entities are one template. The index's own embeddings compare the masked
    questions. For each of the `NEIGHBORS` templates nearest to a question, the relation paths that lead from the
    entities of its first questions to their answers are mined once. For each relation path it is learned whether walks
    may return to their start ("revisits").

    The score of a relation path is its F1 times closeness, in (0, 1]. The F1 compares its ends with the answers, as a
    mean over these questions. Closeness is 1 / (1 + distance of the masked questions). Its confidence is that F1 times
    `confidence_at` of the distance. Relation paths that cannot be followed from any entity of the question are passed
    over. So are relation paths that score less than `SCORE_SHARE` of the best of the others. Not only shortest paths
    are tried: for one in eight three-hop questions of MetaQA, the shortest path to an answer is not the path that was
    asked for.

    Args:
        index: The indexed graph.
        examples: Questions with answers. Their entities are linked if they are not given.

    Raises:
        InvalidArgumentError: If `examples` is no list of questions, or none has an entity and an answer in the graph.
    """

    calls_model = False

    def __init__(self, index: GraphIndex, examples: Sequence[Question]) -> None:
        """Mask the examples and embed them."""
        check_questions(examples, "ExampleRelationPaths")
        self.index = self._taught = index
        templates = read_templates(index, examples, linker_of(index))
        if not templates:
            raise InvalidArgumentError(
                f"ExampleRelationPaths: got {len(examples)} examples, but none with an entity and an answer of the "
                'graph. A row is {"question": ..., "seed_entities": [...], "answers": [...]}.'
                + tell_unmatched(index, examples)
            )
        self._questions = list(templates.values())
        self._vectors = embed(index.embeddings, list(templates), batch_size=1024)
        self._mined: dict[tuple[int, int], list[MinedPath]] = {}

    def with_index(self, index: GraphIndex) -> Self:
        """Return the same proposer over another graph.

        Relation paths are still mined in the graph of the examples. Those with a relation that the other graph lacks
        are passed over.

        Raises:
            ModelMismatchError: If it was indexed with other embeddings than the examples.
        """
        check_same_embeddings(type(self).__name__, self.index, index)
        moved = copy(self)
        moved.index = index
        return moved

    def invoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the relation paths for `{"masked_question", "seed_entities", "beam_width", "max_hops"}`."""
        return self._call_with_config(self._propose, input, config)

    def _propose(self, input: Mapping[str, Any]) -> list[dict[str, Any]]:
        distances = np.linalg.norm(self._vectors - self.index.embed([input["masked_question"]]), axis=1)
        scores: dict[MinedPath, tuple[float, float]] = {}  # each with its confidence, by the path without its F1
        for template in np.argsort(distances, kind="stable")[:NEIGHBORS].tolist():
            distance = float(distances[template])
            for path in self._paths(template, input["max_hops"]):
                bare = path._replace(f1=0.0)
                score, confidence = scores.get(bare, (0.0, 0.0))
                likely = min(path.f1 * confidence_at(distance), 1.0)
                scores[bare] = max(score, path.f1 / (1 + distance)), max(confidence, likely)
        order = sorted(scores, key=lambda path: (-scores[path][0], len(path.labels), str(path)))
        seeds = [self.index.graph.entities.find(seed) for seed in input["seed_entities"]]
        for may_return in (False, True):
            best: dict[tuple[int, ...], MinedPath] = {}
            for path in order:
                first = next(iter(best.values()), path)
                if len(best) == input["beam_width"] or scores[path][0] < SCORE_SHARE * scores[first][0]:
                    break
                if path.labels not in best and self._leads_somewhere(path, seeds, may_return):
                    best[path.labels] = path
            if best:
                return [self._row(path, *scores[path]) for path in best.values()]
        return []

    def _leads_somewhere(self, path: MinedPath, seeds: Sequence[int], may_return: bool) -> bool:
        """Tell whether a relation path can be followed from any of the entities."""
        steps = [[label] for label in path.labels]
        may = may_return or (not path_turns(steps) if path.revisits is None else path.revisits)
        walked = (
            follow_relation_path(
                self.index.graph.adjacency, seed, steps, max_walks=WALKS_TRIED, may_return=may, may_repeat=may
            )
            for seed in seeds
        )
        return any(len(walks.ends) or walks.truncated for walks in walked)

    def _row(self, path: MinedPath, score: float, confidence: float) -> dict[str, Any]:
        relations = self.index.graph.relations
        steps = [
            [relations[relation_of(label)], "backward" if is_backward(label) else "forward"] for label in path.labels
        ]
        row = {"relations": steps, "from": "examples", "score": score, "confidence": confidence}
        return row if path.revisits is None else row | {"revisits": path.revisits}

    def _paths(self, template: int, max_hops: int) -> list[MinedPath]:
        """Return a template's relation paths whose relations are all in this graph, with their F1, best first."""
        if (template, max_hops) not in self._mined:
            mined = mine_template(self._taught, self._questions[template], max_hops=max_hops)
            self._mined[template, max_hops] = mined
        mined = self._mined[template, max_hops]
        if self.index is self._taught:
            return mined
        there, here = self._taught.graph.relations, self.index.graph.relations
        moved = [
            one._replace(labels=tuple(translated_label(label, there, here) for label in one.labels)) for one in mined
        ]
        return [one for one in moved if min(one.labels) >= 0]


#: The least score of a relation path.
MIN_SCORE = 1e-6

Rows = list[dict[str, Any]]


class RelationPathProposer(GeneratorRunnable[Mapping[str, Any], Rows]):
    """Propose relation paths, in the order of `QuestionReader`.

    It takes the relation paths of examples if they are as likely right as an example at `EXAMPLE_DISTANCE`. If not, it
    takes the walks of the question's reading, unless the examples' relation paths are likelier. The reader asks the
    language model, if there is one and it is not sure itself.

    Args:
        index: The indexed graph.
        llm: The language model, if there is one.
        examples: Questions with answers, if there are some.
        **reader: Further arguments of `QuestionReader`.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or no example has an entity and an answer in the graph.
        LowConfidenceError: From `invoke`, if the question is read as more than relation paths, or as `QuestionReader`.
    """

    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
        **reader: Any,
    ) -> None:
        """Make both."""
        self.examples = None if examples is None else ExampleRelationPaths(index, examples)
        self.reader = QuestionReader(index, llm=llm, **reader)
        self.calls_model, self.prompts = self.reader.calls_model, self.reader.prompts

    def with_index(self, index: GraphIndex) -> Self:
        """Return the same over another graph, with the relation paths of the same examples."""
        moved = copy(self)
        moved.examples = self.examples and self.examples.with_index(index)
        moved.reader = self.reader.with_index(index)
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Rows]:
        """Return the relation paths for `{"question", "masked_question", "seed_entities", "beam_width", ...}`."""
        rows: Rows = []
        if self.examples:
            rows = yield Call(self.examples, input)
        if _confidence(rows) >= confidence_at(EXAMPLE_DISTANCE):
            return rows
        try:
            slots: list[QuestionEntity] = yield Call(self._slots, input)
            reading: Reading = yield Call(self.reader, {
                "question": input["question"], "seed_entities": input["seed_entities"], "entities": slots,
                "walks": input["beam_width"], "max_hops": input["max_hops"],
            })  # fmt: skip
            read = _rows(reading, slots)[: input["beam_width"]]
        except RefusalError:
            if not rows:
                raise
            return rows
        return max(read, rows, key=_confidence)

    def _slots(self, input: Mapping[str, Any]) -> list[QuestionEntity]:
        return as_named(self.reader.linker, input["question"], input["seed_entities"])


def _rows(reading: Reading, slots: Sequence[QuestionEntity]) -> Rows:
    """Return the walks of a reading as relation paths, the likeliest first.

    Raises:
        LowConfidenceError: If the reading is more than walks.
    """
    order = [slot.name for slot in sorted(slots, key=lambda slot: slot.start)]
    best, rows = reading.pattern, list[dict[str, Any]]()
    is_meant = best.source in ("chosen", "llm")  # by a language model, which means no other
    for pattern in (best, *(() if is_meant else reading.alternatives)):
        score = min(max(pattern.confidence or 0.0, MIN_SCORE), best.confidence or 1.0)
        walks = walks_of(pattern) or []
        for start, steps in walks if len(walks) <= len(slots) else ():  # else one begins elsewhere
            relations = [[relation, "backward" if backward else "forward"] for relation, backward in steps]
            row = {"relations": relations, "score": score, "from": pattern.source}
            rows.append(row | ({"entity": order.index(start.text)} if len(slots) > 1 and start.text in order else {}))
        if not rows:
            raise LowConfidenceError(
                "RelationPathProposer: the question asks for more than relation paths lead to.",
                0.0,
                hint_python="Ask a retriever with operations = True, such as SimGRAGRetriever.",
                hint_shell="Ask with --method simgrag.",
            )
    rows[0] |= {"confidence": best.confidence}
    rows[0] |= {name: list(getattr(best, name)) for name in ("unplaced", "nearest", "lacking")}
    return rows


def as_named(linker: EntityLinker, question: str, seeds: Sequence[str]) -> list[QuestionEntity]:
    """Return the entities of a question as it names them, unless others are given."""
    with suppress(EntityLinkingError):
        found = question_entities(linker, question)
        if {key for entity in found for key in entity.entities[: entity.best]} == set(seeds):
            return found
    return question_entities(linker, question, seeds)


def _confidence(rows: Rows) -> float:
    """Return how sure the best relation path is, or 0 if there is none."""
    return rows[0].get("confidence", 0.0) if rows else 0.0
