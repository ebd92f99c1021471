"""The graph prompt: what a language model reads, its soft tokens, answers in chains and workflows, checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from langchain_core.documents import Document
from safetensors.torch import save_file
from small_language_model import build

from kg_retrievers import GraphIndex, HashedEmbeddings, PCSTRetriever
from kg_retrievers.agents import Budget, build_workflow
from kg_retrievers.chains import answer_chain, cited_answer_chain
from kg_retrievers.core.checkpoint import WEIGHTS, load_checkpoint, save_checkpoint
from kg_retrievers.core.cost import CostCounter
from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.errors import BudgetError, InvalidArgumentError, ModelLoadError, ModelMismatchError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptExample, graph_prompt_examples
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.model import METHOD, GraphPromptModel
from kg_retrievers.methods.g_retriever.graph_prompt.network import GraphPromptNetwork, Prompt, TextVectors
from kg_retrievers.methods.g_retriever.graph_prompt.prompts import write_question
from kg_retrievers.testing import tiny_graph

EMBEDDINGS = HashedEmbeddings(16)
SIZES: dict[str, Any] = {"width": 8, "layers": 3, "heads": 2, "projection": 12, "around": ("<s>", "")}
HER = (Triple("Her", "directed_by", "Spike Jonze"), Triple("Her", "has_genre", "Drama"))
QUESTION = "Who directed Her?"
TEXTS = (
    "node_id,node_attr\n0,Her\n1,Spike Jonze\n\nsrc,edge_attr,dst\n0,directed by,1",
    "Question: Who directed Her?\nAnswer:Spike Jonze",
    "Question: Who wrote Adaptation?\nAnswer:Charlie Kaufman",
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model in its folder."""
    return build(tmp_path_factory.mktemp("lm"), TEXTS, hidden=16, heads=2, vocabulary=320, pretrain_steps=2)


@pytest.fixture
def lm(folder: Path) -> CausalLM:
    return CausalLM.load(folder)


def network(lm: CausalLM, seed: int = 0, **config: Any) -> GraphPromptNetwork:
    return GraphPromptNetwork(lm, GraphPromptConfig(**(SIZES | config)), TextVectors(EMBEDDINGS), seed=seed)


def model(lm: CausalLM, seed: int = 0, options: dict[str, Any] | None = None, **config: Any) -> GraphPromptModel:
    """Return an untrained model; what it answers is nonsense, but always the same."""
    made = GraphPromptModel(network(lm, seed, **config), **(options or {}))
    if made.network.config.lora_rank:  # else adapters begin as nothing
        for name, weight in made.network.parameters.items():
            if "lora_B" in name:
                torch.nn.init.normal_(weight, generator=torch.Generator().manual_seed(1))
    return made


def document(triples: Sequence[Triple], labels: dict[str, str] | None = None) -> Document:
    return Document("", metadata={"triples": [list(triple) for triple in triples], "labels": labels or {}})


def asked(question: str = QUESTION, triples: Sequence[Triple] = HER) -> Any:
    return {"question": question, "documents": [document(triples)] if triples else []}


# --- what is read -----------------------------------------------------------------------------------------------------


def read(made: Prompt, lm: CausalLM) -> tuple[str, str, str]:
    return tuple(lm.tokenizer.decode(list(part)) for part in (made.before, made.after, made.label))  # type: ignore[return-value]


def test_the_sequence(lm: CausalLM) -> None:
    """Beginning, soft tokens, graph, question; then the answers and their end."""
    made = network(lm).prompt(QUESTION, HER[:1], {"Her": "Her (2013)"}, ("Spike Jonze", "Jonze"))
    tables = "node_id,node_attr\n0,Her (2013)\n1,Spike Jonze\n\nsrc,edge_attr,dst\n0,directed by,1"
    assert made.text == tables
    assert read(made, lm) == ("<s>", f"{tables}\n\nQuestion: {QUESTION}\nAnswer:", "Spike Jonze|Jonze</s>")
    assert (made.shown, made.triples) == (1, 1)
    assert made.before == (lm.tokenizer.bos_token_id,)
    assert made.graph is not None
    assert made.graph.names == ("Her (2013)", "Spike Jonze")


