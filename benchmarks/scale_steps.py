"""The steps of `benchmarks/scale.py`: each measures one thing, in a process of its own, and prints a line of JSON."""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.synthetic_graph import SIZES, lines, synthetic_graph
from kg_retrievers import GraphIndex, KGRetriever, KnowledgeGraph, Known, Pattern, Question, SimGRAGRetriever, Unknown
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.graph.operations import Operation
from kg_retrievers.index import default_embeddings

#: Seeds what the steps draw.
SEED = 20261123

#: How many questions of each kind are asked, and how many texts are looked up.
QUESTIONS, TEXTS = 40, 20

#: How many hubs, and how many random entities, methods are asked about.
HUBS = 10

#: Questions with two names have two of so many relations, the first ones; so many facts are looked at for examples.
RELATIONS, FACTS = 12, 2_000

Measured = dict[str, Any]


class Place(NamedTuple):
    """Where the files of a size are.

    Attributes:
        size: A key of `SIZES`.
        folder: The folder of all files.
    """

    size: str
    folder: Path

    def __call__(self, suffix: str) -> Path:
        """Return a file or folder of this size."""
        return self.folder / f"{self.size}.{suffix}"


def write(place: Place) -> Measured:
    """Write the graph as text."""
    graph = synthetic_graph(*SIZES[place.size])
    for suffix in ("tsv", "nt"):
        with open(place(suffix), "w", encoding="utf-8") as file:
            file.writelines(lines(graph, suffix))
    return {"tsv_bytes": place("tsv").stat().st_size, "nt_bytes": place("nt").stat().st_size}


def load_tsv(place: Place) -> Measured:
    """Read tab-separated text and save the graph."""
    graph = KnowledgeGraph.from_file(place("tsv"), header=False)
    graph.save(place("graph"))
    return _sizes(graph, place("graph"))


def load_nt(place: Place) -> Measured:
    """Read N-Triples and save the graph."""
    graph = KnowledgeGraph.from_file(place("nt"))
    graph.save(place("rdf"))
    return _sizes(graph, place("rdf"))


def index(place: Place) -> Measured:
    """Index a saved graph with the default embeddings."""
    graph = KnowledgeGraph.open(place("graph"))
    GraphIndex.build(graph, default_embeddings(), place("index"), progress=sys.stderr.isatty())
    return {"names": len(graph.names), "disk_bytes": _bytes(place("index")) - _bytes(place("graph"))}


def open_(place: Place) -> Measured:
    """Open the graph and the index, and answer a first question."""
    opened = _seconds(lambda: KnowledgeGraph.open(place("graph")))
    retriever = _retriever(place)
    _, question = next(_questions(retriever, "exact"))
    began = time.process_time()
    documents = retriever.invoke(question)
    return {
        "open_ms": round(1000 * opened, 1),
        "first_question_s": round(time.process_time() - began, 2),
        "first_answer_s": round(time.process_time(), 2),
        "answered": bool(documents),
        "resident_mb": _resident_mb(),
    }


def names(place: Place) -> Measured:
    """Look up one exact name, one with a typo, and eight with typos."""
    found, drawn = _index(place), random.Random(SEED)
    exact = [found.graph.names[drawn.randrange(len(found.graph.names))] for _ in range(TEXTS + 1)]
    vague = [_with_typo(name, drawn) for name in exact]
    few = [vague[first : first + 8] for first in range(0, TEXTS - 8, 4)]
    return {
        "exact_ms": _median_ms(lambda text: found.nearest_entities([text], 1), exact),
        "vague_16_ms": _median_ms(lambda text: found.nearest_entities([text], 16), vague),
        "vague_16384_ms": _median_ms(lambda text: found.nearest_entities([text], 16_384), vague),
        "eight_16_ms": _median_ms(lambda texts: found.nearest_entities(texts, 16), few),
        "right_first": sum(
            name in {found.graph.names[int(found.graph.labels[id])] for id in one.ids[:16]}
            for name, one in zip(exact, found.nearest_entities(vague, 16), strict=True)
        ),
        "of": len(exact),
    }


