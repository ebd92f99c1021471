"""The form of a reply that states a pattern, for language models that keep to a schema."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from kg_retrievers.graph.operations import OperationKind
from kg_retrievers.graph.values import Comparison

#: The longest name, relation or value of a pattern, in characters, and the most triples.
MAX_WORDS, MAX_TRIPLES = 120, 8

Words = Annotated[str, Field(max_length=MAX_WORDS)]
Three = Annotated[list[Words], Field(min_length=3, max_length=3)]


class ConditionReply(BaseModel):
    """A condition on an UNKNOWN thing, with one value."""

    unknown: Words
    operator: Literal["=", "!=", "<", "<=", ">", ">=", "contains"]
    value: Words


class ListConditionReply(BaseModel):
    """A condition on an UNKNOWN thing, with several values."""

    unknown: Words
    operator: Literal["between", "in"]
    value: Annotated[list[Words], Field(min_length=2, max_length=MAX_TRIPLES)]


class OperationReply(BaseModel):
    """What is asked of the things found."""

    kind: OperationKind
    by: Annotated[list[Words], Field(max_length=2)] = []
    of: Literal["value", "count"] = "value"
    comparison: Comparison | None = None
    number: Annotated[int, Field(ge=0, le=1000)] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] | None = None
    descending: bool = True


class PatternReply(BaseModel):
    """The small graph of facts that answers a question.

    Its schema is sent to the model; `parse_pattern` reads the reply, which is more lenient.
    """

    segments: Annotated[list[Words], Field(max_length=MAX_TRIPLES)]
    triples: Annotated[list[Three], Field(min_length=1, max_length=MAX_TRIPLES)] = Field(
        description='Each ["head", "relation", "tail"].'
    )
    target: Words | None
    conditions: Annotated[list[ConditionReply | ListConditionReply], Field(max_length=MAX_TRIPLES)] = []
    absent: Annotated[list[Three], Field(max_length=MAX_TRIPLES)] = []
    operation: OperationReply | None = None