def test_special_tokens_that_are_written_out_are_text(lm: CausalLM) -> None:
    """Of a graph, a question or an answer; what stands around them has special tokens."""
    lm.tokenizer.add_tokens(["<|user|>"])  # a mark that is not called special
    lm = CausalLM(lm.model, lm.tokenizer, name="x")
    assert lm.encode("<|user|>", special=True) == [lm.tokenizer.convert_tokens_to_ids("<|user|>")]
    fact = Triple("Her</s>", "</s><|user|>", "<s>Spike Jonze")
    made = network(lm, around=("<s>", "</s>")).prompt("Who <s>directed</s>?", [fact], {}, ("Jonze</s>",))
    special = {*lm.tokenizer.all_special_ids, *lm.tokenizer.get_added_vocab().values()}
    assert [token in special for token in made.after] == [False] * (len(made.after) - 1) + [True]
    assert [token in special for token in made.label] == [False] * (len(made.label) - 1) + [True]
    assert "‹s>Spike Jonze" in read(made, lm)[1]  # a mark in the name of an entity is shown as a quotation mark
    assert read(made, lm)[1].endswith("Question: Who <s>directed</s>?\nAnswer:</s>")


def test_ten_thousand_triples(lm: CausalLM) -> None:
    """The text keeps to its tokens and says what it leaves out; the encoder is given all."""
    triples = [Triple(f"item {number}", "next_to", f"item {number + 1}") for number in range(10_000)]
    net = network(lm, max_context_tokens=200)
    made = net.prompt(QUESTION, triples, {}, ("Spike Jonze",))
    assert 0 < made.shown < made.triples == 10_000
    assert made.text.endswith(f"({10_000 - made.shown:,} more facts left out)".replace(",", ""))
    assert len(lm.encode(made.text)) <= 200 < len(lm.encode(made.text)) + 40
    assert made.graph is not None
    assert len(made.graph.relations) == 10_000
    assert torch.isfinite(net.loss([made]))
    assert model(lm, max_context_tokens=200).invoke(asked(triples=triples)) is not None


def test_room_for_question_and_answer(folder: Path) -> None:
    """Within what the language model reads in all, the graph in words gives way to question and answer."""
    lm = CausalLM.load(folder)
    lm.model.config.max_position_embeddings = 150
    net = network(lm, max_answer_tokens=20)
    triples = [Triple(f"item {number}", "next_to", f"item {number + 1}") for number in range(50)]
    made = net.prompt(QUESTION, triples, {})
    assert 150 - 40 < len(made) + 1 + 20 + 1 <= 150
    assert made.shown
    assert len(net.prompt(QUESTION, triples, {}, room=60)) <= 150 - 62
    without = net.prompt(
        QUESTION, triples, {}, room=150 - 2 - 1 - len(lm.encode(write_question(QUESTION, after_graph=True)))
    )
    assert (without.text, without.shown) == ("", 0)
    with pytest.raises(InvalidArgumentError, match="reads 150 tokens in all"):
        net.prompt(QUESTION * 40, triples, {})


