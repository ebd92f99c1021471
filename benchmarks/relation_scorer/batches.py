"""Steps and questions as the tensors that the scorer reads, and steps that are easily mistaken for others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

import numpy as np
import torch
from torch import Tensor

from benchmarks.relation_scorer.examples import Example, Step
from benchmarks.relation_scorer.net import Net, Steps
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import TokenTable, mean_rows
from kg_retrievers.questions.zero_shot.scorer import FAR, KINDS, question_ids


class StepPool:
    """Steps as arrays: each distinct text is embedded once."""

    def __init__(self, table: TokenTable) -> None:
        """Begin with the empty text."""
        self.table = table
        self.ids: dict[str, int] = {}
        self.vectors: list[Array] = []
        self.id_of("")

    def id_of(self, text: str) -> int:
        """Return the position of the vector of a text."""
        if text not in self.ids:
            self.ids[text] = len(self.ids)
            self.vectors.append(mean_rows(self.table, [text])[0])
        return self.ids[text]

    def encode(self, net: Net, steps: Sequence[Step]) -> Steps:
        """Return the states of steps."""
        texts = np.array([[self.id_of(step.name), self.id_of(step.start), self.id_of(step.end)] for step in steps])
        vectors = torch.from_numpy(np.stack([self.vectors[id] for id in texts.T.ravel()])).view(3, len(steps), -1)
        directions = torch.tensor([int(step.backward) for step in steps])
        kinds = torch.tensor([KINDS.index(step.kind) for step in steps])
        return net.steps(vectors[0], vectors[1], vectors[2], directions, kinds)


def question_tensors(table: TokenTable, texts: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids, positions and presence of the tokens of questions, padded."""
    rows = [question_ids(table, text) for text in texts]
    longest = max(len(ids) for ids, _ in rows)
    ids = np.zeros((len(rows), longest), np.int64)
    positions = np.full((len(rows), longest), 2 * FAR + 1, np.int64)
    present = np.zeros((len(rows), longest), bool)
    for row, (of_row, at) in enumerate(rows):
        ids[row, : len(of_row)], positions[row, : len(at)], present[row, : len(of_row)] = of_row, at, True
    return torch.from_numpy(ids), torch.from_numpy(positions), torch.from_numpy(present)


class Negatives:
    """Steps that are near to others in name."""

    def __init__(self, pool: StepPool, examples: Sequence[Example], random: Random) -> None:
        """Compare the relations of the examples by the first name of each."""
        self.random = random
        self.steps: dict[str, list[Step]] = defaultdict(list)
        for step in dict.fromkeys(step for example in examples for step in example.path):
            self.steps[step.meaning[0]].append(step)
        self.ids = list(self.steps)
        self.positions = {id: position for position, id in enumerate(self.ids)}
        vectors = np.stack([pool.vectors[pool.id_of(self.steps[id][0].name)] for id in self.ids])
        self.near = np.argsort(-(vectors @ vectors.T), axis=1)[:, 1:13]

    def of(self, step: Step) -> list[Step]:
        """Return the opposite step, and mostly one of a near relation."""
        found = [step.turned()]
        if self.random.random() < 0.7:
            near = self.random.choice(
                self.steps[self.ids[self.random.choice(self.near[self.positions[step.meaning[0]]])]]
            )
            if self.random.random() < 0.5:
                near = near._replace(backward=not near.backward, meaning=(near.meaning[0], not near.meaning[1]))
            found.append(near)
        return found