def questions(place: Place) -> Measured:
    """Ask whole questions: zero-shot, and with examples where two names are meant; nothing is refused."""
    measured: Measured = {}
    for kind in ("exact", "one vague", "two vague"):
        retriever = _retriever(place, kind)
        asked = [*islice(_questions(retriever, kind), QUESTIONS + 3)]
        for _, question in asked[:3]:
            retriever.invoke(question)
        times, hits, truncated = [], 0, 0
        for gold, question in asked[3:]:
            began = time.process_time()
            documents = retriever.invoke(question)
            times.append(1000 * (time.process_time() - began))
            answers = documents[0].metadata["answers"] if documents else []
            hits += gold in answers
            truncated += bool(documents and documents[0].metadata["truncated"])
        measured[kind] = {
            "median_ms": round(statistics.median(times), 1),
            "worst_ms": round(max(times), 1),
            "hit": round(hits / len(times), 2),
            "truncated": truncated,
        }
    return measured | {"resident_mb": _resident_mb()}


def operations(place: Place) -> Measured:
    """Ask for values and for counts, and for what has the most facts of a relation with a 36th of all facts."""
    retriever, asks_value = _retriever(place), re.compile(r"What is the (.+?) of (.+)\?")
    plain = [question for _, question in islice(_questions(retriever, "exact"), QUESTIONS + 1)]
    counts = [asks_value.sub(r"How many \1 does \2 have?", question) for question in plain]
    sizes = np.bincount(retriever.graph.edges.relations)
    relation = int(np.argmin(np.abs(sizes - len(retriever.graph) / 36)))
    one, other, most = Unknown("one"), Unknown("other"), Operation("max", by="other", of="count")
    pattern = Pattern.of((one, retriever.graph.relations[relation], other), target="one", operation=most)
    value_ms, count_ms = _median_ms(retriever.invoke, plain), _median_ms(retriever.invoke, counts)
    return {
        "value_ms": value_ms,
        "count_ms": count_ms,
        "count / value": round(count_ms / value_ms, 2),
        "most_facts": int(sizes[relation]),
        "most_s": round(_seconds(lambda: retriever.invoke("?", pattern=pattern)), 2),
    }


def export(place: Place) -> Measured:
    """Write the graph as CSV. The greatest memory is that of the process."""
    began = _resident_mb()
    KnowledgeGraph.open(place("graph")).write(place("csv"))
    return {"before_mb": began, "csv_bytes": place("csv").stat().st_size}


def evidence(place: Place) -> Measured:
    """Ask `KGRetriever` questions with an exact name, with a typo, and without a name, at 500 tokens."""
    measured: Measured = {}
    for kind in ("exact", "one vague", "no name"):
        retriever = KGRetriever.from_index(_index(place))
        asked = [*islice(_questions(retriever, "exact" if kind == "no name" else kind), QUESTIONS + 3)]
        if kind == "no name":
            asked = [(gold, f"Is there anything about the {question.split()[3]}?") for gold, question in asked]
        times, held = [], 0
        for number, (gold, question) in enumerate(asked):
            began = time.process_time()
            documents = retriever.invoke(question)
            if number >= 3:  # the first ones compile, and read from the disk
                times.append(1000 * (time.process_time() - began))
                held += any(gold in row for one in documents for row in one.metadata["triples"])
        measured[kind] = {
            "median_ms": round(statistics.median(times), 1),
            "worst_ms": round(max(times), 1),
            "held": round(held / len(times), 2),
        }
    return measured | {"resident_mb": _resident_mb()}


def match(place: Place) -> Measured:
    """Search with candidates of vague names."""
    from benchmarks.matching_at_scale import measure_matching

    return measure_matching(KnowledgeGraph.open(place("graph")), plain=place.size == "1M")


def hubs(place: Place) -> Measured:
    """Ask methods that look around entities about hubs and random entities."""
    from benchmarks.hubs import time_methods

    rows = time_methods(KnowledgeGraph.open(place("graph")), HUBS)
    return {
        f"{row.method}, {row.around}": {
            "median_ms": round(row.median, 1),
            "worst_ms": round(row.worst, 1),
            "degree": row.degrees[1],
        }
        for row in rows
    }


def many(place: Place) -> Measured:
    """Ask many questions at once."""
    from benchmarks.many_questions import measure_many

    retriever = _retriever(place)
    asked = [question for _, question in islice(_questions(retriever, "one vague"), 100)]
    return measure_many(retriever, asked)


