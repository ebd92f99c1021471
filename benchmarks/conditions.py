"""A condition that prunes the search against filtering what is found, on MetaQA's graph with its years.

    python benchmarks/conditions.py [--repeats N] [--values N]

The condition keeps the earliest years, of 1 % of the films. Both sides are timed in one run as CPU time of one thread,
the median of N repeats after one that is not counted, and must find the same:

- search: the matcher alone, against the matcher without the condition and array operations over its facts.
- evidence: what a user calls, `SimGRAGRetriever.match`, against the same without the condition and a loop over the
  facts of its evidence.

With `--values`, also the time of the first and of later conditions over so many different values.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.runnables import RunnableLambda

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Pattern, SimGRAGRetriever, Unknown
from kg_retrievers.graph.operations import Condition
from kg_retrievers.graph.value_columns import ValueColumns
from kg_retrievers.methods.simgrag.matching import match_pattern

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SHARE = 0.01
FILM, YEAR, WHO = Unknown("film"), Unknown("year"), Unknown("who")
RELEASED = (FILM, "release_year", YEAR)

#: What is asked -> the triples beside the one of the year. The last node is asked for.
QUESTIONS: dict[str, list[Any]] = {
    "directors of films": [(FILM, "directed_by", WHO)],
    "actors of films": [(FILM, "starred_actors", WHO)],
    "actors of dramas": [(FILM, "has_genre", "Drama"), (FILM, "starred_actors", WHO)],
    "writers of thrillers": [(FILM, "has_genre", "Thriller"), (FILM, "written_by", WHO)],
}


def main() -> None:
    """Time every question and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--values", type=int, default=0)
    options = parser.parse_args()
    graph = KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")
    retriever = SimGRAGRetriever(
        index=GraphIndex.build(graph, HashedEmbeddings(64)),
        pattern_generator=RunnableLambda(Pattern.from_dict),
        max_bindings=100_000,
    )
    year = earliest(graph)
    print(f"condition: year <= {year}\n\n| question | timed | with condition, ms | afterwards, ms | ratio |")
    print("|---|---|---|---|---|")
    for name, triples in QUESTIONS.items():
        pattern = Pattern.of(*triples, RELEASED, target="who", directed=True)
        limited = replace(pattern, conditions=(Condition("year", "<=", year),))
        for timed, find in (("search", searched), ("evidence", evident)):
            pruned, found = clock(lambda: find(retriever, limited, None), options.repeats)  # noqa: B023
            filtered, wanted = clock(lambda: find(retriever, pattern, year), options.repeats)  # noqa: B023
            assert found == wanted
            print(f"| {name} ({len(found)}) | {timed} | {pruned:.2f} | {filtered:.2f} | {filtered / pruned:.1f} |")
    if options.values:
        many_values(options.values)


def earliest(graph: KnowledgeGraph) -> int:
    """Return the last of the earliest years that have 1 % of the films together."""
    years = sorted(int(tail) for _, _, tail in graph.triples(relation="release_year"))
    return years[int(len(years) * SHARE)]


def clock(call: Callable[[], set[str]], repeats: int) -> tuple[float, set[str]]:
    """Return the median CPU time of a call in milliseconds, and its result."""
    found, times = call(), []
    for _ in range(repeats):
        start = time.thread_time()
        call()
        times.append(1000 * (time.thread_time() - start))
    return statistics.median(times), found


def searched(retriever: SimGRAGRetriever, pattern: Pattern, year: int | None) -> set[str]:
    """Return the answers of the matcher; of those of films until a year where one is given."""
    graph = retriever.graph
    (match,) = match_pattern(
        graph.adjacency,
        len(graph.relations),
        retriever.query(pattern, nearest=True),
        direction="respect",
        max_bindings=retriever.max_bindings,
    )
    assert not match.truncated
    facts = [graph.edges[triples] for triples in match.triples]
    if year is None:
        kept = facts[-2]
    else:
        columns, released = graph.value_columns, facts[-1]
        early = columns.last[released[:, 2]] <= columns.last[graph.entities.find(str(year))]
        kept = facts[-2][np.isin(facts[-2][:, 0], released[early, 0])]
    return {graph.entities[entity] for entity in np.unique(kept[:, 2]).tolist()}


def evident(retriever: SimGRAGRetriever, pattern: Pattern, year: int | None) -> set[str]:
    """Return the answers of the retriever; of those of films until a year where one is given."""
    (evidence,) = retriever.match(pattern, 1)
    if year is None:
        return set(evidence.answers)
    early = {head for head, name, tail in evidence.triples if name == "release_year" and int(tail) <= year}
    relation = pattern.triples[-2].relation
    assert not isinstance(relation, Unknown)
    return {tail for head, name, tail in evidence.triples if name == relation.text and head in early}


def many_values(count: int) -> None:
    """Print the time of conditions over many different values."""
    graph = KnowledgeGraph.from_triples([("all", "holds", f"{number} m") for number in range(count)])
    everything = np.arange(len(graph.entities))
    start = time.thread_time()
    columns = ValueColumns(graph)
    columns.read(everything)
    print(f"\n{count:,} values read in {time.thread_time() - start:.2f} s")
    for condition in (Condition("x", "<", 1000), Condition("x", "=", "7 m"), Condition("x", "contains", "77")):
        start = time.thread_time()
        kept = int(columns.where(condition, everything).sum())
        print(f"{condition.operator} {condition.value!r}: {1000 * (time.thread_time() - start):.1f} ms, keeps {kept:,}")


if __name__ == "__main__":
    main()
