"""What a change of a graph costs beside a rebuild: 1 % of a million facts added, 1 % removed, with the index saved.

    python benchmarks/changes.py FOLDER [--triples N] [--questions N] [--seed N]

The graph is synthetic: names of two to four words, of which many share some, relations and entities drawn by Zipf's
law. Half of the added facts name an entity that the graph does not have. Measured is CPU time of this process, threads
included:

- a rebuild: `KnowledgeGraph.from_triples` of the facts that result, `GraphIndex.build` with the default embeddings,
  saved to a new folder;
- a change: `GraphIndex.update` of the folder that holds the earlier graph, from opening to the end of the save.

Then both are asked the same questions: relation paths of one or two hops that begin at an entity given by its name,
through `EntityLinker` and the matcher of SimGRAG. The answers are compared as sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.pattern import Known, Pattern, PatternTriple, Term, Unknown
from kg_retrievers.index import EntityLinker
from kg_retrievers.index.graph_index import IndexUpdate

T = TypeVar("T")
Fact = tuple[str, str, str]

#: Facts of the graph, and of each entity and relation so many.
TRIPLES, FACTS_OF_ENTITY, FACTS_OF_RELATION = 1_000_000, 4, 2_000

#: The part of the facts that is added, and the part that is removed.
CHANGED = 0.01

#: How steeply relations and tails are drawn: the share of the one of rank r is about `r ** -ZIPF`.
ZIPF = 0.8

_STARTS = ("ba", "ce", "di", "fo", "gu", "ha", "ju", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wa", "ze")
_ENDS = ("bor", "dane", "fell", "gate", "holm", "kirk", "land", "mere", "nell", "port", "rick", "sen", "ton", "ville")
_VERBS = ("works", "lives", "plays", "owns", "leads", "wrote", "made", "sold", "built", "owes")
_NOUNS = ("guild", "river", "house", "mill", "paper", "council", "harbour", "school", "mine", "choir")
_PREPOSITIONS = ("in", "for", "with", "by", "near")


class Case(NamedTuple):
    """The facts before, those that are added and removed, and the facts after."""

    before: list[Fact]
    added: list[Fact]
    removed: list[Fact]
    after: list[Fact]


def names(count: int, random: np.random.Generator) -> list[str]:
    """Return so many distinct names of two to four words; words are shared."""
    words = [f"{start}{middle}{end}".capitalize() for start in _STARTS for middle in _STARTS for end in _ENDS]
    found: dict[str, None] = {}
    while len(found) < count:
        drawn = random.integers(0, len(words), (count, 4))
        sizes = random.integers(2, 5, count)
        found |= dict.fromkeys(" ".join(words[id] for id in row[:size]) for row, size in zip(drawn, sizes, strict=True))
    return list(found)[:count]


def relation_names(count: int) -> list[str]:
    """Return so many distinct names of relations."""
    all_names = [f"{verb}_{preposition}_{noun}" for noun in _NOUNS for preposition in _PREPOSITIONS for verb in _VERBS]
    return [all_names[id % len(all_names)] + "_too" * (id // len(all_names)) for id in range(count)]


def by_rank(size: int, count: int, random: np.random.Generator) -> Array:
    """Draw ids below `size` by Zipf's law."""
    weights = np.arange(1, size + 1) ** -ZIPF
    return random.choice(size, count, p=weights / weights.sum())


