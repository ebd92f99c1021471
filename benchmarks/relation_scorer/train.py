"""Trains the relation scorer on natural and made questions."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.relation_scorer.batches import Negatives, StepPool, question_tensors
from benchmarks.relation_scorer.examples import Example, Step
from benchmarks.relation_scorer.net import NEVER, Encoded, Net, unit_table
from kg_retrievers.index.embeddings import TokenTable
from kg_retrievers.questions.zero_shot.scorer import MAX_HOPS, MAX_TOKENS, question_ids

BATCH, LEARNING_RATE, WEIGHT_DECAY, WARM_UP = 128, 2e-3, 0.02, 100

#: How often the right step is left out of the candidates, so that the scorer learns to say that nothing fits.
LEFT_OUT = 0.12

#: How often the opposite of the right step is among the candidates: where entities are of one kind, a graph has both.
OPPOSITE = 0.8

#: How often the trap of a question is among the candidates.
TRAPS_KEPT = 0.7

#: After how many batches a line is printed.
LOGGED = 200


def train(table: TokenTable, examples: Sequence[Example], *, seed: int, epochs: float = 1.0, log: bool = True) -> Net:
    """Train a scorer; see `kg_retrievers.questions.zero_shot.scorer` for what it is.

    Args:
        table: The token table, which stays as it is.
        examples: Questions with their walks.
        seed: Of all chance.
        epochs: How often the examples are seen.
        log: Whether to print the loss as it falls.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    random = Random(seed)
    net, pool = Net(torch.from_numpy(unit_table(table))), StepPool(table)
    lengths = [len(question_ids(table, example.question)[0]) for example in examples]
    rows = [example for example, length in zip(examples, lengths, strict=True) if length <= MAX_TOKENS]
    lengths = [length for length in lengths if length <= MAX_TOKENS]
    if len(rows) < BATCH:
        raise ValueError(f"{len(rows)} examples are too few: a batch has {BATCH}.")
    negatives = Negatives(pool, rows, random)
    total = int(epochs * len(rows) / BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min(1.0, (i + 1) / WARM_UP) * max(0.02, 0.5 * (1 + math.cos(math.pi * i / total)))
    )
    began, losses, right = time.process_time(), list[float](), list[float]()
    for position, chosen in zip(range(total), _batches(lengths, random), strict=False):
        loss, accuracy = _loss(net, pool, negatives, table, [rows[i] for i in chosen])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        right.append(accuracy)
        if log and (position + 1) % LOGGED == 0:
            mean, share = (float(np.mean(values[-LOGGED:])) for values in (losses, right))
            spent = time.process_time() - began
            print(f"{position + 1}/{total} loss {mean:.3f} right {share:.3f} cpu {spent:.0f} s", flush=True)
    return net.eval()


def share_right(net: Net, table: TokenTable, left_out: Sequence[Example]) -> float:
    """Return the share of right decisions on examples that were not trained on, among candidates as in training."""
    torch.manual_seed(0)
    pool = StepPool(table)
    negatives = Negatives(pool, left_out, Random(0))
    batches = [left_out[start : start + BATCH] for start in range(0, len(left_out), BATCH)]
    with torch.no_grad():
        return float(np.mean([_loss(net, pool, negatives, table, batch)[1] for batch in batches]))


def _batches(lengths: Sequence[int], random: Random) -> Iterator[list[int]]:
    """Yield the positions of batches of about equal length, in random order, without end."""
    while True:
        order = list(range(len(lengths)))
        random.shuffle(order)
        order.sort(key=lambda i: lengths[i] + random.random() * 6)
        batches = [order[i : i + BATCH] for i in range(0, len(order) - BATCH + 1, BATCH)]
        random.shuffle(batches)
        yield from batches


def _offered(negatives: Negatives, batch: Sequence[Example]) -> list[Step]:
    """Return the steps of a batch, hard negatives of them, and traps."""
    candidates = dict.fromkeys(step for example in batch for step in example.path)
    for step in list(candidates):
        candidates.update(dict.fromkeys(negatives.of(step)))
    candidates.update(dict.fromkeys(example.trap for example in batch if example.trap))
    return list(candidates)


