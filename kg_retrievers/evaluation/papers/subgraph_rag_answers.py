"""The tables of SubgraphRAG on answers from the evidence of other retrievers, and what those on answers share."""

from __future__ import annotations

from dataclasses import replace

from kg_retrievers.evaluation.papers.subgraph_rag_retrieval import (
    COSINE,
    CWQ,
    PCST,
    RETRIEVAL,
    WEBQSP,
    others,
    rog,
)
from kg_retrievers.evaluation.papers.table import Column, Group, Questions, Row, Run, Table

#: About what a question takes with the dialogue before it and 100 triples behind it.
_TOKENS = (3500, 250)

ONE_LLM = "one language model a run: --llm names it, and the rows of all models show it"
SUB = "WebQSP-sub and CWQ-sub leave out questions whose answers the graph lacks; here all of the split are asked"

_FIGURES = {
    "macro-F1": "text_f1",
    "micro-F1": "text_f1_micro",
    "Hit": "text_hit",
    "Hit@1": "text_hits@1",
    "score_h": "score_h",
}


def columns(name: str, questions: Questions, kinds: tuple[str, ...], group: Group | None = None) -> tuple[Column, ...]:
    """Return the columns of written answers of a set."""
    return tuple(Column(f"{name}, {kind}", questions, None, _FIGURES[kind], 100.0, group) for kind in kinds)


