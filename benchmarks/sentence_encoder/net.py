"""The sentence encoder as a torch module, and its weights as the package reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from benchmarks.question_splits import minilm
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import TokenTable
from kg_retrievers.questions.zero_shot.sentence_encoder import MAX_TOKENS, ROLES, places, read_phrase

#: How many texts pass the network together: texts of like lengths, so that little is padded.
TEXTS_AT_ONCE = 48


class EncoderNet(torch.nn.Module):
    """The first layers of all-MiniLM-L6-v2, a matrix for each role of a step, and a cosine for "none of these".

    Args:
        table: Its tokens are kept.
        layers: How many layers.
    """

    def __init__(self, table: TokenTable, layers: int) -> None:
        """Read the model."""
        super().__init__()
        folder = Path(minilm())
        whole = BertModel.from_pretrained(folder, add_pooling_layer=False)
        names = (folder / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
        ids = {name: number for number, name in enumerate(names)}
        kept = [ids[name] for name in ("[CLS]", "[SEP]", "[UNK]", *table.tokens[1:])]
        config = BertConfig.from_pretrained(folder, num_hidden_layers=layers, vocab_size=len(kept))
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
        config.hidden_act = "gelu_new"
        self.table, self.net = table, BertModel(config, add_pooling_layer=False)
        state = whole.state_dict()
        state["embeddings.word_embeddings.weight"] = state["embeddings.word_embeddings.weight"][kept]
        self.net.load_state_dict({name: tensor for name, tensor in state.items() if name in self.net.state_dict()})
        self.roles = torch.nn.Parameter(torch.eye(config.hidden_size).repeat(len(ROLES), 1, 1))
        self.nothing = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Return a unit vector for each text, (texts, d)."""
        ids = [[0, *(id + 2 for id in self.table.token_ids(text)[: MAX_TOKENS - 2]), 1] for text in texts]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        rows: list[Tensor] = [torch.empty(0)] * len(ids)
        for first in range(0, len(order), TEXTS_AT_ONCE):
            some = order[first : first + TEXTS_AT_ONCE]
            longest = max(len(ids[at]) for at in some)
            tokens = torch.tensor([ids[at] + [0] * (longest - len(ids[at])) for at in some])
            mask = torch.tensor([[1] * len(ids[at]) + [0] * (longest - len(ids[at])) for at in some])
            states = self.net(input_ids=tokens, attention_mask=mask).last_hidden_state
            means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            for at, mean in zip(some, torch.nn.functional.normalize(means, dim=-1), strict=True):
                rows[at] = mean
        return torch.stack(rows)

    def pairs(self, questions: Sequence[str], walks: Sequence[Sequence[str]]) -> Tensor:
        """Return the cosine of each question with each walk, (questions, walks)."""
        asked = list(dict.fromkeys(map(read_phrase, questions)))
        steps = list(dict.fromkeys(step for walk in walks for step in walk))
        vectors = self([*asked, *steps])
        at = {text: number for number, text in enumerate(asked)}
        of_questions = vectors[[at[read_phrase(question)] for question in questions]]
        at = {text: len(asked) + number for number, text in enumerate(steps)}
        rows = [
            (number, ROLES.index(place), at[walk[step]])
            for number, walk in enumerate(walks)
            for place, step in places(range(len(walk)))
        ]
        owners, roles, texts = (torch.tensor(column) for column in zip(*rows, strict=True))
        sums = torch.zeros(len(walks), vectors.shape[1])
        for role in range(len(ROLES)):
            of_role = roles == role
            if of_role.any():
                sums = sums.index_add(0, owners[of_role], vectors[texts[of_role]] @ self.roles[role])
        return of_questions @ torch.nn.functional.normalize(sums, dim=-1).T

    def weights(self) -> dict[str, Array]:
        """Return the weights by the names that the package reads, float32."""
        state = {name: tensor.detach().numpy() for name, tensor in self.net.state_dict().items()}
        words, places = (state[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position"))
        found = {
            "ends": words[:2],
            "tokens": words[2:],
            "positions": places[:MAX_TOKENS] + state["embeddings.token_type_embeddings.weight"][0],
            "norm.weight": state["embeddings.LayerNorm.weight"],
            "norm.bias": state["embeddings.LayerNorm.bias"],
            "roles": self.roles.detach().numpy(),
        }
        for layer in range(self.net.config.num_hidden_layers):
            theirs, ours = f"encoder.layer.{layer}", f"layers.{layer}"
            parts = [f"{theirs}.attention.self.{name}" for name in ("query", "key", "value")]
            for kind in ("weight", "bias"):
                found[f"{ours}.qkv.{kind}"] = np.concatenate([state[f"{part}.{kind}"] for part in parts])
                for name, part in (
                    ("out", "attention.output.dense"),
                    ("up", "intermediate.dense"),
                    ("down", "output.dense"),
                    ("norm1", "attention.output.LayerNorm"),
                    ("norm2", "output.LayerNorm"),
                ):
                    found[f"{ours}.{name}.{kind}"] = state[f"{theirs}.{part}.{kind}"]
        return found
