"""The tables of SubgraphRAG.

M. Li, S. Miao, P. Li, "Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation", ICLR 2025, arXiv:2410.20724.
"""

from __future__ import annotations

from dataclasses import replace

from kg_retrievers.evaluation.papers import subgraph_rag_answers, subgraph_rag_retrieval
from kg_retrievers.evaluation.papers.subgraph_rag_answers import (
    ONE_LLM,
    PAIR,
    SUB,
    SUBGRAPH_RAG,
    SUBS,
    WHOLE,
    columns,
    reader,
)
from kg_retrievers.evaluation.papers.subgraph_rag_retrieval import (
    CWQ,
    PCST,
    RETRIEVAL,
    WEBQSP,
    others,
)
from kg_retrievers.evaluation.papers.table import Column, Group, Paper, Row, Table

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


def _rog(name: str, *figures: float | None) -> Row:
    """Return a row of RoG as a whole."""
    return Row(name, None, figures, "a planner and a reader that are tuned; the shell trains no reader")


_K_200, _K_500 = reader(RETRIEVAL, 200), reader(RETRIEVAL, 500)
_OTHER_SET = replace(SUBGRAPH_RAG, label="of-the-other-set", learned="other")
_OTHER_SET_500 = replace(_K_500, label="k-500-of-the-other-set", learned="other")

_TABLE_3 = Table(
    number="3",
    caption="written answers; in brackets the number of triples that are read, else 100",
    columns=WHOLE,
    rows=(
        others("KD-CoT", 52.5, 68.6, None, 55.7),
        others("ToG (GPT-4)", None, 82.6, None, 67.6),
        others("EtD", None, 82.5, None, 62.0),
        others("StructGPT", None, 74.69, None, None),
        others("Retrieve-Rewrite-Answer", None, 79.36, None, None),
        Row("G-Retriever", reader(PCST), (53.41, 73.46, None, None)),
        _rog("RoG-Joint", 70.26, 86.67, 54.63, 61.94),
        _rog("RoG-Sep", 66.45, 82.19, 53.87, 60.55),
        Row("SubgraphRAG + Llama3.1-8B", SUBGRAPH_RAG, (70.57, 86.61, 47.16, 56.98)),
        Row("SubgraphRAG + Llama3.1-70B", SUBGRAPH_RAG, (74.7, 86.24, 51.78, 57.89)),
        Row("SubgraphRAG + ChatGPT", SUBGRAPH_RAG, (69.21, 83.11, 49.13, 56.27)),
        Row("SubgraphRAG + GPT-4o-mini", SUBGRAPH_RAG, (77.45, 90.11, 54.13, 62.02)),
        Row("SubgraphRAG + GPT-4o", SUBGRAPH_RAG, (76.46, 89.8, 59.08, 66.69)),
        Row("SubgraphRAG + GPT-4o-mini (200)", _K_200, (77.82, 90.54, 54.69, 63.49)),
        Row("SubgraphRAG + GPT-4o (200)", _K_200, (78.24, 90.91, 59.42, 67.49)),
        Row("SubgraphRAG + GPT-4o-mini (500)", _K_500, (77.67, 91.22, 55.41, 64.97)),
        Row("SubgraphRAG + Llama3.1-8B, of the other set", _OTHER_SET, (66.42, 83.42, 37.96, 48.57)),
        Row("SubgraphRAG + GPT-4o-mini, of the other set", _OTHER_SET, (73.81, 88.08, 44.69, 54.21)),
        Row("SubgraphRAG + GPT-4o-mini (500), of the other set", _OTHER_SET_500, (76.2, 91.22, 50.3, 60.8)),
    ),
    why=ONE_LLM,
    llm="one a row",
)