def reader(run: Run, k: int = 100) -> Run:
    """Return a run whose evidence a language model reads."""
    tokens = (_TOKENS[0] * k // 100, _TOKENS[1])
    read = replace(run, llm="needed", calls=1, tokens=tokens)
    return read if k == 100 else replace(read, label=f"k-{k}", fields={**run.fields, "k": k})


SUBGRAPH_RAG = reader(RETRIEVAL)
_ALONE = Run("none", llm="needed", calls=1, tokens=(100, 100))
_RANDOM = reader(Run("random", fields={"k": 100}))
_RANDOM_WITHOUT = reader(Run("random", "without-answers", {"k": 100, "without_answers": True}))

PAIR, _SUB_KINDS = ("macro-F1", "Hit"), tuple(_FIGURES)
WHOLE = (*columns("WebQSP", WEBQSP, PAIR), *columns("CWQ", CWQ, PAIR))
SUBS = (*columns("WebQSP-sub", WEBQSP, _SUB_KINDS), *columns("CWQ-sub", CWQ, _SUB_KINDS))


def _of_retrievers(number: str, llm: str, rows: tuple[Row, ...]) -> Table:
    caption = "written answers from the evidence of other retrievers"
    return Table(number=number, caption=caption, columns=(*WHOLE, *SUBS), rows=rows, why=SUB, llm=llm)


_TABLE_7 = _of_retrievers(
    "7",
    "Llama3.1-8B-Instruct",
    (
        Row(
            "SubgraphRAG + Rand",
            _RANDOM,
            (37.69, 60.14, 27.34, 35.85, 37.79, 17.79, 60.74, 54.97, 65.06, 29.97, 29.15, 39.15, 35.11, 52.45),
        ),
        Row(
            "SubgraphRAG + RandNoAns",
            _RANDOM_WITHOUT,
            (21.18, 33.54, 16.4, 22.71, 20.61, 8.64, 33.03, 27.33, 47.29, 16.47, 16.44, 23.0, 19.42, 43.79),
        ),
        Row(
            "SubgraphRAG + NoRetriever",
            _ALONE,
            (35.86, 51.9, 25.64, 32.34, 35.03, 17.01, 51.38, 47.59, 55.57, 27.42, 22.66, 33.95, 30.65, 44.87),
        ),
        Row(
            "SubgraphRAG + cosine similarity",
            reader(COSINE),
            (58.41, 74.14, 34.59, 43.61, 59.26, 37.31, 75.43, 71.2, 73.16, 39.05, 35.48, 49.02, 43.68, 55.72),
        ),
        others(
            "SubgraphRAG + Retrieve-Rewrite-Answer",
            8.96,
            11.43,
            None,
            None,
            9.11,
            5.23,
            11.43,
            10.84,
            63.45,
            None,
            None,
            None,
            None,
            None,
        ),
        others(
            "SubgraphRAG + StructGPT",
            62.14,
            75.0,
            None,
            None,
            62.55,
            44.72,
            75.69,
            73.57,
            80.82,
            None,
            None,
            None,
            None,
            None,
        ),
        Row(
            "SubgraphRAG + G-Retriever",
            reader(PCST),
            (48.91, 64.5, 28.47, 34.58, 49.92, 28.08, 65.88, 62.6, 72.54, 31.55, 32.22, 38.17, 35.22, 58.22),
        ),
        rog(
            "SubgraphRAG + RoG-Sep",
            57.68,
            74.39,
            36.85,
            45.23,
            59.36,
            40.32,
            76.65,
            72.61,
            79.69,
            44.11,
            43.69,
            54.04,
            47.68,
            66.18,
        ),
        Row(
            "SubgraphRAG",
            SUBGRAPH_RAG,
            (70.57, 86.61, 47.16, 56.98, 72.1, 46.56, 88.58, 84.8, 82.42, 54.76, 51.76, 65.8, 59.69, 62.89),
        ),
    ),
)

_TABLE_9 = _of_retrievers(
    "9",
    "GPT-4o-mini",
    (
        Row(
            "SubgraphRAG + Rand",
            _RANDOM,
            (47.7, 68.37, 33.13, 39.82, 47.15, 23.74, 68.57, 64.59, 69.67, 35.55, 34.26, 42.94, 40.48, 54.81),
        ),
        Row(
            "SubgraphRAG + RandNoAns",
            _RANDOM_WITHOUT,
            (36.83, 49.63, 25.69, 30.7, 35.77, 14.62, 48.94, 44.96, 57.12, 26.25, 26.11, 31.6, 29.21, 48.8),
        ),
        Row(
            "SubgraphRAG + NoRetriever",
            _ALONE,
            (47.49, 71.01, 33.43, 42.25, 46.68, 25.53, 70.94, 62.67, 60.22, 35.66, 31.11, 44.66, 39.99, 44.24),
        ),
        Row(
            "SubgraphRAG + cosine similarity",
            reader(COSINE),
            (64.94, 78.19, 41.23, 49.22, 65.26, 43.84, 78.9, 74.15, 73.03, 45.07, 42.27, 53.83, 49.37, 57.06),
        ),
        others(
            "SubgraphRAG + Retrieve-Rewrite-Answer",
            38.26,
            53.62,
            None,
            None,
            37.54,
            19.62,
            53.37,
            50.1,
            67.68,
            None,
            None,
            None,
            None,
            None,
        ),
        others(
            "SubgraphRAG + StructGPT",
            71.62,
            82.68,
            None,
            None,
            71.66,
            59.05,
            82.87,
            80.44,
            81.48,
            None,
            None,
            None,
            None,
            None,
        ),
        Row(
            "SubgraphRAG + G-Retriever",
            reader(PCST),
            (59.28, 75.25, 36.79, 42.23, 59.55, 35.19, 76.01, 72.87, 76.31, 39.55, 39.42, 45.47, 43.29, 57.67),
        ),
        rog(
            "SubgraphRAG + RoG-Sep",
            70.08,
            82.25,
            44.3,
            51.15,
            70.91,
            54.69,
            83.45,
            78.51,
            81.0,
            49.85,
            50.4,
            57.51,
            52.35,
            64.27,
        ),
        Row(
            "SubgraphRAG",
            SUBGRAPH_RAG,
            (77.45, 90.11, 54.13, 62.02, 78.34, 58.44, 91.34, 87.36, 82.21, 61.13, 58.86, 70.01, 65.48, 64.2),
        ),
    ),
)

#: The tables on other retrievers.
TABLES = (_TABLE_7, _TABLE_9)