def test_chat_templates(lm: CausalLM) -> None:
    assert lm.around() == ("<s>", "")
    lm.tokenizer.chat_template = (
        "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>{{ message.content | trim }}</s>"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    assert lm.around() == ("<s><|user|>", "</s><|assistant|>")
    lm.tokenizer.chat_template = "{{ messages[0].content }} {{ messages[0].content }}"
    with pytest.raises(InvalidArgumentError, match="what the user says once, but gives"):
        lm.around()


# --- a batch is what its parts are ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"encoder": "gat"},
        {"encoder": "gcn"},
        {"soft_tokens": 4},
        {"projection": None, "soft_tokens": 2, "heads": 3, "width": 9},
        {"encoder": None, "soft_tokens": 2},
        {"lora_rank": 2},
    ],
)
def test_losses_of_a_batch_are_those_of_its_parts(lm: CausalLM, config: dict[str, Any]) -> None:
    """Whatever is padded: graphs and answers of different lengths, and a question without a graph."""
    net = model(lm, **config).network
    rows = [(HER, ("Spike Jonze",)), ((), ("Nobody", "No one")), (HER[:1], ("x",))]
    prompts = [net.prompt(QUESTION, triples, {}, answers) for triples, answers in rows]
    alone = sum(net.loss([prompt]) * len(prompt.label) for prompt in prompts)
    together = net.loss(prompts) * sum(len(prompt.label) for prompt in prompts)
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6)