# --- what they share --------------------------------------------------------------------------------------------------


def _index(place: Place) -> GraphIndex:
    return GraphIndex.open(place("index"), default_embeddings())


def _retriever(place: Place, kind: str = "exact") -> SimGRAGRetriever:
    found = _index(place)
    examples = _examples(found.graph) if kind == "two vague" else None
    return SimGRAGRetriever.from_index(found, examples=examples, min_confidence=0.0)


def _questions(retriever: BaseKGRetriever, kind: str) -> Iterator[tuple[str, str]]:
    """Yield a right answer and a question, again and again."""
    graph, drawn = retriever.graph, random.Random(SEED)
    if kind == "two vague":
        for first, second, shared, pair in _stars(graph, random.Random(SEED + 1)):
            one, other = (_with_typo(graph.label(key), drawn) for key in (first, second))
            yield shared, f"What has {one} as its {pair[0]} and {other} as its {pair[1]}?"
    while True:
        triple = graph.triple(drawn.randrange(len(graph)))
        name = graph.label(triple.head)
        yield triple.tail, f"What is the {triple.relation} of {name if kind == 'exact' else _with_typo(name, drawn)}?"


def _stars(graph: KnowledgeGraph, drawn: random.Random) -> Iterator[tuple[str, str, str, tuple[str, str]]]:
    """Yield two tails of an entity, the entity, and the relations that lead to them."""
    frequent = {graph.relations[relation] for relation in range(RELATIONS)}
    while True:
        head = graph.triple(drawn.randrange(len(graph))).head
        known = [fact for fact in graph.triples(head) if fact.relation in frequent]
        for one, other in pairwise(known):
            if one.relation != other.relation and one.tail != other.tail:
                yield one.tail, other.tail, head, (one.relation, other.relation)
                break


def _examples(graph: KnowledgeGraph) -> list[Question]:
    """Return an example for each pair of relations that questions with two names have."""
    examples: dict[tuple[str, str], Question] = {}
    for first, second, shared, pair in islice(_stars(graph, random.Random(SEED + 2)), FACTS):
        if pair not in examples:
            one, other, thing = Known(graph.label(first)), Known(graph.label(second)), Unknown("thing")
            pattern = Pattern.of((thing, Known(pair[0]), one), (thing, Known(pair[1]), other), target="thing")
            text = f"What has {one.text} as its {pair[0]} and {other.text} as its {pair[1]}?"
            examples[pair] = Question(text, seed_entities=(first, second), answers=(shared,), pattern=pattern)
    return [*examples.values()]


def _with_typo(name: str, drawn: random.Random) -> str:
    """Leave out one letter of the longest word."""
    words = name.split(" ")
    longest = max(range(len(words)), key=lambda at: len(words[at]))
    cut = drawn.randrange(1, len(words[longest]) - 1)
    words[longest] = words[longest][:cut] + words[longest][cut + 1 :]
    return " ".join(words)


def _seconds(run: Callable[[], Any]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def _median_ms(run: Callable[[Any], Any], inputs: Sequence[Any]) -> float:
    """Return the median CPU milliseconds of a call, after a first one that is not counted."""
    run(inputs[0])
    return round(statistics.median(1000 * _seconds(lambda one=one: run(one)) for one in inputs[1:]), 2)


def _sizes(graph: KnowledgeGraph, folder: Path) -> Measured:
    size = _bytes(folder)
    return {
        "triples": len(graph),
        "entities": len(graph.entities),
        "disk_bytes": size,
        "bytes_per_triple": round(size / len(graph), 1),
    }


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def _resident_mb() -> int:
    """Return the resident memory of this process without mapped files, in MB."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["RssAnon"].split()[0]) // 1024


def main() -> None:
    """Run one step."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    step, size, folder = sys.argv[1:]
    run: dict[str, Callable[[Place], Measured]] = {
        "write": write,
        "load-tsv": load_tsv,
        "load-nt": load_nt,
        "index": index,
        "open": open_,
        "names": names,
        "match": match,
        "questions": questions,
        "operations": operations,
        "export": export,
        "evidence": evidence,
        "hubs": hubs,
        "many": many,
    }
    print(json.dumps(run[step](Place(size, Path(folder)))))


if __name__ == "__main__":
    main()
