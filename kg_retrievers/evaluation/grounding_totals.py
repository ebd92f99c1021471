"""How much of what a run's answers list is in the graph: the totals of `check_grounding`.

X. He, Y. Tian, Y. Sun, N. Chawla, T. Laurent, Y. LeCun, X. Bresson, B. Hooi: G-Retriever: Retrieval-Augmented
Generation for Textual Graph Understanding and Question Answering. NeurIPS 2024, arXiv:2402.07630, section 6.4 and
table 5. There, people read 100 answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation.grounding import check_grounding
from kg_retrievers.evaluation.report import Report
from kg_retrievers.graph import KnowledgeGraph


@dataclass(frozen=True)
class GroundingTotals:
    """What the answers of a run list, and how much of it the graph has.

    Attributes:
        answers: How many answers were read.
        listing: How many of them list a node or an edge; the others are in no share.
        nodes: How many nodes they list, each once for an answer.
        known_nodes: How many of these the graph has.
        edges: How many edges they list.
        known_edges: How many of these the graph has.
        fully_known: Of how many answers the graph has all nodes and edges.
        unread: How many entries are of no known form, neither valid nor invalid.
    """

    answers: int
    listing: int
    nodes: int
    known_nodes: int
    edges: int
    known_edges: int
    fully_known: int
    unread: int

    @property
    def valid_nodes(self) -> float | None:
        """The share of all nodes listed that the graph has, 0 ... 1; None where none is listed."""
        return self.known_nodes / self.nodes if self.nodes else None

    @property
    def valid_edges(self) -> float | None:
        """The share of all edges listed that the graph has, 0 ... 1; None where none is listed."""
        return self.known_edges / self.edges if self.edges else None

    @property
    def fully_valid_graphs(self) -> float | None:
        """The share of the answers listing something of which the graph has all; None where none lists anything."""
        return self.fully_known / self.listing if self.listing else None


def total_grounding(
    answers: Report | Iterable[str], graphs: KnowledgeGraph | Sequence[KnowledgeGraph]
) -> GroundingTotals:
    """Look up the nodes and edges that answers list, and count; see `check_grounding`.

    Ask for the lists with the prompt of `PCSTRetriever(prompting="support")`.

    Args:
        answers: Texts that a model wrote; or a report, whose predictions are texts: the `answerer` of the run was
            `llm_answerer(retriever.answer_prompt, llm)`. Questions without a text are left out of a report.
        graphs: The graph; or that of each answer, or of each record of the report, in order.

    Raises:
        InvalidArgumentError: If there are not as many graphs as answers, or an answer is no text.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("elephant", "in", "bushes")])
        >>> totals = total_grounding(["Nodes: deer, bushes", "Nodes: elephant", "A deer."], graph)
        >>> totals.valid_nodes, totals.fully_valid_graphs, totals.listing
        (0.6666666666666666, 0.5, 2)
    """
    given = [record["prediction"] for record in answers.records] if isinstance(answers, Report) else list(answers)
    of_each = [graphs] * len(given) if isinstance(graphs, KnowledgeGraph) else list(graphs)
    if len(of_each) != len(given):
        raise InvalidArgumentError(
            f"total_grounding: wanted a graph, or one for each of {len(given)} answers, but got {len(of_each)} graphs."
        )
    pairs = list(zip(given, of_each, strict=True))
    if isinstance(answers, Report):
        pairs = [(answer, graph) for answer, graph in pairs if isinstance(answer, str)]
    checks = [check_grounding(answer, graph) for answer, graph in pairs]  # type: ignore[arg-type]
    return GroundingTotals(
        answers=len(checks),
        listing=sum(check.fully_valid is not None for check in checks),
        nodes=sum(len(check.nodes) for check in checks),
        known_nodes=sum(len(check.nodes) - len(check.unknown_nodes) for check in checks),
        edges=sum(len(check.edges) for check in checks),
        known_edges=sum(len(check.edges) - len(check.unknown_edges) for check in checks),
        fully_known=sum(check.fully_valid is True for check in checks),
        unread=sum(len(check.unread) for check in checks),
    )
