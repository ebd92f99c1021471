"""Graph, words and question as one sequence of a causal language model (extra `graph-prompt`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.graph import Triple, readable, verbalize
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import embed
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM, add_adapters
from kg_retrievers.methods.g_retriever.graph_prompt.prompts import ANSWER_SEPARATOR, write_question

try:
    import torch
    from torch.nn.utils.rnn import pad_sequence
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import BatchNorm, GATConv, GCNConv, TransformerConv, global_mean_pool
except ModuleNotFoundError as cause:
    raise MissingExtraError("A graph prompt", "graph-prompt") from cause


class TextVectors:
    """The vectors of texts by some embeddings.

    Args:
        embeddings: Any LangChain embeddings.

    Attributes:
        known: The vectors of texts that are not embedded again, as in a training.
        probe: float32, shape (dimension): the vector of `PROBE`, which distinguishes these embeddings from others.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        """Embed the probe."""
        self.embeddings = embeddings
        self.known: dict[str, Array] = {}
        self.probe: Array = self.of([PROBE])[0]

    def of(self, texts: Sequence[str]) -> Array:
        """Return float32 unit rows, shape (texts, dimension).

        The texts that are not known take one call of `embed`.

        Raises:
            InvalidArgumentError: If the embeddings return something else than one finite vector for each text.
        """
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        found = dict(zip(new, embed(self.embeddings, new), strict=True))
        return np.stack([found[text] if text in found else self.known[text] for text in texts])


class PromptGraph(NamedTuple):
    """The graph of one question, as an encoder takes it.

    Attributes:
        names: The texts of the nodes, by position. The tables in words number them in the same order.
        relations: The text of each triple's relation.
        ends: int64, shape (2, triples): the positions of heads and of tails.
    """

    names: tuple[str, ...]
    relations: tuple[str, ...]
    ends: Array

    @classmethod
    def of(cls, triples: Sequence[Triple], labels: Mapping[str, str], entities: Sequence[str] = ()) -> PromptGraph:
        """Take entities and relations of triples as they first occur, head before tail, then the other entities."""
        keys = [*(key for head, _, tail in triples for key in (head, tail)), *entities]
        nodes = {key: position for position, key in enumerate(dict.fromkeys(keys))}
        names = tuple(readable(labels.get(key, key)) for key in nodes)
        rows = [(nodes[head], nodes[tail]) for head, _, tail in triples]
        relations = tuple(readable(relation) for _, relation, _ in triples)
        return cls(names, relations, np.array(rows, np.int64).reshape(-1, 2).T)

    def data(self, vectors: TextVectors) -> Data:
        """Return the graph with its vectors, as torch-geometric takes it."""
        rows = torch.from_numpy(vectors.of([*self.names, *self.relations]))
        count, ends = len(self.names), torch.from_numpy(self.ends)
        return Data(x=rows[:count], edge_index=ends, edge_attr=rows[count:])


class GraphTokens(torch.nn.Module):
    """Graphs as soft tokens.

    First come layers of a graph network over the vectors of names, along the triples, with batch normalisation and ReLU
    between them. Then comes the mean over the nodes (equation 9), and then two linear layers with a sigmoid between
    them (equation 10, with the sigmoid of the published code). Relations are edge features for "transformer" and "gat",
    while "gcn" takes none.

    Args:
        config: The sizes.
        dimension: Of the vectors of names and relations.
        hidden_size: Of the language model.
    """

    def __init__(self, config: GraphPromptConfig, dimension: int, hidden_size: int) -> None:
        """Draw the weights from torch's random numbers."""
        super().__init__()
        self.config = config
        written = config.soft_tokens * hidden_size
        sizes = [dimension, *[config.width] * (config.layers - 1), config.width if config.projection else written]
        self.layers = torch.nn.ModuleList(self._layer(take, give, dimension) for take, give in pairwise(sizes))
        self.norms = torch.nn.ModuleList(BatchNorm(size, allow_single_element=True) for size in sizes[1:-1])
        self.projection = torch.nn.Sequential()
        if config.projection:
            self.projection.append(torch.nn.Linear(config.width, config.projection))
            self.projection.append(torch.nn.Sigmoid())
            self.projection.append(torch.nn.Linear(config.projection, written))

    def _layer(self, take: int, give: int, dimension: int) -> Any:
        heads = self.config.heads
        if self.config.encoder == "gcn":
            return GCNConv(take, give)
        if self.config.encoder == "gat":
            return GATConv(take, give, heads=heads, concat=False, edge_dim=dimension)
        concat = give % heads == 0  # else as long as the language model's vectors, without a projection
        size = give // heads if concat else give
        return TransformerConv(take, size, heads=heads, concat=concat, edge_dim=dimension)

    def forward(self, graphs: Sequence[PromptGraph], vectors: TextVectors) -> torch.Tensor:
        """Return the soft tokens of some graphs, none of them empty: shape (graphs, soft_tokens, hidden_size)."""
        batch: Any = Batch.from_data_list([graph.data(vectors) for graph in graphs])
        batch = batch.to(next(self.parameters()).device)
        edges = {} if self.config.encoder == "gcn" else {"edge_attr": batch.edge_attr}
        states = batch.x
        for layer, norm in zip(self.layers, self.norms, strict=False):
            states = norm(layer(states, batch.edge_index, **edges)).relu()
        states = self.layers[-1](states, batch.edge_index, **edges)
        tokens: torch.Tensor = self.projection(global_mean_pool(states, batch.batch, len(graphs)))
        return tokens.view(len(graphs), self.config.soft_tokens, -1)


