"""The tables in the main part of GNN-RAG, and what those of its appendices share with them.

A figure is None, too, where the copy of the paper at hand cannot be read.

C. Mavromatis, G. Karypis, "GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning", arXiv:2405.20139.
"""

from __future__ import annotations

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

_WEBQSP, _CWQ, METAQA_3 = Questions("webqsp"), Questions("cwq"), Questions("metaqa", hops=3)
SETS = (("WebQSP", _WEBQSP), ("CWQ", _CWQ))

#: Hit, H@1 and F1 (section 5): of the answers that the graph network proposes, or of those that are written.
KINDS = {
    "Hit": ("hit", "text_hit"),
    "H@1": ("hits@1", "text_hits@1"),
    "F1": ("f1_macro", "text_f1"),
}


def _columns(*kinds: str, group: Group | None = None, head: str = "{}, {}") -> tuple[Column, ...]:
    """Return the columns of both sets."""
    return tuple(
        Column(head.format(name, kind), questions, *KINDS[kind], 100.0, group)
        for name, questions in SETS
        for kind in kinds
    )


HIT, ALL = _columns("Hit"), _columns("Hit", "H@1", "F1")

_REASONER = Training("gnn-rag")
_ONE_LAYER = Training("gnn-rag", "1-layer", {"layers": 1})

#: About what an answer from the paths takes (table 4), and what RoG's three calls for them do.
_ANSWER, _PATHS = (300, 40), (1200, 150)

GNN_RAG = Run("gnn-rag", training=_REASONER, llm="optional", calls=1, tokens=_ANSWER)
WITH_RA = Run("gnn-rag+rog", training=_REASONER, llm="needed", calls=4, tokens=_PATHS)
GNN = Run("gnn-rag", "alone", training=_REASONER)
ROG = Run("rog", llm="needed", calls=4, tokens=_PATHS)
ALONE = Run("none", llm="needed", calls=1, tokens=(60, 60))
_STEP_BY_STEP = Run("none", "step-by-step", {"chain_of_thought": True}, llm="needed", calls=1, tokens=(80, 200))
DENSE = Run("dense-subgraph", llm="needed", calls=1, tokens=(60000, 40))

TUNED = "the paper tunes the planner or the reader, Llama 2 7B; here --llm is asked as it is"
_ONE_LLM = "one language model a run: --llm names it, and the rows of all models show it"
_REASONERS = "another graph network of others, weaker than the one here"
SECOND = "a second graph network with a language model trained by others (SR) is not here"


def others(name: str, *figures: float | None) -> Row:
    """Return a row of a system of others."""
    return Row(name, None, figures, OTHERS)


def _of_model(name: str, rog: tuple[float, float] | None, *figures: float) -> tuple[Row, ...]:
    """Return the rows of table 6 of one language model: alone, with RoG, with GNN-RAG, with both."""
    alone, gnn_rag, both = figures[:2], figures[2:4], figures[4:6]
    rows = [Row(name, ALONE, alone)]
    if rog:
        rows.append(Row(f"{name} + RoG", ROG, rog))
    if gnn_rag:
        rows += [Row(f"{name} + GNN-RAG", GNN_RAG, gnn_rag), Row(f"{name} + GNN-RAG+RA", WITH_RA, both)]
    return tuple(rows)


def three(*figures: tuple[float | None, ...]) -> tuple[Row, ...]:
    """Return the rows of RoG, GNN-RAG and GNN-RAG+RA, which several tables have."""
    names = (("RoG", ROG), ("GNN-RAG", GNN_RAG), ("GNN-RAG+RA", WITH_RA))
    return tuple(Row(name, run, some) for (name, run), some in zip(names, figures, strict=True))


HOPS = {"1 hop": Group("hops", 1, 1), "2 hops": Group("hops", 2, 2), "3 hops or more": Group("hops", 3)}
_MULTI_HOP, _MULTI_ENTITY = Group("hops", 2), Group("entities", 2)


