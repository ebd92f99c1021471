"""The tables of the papers: that they are well formed, name what there is, and become plans."""

from __future__ import annotations

import pytest

from kg_retrievers import KnowledgeGraph, Question, cli  # noqa: F401  the registry loads with the shell
from kg_retrievers.datasets import GraphQuestion
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation import Report
from kg_retrievers.evaluation.papers import PAPERS, find_paper
from kg_retrievers.evaluation.papers.figures import Figure, figure_of, statistics_of
from kg_retrievers.evaluation.papers.plan import PROMPT, Cell, metric_of, plan_table
from kg_retrievers.evaluation.papers.table import STATISTICS, Column, Group, Questions, Row, Run, Table, Training
from kg_retrievers.methods import registry
from kg_retrievers.methods.simgrag.presets import FACTKG

TABLES = [(paper, table) for paper in PAPERS for table in paper.tables]
NAMES = [f"{paper.name} {table.number}" for paper, table in TABLES]

#: How many numbered tables each paper has.
NUMBERED = {"simgrag": 13, "g-retriever": 15, "gnn-rag": 18, "subgraph-rag": 9, "sg-rag": 6}


def test_every_table_of_every_paper_is_listed() -> None:
    numbered = {paper.name: [one.number for one in paper.tables if one.number.isdecimal()] for paper in PAPERS}
    assert numbered == {name: [str(number) for number in range(1, last + 1)] for name, last in NUMBERED.items()}


@pytest.mark.parametrize(("paper", "table"), TABLES, ids=NAMES)
def test_tables_are_well_formed(paper: object, table: Table) -> None:
    assert all(len(row.figures) == len(table.columns) for row in table.rows)
    assert table.state == "whole" or table.reasons
    assert not [row.name for row in table.rows if row.run is None and not row.why]
    assert len({row.name for row in table.rows}) == len(table.rows)


@pytest.mark.parametrize(("paper", "table"), TABLES, ids=NAMES)
def test_rows_name_methods_and_fields_that_there_are(paper: object, table: Table) -> None:
    for cell in plan_table(table, llm=True, causal_lm=True).distinct:
        if cell.run.method == STATISTICS:
            continue
        methods = registry.find_methods(cell.run.method)
        assert cell.run.fields.keys() <= registry.retriever_class(methods).model_fields.keys(), cell.name
        if cell.run.training:
            trainable = {entry.name for entry in registry.trainable()}
            assert cell.run.training.method in trainable
            assert cell.run.training.method in {PROMPT, *(method.name for method in methods)}
        assert not cell.run.examples or methods[0].labels


def test_claims_have_the_candidates_of_simgrags_paper() -> None:
    runs = [row.run for table in find_paper("simgrag").tables for row in table.rows if row.run]
    on_factkg = [run.on("factkg") for run in runs if run.method == "simgrag"]
    asked = [run for run in on_factkg if run is not None]
    assert asked
    assert all(FACTKG.items() <= run.fields.items() for run in asked)


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_a_name_stands_for_one_cell_of_a_paper(paper: object) -> None:
    named: dict[str, Cell] = {}
    for table in paper.tables:  # type: ignore[attr-defined]
        for cell in plan_table(table, llm=True, causal_lm=True).distinct:
            known = named.setdefault(cell.name, cell)
            assert (known.run.fields, known.run.examples, known.model) == (
                cell.run.fields,
                cell.run.examples,
                cell.model,
            ), cell.name


def test_an_unknown_paper_or_table_is_told_the_nearest() -> None:
    with pytest.raises(InvalidArgumentError, match=r"there is no paper 'simrag'; did you mean 'simgrag'\?"):
        find_paper("simrag")
    with pytest.raises(InvalidArgumentError, match=r"SG-RAG has no table '40'; "):
        find_paper("sg-rag").table("40")


# --- plans ------------------------------------------------------------------------------------------------------------

