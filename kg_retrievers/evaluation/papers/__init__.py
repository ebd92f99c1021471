"""The tables of the five papers as data: what each shows, and how each row of it is asked here.

Names of methods, presets and metrics stand here as texts: nothing in this package imports a method.
"""

from __future__ import annotations

from kg_retrievers.errors import InvalidArgumentError, did_you_mean
from kg_retrievers.evaluation.papers import g_retriever, gnn_rag, sg_rag, simgrag, subgraph_rag
from kg_retrievers.evaluation.papers.table import Paper

#: The papers, in the order of the methods.
PAPERS: tuple[Paper, ...] = (
    simgrag.PAPER,
    g_retriever.PAPER,
    gnn_rag.PAPER,
    subgraph_rag.PAPER,
    sg_rag.PAPER,
)


def find_paper(name: str) -> Paper:
    """Return a paper by the name of its method.

    Raises:
        InvalidArgumentError: If there is none.

    Example:
        >>> find_paper("sg-rag").title
        'SG-RAG'
    """
    papers = {paper.name: paper for paper in PAPERS}
    if name not in papers:
        near = did_you_mean(name, papers) or f"there are {', '.join(papers)}."
        raise InvalidArgumentError(f"there is no paper {name!r}; {near}")
    return papers[name]