_COVERAGE = tuple(
    Column(f"{head}, {what}", _WEBQSP, metric, None, unit, HOPS[head])
    for head in ("1 hop", "2 hops")
    for what, metric, unit in (("tokens", "tokens_median", 1.0), ("answer coverage", "coverage", 100.0))
)

_COMPLEX = (
    Column("WebQSP F1, several hops", _WEBQSP, *KINDS["F1"], 100.0, _MULTI_HOP),
    Column("WebQSP F1, several entities", _WEBQSP, *KINDS["F1"], 100.0, _MULTI_ENTITY),
    Column("CWQ F1, several hops", _CWQ, *KINDS["F1"], 100.0, _MULTI_HOP),
    Column("CWQ F1, several entities", _CWQ, *KINDS["F1"], 100.0, _MULTI_ENTITY),
    Column("MetaQA 3-hop H@1", METAQA_3, *KINDS["H@1"], 100.0),
)

_ASSESSED = tuple(
    Column(f"{name}, {what}", questions, metric, text, unit)
    for what, metric, text, unit in (
        ("tokens", "tokens_median", None, 1.0),
        ("Hit@1", "hits@1", None, 100.0),
        ("Hit@10", "hits@10", None, 100.0),
        ("F1", *KINDS["F1"], 100.0),
    )
    for name, questions in SETS
)

_LLMS: dict[str, tuple[float | None, ...]] = {
    "Flan-T5-xl": (31.0, None, None, 14.7, None, None),
    "Alpaca-7B": (51.8, None, None, 27.4, None, None),
    "LLaMA2-Chat-7B": (64.4, None, None, 34.6, None, None),
    "ChatGPT": (66.8, None, None, 39.9, None, None),
    "ChatGPT+CoT": (75.6, None, None, 48.9, None, None),
}
_KAPING = Run("kaping", llm="needed", calls=1, tokens=(400, 40))
_DENSE_ROW = Row("Dense subgraph", DENSE, (70.2, 68.7, 54.3, 47.1, 45.5, 41.9), TUNED)
BY_REASONER = (
    Row("GNN-RAG: GraftNet", None, (82.8, 78.6, 69.8, 58.2, 51.9, 49.4), _REASONERS),
    Row("GNN-RAG: NSM", None, (85.0, 79.6, 70.4, 58.5, 52.5, 50.1), _REASONERS),
    Row("GNN-RAG: ReaRev", GNN_RAG, (85.7, 80.6, 71.3, 66.8, 61.7, 59.4)),
)


