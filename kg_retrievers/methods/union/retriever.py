"""UnionRetriever: asks its members and fuses what they find.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
section 4.5: GNN-RAG+RA is the union of the paths of two retrievers, GNN-RAG+Ensemble that of two networks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from typing import Annotated, Any, ClassVar, Literal, NotRequired, Self

from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langgraph.errors import GraphBubbleUp
from pydantic import Field, JsonValue, StrictBool, ValidationInfo, field_validator, model_validator, with_config
from typing_extensions import TypedDict

from kg_retrievers.core.documents import evidence_of
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
from kg_retrievers.graph import Evidence, Path, Triple
from kg_retrievers.graph.types import path_rows, read_paths
from kg_retrievers.graph.verbalize import LONE_ENTITIES, lone_entities_of
from kg_retrievers.index import GraphIndex, PartRequest

#: What is added to a rank. G. Cormack, C. Clarke, S. Buettcher: Reciprocal rank fusion outperforms Condorcet and
#: individual rank learning methods (SIGIR 2009): 60, fixed in a pilot study.
RANK_OFFSET = 60

#: The keys of `details` that a union writes itself.
OWN_DETAILS = ("paths", "found_by", "failed")


@dataclass(frozen=True)
class MemberResult:
    """What one member found, the paths in it apart, and what that adds to a score."""

    member: str
    rank: int
    value: float
    evidence: Evidence
    paths: Sequence[Path]


def member_results(member: str, found: Sequence[Mapping[str, Any]], weight: float) -> list[MemberResult]:
    """Return what a member found, best first, with what each adds to a score.

    Args:
        member: Its name.
        found: The keys of `Evidence` each, triples as lists.
        weight: What it counts.
    """
    rows = sorted(found, key=lambda row: -row["score"])
    ranks: dict[float, int] = {}
    results = []
    for position, row in enumerate(rows, 1):
        rank = ranks.setdefault(row["score"], position)
        details = {**row["details"]}
        paths = details.pop("paths", None)
        evidence = evidence_of({**row, "details": details})
        paths = read_paths(paths, evidence.triples)
        results.append(MemberResult(member, rank, weight / (RANK_OFFSET + rank), evidence, paths))
    return results


def fuse(results: Sequence[MemberResult], *, single_triples: bool) -> list[Evidence]:
    """Return the evidence of all results, best first; what adds nothing to better evidence is left out.

    Args:
        results: In the order of the members.
        single_triples: Whether each triple is evidence of its own.
    """
    groups: dict[tuple[frozenset[Triple], str], list[MemberResult]] = {}
    for result in results:
        triples = result.evidence.triples
        value = json.dumps([result.evidence.value, [] if triples else lone_entities_of(result.evidence)])
        parts = [frozenset([one]) for one in triples] if single_triples and triples else [frozenset(triples)]
        for part in dict.fromkeys(parts):
            groups.setdefault((part, value), []).append(result)
    members = list(dict.fromkeys(result.member for result in results))
    evidence = [_fused(triples, of_triples, members, single_triples) for (triples, _), of_triples in groups.items()]
    evidence.sort(key=lambda item: (-item.score, not item.answers))
    return _without_parts(evidence)


def _fused(
    triples: frozenset[Triple], results: Sequence[MemberResult], members: Sequence[str], is_part: bool
) -> Evidence:
    """Make one of all evidence that holds these triples; a part of it has no paths."""
    results = sorted(results, key=lambda result: -result.value)  # of equal ones, the first member's stays first
    best = {result.member: result for result in reversed(results)}
    first = results[0].evidence
    found_by = {
        member: {
            "rank": best[member].rank,
            "score": best[member].evidence.score,
            "confidence": best[member].evidence.confidence,
            "details": dict(best[member].evidence.details),
        }
        for member in members
        if member in best
    }
    details = {name: value for name, value in first.details.items() if name not in OWN_DETAILS}
    stated = [one.evidence.confidence for one in results if one.evidence.confidence is not None]
    ordered = tuple(dict.fromkeys(triple for triple in first.triples if triple in triples))
    if paths := [] if is_part else dict.fromkeys(path for result in results for path in result.paths):
        details["paths"] = path_rows(paths, ordered)
    return Evidence(
        triples=ordered,
        score=fsum(result.value for result in best.values()),
        answers=tuple(dict.fromkeys(key for result in results for key in result.evidence.answers)),
        truncated=any(result.evidence.truncated for result in results),
        confidence=max(stated, default=None),
        details={**details, "found_by": found_by},
        value=first.value,
    )


def _without_parts(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Drop evidence that adds no triple and no answer to better evidence."""
    kept: list[Evidence] = []
    held: set[Triple] = set()
    proposed: set[str] = set()
    for item in evidence:
        known = held.issuperset(item.triples) and (item.triples or not lone_entities_of(item))
        if known and item.value is None and proposed.issuperset(item.answers):
            continue
        held.update(item.triples)
        proposed.update(item.answers)
        kept.append(item)
    return kept


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
    details: NotRequired[dict[str, JsonValue]]
    value: NotRequired[JsonValue]


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
        InvalidArgumentError: If a member is on another graph, or there are not as many weights as members.

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
        for retriever in retrievers:
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
        triples, answers, details = row["triples"], row.get("answers", []), row.get("details", {})
        alone = details.get(LONE_ENTITIES) or []
        for key in (*answers, *(alone if isinstance(alone, list) else [alone])):
            if not isinstance(key, str) or key not in self.graph.entities:
                raise InvalidArgumentError(
                    f"{who} keys of entities as answers and {LONE_ENTITIES}, but got {key!r:.200}."
                )
        if not triples and row.get("value") is None and not alone:
            raise InvalidArgumentError(f"{who} one triple or more, but got none.")
        if strange := [triple for triple in triples if Triple(*triple) not in self.graph]:
            raise InvalidArgumentError(f"{who} triples of the graph, but got {tuple(strange[0])!r:.200}.")
        missing = {"answers": [], "truncated": False, "confidence": None, "details": {}, "value": None}
        return {**missing, **row, "triples": [list(triple) for triple in triples]}

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
            is_skipped = self.on_error == "skip" and not isinstance(error, _NEVER_SKIPPED)
            if not (is_skipped or isinstance(error, RefusalError)):
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
        return self.results(state, evidence)


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
    joined.hint_agent = f"{error.hint_agent} {more}".strip()
    return joined.with_traceback(error.__traceback__)


def _values_alone(found: Mapping[str, Sequence[FoundEvidence]]) -> dict[str, list[FoundEvidence]]:
    """Return what operations gave, where a member carried one out; else everything."""
    values = {name: [row for row in rows if row.get("value") is not None] for name, rows in found.items()}
    return values if any(values.values()) else {name: list(rows) for name, rows in found.items()}
