"""The command reproduce, as a person or a script calls it, on small sets in the published layouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from openai_server import OpenAIServer, Reply

from kg_retrievers.cli.prices import Price, Spent, read_price
from kg_retrievers.cli.reproduce.commands import READS_STATES
from kg_retrievers.core.checkpoint import save_checkpoint
from kg_retrievers.errors import FileFormatError, InvalidArgumentError
from kg_retrievers.evaluation import Report
from kg_retrievers.evaluation.papers import PAPERS
from kg_retrievers.methods.gnn_rag import presets as gnn_rag
from kg_retrievers.methods.subgraph_rag import presets as subgraph_rag

Run = Callable[..., tuple[int, str, str]]

FILMS = {"Her": "Ann", "Up": "Ben", "Jaws": "Cem", "Alien": "Dan", "Brazil": "Eve", "Heat": "Fay"}

_KB = "".join(f"{film}|directed_by|{name}\n{film}|has_genre|Drama\n" for film, name in FILMS.items())
_1_HOP = "".join(f"who directed [{film}]\t{name}\n" for film, name in FILMS.items())
_2_HOP = "".join(f"which genres have the films directed by [{name}]\tDrama\n" for name in FILMS.values())
_3_HOP = "".join(
    f"which films have the genre of the films of [{name}]\t{'|'.join(one for one in FILMS if FILMS[one] != name)}\n"
    for name in FILMS.values()
)
_KINDS = ("movie_to_director\n", "director_to_movie_to_genre\n", "director_to_movie_to_genre_to_movie\n")
_ROWS = [
    {
        "id": str(number),
        "question": f"who directed {film}",
        "answer": [name],
        "q_entity": [film],
        "graph": [[film, "film.film.directed_by", name], [name, "people.person.sibling", "m.1"]],
    }
    for number, (film, name) in enumerate(FILMS.items())
]
_ARGUMENTS = "arg1\targ2\tlabel\tgraph\n" + "".join(
    f"{film} is good.\t{name} made it.\t{'support' if number % 2 else 'counter'}\t({film}; made by; {name})"
    f"({name}; capable of; films)\n"
    for number, (film, name) in enumerate(FILMS.items())
)
_SCENES = {
    str(number): {
        "objects": {
            "1": {"name": film, "attributes": [], "x": 0, "y": 0, "w": 1, "h": 1, "relations": [
                {"name": "on", "object": "2"}]},
            "2": {"name": "table", "attributes": ["red"], "x": 0, "y": 0, "w": 1, "h": 1, "relations": []},
        }
    }
    for number, film in enumerate(FILMS)
}  # fmt: skip
_QUESTIONS = "question,answer,image_id\n" + "".join(f"is there a table,yes,{number}\n" for number in range(len(FILMS)))
_CLAIMS = [
    {"claim": f"{name} directed {film}.", "Label": [True], "Entity_set": [film, name], "types": ["num1"],
     "graph": [[film, "director", name]]}
    for film, name in FILMS.items()
]  # fmt: skip


def write_sets(home: Path) -> None:
    """Write all sets of the papers, each in a folder of its own."""
    files = {"metaqa/kb.txt": _KB, "explagraphs/train_dev.tsv": _ARGUMENTS}
    for hops, (rows, kind) in enumerate(zip((_1_HOP, _2_HOP, _3_HOP), _KINDS, strict=True), 1):
        lines = rows.splitlines(keepends=True)
        for split, part in (("train", lines[:3]), ("dev", lines[3:]), ("test", lines[3:])):
            home_of_hops = f"metaqa/{hops}-hop"
            files[f"{home_of_hops}/qa_{split}.txt"] = files[f"{home_of_hops}/qa_{split}_ntm.txt"] = "".join(part)
            files[f"{home_of_hops}/qa_{split}_qtype.txt"] = kind * len(part)
    for name in ("webqsp", "cwq"):
        for split in ("train", "validation", "test"):
            files[f"{name}/{split}.jsonl"] = "".join(json.dumps(row) + "\n" for row in _ROWS)
    files["scene-graphs/train_sceneGraphs.json"] = json.dumps(_SCENES)
    files["scene-graphs/questions.csv"] = _QUESTIONS
    for split in ("train", "test"):
        files[f"factkg/{split}.jsonl"] = "".join(json.dumps(row) + "\n" for row in _CLAIMS)
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, "utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the sets, to work in."""
    write_sets(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(path: str) -> dict[tuple[str, str], dict[str, object]]:
    """Return the figures of a file by row and column."""
    rows = json.loads(Path(path).read_text("utf-8"))["figures"]
    return {(row["row"], row["column"]): row for row in rows}


# --- what there is ----------------------------------------------------------------------------------------------------


def test_the_tables_are_listed(run: Run) -> None:
    code, out, err = run("reproduce")
    assert (code, err) == (0, "")
    for paper in PAPERS:
        assert f"{paper.title}: kg-retrievers reproduce {paper.name} --table N --data DIR" in out
    code, out, _ = run("reproduce", "sg-rag")
    assert (code, [line.split()[0] for line in out.splitlines()[3:]]) == (0, ["1", "2", "3", "4", "5", "6"])


def test_a_table_that_is_not_asked_says_why(run: Run) -> None:
    code, out, _ = run("reproduce", "gnn-rag", "--table", "17")
    assert code == 0
    assert "Not asked here: a second graph network with a language model trained by others (SR) is not here." in out
    figures = [line.split()[-1] for line in out.splitlines() if line.startswith("GNN-RAG, dense ")]
    assert figures == ["85.0", "80.3", "71.5", "66.2", "61.3", "58.9"]


TABLES = [(paper.name, table.number) for paper in PAPERS for table in paper.tables]


@pytest.mark.parametrize(("paper", "number"), TABLES, ids=[" ".join(one) for one in TABLES])
def test_a_dry_run_of_every_table_passes(run: Run, paper: str, number: str) -> None:
    given = ("--data", "data", "--llm", "openai:gpt-4.1-mini", "--causal-lm", "tiny", "--embeddings", "local:tiny")
    code, out, err = run("reproduce", paper, "--table", number, *given, "--dry-run")
    assert (code, err) == (0, "")
    if "Not asked here" not in out:
        assert "\nNot as in the paper\n- " in out
        assert "estimated: " in out
        assert not Path("reproduced").exists()


def test_the_plan_says_what_is_not_as_in_the_paper(run: Run) -> None:
    options = ("--data", "data", "--limit", "2", "--split", "dev", "--dry-run")
    code, out, _ = run("reproduce", "simgrag", "--table", "1", *options)
    assert code == 0
    for line in (
        "- language model: none; answers are those that the method proposes from the graph; in the paper: Llama 3 70B, "
        "4 bits",
        "- text encoder: static; in the paper: nomic-embed-text, 768 dimensions",
        "- questions: of the split dev; in the paper: test",
        "- questions: at most 2 of each number of hops, drawn with seed 0",
        "6 questions are asked.",
    ):
        assert line in out.splitlines()
    assert "left out: ChatGPT, Llama 3 70B, KAPING, FactKG, accuracy: needs a language model" in out


def test_the_plan_says_which_examples_take_the_place_of_a_language_model(run: Run) -> None:
    asked = ("reproduce", "simgrag", "--table", "1", "--data", "data", "--dry-run")
    out = run(*asked, "--examples-split", "dev")[1]
    assert (
        "- up to 1,000 labelled questions of the split dev (in the paper: train), of as many hops as the questions "
        "that are asked, write patterns, in place of a language model"
    ) in out.splitlines()
    assert "- simgrag with its settings (preset paper, but for the examples below) on metaqa-1-hop.test" in out
    out = run(*asked, "--llm", "openai:gpt-4.1-mini")[1]
    assert "- up to 1,000 labelled questions of the split train write patterns, too" in out.splitlines()
    assert "- simgrag with its settings (preset paper) on metaqa-1-hop.test" in out


def test_claims_are_asked_for_a_verdict_with_the_candidates_of_their_graph(run: Run) -> None:
    asked = ("--data", "data", "--llm", "openai:gpt-4.1-mini", "--dry-run")
    code, out, _ = run("reproduce", "simgrag", "--table", "1", *asked)
    assert code == 0
    commands = [line for line in out.splitlines() if "evaluate" in line and "--method simgrag " in line]
    (claims,) = [line for line in commands if "--format factkg" in line]
    assert "--field k_nodes=16384 --field k_relations=512" in claims
    assert "--answers verdict --answer-shots 12" in claims
    assert all("--answers prompt --answer-shots 12" in line for line in commands if line != claims)
    assert "left out: ChatGPT, FactKG, accuracy, Llama 3 70B, FactKG, accuracy: a language model alone is" in out


def test_models_of_other_language_models_and_embeddings_lie_apart(run: Run) -> None:
    asked = ("reproduce", "g-retriever", "--table", "8", "--data", "data", "--dry-run", "--causal-lm")
    folders = set()
    for more in (("small",), ("large",), ("large", "--embeddings", "hashed")):
        out = run(*asked, *more)[1]
        (trained,) = [line.split() for line in out.splitlines() if "train graph-prompt" in line]
        folders.add(trained[trained.index("--output") + 1])
    home = "reproduced/models/graph-prompt.webqsp"
    assert folders == {f"{home}.small", f"{home}.large", f"{home}.large.hashed"}


def test_a_training_on_the_states_of_tokens_needs_a_sentence_model(run: Run) -> None:
    asked = ("reproduce", "gnn-rag", "--table", "10", "--data", "data", "--dry-run")
    code, _, err = run(*asked)
    assert (code, err.count("\n")) == (2, 1)
    assert "needs --embeddings local:MODEL, since the training reads the states of its tokens" in err
    out = run(*asked, "--embeddings", "local:tiny")[1]
    assert "train gnn-rag" in out
    assert "needs --embeddings" not in out


def test_who_reads_states_is_what_the_presets_say() -> None:
    presets = {"gnn-rag": gnn_rag.TRAINING, "subgraph-rag": subgraph_rag.TRAINING}
    assert tuple(name for name, of in presets.items() if of["paper"].get("tokens") == "states") == READS_STATES


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("reproduce", "simgrag", "--table", "30", "--data", "data"), "SimGRAG has no table '30'; "),
        (
            ("reproduce", "--table", "1", "--data", "data"),
            "--table 1: of which paper? Name one of simgrag, g-retriever, ",
        ),
        (("reproduce", "simgra"), "there is no paper 'simgra'; did you mean 'simgrag'?"),
        (("reproduce", "simgrag", "--table", "1"), "--data must name the folder of the question sets."),
        (
            ("reproduce", "simgrag", "--table", "1", "--data", "none"),
            "MetaQA is not here: wanted kb.txt in none/metaqa or in none itself",
        ),
        (
            ("reproduce", "sg-rag", "--table", "4", "--data", "data", "--split", "dev", "--model", "x=y"),
            "--model: the table has no model 'x'; it has none. Leave it out.",
        ),
        (("reproduce", "sg-rag", "--table", "4", "--data", "data", "--model", "x"), "wanted NAME=FOLDER, but got 'x'"),
        (
            ("reproduce", "sg-rag", "--table", "4", "--data", "data", "--prices", "p.json"),
            "--prices is for a language model, but none is given.",
        ),
        (
            ("reproduce", "g-retriever", "--table", "8", "--data", "data"),
            "nothing of table 8 can be asked: needs a causal language model: --causal-lm NAME_OR_FOLDER, or --model "
            "graph-prompt.webqsp=FOLDER.",
        ),
    ],
)
def test_mistakes_are_told_on_one_line(run: Run, words: tuple[str, ...], told: str) -> None:
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--llm", "foo:bar"), "'foo:bar' cannot be used: "),
        (("--llm", "gpt-4.1-mini"), "wanted \"provider:model\", but got 'gpt-4.1-mini'"),
        (("--model", "subgraph-rag.webqsp=/nope"), "/nope: "),
        (("--model", "subgraph-rag.webqsp=other"), "other holds a model of 'gnn-rag', wanted one of"),
        (("--causal-lm", "/nope"), "--causal-lm: /nope is no folder of a causal language model."),
        (("--records", "file"), "--records: file is a file. Name a folder."),
        (("--records", "file/below"), "file is a file. Name a folder."),
    ],
)
def test_a_plan_that_cannot_run_is_refused(run: Run, words: tuple[str, ...], told: str) -> None:
    save_checkpoint("other", "gnn-rag", {}, {"bias": np.zeros(1, np.float32)})
    Path("file").touch()
    code, _, err = run("reproduce", "subgraph-rag", "--table", "1", "--data", "data", "--dry-run", *words)
    assert (code, err.count("\n")) == (2, 1)
    assert told in err