#: The tables in the main part of the paper.
TABLES = (
    Table(
        number="1",
        caption="retrieval by the number of layers, WebQSP",
        columns=_COVERAGE,
        rows=(
            Row("RoG", ROG, (150, 87.1, 435, 82.1), TUNED),
            Row("GNN (L = 1)", Run("gnn-rag", "1-layer", training=_ONE_LAYER), (112, 83.6, 2582, 79.8)),
            Row("GNN (L = 3)", GNN, (105, 82.4, 357, 88.5)),
        ),
    ),
    Table(
        number="2",
        caption="answers of all methods",
        columns=ALL,
        rows=(
            others("KV-Mem", None, 46.7, 38.6, None, 21.1, None),
            others("EmbedKGQA", None, 66.6, None, None, None, None),
            others("Rigel", None, 73.3, None, None, None, None),
            others("GraftNet", None, 66.7, 62.4, None, 36.8, 32.7),
            others("NSM", None, 68.1, 62.8, None, 45.9, None),
            others("SR+NSM(+E2E)", None, 69.5, 64.1, None, 50.2, 47.1),
            others("NSM+h", None, 74.3, 67.4, None, 48.8, 44.0),
            others("SQALER", None, 76.1, None, None, None, None),
            others("UniKGQA", None, 77.2, 72.2, None, 51.2, 49.1),
            Row("ReaRev", GNN, (None, 76.4, 70.9, None, 52.9, 47.8)),
            Row("ReaRev + LM_SR", None, (None, None, None, None, None, 49.7), SECOND),
            *(
                Row(name, _STEP_BY_STEP if "CoT" in name else ALONE, figures, _ONE_LLM)
                for name, figures in _LLMS.items()
            ),
            Row("KAPING", _KAPING, (73.9, None, None, None, None, None)),
            others("KD-CoT", 68.6, None, 52.5, 55.7, None, None),
            others("StructGPT", 72.6, None, None, None, None, None),
            others("KB-BINDER", 74.4, None, None, None, None, None),
            others("ToG+LLaMA2-70B", 68.9, None, None, 57.6, None, None),
            others("ToG+ChatGPT", 76.2, None, None, 58.9, None, None),
            others("ToG+GPT-4", None, None, None, None, None, None),
            Row("RoG", ROG, (85.7, 80.0, 70.8, 62.6, 57.8, 56.2), TUNED),
            Row("G-Retriever", None, (None, 70.1, None, None, None, None), "table 3 of G-Retriever has it"),
            Row("GNN-RAG", GNN_RAG, (85.7, 80.6, 71.3, 66.8, 61.7, 59.4), TUNED),
            Row("GNN-RAG+RA", WITH_RA, (90.7, 82.8, 73.5, 68.7, 62.8, 60.4), TUNED),
        ),
    ),
    Table(
        number="3",
        caption="questions of several hops or entities",
        columns=_COMPLEX,
        rows=(
            Row("LLM (no RAG)", ALONE, (48.4, 61.5, 33.7, 32.3, 29.7), TUNED),
            Row("GNN", GNN, (58.8, 70.4, 57.7, 54.2, 98.6)),
            *three(
                (63.3, 65.1, 59.3, 58.3, 84.8),
                (69.8, 82.3, 68.2, 64.8, 98.6),
                (71.1, 88.8, 69.3, 65.6, 98.6),
            ),
        ),
    ),
    Table(
        number="4",
        caption="retrieval augmentation: tokens, ranks of answers, F1",
        columns=_ASSESSED,
        rows=(
            *three(
                (202, 325, 59.9, 25.9, 78.1, 54.5, 70.8, 56.2),
                (144, 207, 76.4, 52.9, 82.6, 64.1, 71.3, 59.4),
                (299, 540, 76.4, 52.9, 89.9, 71.1, 73.5, 60.4),
            ),
            Row("GNN-RAG+Ensemble", None, (156, 281, 77.5, 53.3, 84.7, 66.7, 71.7, 57.5), SECOND),
            Row("GNN", GNN, (None, None, 76.4, 52.9, 82.6, 64.1, 70.9, 47.8)),
        ),
    ),
    Table(number="5", caption="other graph networks, and none", columns=ALL, rows=(_DENSE_ROW, *BY_REASONER)),
    Table(
        number="6",
        caption="Hit of several language models",
        columns=HIT,
        rows=(
            *_of_model("ChatGPT", (81.5, 52.7), 51.8, 39.9, 85.3, 64.1, 87.9, 65.4),
            Row("ChatGPT + ToG", None, (76.2, 58.9), OTHERS),
            *_of_model("Alpaca-7B", (73.6, 44.0), 51.8, 27.4, 76.2, 54.5, 76.5, 50.8),
            *_of_model("LLaMA2-Chat-7B", (84.8, 56.4), 64.4, 34.6, 85.2, 62.7, 88.5, 62.9),
            *_of_model("LLaMA2-Chat-70B", None, 57.4, 39.1),
            Row("LLaMA2-Chat-70B + ToG", None, (68.9, 57.6), OTHERS),
            *_of_model("Flan-T5-xl", (67.9, 37.8), 31.0, 14.7, 74.5, 51.0, 72.3, 41.5),
        ),
        why=_ONE_LLM,
        llm="one a group of rows",
    ),
)
