"""How many of the nearest names `QuantizedSearch` finds, and what a search costs.

    python -m benchmarks.name_recall --size 4.3M          # 1,075,000 names; 43M: 10 million, 7 GB, 10 minutes

The names are those of `benchmarks.synthetic_graph`, with the default embeddings. Questions are names with a letter
left out, without one of their words, or with their words turned around. What is nearest is found with float32 vectors,
of which no more than one block is in memory. Times are CPU times of one thread, the median over the questions.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.synthetic_graph import SIZES, entity_names
from kg_retrievers.algorithms.quantization import quantized, rotated_bits
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import default_embeddings
from kg_retrievers.index import quantized_search as search_module
from kg_retrievers.index.quantized_search import QuantizedSearch

BLOCK = 1 << 15
KINDS = ("a letter less", "a word less", "turned around")


def questions(names: list[str], count: int, seed: int = 5) -> list[str]:
    """Draw names and change them, each kind of change in turn."""
    draw = np.random.default_rng(seed)
    asked = []
    for number, at in enumerate(draw.integers(0, len(names), count).tolist()):
        words = names[at].split()
        which = int(draw.integers(len(words)))
        if number % 3 == 0:
            letter = int(draw.integers(1, len(words[which])))
            words[which] = words[which][:letter] + words[which][letter + 1 :]
        elif number % 3 == 1:
            words.pop(which)
        else:
            words.reverse()
        asked.append(" ".join(words))
    return asked


class Nearest:
    """The nearest of all vectors to each question, exactly, while blocks of them pass by."""

    def __init__(self, asked: Array, k: int) -> None:
        """Begin with none."""
        self._asked, self._k = asked, k
        self.ids, self._near = np.empty((len(asked), 0), np.int64), np.empty((len(asked), 0), np.float32)

    def add(self, first: int, vectors: Array) -> None:
        """Look at the vectors from an id on."""
        near = np.concatenate([self._near, self._asked @ vectors.T], axis=1)
        ids = np.broadcast_to(np.arange(first, first + len(vectors)), (len(near), len(vectors)))
        ids = np.concatenate([self.ids, ids], axis=1)
        kept = np.argpartition(-near, min(self._k, near.shape[1]) - 1, axis=1)[:, : self._k]
        self._near, self.ids = np.take_along_axis(near, kept, axis=1), np.take_along_axis(ids, kept, axis=1)

    def sorted(self) -> Array:
        """Return the ids, nearest first."""
        return np.take_along_axis(self.ids, np.argsort(-self._near, axis=1, kind="stable"), axis=1)


def seconds(action) -> float:
    """Return the CPU seconds of an action."""
    begin = time.process_time()
    action()
    return time.process_time() - begin


def report(search: QuantizedSearch, asked: Array, exact: Array, k: int) -> str:
    """Return a row of the table."""
    shares, times = [], []
    for question, nearest in zip(asked, exact, strict=True):
        begin = time.process_time()
        ids = search.search(question[None], k)[0][0]
        times.append(time.process_time() - begin)
        shares.append(len(np.intersect1d(ids, nearest[:k])) / len(ids))
    together = min(seconds(lambda start=start: search.search(asked[start : start + 8], k)) for start in (0, 8))
    kinds = " ".join(f"{np.mean(shares[kind :: len(KINDS)]):.3f}" for kind in range(len(KINDS)))
    return (
        f"k {k:>6,}: recall {np.mean(shares):.3f} ({kinds}; least {min(shares):.3f}), "
        f"{1000 * np.median(times):.0f} ms, eight at once {1000 * together:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="1M")
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--candidates", type=int, nargs="+", default=[search_module.CANDIDATES])
    parser.add_argument("--folder", type=Path, help="where the vectors go; a temporary folder by default")
    arguments = parser.parse_args()
    names = entity_names(SIZES[arguments.size][1])
    embeddings = default_embeddings()
    asked = embeddings.embed_array(questions(names, arguments.questions))
    nearest, spent = Nearest(asked, min(len(names), 16_384)), dict.fromkeys(("embedding", "8-bit numbers", "bits"), 0.0)
    with TemporaryDirectory(dir=arguments.folder) as folder:
        rows = np.memmap(Path(folder) / "rows", np.int8, "w+", shape=(len(names), embeddings.dimension))
        for first in range(0, len(names), BLOCK):
            begin = time.process_time()
            vectors = embeddings.embed_array(names[first : first + BLOCK])
            spent["embedding"] += time.process_time() - begin
            begin = time.process_time()
            for start in range(0, len(vectors), 1024):
                rows[first + start : first + start + 1024] = quantized(vectors[start : start + 1024])
            spent["8-bit numbers"] += time.process_time() - begin
            nearest.add(first, vectors)
        begin = time.process_time()
        bits = rotated_bits(rows)
        spent["bits"] = time.process_time() - begin
        exact, search = nearest.sorted(), QuantizedSearch(rows, bits)
        print(f"{len(names):,} names;", ", ".join(f"{name} {value:.0f} CPU s" for name, value in spent.items()))
        print("recall of all questions (of names with", ", ".join(KINDS) + ")")
        search.search(asked[:1], 1)  # compiles
        for candidates in arguments.candidates:
            search_module.CANDIDATES = candidates
            print(f"{candidates} candidates for each wanted:")
            for k in sorted({16, 256, 1024, max(16, len(names) * 16_384 // 10_000_000), 16_384}):
                print(report(search, asked, exact, k), flush=True)
        print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


if __name__ == "__main__":
    main()