def test_a_set_that_is_missing_is_left_out_and_named(run: Run, folder: Path) -> None:
    (folder / "data" / "cwq").rename(folder / "elsewhere")
    code, out, _ = run("reproduce", "subgraph-rag", "--table", "1", "--data", "data", "--dry-run")
    assert code == 0
    wanted = "CWQ in the layout of RoG is not here: wanted test*.jsonl or test*.parquet"
    assert f"left out: cwq: {wanted}" in out


@pytest.mark.parametrize(
    ("name", "id", "held", "missing"),
    [
        ("rog", "WebQTest-0", "WebQSP", "CWQ"),
        ("rog", "WebQTest-832_c334509bb5e02cac", "CWQ", "WebQSP"),
        ("rog", "7", "WebQSP", "CWQ"),
        ("RoG-cwq", "7", "CWQ", "WebQSP"),
    ],
)
def test_a_folder_that_is_a_set_is_one_alone(
    run: Run, folder: Path, name: str, id: str, held: str, missing: str
) -> None:
    home = folder / name
    home.mkdir()
    for split in ("train", "validation", "test"):
        (home / f"{split}.jsonl").write_text(json.dumps(_ROWS[0] | {"id": id}) + "\n", "utf-8")
    code, out, _ = run("reproduce", "subgraph-rag", "--table", "1", "--data", name, "--dry-run")
    assert code == 0
    assert f"{missing} in the layout of RoG is not here: wanted " in out
    assert f"or in {name} itself, which is taken for {held} in the layout of RoG" in out
    evaluated = [line for line in out.splitlines() if "kg-retrievers evaluate" in line]
    assert evaluated
    assert all(f"--format {held.lower()}" in line for line in evaluated)


