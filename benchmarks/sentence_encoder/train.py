"""Contrastive training: the walk of each question against all other walks of a batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from benchmarks.relation_scorer.net import NEVER
from benchmarks.sentence_encoder.net import EncoderNet
from benchmarks.sentence_encoder.pairs import Pair

#: The scale of cosines.
SCALE = 20.0

#: How much it counts that the wrong walks lose against a cosine for "none of these", beside that the right one wins.
LACKING = 0.3

#: The highest learning rate, and the share of the steps until it is reached.
RATE, WARM_UP = 3e-4, 0.05


def train(net: EncoderNet, draw: Callable[[], Sequence[Pair]], *, steps: int) -> None:
    """Train a network; the vectors of words stay as they are.

    Args:
        net: The network.
        draw: Returns the pairs of a batch; all of their wrong walks are compared.
        steps: How many batches.
    """
    net.net.embeddings.word_embeddings.requires_grad_(False)
    trained = [weight for weight in net.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, RATE, weight_decay=0.01)
    losses, began = list[float](), time.time()
    for step in range(steps):
        done = step / steps
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(done / WARM_UP + 0.02, 1.0, (1 - done) * 1.05)
        loss = _loss(net, draw())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 25 == 0:
            mean, minutes = sum(losses[-25:]) / 25, (time.time() - began) / 60
            print(f"{step + 1} of {steps}: loss {mean:.3f}, {minutes:.1f} min", flush=True)


def _loss(net: EncoderNet, pairs: Sequence[Pair]) -> torch.Tensor:
    """Return how unlikely the right walks are beside all others, and "none of these" beside the wrong ones alone."""
    walks = [*(pair.walk for pair in pairs), *(walk for pair in pairs for walk in pair.wrong)]
    cosines = net.pairs([pair.question for pair in pairs], walks)
    logits = SCALE * torch.cat([cosines, net.nothing.expand(len(pairs), 1)], 1)
    same = torch.zeros_like(logits, dtype=torch.bool)
    for row, pair in enumerate(pairs):
        for column, walk in enumerate(walks):
            is_pair = column < len(pairs)
            alike = walk == pair.walk or (is_pair and pairs[column].meaning == pair.meaning)
            same[row, column] = alike and column != row
    right, logits = torch.arange(len(pairs)), logits.masked_fill(same, NEVER)
    found = torch.nn.functional.cross_entropy(logits, right)
    lost = torch.nn.functional.cross_entropy(
        logits.masked_fill(torch.eye(*logits.shape, dtype=torch.bool), NEVER), torch.full_like(right, len(walks))
    )
    return found + LACKING * lost
