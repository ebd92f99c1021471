"""A synthetic graph of any size, the same for a seed: hubs, a few frequent relations, and names that resemble others.

    python -m benchmarks.synthetic_graph --triples 1000000 graph.tsv     # or graph.nt

Entities are called by two to four words, as "Amber Basin Grove", and relations by two, as "keeper harbor"; the words
are English ones of the package's token table, the first ones frequent. Tails follow a power law: of 43 million triples
the greatest hub has about 230,000.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kg_retrievers.index.embeddings import token_table

Ids = npt.NDArray[np.int64]

#: Triples, entities and relations of the sizes that are measured.
SIZES = {
    "1M": (1_000_000, 250_000, 500),
    "4.3M": (4_300_000, 1_075_000, 1_500),
    "13M": (13_000_000, 3_250_000, 5_000),
    "43M": (43_000_000, 10_000_000, 5_000),
    "130M": (130_000_000, 30_000_000, 5_000),
}

#: The exponents of the laws by which heads and tails are drawn: an id is the size times a uniform number to this power.
HEAD_POWER, TAIL_POWER = 1.3, 3.06

ENTITY, RELATION = "http://scale.example/entity/", "http://scale.example/relation/"

#: How many lines are written at once.
_BLOCK = 100_000


class SyntheticGraph(NamedTuple):
    """Triples of ids, each once, and names.

    Attributes:
        heads: int64, shape (triples).
        relations: int64, shape (triples).
        tails: int64, shape (triples).
        entities: The name of each entity; all differ.
        relation_names: The name of each relation; all differ.
    """

    heads: Ids
    relations: Ids
    tails: Ids
    entities: list[str]
    relation_names: list[str]


def synthetic_graph(triples: int, entities: int, relations: int, seed: int = 1) -> SyntheticGraph:
    """Draw a graph; it has as many triples, entities and relations as are wanted."""
    draw = np.random.default_rng(seed)
    weights = 1 / np.arange(1, relations + 1)
    bounds = np.cumsum(weights / weights.sum())
    codes = np.empty(0, np.int64)
    while len(codes) < triples:
        more = (triples - len(codes)) * 11 // 10 + 10
        heads, tails = (np.int64(entities * draw.random(more) ** power) for power in (HEAD_POWER, TAIL_POWER))
        kinds = np.minimum(np.searchsorted(bounds, draw.random(more)), relations - 1)
        codes = np.unique(np.concatenate([codes, (heads * relations + kinds) * entities + tails]))
    codes = draw.permutation(codes)[:triples]
    places = draw.permutation(entities)  # hubs lie anywhere
    heads, kinds, tails = codes // entities // relations, codes // entities % relations, codes % entities
    names = _names(draw, entities, (0.2, 0.5, 0.3))
    relation_names = [name.casefold() for name in _names(draw, relations, (1.0, 0.0, 0.0))]
    return SyntheticGraph(places[heads], kinds, places[tails], names, relation_names)


def entity_names(count: int, seed: int = 1) -> list[str]:
    """Draw names of entities alone, all different."""
    return _names(np.random.default_rng(seed), count, (0.2, 0.5, 0.3))


def _names(draw: np.random.Generator, count: int, lengths: tuple[float, float, float]) -> list[str]:
    """Draw different names of two, three or four words."""
    words = [token for token in token_table().tokens if token.isascii() and token.isalpha() and len(token) > 3]
    size = len(words) + 1
    codes = np.empty(0, np.int64)
    while len(codes) < count:
        more = (count - len(codes)) * 3 // 2 + 10
        drawn = np.int64((size - 1) * draw.random((more, 4)) ** 1.5) + 1
        lacking = draw.choice([2, 1, 0], more, p=lengths)[:, None]
        drawn[np.arange(4) >= 4 - lacking] = 0
        codes = np.unique(np.concatenate([codes, drawn @ (size ** np.arange(4))]))
    codes = draw.permutation(codes)[:count]
    written = np.array(["", *(word.capitalize() for word in words)], object)
    columns = [written[codes // size**place % size] for place in range(4)]
    return [" ".join(filter(None, row)) for row in zip(*columns, strict=True)]


def lines(graph: SyntheticGraph, suffix: str) -> Iterator[str]:
    """Yield blocks of lines of a file of tab-separated texts ("tsv") or of N-Triples ("nt")."""
    entities, relations = graph.entities, graph.relation_names
    if suffix == "nt":
        entities = [f"<{ENTITY}{name.replace(' ', '_')}>" for name in entities]
        relations = [f"<{RELATION}{name.replace(' ', '_')}>" for name in relations]
    between, end = (" ", " .\n") if suffix == "nt" else ("\t", "\n")
    for first in range(0, len(graph.heads), _BLOCK):
        some = (column[first : first + _BLOCK].tolist() for column in graph[:3])
        yield "".join(
            f"{entities[head]}{between}{relations[relation]}{between}{entities[tail]}{end}"
            for head, relation, tail in zip(*some, strict=True)
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="1M")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="+", type=Path, help="files that end in .tsv or .nt")
    arguments = parser.parse_args()
    graph = synthetic_graph(*SIZES[arguments.size], arguments.seed)
    for path in arguments.files:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines(graph, path.suffix[1:]))


if __name__ == "__main__":
    main()
