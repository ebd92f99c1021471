"""G-Retriever's generator: a language model that reads the retrieved graph as soft tokens and in words.

X. He, Y. Tian, Y. Sun, N. Chawla, T. Laurent, Y. LeCun, X. Bresson, B. Hooi: G-Retriever: Retrieval-Augmented
Generation for Textual Graph Understanding and Question Answering. NeurIPS 2024, arXiv:2402.07630, section 5.4.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import Field

from kg_retrievers.core.checkpoint import load_checkpoint, save_checkpoint
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, ModelLoadError, ModelMismatchError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.index import embedding_name
from kg_retrievers.index.graph_search import SAME_VECTOR
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig
from kg_retrievers.methods.g_retriever.graph_prompt.encoders import TextVectors
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptInput, graph_of
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.network import GraphPromptNetwork, Precision, Prompt
from kg_retrievers.methods.g_retriever.graph_prompt.prompts import VERSION

try:
    import torch

    from kg_retrievers.methods.g_retriever.graph_prompt.language_model import set_adapters
except ModuleNotFoundError as cause:
    raise MissingExtraError("GraphPromptModel", "graph-prompt") from cause

#: The method's name in checkpoints and on the shell.
METHOD = "graph-prompt"

#: How many vectors of names and relations are kept, since questions repeat them.
KEPT_VECTORS = 100_000

#: Stands before the names of the adapters' weights in a checkpoint.
_ADAPTER = "adapter."

#: What a checkpoint keeps of its language model.
_TELLING = ("name", "revision", "hidden_size", "vocabulary", "weights")

#: Ends a text whose last letter has further bytes in the next token.
_CUT_LETTER = "\ufffd"

#: What to do without any triple; see `GraphPromptModel`.
EmptyGraph = Literal["answer", "raise"]


@checked_dataclass
class _AnswerOptions:
    """How a model answers."""

    who: ClassVar[str] = "GraphPromptModel"

    max_new_tokens: int = Field(ge=1)
    empty_graph: EmptyGraph = "answer"


class GraphPromptModel(Runnable[GraphPromptInput, str]):
    """Answers a question with a language model that reads its evidence as soft tokens and in words.

    It serves wherever an answerer does: `answer_chain(retriever, model)`, `build_workflow(retriever, model)`, and it
    streams. Callbacks, such as those that count what a workflow costs, see each answer as a call of a chat model.
    Decoding is greedy: the same evidence gives the same answer. The model reads the question and the triples of the
    documents, and writes the graph as in its training.

    Train one with `train_graph_prompt`, or read one with `from_pretrained`. A model can be copied and pickled, with its
    language model, where its embeddings can.

    Args:
        network: The language model and what makes its soft tokens.
        embeddings: The embeddings that it was trained with.
        probe: float32, shape (dimension): the vector of a fixed text by these embeddings.
        training: What it was trained on, and how well it did; values of JSON.
        max_new_tokens: The most tokens of an answer; None for as many as in training.
        empty_graph: What to do without any triple: "answer" from the question alone, without soft tokens of a graph,
            or "raise" an error.

    Raises:
        InvalidArgumentError: If an option is out of range. From `invoke`, if there is no triple and `empty_graph` is
            "raise", a Document holds no evidence, or the language model has no room for the question.
    """

    def __init__(
        self,
        network: GraphPromptNetwork,
        embeddings: Embeddings,
        probe: Array,
        *,
        training: Mapping[str, Any] | None = None,
        max_new_tokens: int | None = None,
        empty_graph: EmptyGraph = "answer",
    ) -> None:
        """Check the options."""
        if max_new_tokens is None:
            max_new_tokens = network.config.max_answer_tokens
        options = _AnswerOptions(max_new_tokens, empty_graph)
        self.network, self.embeddings, self.probe = network, embeddings, probe
        self.training = dict(training or {})
        self.max_new_tokens, self.empty_graph = options.max_new_tokens, options.empty_graph

    def __repr__(self) -> str:
        """Show the language model and the configuration."""
        return f"GraphPromptModel({self.network.lm!r}, {self.config!r})"

    @property
    def config(self) -> GraphPromptConfig:
        """What the language model reads, and what makes its soft tokens."""
        return self.network.config

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that change with what was trained, the language model and the options of answers."""
        network = self.network
        computing = [network.lm.dtype, self.max_new_tokens, self.empty_graph]
        parts = [network.lm.fingerprint, asdict(self.config), VERSION, *computing]
        found = blake2b(json.dumps(parts).encode(), digest_size=16)
        for name, tensor in sorted({**network.parameters, **network.buffers}.items()):
            found.update(name.encode() + tensor.detach().float().cpu().numpy().tobytes())
        return found.hexdigest()

    # --- on disk ----------------------------------------------------------------------------------------------------

    def save_pretrained(self, folder: str | Path) -> None:
        """Write what was trained: `model.safetensors`, with the configuration in its metadata, in one rename.

        The language model itself is not written. For other programs, `network.model.save_pretrained` of peft writes
        the adapters.

        Raises:
            InvalidArgumentError: If `folder` is a file, or holds a model of Hugging Face.
            FileWriteError: If the disk is full, or this user may not write there.
        """
        network = self.network
        state = {} if network.tokens is None else network.tokens.state_dict()
        state |= {f"{_ADAPTER}{name}": weight for name, weight in network.adapters.items()}
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in state.items()}
        config = {
            "language_model": {"name": network.lm.name, "revision": network.lm.revision, **network.lm.fingerprint},
            "embeddings": embedding_name(self.embeddings),
            "words": VERSION,
            "dtype": network.lm.dtype,
            **asdict(self.config),
            "training": self.training,
        }
        save_checkpoint(Path(folder), METHOD, config, {**weights, "probe": self.probe})

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
        """Read what `save_pretrained` wrote.

        Args:
            folder: The folder.
            embeddings: The embeddings that the model was trained with.
            llm: The language model that it was trained with, or its name or folder; None to load it under the name
                that it had.
            precision: The type in which the language model's weights are loaded, and in which it computes; None for
                that of the training. A language model that is handed in keeps its own.
            max_new_tokens: As for the class.
            empty_graph: As for the class.

        Raises:
            InvalidArgumentError: If an option is out of range.
            ModelLoadError: If there is no such model, it is damaged, or its language model cannot be loaded.
            ModelMismatchError: If language model or embeddings are others than in the training.
        """
        folder = Path(folder)
        saved, weights = load_checkpoint(folder, METHOD)
        if saved.get("words", VERSION) != VERSION:
            raise ModelMismatchError(
                f"GraphPromptModel: {folder} was trained on words of version {saved['words']!r:.20}, and these are of "
                f"version {VERSION!r}. Train it again, or take the release of kg-retrievers that it was trained with."
            )
        try:
            known = {field.name: saved[field.name] for field in fields(GraphPromptConfig)}
            config = GraphPromptConfig(**{**known, "lora_targets": tuple(known["lora_targets"])})
            trained_with = {key: saved["language_model"][key] for key in _TELLING}
            probe, embedded_by, training = weights.pop("probe"), saved["embeddings"], saved["training"]
            dtype = saved["dtype"] if saved["dtype"] in get_args(Precision) else "auto"
        except (KeyError, TypeError, ValueError) as cause:
            raise _damaged(folder, cause) from cause
        _check_embeddings(embeddings, embedded_by, probe)
        if not isinstance(llm, CausalLM):
            place, revision = llm or trained_with["name"], None if llm else trained_with["revision"]
            llm = CausalLM.load(place, revision=revision, dtype=precision or dtype)
        llm.check_trained_with(cls.__name__, trained_with, folder)
        network = GraphPromptNetwork(llm, config, TextVectors(embeddings, KEPT_VECTORS), len(probe))
        tensors = {name: torch.from_numpy(weight) for name, weight in weights.items()}
        adapters = {name: tensors.pop(name) for name in weights if name.startswith(_ADAPTER)}
        try:
            if network.tokens is not None:
                network.tokens.load_state_dict(tensors)
            if config.lora_rank:
                set_adapters(network.model, {name.removeprefix(_ADAPTER): one for name, one in adapters.items()})
        except (RuntimeError, TypeError, ValueError) as cause:
            raise _damaged(folder, cause) from cause
        return cls(
            network, embeddings, probe, training=training, max_new_tokens=max_new_tokens, empty_graph=empty_graph
        )

    # --- answers ----------------------------------------------------------------------------------------------------

    def prompt(self, input: GraphPromptInput) -> Prompt:
        """Return what the language model reads of a question: how many of its triples are shown in words, of how many.

        Raises:
            InvalidArgumentError: As from `invoke`.
        """
        question = input.get("question") if isinstance(input, Mapping) else None
        documents = input.get("documents") if isinstance(input, Mapping) else None
        if not isinstance(question, str) or not question.strip() or not isinstance(documents, list | tuple):
            raise InvalidArgumentError(
                'GraphPromptModel: wanted {"question": text, "documents": list of Documents}, but got '
                f"{input!r:.200}. With a retriever in front: answer_chain(retriever, model)."
            )
        triples, labels, entities = graph_of(documents)
        if not (triples or entities) and self.empty_graph == "raise":
            raise InvalidArgumentError(
                "GraphPromptModel: there is no triple and no entity in the evidence for "
                f"{input['question']!r:.200}. Retrieve more, "
                'or have it answered from the question alone: empty_graph="answer".'
            )
        return self.network.prompt(input["question"], triples, labels, entities=entities, room=self.max_new_tokens)

    def _writing(self, input: GraphPromptInput) -> Runnable[Any, str]:
        """Return the language model with what it reads of a question."""
        prompt = self.prompt(input)
        words = HumanMessage("\n\n".join(filter(None, (prompt.text, input["question"]))))
        chat = _GraphPromptChat(network=self.network, prompt=prompt, max_new_tokens=self.max_new_tokens, cache=False)
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
        """As `stream`; the language model runs on another thread."""
        async for part in RunnableLambda(self._writing, name=self.get_name()).astream(input, config):
            yield part


