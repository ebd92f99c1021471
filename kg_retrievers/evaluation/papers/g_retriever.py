"""The tables of G-Retriever.

He et al., "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering", NeurIPS
2024, arXiv:2402.07630.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kg_retrievers.evaluation.papers.table import (
    OTHERS,
    SHOWN,
    STATISTICS,
    SUPPORT,
    Column,
    Paper,
    Questions,
    Row,
    Run,
    Table,
    Training,
)

_EXPLAGRAPHS, _SCENES, _WEBQSP = Questions("explagraphs"), Questions("scene-graphs"), Questions("webqsp")

#: Accuracy where there is one answer, Hit@1 of the written answer else (table 2).
_EXPLA_ACCURACY = Column("ExplaGraphs, accuracy", _EXPLAGRAPHS, None, "text_accuracy")
_SCENE_ACCURACY = Column("SceneGraphs, accuracy", _SCENES, None, "text_accuracy")
_HIT = Column("WebQSP, Hit@1", _WEBQSP, None, "text_hits@1", 100.0)
_MAIN = (_EXPLA_ACCURACY, _SCENE_ACCURACY, _HIT)

#: All facts of a question's graph, for the sets whose questions name no entities.
_ALL: dict[str, Any] = {"method": "kaping", "label": "all", "fields": {"k": 1000, "scope": "graph"}}

#: What the retrieval takes for each set (appendix B.1); of ExplaGraphs, the whole graph.
_OF_SETS: dict[str, dict[str, Any]] = {
    "explagraphs": _ALL,
    "scene-graphs": {"fields": {"k_nodes": 3, "k_relations": 3, "edge_cost": 1.0, "scope": "graph"}},
    "webqsp": {"fields": {"k_nodes": 3, "k_relations": 5, "edge_cost": 0.5, "scope": "graph"}},
}

_RETRIEVED = Run("g-retriever", of_set=_OF_SETS)

#: The nodes and edges that support an answer are asked for.
_SUPPORT = Run(
    "g-retriever",
    "support",
    {**_OF_SETS["scene-graphs"]["fields"], "prompting": SUPPORT},
    llm="needed",
    calls=1,
    tokens=(400, 100),
)

#: The same, but for ExplaGraphs as for SceneGraphs.
_CUT = replace(_RETRIEVED, of_set={**_OF_SETS, "explagraphs": _OF_SETS["scene-graphs"]})
_KAPING = Run("kaping", fields={"scope": "graph"}, llm="needed", calls=1, tokens=(400, 30))
_QUESTION_ONLY = Run("none", llm="needed", calls=1, tokens=(40, 30))
_WHOLE = Run(
    "dense-subgraph",
    of_set={"explagraphs": _ALL, "scene-graphs": _ALL},
    llm="needed",
    calls=1,
    tokens=(1500, 30),
)

_TUNED = "the causal language model is named by --causal-lm; the paper takes the mean of four seeds"
_STEPS = "G-Retriever has this prompt over what it retrieves (`prompting`); over the whole graph, none has"
_READ = "the authors read 100 answers, to questions that are not published; here each answer is looked up in its graph"
_UNTRAINED = "--llm is asked for what supports its answer; no graph prompt is trained to list that"
_SOFT_ALONE = "a graph prompt without the text of the graph, which is trained to answer, and lists nothing"
_MINUTES = "minutes on two other GPUs"


def _prompt(label: str = "", fields: dict[str, Any] | None = None) -> Run:
    """Return a graph prompt that is trained with some settings, over what the retrieval finds."""
    training = Training("graph-prompt", label, fields or {}, evidence="g-retriever")
    name = f"prompt{label and f'-{label}'}"
    of_all = {**_ALL, "label": name, "training": replace(training, evidence="")}
    return Run("g-retriever", name, of_set={**_OF_SETS, "explagraphs": of_all}, training=training)


def _of_whole(label: str, fields: dict[str, Any]) -> Run:
    """Return one over the whole graph."""
    training, name = Training("graph-prompt", f"whole-{label}", fields), f"prompt-whole-{label}"
    of_all = {**_ALL, "label": name}
    return Run("dense-subgraph", name, of_set={"explagraphs": of_all, "scene-graphs": of_all}, training=training)


def _of_k(k: int) -> Run:
    """Return one where other numbers of nodes and edges get prizes."""
    fields = {"k_nodes": k, "k_relations": k, "edge_cost": 0.5, "scope": "graph"}
    training = Training("graph-prompt", f"k-{k}", evidence="g-retriever")
    return Run("g-retriever", f"prompt-k-{k}", fields, training=training)


_PROMPT, _LORA = _prompt(), _prompt("lora", {"setting": "lora"})
_SOFT = _of_whole("tokens", {"setting": "prompt-tuning"})
_LORA_ALONE = _of_whole("lora", {"setting": "lora", "encoder": None, "soft_tokens": 0})


def _shown(number: str, caption: str) -> Table:
    return Table(number=number, caption=caption, why=SHOWN)


PAPER = Paper(
    name="g-retriever",
    title="G-Retriever",
    embeddings="SentenceBert",
    llm="Llama 2 7B",
    tables=(
        _shown("1", "an example of hallucination"),
        Table(
            number="2",
            caption="the size of a graph, on average",
            columns=tuple(
                Column(f"{name}, {what}", questions, f"graph_{what}")
                for name, questions in (("ExplaGraphs", _EXPLAGRAPHS), ("SceneGraphs", _SCENES), ("WebQSP", _WEBQSP))
                for what in ("nodes", "edges")
            ),
            rows=(Row("GraphQA", Run(STATISTICS), (5.17, 4.25, 19.13, 68.44, 1370.89, 4252.37)),),
            why="averages of all splits there, and of the split that is asked here",
        ),
        Table(
            number="3",
            caption="answers of all configurations",
            columns=_MAIN,
            rows=(
                Row("Zero-shot", _WHOLE, (0.5650, 0.3974, 41.06)),
                Row("Zero-CoT", None, (0.5704, 0.5260, 51.30), _STEPS),
                Row("CoT-BAG", None, (0.5794, 0.5680, 39.60), _STEPS),
                Row("KAPING", _KAPING, (0.6227, 0.4375, 52.64)),
                Row("Prompt tuning", _SOFT, (0.5763, 0.6341, 48.34), _TUNED),
                Row("GraphToken", None, (0.8508, 0.4903, 57.05), OTHERS),
                Row("G-Retriever", _PROMPT, (0.8516, 0.8131, 70.49), _TUNED),
                Row("LoRA", _LORA_ALONE, (0.8538, 0.7862, 66.03), _TUNED),
                Row("G-Retriever w/ LoRA", _LORA, (0.8705, 0.8683, 73.79), _TUNED),
            ),
        ),
        Table(
            number="4",
            caption="the size of the graph before and after the retrieval",
            columns=(
                Column("SceneGraphs, tokens", _SCENES, "tokens_mean"),
                Column("SceneGraphs, nodes", _SCENES, "nodes_mean"),
                Column("WebQSP, tokens", _WEBQSP, "tokens_mean"),
                Column("WebQSP, nodes", _WEBQSP, "nodes_mean"),
                Column("ExplaGraphs, tokens", _EXPLAGRAPHS, "tokens_mean"),
                Column("ExplaGraphs, nodes", _EXPLAGRAPHS, "nodes_mean"),
            ),
            rows=(
                Row("Before retrieval", Run(STATISTICS), (1396, 19, 100627, 1371, None, None)),
                Row("After retrieval", _CUT, (235, 5, 610, 18, None, None)),
                Row("Minutes an epoch, before", None, (123.1, None, 18.7, None, None, None), _MINUTES),
                Row("Minutes an epoch, after", None, (86.8, None, 6.2, None, None, None), _MINUTES),
            ),
            why="tokens are counted by an estimate, and not with the tokenizer of Llama 2; ExplaGraphs is not in the "
            "paper's table, which takes its graphs whole; here they are cut as those of SceneGraphs are",
        ),
        Table(
            number="5",
            caption="the share of nodes and edges in answers that the graph holds, SceneGraphs",
            columns=tuple(
                Column(what, _SCENES, what.replace(" ", "_"), None, 100.0)
                for what in ("valid nodes", "valid edges", "fully valid graphs")
            ),
            rows=(
                Row("Baseline", None, (31, 12, 8), _SOFT_ALONE),
                Row("G-Retriever", _SUPPORT, (77, 76, 62), _UNTRAINED),
            ),
            why=_READ,
        ),
        Table(
            number="6",
            caption="G-Retriever without one of its parts, WebQSP",
            columns=(_HIT,),
            rows=(
                Row("w/o graph encoder", _prompt("tokens", {"setting": "prompt-tuning"}), (54.62,), _TUNED),
                Row("w/o projection layer", _prompt("no-projection", {"projection": None}), (69.70,), _TUNED),
                Row("w/o textualized graph", _prompt("no-text", {"show_graph": False}), (56.96,), _TUNED),
                Row("w/o retrieval", _of_whole("encoder", {}), (63.84,), _TUNED),
            ),
        ),
        Table(
            number="7",
            caption="other graph encoders",
            columns=(_HIT, _EXPLA_ACCURACY),
            rows=(
                Row("GCN", _prompt("gcn", {"encoder": "gcn"}), (70.70, 0.8394), _TUNED),
                Row("GAT", _prompt("gat", {"encoder": "gat"}), (70.27, 0.8430), _TUNED),
                Row("Graph Transformer", _PROMPT, (70.49, 0.8516), _TUNED),
            ),
        ),
        Table(
            number="8",
            caption="other language models, WebQSP",
            columns=(_HIT,),
            rows=(
                Row("Llama2-7b", _PROMPT, (70.49,), _TUNED),
                Row("Llama2-13b", _PROMPT, (75.58,), _TUNED),
            ),
            why="one language model a run: --causal-lm names it, and both rows show it",
        ),
        _shown("9", "the texts of graphs"),
        Table(
            number="10",
            caption="other numbers of nodes and edges that get prizes, WebQSP",
            columns=(replace(_HIT, unit=1.0),),
            rows=tuple(
                Row(f"k = {k}", _of_k(k), (figure,), _TUNED)
                for k, figure in ((3, 0.6977), (5, 0.7063), (10, 0.7248), (20, 0.7039))
            ),
        ),
        Table(
            number="11",
            caption="whether the evidence holds the label, WebQSP",
            columns=(Column("retrieval accuracy", _WEBQSP, "label_in_evidence", None, 100.0),),
            rows=(
                Row("KAPING", Run("kaping", fields={"scope": "graph"}), (60.81,)),
                Row("G-Retriever", _RETRIEVED, (70.49,)),
            ),
        ),
        Table(
            number="12",
            caption="answers and time, WebQSP",
            columns=(_HIT,),
            rows=(
                Row("Question only", _QUESTION_ONLY, (61.16,)),
                Row("Textual graph and question", _WHOLE, (41.06,)),
                Row("Prompt tuning", _SOFT, (48.34,), _TUNED),
                Row("G-Retriever", _PROMPT, (70.49,), _TUNED),
                Row("LoRA", _LORA_ALONE, (66.03,), _TUNED),
                Row("G-Retriever w/ LoRA", _LORA, (73.79,), _TUNED),
            ),
            why="its times are those of two other GPUs",
        ),
        *(_shown(str(number), "an example of a creative chat") for number in (13, 14, 15)),
    ),
)
