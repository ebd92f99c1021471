"""The tables of GNN-RAG.

C. Mavromatis, G. Karypis, "GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning", arXiv:2405.20139.
"""

from __future__ import annotations

from dataclasses import replace

from kg_retrievers.evaluation.papers import gnn_rag_main
from kg_retrievers.evaluation.papers.gnn_rag_main import (
    ALL,
    ALONE,
    BY_REASONER,
    DENSE,
    GNN,
    GNN_RAG,
    HIT,
    HOPS,
    KINDS,
    METAQA_3,
    ROG,
    SECOND,
    SETS,
    TUNED,
    WITH_RA,
    others,
    three,
)
from kg_retrievers.evaluation.papers.table import (
    STATISTICS,
    Column,
    Group,
    Paper,
    Row,
    Run,
    Table,
    Training,
)


def _at(theta: float, figure: float) -> Row:
    label = f"threshold-{theta}"
    run = GNN_RAG if theta == 0.95 else replace(GNN_RAG, label=label, fields={"threshold": theta})
    return Row(f"threshold {theta}", run, (figure,))


_ANSWERS = {
    "1 answer": Group("answers", 1, 1),
    "2 to 4": Group("answers", 2, 4),
    "5 to 9": Group("answers", 5, 9),
    "10 or more": Group("answers", 10),
}


def _of_groups(groups: dict[str, Group]) -> tuple[Column, ...]:
    """Return the columns of F1 by groups, set by set."""
    return tuple(
        Column(f"{name}, {head}", questions, *KINDS["F1"], 100.0, group)
        for name, questions in SETS
        for head, group in groups.items()
    )


_FEWER = replace(GNN_RAG, label="10000", training=Training("gnn-rag", "10000", limit=10_000))
#: Figures of table 12; None also where the copy at hand cannot be read.
_WITH_SECOND: dict[str, tuple[float | None, ...]] = {
    "(ii)": (85.0, 80.3, 71.5, 66.2, 61.3, 58.9),
    "(i) + (ii)": (None, None, 71.7, None, None, 57.5),
    "(ii) + (iii)": (89.9, 82.4, 73.4, 67.9, 63.0, None),
    "(i) + (ii) + (iii)": (90.1, 81.7, None, None, None, None),
}


_NO_PROMPT = "the three prompts are GNN-RAG's here; RoG asks with its own, which stands for prompt A"


def _prompted(letter: str, rog: tuple[float, ...], gnn_rag: tuple[float, ...]) -> tuple[Row, Row]:
    """Return the rows of a prompt of table 13."""
    run = GNN_RAG if letter == "A" else replace(GNN_RAG, label=f"prompt-{letter}", fields={"answer_prompt": letter})
    return (
        Row(f"Prompt {letter}, RoG", ROG if letter == "A" else None, rog, _NO_PROMPT),
        Row(f"Prompt {letter}, GNN-RAG", run, gnn_rag, needs_llm=True),
    )


_NOT_TUNED = "the reader is a tuned language model, which the shell does not train"


