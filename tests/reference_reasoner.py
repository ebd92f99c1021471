"""GNN-RAG's graph network as research code writes it: a message of full width for each fact, in plain torch."""

from __future__ import annotations

import numpy as np
import torch

from kg_retrievers.index import HashedEmbeddings
from kg_retrievers.methods.gnn_rag.model import GraphReasoner


class PerFactReasoner(torch.nn.Module):
    """The layer of arXiv:2405.20139 (section 4.1) and arXiv:2210.13650, fact by fact.

    In each layer and for each instruction, every fact gathers the vector of its relation, `relu(W r * instruction)` is
    its message, weighed by the probability of its sender and added up at its receiver; once along the facts and once
    against them, both with a fact from each entity to itself. One linear layer from (2 K + 1) d to d numbers sees the
    old vector and the 2 K sums side by side.

    Its parameters have the names and shapes of `GraphReasonerConfig.shapes`, and hold a reasoner's weights. Cost: for a
    layer, 4 * K * facts * d numbers, and 2 * facts * d ** 2 + (2 K + 1) * entities * d ** 2 multiplications.

    Args:
        reasoner: Whose weights it takes.
    """

    def __init__(self, reasoner: GraphReasoner) -> None:
        """Copy the weights."""
        super().__init__()
        self.config = reasoner.config
        weights = {name: torch.tensor(weight) for name, weight in reasoner.weights.items()}
        if self.config.tokens == "words":
            self.gru = torch.nn.GRU(self.config.width, self.config.width, batch_first=True, bidirectional=True)
        for name, weight in weights.items():
            if not name.startswith("gru."):
                self.register_parameter(name, torch.nn.Parameter(weight))
        self.load_state_dict(weights)

    def forward(
        self,
        question: torch.Tensor,
        relations: torch.Tensor,
        facts: torch.Tensor,
        nodes: int,
        seeds: torch.Tensor,
        reversed_relations: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return the logarithm of each entity's probability, shape (nodes).

        Args:
            question: Vectors of its tokens, shape (tokens, dimension).
            relations: The vector of each relation, shape (relations, dimension).
            facts: int64, shape (facts, 3): head, relation, tail; entities are numbered from 0 to `nodes` - 1.
            nodes: The number of entities.
            seeds: int64, shape (seeds): the question's own, each once.
            reversed_relations: The same of their words in reverse, where `inverse` is "words".
        """
        config, itself = self.config, torch.arange(nodes)
        vectors = relations @ self.token + self.token_bias
        if reversed_relations is not None:
            turned = [vectors, reversed_relations @ self.token + self.token_bias]
            beginning = [vectors, vectors]
        else:
            turned = [vectors @ self.along + self.along_bias, vectors @ self.against + self.against_bias]
            beginning = turned
        tables = [torch.cat([table, self.loop[None]]) for table in turned]
        heads, kinds, tails = facts.T
        kinds = torch.cat([kinds, torch.full((nodes,), len(relations))])
        ways = [
            (tables[0], torch.cat([heads, itself]), torch.cat([tails, itself])),
            (tables[1], torch.cat([tails, itself]), torch.cat([heads, itself])),
        ]
        instructions = self._instructions(question)
        states = self._first_states(beginning, facts, nodes)
        start = torch.zeros(nodes, dtype=states.dtype).index_fill(0, seeds, 1 / len(seeds))
        for stage in range(config.stages):
            if stage:
                instructions = self._renewed(instructions, states[seeds].sum(0))
            likely = start
            for layer in range(config.layers):
                if config.relative:
                    likely = likely / likely.amax().clamp_min(1e-30)
                received = [states]
                for table, senders, receivers in ways:
                    of_facts = (table @ self.match[layer] + self.match_bias[layer])[kinds]
                    for instruction in instructions:
                        messages = torch.relu(of_facts * instruction) * likely[senders, None]
                        received.append(torch.zeros_like(states).index_add(0, receivers, messages))
                mix = torch.cat([self.keep[layer], self.receive[layer, 0], self.receive[layer, 1]])
                states = torch.relu(torch.cat(received, 1) @ mix + self.bias[layer])
                if config.norms:
                    states = states / torch.sqrt((states**2).mean(1, keepdim=True) + 0.01)
                scores = states @ self.score
                if config.mask_seeds:
                    scores = scores.index_fill(0, seeds, -1e9)
                logarithms = torch.log_softmax(scores, 0)
                likely = logarithms.exp()
        return logarithms

    def _first_states(self, tables: list[torch.Tensor], facts: torch.Tensor, nodes: int) -> torch.Tensor:
        """Return the sum over the distinct relations at each entity, in the direction in which they come to it."""
        states = torch.zeros(nodes, self.config.width, dtype=tables[0].dtype)
        for table, receivers in ((tables[0], facts[:, 2]), (tables[1], facts[:, 0])):
            pairs = torch.stack([receivers, facts[:, 1]], 1).unique(dim=0)
            states = states.index_add(0, pairs[:, 0], (table @ self.begin)[pairs[:, 1]])
        return torch.relu(states)

    def _instructions(self, question: torch.Tensor) -> list[torch.Tensor]:
        config = self.config
        tokens = question @ self.token + self.token_bias
        summary = tokens[0] if config.pooling == "first" else tokens.mean(0)
        if config.tokens == "words":
            read, last = self.gru(tokens[None])
            tokens, summary = tokens + read[0].view(len(tokens), 2, -1).sum(1), last[:, 0].sum(0)
        instructions = [torch.zeros_like(summary)]
        for part in range(config.instructions):
            before, asked = instructions[-1], summary @ self.ask[part] + self.ask_bias[part]
            joined = torch.cat([before, asked, before * asked, asked - before]) @ self.join + self.join_bias
            attention = torch.softmax((tokens * joined) @ self.attend / (config.width**0.5 if config.norms else 1), 0)
            instructions.append((attention[:, None] * tokens).sum(0))
        return instructions[1:]

    def _renewed(self, instructions: list[torch.Tensor], seeds: torch.Tensor) -> list[torch.Tensor]:
        renewed = []
        for part, instruction in enumerate(instructions):
            weights = [self.gate, self.gate_bias, self.renew, self.renew_bias]
            if self.config.gates == "own":
                weights = [weight[part] for weight in weights]
            joined = torch.cat([instruction, seeds, instruction - seeds])
            gate = torch.sigmoid(joined @ weights[0] + weights[1])
            renewed.append(gate * (joined @ weights[2] + weights[3]) + (1 - gate) * instruction)
        return renewed


class States(HashedEmbeddings):
    """Stands for a language model: each token's state depends on its text, and the first one is of the whole text."""

    def embed_tokens(self, texts: list[str]) -> list[np.ndarray]:
        """Return a state of the text, then one of each word in it."""
        return [self.embed_array([text, *(f"{word} of {text}" for word in text.split())]) for text in texts]
