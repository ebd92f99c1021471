"""The tables of SubgraphRAG.

M. Li, S. Miao, P. Li, "Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation", ICLR 2025, arXiv:2410.20724.
"""

from __future__ import annotations

from dataclasses import replace

from kg_retrievers.evaluation.papers import subgraph_rag_retrieval
from kg_retrievers.evaluation.papers.subgraph_rag_retrieval import (
    COSINE,
    CWQ,
    PCST,
    RETRIEVAL,
    WEBQSP,
    others,
    rog,
)
from kg_retrievers.evaluation.papers.table import Column, Group, Paper, Questions, Row, Run, Table

#: About what a question takes with the dialogue before it and 100 triples behind it.
_TOKENS = (3500, 250)

_ONE_LLM = "one language model a run: --llm names it, and the rows of all models show it"
_SUB = "WebQSP-sub and CWQ-sub leave out questions whose answers the graph lacks; here all of the split are asked"

_FIGURES = {
    "macro-F1": "text_f1",
    "micro-F1": "text_f1_micro",
    "Hit": "text_hit",
    "Hit@1": "text_hits@1",
    "score_h": "score_h",
}


def _columns(
    name: str, questions: Questions, kinds: tuple[str, ...], group: Group | None = None, learned: str = ""
) -> tuple[Column, ...]:
    """Return the columns of written answers of a set."""
    return tuple(Column(f"{name}, {kind}", questions, None, _FIGURES[kind], 100.0, group, learned) for kind in kinds)


