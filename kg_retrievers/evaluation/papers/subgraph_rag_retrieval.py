"""The tables of SubgraphRAG on its retrieval, and what its other tables share with them.

M. Li, S. Miao, P. Li, "Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation", ICLR 2025, arXiv:2410.20724.
"""

from __future__ import annotations

from typing import Literal

from kg_retrievers.datasets.question_sets import QuestionFormat
from kg_retrievers.evaluation.papers.table import (
    OTHERS,
    Column,
    Group,
    Questions,
    Row,
    Run,
    Table,
    Training,
)

WEBQSP, CWQ = Questions("webqsp"), Questions("cwq")

_SCORER = Training("subgraph-rag")
_MLP = Training("subgraph-rag", "mlp", {"network": "mlp"})
_MLP_TOPIC = Training("subgraph-rag", "mlp-topic", {"network": "mlp", "topic": "pair"})
_SAGE = Training("subgraph-rag", "graphsage", {"network": "graphsage"})
_SAGE_TOPIC = Training("subgraph-rag", "graphsage-topic", {"network": "graphsage", "topic": "pair"})

#: The best 100 triples (section 4.1), by the scorer, by cosine, by the prizes of G-Retriever, at random.
RETRIEVAL = Run("subgraph-rag", training=_SCORER)
COSINE = Run("kaping", "cosine", {"k": 100, "scope": "graph"})
PCST = Run("g-retriever", fields={"scope": "graph"})

_TUNED = "the paper tunes RoG's planner, Llama 2 7B, which this package does not"
LABELS = "labelled by GPT-4o; the labels are published apart, and not in the layout of RoG"


def others(name: str, *figures: float | None) -> Row:
    """Return a row of a system of others."""
    return Row(name, None, figures, OTHERS)


def rog(name: str, *figures: float | None) -> Row:
    """Return a row of RoG's planner."""
    return Row(name, None, figures, _TUNED)


# --- retrieval --------------------------------------------------------------------------------------------------------

#: The recall of triples on shortest paths, of those that GPT-4o labels, of answers (section 4.1).
_RECALLS = (("shortest path", "triple_recall"), ("GPT-4o", None), ("answers", "answer_recall"))


def _recalls(
    name: str,
    questions: Questions,
    groups: dict[str, Group | None] | None = None,
    learned: QuestionFormat | Literal[""] = "",
) -> tuple[Column, ...]:
    """Return the columns of recall of a set."""
    return tuple(
        Column(f"{name}, {head}{label and f', {label}'}", questions, metric, group=group, learned=learned)
        for head, metric in _RECALLS
        for label, group in (groups or {"": None}).items()
    )


_HOPS = {
    "webqsp": {"1 hop": Group("hops", 1, 1), "2 hops": Group("hops", 2, 2)},
    "cwq": {"1 hop": Group("hops", 1, 1), "2 hops": Group("hops", 2, 2), "3 hops or more": Group("hops", 3)},
}
_TOPICS: dict[str, Group | None] = {"one topic": Group("entities", 1, 1), "several": Group("entities", 2)}


def _breakdown(*figures: float | None) -> tuple[float | None, ...]:
    """Return a row of table 2, which has the kinds of recall outside and the sets inside, with the sets outside."""
    kinds = [figures[first : first + 5] for first in (0, 5, 10)]
    return tuple(one for part in (slice(0, 2), slice(2, 5)) for kind in kinds for one in kind[part])


_NOTHING = (None,) * 3

_TABLE_1 = Table(
    number="1",
    caption="recall of the retrieval; trained on the other set in the last columns",
    columns=(
        *_recalls("WebQSP", WEBQSP),
        *_recalls("CWQ", CWQ),
        *_recalls("CWQ to WebQSP", WEBQSP, learned="cwq"),
        *_recalls("WebQSP to CWQ", CWQ, learned="webqsp"),
    ),
    rows=(
        Row("cosine similarity", COSINE, 2 * (0.714, 0.719, 0.708, 0.488, 0.567, 0.582)),
        others("Retrieve-Rewrite-Answer", 0.058, 0.062, 0.740, *(3 * _NOTHING)),
        rog("RoG", 0.713, 0.388, 0.807, 0.623, 0.298, 0.841, 0.589, 0.323, 0.658, 0.301, 0.139, 0.412),
        Row("G-Retriever", PCST, 2 * (0.294, 0.325, 0.545, 0.183, 0.217, 0.375)),
        Row(
            "SubgraphRAG",
            RETRIEVAL,
            (0.883, 0.865, 0.944, 0.811, 0.840, 0.914, 0.794, 0.776, 0.887, 0.622, 0.623, 0.773),
        ),
    ),
    why=f"the columns of GPT-4o are {LABELS}; its times are seconds on other GPUs",
)

