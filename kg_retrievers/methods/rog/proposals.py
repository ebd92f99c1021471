"""Question -> relation paths: by examples, by a language model, and by the first that is sure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.algorithms.path_mining import WALKS_TRIED
from kg_retrievers.algorithms.relation_paths import follow_relation_path, path_turns
from kg_retrievers.core.prompts import check_model
from kg_retrievers.core.stages import Body, Call, GeneratorRunnable
from kg_retrievers.core.structured_replies import guarded
from kg_retrievers.datasets import Question, check_questions
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, RelationPathParseError
from kg_retrievers.graph.adjacency import is_backward, relation_of, translated_label
from kg_retrievers.graph.verbalize import as_data
from kg_retrievers.index import (
    MASK,
    GraphIndex,
    QuestionEntity,
    check_same_embeddings,
    embed,
    linker_of,
    question_entities,
)
from kg_retrievers.index.graph_search import SIMILARITY_DECIMALS
from kg_retrievers.index.linking import tell_unknown_answer
from kg_retrievers.methods.rog.mined_templates import Mined, MinedStep, mine_template, read_templates
from kg_retrievers.methods.rog.prompts import PATHS_PROMPT, REPAIR_PROMPT, parse_relation_paths
from kg_retrievers.questions.examples import confidence_at
from kg_retrievers.questions.reader import EXAMPLE_DISTANCE, QuestionReader
from kg_retrievers.questions.reading import SURE, Reading, walks_of

#: How many templates of the examples propose relation paths.
NEIGHBORS = 3

#: The least share of the best score with which a relation path of the examples is proposed. Chosen of .5 and .75, on
#: the questions of `benchmarks/all_methods.py`: it leaves out none of their answers, and 41 to 96 % of the tokens.
SCORE_SHARE = 0.5

#: The most relations that a language model chooses from.
RELATIONS_SHOWN = 40


class LLMRelationPaths(GeneratorRunnable[Mapping[str, Any], list[dict[str, Any]]]):
    """Asks a language model for relation paths, and once more where its reply is unreadable.

    The first path scores 1, the second 1/2, the third 1/3, and so on. The model chooses from all relations of the
    entities of the question and those around them, each shown with a fact; of more than `RELATIONS_SHOWN`, those
    nearest to the question, of equally near ones the first of the graph. For a name that is no relation of the graph,
    beside one that is, the nearest relation is taken.

    Args:
        index: The indexed graph.
        llm: The language model; set its temperature to 0 for equal replies on every run.

    Raises:
        InvalidArgumentError: If `llm` is no language model.
        RelationPathParseError: From `invoke`, if the second reply is unreadable, too.
    """

    calls_model = True

    prompts: ClassVar[Mapping[str, BasePromptTemplate[Any]]] = {"relation_paths": PATHS_PROMPT, "repair": REPAIR_PROMPT}

    def __init__(self, index: GraphIndex, llm: BaseLanguageModel[Any]) -> None:
        """Check the model."""
        check_model(llm, "LLMRelationPaths")
        self.index, self.llm = index, llm

    def with_index(self, index: GraphIndex) -> Self:
        """Return the same over another graph."""
        moved = copy(self)
        moved.index = index
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[list[dict[str, Any]]]:
        """Ask, read, and if need be ask again with the reason."""
        graph, max_hops = self.index.graph, input["max_hops"]
        values = {name: input[name] for name in ("question", "beam_width", "max_hops")}
        labels = [as_data(graph.label(seed)) for seed in input["seed_entities"]]
        values["entities"] = "; ".join(labels)
        values["relations"] = "\n".join(self._relations(input))
        model = guarded(self.llm) | StrOutputParser()
        reply = yield Call(self.prompts["relation_paths"] | model, values)
        try:
            paths = parse_relation_paths(reply, graph.relations, max_hops, labels)
        except RelationPathParseError as error:
            values |= {"reply": error.reply, "error": error.reason}
            reply = yield Call(self.prompts["repair"] | model, values)
            paths = parse_relation_paths(reply, graph.relations, max_hops, labels)
        return self._rows(paths, input["beam_width"])

    def _relations(self, input: Mapping[str, Any]) -> list[str]:
        """Return a line for each relation around the entities, that nearest to the question first."""
        graph, adjacency = self.index.graph, self.index.graph.adjacency
        seeds = [graph.entities.find(seed) for seed in input["seed_entities"]]
        own = [adjacency.row_triples(seed) for seed in seeds]
        around = neighborhood(adjacency, seeds, max_hops=input["max_hops"], max_nodes=input["max_nodes"])
        triples = np.concatenate([*own, around.triples])  # of an entity with many facts, max_nodes may leave out some
        relations, first = np.unique(graph.edges[triples][:, 1], return_index=True)
        cosines = self.index.relation_vectors[relations] @ self.index.embed([input["masked_question"]])[0]
        lines = []
        for position in np.argsort(-cosines.round(SIMILARITY_DECIMALS), kind="stable")[:RELATIONS_SHOWN].tolist():
            head, relation, tail = graph.triple(int(triples[first[position]]))
            lines.append(as_data(f"{relation}: {graph.label(head)} -> {relation} -> {graph.label(tail)}"))
        return lines

    def _rows(self, paths: Sequence[Sequence[tuple[str, str]]], beam_width: int) -> list[dict[str, Any]]:
        """Take the nearest relation where a name is none of the graph; of equal paths the first counts."""
        relations = self.index.graph.relations
        strange = list(dict.fromkeys(name for path in paths for name, _ in path if name not in relations))
        nearest = self.index.nearest_relations(strange, 1)
        taken = {name: relations[int(found.ids[0])] for name, found in zip(strange, nearest, strict=True)}
        distinct: dict[str, dict[str, Any]] = {}
        for path in paths:
            row: dict[str, Any] = {"relations": [[taken.get(name, name), direction] for name, direction in path]}
            if matched := {name: taken[name] for name, _ in path if name in taken}:
                row["matched"] = matched
            distinct.setdefault(str(row["relations"]), row)
        rows = list(distinct.values())[:beam_width]
        return [{**row, "score": 1 / rank, "from": "llm"} for rank, row in enumerate(rows, 1)]


class ExampleRelationPaths(Runnable[Mapping[str, Any], list[dict[str, Any]]]):
    """Takes the relation paths that answer the labelled questions nearest to a question, without a language model.

    Questions that differ only in their entities are one template; the masked questions are compared with the index's
    own embeddings. For each of the `neighbors` templates nearest to a question, the relation paths that lead from the
    entities of its first questions to their answers are mined once. Where these name several entities, and walks from
    each of them have ends in common that fit as well as those of any single relation path, these walks are proposed
    together, each with the "entity" that it starts from. Whether walks may return to where they start is learned for
    each relation path ("revisits").

    The score of one is its F1, the mean over those questions of how well its ends are the answers, times closeness,
    1 / (1 + distance of the masked questions): in (0, 1]. Its confidence is that F1 times `confidence_at` of the
    distance. Those that cannot be followed from any entity of the question are passed over, and so are those that score
    less than `SCORE_SHARE` of the best of the others. Not only shortest paths are tried: for one in eight questions of
    three hops of MetaQA, the shortest path to an answer is none that was asked for.

    Args:
        index: The indexed graph.
        examples: Questions with answers; their entities are linked where they are not given.
        neighbors: How many templates propose relation paths.

    Raises:
        InvalidArgumentError: If `examples` is no list of questions, or none has an entity and an answer in the graph;
            if `neighbors` is no integer of 1 or more.
    """

    calls_model = False

    def __init__(
        self,
        index: GraphIndex,
        examples: Sequence[Question],
        *,
        neighbors: int = NEIGHBORS,
    ) -> None:
        """Mask the examples and embed them."""
        check_questions(examples, "ExampleRelationPaths")
        if not isinstance(neighbors, int) or isinstance(neighbors, bool) or neighbors < 1:
            raise InvalidArgumentError(
                f"ExampleRelationPaths: neighbors must be an integer, 1 or more, but got {neighbors!r:.100}."
            )
        self.index = self._taught = index
        self.neighbors = neighbors
        templates = read_templates(index, examples, linker_of(index))
        if not templates:
            raise InvalidArgumentError(
                f"ExampleRelationPaths: got {len(examples)} examples, but none with an entity and an answer of the "
                'graph. A row is {"question": ..., "seed_entities": [...], "answers": [...]}, with entity keys.'
                + tell_unknown_answer(index, examples)
            )
        self._questions = list(templates.values())
        self._vectors = embed(index.embeddings, list(templates), batch_size=1024)
        self._mined: dict[tuple[int, int], list[Mined]] = {}
        self._names = [masked.count(MASK) for masked in templates]

    def with_index(self, index: GraphIndex) -> Self:
        """Return the same over another graph; relation paths are still mined in the graph of the examples.

        Those with a relation that the other graph lacks are passed over.

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
        names = input["masked_question"].count(MASK)
        scores: dict[tuple[MinedStep, ...], float] = {}
        confidences: dict[tuple[MinedStep, ...], float] = {}
        for template in np.argsort(distances, kind="stable")[: self.neighbors].tolist():
            distance = float(distances[template])
            for paths, f1 in self._paths(template, input["max_hops"]):
                if len(paths) == 1 or self._names[template] == names:
                    scores[paths] = max(scores.get(paths, 0.0), f1 / (1 + distance))
                    confidences[paths] = max(confidences.get(paths, 0.0), min(f1 * confidence_at(distance), 1.0))
        seeds = [self.index.graph.entities.find(seed) for seed in input["seed_entities"]]
        order = sorted(scores, key=lambda paths: (-scores[paths], sum(len(path.labels) for path in paths), str(paths)))
        best = self._best(order, scores, seeds, input["beam_width"], False)
        best = best or self._best(order, scores, seeds, input["beam_width"], True)
        return [
            self._row(path) | {"score": scores[paths], "confidence": confidences[paths]}
            for paths in best
            for path in paths
        ]

    def _best(
        self,
        order: Sequence[tuple[MinedStep, ...]],
        scores: Mapping[tuple[MinedStep, ...], float],
        seeds: Sequence[int],
        beam_width: int,
        may_return: bool,
    ) -> list[tuple[MinedStep, ...]]:
        """Return the best that can be followed: a conjunction alone, or single relation paths."""
        best: list[tuple[MinedStep, ...]] = []
        taken: set[tuple[int, ...]] = set()
        for paths in order:
            if len(best) == beam_width or (best and scores[paths] < SCORE_SHARE * scores[best[0]]):
                break
            if best and (len(paths) > 1 or paths[0].labels in taken):
                continue
            if all(self._leads_somewhere(path, seeds, may_return) for path in paths):
                best.append(paths)
                taken.add(paths[0].labels)
                if len(paths) > 1:
                    break
        return best

    def _leads_somewhere(self, path: MinedStep, seeds: Sequence[int], may_return: bool) -> bool:
        """Tell whether a relation path can be followed from any of the entities."""
        steps = [[label] for label in path.labels]
        allowed = not path_turns(steps) if path.revisits is None else path.revisits
        may = allowed or may_return
        for seed in seeds:
            walks = follow_relation_path(
                self.index.graph.adjacency, seed, steps, max_walks=WALKS_TRIED, may_return=may, may_repeat=may
            )
            if len(walks.ends) or walks.truncated:
                return True
        return False

    def _row(self, path: MinedStep) -> dict[str, Any]:
        relations = self.index.graph.relations
        steps = [
            [relations[relation_of(label)], "backward" if is_backward(label) else "forward"] for label in path.labels
        ]
        told = {"revisits": path.revisits, "entity": path.entity}
        return {"relations": steps, "from": "examples"} | {
            name: value for name, value in told.items() if value is not None
        }

    def _paths(self, template: int, max_hops: int) -> list[Mined]:
        """Return the relation paths of a template with their F1, best first."""
        if (template, max_hops) not in self._mined:
            mined = mine_template(self._taught, self._questions[template], max_hops=max_hops)
            self._mined[template, max_hops] = mined
        mined = self._mined[template, max_hops]
        return mined if self.index is self._taught else list(self._translated(mined))

    def _translated(self, mined: Sequence[Mined]) -> Iterator[Mined]:
        """Yield the relation paths of the examples' graph whose relations are all in this one."""
        there, here = self._taught.graph.relations, self.index.graph.relations
        for one in mined:
            paths = [
                path._replace(labels=tuple(translated_label(label, there, here) for label in path.labels))
                for path in one.paths
            ]
            if all(label >= 0 for path in paths for label in path.labels):
                yield one._replace(paths=tuple(paths))


