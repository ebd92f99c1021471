"""The relation scorer as a torch module, to train it; `kg_retrievers.questions.zero_shot.scorer` computes the same."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import TokenTable
from kg_retrievers.questions.zero_shot.scorer import FAR, HEADS, LAYERS, NEAR, WIDTH

#: Sizes of the vectors of a direction and of a kind of ends, and of the vectors by which single words are compared.
DIRECTION_WIDTH, KIND_WIDTH, WORD_WIDTH = 16, 8, 64

#: Logits of what cannot be.
NEVER = -1e4


def unit_table(table: TokenTable) -> Array:
    """Return all rows of the table, divided by the root of their mean square length."""
    rows = table.rows(np.arange(table.size))
    scaled: Array = (rows / np.sqrt((rows**2).sum(axis=1).mean())).astype(np.float32)
    return scaled


class Encoded(NamedTuple):
    """A batch of questions: states (n, t, d), rows of the table (n, t, e), which tokens there are (n, t)."""

    states: Tensor
    rows: Tensor
    present: Tensor


class Steps(NamedTuple):
    """Steps of walks: states (s, d), names as read by the attention (s, d), directions (s), and words (s, w)."""

    states: Tensor
    names: Tensor
    directions: Tensor
    words: Tensor


class Layer(nn.Module):
    """A layer of self-attention with a bias for each distance of two tokens."""

    def __init__(self, dropout: float) -> None:
        """Make the weights."""
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.bias = nn.Parameter(torch.zeros(HEADS, 2 * NEAR + 1))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, present: Tensor, distances: Tensor) -> Tensor:
        """Return the new states, (n, t, d)."""
        n, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2)) / math.sqrt(d // HEADS) + self.bias[:, distances]
        weights = weights.masked_fill(~present[:, None, None], NEVER).softmax(-1)
        x = x + self.dropout(self.out((weights @ v).transpose(1, 2).reshape(n, t, d)))
        hidden = self.dropout(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))
        new: Tensor = x + self.dropout(self.down(hidden))
        return new


class Net(nn.Module):
    """The scorer; see `kg_retrievers.questions.zero_shot.scorer`."""

    table: Tensor

    def __init__(self, table: Tensor, dropout: float = 0.1) -> None:
        """Make the weights; the table is frozen and no weight."""
        super().__init__()
        e, d = table.shape[1], WIDTH
        self.register_buffer("table", table, persistent=False)
        self.masks = nn.Parameter(torch.randn(2, e) * 0.1)
        self.input, self.position = nn.Linear(e, d), nn.Embedding(2 * FAR + 2, d)
        nn.init.normal_(self.position.weight, std=0.1)
        self.layers = nn.ModuleList(Layer(dropout) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(d)
        self.direction, self.kind = nn.Embedding(2, DIRECTION_WIDTH), nn.Embedding(3, KIND_WIDTH)
        self.step_up, self.step_down = nn.Linear(3 * e + DIRECTION_WIDTH + KIND_WIDTH, 2 * d), nn.Linear(2 * d, d)
        self.step_name = nn.Linear(e, d)
        self.start = nn.Parameter(torch.zeros(d))
        self.cell, self.hop = nn.GRUCell(d, d), nn.Embedding(4, d)
        self.query, self.key = nn.Linear(d, 2 * d), nn.Linear(d, 2 * d)
        self.covered = nn.Parameter(torch.zeros(2))
        self.context_up, self.context_down = nn.Linear(4 * d, 2 * d), nn.Linear(2 * d, d)
        self.attended, self.named = nn.Linear(e, d, bias=False), nn.Linear(e, d, bias=False)
        self.word, self.gate = nn.Linear(e, WORD_WIDTH, bias=False), nn.Linear(d, 1)
        self.scales = nn.Parameter(torch.tensor([2.5, 2.0, 1.5]))
        self.end_up, self.end_down = nn.Linear(4 * d, d), nn.Linear(d, 2)
        self.directed = nn.Linear(d, 2)
        self.dropout = nn.Dropout(dropout)
        with torch.no_grad():
            for layer in (self.attended, self.named):
                layer.weight.copy_(torch.eye(d, e))
            self.word.weight.copy_(torch.eye(WORD_WIDTH, e))
            self.gate.weight.zero_()

    def encode(self, ids: Tensor, positions: Tensor, present: Tensor) -> Encoded:
        """Encode questions: ids of tokens (n, t), -1 the topic, -2 another entity; positions from the topic."""
        rows = self.table[ids.clamp(min=0)] * (ids >= 0)[..., None]
        tokens = torch.where((ids < 0)[..., None], self.masks[(-1 - ids).clamp(0, 1)], rows)
        x = self.dropout(self.input(tokens)) + self.position(positions)
        order = torch.arange(ids.shape[1])
        distances = (order[None] - order[:, None]).clamp(-NEAR, NEAR) + NEAR
        for layer in self.layers:
            x = layer(x, present, distances)
        return Encoded(self.norm(x), rows, present)

    def steps(self, names: Tensor, starts: Tensor, ends: Tensor, directions: Tensor, kinds: Tensor) -> Steps:
        """Encode steps: mean rows of the names, of what they start from and lead to, (s, e) each."""
        known = torch.cat([names, starts, ends, self.direction(directions), self.kind(kinds)], -1)
        states = self.step_down(functional.gelu(self.step_up(known), approximate="tanh")) + self.step_name(names)
        return Steps(
            functional.normalize(states, dim=-1),
            functional.normalize(self.named(names), dim=-1),
            directions,
            functional.normalize(self.word(names), dim=-1),
        )

    def decide(
        self, question: Encoded, state: Tensor, hop: int, cover: Tensor, steps: Steps
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return logits of steps (n, s), of stopping and of nothing that fits (n, 2), and the new cover (n, 2, t)."""
        x, rows, present = question
        n, t, d = x.shape
        state = state + self.hop.weight[hop]
        query, key = self.query(state).view(n, 2, d), self.key(x).view(n, t, 2, d)
        weights = torch.einsum("nhd,nthd->nht", query, key) / math.sqrt(d) + self.covered[None, :, None] * cover
        weights = weights.masked_fill(~present[:, None], NEVER).softmax(-1)
        attended = weights @ x
        read = torch.einsum("nt,nte->ne", weights[:, 1], rows)
        rest = present * (1 - cover[:, 0]).clamp(0, 1)
        left = torch.einsum("nt,ntd->nd", rest / (rest.sum(1, keepdim=True) + 1e-3), x)
        known = torch.cat([state, attended[:, 0], attended[:, 1], left], -1)
        decided = self.context_down(functional.gelu(self.context_up(known), approximate="tanh"))
        context = functional.normalize(decided, dim=-1)
        words = functional.normalize(self.word(rows), dim=-1)
        gate = torch.sigmoid(self.gate(x)[..., 0] + 2) * (1 - 0.7 * cover[:, 1].clamp(0, 1)) * present
        matched = ((words @ steps.words.T) * gate[..., None]).amax(1)
        named = functional.normalize(self.attended(read), dim=-1)
        a, b, c = self.scales.exp()
        logits = a * context @ steps.states.T + b * named @ steps.names.T + c * matched
        logits = logits + self.directed(context)[:, steps.directions]
        ends = self.end_down(functional.gelu(self.end_up(known), approximate="tanh"))
        return logits, ends, cover + weights