_TABLE_4 = Table(
    number="4",
    caption="written answers to questions whose answers the graph holds",
    columns=SUBS,
    rows=(
        Row("G-Retriever", reader(PCST), (54.13, 23.84, 74.52, 67.56, 67.97, None, None, None, None, None)),
        _rog("RoG-Joint", 72.01, 47.7, 88.9, 82.62, 76.13, 58.61, 52.12, 66.22, 61.17, 55.15),
        _rog("RoG-Sep", 67.94, 43.1, 84.03, 77.61, 72.79, 57.69, 52.83, 64.64, 60.64, 54.51),
        Row(
            "SubgraphRAG + Llama3.1-8B",
            SUBGRAPH_RAG,
            (72.1, 46.56, 88.58, 84.8, 82.42, 54.76, 51.76, 65.8, 59.69, 62.89),
        ),
        Row(
            "SubgraphRAG + Llama3.1-70B",
            SUBGRAPH_RAG,
            (75.97, 51.64, 87.88, 85.89, 85.57, 61.49, 59.91, 68.43, 65.52, 67.62),
        ),
        Row(
            "SubgraphRAG + ChatGPT",
            SUBGRAPH_RAG,
            (70.81, 44.73, 85.18, 80.82, 81.53, 56.37, 54.44, 64.4, 60.99, 61.31),
        ),
        Row(
            "SubgraphRAG + GPT-4o-mini",
            SUBGRAPH_RAG,
            (78.34, 58.44, 91.34, 87.36, 82.21, 61.13, 58.86, 70.01, 65.48, 64.2),
        ),
        Row("SubgraphRAG + GPT-4o", SUBGRAPH_RAG, (77.61, 56.78, 91.4, 86.4, 81.85, 65.99, 63.18, 73.91, 68.89, 66.57)),
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
    why=f"{ONE_LLM}; {SUB}",
    llm="one a row",
)

_HOPS = {1: "1 hop", 2: "2 hops", 3: "3 hops or more"}

_TABLE_5 = Table(
    number="5",
    caption="written answers by hops",
    columns=tuple(
        column
        for name, questions, hops in (("WebQSP-sub", WEBQSP, (1, 2)), ("CWQ-sub", CWQ, (1, 2, 3)))
        for hop in hops
        for column in columns(f"{name}, {_HOPS[hop]}", questions, PAIR, Group("hops", hop, None if hop == 3 else hop))
    ),
    rows=(
        Row("G-Retriever", reader(PCST), (56.41, 78.2, 45.73, 65.35, None, None, None, None, None, None)),
        _rog("RoG-Joint", 77.05, 92.96, 62.53, 81.54, 59.75, 66.33, 59.7, 68.56, 41.46, 43.27),
        _rog("RoG-Sep", 74.5, 89.83, 55.62, 73.45, 59.35, 66.2, 59.45, 67.17, 31.33, 33.33),
        Row(
            "SubgraphRAG (Llama3.1-8B)",
            SUBGRAPH_RAG,
            (75.5, 91.4, 65.87, 83.62, 51.54, 63.05, 57.52, 68.93, 41.88, 47.37),
        ),
        Row(
            "SubgraphRAG (GPT-4o-mini)",
            SUBGRAPH_RAG,
            (80.56, 92.86, 74.11, 88.51, 57.36, 67.34, 63.85, 72.74, 51.14, 54.39),
        ),
    ),
    why=f"{ONE_LLM}; {SUB}",
    llm="one a row",
)

_TABLE_6 = Table(
    number="6",
    caption="how well written answers keep to the evidence, in percent",
    columns=_GROUNDED,
    rows=(
        _rog("RoG-Joint", 0, 45, 3, 26, 0, 54, 10, 35),
        _rog("RoG-Sep", 0, 55, 6, 36, 0, 52, 12, 41),
        Row("SubgraphRAG (Llama3.1-8B)", SUBGRAPH_RAG, (2, 24, 1, 6, 7, 48, 1, 4)),
        Row("SubgraphRAG (GPT4o-mini)", SUBGRAPH_RAG, (1, 22, 1, 7, 7, 42, 1, 7)),
    ),
    why=f"{ONE_LLM}; questions whose answers the graph lacks are in the records, and not in this table",
    llm="one a row",
)


_FIGURE_4 = Table(
    number="figure-4",
    caption="written answers by the number of triples",
    columns=WHOLE,
    rows=tuple(Row(f"{k} triples", reader(RETRIEVAL, k), (None,) * len(WHOLE)) for k in (50, 100, 200, 500)),
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
        subgraph_rag_answers.TABLES[0],
        subgraph_rag_retrieval.TABLES[2],
        subgraph_rag_answers.TABLES[1],
        *subgraph_rag_retrieval.TABLES[3:4],
        _FIGURE_4,
        *subgraph_rag_retrieval.TABLES[4:],
    ),
)