def test_claims_are_no_rows_of_rog(run: Run) -> None:
    code, _, err = run("reproduce", "subgraph-rag", "--table", "2", "--data", "data/factkg", "--dry-run")
    assert code == 2
    assert "WebQSP in the layout of RoG is not here: " in err
    assert "itself, which is taken for FactKG" in err


def test_a_split_that_is_missing_is_told(run: Run, folder: Path) -> None:
    for path in (folder / "data" / "metaqa").glob("*/qa_test*"):
        path.unlink()
    code, _, err = run("reproduce", "simgrag", "--table", "3", "--data", "data", "--dry-run")
    assert (code, err.count("\n")) == (2, 1)
    assert "wanted 'qa_test.txt' or 'vanilla/qa_test.txt' here" in err


def test_a_column_whose_part_is_missing_is_left_out(run: Run, folder: Path) -> None:
    for path in (folder / "data" / "metaqa").glob("*/qa_test*"):
        path.unlink()
    code, out, _ = run("reproduce", "simgrag", "--table", "5", "--data", "data", "--json", "out.json")
    assert code == 0
    assert "left out: metaqa-1-hop.test: data/metaqa/1-hop: wanted 'qa_test.txt'" in out
    ours = {column: row["ours"] for (_, column), row in found("out.json").items()}
    assert ours == {"MetaQA": None, "FactKG": 2.0}