_TABLE_2 = Table(
    number="2",
    caption="recall by hops",
    columns=(*_recalls("WebQSP", WEBQSP, {**_HOPS["webqsp"]}), *_recalls("CWQ", CWQ, {**_HOPS["cwq"]})),
    rows=(
        Row(
            "cosine similarity",
            COSINE,
            _breakdown(
                *(0.874, 0.405, 0.629, 0.442, 0.333),
                *(0.847, 0.483, 0.629, 0.511, 0.464),
                *(0.943, 0.253, 0.903, 0.472, 0.289),
            ),
        ),
        others(
            "Retrieve-Rewrite-Answer",
            *_breakdown(0.064, 0.046, *_NOTHING, 0.062, 0.061, *_NOTHING, 0.745, 0.729, *_NOTHING),
        ),
        rog(
            "RoG",
            *_breakdown(
                *(0.869, 0.415, 0.766, 0.597, 0.253),
                *(0.446, 0.271, 0.347, 0.293, 0.122),
                *(0.874, 0.677, 0.920, 0.827, 0.628),
            ),
        ),
        Row(
            "G-Retriever",
            PCST,
            _breakdown(
                *(0.335, 0.216, 0.134, 0.205, 0.168),
                *(0.345, 0.284, 0.159, 0.240, 0.226),
                *(0.596, 0.446, 0.377, 0.384, 0.269),
            ),
        ),
        Row(
            "MLP",
            Run("subgraph-rag", "mlp", training=_MLP),
            _breakdown(
                *(0.828, 0.687, 0.651, 0.690, 0.534),
                *(0.811, 0.781, 0.635, 0.707, 0.616),
                *(0.933, 0.874, 0.932, 0.870, 0.793),
            ),
        ),
        Row(
            "MLP + topic entity",
            Run("subgraph-rag", "mlp-topic", training=_MLP_TOPIC),
            _breakdown(
                *(0.944, 0.729, 0.854, 0.750, 0.560),
                *(0.884, 0.775, 0.769, 0.773, 0.647),
                *(0.976, 0.843, 0.956, 0.885, 0.665),
            ),
        ),
        Row(
            "SubgraphRAG",
            RETRIEVAL,
            _breakdown(
                *(0.953, 0.748, 0.831, 0.820, 0.626),
                *(0.908, 0.809, 0.823, 0.860, 0.755),
                *(0.977, 0.881, 0.946, 0.916, 0.741),
            ),
        ),
    ),
    why=f"the columns of GPT-4o are {LABELS}",
)

_TABLE_8 = Table(
    number="8",
    caption="recall by the number of topic entities, CWQ",
    columns=_recalls("CWQ", CWQ, _TOPICS),
    rows=(
        Row("cosine similarity", COSINE, (0.586, 0.403, 0.587, 0.499, 0.517, 0.638)),
        rog("RoG", 0.711, 0.547, 0.324, 0.275, 0.769, 0.903),
        Row("G-Retriever", PCST, (0.245, 0.128, 0.289, 0.156, 0.393, 0.360)),
        Row("MLP", Run("subgraph-rag", "mlp", training=_MLP), (0.788, 0.568, 0.777, 0.600, 0.894, 0.873)),
        Row(
            "MLP + topic entity",
            Run("subgraph-rag", "mlp-topic", training=_MLP_TOPIC),
            (0.858, 0.690, 0.819, 0.718, 0.894, 0.889),
        ),
        Row("SubgraphRAG", RETRIEVAL, (0.877, 0.754, 0.871, 0.820, 0.911, 0.916)),
    ),
    why=f"the columns of GPT-4o are {LABELS}",
)


def _of_sizes(number: str, name: str, questions: Questions) -> Table:
    """Return a figure of recall by the number of triples, which is drawn without numbers."""
    runs = {
        "cosine similarity": COSINE,
        "MLP": Run("subgraph-rag", "mlp", training=_MLP),
        "MLP + topic entity": Run("subgraph-rag", "mlp-topic", training=_MLP_TOPIC),
        "GraphSAGE": Run("subgraph-rag", "graphsage", training=_SAGE),
        "GraphSAGE + topic entity": Run("subgraph-rag", "graphsage-topic", training=_SAGE_TOPIC),
        "PageRank": Run("pagerank", fields={"k": 100}),
        "SubgraphRAG": RETRIEVAL,
    }
    return Table(
        number=number,
        caption=f"recall by the number of triples, {name}; here of the best 100",
        columns=_recalls(name, questions),
        rows=tuple(Row(row, run, _NOTHING) for row, run in runs.items()),
        why="the figure has no numbers; its MLP with a column of PageRank is here PageRank alone",
    )


#: The tables on the retrieval.
TABLES = (
    _TABLE_1,
    _TABLE_2,
    _TABLE_8,
    _of_sizes("figure-3", "CWQ", CWQ),
    _of_sizes("figure-5", "WebQSP", WEBQSP),
)