ASKED = Questions("metaqa", hops=1)
BOTH = Column("both", ASKED, "hits@1", "text_hits@1")
WRITTEN = Column("written", ASKED, None, "text_hits@1")
BY_HOPS = Column("two", ASKED, "hit", group=Group("hops", 2))


def table(*rows: Row, columns: tuple[Column, ...] = (BOTH, WRITTEN)) -> Table:
    return Table(number="1", caption="a table", columns=columns, rows=rows)


def test_without_a_language_model_what_needs_one_is_left_out_and_named() -> None:
    rows = (
        Row("alone", Run("none", llm="needed"), (1.0, 1.0)),
        Row("ours", Run("simgrag", llm="optional"), (2.0, 2.0)),
        Row("theirs", None, (3.0, 3.0), "not public"),
    )
    plan = plan_table(table(*rows))
    wanted = "needs a language model: --llm PROVIDER:MODEL"
    assert list(plan.cells) == [(1, 0)]
    assert plan.left_out == {"alone": wanted, "written": wanted, "theirs": "not public"}
    assert not plan.cells[1, 0].reads
    with_llm = plan_table(table(*rows), llm=True)
    assert list(with_llm.cells) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [cell.name for cell in with_llm.distinct] == ["none@metaqa-1-hop.test.llm", "simgrag@metaqa-1-hop.test.llm"]
    assert metric_of(rows[1], BOTH, with_llm.cells[1, 0]) == "text_hits@1"
    assert metric_of(rows[1], BOTH, plan.cells[1, 0]) == "hits@1"


def test_numbers_of_examples_in_the_prompt_are_left_out_without_one() -> None:
    varied = find_paper("simgrag").table("3")
    plan = plan_table(varied)
    assert {varied.rows[at].name for at, _ in plan.cells} == {"k = 1", "k = 2", "k = 3"}
    assert {name for name in plan.left_out if name.startswith("shots")} == {"shots = 4", "shots = 8", "shots = 12"}
    with_llm = plan_table(varied, llm=True)
    assert with_llm.cells[2, 0] == with_llm.cells[5, 0]  # asked once


def test_each_prompt_of_gnn_rag_is_asked_by_its_name() -> None:
    plan = plan_table(find_paper("gnn-rag").table("13"), llm=True)
    asked = {cell.run.label: dict(cell.run.fields) for cell in plan.distinct if cell.run.method == "gnn-rag"}
    assert asked == {"": {}, "prompt-B": {"answer_prompt": "B"}, "prompt-C": {"answer_prompt": "C"}}
    prompts = registry.find_method("gnn-rag").load_retriever().answer_prompts
    assert {"A", "B", "C"} <= prompts.keys()
    assert not plan_table(find_paper("gnn-rag").table("13")).cells


def test_figures_of_one_run_are_asked_once() -> None:
    plan = plan_table(table(Row("ours", Run("simgrag"), (1.0, 2.0)), columns=(BOTH, BY_HOPS)))
    assert len(plan.cells) == 2
    assert len(plan.distinct) == 1


def test_a_model_learns_from_the_set_that_is_asked_unless_the_column_says_another() -> None:
    column = Column("recall", Questions("webqsp"), "answer_recall")
    crossed = Column("crossed", Questions("webqsp"), "answer_recall", learned="cwq")
    run = Run("subgraph-rag", training=Training("subgraph-rag", "mlp"))
    plan = plan_table(table(Row("ours", run, (1.0, 2.0)), columns=(column, crossed)))
    assert [cell.model for cell in plan.distinct] == ["subgraph-rag-mlp.webqsp", "subgraph-rag-mlp.cwq"]
    assert [cell.name for cell in plan.distinct] == ["subgraph-rag@webqsp.test", "subgraph-rag-of-cwq@webqsp.test"]