class _GraphPromptChat(BaseChatModel):
    """The language model with one prompt, so that callbacks see a call of a chat model: costs, tracers, tokens."""

    network: Any = Field(repr=False)
    prompt: Any = Field(repr=False)
    max_new_tokens: int

    @property
    def _llm_type(self) -> str:
        return METHOD

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        """Yield the answer in parts, without blanks around it, then how many tokens were read and written."""
        tokens: list[int] = []
        said = ""
        for token in self.network.generate(self.prompt, self.max_new_tokens):
            tokens.append(token)
            text = self.network.lm.decode(tokens).strip()
            if text.startswith(said) and len(text) > len(said) and not text.endswith(_CUT_LETTER):
                yield ChatGenerationChunk(message=AIMessageChunk(content=text[len(said) :]))
                said = text
        text = self.network.lm.decode(tokens).strip()
        rest = text[len(said) :] if text.startswith(said) else ""
        read, written = self.network.length(self.prompt), len(tokens)
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        yield ChatGenerationChunk(message=AIMessageChunk(content=rest, usage_metadata=usage))


def _check_embeddings(embeddings: Embeddings, name: str, probe: Array) -> None:
    vector = TextVectors(embeddings).of([PROBE])[0]
    if vector.shape != probe.shape or np.linalg.norm(vector - probe) > SAME_VECTOR:
        raise ModelMismatchError(
            f"GraphPromptModel: it was trained with the embeddings {name}, whose vectors have {len(probe)} numbers, "
            f"but got {embedding_name(embeddings)}, with {len(vector)}.",
            hint_python="Hand in the former, or train a model with the latter.",
            hint_shell="Index the graph with the former (--embeddings), or train a model with the latter.",
        )


def _damaged(folder: Path, cause: Exception) -> ModelLoadError:
    if isinstance(cause, KeyError):
        return ModelLoadError(f"config and weights hold no {cause}, as those of a {METHOD} model do.", folder)
    return ModelLoadError(f"config and weights are not those of a {METHOD} model: {cause!s:.300}", folder)
