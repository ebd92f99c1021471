"""From a graph to soft tokens: graph networks of torch-geometric, a mean, a projection (extra `graph-prompt`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.graph import Triple, readable
from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import embed
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig

try:
    import torch
    from torch_geometric.nn import BatchNorm, GATConv, GCNConv, TransformerConv, global_mean_pool
except ModuleNotFoundError as cause:
    raise MissingExtraError("A graph prompt", "graph-prompt") from cause


class PromptGraph(NamedTuple):
    """The graph of one question, as an encoder takes it.

    Attributes:
        names: The texts of the nodes, by position; the tables in words number them in the same order.
        relations: The text of each triple's relation.
        ends: int64, shape (2, triples): the positions of heads and of tails.
    """

    names: tuple[str, ...]
    relations: tuple[str, ...]
    ends: Array

    @classmethod
    def of(cls, triples: Sequence[Triple], labels: Mapping[str, str], entities: Sequence[str] = ()) -> PromptGraph:
        """Take entities and relations of triples as they first occur, head before tail; then the other entities."""
        keys = [*(key for head, _, tail in triples for key in (head, tail)), *entities]
        nodes = {key: position for position, key in enumerate(dict.fromkeys(keys))}
        names = tuple(readable(labels.get(key, key)) for key in nodes)
        rows = [(nodes[head], nodes[tail]) for head, _, tail in triples]
        relations = tuple(readable(relation) for _, relation, _ in triples)
        return cls(names, relations, np.array(rows, np.int64).reshape(-1, 2).T)


class TextVectors:
    """The vectors of texts, each embedded once. Safe to share between threads.

    Args:
        embeddings: Any LangChain embeddings.
        kept: The most vectors that are kept; beyond that all are forgotten. None for no limit.
    """

    def __init__(self, embeddings: Embeddings, kept: int | None = None) -> None:
        """Start without any vector."""
        if not isinstance(embeddings, Embeddings):
            raise InvalidArgumentError(
                "A graph prompt: wanted LangChain embeddings, such as HashedEmbeddings() or `index.embeddings`, but "
                f"got {embeddings!r:.100}."
            )
        self.embeddings, self.kept = embeddings, kept
        self._vectors: dict[str, Array] = {}
        self._lock = LocalLock()

    def of(self, texts: Sequence[str], *, progress: bool = False) -> Array:
        """Return float32 unit rows, shape (texts, dimension); the new ones take one call of `embed`.

        Raises:
            InvalidArgumentError: If the embeddings return something else than one finite vector for each text.
        """
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
            if self.kept is not None and len(self._vectors) + len(missing) > self.kept:
                self._vectors.clear()
                missing = list(dict.fromkeys(texts))
            if missing:
                self._vectors |= zip(missing, embed(self.embeddings, missing, progress=progress), strict=True)
            return np.stack([self._vectors[text] for text in texts])


class GraphTokens(torch.nn.Module):
    """Graphs as soft tokens.

    Layers of a graph network over the vectors of names, along the triples, with batch normalisation and ReLU between
    them; the mean over the nodes (equation 9); two linear layers with a sigmoid between them (equation 10; the sigmoid
    is that of the published code). Relations are edge features for "transformer" and "gat"; "gcn" takes none.

    Args:
        config: The sizes.
        dimension: Of the vectors of names and relations.
        hidden_size: Of the language model.
    """

    def __init__(self, config: GraphPromptConfig, dimension: int, hidden_size: int) -> None:
        """Draw the weights from torch's random numbers."""
        super().__init__()
        self.config = config
        last = config.soft_tokens * hidden_size if config.projection is None else config.width
        sizes = [dimension, *[config.width] * (config.layers - 1), last]
        self.layers = torch.nn.ModuleList(self._layer(take, give, dimension) for take, give in pairwise(sizes))
        self.norms = torch.nn.ModuleList(BatchNorm(size, allow_single_element=True) for size in sizes[1:-1])
        self.projection: torch.nn.Module = torch.nn.Identity()
        if config.projection is not None:
            self.projection = torch.nn.Sequential(
                torch.nn.Linear(config.width, config.projection),
                torch.nn.Sigmoid(),
                torch.nn.Linear(config.projection, config.soft_tokens * hidden_size),
            )

    def _layer(self, take: int, give: int, dimension: int) -> torch.nn.Module:
        heads = self.config.heads
        layer: torch.nn.Module
        if self.config.encoder == "gcn":
            layer = GCNConv(take, give)
        elif self.config.encoder == "gat":
            layer = GATConv(take, give, heads=heads, concat=False, edge_dim=dimension)
        elif give % heads:  # as long as the language model's vectors, where there is no projection
            layer = TransformerConv(take, give, heads=heads, concat=False, edge_dim=dimension)
        else:
            layer = TransformerConv(take, give // heads, heads=heads, edge_dim=dimension)
        return layer

    def forward(self, graphs: Sequence[PromptGraph], vectors: TextVectors) -> torch.Tensor:
        """Return the soft tokens of some graphs, none of them empty: shape (graphs, soft_tokens, hidden_size)."""
        device = next(self.parameters()).device
        sizes = [len(graph.names) for graph in graphs]
        starts = np.cumsum([0, *sizes[:-1]])
        joined = np.concatenate([graph.ends + start for graph, start in zip(graphs, starts, strict=True)], axis=1)
        ends = torch.from_numpy(joined).to(device)
        states = torch.from_numpy(vectors.of([name for graph in graphs for name in graph.names])).to(device)
        graph_of = torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes)).to(device)
        given: dict[str, torch.Tensor] = {}
        if self.config.encoder != "gcn":
            relations = [relation for graph in graphs for relation in graph.relations]
            empty = np.empty((0, states.shape[1]), np.float32)
            given["edge_attr"] = torch.from_numpy(vectors.of(relations) if relations else empty).to(device)
        for layer, norm in zip(self.layers, self.norms, strict=False):
            states = norm(layer(states, ends, **given)).relu()
        states = self.layers[-1](states, ends, **given)
        tokens: torch.Tensor = self.projection(global_mean_pool(states, graph_of, len(graphs)))
        return tokens.view(len(graphs), self.config.soft_tokens, -1)


class LearnedTokens(torch.nn.Module):
    """Soft tokens that are the same for each question: prompt tuning without a graph.

    Args:
        config: How many.
        hidden_size: Of the language model.
        scale: The standard deviation to begin with, that of the language model's own embeddings.
    """

    def __init__(self, config: GraphPromptConfig, hidden_size: int, scale: float) -> None:
        """Draw them from torch's random numbers."""
        super().__init__()
        self.tokens = torch.nn.Parameter(torch.randn(config.soft_tokens, hidden_size) * scale)

    def forward(self, count: int) -> torch.Tensor:
        """Return the tokens for so many questions: shape (count, soft_tokens, hidden_size)."""
        return self.tokens.expand(count, -1, -1)