#: The least score of a relation path.
MIN_SCORE = 1e-6

Rows = list[dict[str, Any]]


class RelationPathProposer(GeneratorRunnable[Mapping[str, Any], Rows]):
    """Proposes relation paths, in the order of `QuestionReader`.

    Those of examples are taken if they are as likely right as an example at `EXAMPLE_DISTANCE`. If not, the walks of
    the question's reading are, unless the former are likelier. If the confidence is below `SURE`, or words of the
    question are left over, the language model is asked, if there is one.

    Args:
        index: The indexed graph.
        llm: The language model, if there is one.
        examples: Questions with answers, if there are some.
        neighbors: How many templates of the examples propose relation paths.

    Raises:
        InvalidArgumentError: If `llm` is no language model, or no example has an entity and an answer in the graph.
        RelationPathParseError: From `invoke`, if the language model's second reply is unreadable, too.
    """

    def __init__(
        self,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
        neighbors: int = NEIGHBORS,
    ) -> None:
        """Make the three."""
        self.examples: ExampleRelationPaths | None = None
        if examples is not None:
            self.examples = ExampleRelationPaths(index, examples, neighbors=neighbors)
        self.reader = QuestionReader(index)
        self.model = None if llm is None else LLMRelationPaths(index, llm)
        self.calls_model = llm is not None
        self.prompts = self.model.prompts if self.model else {}

    def with_index(self, index: GraphIndex) -> Self:
        """Return the same over another graph, with the relation paths of the same examples."""
        moved = copy(self)
        moved.examples = self.examples and self.examples.with_index(index)
        moved.reader = self.reader.with_index(index)
        moved.model = self.model and self.model.with_index(index)
        return moved

    def body(self, input: Mapping[str, Any]) -> Body[Rows]:
        """Return the relation paths for `{"question", "masked_question", "seed_entities", "beam_width", ...}`."""
        rows: Rows = []
        if self.examples:
            rows = yield Call(self.examples, input)
        if _confidence(rows) < confidence_at(EXAMPLE_DISTANCE):
            try:
                read: Rows = yield Call(self._read, input)
                rows = max(read, rows, key=_confidence)
            except EntityLinkingError:
                pass
            if self.model is not None and (_confidence(rows) < SURE or rows[0].get("unplaced")):
                rows = yield Call(self.model, input)
        return rows

    def _read(self, input: Mapping[str, Any]) -> Rows:
        """Return the walks of the reading as relation paths."""
        question, slots = input["question"], self._slots(input["question"], input["seed_entities"])
        reading: Reading = self.reader.invoke({
            "question": question, "entities": slots, "walks": input["beam_width"], "max_hops": input["max_hops"]
        })  # fmt: skip
        order = [slot.name for slot in sorted(slots, key=lambda slot: slot.start)]
        rows: Rows = []
        for pattern in (reading.pattern, *reading.alternatives):
            score = min(max(pattern.confidence or 0.0, MIN_SCORE), 1.0)
            for start, steps in walks_of(pattern) or ():
                relations = [[relation, "backward" if backward else "forward"] for relation, backward in steps]
                row = {"relations": relations, "score": score, "from": "zero-shot"}
                rows.append(row | ({"entity": order.index(start.text)} if len(slots) > 1 else {}))
        best = reading.pattern
        rows[0] |= {"confidence": best.confidence}
        rows[0] |= {name: list(getattr(best, name)) for name in ("unplaced", "nearest", "lacking")}
        return rows

    def _slots(self, question: str, seeds: Sequence[str]) -> list[QuestionEntity]:
        """Return the entities as the question names them, unless others are given."""
        linker = self.reader.linker
        try:
            found = question_entities(linker, question)
        except EntityLinkingError:
            found = []
        keys = dict.fromkeys(key for entity in found for key in entity.entities[: entity.best])
        return found if list(keys) == list(seeds) else question_entities(linker, question, seeds)


def _confidence(rows: Rows) -> float:
    """Return how sure the best relation path is; 0 if there is none."""
    return rows[0].get("confidence", 0.0) if rows else 0.0
