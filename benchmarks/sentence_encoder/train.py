"""Contrastive training: the walk of each question against all other walks of a batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random

import torch

from benchmarks.sentence_encoder.net import EncoderNet
from benchmarks.sentence_encoder.pairs import Pair

#: How often each sort of pair is drawn.
MIX = {"hand": 8, "phrasing": 6, "claim": 5, "chain": 3, "natural": 3, "made": 2}

#: Pairs of a batch, wrong walks of each that are compared, and the scale of cosines.
BATCH, WRONG, SCALE = 64, 3, 20.0

#: The highest learning rate, and the share of the steps until it is reached.
RATE, WARM_UP = 3e-4, 0.05


def train(net: EncoderNet, draw: Callable[[str], Pair], *, steps: int, seed: int) -> None:
    """Train a network; the vectors of words stay as they are."""
    random = Random(seed)
    net.net.embeddings.word_embeddings.requires_grad_(False)
    trained = [weight for weight in net.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, RATE, weight_decay=0.01)
    losses, began = list[float](), time.time()
    for step in range(steps):
        done = step / steps
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(done / WARM_UP + 0.02, 1.0, (1 - done) * 1.05)
        pairs = [draw(sort) for sort in random.choices(list(MIX), list(MIX.values()), k=BATCH)]
        loss = _loss(net, pairs, random)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 25 == 0:
            print(
                f"{step + 1} of {steps}: loss {sum(losses[-25:]) / 25:.3f}, {(time.time() - began) / 60:.1f} min",
                flush=True,
            )


def _loss(net: EncoderNet, pairs: Sequence[Pair], random: Random) -> torch.Tensor:
    walks = [pair.walk for pair in pairs]
    for pair in pairs:
        walks += random.sample(pair.wrong, min(len(pair.wrong), WRONG if pair.meaning.startswith("hand") else 1))
    logits = SCALE * net.pairs([pair.question for pair in pairs], walks)
    same = torch.zeros_like(logits, dtype=torch.bool)
    for row, pair in enumerate(pairs):
        for column, walk in enumerate(walks):
            is_pair = column < len(pairs)
            alike = walk == pair.walk or (is_pair and pairs[column].meaning == pair.meaning)
            same[row, column] = alike and column != row
    return torch.nn.functional.cross_entropy(logits.masked_fill(same, -1e4), torch.arange(len(pairs)))
