"""An entity of evidence that is not among the first k Documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kg_retrievers.core.obstacles import Lift, Obstacle, role_of
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import MAX_K


def rank_obstacle(
    retriever: BaseKGRetriever,
    entity: str,
    state: Mapping[str, Any],
    stage: str,
    last: Callable[[Any], dict[str, Any]],
) -> Obstacle:
    """Return what keeps an entity that evidence proposes out of the Documents.

    Args:
        retriever: The retriever.
        entity: Its key; in some evidence of the state: an answer, where the method proposes answers.
        state: What the stages wrote.
        stage: The name of the last stage, which ranks the evidence.
        last: The last stage; it takes as many Documents as the `k` of a state says.
    """
    documents, label = last({**state, "k": MAX_K})["documents"], retriever.graph.label(entity)
    as_answer = retriever.proposes_answers
    metadata = next((one.metadata for one in documents if role_of(entity, one.metadata, as_answer=as_answer)), None)
    if metadata is None:
        text = (
            f"{label!r} is in evidence whose facts all stand in Documents of better evidence: each fact is "
            f"a Document once (granularity)."
        )
        lift, granularity = Lift(fields={"granularity": "subgraph"}), retriever.granularity
        return Obstacle("outscored", stage, text, lift, {"granularity": granularity})
    rank, score, best = metadata["rank"], metadata["score"], documents[0].metadata["score"]
    text = (
        f"{label!r} is {'an answer of' if as_answer else 'in'} Document {rank}, whose score is {score:.3g}; that of the best is {best:.3g}, and k "
        f"is {state['k']}."
    )
    details = {"rank": rank, "score": score, "best": best, "k": state["k"]}
    return Obstacle("outscored", stage, text, Lift(inputs={"k": rank}), details)