def test_examples_that_are_missing_are_told_by_the_plan(run: Run, folder: Path) -> None:
    for path in (folder / "data" / "metaqa").glob("3-hop/qa_train*"):
        path.unlink()
    words = ("reproduce", "simgrag", "--table", "4", "--data", "data", "--dry-run")
    out = run(*words)[1]
    assert "left out: metaqa-3-hop.train: data/metaqa/3-hop: wanted 'qa_train.txt'" in out
    assert "--hops 2" in out
    assert "--hops 3" not in out
    out = run(*words, "--examples-split", "dev")[1]
    assert "--examples-split dev" in out
    assert "metaqa-3-hop.dev" not in out


def test_what_a_model_learns_from_is_told_by_the_plan(run: Run, folder: Path) -> None:
    (folder / "data" / "cwq" / "validation.jsonl").unlink()
    words = ("reproduce", "subgraph-rag", "--table", "2", "--data", "data", "--dry-run")
    code, out, _ = run(*words)
    assert code == 0
    assert "CWQ in the layout of RoG is not here: wanted validation*.jsonl" in out
    assert "--method subgraph-rag" in out


# --- runs -------------------------------------------------------------------------------------------------------------


def test_a_table_over_one_graph_is_measured_and_goes_on(run: Run) -> None:
    words = ("reproduce", "simgrag", "--table", "1", "--data", "data", "--json", "out.json")
    code, out, _ = run(*words)
    assert code == 0
    ours = found("out.json")["SimGRAG", "MetaQA 1-hop, Hits@1"]
    assert (ours["paper"], ours["ours"], ours["n"], ours["interval"]) == (98.0, 100.0, 3, [100.0, 100.0])
    assert found("out.json")["GEAR", "FactKG, accuracy"]["ours"] is None
    assert "Counted: 0 calls of a language model, 0 tokens of prompts, 0 of replies." in out
    records = Path("reproduced/simgrag/simgrag@metaqa-1-hop.test.jsonl")
    before = records.read_bytes()
    assert len(Report.read(records).records) == 3
    whole = Path("out.json").read_bytes()
    records.write_bytes(b"".join(before.splitlines(keepends=True)[:2]))
    code, out, err = run(*words)
    assert code == 0
    assert f"what was measured before was taken from {records}" in err
    assert len(Report.read(records).records) == 3
    assert Path("out.json").read_bytes() == whole