PAPER = Paper(
    name="gnn-rag",
    title="GNN-RAG",
    embeddings="SBERT",
    llm="Llama 2 Chat 7B, tuned",
    tables=(
        *gnn_rag_main.TABLES,
        Table(
            number="7",
            caption="calls of the retrieval against Hit, WebQSP",
            columns=(HIT[0],),
            rows=(
                Row("RoG, 3 calls", ROG, (85.7,), TUNED),
                Row("RoG, 1 call", Run("rog", "beam-1", {"beam_width": 1}, llm="needed", calls=2), (77.2,), TUNED),
                others("ToG, up to 21 calls", 76.2),
                others("ToG, 3 calls", 66.3),
                Row("GNN-RAG, no call", GNN_RAG, (87.2,), TUNED),
            ),
        ),
        Table(
            number="8",
            caption="the size of the data sets",
            columns=tuple(
                Column(f"{name}, {what}", questions, metric, None, unit)
                for name, questions in (*SETS, ("MetaQA-3", METAQA_3))
                for what, metric, unit in (
                    ("test questions", "questions", 1.0),
                    ("entities", "graph_nodes", 1.0),
                    ("coverage, %", "graph_coverage", 100.0),
                )
            ),
            rows=(Row("Data set", Run(STATISTICS), (1639, 1429.8, 94.9, 3531, 1305.8, 79.3, 14274, 497.9, 99.0)),),
            why="the paper cuts graphs of 2,000 entities by PageRank-Nibble; those of RoG's layout are larger",
        ),
        Table(
            number="9",
            caption="F1 by hops",
            columns=_of_groups(HOPS),
            rows=three(
                (73.4, 63.3, None, 50.4, 60.7, 40.0),
                (72.0, 69.8, None, 47.4, 69.4, 51.8),
                (74.6, 71.1, None, 48.2, 70.9, 47.7),
            ),
        ),
        Table(
            number="10",
            caption="F1 by the number of answers",
            columns=_of_groups(_ANSWERS),
            rows=three(
                (67.89, 79.39, 75.04, 58.33, 56.90, 53.73, 58.36, 43.62),
                (71.24, 76.30, 74.06, 56.28, 60.40, 55.52, 61.49, 50.08),
                (71.16, 82.31, 77.78, 57.71, 62.09, 56.47, 62.87, 50.33),
            ),
        ),
        Table(
            number="11",
            caption="other graph networks, extended",
            columns=ALL,
            rows=(
                others("GraftNet", None, 66.7, 62.4, None, 45.3, 35.8),
                others("NSM", None, 68.7, 62.8, None, 47.9, 42.0),
                Row("ReaRev", GNN, (None, 76.4, 70.9, None, 52.7, 49.1)),
                Row("LLaMA2-Chat-7B (tuned)", DENSE, (None, 68.7, 54.3, None, 45.5, 41.9), TUNED),
                Row("RoG", ROG, (85.7, 80.0, 70.8, 62.6, 57.8, 56.2), TUNED),
                *BY_REASONER,
            ),
        ),
        Table(
            number="12",
            caption="retrieval augmentation, extended",
            columns=ALL,
            rows=(
                Row("ReaRev + SBERT", GNN, (None, 76.4, 70.9, None, 52.9, 47.8)),
                Row("ReaRev + LM_SR", None, (None, 77.5, 72.8, None, 52.7, 49.1), SECOND),
                Row("None, tuned", ALONE, (65.6, 60.4, 49.7, 40.1, 36.2, 33.8), TUNED),
                *three(
                    (85.7, 80.0, 70.8, 62.6, 57.8, 56.2),
                    (85.7, 80.6, 71.3, 66.8, 61.7, 59.4),
                    (90.7, 82.8, 73.5, 68.7, 62.8, 60.4),
                ),
                *(Row(f"GNN-RAG {name}", None, figures, SECOND) for name, figures in _WITH_SECOND.items()),
                Row("None, not tuned", ALONE, (64.4, None, None, 34.6, None, None)),
                Row("GNN-RAG (i) + (ii), not tuned", None, (86.8, None, None, 62.9, None, None), SECOND),
                Row("GNN-RAG+RA, not tuned", WITH_RA, (88.5, None, None, 62.1, None, None)),
            ),
        ),
        Table(
            number="13",
            caption="Hit of three prompts",
            columns=HIT,
            rows=(
                *_prompted("A", (84.8, 56.4), (86.8, 62.9)),
                *_prompted("B", (84.3, 55.2), (85.2, 61.7)),
                *_prompted("C", (81.6, 51.8), (84.4, 59.4)),
            ),
        ),
        Table(
            number="14",
            caption="Hit with a tuned language model and without tuning",
            columns=HIT,
            rows=(
                Row("RoG, not tuned", ROG, (84.8, 56.4)),
                Row("RoG, tuned", None, (85.7, 62.6), _NOT_TUNED),
                Row("GNN-RAG, not tuned", GNN_RAG, (85.2, 62.7)),
                Row("GNN-RAG, tuned", None, (85.7, 66.7), _NOT_TUNED),
            ),
        ),
        Table(
            number="15",
            caption="Hit by the number of training questions, CWQ",
            columns=(HIT[1],),
            rows=(
                Row("RoG, 30,000", ROG, (62.6,), TUNED),
                Row("GNN-RAG, 27,600", GNN_RAG, (66.7,), TUNED),
                Row("GNN-RAG, 10,000", _FEWER, (63.7,), TUNED),
            ),
        ),
        Table(
            number="16",
            caption="Hit by what retriever and reader are trained on",
            columns=HIT,
            rows=(
                others("UniKGQA", 77.2, 51.2),
                Row("RoG, of one set", None, (81.5, 59.1), _NOT_TUNED),
                Row("RoG, reader not trained", ROG, (84.8, 56.4)),
                Row("RoG, of both sets", None, (85.7, 62.6), _NOT_TUNED),
                Row("GNN-RAG, reader not trained", GNN_RAG, (86.8, 62.9)),
                Row("GNN-RAG, reader of both sets", None, (87.2, 66.8), _NOT_TUNED),
            ),
        ),
        Table(
            number="17",
            caption="dense against sparse graphs",
            columns=ALL,
            rows=(
                Row("Dense, ReaRev + LM_SR", None, (None, 77.5, 72.8, None, 52.7, 49.1), SECOND),
                Row("Sparse, ReaRev + LM_SR", None, (None, 74.2, 69.8, None, 53.3, 49.7), SECOND),
                Row("GNN-RAG, dense", None, (85.0, 80.3, 71.5, 66.2, 61.3, 58.9), SECOND),
                Row("GNN-RAG, sparse", None, (83.4, 78.9, 69.8, 60.6, 55.6, 53.3), SECOND),
            ),
        ),
        Table(
            number="18",
            caption="Hit by the threshold for answers, WebQSP",
            columns=(HIT[0],),
            rows=(_at(0.99, 85.9), _at(0.95, 85.7), _at(0.75, 83.8)),
        ),
        Table(
            number="figure-2",
            caption="F1 of questions of several hops or entities, drawn",
            why="the figures are those of table 3",
        ),
    ),
)