def test_a_graph_prompt_needs_a_model_to_train_or_one_that_is_trained() -> None:
    run = Run("g-retriever", training=Training(PROMPT))
    written = Column("accuracy", Questions("webqsp"), None, "text_accuracy")
    one = table(Row("prompt", run, (1.0,)), columns=(written,))
    name = "graph-prompt.webqsp"
    assert plan_table(one).left_out == {
        "prompt": f"needs a causal language model: --causal-lm NAME_OR_FOLDER, or --model {name}=FOLDER"
    }
    for given in ({"causal_lm": True}, {"models": [name]}):
        (cell,) = plan_table(one, **given).distinct  # type: ignore[arg-type]
        assert (cell.reads, cell.uses_llm, cell.model) == (True, False, name)


def test_another_split_and_missing_sets() -> None:
    plan = plan_table(table(Row("ours", Run("simgrag"), (1.0, 2.0))), split="dev")
    assert plan.distinct[0].questions == Questions("metaqa", "dev", 1)
    without = plan.without({plan.distinct[0]: {"metaqa": "it is not here"}})
    assert not without.cells
    assert without.left_out["metaqa"] == "it is not here"


def test_what_a_run_is_for_one_set() -> None:
    run = Run("g-retriever", of_set={"webqsp": {"fields": {"edge_cost": 0.5}}})
    assert run.on("webqsp") == Run("g-retriever", fields={"edge_cost": 0.5})
    assert run.on("cwq") == Run("g-retriever")
    assert Run("none", of_set={"factkg": None}).on("factkg") is None


# --- figures ----------------------------------------------------------------------------------------------------------


def test_sizes_of_graphs_are_means_of_those_of_the_questions() -> None:
    small = KnowledgeGraph.from_triples([("a", "r", "b")])
    large = KnowledgeGraph.from_triples([("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d")])
    questions = [
        GraphQuestion("q", answers=("b",), graph=small, id="0"),
        GraphQuestion("q", answers=("x",), graph=large, id="1"),
    ]
    found = statistics_of(questions, None, seed=0)
    assert found["questions"] == Figure(2, 2)
    assert (found["graph_nodes"].value, found["graph_edges"].value, found["graph_coverage"].value) == (3, 2, 0.5)
    assert found["nodes_mean"] == found["graph_nodes"]
    shared = statistics_of([Question("q", answers=("d",))], large, seed=0)
    assert (shared["graph_nodes"], shared["graph_coverage"].value) == (Figure(4, 1), 1.0)
    with pytest.raises(TypeError, match="has no graph of its own"):
        statistics_of([Question("q")], None, seed=0)


def test_figures_scale_with_their_unit() -> None:
    assert Figure(0.5, 4, 0.25, 0.75).scaled(100) == Figure(50, 4, 25, 75)
    assert Figure(0.5, 4).scaled(100) == Figure(50, 4)


def test_groups_have_bounds() -> None:
    assert [count for count in (None, 1, 2, 3) if Group("hops", 2).holds(count)] == [2, 3]
    assert [count for count in (1, 2, 3) if Group("hops", 1, 2).holds(count)] == [1, 2]


def test_a_figure_of_a_run_is_that_of_its_report() -> None:
    from kg_retrievers import GraphIndex, SimGRAGRetriever, default_embeddings, evaluate

    graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")])
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
    asked = [
        Question("Who directed Her?", answers=("Spike Jonze",)),
        Question("Who directed Her?", answers=("Spike Jonze", "Amy Adams")),
    ]
    report: Report = evaluate(retriever, asked)
    found = figure_of(report, "answer_matching_rate")
    assert found is not None
    assert (found.value, found.n) == (0.75, 2)
    assert found.low is not None
    assert found.low <= 0.75
    several = figure_of(report, "recall_macro", Group("answers", 2))
    assert several == Figure(0.5, 1, 0.5, 0.5)
    tokens = figure_of(report, "tokens_mean")
    assert tokens is not None
    assert tokens.value == report.metrics["tokens_mean"]
    assert figure_of(report, "text_hit") is None
    micro = figure_of(report, "f1_micro")
    assert micro is not None
    assert (micro.low, micro.n) == (None, 2)
