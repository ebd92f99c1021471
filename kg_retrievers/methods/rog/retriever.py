"""RoG's retrieval: propose relation paths for the question and follow them through the graph.

L. Luo, Y.-F. Li, G. Haffari, S. Pan: Reasoning on Graphs: Faithful and Interpretable Large Language Model Reasoning.
ICLR 2024, arXiv:2310.01061.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, NotRequired

from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable
from pydantic import BeforeValidator, Field, with_config
from typing_extensions import TypedDict

from kg_retrievers.core.documents import DocumentStyle
from kg_retrievers.core.neighborhood_retriever import MAX_HOPS, BaseNeighborhoodRetriever, MaskedQuestionState
from kg_retrievers.core.path_evidence import path_evidence
from kg_retrievers.core.path_prompt import ANSWER_PROMPT
from kg_retrievers.core.prompts import AnswerPrompt
from kg_retrievers.core.replies import listed_answers
from kg_retrievers.core.retriever import MADE, Examples, LanguageModel
from kg_retrievers.core.stages import EXACT, MAX_K, Body, Call, Confidence, QuestionShape, Stage, Steps
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph.pattern import excludes_named
from kg_retrievers.index import GraphIndex, PartRequest, linker_of
from kg_retrievers.methods.rog.following import MAX_WALKS, follow_relation_paths
from kg_retrievers.methods.rog.proposals import RelationPathProposer, as_named
from kg_retrievers.questions.reader import ReaderFields, reader_arguments


def _pair(step: object) -> object:
    """Read a plain relation as one that is crossed either way."""
    return (step, "either") if isinstance(step, str) else step


#: A relation and how it is crossed.
Step = Annotated[tuple[str, Literal["forward", "backward", "either"]], BeforeValidator(_pair)]

#: A relation path: "relations", best first by "score" in (0, 1], "from", who proposed it, "revisits", whether walks may
#: return to their start, and "entity", the position of the only name of the question from which it is followed.
#: "confidence", "unplaced", "nearest" and "lacking" mean the same as in a `Pattern`.
RelationPath = TypedDict(
    "RelationPath",
    {
        "relations": list[Step],
        "score": NotRequired[Annotated[float, Field(gt=0, le=1, strict=True)]],
        "from": NotRequired[str],
        "revisits": NotRequired[bool],
        "entity": NotRequired[Annotated[int, Field(ge=0, strict=True)]],
        "confidence": NotRequired[Confidence],
        "unplaced": NotRequired[list[str]],
        "nearest": NotRequired[list[str]],
        "lacking": NotRequired[list[str]],
    },
)
with_config(EXACT)(RelationPath)


class RelationPathState(MaskedQuestionState, total=False):
    """The state of the stages."""

    #: `[{"relations": [[relation, "forward", "backward" or "either"], ...], "score": number, "from": who}, ...]`, best
    #: first.
    relation_paths: Annotated[
        list[RelationPath],
        Field(
            description='a list of {"relations": [[relation, "forward", "backward" or "either"], ...], "score": 0.5}'
        ),
    ]


#: Section 5.1: beams, and so relation paths, of one question.
BEAM_WIDTH = 3

#: Ours: Documents and paths of a question.
K, MAX_PATHS = 10, 1_000


class RelationPathRetriever(ReaderFields, BaseNeighborhoodRetriever):
    """Follow the relation paths proposed for a question from its entities to the answers.

    Labelled examples propose the relation paths if some are near. Otherwise the words of the question do, zero-shot, or
    a language model if neither is sure: see `RelationPathProposer`. Evidence is all walks from the question's entities
    along a relation path, and the answers are the ends of the walks. `kg_retrievers.graph.pattern` decides whether a
    walk may return to its start, or cross a triple twice: it may not if it has both a forward and a backward step.
    "widened" in the details says that nothing was found until walks were allowed to. If a question names several
    entities, the answers are the ends that all of them lead to, or all ends if there is no such end. "joined" in the
    details says "intersection" or "union". The score is the score of the relation path, in (0, 1]. "empty" lists the
    relation paths that lead nowhere.

    Differs from the paper: the language model is not tuned. It chooses among the walks that the question's words may
    mean, and writes one only if none is meant: see `QuestionReader`. Relations have directions, crossed either way if
    the proposal names none. All walks along a relation path are one Document (`granularity="subgraph"`). "path" gives
    each walk its own, as the paper's prompt does.

    Cost: at most six calls of a language model behind an API, mostly none or one. Following is linear in the walks, at
    most `MAX_WALKS` per hop. A template of the examples is mined when a question comes near.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, Question, default_embeddings
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "starring", "Amy Adams")]
        >>> facts += [("Adaptation", "directed_by", "Spike Jonze"), ("Adaptation", "starring", "Meryl Streep")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> examples = [Question("Who starred in Her?", answers=("Amy Adams",))]
        >>> retriever = RelationPathRetriever.from_index(index, examples=examples)
        >>> retriever.invoke("Who starred in Adaptation?")[0].page_content
        'Adaptation -> starring -> Meryl Streep'
    """

    state_class: ClassVar[type] = RelationPathState
    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"one entity"})

    #: From `{"question", "masked_question", "seed_entities", "beam_width", "max_hops", "max_nodes"}` to relation paths.
    proposer: Runnable[Any, list[dict[str, Any]]] = MADE
    #: Always from the entities of the question.
    scope: Literal["neighborhood"] = "neighborhood"
    #: The number of Documents. By default there are at most `beam_width`, or more if relations are crossed either way.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: The content of one Document: all paths of one relation path, one path, or one triple.
    granularity: Literal["subgraph", "path", "triple"] = "subgraph"
    #: How the facts of a Document are written.
    style: DocumentStyle = "paths"
    #: The most relation paths of a question.
    beam_width: int = Field(default=BEAM_WIDTH, ge=1, le=100)
    #: The most relations of a relation path.
    max_hops: int = Field(default=MAX_HOPS, ge=1)
    #: The most paths in all. The best relation paths fill it first. Entities lose surplus paths before any entity is
    #: dropped.
    max_paths: int = Field(default=MAX_PATHS, ge=1, le=MAX_WALKS)
    #: The prompt for answering, with the placeholders `question` and `evidence`.
    answer_prompt: AnswerPrompt = ANSWER_PROMPT
    #: Reads the answers from a reply to it.
    parse_answers: Callable[[str], list[str]] = listed_answers

    @classmethod
    def fields_made_from(
        cls, index: GraphIndex, llm: LanguageModel, examples: Examples, model: Any, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make the cascade of proposers of relation paths, unless another proposer is given.

        The language model proposes relation paths if neither examples nor the zero-shot generator are sure. Relation
        paths are learned from examples with answers.

        Raises:
            InvalidArgumentError: If a model is given, or `proposer` together with `llm` or `examples`.
        """
        super().fields_made_from(index, llm, examples, model, fields)
        if fields.get("proposer") is None:
            reader = reader_arguments(fields)
            return {"proposer": RelationPathProposer(index, llm=llm, examples=examples, **reader)}
        cls._check_made_once("proposer", llm, examples)
        return {}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Link the entities, propose relation paths, follow them."""
        calls_model = getattr(self.proposer, "calls_model", True)
        return (
            Stage("link_entities", self.link_and_mask, ("seed_entities", "masked_question")),
            Stage("propose_relation_paths", Steps(self._propose), ("relation_paths",), calls_model),
            Stage("follow_relation_paths", self._follow_relation_paths, ("answers", "documents")),
        )

    def _propose(self, state: RelationPathState) -> Body[dict[str, Any]]:
        asked = yield Call(self._ask, state)
        rows = yield Call(self.proposer, asked)
        proposed: dict[str, Any] = yield Call(self._proposed, rows)
        return proposed

    def part_request(self, entities: tuple[str, ...]) -> PartRequest:
        """As in the base: the part of the graph that walks from the entities may cross."""
        return PartRequest(entities, self.max_hops)

    @property
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        """The prompts of the proposer, if it has some, and the one for answering."""
        return {**getattr(self.proposer, "prompts", {}), "answer": self.answer_prompt}

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """As in the base. Relation paths must be distinct and of relations of the graph.

        Each is an object with "relations", `[[relation, "forward", "backward" or "either"], ...]` or plain relations,
        which are crossed either way. It may have a "score" in (0, 1], by default 1 divided by its rank. A caller who
        gives a relation path is sure of it: its confidence is None.
        """
        checked = super().check_inputs(inputs)
        if (paths := checked.get("relation_paths")) is None:
            return checked
        return checked | {"relation_paths": _without_confidence(self._checked_paths(paths))}

    def _checked_paths(self, paths: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        rows = [self._checked_path(path, rank) for rank, path in enumerate(paths, 1)]
        if len({(str(row["relations"]), row.get("entity")) for row in rows}) < len(rows):
            raise InvalidArgumentError(
                f"RelationPathRetriever: relation_paths must hold no relation path twice, but got {rows!r:.300}."
            )
        return sorted(rows, key=lambda row: -row["score"])

    def _checked_path(self, path: Mapping[str, Any], rank: int) -> dict[str, Any]:
        steps = [list(step) for step in path["relations"]]
        if not 1 <= len(steps) <= self.max_hops:
            raise InvalidArgumentError(
                f"RelationPathRetriever: a relation path has 1 to {self.max_hops} relations (max_hops), but got "
                f"{steps!r:.200}."
            )
        if strange := [relation for relation, _ in steps if relation not in self.graph.relations]:
            near = [self.graph.relations[id] for id in self.index.nearest_relations(strange[:1], 3)[0].ids]
            raise InvalidArgumentError(
                f"RelationPathRetriever: the graph has no relation {strange[0]!r}. Did you mean: {near}?"
            )
        return {"score": 1 / rank, "from": "given", **path} | {"relations": steps}

    def _ask(self, state: RelationPathState) -> dict[str, Any]:
        known = {name: state[name] for name in ("question", "masked_question", "seed_entities")}
        return known | {name: getattr(self, name) for name in ("beam_width", "max_hops", "max_nodes")}

    def _proposed(self, paths: object) -> dict[str, Any]:
        checked = super().check_inputs({"relation_paths": paths})
        return {"relation_paths": self._checked_paths(checked["relation_paths"])[: self.beam_width]}

    def _follow_relation_paths(self, state: RelationPathState) -> dict[str, Any]:
        if not state["seed_entities"]:
            raise EntityLinkingError("RelationPathRetriever: no entity is given from which to follow relation paths.")
        best: Mapping[str, Any] = next(iter(state["relation_paths"]), {})
        confidence = best.get("confidence")
        why = {name: best.get(name, ()) for name in ("unplaced", "nearest", "lacking")}
        self.check_confidence(state, confidence, **why, truncated=self.index.truncated)
        found = follow_relation_paths(
            self.graph,
            state["relation_paths"],
            self._named(state["question"], state["seed_entities"]),
            excluded=excludes_named(state["masked_question"]),
            max_paths=self.max_paths,
        )
        details = {
            "entities": [[self.graph.label(key), key] for key in state["seed_entities"]],
            "relation_paths": _without_confidence(state["relation_paths"]),
            "empty": found.empty,
            **found.details,
        }
        merge = self.granularity != "path"
        evidence = path_evidence(found.paths, merge=merge, truncated=found.truncated, details=details)
        evidence = [replace(one, confidence=confidence) if one.score == best["score"] else one for one in evidence]
        return self.results(state, evidence)

    def _named(self, question: str, seeds: Sequence[str]) -> list[list[int]]:
        """Return the ids of the entities that each name of a question may mean, in the order of its text."""
        entities = as_named(linker_of(self.index), question, seeds)
        entities.sort(key=lambda entity: entity.start)
        return [[self.graph.entities.find(key) for key in entity.entities[: entity.best]] for entity in entities]


def _without_confidence(paths: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in path.items() if name != "confidence"} for path in paths]
