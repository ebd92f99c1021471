"""The tables of SG-RAG.

A. Saleh, G. Tür, Y. Saygın, "SG-RAG: Multi-Hop Question Answering With Large Language Models Through Knowledge Graphs",
ICNLSP 2024.
"""

from __future__ import annotations

from kg_retrievers.evaluation.papers.table import SHOWN, Column, Paper, Questions, Row, Run, Table

#: The paraphrases of MetaQA (section 5.1), the answer matching rate (section 5.4).
_COLUMNS = tuple(
    Column(f"{hops}-hop", Questions("metaqa", "test_ntm", hops), "answer_matching_rate", "text_recall")
    for hops in (1, 2, 3)
)

#: The labelled questions whose patterns become queries, in place of the paper's templates of each question type.
_SG_RAG = Run("sg-rag", examples=1000, llm="optional", calls=1, tokens=(500, 80))

_ALONE = Run("none", llm="needed", calls=1, tokens=(60, 80))

_WIKIPEDIA = "passages of Wikipedia, which are not published with the paper"

_DRAWN = "the paper draws the questions, and does not say which: --limit draws others"


def _wikipedia(k: int, *figures: float) -> Row:
    return Row(f"RAG (Wiki docs), top {k}", None, figures, _WIKIPEDIA)


def _generated(k: int, *figures: float) -> Row:
    """Return a row of text made from the neighborhood of each entity (figure 5)."""
    run = Run("passages", f"k-{k}", {"k": k}, llm="needed", calls=1, tokens=(100 + 150 * k, 80))
    return Row(f"RAG (generated docs), top {k}", run, figures, "our text is made without a language model")


PAPER = Paper(
    name="sg-rag",
    title="SG-RAG",
    embeddings="not said; only the passages are embedded",
    llm="Llama 3 8B Instruct",
    tables=(
        Table(number="1", caption="examples of wrong answers", why=SHOWN),
        Table(number="2", caption="the schema of MetaQA's graph", why=SHOWN),
        Table(number="3", caption="examples of query templates", why=SHOWN),
        Table(
            number="4",
            caption="answer matching rate on 5,000 paraphrases a hop",
            columns=_COLUMNS,
            rows=(
                Row("LLAMA3-8B", _ALONE, (0.24, 0.13, 0.17)),
                _wikipedia(1, 0.33, 0.19, 0.21),
                _wikipedia(2, 0.36, 0.20, 0.20),
                _wikipedia(3, 0.38, 0.22, 0.20),
                _wikipedia(5, 0.40, 0.23, 0.18),
                _wikipedia(10, 0.42, 0.27, 0.19),
                Row("SG-RAG", _SG_RAG, (0.90, 0.73, 0.58)),
            ),
            why=_DRAWN,
        ),
        Table(
            number="5",
            caption="against text made from the graph, about 1,550 paraphrases a hop",
            columns=_COLUMNS,
            rows=(
                _wikipedia(1, 0.33, 0.19, 0.21),
                _wikipedia(2, 0.35, 0.20, 0.20),
                _wikipedia(3, 0.36, 0.22, 0.20),
                _generated(1, 0.64, 0.15, 0.17),
                _generated(2, 0.66, 0.12, 0.13),
                _generated(3, 0.66, 0.12, 0.16),
                Row("SG-RAG", _SG_RAG, (0.91, 0.72, 0.60)),
            ),
            why=_DRAWN,
        ),
        Table(
            number="6",
            caption="the same with a larger language model",
            columns=_COLUMNS,
            rows=(
                _generated(1, 0.765, 0.286, 0.204),
                _generated(2, 0.776, 0.181, 0.177),
                _generated(3, 0.784, 0.179, 0.180),
                Row("SG-RAG", _SG_RAG, (0.941, 0.815, 0.520)),
            ),
            why=_DRAWN,
            llm="GPT4-Turbo",
        ),
    ),
)
