"""The relation scorer: how likely a question asks for a step of a walk, then for the next, or for none. numpy only.

The question is read by two layers of self-attention over the frozen rows of the token table, with the topic masked. A
recurrent cell then decides hop by hop, with two attentions over the words that keep a count of the words already read.
A step of a walk is its name, its start and ends (types, if the graph has them), its direction, and whether its ends are
dates or numbers. The logit of a step is the sum of three scaled cosines and a bias for the direction. The cosines are
of its state with the context of the decision, of its name with the words attended to, and of its name with the best
word not yet read. Two more options: to stop, and that nothing in the graph fits.

Trained by `benchmarks/relation_scorer` on public questions about other graphs (see `docs/model-card.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import UNKNOWN, TokenTable, read_packaged, token_table

#: The scorer of the package: half precision, but for the weights of the ranking.
SCORER = Path(__file__).parent / "scorer.safetensors"

#: The sizes of the network: width of a state, layers, heads.
WIDTH, LAYERS, HEADS = 128, 2, 4

#: Distances between two tokens, and from a token to the topic, beyond which all are alike.
NEAR, FAR = 8, 12

#: The longest questions, in tokens. The rest of longer ones is not read. The most hops of a walk.
MAX_TOKENS, MAX_HOPS = 40, 3

#: The kinds of ends of a step.
KINDS = ("", "date", "number")

#: Stand for the entity at the start of a walk, and for another one that the question names.
TOPIC, OTHER = "[x]", "[y]"


def question_ids(table: TokenTable, question: str) -> tuple[list[int], list[int]]:
    """Return the ids of the tokens of a question, -1 for `TOPIC` and -2 for `OTHER`, and their positions.

    Positions are `FAR` at the topic, from 0 to `2 * FAR` around it, and `2 * FAR + 1` if there is no topic.
    """
    ids: list[int] = []
    topic = -1
    for position, part in enumerate(question.replace(OTHER, f"\0{OTHER}\0").replace(TOPIC, f"\0{TOPIC}\0").split("\0")):
        if position % 2 and part == TOPIC:
            topic = len(ids) if topic < 0 else topic
            ids.append(-1)
        elif position % 2:
            ids.append(-2)
        else:
            ids += table.token_ids(part)
    ids = ids[:MAX_TOKENS] or [UNKNOWN]
    if not 0 <= topic < len(ids):
        return ids, [2 * FAR + 1] * len(ids)
    return ids, [min(max(at - topic, -FAR), FAR) + FAR for at in range(len(ids))]


class Encoded(NamedTuple):
    """A question as the scorer reads it: states (t, d), rows of the table (t, e), and these as words (t, w)."""

    states: Array
    rows: Array
    words: Array


class StepStates(NamedTuple):
    """Steps of walks: states (s, d), names as attention reads them (s, d), words (s, w), directions (s)."""

    states: Array
    names: Array
    words: Array
    directions: Array

    def take(self, positions: Array) -> StepStates:
        """Return some of the steps."""
        return StepStates(*(part[positions] for part in self))


class Prefixes(NamedTuple):
    """The beginnings of walks: states (n, d), and how much each of two attentions has read of each word, (n, 2, t)."""

    states: Array
    cover: Array


class Decisions(NamedTuple):
    """Logits of each step after each prefix (n, s), of stopping and of nothing that fits (n, 2), and the new cover."""

    steps: Array
    ends: Array
    cover: Array


class Network:
    """Weights by name, and the layers that both networks of this package have.

    Args:
        weights: The tensors by name.
        epsilon: What is added to a variance before the root is taken.
    """

    def __init__(self, weights: Mapping[str, Array], epsilon: float) -> None:
        """Keep the weights."""
        self._weights, self._epsilon = weights, np.float32(epsilon)

    def _linear(self, name: str, x: Array) -> Array:
        return np.asarray(x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"])

    def _normed(self, name: str, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._epsilon)
        return np.asarray(scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"])

    def _attended(self, name: str, x: Array, heads: int, bias: Array | float = 0.0) -> Array:
        """Return what self-attention reads for each of the states `x`, with a bias on the logits; like `x`."""
        t, d = x.shape
        q, k, v = self._linear(f"{name}.qkv", x).reshape(t, 3, heads, d // heads).transpose(1, 2, 0, 3)
        weights = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(np.float32(d // heads)) + bias)
        return self._linear(f"{name}.out", (weights @ v).transpose(1, 0, 2).reshape(t, d))


class RelationScorer(Network):
    """Scores steps of walks against a question. Threads may share one.

    Args:
        weights: The tensors by the names of the torch module in `benchmarks/relation_scorer/net.py`, float32; and
            "ranking.walks" and "ranking.confidence", the weights of the features in `ranking.py`.
        table: The token table that it was trained with.
    """

    def __init__(self, weights: Mapping[str, Array], table: TokenTable) -> None:
        """Keep the weights."""
        super().__init__(weights, 1e-5)
        self.walk_weights = weights["ranking.walks"]
        self.confidence_weights = weights["ranking.confidence"]
        self._table = table
        rows = table.rows(np.arange(table.size))
        self._unit = float(1 / np.sqrt((rows**2).sum(axis=1).mean()))

    def encode(self, question: str) -> Encoded:
        """Read a question with `TOPIC` for the entity where walks start and `OTHER` for others."""
        ids, positions = (np.array(values) for values in question_ids(self._table, question))
        rows = self._table.rows(np.maximum(ids, 0)) * self._unit
        rows[ids < 0] = 0.0
        tokens = rows.copy()
        tokens[ids < 0] = self._weights["masks"][-1 - ids[ids < 0]]
        x = self._linear("input", tokens) + self._weights["position.weight"][positions]
        order = np.arange(len(ids))
        distances = np.clip(order - order[:, None], -NEAR, NEAR) + NEAR
        for layer in range(LAYERS):
            x = self._layer(f"layers.{layer}", x, distances)
        return Encoded(self._normed("norm", x), rows, unit(rows @ self._weights["word.weight"].T))

    def steps(self, names: Array, starts: Array, ends: Array, directions: Array, kinds: Array) -> StepStates:
        """Read steps.

        Args:
            names: `mean_rows` of the names of their relations, (s, e).
            starts: The same of what they start from, zero where that is not known.
            ends: The same of what they lead to.
            directions: 1 where the relation is crossed from tail to head, else 0; (s).
            kinds: Positions in `KINDS`; (s).
        """
        w = self._weights
        known = np.concatenate(
            [names, starts, ends, w["direction.weight"][directions], w["kind.weight"][kinds]], axis=1, dtype=np.float32
        )
        states = self._linear("step_down", gelu(self._linear("step_up", known))) + self._linear("step_name", names)
        return StepStates(unit(states), unit(names @ w["named.weight"].T), unit(names @ w["word.weight"].T), directions)

    def begin(self, question: Encoded) -> Prefixes:
        """Return the one prefix of no steps."""
        return Prefixes(self._weights["start"][None], np.zeros((1, 2, len(question.states)), np.float32))

    def decide(self, question: Encoded, prefixes: Prefixes, hop: int, steps: StepStates) -> Decisions:
        """Return the logits of the steps after prefixes of `hop` steps."""
        w, x = self._weights, question.states
        (n, _, t), d = prefixes.cover.shape, x.shape[1]
        state = prefixes.states + w["hop.weight"][hop]
        query = self._linear("query", state).reshape(n, 2, d).transpose(1, 0, 2)
        key = self._linear("key", x).reshape(t, 2, d).transpose(1, 2, 0)
        weights = (query @ key).transpose(1, 0, 2) / np.sqrt(np.float32(d)) + w["covered"][:, None] * prefixes.cover
        weights = softmax(weights)
        attended = weights @ x
        rest = np.clip(1 - prefixes.cover[:, 0], 0, 1)
        left = rest @ x / (rest.sum(axis=1, keepdims=True) + np.float32(1e-3))
        known = np.concatenate([state, attended[:, 0], attended[:, 1], left], axis=1)
        context = unit(self._linear("context_down", gelu(self._linear("context_up", known))))
        gate = _sigmoid(self._linear("gate", x)[:, 0] + 2) * (1 - np.float32(0.7) * np.clip(prefixes.cover[:, 1], 0, 1))
        matched = ((question.words @ steps.words.T)[None] * gate[:, :, None]).max(axis=1)
        read = unit(weights[:, 1] @ question.rows @ w["attended.weight"].T)
        a, b, c = np.exp(w["scales"])
        logits = a * context @ steps.states.T + b * read @ steps.names.T + c * matched
        logits = logits + self._linear("directed", context)[:, steps.directions]
        ends = self._linear("end_down", gelu(self._linear("end_up", known)))
        return Decisions(logits, ends, prefixes.cover + weights)

    def extend(self, prefixes: Prefixes, decisions: Decisions, rows: Array, steps: StepStates) -> Prefixes:
        """Return prefixes that are one step longer.

        Args:
            prefixes: The shorter ones.
            decisions: Theirs.
            rows: The position of the shorter prefix of each, (m).
            steps: The step of each, (m).
        """
        w, h = self._weights, prefixes.states[rows]
        given = steps.states @ w["cell.weight_ih"].T + w["cell.bias_ih"]
        kept = h @ w["cell.weight_hh"].T + w["cell.bias_hh"]
        (r1, z1, n1), (r2, z2, n2) = np.split(given, 3, axis=1), np.split(kept, 3, axis=1)
        update = _sigmoid(z1 + z2)
        new = np.tanh(n1 + _sigmoid(r1 + r2) * n2)
        return Prefixes((1 - update) * new + update * h, decisions.cover[rows])

    def _layer(self, name: str, x: Array, distances: Array) -> Array:
        x = x + self._attended(
            name, self._normed(f"{name}.norm1", x), HEADS, self._weights[f"{name}.bias"][:, distances]
        )
        hidden = gelu(self._linear(f"{name}.up", self._normed(f"{name}.norm2", x)))
        return np.asarray(x + self._linear(f"{name}.down", hidden))


def unit(x: Array) -> Array:
    """Return vectors of length 1 along the last axis."""
    return np.asarray(x / np.maximum(np.sqrt((x**2).sum(axis=-1, keepdims=True)), np.float32(1e-12)))


def softmax(x: Array) -> Array:
    """Return shares that sum to 1 along the last axis."""
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def gelu(x: Array) -> Array:
    """Return the activation of BERT and its kin, by its tanh form."""
    turned = np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x))
    return np.asarray(np.float32(0.5) * x * (1 + turned))


@lru_cache(maxsize=1)
def relation_scorer() -> RelationScorer:
    """Return the scorer of the package, read once for each process.

    Raises:
        IndexLoadError: If the file is missing or damaged.
    """
    return read_packaged(SCORER, "relation scorer", _scorer_of)


def _scorer_of(tensors: Mapping[str, Array]) -> RelationScorer:
    return RelationScorer({name: tensor.astype(np.float32) for name, tensor in tensors.items()}, token_table())
