"""What passes between the stages of relation paths."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import BeforeValidator, Field, with_config
from typing_extensions import TypedDict

from kg_retrievers.core.confidence import Confidence
from kg_retrievers.core.neighborhood_retriever import MaskedQuestionState
from kg_retrievers.core.stages import EXACT


def _pair(step: object) -> object:
    """Read a plain relation as one that is crossed either way."""
    return (step, "either") if isinstance(step, str) else step


#: A relation and how it is crossed.
Step = Annotated[tuple[str, Literal["forward", "backward", "either"]], BeforeValidator(_pair)]

#: A relation path: "relations", best "score" first in (0, 1], "from" whom it is, "matched", which says which relations
#: were taken for names that are none of the graph, "revisits", whether walks may return to where they start, and
#: "entity", the position among the names of the question from which alone it is followed. "confidence", "unplaced",
#: "nearest" and "lacking" are those of a `Pattern`.
RelationPath = TypedDict(
    "RelationPath",
    {
        "relations": list[Step],
        "score": NotRequired[Annotated[float, Field(gt=0, le=1, strict=True)]],
        "from": NotRequired[str],
        "matched": NotRequired[dict[str, str]],
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