#: The type of the language model's weights, in which it computes.
Precision = Literal["float32", "bfloat16"]

#: A text with more characters than this for each token of its budget is over it, however a model reads it.
LONG = 16

#: The label of a token that is not learned.
_IGNORED = -100


@dataclass(frozen=True)
class Prompt:
    """The input of a language model for one question.

    Attributes:
        before: Tokens before the soft ones.
        after: Tokens after them.
        label: Tokens of the answer, with its end. Empty if the answer is asked for.
        graph: The graph that the soft tokens are made of. None if there is no graph, or no encoder.
        soft: How many soft tokens there are.
        text: The graph in words, as far as it has room. Empty if it is not shown.
        shown: How many triples this text shows.
        triples: How many triples there are.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    label: tuple[int, ...]
    graph: PromptGraph | None
    soft: int
    text: str
    shown: int
    triples: int

    def __len__(self) -> int:
        """How many tokens there are, the soft ones not counted."""
        return len(self.before) + len(self.after) + len(self.label)


class GraphPromptNetwork:
    """A language model that reads soft tokens, with the network that makes them.

    Args:
        lm: The language model. Its weights stay frozen. With `lora_rank` it gets adapters.
        config: The input that is put in front of it.
        vectors: The vectors of names and relations.
        seed: Of the weights.

    Attributes:
        model: The language model of `lm`, or peft's wrapper of it if there are adapters.
        tokens: The source of the soft tokens: a graph network, or the tokens themselves.

    Raises:
        InvalidArgumentError: If the language model has adapters already, or no linear layers of a name that gets some.
    """

    def __init__(self, lm: CausalLM, config: GraphPromptConfig, vectors: TextVectors, *, seed: int = 0) -> None:
        """Draw the weights."""
        lm.check_bare()
        self.lm, self.config, self.vectors = lm, config, vectors
        self.model: Any = lm.model
        self.tokens: GraphTokens | torch.nn.Embedding
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            if config.encoder is not None:
                self.tokens = GraphTokens(config, len(vectors.probe), lm.hidden_size)
            else:  # as long as the vectors of words
                self.tokens = torch.nn.Embedding(config.soft_tokens, lm.hidden_size)
                self.tokens.weight.data *= lm.model.get_input_embeddings().weight.float().std().cpu()
            self._trained = torch.nn.ModuleDict({"tokens": self.tokens})
            if config.lora_rank:
                self.model = self._trained["lm"] = add_adapters(lm, config)
        self.tokens.to(lm.device).eval()

    # --- what is trained ------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, torch.Tensor]:
        """Everything that is trained, by name. The tensors require gradients."""
        return {name: weight for name, weight in self._trained.named_parameters() if weight.requires_grad}

    @property
    def buffers(self) -> dict[str, torch.Tensor]:
        """The tensors that training changes without gradients: the running means of batch normalisation."""
        return {f"tokens.{name}": kept for name, kept in self.tokens.named_buffers()}

    @property
    def weights(self) -> dict[str, Array]:
        """Parameters and buffers, as a checkpoint keeps them."""
        tensors = {**self.parameters, **self.buffers}
        return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}

    @torch.no_grad()
    def load(self, weights: Mapping[str, Array]) -> None:
        """Take parameters and buffers.

        Raises:
            ValueError: If they do not belong to this language model and configuration.
        """
        tensors = {**self.parameters, **self.buffers}
        wanted = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if wanted != {name: weight.shape for name, weight in weights.items()}:
            raise ValueError("its weights have other names or shapes than the configuration says")
        for name, tensor in tensors.items():
            tensor.copy_(torch.from_numpy(weights[name]))

    def train(self, on: bool) -> None:
        """Switch the trained parts to training, or back. A language model without adapters never drops anything out."""
        self.tokens.train(on)
        if self.config.lora_rank:
            self.model.train(on)

    # --- what is read ---------------------------------------------------------------------------------------------

    def prompt(
        self,
        question: str,
        triples: Sequence[Triple],
        labels: Mapping[str, str],
        answers: Sequence[str] = (),
        *,
        entities: Sequence[str] = (),
        room: int | None = None,
    ) -> Prompt:
        """Return the input for a question.

        The text of the graph is cut so that question and answer have room.

        Args:
            question: The question.
            triples: The graph, most important first. The encoder gets all of them, also triples that the text leaves
                out.
            labels: The labels of entities, by key.
            answers: In training, the answers to learn.
            entities: The entities of the graph that no triple holds.
            room: The most tokens of an answer. By default as in the configuration.

        Raises:
            InvalidArgumentError: If the language model has no room for the question.
        """
        config, lm = self.config, self.lm
        with_graph = bool(triples or entities)
        with_text = config.show_graph and with_graph
        before, end = (lm.encode(text, special=True) for text in config.around or ("", ""))
        after = lm.encode(write_question(question, after_graph=with_text)) + end
        label = [*lm.encode(ANSWER_SEPARATOR.join(answers))[: config.max_answer_tokens], lm.stops[0]] if answers else []
        kept = 1 + (config.max_answer_tokens if room is None else room)
        left = lm.max_tokens - len(before) - config.soft_tokens - len(after) - kept
        if left < 0:
            raise InvalidArgumentError(
                f"GraphPromptModel: {lm!r} reads {lm.max_tokens:,} tokens in all, and the question {question!r:.100} "
                f"with an answer of {kept - 1:,} tokens needs {-left:,} more. Ask a shorter question, or allow a "
                "shorter answer."
            )
        text, shown = "", 0
        if with_text and (budget := min(left, config.max_context_tokens)):
            written = verbalize(
                triples,
                style="tables",
                label=lambda key: labels.get(key, key),
                max_tokens=budget,
                count_tokens=lambda words: len(lm.encode(words)) if len(words) < LONG * budget else budget + 1,
                entities=entities,
            )
            text, shown = written.text, written.shown
        graph = PromptGraph.of(triples, labels, entities) if with_graph and config.encoder else None
        soft = config.soft_tokens if graph or not config.encoder else 0
        return Prompt(tuple(before), (*lm.encode(text), *after), tuple(label), graph, soft, text, shown, len(triples))

    def read(self, prompts: Sequence[Prompt]) -> list[torch.Tensor]:
        """Return the vectors of each prompt, soft tokens in their place: shape (tokens, hidden_size)."""
        if not self.config.lora_rank:
            self.lm.check_bare()  # adapters of a later training would answer, too
        table, graph_tokens, vectors = self.lm.model.get_input_embeddings(), self._graph_tokens(prompts), []
        for prompt in prompts:
            ids = torch.tensor([*prompt.before, *prompt.after, *prompt.label], device=self.lm.device)
            words, place = table(ids), len(prompt.before)
            soft = [next(graph_tokens).to(words.dtype)] if prompt.soft else []
            vectors.append(torch.cat([words[:place], *soft, words[place:]]))
        return vectors

    def _graph_tokens(self, prompts: Sequence[Prompt]) -> Iterator[torch.Tensor]:
        """Return the soft tokens of each prompt that has some."""
        if isinstance(self.tokens, torch.nn.Embedding):
            return iter([self.tokens.weight] * len(prompts))
        graphs = [prompt.graph for prompt in prompts if prompt.graph]
        return iter(self.tokens(graphs, self.vectors) if graphs else ())

    # --- what is learned, and what is written -----------------------------------------------------------------------

    def loss(self, prompts: Sequence[Prompt]) -> torch.Tensor:
        """Return the mean of -log p over all tokens of the answers.

        Rows are padded on the left, so that the answers are at the right: scores over the vocabulary are made for these
        alone, which is most of the memory of a step.
        """

        def padded(rows: list[torch.Tensor], value: int = 0) -> torch.Tensor:
            return pad_sequence(rows, batch_first=True, padding_value=value, padding_side="left").to(self.lm.device)

        rows = self.read(prompts)
        labels = padded([torch.tensor([_IGNORED, *prompt.label]) for prompt in prompts], _IGNORED)
        mask = padded([torch.ones(len(row), dtype=torch.int64) for row in rows])
        given = {"inputs_embeds": padded(rows), "attention_mask": mask, "labels": labels}
        if "position_ids" in inspect.signature(self.lm.model.forward).parameters:
            given["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
        loss: torch.Tensor = self.model(**given, logits_to_keep=labels.shape[1], use_cache=False).loss
        return loss

    def loss_in_training(self, prompts: Sequence[Prompt], rng: np.random.Generator) -> torch.Tensor:
        """Return `loss` with dropout, drawn by these random numbers."""
        self.train(True)
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**63)))
            return self.loss(prompts)

    @torch.no_grad()
    def generate(self, prompt: Prompt, max_new_tokens: int, streamer: Any = None) -> list[int]:
        """Return the tokens of an answer, each the most likely one, and its end. A streamer gets each of them."""
        found = self.lm.model.generate(
            inputs_embeds=self.read([prompt])[0][None],
            max_new_tokens=max_new_tokens,
            do_sample=False,
            repetition_penalty=1.0,
            eos_token_id=list(self.lm.stops),
            pad_token_id=self.lm.stops[0],
            streamer=streamer,
        )
        return [int(token) for token in found[0]]
