"""G-Retriever's generator: a language model that reads the retrieved graph as soft tokens and in words.

X. He, Y. Tian, Y. Sun, N. Chawla, T. Laurent, Y. LeCun, X. Bresson, B. Hooi: G-Retriever: Retrieval-Augmented
Generation for Textual Graph Understanding and Question Answering. NeurIPS 2024, arXiv:2402.07630, section 5.4.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import Field

from kg_retrievers.core.checkpoint import load_checkpoint, save_checkpoint
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError, ModelMismatchError, named_arguments
from kg_retrievers.index import embedding_name
from kg_retrievers.index.graph_search import SAME_VECTOR
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptInput, graph_of
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.network import GraphPromptNetwork, Precision, Prompt, TextVectors
from kg_retrievers.methods.g_retriever.graph_prompt.prompts import VERSION

#: The method's name in checkpoints and on the shell.
METHOD = "graph-prompt"

#: The behaviour without any triple, see `GraphPromptModel`.
EmptyGraph = Literal["answer", "raise"]


class GraphPromptModel(Runnable[GraphPromptInput, str]):
    """Answer a question with a language model that reads evidence as soft tokens and in words.

    Use it like any other answerer: `answer_chain(retriever, model)`, `build_workflow(retriever, model)`. It streams.
    Callbacks, such as counters of a workflow's costs, see each answer as a call of a chat model. Decoding is greedy:
    the same evidence gives the same answer. The model reads the question and the triples of the documents, and writes
    the graph as in its training.

    Train one with `train_graph_prompt`, or read one with `from_pretrained`. A model can be copied and pickled, with its
    language model, if its embeddings can.

    Args:
        network: The language model and the network that makes its soft tokens.
        training: Its training data and results, as values of JSON.
        max_new_tokens: The most tokens of an answer. None for as many as in training.
        empty_graph: The behaviour without any triple: "answer" from the question alone, without soft tokens of a graph,
            or "raise" an error.

    Raises:
        InvalidArgumentError: If an option is out of range. From `invoke`, if there is no triple and `empty_graph` is
            "raise", a Document holds no evidence, or the language model has no room for the question.
    """

    @named_arguments
    def __init__(
        self,
        network: GraphPromptNetwork,
        *,
        training: Mapping[str, Any] | None = None,
        max_new_tokens: int | None = None,
        empty_graph: EmptyGraph = "answer",
    ) -> None:
        """Check the options."""
        if empty_graph not in get_args(EmptyGraph) or (max_new_tokens is not None and max_new_tokens < 1):
            raise InvalidArgumentError(
                "GraphPromptModel: wanted max_new_tokens of 1 or more, and empty_graph one of "
                f"{list(get_args(EmptyGraph))}, but got {max_new_tokens!r} and {empty_graph!r}."
            )
        self.network, self.training, self.empty_graph = network, dict(training or {}), empty_graph
        self.max_new_tokens = max_new_tokens or network.config.max_answer_tokens

    def __repr__(self) -> str:
        """Show the language model and the configuration."""
        return f"GraphPromptModel({self.network.lm!r}, {self.config!r})"

    @property
    def config(self) -> GraphPromptConfig:
        """The input of the language model, and the network that makes its soft tokens."""
        return self.network.config

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that change with the trained weights, the language model and the options of answers."""
        lm, weights = self.network.lm, self.network.weights
        parts = [lm.fingerprint, lm.dtype, asdict(self.config), VERSION, self.max_new_tokens, self.empty_graph]
        found = blake2b(json.dumps(parts).encode(), digest_size=16)
        for name in sorted(weights):
            found.update(name.encode() + weights[name].tobytes())
        return found.hexdigest()

    # --- on disk ----------------------------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the trained weights to `model.safetensors` in one rename.

        The metadata of the file holds the configuration. The language model itself is not written. For other programs,
        `network.model.save_pretrained` of peft writes the adapters.

        Raises:
            InvalidArgumentError: If `folder` is a file, or holds a model of Hugging Face.
            FileWriteError: If the disk is full, or this user may not write there.
        """
        lm, vectors = self.network.lm, self.network.vectors
        config = {
            "language_model": {"name": lm.name, "revision": lm.revision, "fingerprint": lm.fingerprint},
            "embeddings": embedding_name(vectors.embeddings),
            "dtype": lm.dtype,
            "config": asdict(self.config),
            "training": self.training,
        }
        save_checkpoint(Path(folder), METHOD, config, {**self.network.weights, "probe": vectors.probe})

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        embeddings: Embeddings,
        llm: str | Path | CausalLM | None = None,
        *,
        precision: Precision | None = None,
        max_new_tokens: int | None = None,
        empty_graph: EmptyGraph = "answer",
    ) -> Self:
        """Read a model that `save_pretrained` wrote.

        Args:
            folder: The folder.
            embeddings: The embeddings that the model was trained with.
            llm: The language model that it was trained with, or its name or folder. None to load it under the name that
                it had.
            precision: The type in which the language model's weights are loaded, and in which it computes. None for the
                type of the training. A language model that is handed in keeps its own.
            max_new_tokens: As for the class.
            empty_graph: As for the class.

        Raises:
            InvalidArgumentError: If an option is out of range.
            ModelLoadError: If there is no such model, it is damaged, or its language model cannot be loaded.
            ModelMismatchError: If language model or embeddings are others than in the training.
        """
        saved, weights = load_checkpoint(folder, METHOD)
        try:
            config, training, dtype = GraphPromptConfig(**saved["config"]), saved["training"], saved["dtype"]
            own, embedded_by, probe = dict(saved["language_model"]), saved["embeddings"], weights.pop("probe")
        except (KeyError, TypeError, ValueError) as cause:
            raise _damaged(folder, cause) from cause
        vectors = TextVectors(embeddings)
        if vectors.probe.shape != probe.shape or np.linalg.norm(vectors.probe - probe) > SAME_VECTOR:
            raise ModelMismatchError(
                f"GraphPromptModel: it was trained with the embeddings {embedded_by}, whose vectors have "
                f"{len(probe)} numbers, but got {embedding_name(embeddings)}, with {len(vectors.probe)}.",
                hint_python="Hand in the former, or train a model with the latter.",
                hint_shell="Index the graph with the former (--embeddings), or train a model with the latter.",
            )
        if not isinstance(llm, CausalLM):
            revision = None if llm else own["revision"]
            llm = CausalLM.load(llm or own["name"], revision=revision, dtype=precision or dtype)
        if llm.fingerprint != own["fingerprint"]:
            raise ModelMismatchError(
                f"GraphPromptModel: {folder} was trained with {own['name']}, but {llm!r} has another vocabulary or "
                "other weights.",
                hint_python="Hand in the former (llm=...), or train a model with the latter.",
                hint_shell="Put the former in its place, or train a model with the latter.",
            )
        network = GraphPromptNetwork(llm, config, vectors)
        try:
            network.load(weights)
        except ValueError as cause:
            raise _damaged(folder, cause) from cause
        return cls(network, training=training, max_new_tokens=max_new_tokens, empty_graph=empty_graph)

    # --- answers ----------------------------------------------------------------------------------------------------

    def prompt(self, input: GraphPromptInput) -> Prompt:
        """Return the language model's input for a question, with the number of triples shown in words and in all.

        Raises:
            InvalidArgumentError: As from `invoke`.
        """
        match input:
            case {"question": str(question), "documents": [*documents]} if question.strip():
                triples, labels, entities = graph_of(documents)
            case _:
                raise InvalidArgumentError(
                    'GraphPromptModel: wanted {"question": text, "documents": list of Documents}, but got '
                    f"{input!r:.200}. With a retriever in front: answer_chain(retriever, model)."
                )
        if not (triples or entities) and self.empty_graph == "raise":
            raise InvalidArgumentError(
                f"GraphPromptModel: there is no triple and no entity in the evidence for {question!r:.200}. Retrieve "
                'more, or have it answered from the question alone: empty_graph="answer".'
            )
        return self.network.prompt(question, triples, labels, entities=entities, room=self.max_new_tokens)

    def _writing(self, input: GraphPromptInput) -> Runnable[Any, str]:
        """Return the language model with its input for a question."""
        prompt = self.prompt(input)
        words = HumanMessage("\n\n".join(filter(None, (prompt.text, input["question"]))))
        chat = _GraphPromptChat(model=self, prompt=prompt, cache=False)
        return RunnableLambda(lambda _: [words]) | chat | StrOutputParser()

    def invoke(self, input: GraphPromptInput, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        """Answer a question."""
        answer: str = RunnableLambda(self._writing, name=self.get_name()).invoke(input, config)
        return answer

    def stream(self, input: GraphPromptInput, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[str]:
        """Answer a question, and yield the answer as it is written."""
        yield from RunnableLambda(self._writing, name=self.get_name()).stream(input, config)

    async def astream(
        self, input: GraphPromptInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[str]:
        """As `stream`, with the language model on another thread."""
        async for part in RunnableLambda(self._writing, name=self.get_name()).astream(input, config):
            yield part


class _GraphPromptChat(BaseChatModel):
    """The language model with one prompt, so that callbacks see a call of a chat model: costs, tracers, tokens."""

    model: Any = Field(repr=False)
    prompt: Any = Field(repr=False)

    @property
    def _llm_type(self) -> str:
        return METHOD

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return generate_from_stream(self._stream(messages))

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        """Yield the answer in parts, without blanks around it, then how many tokens were read and written."""
        network = self.model.network
        streamer = network.lm.streamer()
        with ThreadPoolExecutor(1) as pool:
            tokens = pool.submit(network.generate, self.prompt, self.model.max_new_tokens, streamer)
            tokens.add_done_callback(lambda _: streamer.end())  # also after an error, which `result` raises
            text, said = "", 0
            for part in streamer:
                text = (text + part).lstrip()
                if end := len(text.rstrip()[said:]):
                    yield ChatGenerationChunk(message=AIMessageChunk(content=text[said : said + end]))
                    said += end
        read, written = len(self.prompt) + self.prompt.soft, len(tokens.result())
        usage: Any = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
        yield ChatGenerationChunk(message=AIMessageChunk(content="", usage_metadata=usage))


def _damaged(folder: str | Path, cause: Exception) -> ModelLoadError:
    return ModelLoadError(f"config and weights are not those of a {METHOD} model: {cause!s:.300}", folder)
