"""The tables of GNN-RAG.

C. Mavromatis, G. Karypis, "GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning", arXiv:2405.20139.
"""

from __future__ import annotations

from dataclasses import replace

from kg_retrievers.evaluation.papers.table import (
    OTHERS,
    STATISTICS,
    Column,
    Group,
    Paper,
    Questions,
    Row,
    Run,
    Table,
    Training,
)

_WEBQSP, _CWQ, _METAQA_3 = Questions("webqsp"), Questions("cwq"), Questions("metaqa", hops=3)
_SETS = (("WebQSP", _WEBQSP), ("CWQ", _CWQ))

#: Hit, H@1 and F1 (section 5): of the answers that the graph network proposes, or of those that are written.
_KINDS = {
    "Hit": ("hit", "text_hit"),
    "H@1": ("hits@1", "text_hits@1"),
    "F1": ("f1_macro", "text_f1"),
}


def _columns(*kinds: str, group: Group | None = None, head: str = "{}, {}") -> tuple[Column, ...]:
    """Return the columns of both sets."""
    return tuple(
        Column(head.format(name, kind), questions, *_KINDS[kind], 100.0, group)
        for name, questions in _SETS
        for kind in kinds
    )


_HIT, _ALL = _columns("Hit"), _columns("Hit", "H@1", "F1")

_REASONER = Training("gnn-rag")
_ONE_LAYER = Training("gnn-rag", "1-layer", {"layers": 1})

#: About what an answer from the paths takes (table 4), and what RoG's three calls for them do.
_ANSWER, _PATHS = (300, 40), (1200, 150)

_GNN_RAG = Run("gnn-rag", training=_REASONER, llm="optional", calls=1, tokens=_ANSWER)
_WITH_RA = Run("gnn-rag+rog", training=_REASONER, llm="needed", calls=4, tokens=_PATHS)
_GNN = Run("gnn-rag", "alone", training=_REASONER)
_ROG = Run("rog", llm="needed", calls=4, tokens=_PATHS)
_ALONE = Run("none", llm="needed", calls=1, tokens=(60, 60))
_DENSE = Run("dense-subgraph", llm="needed", calls=1, tokens=(60000, 40))

_TUNED = "the paper tunes the planner or the reader, Llama 2 7B; here --llm is asked as it is"
_ONE_LLM = "one language model a run: --llm names it, and the rows of all models show it"
_REASONERS = "another graph network of others, weaker than the one here"
_SECOND = "a second graph network with a language model trained by others (SR) is not here"


def _others(name: str, *figures: float | None) -> Row:
    return Row(name, None, figures, OTHERS)


def _at(theta: float, figure: float) -> Row:
    label = f"threshold-{theta}"
    run = _GNN_RAG if theta == 0.95 else replace(_GNN_RAG, label=label, fields={"threshold": theta})
    return Row(f"threshold {theta}", run, (figure,))


def _of_model(name: str, rog: tuple[float, float] | None, *figures: float) -> tuple[Row, ...]:
    """Return the rows of table 6 of one language model: alone, with RoG, with GNN-RAG, with both."""
    alone, gnn_rag, both = figures[:2], figures[2:4], figures[4:6]
    rows = [Row(name, _ALONE, alone)]
    if rog:
        rows.append(Row(f"{name} + RoG", _ROG, rog))
    if gnn_rag:
        rows += [Row(f"{name} + GNN-RAG", _GNN_RAG, gnn_rag), Row(f"{name} + GNN-RAG+RA", _WITH_RA, both)]
    return tuple(rows)


#: The rows of RoG, GNN-RAG and GNN-RAG+RA, which several tables have.
def _three(*figures: tuple[float | None, ...]) -> tuple[Row, ...]:
    names = (("RoG", _ROG), ("GNN-RAG", _GNN_RAG), ("GNN-RAG+RA", _WITH_RA))
    return tuple(Row(name, run, some) for (name, run), some in zip(names, figures, strict=True))


_HOPS = {"1 hop": Group("hops", 1, 1), "2 hops": Group("hops", 2, 2), "3 hops or more": Group("hops", 3)}
_ANSWERS = {
    "1 answer": Group("answers", 1, 1),
    "2 to 4": Group("answers", 2, 4),
    "5 to 9": Group("answers", 5, 9),
    "10 or more": Group("answers", 10),
}
_MULTI_HOP, _MULTI_ENTITY = Group("hops", 2), Group("entities", 2)


def _of_groups(groups: dict[str, Group]) -> tuple[Column, ...]:
    """Return the columns of F1 by groups, set by set."""
    return tuple(
        Column(f"{name}, {head}", questions, *_KINDS["F1"], 100.0, group)
        for name, questions in _SETS
        for head, group in groups.items()
    )


