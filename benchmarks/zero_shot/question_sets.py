"""The question sets that are measured, each with its graph, and the same questions to graphs that lack what they ask.

A question lacks a relation where one relation of its gold path, drawn with a fixed seed, is taken out of the graph; of
FB15k-237, all relations between its topic and its answers. At most `GRAPHS` graphs are made of one: where more
relations are asked for, a graph lacks several of them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from benchmarks.question_splits import DATA
from kg_retrievers import GraphIndex, KnowledgeGraph, Question, Triple
from kg_retrievers.datasets import read_metaqa, read_pathquestion, read_questions
from kg_retrievers.graph import Known, Pattern, Term, Unknown

#: How many graphs that lack relations are made of one graph.
GRAPHS = 16

#: What indexes a graph.
BuildIndex = Callable[[KnowledgeGraph], GraphIndex]


@dataclass
class Source:
    """A graph that several sets ask.

    Attributes:
        name: What it is called.
        read: Reads it.
        build: Indexes it.
    """

    name: str
    read: Callable[[], KnowledgeGraph]
    build: BuildIndex
    _indexes: list[GraphIndex] = field(default_factory=list)

    @property
    def index(self) -> GraphIndex:
        """The index of the whole graph."""
        if not self._indexes:
            self._indexes.append(self.build(self.read()))
        return self._indexes[0]

    def without(self, relations: Iterable[str]) -> GraphIndex:
        """Return the index of the graph without some relations; its entities and their names stay."""
        graph, gone = self.index.graph, set(relations)
        kept = (triple for triple in graph.triples() if triple.relation not in gone)
        labels = {key: graph.label(key) for key in graph.entities}
        aliases = {key: names for key in graph.entities if (names := graph.aliases(key))}
        types = {key: kinds for key in graph.entities if (kinds := graph.types_of(key))}
        return self.build(KnowledgeGraph.from_triples(kept, labels=labels, aliases=aliases, types=types))


@dataclass
class QuestionSet:
    """Questions to one graph.

    Attributes:
        name: What it is called.
        source: The graph.
        questions: The questions.
        examples: Labelled questions that a retriever may be given; none of them is measured.
        unanswerable: Questions that the graph does not answer.
    """

    name: str
    source: Source
    questions: list[Question]
    examples: list[Question] = field(default_factory=list)
    unanswerable: list[Question] = field(default_factory=list)


def published_sets(names: Sequence[str], n: int, build: BuildIndex, seed: int = 0) -> Iterator[QuestionSet]:
    """Yield the published sets of these names, `n` questions of each drawn with the seed, all where `n` is 0."""
    sources = {
        "fb237": Source("fb237", _read_fb237, build),
        "metaqa": Source("metaqa", partial(KnowledgeGraph.from_file, DATA / "metaqa" / "kb.txt"), build),
        "pathquestion-2": Source("pathquestion-2", partial(_read_pathquestion, 2), build),
        "pathquestion-3": Source("pathquestion-3", partial(_read_pathquestion, 3), build),
    }
    for name in names:
        source = sources["metaqa" if name.startswith("metaqa") else name]
        yield QuestionSet(name, source, _drawn(PUBLISHED[name](), n, seed))


def own_graph(folder: Path) -> KnowledgeGraph:
    """Read `graph.tsv` or `graph.ttl` of a folder, with `entities.tsv` if it is there."""
    graph, entities = next(folder.glob("graph.*")), folder / "entities.tsv"
    return KnowledgeGraph.from_file(graph, entities=entities if entities.exists() else None)


def own_set(folder: Path, build: BuildIndex) -> QuestionSet:
    """Read a folder: a graph, `questions.jsonl`, `unanswerable.jsonl`, `examples.jsonl` and perhaps `claims.jsonl`."""
    lost = [
        Question(question.text, seed_entities=question.seed_entities, kind="unanswerable", answerable=False)
        for question in read_questions(folder / "unanswerable.jsonl")
    ]
    claims = folder / "claims.jsonl"
    questions = [
        *read_questions(folder / "questions.jsonl"),
        *(replace(claim, kind="claim") for claim in (read_questions(claims) if claims.exists() else ())),
    ]
    examples = own_examples(folder, own_graph(folder))
    return QuestionSet(folder.name, Source(folder.name, partial(own_graph, folder), build), questions, examples, lost)


def own_examples(folder: Path, graph: KnowledgeGraph) -> list[Question]:
    """Return the examples of a folder. A row without pattern has the walk from each of its entities."""
    path, found = folder / "examples.jsonl", list[Question]()
    for question, line in zip(read_questions(path), path.read_text("utf-8").splitlines(), strict=True):
        row = json.loads(line)
        pattern = question.pattern or walk_pattern(graph, row["seed_entities"], row["walks"])
        found.append(replace(question, pattern=pattern))
    return found


def walk_pattern(graph: KnowledgeGraph, starts: Sequence[str], walks: Sequence[Sequence[str]]) -> Pattern:
    """Return the pattern of walks to one target, given by their relations, "-" before one that is crossed backward."""
    target, triples, names = Unknown("answer"), list[tuple[Term, Term, Term]](), source_names(graph)
    for number, (start, walk) in enumerate(zip(starts, walks, strict=True)):
        between = [Unknown(f"thing {number} {step}") for step in range(1, len(walk))]
        nodes: list[Term] = [Known(graph.label(start), entity=start), *between, target]
        for (here, there), relation in zip(pairwise(nodes), walk, strict=True):
            known = Known(names[relation.removeprefix("-")])
            triples.append((there, known, here) if relation.startswith("-") else (here, known, there))
    return Pattern.of(*triples, target=target.name, directed=True)


def source_names(graph: KnowledgeGraph) -> dict[str, str]:
    """Return the name of each relation by what the source calls it."""
    sources = graph.relation_ids or graph.relations
    return {source or name: name for source, name in zip(sources, graph.relations, strict=True)}


def lacking(
    sets: Iterable[QuestionSet], n: int, seed: int = 0
) -> Iterator[tuple[GraphIndex, list[tuple[str, Question]]]]:
    """Yield indexes with the questions whose relations they lack, and their sets' names; `n` questions of each set."""
    by_source: dict[str, list[tuple[QuestionSet, Question, frozenset[str]]]] = {}
    for one in sets:
        rng = random.Random(seed)
        for question in _drawn(one.questions, n, seed):
            if relations := _gold_relations(one.source.index.graph, question, rng):
                by_source.setdefault(one.source.name, []).append((one, question, relations))
    for asked in by_source.values():
        wanted = sorted({tuple(sorted(relations)) for _, _, relations in asked})
        for part in range(min(GRAPHS, len(wanted))):
            group = {frozenset(relations) for relations in wanted[part::GRAPHS]}
            index = asked[0][0].source.without(frozenset().union(*group))
            yield index, [(one.name, question) for one, question, relations in asked if relations in group]