def _reader(run: Run, k: int = 100) -> Run:
    """Return a run whose evidence a language model reads."""
    tokens = (_TOKENS[0] * k // 100, _TOKENS[1])
    read = replace(run, llm="needed", calls=1, tokens=tokens)
    return read if k == 100 else replace(read, label=f"k-{k}", fields={**run.fields, "k": k})


_SUBGRAPH_RAG = _reader(RETRIEVAL)
_ALONE = Run("none", llm="needed", calls=1, tokens=(100, 100))
_RANDOM = _reader(Run("random", fields={"k": 100}))
_RANDOM_WITHOUT = _reader(Run("random", "without-answers", {"k": 100, "without_answers": True}))

_PAIR, _SUB_KINDS = ("macro-F1", "Hit"), tuple(_FIGURES)
_WHOLE = (*_columns("WebQSP", WEBQSP, _PAIR), *_columns("CWQ", CWQ, _PAIR))
_SUBS = (*_columns("WebQSP-sub", WEBQSP, _SUB_KINDS), *_columns("CWQ-sub", CWQ, _SUB_KINDS))

#: The columns of table 6 for questions whose answers the graph holds.
_GROUNDED = tuple(
    Column(f"{name}, {head}", questions, None, metric, 100.0)
    for name, questions in (("WebQSP", WEBQSP), ("CWQ", CWQ))
    for head, metric in (
        ("no answer", "written_refused"),
        ("wrong answers", "written_wrong"),
        ("right, not in the evidence", "written_right_not_in_evidence"),
        ("wrong, not in the evidence", "written_wrong_not_in_evidence"),
    )
)


_K_200, _K_500 = _reader(RETRIEVAL, 200), _reader(RETRIEVAL, 500)
_OTHER_SET = replace(_SUBGRAPH_RAG, label="of-the-other-set", learned="other")
_OTHER_SET_500 = replace(_K_500, label="k-500-of-the-other-set", learned="other")

_TABLE_3 = Table(
    number="3",
    caption="written answers; in brackets the number of triples that are read, else 100",
    columns=_WHOLE,
    rows=(
        others("KD-CoT", 52.5, 68.6, None, 55.7),
        others("ToG (GPT-4)", None, 82.6, None, 67.6),
        others("EtD", None, 82.5, None, 62.0),
        others("StructGPT", None, 74.69, None, None),
        others("Retrieve-Rewrite-Answer", None, 79.36, None, None),
        Row("G-Retriever", _reader(PCST), (53.41, 73.46, None, None)),
        rog("RoG-Joint", 70.26, 86.67, 54.63, 61.94),
        rog("RoG-Sep", 66.45, 82.19, 53.87, 60.55),
        Row("SubgraphRAG + Llama3.1-8B", _SUBGRAPH_RAG, (70.57, 86.61, 47.16, 56.98)),
        Row("SubgraphRAG + Llama3.1-70B", _SUBGRAPH_RAG, (74.7, 86.24, 51.78, 57.89)),
        Row("SubgraphRAG + ChatGPT", _SUBGRAPH_RAG, (69.21, 83.11, 49.13, 56.27)),
        Row("SubgraphRAG + GPT-4o-mini", _SUBGRAPH_RAG, (77.45, 90.11, 54.13, 62.02)),
        Row("SubgraphRAG + GPT-4o", _SUBGRAPH_RAG, (76.46, 89.8, 59.08, 66.69)),
        Row("SubgraphRAG + GPT-4o-mini (200)", _K_200, (77.82, 90.54, 54.69, 63.49)),
        Row("SubgraphRAG + GPT-4o (200)", _K_200, (78.24, 90.91, 59.42, 67.49)),
        Row("SubgraphRAG + GPT-4o-mini (500)", _K_500, (77.67, 91.22, 55.41, 64.97)),
        Row("SubgraphRAG + Llama3.1-8B, of the other set", _OTHER_SET, (66.42, 83.42, 37.96, 48.57)),
        Row("SubgraphRAG + GPT-4o-mini, of the other set", _OTHER_SET, (73.81, 88.08, 44.69, 54.21)),
        Row("SubgraphRAG + GPT-4o-mini (500), of the other set", _OTHER_SET_500, (76.2, 91.22, 50.3, 60.8)),
    ),
    why=_ONE_LLM,
    llm="one a row",
)

_TABLE_4 = Table(
    number="4",
    caption="written answers to questions whose answers the graph holds",
    columns=_SUBS,
    rows=(
        Row("G-Retriever", _reader(PCST), (54.13, 23.84, 74.52, 67.56, 67.97, None, None, None, None, None)),
        rog("RoG-Joint", 72.01, 47.7, 88.9, 82.62, 76.13, 58.61, 52.12, 66.22, 61.17, 55.15),
        rog("RoG-Sep", 67.94, 43.1, 84.03, 77.61, 72.79, 57.69, 52.83, 64.64, 60.64, 54.51),
        Row(
            "SubgraphRAG + Llama3.1-8B",
            _SUBGRAPH_RAG,
            (72.1, 46.56, 88.58, 84.8, 82.42, 54.76, 51.76, 65.8, 59.69, 62.89),
        ),
        Row(
            "SubgraphRAG + Llama3.1-70B",
            _SUBGRAPH_RAG,
            (75.97, 51.64, 87.88, 85.89, 85.57, 61.49, 59.91, 68.43, 65.52, 67.62),
        ),
        Row(
            "SubgraphRAG + ChatGPT",
            _SUBGRAPH_RAG,
            (70.81, 44.73, 85.18, 80.82, 81.53, 56.37, 54.44, 64.4, 60.99, 61.31),
        ),
        Row(
            "SubgraphRAG + GPT-4o-mini",
            _SUBGRAPH_RAG,
            (78.34, 58.44, 91.34, 87.36, 82.21, 61.13, 58.86, 70.01, 65.48, 64.2),
        ),
        Row(
            "SubgraphRAG + GPT-4o", _SUBGRAPH_RAG, (77.61, 56.78, 91.4, 86.4, 81.85, 65.99, 63.18, 73.91, 68.89, 66.57)
        ),
        Row(
            "SubgraphRAG + GPT-4o-mini (200)",
            _K_200,
            (78.66, 58.65, 91.73, 87.04, 81.98, 61.58, 57.47, 71.45, 65.87, 63.66),
        ),
        Row("SubgraphRAG + GPT-4o (200)", _K_200, (79.4, 58.91, 92.43, 87.75, 82.46, 66.48, 61.3, 75.14, 69.42, 66.45)),
        Row(
            "SubgraphRAG + GPT-4o-mini (500)",
            _K_500,
            (78.46, 57.08, 92.43, 88.01, 81.95, 62.18, 56.86, 72.82, 66.57, 62.77),
        ),
        Row(
            "SubgraphRAG + Llama3.1-8B, of the other set",
            _OTHER_SET,
            (67.91, 42.79, 85.25, 81.21, 80.09, 43.03, 40.73, 55.09, 47.58, 56.78),
        ),
        Row(
            "SubgraphRAG + GPT-4o-mini, of the other set",
            _OTHER_SET,
            (74.42, 49.41, 89.1, 84.67, 81.35, 49.47, 45.16, 60.18, 54.18, 58.86),
        ),
        Row(
            "SubgraphRAG + GPT-4o-mini (500), of the other set",
            _OTHER_SET_500,
            (76.83, 52.01, 92.3, 87.43, 81.41, 55.58, 49.13, 67.24, 59.69, 59.87),
        ),
    ),
    why=f"{_ONE_LLM}; {_SUB}",
    llm="one a row",
)

_TABLE_5 = Table(
    number="5",
    caption="written answers by hops",
    columns=tuple(
        column
        for name, questions, hops in (("WebQSP-sub", WEBQSP, (1, 2)), ("CWQ-sub", CWQ, (1, 2, 3)))
        for hop in hops
        for column in _columns(f"{name}, {hop} hops", questions, _PAIR, Group("hops", hop, None if hop == 3 else hop))
    ),
    rows=(
        Row("G-Retriever", _reader(PCST), (56.41, 78.2, 45.73, 65.35, None, None, None, None, None, None)),
        rog("RoG-Joint", 77.05, 92.96, 62.53, 81.54, 59.75, 66.33, 59.7, 68.56, 41.46, 43.27),
        rog("RoG-Sep", 74.5, 89.83, 55.62, 73.45, 59.35, 66.2, 59.45, 67.17, 31.33, 33.33),
        Row(
            "SubgraphRAG (Llama3.1-8B)",
            _SUBGRAPH_RAG,
            (75.5, 91.4, 65.87, 83.62, 51.54, 63.05, 57.52, 68.93, 41.88, 47.37),
        ),
        Row(
            "SubgraphRAG (GPT-4o-mini)",
            _SUBGRAPH_RAG,
            (80.56, 92.86, 74.11, 88.51, 57.36, 67.34, 63.85, 72.74, 51.14, 54.39),
        ),
    ),
    why=f"{_ONE_LLM}; {_SUB}",
    llm="one a row",
)

_TABLE_6 = Table(
    number="6",
    caption="how well written answers keep to the evidence, in percent",
    columns=_GROUNDED,
    rows=(
        rog("RoG-Joint", 0, 45, 3, 26, 0, 54, 10, 35),
        rog("RoG-Sep", 0, 55, 6, 36, 0, 52, 12, 41),
        Row("SubgraphRAG (Llama3.1-8B)", _SUBGRAPH_RAG, (2, 24, 1, 6, 7, 48, 1, 4)),
        Row("SubgraphRAG (GPT4o-mini)", _SUBGRAPH_RAG, (1, 22, 1, 7, 7, 42, 1, 7)),
    ),
    why=f"{_ONE_LLM}; questions whose answers the graph lacks are in the records, and not in this table",
    llm="one a row",
)


def _of_retrievers(number: str, llm: str, rows: tuple[Row, ...]) -> Table:
    caption = "written answers from the evidence of other retrievers"
    return Table(number=number, caption=caption, columns=(*_WHOLE, *_SUBS), rows=rows, why=_SUB, llm=llm)


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
            _reader(COSINE),
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
            _reader(PCST),
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
            _SUBGRAPH_RAG,
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
            _reader(COSINE),
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
            _reader(PCST),
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
            _SUBGRAPH_RAG,
            (77.45, 90.11, 54.13, 62.02, 78.34, 58.44, 91.34, 87.36, 82.21, 61.13, 58.86, 70.01, 65.48, 64.2),
        ),
    ),
)

_FIGURE_4 = Table(
    number="figure-4",
    caption="written answers by the number of triples",
    columns=_WHOLE,
    rows=tuple(Row(f"{k} triples", _reader(RETRIEVAL, k), (None,) * len(_WHOLE)) for k in (50, 100, 200, 500)),
    why="the figure has no numbers",
    llm="Llama3.1-8B-Instruct and GPT-4o-mini",
)

PAPER = Paper(
    name="subgraph-rag",
    title="SubgraphRAG",
    embeddings="gte-large-en-v1.5",
    llm="Llama3.1-8B-Instruct",
    tables=(
        *subgraph_rag_retrieval.TABLES[:2],
        _TABLE_3,
        _TABLE_4,
        _TABLE_5,
        _TABLE_6,
        _TABLE_7,
        subgraph_rag_retrieval.TABLES[2],
        _TABLE_9,
        *subgraph_rag_retrieval.TABLES[3:4],
        _FIGURE_4,
        *subgraph_rag_retrieval.TABLES[4:],
    ),
)