_COVERAGE = tuple(
    Column(f"{head}, {what}", _WEBQSP, metric, None, unit, _HOPS[head])
    for head in ("1 hop", "2 hops")
    for what, metric, unit in (("tokens", "tokens_median", 1.0), ("answer coverage", "coverage", 100.0))
)

_COMPLEX = (
    Column("WebQSP F1, several hops", _WEBQSP, *_KINDS["F1"], 100.0, _MULTI_HOP),
    Column("WebQSP F1, several entities", _WEBQSP, *_KINDS["F1"], 100.0, _MULTI_ENTITY),
    Column("CWQ F1, several hops", _CWQ, *_KINDS["F1"], 100.0, _MULTI_HOP),
    Column("CWQ F1, several entities", _CWQ, *_KINDS["F1"], 100.0, _MULTI_ENTITY),
    Column("MetaQA 3-hop H@1", _METAQA_3, *_KINDS["H@1"], 100.0),
)

_ASSESSED = tuple(
    Column(f"{name}, {what}", questions, metric, text, unit)
    for what, metric, text, unit in (
        ("tokens", "tokens_median", None, 1.0),
        ("Hit@1", "hits@1", None, 100.0),
        ("Hit@10", "hits@10", None, 100.0),
        ("F1", *_KINDS["F1"], 100.0),
    )
    for name, questions in _SETS
)

_LLMS: dict[str, tuple[float | None, ...]] = {
    "Flan-T5-xl": (31.0, None, None, 14.7, None, None),
    "Alpaca-7B": (51.8, None, None, 27.4, None, None),
    "LLaMA2-Chat-7B": (64.4, None, None, 34.6, None, None),
    "ChatGPT": (66.8, None, None, 39.9, None, None),
    "ChatGPT+CoT": (75.6, None, None, 48.9, None, None),
}
_KAPING = Run("kaping", llm="needed", calls=1, tokens=(400, 40))
_FEWER = replace(_GNN_RAG, label="10000", training=Training("gnn-rag", "10000", limit=10_000))
#: Figures of table 12; None also where the copy at hand cannot be read.
_WITH_SECOND: dict[str, tuple[float | None, ...]] = {
    "(ii)": (85.0, 80.3, 71.5, 66.2, 61.3, 58.9),
    "(i) + (ii)": (None, 81.0, 71.7, 65.5, None, 57.5),
    "(ii) + (iii)": (89.9, 82.4, 73.4, 67.9, 63.0, None),
    "(i) + (ii) + (iii)": (90.1, 81.7, None, None, None, None),
}

_DENSE_ROW = Row("Dense subgraph", _DENSE, (70.2, 68.7, 54.3, 47.1, 45.5, 41.9), _TUNED)
_BY_REASONER = (
    Row("GNN-RAG: GraftNet", None, (82.8, 78.6, 69.8, 58.2, 51.9, 49.4), _REASONERS),
    Row("GNN-RAG: NSM", None, (85.0, 79.6, 70.4, 58.5, 52.5, 50.1), _REASONERS),
    Row("GNN-RAG: ReaRev", _GNN_RAG, (85.7, 80.6, 71.3, 66.8, 61.7, 59.4)),
)
_PROMPTS = (("A", 84.8, 56.4, 86.8, 62.9), ("B", 84.3, 55.2, 85.2, 61.7), ("C", 81.6, 51.8, 84.4, 59.4))
_NO_PROMPT = "the shell does not choose among prompts; in Python, `answer_prompt` does"
_NOT_TUNED = "the reader is a tuned language model, which the shell does not train"


