"""What keeps an entity out of what a retriever finds, one obstacle after the other, each lifted before the next."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kg_retrievers.core.ensemble import MEMBER_INPUTS, BaseEnsembleRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.retriever import PART_HOPS, BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError, KGRetrieversError, LowConfidenceError
from kg_retrievers.explanation.lifting import lift, merged
from kg_retrievers.explanation.linked import not_linked
from kg_retrievers.explanation.run import Place, Run, run_stages
from kg_retrievers.index import PartRequest

#: The most obstacles that are lifted one after the other.
MOST_OBSTACLES = 8


@dataclass(frozen=True)
class Course:
    """The way of an entity into what a retriever finds.

    Attributes:
        retriever: With all obstacles lifted.
        run: Its run.
        first: Where the entity stands at first.
        obstacles: What keeps it out, in the order in which it is lifted.
        lifted: Whether it is found then; None where it was not run, or nothing was to be lifted.
    """

    retriever: BaseKGRetriever
    run: Run
    first: Place | None
    obstacles: tuple[Obstacle, ...]
    lifted: bool | None


def overcome(
    retriever: BaseKGRetriever,
    question: str,
    key: str,
    inputs: Mapping[str, Any],
    *,
    as_answer: bool,
    most: int = MOST_OBSTACLES,
) -> Course:
    """Run a retriever and lift what keeps an entity out, until the entity is found.

    Args:
        retriever: The retriever.
        question: The question.
        key: The key of the entity.
        inputs: Further arguments of `invoke`.
        as_answer: Whether the entity counts only as an answer.
        most: The most obstacles that are lifted.

    Raises:
        InvalidArgumentError: As `invoke`.
    """
    now, given, obstacles = retriever, dict(inputs), list[Obstacle]()
    kept = _read_by_members(now, question, given)
    run = run_stages(now, question, merged(kept, given))
    first = place = run.place_of(key, as_answer=as_answer)
    kept = kept or _written_by_model(now, run)
    lifted: bool | None = None
    while place is None and len(obstacles) < most:
        obstacle = _obstacle(now, question, key, run, as_answer)
        if obstacle is None or obstacle in obstacles:  # nobody can tell, or it is lifted, and is there still
            break
        obstacles.append(obstacle)
        if obstacle.lift.facts and now.index.is_connected:
            lifted = None
            break
        now, given = lift(now, given, obstacle.lift)
        run = run_stages(now, question, merged(kept, given))
        place = run.place_of(key, as_answer=as_answer)
        lifted = place is not None
    return Course(now, run, first, tuple(obstacles), lifted)


def _read_by_members(retriever: BaseKGRetriever, question: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what language models wrote that members ask, by the arguments that give it to them."""
    if not isinstance(retriever, BaseEnsembleRetriever):
        return {}
    read: dict[str, dict[str, Any]] = {}
    for name, inputs in retriever.member_arguments(retriever.initial_state(question, **given)).items():
        member = retriever.members[name]
        if any(stage.calls_model for stage in member.stages):
            with suppress(KGRetrieversError):  # the run of the ensemble says what becomes of it
                kept = _read_by_members(member, question, inputs)
                read[name] = kept or _written_by_model(member, run_stages(member, question, inputs))
    return {MEMBER_INPUTS: read} if any(read.values()) else {}


def _written_by_model(retriever: BaseKGRetriever, run: Run) -> dict[str, Any]:
    """Return what stages that call a language model wrote."""
    keys = {key for stage in retriever.stages if stage.calls_model for key in stage.writes}
    return {key: run.state[key] for key in sorted(keys - {"answers", "documents"}) if key in run.state}


def _obstacle(retriever: BaseKGRetriever, question: str, key: str, run: Run, as_answer: bool) -> Obstacle | None:
    """Return the first thing that keeps an entity out of a run.

    A refusal that is not of the first stage may be of what was read there; then the method knows more of it.
    """
    if isinstance(retriever, BaseEnsembleRetriever):
        return _by_method(retriever, key, run) or _by_member(retriever, question, key, run, as_answer)
    refusal = run.refusal
    if isinstance(refusal, LowConfidenceError):
        return _not_sure(retriever, question, key, run, refusal)
    if not isinstance(refusal, EntityLinkingError):
        return _by_method(retriever, key, run)
    first = run.stage == retriever.stages[0].name
    return (None if first else _by_method(retriever, key, run)) or not_linked(retriever, question, key, run)


def _not_sure(
    retriever: BaseKGRetriever, question: str, key: str, run: Run, refusal: LowConfidenceError
) -> Obstacle | None:
    """Return the obstacle of a question that is not understood surely enough.

    What is read, given as by a person who is sure of it, is refused again where it names what the graph has not got.
    """
    sure = {name: value for name, value in run.state.items() if name != "question"}
    again = run_stages(retriever, question, {**sure, "min_confidence": 0.0})
    if isinstance(again.refusal, LowConfidenceError):
        return _by_method(retriever, key, again)
    lift = Lift(inputs={"min_confidence": refusal.confidence})
    return Obstacle("below_min_confidence", run.stage, refusal.message, lift, {"confidence": refusal.confidence})


def _by_method(retriever: BaseKGRetriever, key: str, run: Run) -> Obstacle | None:
    """Return what a method says, with what is around the entity and those of the question at hand."""
    seeds = tuple(run.state.get("seed_entities") or ())
    around = PartRequest((key, *seeds), PART_HOPS, between=True)
    return retriever.over(retriever.index.part(around)).obstacle(key, run.state)


def _by_member(ensemble: BaseEnsembleRetriever, question: str, key: str, run: Run, as_answer: bool) -> Obstacle | None:
    """Return the first thing that keeps an entity out of what that member finds which needs least."""
    courses: dict[str, Course] = {}
    most = MOST_OBSTACLES
    for name, inputs in ensemble.member_arguments(run.state).items():
        member = ensemble.members[name]
        if most and (member.proposes_answers or not as_answer):
            with suppress(KGRetrieversError):  # it fails, and is skipped
                courses[name] = overcome(member, question, key, inputs, as_answer=as_answer, most=most)
                if courses[name].obstacles and courses[name].lifted is not False:
                    most = len(courses[name].obstacles) - 1  # only a member that needs less is of interest
    told = {name: course for name, course in courses.items() if course.obstacles}
    if not told:
        return None
    name = min(told, key=lambda one: (told[one].lifted is False, len(told[one].obstacles)))
    return ensemble.obstacle_of_member(name, told[name].obstacles[0], run.state)
