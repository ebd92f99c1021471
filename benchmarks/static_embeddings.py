"""What the default embeddings find, and how large the share of the letters in them should be.

    python -m benchmarks.static_embeddings [--letters 0 .05 .1 .15 .2 .25 .3 .4 .5 1] [--minilm] [--seed 0] [--record]

- words: the other names that people gave a property of Wikidata, each asked among the names of all 2,728.
- typos: 2,000 names of Freebase, two random letters of each replaced, left out, doubled or swapped, asked among all.
- both: the words again, with one such typo.
- time: CPU time for a text in a batch, over the names of Freebase, each met for the first time, and met again.

The share of right ones, and the middle of the cosines with the right one. Neither set is one that results are reported
on. Needs the folders `relation_language` and `freebase_sample` in KG_RETRIEVERS_DATA.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from benchmarks import figures
from benchmarks.question_splits import DATA, minilm
from kg_retrievers import HashedEmbeddings, local_embeddings
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index import StaticEmbeddings, embed

SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0)

#: How many names are given typos.
TYPOS = 2000

#: How many of the other names of a property are asked.
ALIASES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", nargs="+", type=float, default=SHARES)
    parser.add_argument("--minilm", action="store_true", help="all-MiniLM-L6-v2 as well")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write the table of the docs")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    properties, asked, gold = read_properties()
    names = read_names()
    chosen = rng.sample(range(len(names)), TYPOS)
    typos = [with_typo(with_typo(names[number], rng), rng) for number in chosen]
    misspelt = [with_typo(text, rng) for text in asked]
    kinds: dict[str, Embeddings] = {f"static {share:g}": StaticEmbeddings(share) for share in arguments.letters}
    kinds["hashed"] = HashedEmbeddings()
    if arguments.minilm:
        kinds["all-MiniLM-L6-v2"] = local_embeddings(minilm())
    print(f"{len(properties):,} properties, {len(asked):,} other names; {len(names):,} names, {TYPOS:,} with typos")
    table = [["embeddings", "other names", "two typos", "both", "CPU ms per text"]]
    print("embeddings\twords\ttypos\tboth\tcosine of words\tof typos\tms first\tms again")
    for kind, embeddings in kinds.items():
        first, again = milliseconds(embeddings, names), milliseconds(embeddings, names)
        labels = embed(embeddings, properties)
        found = [
            nearest(embed(embeddings, asked), labels, gold),
            nearest(embed(embeddings, typos), embed(embeddings, names), chosen),
            nearest(embed(embeddings, misspelt), labels, gold),
        ]
        shown = [*(f"{right:.3f}" for right, _ in found), *(f"{cosine:.2f}" for _, cosine in found[:2])]
        print("\t".join([kind, *shown, f"{first:.4f}", f"{again:.4f}"]), flush=True)
        table.append([kind, *(figures.share(right, 2) for right, _ in found), f"{first:.3f}"])
    if arguments.record:
        n = f"{len(asked):,} other names of {len(properties):,} properties, {TYPOS:,} names of {len(names):,}"
        command = figures.this_command("benchmarks.static_embeddings")
        run = figures.run_of(
            command,
            n=n,
            mode="no reader",
            seed=arguments.seed,
            embeddings="several",
            depends_on=["kg_retrievers/index"],
        )
        figures.record("embeddings", table, run)


def read_properties() -> tuple[list[str], list[str], list[int]]:
    """Return the names of the properties of Wikidata, other names of them, and the number of the property of each."""
    lines = (DATA / "relation_language" / "wikidata_properties.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    aliases = [
        (alias, number) for number, row in enumerate(rows) for alias in row["aliases"][:ALIASES] if len(alias) > 2
    ]
    return [row["label"] for row in rows], [alias for alias, _ in aliases], [number for _, number in aliases]


def read_names() -> list[str]:
    """Return the names in the sample of Freebase that are at least five characters long."""
    names = set[str]()
    for path in sorted((DATA / "freebase_sample").glob("*.json")):
        for triples in json.loads(path.read_text("utf-8")).values():
            names.update(readable(name) for head, _, tail in triples for name in (head, tail) if len(name) > 4)
    return sorted(names)


def with_typo(text: str, rng: random.Random) -> str:
    """Return the text with one letter replaced, left out, doubled or swapped with the next."""
    at = rng.randrange(len(text) - 1)
    head, letter, following, tail = text[:at], text[at], text[at + 1], text[at + 2 :]
    other = rng.choice("abcdefghijklmnopqrstuvwxyz")
    middle = rng.choice([other + following, following, letter + letter + following, following + letter])
    return head + middle + tail


def nearest(asked: Array, known: Array, gold: Sequence[int]) -> tuple[float, float]:
    """Return the share of texts whose nearest is the right one, and the middle of the cosines with it."""
    right = list[bool]()
    for start in range(0, len(asked), 1000):
        part = slice(start, start + 1000)
        right += (np.argmax(asked[part] @ known.T, axis=1) == gold[part]).tolist()
    cosines = np.einsum("ij,ij->i", asked, known[list(gold)])
    return float(np.mean(right)), float(np.median(cosines))


def milliseconds(embeddings: Embeddings, texts: list[str]) -> float:
    """Return the CPU time of one text."""
    start = time.process_time()
    embed(embeddings, texts)
    return (time.process_time() - start) / len(texts) * 1000


if __name__ == "__main__":
    main()
