"""The tables of SimGRAG.

Cai et al., "SimGRAG: Leveraging Similar Subgraphs for Knowledge Graphs Driven Retrieval-Augmented Generation", Findings
of ACL 2025, arXiv:2412.15272.
"""

from __future__ import annotations

from dataclasses import replace

from kg_retrievers.evaluation.papers.table import (
    OTHERS,
    SHOWN,
    STATISTICS,
    Column,
    Paper,
    Questions,
    Row,
    Run,
    Table,
    UseOfLLM,
)

#: The labelled questions that write patterns in place of the paper's language model, where none is given.
_EXAMPLES = 1000

#: About what a question takes with 12 shots: a pattern, and an answer from three subgraphs (tables 10 to 13).
_TOKENS = (4000, 200)

_METAQA = tuple(Questions("metaqa", hops=hops) for hops in (1, 2, 3))
_FACTKG = Questions("factkg")

_HITS = tuple(
    Column(f"MetaQA {questions.hops}-hop, Hits@1", questions, "hits@1", "text_hits@1", 100.0) for questions in _METAQA
)
_VERDICTS = Column("FactKG, accuracy", _FACTKG, None, "text_accuracy", 100.0)

_ALL = (*_HITS, _VERDICTS)

#: Appendix C.1: the candidates on FactKG; the preset has those on MetaQA.
_FACTKG_FIELDS = {"k_nodes": 16_384, "k_relations": 512}


def _asked(label: str = "", fields: dict[str, int] | None = None, llm: UseOfLLM = "optional") -> Run:
    """Return SimGRAG with some settings; as many worked examples write the answer as the pattern (table 3)."""
    fields = fields or {}
    on_factkg = {"factkg": {"fields": {**_FACTKG_FIELDS, **fields}}}
    run = Run("simgrag", label, fields, on_factkg, examples=_EXAMPLES, llm=llm)
    return run if llm == "none" else replace(run, answer_shots=fields.get("shots", 12), calls=2, tokens=_TOKENS)


_SIMGRAG, _RETRIEVAL = _asked(), replace(_asked(llm="none"), of_set={"factkg": None})
_KAPING = Run("kaping", llm="needed", calls=1, tokens=(400, 50))
_ALONE = Run("none", of_set={"factkg": None}, llm="needed", calls=1, tokens=(1000, 50))

_NO_CLAIMS = "a language model alone is asked questions here, and for no verdict on a claim"

_LARGE_PROMPT = "a graph prompt of a language model of 70 billion weights, trained on six GPUs"

_EXAMPLE_TABLES = {"6": "MetaQA's facts", "7": "MetaQA's questions", "8": "DBpedia's facts", "9": "FactKG's claims"}
_PROMPT_TABLES = {
    "10": "the pattern, MetaQA",
    "11": "the pattern, FactKG",
    "12": "the answer, MetaQA",
    "13": "the verdict, FactKG",
}


def _varied(label: str, fields: dict[str, int], *figures: float) -> Row:
    """Return a row of table 3: another number of examples in the prompt, or of subgraphs."""
    run = _asked(label, fields) if fields else _SIMGRAG
    return Row(label.replace("-", " = "), run, figures, needs_llm=label.startswith("shots"))


def _step(name: str, step: str, *figures: float) -> Row:
    """Return a row of table 2: the share of the wrong questions that went wrong at a step."""
    return Row(name, replace(_SIMGRAG, llm="needed"), figures, metric=f"failed_{step}")


def _example(number: str, caption: str) -> Table:
    return Table(number=number, caption=caption, why=SHOWN)


PAPER = Paper(
    name="simgrag",
    title="SimGRAG",
    embeddings="nomic-embed-text, 768 dimensions",
    llm="Llama 3 70B, 4 bits",
    tables=(
        Table(
            number="1",
            caption="answers and verdicts of all approaches",
            columns=_ALL,
            rows=(
                Row("EmbedKGQA", None, (97.5, 98.8, 94.8, None), OTHERS),
                Row("NSM", None, (97.1, 99.9, 98.9, None), OTHERS),
                Row("UniKGQA", None, (97.5, 99.0, 99.1, None), OTHERS),
                Row("GEAR", None, (None, None, None, 77.7), OTHERS),
                Row("ChatGPT", _ALONE, (60.0, 23.0, 38.7, 68.5), _NO_CLAIMS),
                Row("Llama 3 70B", _ALONE, (56.7, 25.2, 42.3, 68.4), _NO_CLAIMS),
                Row("KELP", None, (94.7, 96.0, None, 73.3), OTHERS),
                Row("G-Retriever", None, (98.5, 87.6, 54.9, 61.4), _LARGE_PROMPT),
                Row("KAPING", _KAPING, (90.8, 71.2, 43.0, 75.5)),
                Row("KG-GPT", None, (93.6, 93.6, 88.2, 69.5), OTHERS),
                Row("SimGRAG", _SIMGRAG, (98.0, 98.4, 97.8, 86.8)),
            ),
        ),
        Table(
            number="2",
            caption="the share of the errors that each step made, in percent",
            columns=tuple(replace(one, metric=None, text_metric=None) for one in _ALL),
            rows=(
                _step("Query-to-pattern", "pattern", 89, 64, 31, 49),
                _step("Pattern-to-subgraph", "search", 0, 0, 0, 24),
                _step("Augmented generation", "answer", 11, 36, 69, 27),
            ),
            why="the authors read each error; here rules over the records say which step went wrong",
        ),
        Table(
            number="3",
            caption="other numbers of examples in the prompt, and of subgraphs",
            columns=_ALL,
            rows=(
                _varied("shots-4", {"shots": 4}, 98.6, 96.5, 92.8, 84.0),
                _varied("shots-8", {"shots": 8}, 98.3, 96.4, 98.8, 87.9),
                _varied("shots-12", {}, 98.0, 98.4, 97.8, 86.8),
                _varied("k-1", {"k": 1}, 95.2, 98.2, 97.0, 88.1),
                _varied("k-2", {"k": 2}, 98.0, 97.9, 97.6, 87.6),
                _varied("k-3", {}, 98.0, 98.4, 97.8, 86.8),
            ),
        ),
        Table(
            number="4",
            caption="seconds of the retrieval",
            columns=tuple(replace(one, metric="latency_ms_p50", text_metric=None, unit=0.001) for one in _ALL),
            rows=(
                Row("Vector search", None, (0.02, 0.02, 0.02, 0.59), "its time is not told from that of the search"),
                Row("Optimized retrieval", None, (0.0006, 0.0007, 0.002, 0.15), "likewise"),
                Row("Total", _RETRIEVAL, (0.02, 0.02, 0.02, 0.74), "FactKG has no patterns to take as examples"),
            ),
            why="seconds of another machine; ours are the median, of patterns made without a language model",
        ),
        Table(
            number="5",
            caption="the size of the graphs: entities",
            columns=(
                Column("MetaQA", _METAQA[0], "graph_nodes"),
                Column("FactKG", _FACTKG, "graph_nodes"),
            ),
            rows=(Row("Entity nodes", Run(STATISTICS), (43234, 9912183)),),
            why="relations are counted in both directions there, and FactKG's graph here is the part that claims name",
        ),
        *(_example(number, f"examples of {what}") for number, what in _EXAMPLE_TABLES.items()),
        *(_example(number, f"the prompt for {what}") for number, what in _PROMPT_TABLES.items()),
        Table(
            number="figure-5",
            caption="time against retrieval Hits@1 over a grid of k's",
            why="its points are drawn, without numbers",
        ),
    ),
)