def make_case(triples: int, seed: int) -> Case:
    """Draw a graph and its changes."""
    random = np.random.default_rng(seed)
    entities, relations = triples // FACTS_OF_ENTITY, max(5, triples // FACTS_OF_RELATION)
    change = int(triples * CHANGED)
    texts, kinds = names(entities + change // 2, random), relation_names(relations)
    heads = random.integers(0, entities, triples + change)
    heads[-(change // 2) :] = entities + np.arange(change // 2)  # facts of entities that are new
    tails = random.permutation(entities)[by_rank(entities, len(heads), random)]
    ids = zip(heads.tolist(), by_rank(relations, len(heads), random).tolist(), tails.tolist(), strict=True)
    facts = [(texts[head], kinds[relation], texts[tail]) for head, relation, tail in ids]
    before = list(dict.fromkeys(facts[:triples]))
    added = list(dict.fromkeys(facts[triples:]))
    removed = [before[id] for id in random.choice(len(before), change, replace=False)]
    gone = {*removed} - {*added}
    after = [fact for fact in before if fact not in gone]
    return Case(before, added, removed, list(dict.fromkeys([*after, *added])))


def cpu_seconds(what: str, work: Callable[[], T]) -> tuple[T, float]:
    """Return what a function returns, and the CPU seconds that it took, which are printed."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = work()
    seconds = time.process_time() - cpu
    print(f"{what}: {seconds:.2f} s of CPU, {time.perf_counter() - wall:.2f} s", flush=True)
    return made, seconds


def rebuild(facts: Sequence[Fact], folder: Path) -> GraphIndex:
    """Make the graph and the index anew, save them and open them."""
    GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings(), folder)
    return GraphIndex.open(folder, default_embeddings())


def questions(facts: Sequence[Fact], count: int, seed: int) -> list[tuple[str, Pattern]]:
    """Draw questions with their patterns; every other one joins two facts."""
    random = np.random.default_rng(seed)
    by_head: dict[str, list[Fact]] = {}
    for fact in facts:
        by_head.setdefault(fact[0], []).append(fact)
    drawn: list[tuple[str, Pattern]] = []
    while len(drawn) < count:
        head, relation, tail = facts[int(random.integers(len(facts)))]
        steps, unknowns = [relation], [Unknown("x")]
        if len(drawn) % 2:
            if tail not in by_head:
                continue
            steps.append(by_head[tail][int(random.integers(len(by_head[tail])))][1])
            unknowns.append(Unknown("y"))
        nodes: list[Term] = [Known(head), *unknowns]
        triples = tuple(PatternTriple(nodes[id], Known(step), nodes[id + 1]) for id, step in enumerate(steps))
        words = " and then ".join(step.replace("_", " ") for step in steps)
        drawn.append((f"What is it that {head} {words}?", Pattern(triples, target=unknowns[-1].name)))
    return drawn


def answers(index: GraphIndex, asked: Sequence[tuple[str, Pattern]]) -> list[tuple[object, ...]]:
    """Return for each question the entities that are linked, and the answers of its pattern with their score."""
    linker, retriever = EntityLinker(index), SimGRAGRetriever.from_index(index)
    found: list[tuple[object, ...]] = []
    for text, pattern in asked:
        linked = set[tuple[str, str]]()
        with suppress(EntityLinkingError):
            linked = {(mention.text, one.entity) for mention in linker.link(text) for one in mention.candidates}
        evidence = retriever.match(pattern, k=1)
        found.append((linked, [({*one.answers}, round(one.score, 5)) for one in evidence]))
    return found


def main() -> None:
    """Measure, and say whether all answers are equal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="for the indexes; it must be empty or missing")
    parser.add_argument("--triples", type=int, default=TRIPLES)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    case = make_case(options.triples, options.seed)
    print(f"{len(case.before):,} facts, {len(case.added):,} added, {len(case.removed):,} removed", flush=True)
    GraphIndex.build(KnowledgeGraph.from_triples(case.before), default_embeddings(), options.folder / "changed")
    anew, long = cpu_seconds("rebuild", lambda: rebuild(case.after, options.folder / "anew"))

    def change() -> IndexUpdate:
        folder = options.folder / "changed"
        return GraphIndex.update(folder, default_embeddings(), added=case.added, removed=case.removed)

    update, short = cpu_seconds("update", change)
    print(f"{long / short:.1f} times less CPU; {update.added:,} added, {update.embedded:,} texts embedded")
    print(f"{len(update.index.graph.entities):,} entities, {len(anew.graph.entities):,} in the rebuild")
    asked = questions(case.after, options.questions, options.seed)
    here, there = answers(update.index, asked), answers(anew, asked)
    equal = [one == other for one, other in zip(here, there, strict=True)]
    answered = sum(bool(found[1]) for found in here)
    print(f"{sum(equal):,} of {len(equal):,} questions have equal answers; {answered:,} have some")


if __name__ == "__main__":
    main()