class _Meanings:
    """Which of the offered steps mean the same."""

    def __init__(self, offered: Sequence[Step]) -> None:
        self.place = {step: position for position, step in enumerate(offered)}
        self._numbers: dict[tuple[str, bool], int] = {}
        self._opposite = torch.tensor([self.place.get(step.turned(), -1) for step in offered])
        self._groups = torch.tensor([self._numbers.setdefault(step.meaning, len(self._numbers)) for step in offered])
        names: dict[tuple[str, bool], int] = {}
        self._names = torch.tensor([names.setdefault((step.name, step.backward), len(names)) for step in offered])

    def kept(self, gold: Tensor, of: Sequence[Example], hop: int) -> Tensor:
        """Return a mask of the options that stay: the right one, and random others of another meaning and name."""
        stop, nothing = len(self.place), len(self.place) + 1
        keep = torch.rand(len(of), stop + 2) < torch.exp(torch.rand(len(of), 1) * 4.8 - 4.8)
        keep[:, stop] = hop > 0
        keep[:, nothing] = True
        rows = torch.arange(len(of))
        keep[rows, gold] = True
        is_step = gold < stop
        of_gold = gold.clamp(max=stop - 1)
        opposite = self._opposite[of_gold]
        beside = is_step & (opposite >= 0) & (torch.rand(len(of)) < OPPOSITE)
        keep[rows[beside], opposite[beside]] = True
        random_share = torch.rand(len(of)).tolist()
        for row, example in enumerate(of):
            if example.trap and random_share[row] < TRAPS_KEPT:
                keep[row, self.place[example.trap]] = True
        same = self._groups[None] == self._groups[of_gold][:, None]
        same |= self._names[None] == self._names[of_gold][:, None]
        same &= is_step[:, None]
        same[rows[is_step], gold[is_step]] = False
        keep[:, :stop] &= ~same
        for row, example in enumerate(of):
            if hop == 0 and example.detour:  # there is no shorter way
                keep[row, :stop] &= self._groups != self._numbers[example.path[1].meaning]
                keep[row, gold[row]] = True
        return keep


def _loss(
    net: Net, pool: StepPool, negatives: Negatives, table: TokenTable, batch: Sequence[Example]
) -> tuple[Tensor, float]:
    """Return the mean cross entropy over the decisions of a batch, and the share of right ones.

    The candidates are the steps of the batch with hard negatives; those that mean the same as the right one are left
    out, and at random many others, for a graph offers few at a time.
    """
    offered = _offered(negatives, batch)
    meanings, steps = _Meanings(offered), pool.encode(net, offered)
    question = net.encode(*question_tensors(table, [example.question for example in batch]))
    state, cover = net.start.expand(len(batch), -1), torch.zeros(len(batch), 2, question.states.shape[1])
    active = list(batch)
    total, decisions, right = torch.zeros(()), 0, 0
    stop, nothing = len(offered), len(offered) + 1
    for hop in range(MAX_HOPS):
        logits, ends, cover = net.decide(question, state, hop, cover, steps)
        paths = [example.path for example in active]
        gold = torch.tensor([meanings.place[path[hop]] if hop < len(path) else stop for path in paths])
        keep = meanings.kept(gold, active, hop)
        absent = (gold < stop) & (torch.rand(len(active)) < LEFT_OUT)
        keep[torch.arange(len(active))[absent], gold[absent]] = False
        target = torch.where(absent, nothing, gold)
        logits = torch.cat([logits, ends], 1).masked_fill(~keep, NEVER)
        total = total + functional.cross_entropy(logits, target, reduction="sum")
        decisions += len(active)
        right += int((logits.argmax(1) == target).sum())
        onward = [j for j, path in enumerate(paths) if hop < len(path) and not absent[j]]
        if not onward or hop == MAX_HOPS - 1:
            break
        state = net.cell(steps.states[gold[onward]], state[onward])
        cover = cover[onward]
        question = Encoded(*(part[onward] for part in question))
        active = [active[j] for j in onward]
    return total / decisions, right / decisions
