"""An entity that is not found since the question is not read to name what leads to it."""

from __future__ import annotations

from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.explanation.run import Run, run_stages
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import PartRequest

#: The most entities beside the one asked for that are tried as what the question may name.
TRIED = 32


def not_linked(retriever: BaseKGRetriever, question: str, key: str, run: Run) -> Obstacle:
    """Return the obstacle where no entity of the graph is found in the question.

    What lifts it is the first entity beside the one asked for from which the method finds it, else the entity itself.
    """
    index = retriever.index
    near = _neighbors(index.part(PartRequest((key,), 1)).graph, key)
    for seed in near:
        tried = run_stages(retriever, question, {"seed_entities": [seed], "min_confidence": 0.0})
        if tried.place_of(key, as_answer=retriever.proposes_answers):
            return _obstacle(run, seed)
    return _obstacle(run, near[0] if retriever.proposes_answers and near else key)


def _obstacle(run: Run, seed: str) -> Obstacle:
    message = run.refusal.message if run.refusal else "No entity of the graph was found in the question."
    return Obstacle("not_linked", run.stage, message, Lift(inputs={"seed_entities": [seed]}), {"seed": seed})


def _neighbors(graph: KnowledgeGraph, key: str) -> list[str]:
    """Return the entities that a fact joins with one, each once, in the order of the graph."""
    facts = [*graph.triples(head=key), *graph.triples(tail=key)]
    ends = (end for head, _, tail in facts for end in (head, tail))
    return list(dict.fromkeys(end for end in ends if end != key))[:TRIED]