PAPER = Paper(
    name="gnn-rag",
    title="GNN-RAG",
    embeddings="all-MiniLM-L6-v2 (SBERT), tokens",
    llm="Llama 2 Chat 7B, tuned",
    tables=(
        Table(
            number="1",
            caption="retrieval by the number of layers, WebQSP",
            columns=_COVERAGE,
            rows=(
                Row("RoG", _ROG, (150, 87.1, 435, 82.1), _TUNED),
                Row("GNN (L = 1)", Run("gnn-rag", "1-layer", training=_ONE_LAYER), (112, 83.6, 2582, 79.8)),
                Row("GNN (L = 3)", _GNN, (105, 82.4, 357, 88.5)),
            ),
        ),
        Table(
            number="2",
            caption="answers of all methods",
            columns=_ALL,
            rows=(
                _others("KV-Mem", None, 46.7, 38.6, None, 21.1, None),
                _others("EmbedKGQA", None, 66.6, None, None, None, None),
                _others("Rigel", None, 73.3, None, None, 48.7, None),
                _others("GraftNet", None, 66.7, 62.4, None, 36.8, 32.7),
                _others("NSM", None, 68.1, 62.8, None, 45.9, 42.4),
                _others("SR+NSM(+E2E)", None, 69.5, 64.1, None, 50.2, 47.1),
                _others("NSM+h", None, 74.3, 67.4, None, 48.8, 44.0),
                _others("SQALER", None, 76.1, None, None, None, None),
                _others("UniKGQA", None, 77.2, 72.2, None, 51.2, 49.1),
                Row("ReaRev", _GNN, (None, 76.4, 70.9, None, 52.9, 47.8)),
                Row("ReaRev + LM_SR", None, (None, 77.5, 72.8, None, 53.3, 49.7), _SECOND),
                *(Row(name, _ALONE, figures, _ONE_LLM) for name, figures in _LLMS.items()),
                Row("KAPING", _KAPING, (73.9, None, None, None, None, None)),
                _others("KD-CoT", 68.6, None, 52.5, 55.7, None, None),
                _others("StructGPT", 72.6, None, None, None, None, None),
                _others("KB-BINDER", 74.4, None, None, None, None, None),
                _others("ToG+LLaMA2-70B", 68.9, None, None, 57.6, None, None),
                _others("ToG+ChatGPT", 76.2, None, None, 58.9, None, None),
                _others("ToG+GPT-4", 82.6, None, None, 69.5, None, None),
                Row("RoG", _ROG, (85.7, 80.0, 70.8, 62.6, 57.8, 56.2), _TUNED),
                Row("G-Retriever", None, (None, 70.1, None, None, None, None), "table 3 of G-Retriever has it"),
                Row("GNN-RAG", _GNN_RAG, (85.7, 80.6, 71.3, 66.8, 61.7, 59.4), _TUNED),
                Row("GNN-RAG+RA", _WITH_RA, (90.7, 82.8, 73.5, 68.7, 62.8, 60.4), _TUNED),
            ),
        ),
        Table(
            number="3",
            caption="questions of several hops or entities",
            columns=_COMPLEX,
            rows=(
                Row("LLM (no RAG)", _ALONE, (48.4, 61.5, 33.7, 32.3, 29.7), _TUNED),
                Row("GNN", _GNN, (58.8, 70.4, 57.7, 54.2, 98.6)),
                *_three(
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
                *_three(
                    (202, 325, 59.9, 25.9, 78.1, 54.5, 70.8, 56.2),
                    (144, 207, 76.4, 52.9, 82.6, 64.1, 71.3, 59.4),
                    (299, 540, 76.4, 52.9, 89.9, 71.1, 73.5, 60.4),
                ),
                Row("GNN-RAG+Ensemble", None, (156, 281, 77.5, 53.3, 84.7, 66.7, 71.7, 57.5), _SECOND),
                Row("GNN", _GNN, (None, None, 76.4, 52.9, 82.6, 64.1, 70.9, 47.8)),
            ),
        ),
        Table(number="5", caption="other graph networks, and none", columns=_ALL, rows=(_DENSE_ROW, *_BY_REASONER)),
        Table(
            number="6",
            caption="Hit of several language models",
            columns=_HIT,
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
        Table(
            number="7",
            caption="calls of the retrieval against Hit, WebQSP",
            columns=(_HIT[0],),
            rows=(
                Row("RoG, 3 calls", _ROG, (85.7,), _TUNED),
                Row("RoG, 1 call", Run("rog", "beam-1", {"beam_width": 1}, llm="needed", calls=2), (77.2,), _TUNED),
                _others("ToG, up to 21 calls", 76.2),
                _others("ToG, 3 calls", 66.3),
                Row("GNN-RAG, no call", _GNN_RAG, (87.2,), _TUNED),
            ),
        ),
        Table(
            number="8",
            caption="the size of the data sets",
            columns=tuple(
                Column(f"{name}, {what}", questions, metric, None, unit)
                for name, questions in (*_SETS, ("MetaQA-3", _METAQA_3))
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
            columns=_of_groups(_HOPS),
            rows=_three(
                (73.4, 63.3, None, 50.4, 60.7, 40.0),
                (72.0, 69.8, None, 47.4, 69.4, 51.8),
                (74.6, 71.1, None, 48.2, 70.9, 47.7),
            ),
        ),
        Table(
            number="10",
            caption="F1 by the number of answers",
            columns=_of_groups(_ANSWERS),
            rows=_three(
                (67.89, 79.39, 75.04, 58.33, 56.90, 53.73, 58.36, 43.62),
                (71.24, 76.30, 74.06, 56.28, 60.40, 55.52, 61.49, 50.08),
                (71.16, 82.31, 77.78, 57.71, 62.09, 56.47, 62.87, 50.33),
            ),
        ),
        Table(
            number="11",
            caption="other graph networks, extended",
            columns=_ALL,
            rows=(
                _others("GraftNet", None, 66.7, 62.4, None, 45.3, 35.8),
                _others("NSM", None, 68.7, 62.8, None, 47.9, 42.0),
                Row("ReaRev", _GNN, (None, 76.4, 70.9, None, 52.7, 49.1)),
                Row("LLaMA2-Chat-7B (tuned)", _DENSE, (None, 68.7, 54.3, None, 45.5, 41.9), _TUNED),
                Row("RoG", _ROG, (85.7, 80.0, 70.8, 62.6, 57.8, 56.2), _TUNED),
                *_BY_REASONER,
            ),
        ),
        Table(
            number="12",
            caption="retrieval augmentation, extended",
            columns=_ALL,
            rows=(
                Row("ReaRev + SBERT", _GNN, (None, 76.4, 70.9, None, 52.9, 47.8)),
                Row("ReaRev + LM_SR", None, (None, 77.5, 72.8, None, 52.7, 49.1), _SECOND),
                Row("None, tuned", _ALONE, (65.6, 60.4, 49.7, 40.1, 36.2, 33.8), _TUNED),
                *_three(
                    (85.7, 80.0, 70.8, 62.6, 57.8, 56.2),
                    (85.7, 80.6, 71.3, 66.8, 61.7, 59.4),
                    (90.7, 82.8, 73.5, 68.7, 62.8, 60.4),
                ),
                *(Row(f"GNN-RAG {name}", None, figures, _SECOND) for name, figures in _WITH_SECOND.items()),
                Row("None, not tuned", _ALONE, (64.4, None, None, 34.6, None, None)),
                Row("GNN-RAG, not tuned", _GNN_RAG, (86.8, None, None, 62.9, None, None)),
                Row("GNN-RAG+RA, not tuned", _WITH_RA, (88.5, None, None, 62.1, None, None)),
            ),
        ),
        Table(
            number="13",
            caption="Hit of three prompts",
            columns=_HIT,
            rows=tuple(
                Row(
                    f"Prompt {letter}, {name}",
                    run if letter == "A" else None,
                    figures,
                    (letter != "A" and _NO_PROMPT) or "",
                )
                for letter, *some in _PROMPTS
                for name, run, figures in (("RoG", _ROG, tuple(some[:2])), ("GNN-RAG", _GNN_RAG, tuple(some[2:])))
            ),
        ),
        Table(
            number="14",
            caption="Hit with a tuned language model and without tuning",
            columns=_HIT,
            rows=(
                Row("RoG, not tuned", _ROG, (84.8, 56.4)),
                Row("RoG, tuned", None, (85.7, 62.6), _NOT_TUNED),
                Row("GNN-RAG, not tuned", _GNN_RAG, (85.2, 62.7)),
                Row("GNN-RAG, tuned", None, (85.7, 66.7), _NOT_TUNED),
            ),
        ),
        Table(
            number="15",
            caption="Hit by the number of training questions, CWQ",
            columns=(_HIT[1],),
            rows=(
                Row("RoG, 30,000", _ROG, (62.6,), _TUNED),
                Row("GNN-RAG, 27,600", _GNN_RAG, (66.7,), _TUNED),
                Row("GNN-RAG, 10,000", _FEWER, (63.7,), _TUNED),
            ),
        ),
        Table(
            number="16",
            caption="Hit by what retriever and reader are trained on",
            columns=_HIT,
            rows=(
                _others("UniKGQA", 77.2, 51.2),
                Row("RoG, of one set", None, (81.5, 59.1), _NOT_TUNED),
                Row("RoG, reader not trained", _ROG, (84.8, 56.4)),
                Row("RoG, of both sets", None, (85.7, 62.6), _NOT_TUNED),
                Row("GNN-RAG, reader not trained", _GNN_RAG, (86.8, 62.9)),
                Row("GNN-RAG, reader of both sets", None, (87.2, 66.8), _NOT_TUNED),
            ),
        ),
        Table(
            number="17",
            caption="dense against sparse graphs",
            columns=_ALL,
            rows=(
                Row("Dense, ReaRev + LM_SR", None, (None, 77.5, 72.8, None, 52.7, 49.1), _SECOND),
                Row("Sparse, ReaRev + LM_SR", None, (None, 74.2, 69.8, None, 53.3, 49.7), _SECOND),
                Row("GNN-RAG, dense", None, (85.0, 80.3, 71.5, 66.2, 61.3, 58.9), _SECOND),
                Row("GNN-RAG, sparse", None, (83.4, 78.9, 69.8, 60.6, 55.6, 53.3), _SECOND),
            ),
        ),
        Table(
            number="18",
            caption="Hit by the threshold for answers, WebQSP",
            columns=(_HIT[0],),
            rows=(_at(0.99, 85.9), _at(0.95, 85.7), _at(0.75, 83.8)),
        ),
        Table(
            number="figure-2",
            caption="F1 of questions of several hops or entities, drawn",
            why="the figures are those of table 3",
        ),
    ),
)
