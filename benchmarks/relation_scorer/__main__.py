r"""Train the relation scorer of the package: `kg_retrievers/questions/zero_shot/scorer.safetensors`.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.relation_scorer [--seed 0] [--output FILE]
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.relation_scorer --fit-only FILE [--output FILE]

Run it in the root of the checkout; it replaces the package's scorer unless `--output` names another file. Needs torch,
and the folder `relation_language` of the data (KG_RETRIEVERS_DATA, default ../shared/data).

1. Examples: the natural questions of SimpleQuestions on Freebase and on Wikidata, which are presented `--natural` times
   under names that a graph may give to their relations, with them those by hand in `words/phrasings` and
   `words/chains`, and `--made` questions of up to three steps by a grammar.
   `LEFT_OUT` of them, drawn at random, are not trained on, and a twelfth of the natural ones is not among them.
2. The network is trained once over the examples.
3. The ranking and the confidence are fitted on the graphs by hand in `benchmarks/own_graphs/fit`, on two public graphs,
   which are asked the held-out natural questions and made ones, and on simulated graphs with made questions.
   `--fit-only` does this step alone.

The examples depend on the seed alone, and the file on what rounds the sums as well: the processor and the versions of
torch and numpy. The default settings take some gigabytes of memory. The CPU minutes since the start are printed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.question_splits import DATA
from benchmarks.relation_scorer.examples import Example, Examples
from benchmarks.relation_scorer.files import (
    CONFIDENCE,
    WALKS,
    half_precision,
    read_scorer,
    write_scorer,
)
from benchmarks.relation_scorer.fit import fit
from benchmarks.relation_scorer.train import share_right, train
from benchmarks.sentence_encoder.by_hand import TRAINED_ON
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.questions.zero_shot.ranking import CONFIDENCE_FEATURES, WALK_FEATURES
from kg_retrievers.questions.zero_shot.scorer import SCORER, RelationScorer

#: How many examples are left out of the training.
LEFT_OUT = 6000

#: Graphs with questions by hand, to fit on.
BY_HAND = Path(__file__).parents[1] / "own_graphs" / "fit"

#: Where the words come from.
SOURCES = (
    "SimpleQuestions on Freebase and on Wikidata, CC BY 3.0; Wikidata's properties, CC0; words of the package's own"
)


def main() -> None:
    """Train or read a scorer, fit its ranking and its confidence, and write it."""
    arguments = _arguments()
    folder = DATA / "relation_language"
    if arguments.fit_only:
        weights, training = read_scorer(arguments.fit_only)
    else:
        weights, training = _trained(arguments, folder)
    scorer = RelationScorer(weights, token_table())
    graphs = sorted(path for path in BY_HAND.iterdir() if path.is_dir() and path.name not in TRAINED_ON)
    weights[WALKS], weights[CONFIDENCE] = fit(scorer, folder, graphs, seed=arguments.seed)
    print(f"{_minutes()} fitted")
    for title, features, name in (("walk", WALK_FEATURES, WALKS), ("confidence", CONFIDENCE_FEATURES, CONFIDENCE)):
        print(f"{title}: " + ", ".join(f"{f} {w:.2f}" for f, w in zip(features, weights[name].tolist(), strict=True)))
    training |= {
        "fitted on": [
            f"simulated graphs, seed {arguments.seed}",
            "facts of SimpleQuestions on Wikidata",
            "SubgraphRAG's sample of Freebase",
            *(graph.name for graph in graphs),
        ]
    }
    output = arguments.output or arguments.fit_only or SCORER
    size = write_scorer(output, weights, training)
    print(f"{_minutes()} wrote {output}, {size:,} bytes")


def _trained(arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train, and return the weights and what is to be known of the training."""
    table, seed = token_table(), arguments.seed
    rows = shuffled_examples(folder, seed=seed, natural=arguments.natural, made=arguments.made)
    left_out, rows = rows[:LEFT_OUT], rows[LEFT_OUT:]
    print(f"{_minutes()} made {len(rows):,} examples", flush=True)
    net = train(table, rows, seed=seed)
    print(f"{_minutes()} trained; right on examples left out: {share_right(net, table, left_out):.3f}", flush=True)
    known = {"seed": seed, "natural": arguments.natural, "made": arguments.made, "examples": len(rows)}
    return half_precision(net), {**known, "sources": SOURCES}


def shuffled_examples(folder: Path, *, seed: int, natural: int, made: int) -> list[Example]:
    """Return examples in random order.

    Args:
        folder: The folder `relation_language` of the data.
        seed: Of all chance.
        natural: How often the natural questions are presented, each time under fresh names.
        made: How many questions to make.
    """
    examples = Examples(folder, token_table(), seed)
    rows = [example for _ in range(natural) for example in examples.natural()]
    rows += examples.made(made)
    Random(seed).shuffle(rows)
    return rows


def _minutes() -> str:
    return f"[{time.process_time() / 60:.1f} CPU minutes]"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.relation_scorer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--natural", type=int, default=12, help="how often the natural questions are presented")
    parser.add_argument("--made", type=int, default=1_000_000, help="how many questions to make")
    parser.add_argument("--fit-only", type=Path, metavar="FILE", help="a scorer whose ranking and confidence to fit")
    parser.add_argument("--output", type=Path, help="default: the package's file, or that of --fit-only")
    return parser.parse_args()


if __name__ == "__main__":
    main()