def test_a_break_before_the_first_record_promises_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kg_retrievers.evaluate", broken)
    words = ("reproduce", "simgrag", "--table", "4", "--data", "data")
    code, _, err = run(*words)
    assert (code, "the same command goes on" in err) == (130, False)
    records = Path("reproduced/simgrag/simgrag@metaqa-1-hop.test.jsonl")
    records.parent.mkdir(parents=True, exist_ok=True)
    records.touch()
    assert f"what was measured is in {records}; the same command goes on from there" in run(*words)[2]


def test_what_is_only_counted_asks_nothing(run: Run) -> None:
    asked = ("reproduce", "g-retriever", "--data", "data", "--limit", "2", "--dry-run", "--table")
    out = run(*asked, "2")[1]
    assert "no question is asked." in out.splitlines()
    assert "What is asked" not in out
    assert "text encoder" not in out
    assert "6 questions are asked." in run(*asked, "4")[1].splitlines()


def test_a_plan_says_what_is_trained(run: Run) -> None:
    asked = ("reproduce", "subgraph-rag", "--table", "8", "--data", "data", "--limit", "2", "--dry-run")
    out = run(*asked)[1]
    (told,) = [line for line in out.splitlines() if " questions are asked" in line]
    assert "; trained first, unless it was before: " in told
    assert "subgraph-rag.cwq" in told


