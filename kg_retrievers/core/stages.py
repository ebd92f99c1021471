"""A stage of a retriever, and the state that the stages share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import coerce_to_runnable
from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from kg_retrievers.core.confidence import Confidence
from kg_retrievers.core.runnables import Work
from kg_retrievers.errors import InvalidArgumentError, did_you_mean
from kg_retrievers.graph.validation import reasons

#: The name of the custom event that is sent after each stage.
STAGE_EVENT = "kg_retrievers.stage"

#: The name of the custom event that is sent when a question is refused.
REFUSAL_EVENT = "kg_retrievers.refused"

#: The name of the logger that warns of refused questions; its messages hold the question.
REFUSALS_LOGGER = "kg_retrievers.refusals"

#: The keys in the metadata of a stage's run, and of the runs under it: whose stage, and which.
RETRIEVER_KEY, STAGE_KEY = "kg_retriever", "kg_stage"

#: The most Documents that can be asked for.
MAX_K = 1_000_000

#: What a question looks like before it is understood: how many entities of the graph it names, or whether it asks for
#: a description ("open").
QuestionShape = Literal["no entity", "one entity", "several entities", "open"]


#: A text that is not blank.
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


#: For a TypedDict inside of a state, by `with_config`: it has no further keys.
EXACT = ConfigDict(extra="forbid")

#: A number that JSON can hold.
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]


class RetrievalState(TypedDict, total=False):
    """What the stages of every retriever share; each method extends it with keys of its own.

    All values are small and JSON-safe, or Documents, so that a workflow can checkpoint them. The types are checked
    where a caller supplies a value or a person edits it.
    """

    question: str
    k: Annotated[int, Field(ge=1, le=MAX_K, strict=True)]
    #: Keys of entities.
    seed_entities: list[str]
    #: As the field of this name, for one question.
    min_confidence: Confidence
    #: The answers that all evidence with the top score proposes: see `top_answers`.
    answers: list[str]
    documents: list[Document]


@dataclass(frozen=True)
class Stage:
    """One step of a retriever.

    Attributes:
        name: Unique in its retriever; the name of the node in a workflow.
        work: From the state to the keys it writes: a method, or a runnable.
        writes: These keys. The stage is skipped where the caller supplied all of them.
        calls_model: Whether it calls a language model, so that a retry may help.
    """

    name: str
    work: Work
    writes: tuple[str, ...]
    calls_model: bool = False

    @property
    def run(self) -> Runnable[Any, dict[str, Any]]:
        """The stage as a runnable."""
        return coerce_to_runnable(self.work)

    def shown_as(self, who: str) -> RunnableConfig:
        """Return what callbacks are told of its run: its name, and in the metadata whose stage it is.

        Args:
            who: The class of its retriever.
        """
        return {"run_name": self.name, "metadata": {RETRIEVER_KEY: who, STAGE_KEY: self.name}}

    def check(self, update: Mapping[str, Any], who: str) -> None:
        """Check that the stage wrote the keys that it declares.

        Raises:
            InvalidArgumentError: If not.
        """
        if set(update) != set(self.writes):
            raise InvalidArgumentError(
                f"{who}: the stage {self.name!r} wrote {sorted(update)}, but declares {sorted(self.writes)}."
            )


def check_types(state_class: type, inputs: Mapping[str, Any], who: str) -> dict[str, Any]:
    """Return inputs for a state whose names and types fit; a tuple becomes a list, an integer a float where one is due.

    Args:
        state_class: The TypedDict of the state.
        inputs: Values of some of its keys, but not of "question".
        who: The class that takes them, for the message.

    Raises:
        InvalidArgumentError: If a key is not of the state, or a value is of another type.
    """
    if not inputs:
        return {}
    names = sorted(set(get_type_hints(state_class)) - {"question"})
    if strange := sorted(set(inputs) - set(names)):
        known = sorted([*names, "on_refusal"])
        hint = did_you_mean(strange[0], known) or f"invoke takes {known}."
        raise InvalidArgumentError(f"{who}: there is no argument {strange[0]!r}; {hint}")
    try:
        checked: dict[str, Any] = _adapter(state_class).validate_python(dict(inputs))
    except ValidationError as error:
        raise InvalidArgumentError(f"{who}: {reasons(error, inputs)}{_forms(state_class, error)}") from None
    return checked


def _forms(state_class: type, error: ValidationError) -> str:
    """Return what the wrong values are, as far as the state says it in a `Field(description=...)`."""
    hints = get_type_hints(state_class, include_extras=True)
    names = dict.fromkeys(str(problem["loc"][0]) for problem in error.errors())
    forms = {name: getattr(hints[name], "__metadata__", ()) for name in names}
    described = {name: getattr(part, "description", None) for name, parts in forms.items() for part in parts}
    return "".join(f" {name} is {form}." for name, form in described.items() if form)


@cache
def _adapter(state_class: type) -> TypeAdapter[Any]:
    return TypeAdapter(with_config(ConfigDict(arbitrary_types_allowed=True))(state_class))