def large_vocabulary(build: BuildIndex, relations: int = 5_000, seed: int = 0) -> tuple[GraphIndex, list[Question]]:
    """Return an index of made-up facts with as many relations, and 100 questions of one hop."""
    rng = random.Random(seed)
    syllables = ["ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "zu"]

    def word(length: int) -> str:
        return "".join(rng.choices(syllables, k=length))

    words = sorted({word(3) for _ in range(1_000)})
    names = sorted({"_".join(rng.sample(words, 2)) for _ in range(2 * relations)})
    kinds = rng.sample(names, relations)
    people = sorted({f"{word(3)} {word(4)}".title() for _ in range(20_000)})
    triples = [Triple(rng.choice(people), kinds[at % relations], rng.choice(people)) for at in range(100_000)]
    asked = [
        Question(f"what is the {relation.replace('_', ' ')} of {head} ?", (head,), (tail,))
        for head, relation, tail in rng.sample(triples, 100)
    ]
    return build(KnowledgeGraph.from_triples(triples)), asked


def _gold_relations(graph: KnowledgeGraph, question: Question, rng: random.Random) -> frozenset[str]:
    """Return the relations to take away: one of the gold path, else all between the topic and the answers."""
    if question.pattern:
        texts = [triple.relation.text for triple in question.pattern.triples if isinstance(triple.relation, Known)]
        return frozenset([rng.choice(texts)])
    gold, found = set(question.answers), set[str]()
    for topic in question.seed_entities:
        found |= {triple.relation for triple in graph.triples(head=topic) if triple.tail in gold}
        found |= {triple.relation for triple in graph.triples(tail=topic) if triple.head in gold}
    return frozenset(found)


def _drawn(questions: list[Question], n: int, seed: int) -> list[Question]:
    return random.Random(seed).sample(questions, n) if 0 < n < len(questions) else questions


def _read_fb237() -> KnowledgeGraph:
    home = DATA / "fb15k-237"
    return KnowledgeGraph.from_file(home / "train.txt", format="tsv", entities=home / "entities.tsv")


def _read_pathquestion(hops: int) -> KnowledgeGraph:
    return KnowledgeGraph.from_file(DATA / "pathquestion" / f"{hops}H-kb.txt")


#: What reads the questions of each published set.
PUBLISHED: dict[str, Callable[[], list[Question]]] = {
    "fb237": partial(read_questions, DATA / "relation_language" / "fb237_questions_dev.jsonl"),
    **{f"metaqa-{hops}": partial(read_metaqa, DATA / "metaqa", hops) for hops in (1, 2, 3)},
    "metaqa-1-paraphrased": partial(read_metaqa, DATA / "metaqa", 1, paraphrases=True),
    **{
        f"pathquestion-{hops}": partial(read_pathquestion, DATA / "pathquestion" / f"PQ-{hops}H.txt") for hops in (2, 3)
    },
}