def test_a_run_gives_no_advice_that_it_cannot_follow(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg_retrievers.cli.database.TOLD_TRIPLES", 1)
    for paper, number in (("simgrag", "1"), ("sg-rag", "4")):
        code, _, err = run("reproduce", paper, "--table", number, "--data", "data", "--limit", "1")
        assert code == 0, err
        assert "Indexed " in err or paper == "sg-rag"
        assert "Ask it: " not in err
        assert "--database FILE" not in err
    assert Path("reproduced/databases/metaqa.lbug").exists()


def test_json_on_stdout_is_all_there_is(run: Run) -> None:
    code, out, _ = run("reproduce", "simgrag", "--table", "5", "--data", "data", "--json", "-")
    written = json.loads(out)
    assert (code, written["paper"], written["table"], written["state"]) == (0, "simgrag", "5", "in part")
    assert written["figures"][0]["ours"] == 13  # films, directors, one genre
    assert (written["llm_calls"], written["cost"]) == (0, None)


def test_sizes_of_graphs_are_counted_without_asking(run: Run) -> None:
    words = ("reproduce", "g-retriever", "--table", "2", "--data", "data", "--json", "out.json")
    assert run(*words)[0] == 0
    nodes = found("out.json")["GraphQA", "ExplaGraphs, nodes"]
    assert (nodes["paper"], nodes["ours"]) == (5.17, 3.0)
    assert found("out.json")["GraphQA", "WebQSP, edges"]["ours"] == 2.0


def test_what_answers_list_is_looked_up_in_the_graphs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = "Answer: yes\nNodes:\ntable\nlamp\nEdges:\ntable -> under -> sun"
    with OpenAIServer(*[Reply(reply)] * 4) as peer:
        monkeypatch.setenv("OPENAI_BASE_URL", peer.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        words = ("reproduce", "g-retriever", "--table", "5", "--data", "data", "--llm", "openai:test-model")
        code, _, err = run(*words, "--json", "out.json", "--limit", "1")
    assert code == 0, err
    ours = {
        column: (row["ours"], row["n"]) for (_, column), row in found("out.json").items() if row["ours"] is not None
    }
    assert ours == {"valid nodes": (50.0, 2), "valid edges": (0.0, 1), "fully valid graphs": (0.0, 1)}


# --- prices -----------------------------------------------------------------------------------------------------------


def test_prices_are_those_of_the_model_with_its_provider_or_without(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text('{"small": {"input": 1, "output": 2}, "openai:large": {"input": 3, "output": 4}}', "utf-8")
    assert read_price(path, "openai:small") == Price(input=1, output=2)
    assert read_price(path, "openai:large") == Price(input=3, output=4)
    with pytest.raises(InvalidArgumentError, match="has no price of 'xyz'; it names small, openai:large"):
        read_price(path, "xyz")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "but it is no valid JSON."),
        ("[]", "must be"),
        ('{"m": {"input": -1, "output": 0}}', "m.input must be greater than or equal to 0"),
        ('{"m": {"input": 1}}', "m.output"),
    ],
)
def test_files_of_prices_are_checked(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(text, "utf-8")
    with pytest.raises(FileFormatError, match="the prices of a million tokens, but ") as caught:
        read_price(path, "m")
    assert told in str(caught.value)


def test_a_file_of_prices_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="wanted a file of prices, but it cannot be read"):
        read_price(tmp_path / "none.json", "m")


def test_costs_add_up() -> None:
    cost = Spent(2, 1_000_000, 500_000) + Spent(1, 1_000_000, 0)
    assert cost == Spent(3, 2_000_000, 500_000)
    assert cost.times(0.5) == Spent(2, 1_000_000, 250_000)
    price = Price(input=1.0, output=4.0)
    assert cost.money(price) == 4.0
    assert cost.told(price).endswith(
        "2,000,000 tokens of prompts, 500,000 of replies, 4.00 in the currency of the prices"
    )
