"""UnionRetriever: asks its members and fuses what they find.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
section 4.5: GNN-RAG+RA is the union of the paths of two retrievers, GNN-RAG+Ensemble that of two networks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, NotRequired, Self

from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langgraph.errors import GraphBubbleUp
from pydantic import Field, StrictBool, ValidationInfo, field_validator, model_validator, with_config
from typing_extensions import TypedDict

from kg_retrievers.core.documents import top_answers
from kg_retrievers.core.refusals import Reason, read_reason, sort_reasons, summarize_reasons
from kg_retrievers.core.retriever import BaseKGRetriever, Examples, LanguageModel
from kg_retrievers.core.stages import (
    EXACT,
    MAX_K,
    Body,
    Call,
    Confidence,
    Number,
    QuestionShape,
    RetrievalState,
    Stage,
    Steps,
)
from kg_retrievers.errors import (
    BudgetError,
    InvalidArgumentError,
    KGRetrieversError,
    MissingExtraError,
    ModelMismatchError,
    NoEvidenceError,
    RefusalError,
)
from kg_retrievers.graph.types import Triple, read_paths
from kg_retrievers.graph.verbalize import LONE_ENTITIES
from kg_retrievers.index import GraphIndex, PartRequest
from kg_retrievers.methods.union.fusion import fuse, member_results

#: As many Documents as retrievers usually find together: the paper takes the whole union.
K = 1_000

#: The highest weight of a retriever.
MAX_WEIGHT = 1_000_000

# Errors of the set-up, and of a run that was stopped or interrupted; they are never skipped.
_NEVER_SKIPPED = (InvalidArgumentError, MissingExtraError, ModelMismatchError, BudgetError, GraphBubbleUp)


@with_config(EXACT)
class FoundEvidence(TypedDict):
    """Evidence that a member found: these keys of a Document's metadata. The others follow.

    Only what an operation gave, its `value`, and an entity alone, in the details, may have no triples.
    """

    triples: list[tuple[str, str, str]]
    score: Number
    answers: NotRequired[list[str]]
    truncated: NotRequired[StrictBool]
    confidence: NotRequired[Confidence | None]
    details: NotRequired[dict[str, Any]]
    value: NotRequired[Any]


class UnionState(RetrievalState, total=False):
    """The state of the stages."""

    #: What each retriever found, by its name (`UnionRetriever.members`), best first.
    found: Annotated[
        dict[str, list[FoundEvidence]],
        Field(description="{member: [{'triples': [[head, relation, tail], ...], 'score': number}, ...]}"),
    ]
    #: Why a retriever found nothing, by its name: only those that failed and were skipped.
    failed: Annotated[dict[str, str], Field(description="{member: message}")]
    #: Further arguments of `invoke` for some of the retrievers, by their names.
    member_inputs: Annotated[dict[str, dict[str, Any]], Field(description="{member: {argument: value}}")]


class UnionRetriever(BaseKGRetriever):
    """Asks several retrievers at the same time and fuses what they find.

    Documents of the same triples, in any order, become one. Its score is the sum of weight / (60 + rank) over the
    members that found it, in (0, sum of weights / 61]: reciprocal rank fusion. Equal scores of a member are equal
    ranks, the best of theirs, so that its top group stays one.

    Each member contributes only its best matching Document. At equal scores, Documents that propose answers come first,
    then the members' order decides. By rank and with equal weights, the best of each member are on a par, so that their
    answers are the top group together. A Document that adds neither a triple nor an answer to the better ones is left
    out. In `details`:

    - the details of the member that contributes most,
    - "paths": the paths of all of them (see `Evidence`), each once, if there are any,
    - "found_by": `{member: {"rank", "score", "confidence", "details"}}`, all that found these triples,
    - "parts_found_by": `[member, ...]`, those that found a part of them in a Document that was left out, if any,
    - "failed": `{member: message}`, if any failed.

    The confidence of a Document is the highest that a member states which found it: the others only add to it. Each
    member refuses what it is not sure of, by its own `min_confidence`, or by that of the union where one is given; the
    others go on.

    `invoke(question, member_inputs={member: {...}})` gives a member arguments of its own, such as a pattern.

    Where a member carries out an operation, its Documents alone count: what the others find are facts without it.

    `granularity="triple"` gives single triples, each scored by the best Document that holds it in each member.

    Differs from the paper: evidence of any kind is fused, and it is ranked; the paper shows a model all of it.

    Cost: that of its members, which run side by side: in threads, or in async together.

    Raises:
        InvalidArgumentError: If a member is on another graph, or like another in class and fields; or if there are
            not as many weights as members.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
        >>> from kg_retrievers import PCSTRetriever, SimGRAGRetriever
        >>> facts = [("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")]
        >>> index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
        >>> union = UnionRetriever.of(SimGRAGRetriever.from_index(index), PCSTRetriever.from_index(index))
        >>> for document in union.invoke("Who directed Her?"):
        ...     print([*document.metadata["details"]["found_by"]], document.metadata["answers"])
        ['SimGRAGRetriever'] ['Spike Jonze']
        ['PCSTRetriever'] []
    """

    state_class: ClassVar[type] = UnionState
    entity_inputs: ClassVar[frozenset[str]] = frozenset({"found"})

    #: The members, on one graph; each with its own fields, and perhaps itself a union.
    retrievers: tuple[BaseKGRetriever, ...] = Field(min_length=1)
    #: The number of Documents to return; fewer where the members find no more: `member_k` has them find more.
    k: int = Field(default=K, ge=1, le=MAX_K)
    #: How many Documents each member is asked for; None for its own `k`.
    member_k: int | None = Field(default=None, ge=1, le=MAX_K)
    #: What one Document holds: "subgraph" for what those of the members do, paths and single triples among them.
    granularity: Literal["subgraph", "triple"] = "subgraph"
    #: The weight of each member, in order; None for 1 each.
    weights: tuple[Annotated[float, Field(gt=0, le=MAX_WEIGHT, allow_inf_nan=False)], ...] | None = None
    #: What to do where a member fails: "skip" goes on without it, unless all fail or the error is one of the set-up or
    #: of a used-up budget, or LangGraph interrupts it. A member that refuses the question is skipped in any case; the
    #: union refuses it where all do.
    on_error: Literal["raise", "skip"] = "raise"

    @model_validator(mode="before")
    @classmethod
    def _take_from_first(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Take the first member's prompt for answering, its reader, and its way to write facts, unless given."""
        first = next(iter(fields.get("retrievers") or ()), None)
        if not isinstance(first, BaseKGRetriever):
            return fields
        return {name: getattr(first, name) for name in ("answer_prompt", "parse_answers", "style")} | fields

    @field_validator("index", "retrievers", "weights")
    @classmethod
    def _fits(cls, value: Any, info: ValidationInfo) -> Any:
        """Check that what depends on each other fits, whichever is changed."""
        fields: dict[str, Any] = {**info.data, str(info.field_name): value}  # without those that are no good
        index, retrievers, weights = fields.get("index"), fields.get("retrievers", ()), fields.get("weights")
        for position, retriever in enumerate(retrievers):
            if any(
                type(other) is type(retriever) and vars(other) == vars(retriever) for other in retrievers[:position]
            ):
                raise InvalidArgumentError(
                    f"the {type(retriever).__name__} is there twice, with equal fields, and finds nothing more. Leave "
                    "one out, give it other fields, or have it count more by `weights`"
                )
            if index is not None and not index.has_graph_of(retriever.index):
                raise InvalidArgumentError(
                    f"the {type(retriever).__name__} is on another graph than the index of the union. Build all on one"
                )
        if retrievers and weights is not None and len(weights) != len(retrievers):
            raise InvalidArgumentError(
                f"there are {len(weights)} weights for {len(retrievers)} retrievers. Give each its own"
            )
        return value

    @classmethod
    def of(cls, first: BaseKGRetriever, *others: BaseKGRetriever, **fields: Any) -> Self:
        """Build the union of some retrievers, with the index of the first.

        Raises:
            InvalidArgumentError: If one is no retriever, or a field is wrong.
        """
        for member in (first, *others):
            if not isinstance(member, BaseKGRetriever):
                raise InvalidArgumentError(
                    f"{cls.__name__}.of: wanted retrievers of this package, one by one, but got {member!r:.200}. "
                    f"For those in a list: {cls.__name__}.of(*retrievers)."
                )
        return cls(first.index, retrievers=(first, *others), **fields)

    @classmethod
    def fields_made_from(
        cls, index: GraphIndex, llm: LanguageModel, examples: Examples, model: Any, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Check that the retrievers are there, and nothing that is theirs.

        Raises:
            InvalidArgumentError: If there are no `retrievers`, or something is given that belongs to them.
        """
        if not fields.get("retrievers"):
            raise InvalidArgumentError(
                f"{cls.__name__}: got no retrievers to fuse.",
                hint_python=f"Build them first: {cls.__name__}(index=index, retrievers=[...]).",
                hint_shell="Join the names of methods: --method simgrag+g-retriever.",
            )
        given = {"llm": llm, "examples": examples, "model": model}
        if names := [name for name, value in given.items() if value is not None]:
            raise InvalidArgumentError(f"{cls.__name__}: got {names}, but its retrievers are built. Give it to them.")
        return {}

    @property
    def members(self) -> dict[str, BaseKGRetriever]:
        """The retrievers by name: that of the class, with -2, -3, ... behind it from its second one on."""
        named: dict[str, BaseKGRetriever] = {}
        names = [type(retriever).__name__ for retriever in self.retrievers]
        for position, (name, retriever) in enumerate(zip(names, self.retrievers, strict=True)):
            count = names[: position + 1].count(name)
            named[name if count == 1 else f"{name}-{count}"] = retriever
        return named

    @property
    def proposes_answers(self) -> bool:  # type: ignore[override]
        """Whether any of the members does."""
        return any(retriever.proposes_answers for retriever in self.retrievers)

    @property
    def operations(self) -> bool:  # type: ignore[override]
        """Whether any of the members carries out operations."""
        return any(retriever.operations for retriever in self.retrievers)

    @property
    def suits(self) -> frozenset[QuestionShape]:  # type: ignore[override]
        """All that any of the members suits."""
        return frozenset[QuestionShape]().union(*(retriever.suits for retriever in self.retrievers))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Ask all members, then fuse what they found."""
        runs = RunnableParallel({name: Steps(partial(self._ask, name)) for name in self.members})
        calls_model = any(stage.calls_model for retriever in self.retrievers for stage in retriever.stages)
        return (
            Stage("retrieve", runs | RunnableLambda(self._collect), ("found", "failed"), calls_model),
            Stage("fuse", self._fuse, ("answers", "documents")),
        )

    def member_arguments(self, state: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the arguments of `invoke` that each member is given, by its name: shared ones and its own."""
        shared: dict[str, Any] = {} if self.member_k is None else {"k": self.member_k}
        if seeds := state.get("seed_entities"):
            shared["seed_entities"] = seeds
        if "min_confidence" in state:
            shared["min_confidence"] = state["min_confidence"]
        own = state.get("member_inputs", {})
        return {name: {**shared, **own.get(name, {})} for name in self.members}

    def part(self, state: Mapping[str, Any]) -> GraphIndex:
        """Fetch the entities that the members found; members fetch parts of their own."""
        if "found" not in state:
            return self.index
        rows = [row for found in state["found"].values() for row in found]
        keys = {key for row in rows for head, _, tail in row["triples"] for key in (head, tail)}
        keys.update(key for row in rows for key in row["answers"])
        keys.update(key for row in rows for _, key in row["details"].get("entities", ()))
        keys.update(key for row in rows for key in row["details"].get(LONE_ENTITIES, ()))
        return self.index.part(PartRequest(tuple(sorted(keys))))

    @property
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        """The prompts of the members as "member.prompt", but for those for answering, and the one for answering."""
        theirs = {
            f"{name}.{key}": prompt
            for name, member in self.members.items()
            for key, prompt in member.prompts.items()
            if prompt is not member.answer_prompt
        }
        return {**theirs, "answer": self.answer_prompt}

    def initial_state(self, question: str, **inputs: Any) -> dict[str, Any]:
        """As in the base; where `found` is given, no member is asked, and none failed unless that is given too."""
        state = super().initial_state(question, **inputs)
        if "min_confidence" in self.model_fields_set:  # else each member has its own
            state.setdefault("min_confidence", self.min_confidence)
        return {"failed": {}, **state} if "found" in state else state

    def check_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """As in the base; what was found must be of the members and of the graph, and so must what failed."""
        checked = super().check_inputs(inputs)
        members = [*self.members]
        for name in ("found", "failed", "member_inputs"):
            if strange := [member for member in checked.get(name, ()) if member not in members]:
                raise InvalidArgumentError(
                    f"UnionRetriever: {name} must be by the names of members, {members}, but got {strange[0]!r:.100}."
                )
        for name, inputs in checked.get("member_inputs", {}).items():
            self.members[name].check_named_inputs(inputs)
        if "found" in checked:
            found = checked["found"]
            checked["found"] = {member: [self._checked_row(row) for row in found.get(member, ())] for member in members}
        return checked

    def _checked_row(self, row: FoundEvidence) -> dict[str, Any]:
        """Return a piece of evidence as `_collect` writes it."""
        who = "UnionRetriever: each row of found must hold"
        triples, answers = [Triple(*triple) for triple in row["triples"]], row.get("answers", [])
        try:
            details, value = json.loads(json.dumps([row.get("details", {}), row.get("value")], allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"{who} JSON as details and value, but {error}.") from error
        alone, paths = details.get(LONE_ENTITIES, []), details.get("paths", [])
        for name, keys in (("answers", answers), (LONE_ENTITIES, alone)):
            if not isinstance(keys, list) or not all(isinstance(k, str) and k in self.graph.entities for k in keys):
                raise InvalidArgumentError(f"{who} a list of keys of entities as {name}, but got {keys!r:.200}.")
        if not triples and value is None and not alone:
            raise InvalidArgumentError(f"{who} one triple or more, but got none.")
        if strange := [triple for triple in triples if triple not in self.graph]:
            raise InvalidArgumentError(f"{who} triples of the graph, but got {tuple(strange[0])!r:.200}.")
        if not isinstance(paths, list) or len(read_paths(paths, triples)) < len(paths):
            raise InvalidArgumentError(
                f"{who} [[first entity, [position of a triple, ...]], ...] as paths in its details, if any, but got "
                f"{paths!r:.200}."
            )
        return {
            "triples": [list(triple) for triple in triples],
            "score": row["score"],
            "answers": answers,
            "truncated": row.get("truncated", False),
            "confidence": row.get("confidence"),
            "details": details,
            "value": value,
        }

    def _ask(self, name: str, state: UnionState) -> Body[list[Document] | Exception]:
        """Ask a member; an error is an outcome, so that the order of threads does not decide which one is raised."""
        inputs = {**self.member_arguments(state)[name], "on_refusal": "raise"}
        try:
            documents: list[Document] = yield Call(self.members[name].bind(**inputs), state["question"])
        except Exception as error:
            return error
        return documents

    def _collect(self, outcomes: dict[str, list[Document] | Exception]) -> dict[str, Any]:
        """Take what the members found, and survive those that failed, or raise the first error in their order."""
        errors = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Exception)}
        for error in errors.values():
            if not self._is_survived(error):
                raise error
        reasons = {name: read_reason(error, self.members[name]) for name, error in errors.items()}
        if len(errors) == len(outcomes):
            raise _joined(errors, reasons)
        found = {
            name: [{key: document.metadata[key] for key in FoundEvidence.__annotations__} for document in outcome]
            for name, outcome in outcomes.items()
            if not isinstance(outcome, Exception)
        }
        failures = {name: reason for name, reason in reasons.items() if not isinstance(errors[name], NoEvidenceError)}
        return {"found": {name: found.get(name, []) for name in outcomes}, "failed": sort_reasons(failures)}

    def _is_survived(self, error: Exception) -> bool:
        if isinstance(error, RefusalError):
            return True
        return self.on_error == "skip" and not isinstance(error, _NEVER_SKIPPED)

    def _fuse(self, state: UnionState) -> dict[str, Any]:
        members, found = self.members, _values_alone(state["found"])
        weights = self.weights or [1.0] * len(members)
        results = [
            result
            for member, weight in zip(members, weights, strict=True)
            for result in member_results(member, found.get(member, ()), weight)
        ]
        evidence = fuse(results, single_triples=self.granularity == "triple")
        failed = {"failed": state["failed"]} if state.get("failed") else {}
        evidence = [replace(item, details={**item.details, **failed}) for item in evidence]
        return {
            "answers": top_answers(evidence),
            "documents": self.documents_from(evidence, state["k"], state["question"]),
        }


def _joined(errors: Mapping[str, Exception], reasons: Mapping[str, Reason]) -> Exception:
    """Return the most telling error; behind its hint, the reasons of members that say something else."""
    best = min(reasons, key=lambda name: reasons[name]["rank"])
    error = errors[best]
    others = {name: text for name, text in sort_reasons(reasons).items() if text != reasons[best]["text"]}
    if not others or not isinstance(error, KGRetrieversError):
        return error
    joined, more = copy(error), summarize_reasons(others)
    joined.hint_python = f"{error.hint_python} {more}".strip()
    joined.hint_shell = f"{error.hint_shell} {more}".strip()
    return joined.with_traceback(error.__traceback__)


def _values_alone(found: Mapping[str, Sequence[FoundEvidence]]) -> dict[str, list[FoundEvidence]]:
    """Return what operations gave, where a member carried one out; else everything."""
    values = {name: [row for row in rows if row.get("value") is not None] for name, rows in found.items()}
    return values if any(values.values()) else {name: list(rows) for name, rows in found.items()}