def test_the_loss_is_that_of_the_answer_alone(lm: CausalLM) -> None:
    """Against the language model's own scores over the whole sequence."""
    net = network(lm)
    made = net.prompt(QUESTION, HER, {}, ("Spike Jonze",))
    embed = lm.model.get_input_embeddings()
    rows = [embed(torch.tensor(part)) for part in (made.before, made.after + made.label)]
    [soft] = net._graph_tokens([made])
    logits = lm.model(inputs_embeds=torch.cat([rows[0], soft, rows[1]])[None]).logits[0]
    scores = logits[-len(made.label) - 1 : -1].log_softmax(-1)
    expected = -scores[torch.arange(len(made.label)), torch.tensor(made.label)].mean()
    torch.testing.assert_close(net.loss([made]), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("config", [{}, {"encoder": None, "soft_tokens": 2}, {"lora_rank": 2}])
def test_answers_are_the_same_alone_together_and_in_parts(lm: CausalLM, config: dict[str, Any]) -> None:
    made = model(lm, options={"max_new_tokens": 7}, **config)
    inputs = [asked(), asked("And who wrote Adaptation, and why?", HER[:1]), asked("?", ())]
    alone = [made.invoke(value) for value in inputs]
    assert alone == made.batch(inputs) == ["".join(made.stream(value)) for value in inputs]
    assert any(alone)
    written = made.network.generate(made.prompt(inputs[0]), 7)
    assert alone[0] == lm.tokenizer.decode(written, skip_special_tokens=True).strip()


def test_an_answer_ends_where_the_model_says(lm: CausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any of its stops, those of a chat model too; and letters are not cut in parts."""
    made = model(lm, options={"max_new_tokens": 9})
    prompt = made.prompt(asked())
    said = made.network.generate(prompt, 9)
    lm.model.generation_config.eos_token_id = [lm.tokenizer.eos_token_id, said[3]]
    assert made.network.generate(prompt, 9) == said[: said.index(said[3]) + 1]
    lm.model.generation_config.eos_token_id = 9
    assert lm.stops == (lm.tokenizer.eos_token_id, 9)

    def write(prompt: Prompt, limit: int, streamer: Any) -> list[int]:
        for token in lm.encode(" Amélie, 宮崎 \n"):
            streamer.put(torch.tensor([token]))
        return [1]

    monkeypatch.setattr(made.network, "generate", write)
    parts = [part for part in made.stream(asked()) if part]
    assert len(parts) > 1
    assert "".join(parts) == made.invoke(asked()) == "Amélie, 宮崎"
    assert all("\ufffd" not in part for part in parts)


def test_an_error_of_the_language_model_is_raised(lm: CausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """It happens on another thread, which nobody waits for in vain."""

    def fail(*values: Any, **options: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(lm.model, "generate", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        model(lm).invoke(asked())


# --- evidence, chains, workflows --------------------------------------------------------------------------------------


def test_without_evidence(lm: CausalLM) -> None:
    made = model(lm, options={"max_new_tokens": 4})
    prompt = made.prompt(asked(triples=()))
    assert (prompt.graph, prompt.soft, prompt.triples) == (None, 0, 0)
    assert isinstance(made.invoke(asked(triples=())), str)
    made.empty_graph = "raise"
    with pytest.raises(InvalidArgumentError, match="there is no triple and no entity in the evidence"):
        made.invoke(asked(triples=()))


@pytest.fixture
def retriever() -> PCSTRetriever:
    return PCSTRetriever.from_index(GraphIndex.build(tiny_graph(), EMBEDDINGS))


async def test_in_chains_and_workflows(lm: CausalLM, retriever: PCSTRetriever) -> None:
    """What stands where `prompt | llm` stands: a chain, one with citations, a workflow."""
    made = model(lm, options={"max_new_tokens": 5})
    expected = made.invoke({"question": QUESTION, "documents": retriever.invoke(QUESTION)})
    chain = answer_chain(retriever, made)
    assert chain.invoke(QUESTION) == await chain.ainvoke(QUESTION) == expected
    assert "".join(chain.stream(QUESTION)) == expected
    assert len(list(chain.stream(QUESTION))) > 1
    assert "".join([part async for part in chain.astream(QUESTION)]) == expected
    assert chain.batch([QUESTION, QUESTION]) == [expected] * 2
    assert cited_answer_chain(retriever, made).invoke(QUESTION)["answer"] == expected
    workflow = build_workflow(retriever, made)
    state = workflow.invoke({"question": QUESTION})
    assert state["answer"] == expected
    assert (await workflow.ainvoke({"question": QUESTION}))["answer"] == expected


async def test_callbacks_see_a_call_of_a_chat_model(lm: CausalLM, retriever: PCSTRetriever) -> None:
    """Workflows count its calls, keep to their budgets and stream its tokens."""
    made = model(lm, options={"max_new_tokens": 5})
    given = {"question": QUESTION, "documents": retriever.invoke(QUESTION)}
    expected, prompt = made.invoke(given), made.prompt(given)
    assert "network=" not in repr(made._writing(given))  # which tracers record
    workflow = build_workflow(retriever, made)
    cost = workflow.invoke({"question": QUESTION})["cost"]
    assert (cost["llm_calls"], cost["input_tokens"]) == (1, len(prompt) + made.config.soft_tokens)
    assert 0 < cost["output_tokens"] <= 5
    parts = list(workflow.stream({"question": QUESTION}, stream_mode="messages"))
    assert len(parts) > 1
    assert "".join(part.text for part, _ in parts) == expected
    parts = [part async for part in workflow.astream({"question": QUESTION}, stream_mode="messages")]
    assert "".join(part.text for part, _ in parts) == expected
    stopped = build_workflow(retriever, made, budget=Budget(llm_calls=0)).invoke({"question": QUESTION})["stopped"]
    assert "no more calls of a language model" in stopped
    counter = CostCounter()
    made.batch([asked(), asked(triples=())], {"callbacks": [counter]})
    assert counter.llm_calls == 2
    counter = CostCounter(llm_calls=1)
    answers = made.batch([asked(), asked()], {"callbacks": [counter]}, return_exceptions=True)
    assert sorted(isinstance(answer, str) for answer in answers) == [False, True]
    assert any(isinstance(answer, BudgetError) for answer in answers)
    assert await made.abatch([asked(), asked()]) == made.batch([asked(), asked()])


@pytest.mark.parametrize(
    "value", ["Who?", {"question": QUESTION}, {"question": " ", "documents": []}, {"documents": []}]
)
def test_what_cannot_be_answered(lm: CausalLM, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r'wanted {"question": text, "documents": list of Documents}'):
        model(lm).invoke(value)


# --- examples ---------------------------------------------------------------------------------------------------------


def test_examples_of_questions(retriever: PCSTRetriever) -> None:
    """Those without an answer are left out; where no entity is found, the graph is empty."""
    questions = [
        Question("Who directed 千と千尋の神隠し?", answers=("Q55400",)),
        Question("Who?"),
        Question("Xyzzy qwrt?", answers=("Her",)),
    ]
    graph = tiny_graph()
    found, nothing = graph_prompt_examples(retriever, questions, label=graph.label)
    assert found.answers == ("宮崎駿",)
    assert Triple("Q155653", "directed_by", "Q55400") in found.triples
    assert found.labels["Q155653"] == "千と千尋の神隠し"
    assert (nothing.question, nothing.answers) == ("Xyzzy qwrt?", ("Her",))


def test_objects_without_relations_reach_the_model(lm: Any) -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b")], labels={"c": "red lamp"})
    example = GraphPromptExample.of_graph(GraphQuestion("What is red?", answers=("lamp",), graph=graph, id="0"))
    assert (example.entities, example.labels["c"]) == (("c",), "red lamp")
    assert GraphPromptExample.of_documents("What is red?", ("lamp",), example.input["documents"]) == example
    made = model(lm)
    prompt = made.prompt(example.input)
    assert "2,red lamp" in prompt.text
    assert prompt.graph is not None
    assert prompt.graph.names == ("a", "b", "red lamp")
    alone = GraphPromptExample("What is red?", ("lamp",), (), {"c": "red lamp"}, ("c",))
    assert "0,red lamp" in made.prompt(alone.input).text
    assert isinstance(made.invoke(alone.input), str)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((" ", ("a",)), "question must not be blank, but got ' '"),
        (("Who?", ()), r"answers must have at least 1 item, not 0, but got \(\)"),
        (("Who?", ("",)), r"answers\.0 must not be blank, but got ''"),
        (("Who?", "Jonze"), "GraphPromptExample: answers must be a list, but got 'Jonze'"),
        (("Who?", ("a",), (("a", "b"),)), r"triples\.0\.2 is missing in \('a', 'b'\)"),
        (("Who?", ("a",), (("a", "b", 3),)), r"triples\.0\.2 must be a valid string, but got 3"),
        (("Who?", ("a",), (), {"a": 3}), r"labels\.a must be a valid string, but got 3"),
    ],
)
def test_examples_that_are_none(values: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        GraphPromptExample(*values)


# --- settings ---------------------------------------------------------------------------------------------------------


def test_language_models_that_are_refused(lm: CausalLM, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"cannot be adapted: .*\{'gate'\} not found"):
        network(lm, lora_rank=2, lora_targets=("gate",))
    with pytest.raises(ModelLoadError, match="no causal language model could be loaded"):
        CausalLM.load(tmp_path)
    with pytest.raises(ModelLoadError, match="no causal language model could be loaded"):
        CausalLM.load(folder, device="gpu")
    with pytest.raises(ModelLoadError, match="int3"):
        CausalLM.load(folder, dtype="int3")
    frozen = model(lm)
    network(lm, lora_rank=2)
    assert not [name for name in frozen.network.weights if "lora" in name]
    for refused in (lambda: network(lm), lambda: frozen.invoke(asked())):
        with pytest.raises(InvalidArgumentError, match="adapters already"):
            refused()
    lm.tokenizer.eos_token = None
    with pytest.raises(InvalidArgumentError, match="no token that ends a text"):
        CausalLM(CausalLM.load(folder).model, lm.tokenizer, name="x")


def test_missing_weights_are_not_drawn(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "lm")
    weights = CausalLM.load(folder).model.state_dict()
    some = {name: weight.clone() for name, weight in weights.items() if "norm" not in name}
    save_file(some, tmp_path / "lm" / WEIGHTS)
    with pytest.raises(ModelLoadError, match=r"its file has no weights .*norm"):
        CausalLM.load(tmp_path / "lm")


def test_pickled_weights_are_not_read(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "lm")
    weights = CausalLM.load(folder).model.state_dict()
    (tmp_path / "lm" / "model.safetensors").unlink()
    torch.save(weights, tmp_path / "lm" / "pytorch_model.bin")
    with pytest.raises(ModelLoadError, match="safetensors"):
        CausalLM.load(tmp_path / "lm")


# --- on disk ----------------------------------------------------------------------------------------------------------

SAVED = pytest.mark.parametrize(
    "config",
    [{}, {"lora_rank": 2}, {"encoder": None, "soft_tokens": 2}, {"encoder": None, "soft_tokens": 0, "lora_rank": 2}],
)


@SAVED
def test_saved_and_read(folder: Path, tmp_path: Path, config: dict[str, Any]) -> None:
    """Only what was trained is written, as safetensors; it gives the same answers."""
    made = model(CausalLM.load(folder), seed=5, options={"max_new_tokens": 9}, **config)
    made.training = {"examples": 3}
    made.save_pretrained(tmp_path)
    again = GraphPromptModel.from_pretrained(tmp_path, EMBEDDINGS, max_new_tokens=9)
    inputs = [asked(), asked("Who wrote Adaptation?", HER[:1]), asked(triples=())]
    assert again.batch(inputs) == made.batch(inputs)
    assert (again.config, again.training) == (made.config, {"examples": 3})
    assert [path.name for path in tmp_path.rglob("*")] == ["model.safetensors"]
    for name, weight in made.network.parameters.items():
        assert torch.equal(weight, again.network.parameters[name])


def test_what_does_not_fit_is_refused(folder: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    model(CausalLM.load(folder)).save_pretrained(saved)
    with pytest.raises(ModelMismatchError, match=r"embeddings .*HashedEmbeddings.* 16 numbers, but got .* with 8"):
        GraphPromptModel.from_pretrained(saved, HashedEmbeddings(8))
    wide = build(tmp_path / "wide", TEXTS, hidden=32, heads=2, vocabulary=320)
    with pytest.raises(
        ModelMismatchError, match=r"trained with .*, but .*wide.* has another vocabulary or other weights"
    ):
        GraphPromptModel.from_pretrained(saved, EMBEDDINGS, wide)
    words = build(tmp_path / "words", ["zyx", "wvu"], hidden=16, heads=2, vocabulary=320)
    with pytest.raises(ModelMismatchError, match=r"words.* has another vocabulary"):
        GraphPromptModel.from_pretrained(saved, EMBEDDINGS, words)
    other = build(tmp_path / "other", TEXTS, hidden=16, heads=2, vocabulary=320, seed=1)
    with pytest.raises(ModelMismatchError, match=r"other.* has another vocabulary"):
        GraphPromptModel.from_pretrained(saved, EMBEDDINGS, other)
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    assert GraphPromptModel.from_pretrained(saved, EMBEDDINGS, moved).network.lm.name == str(moved)


def rewrite(saved: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config, weights = load_checkpoint(saved, METHOD)
    change(config)
    save_checkpoint(saved, METHOD, config, weights)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda config: config["config"].update(width=10), ModelLoadError, "other names or shapes"),
        (lambda config: config["config"].update(encoder="rnn"), ModelLoadError, "encoder must be 'transformer'"),
        (lambda config: config["config"].update(encoder=None), ModelLoadError, "other names or shapes"),
        (lambda config: config.pop("config"), ModelLoadError, "not those of a graph-prompt model: 'config'"),
        (lambda config: config.update(language_model=None), ModelLoadError, "not those of a graph-prompt model"),
        (lambda config: config["config"].update(lora_rank=3), ModelLoadError, "other names or shapes"),
        (lambda config: config["language_model"].update(name="/none"), ModelLoadError, "no causal language model"),
    ],
)
def test_damaged_configs(folder: Path, tmp_path: Path, change: Any, error: type[Exception], message: str) -> None:
    model(CausalLM.load(folder), lora_rank=2).save_pretrained(tmp_path)
    rewrite(tmp_path, change)
    with pytest.raises(error, match=message):
        GraphPromptModel.from_pretrained(tmp_path, EMBEDDINGS)
