"""Whether patterns with operations find on triples what people's Cypher with aggregates finds on the property graph.

    OMP_NUM_THREADS=1 python -m benchmarks.movie_aggregates [--record]

The questions are those of 767 on a graph of films whose query counts, collects, adds up, averages or measures, without
a syntax error or a name that the graph lacks, by the set's own marks. `movie_patterns.jsonl` holds for each, by its
position in the set, the pattern that asks the same and what its columns show, or what patterns lack to say it.

The films are loaded into LadybugDB as they are, where the set's query runs, and as triples, a property of a film or
person being a relation, where `CypherRetriever` carries out the pattern. "Same": the same rows. "But for ties": all
rows are among those of the set's query without its LIMIT, the first of them have the same values by which they are
ordered, and others may follow, since a pattern keeps all that are equal to the last one. "Without the LIMIT": the query
has a LIMIT and no order, and without it the rows are the same. Each question that differs is listed.
Data: the folder named in KG_RETRIEVERS_DATA (default ../shared/data). Needs the extra `ladybug`.
"""

from __future__ import annotations

import csv
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableLambda

sys.path.insert(0, str(Path(__file__).parent))
from cypher_databases import in_ladybug, translated
from cypher_safety import DATA

from benchmarks import figures
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph
from kg_retrievers.database.executor import Executor
from kg_retrievers.database.ladybug import LadybugExecutor
from kg_retrievers.graph import Pattern, Triple, Unknown
from kg_retrievers.methods.sg_rag.retriever import CypherRetriever
from kg_retrievers.methods.sg_rag.writers import PatternCypherWriter

AGGREGATE = re.compile(r"\b(?:count|sum|avg|min|max|collect|size)\s*[({]", re.IGNORECASE)
LIMIT = re.compile(r"\s+LIMIT\s+\d+", re.IGNORECASE)
LINKS = ["ACTED_IN", "DIRECTED", "PRODUCED", "REVIEWED", "WROTE", "FOLLOWS"]
PROPERTIES = [("Movie", "title", "released"), ("Movie", "title", "tagline"), ("Person", "name", "born")]

#: What `translated` leaves of Neo4j's Cypher.
REPLACED = {
    "apoc.coll.toSet": "list_distinct",
    "[movie IN movies | movie.title]": "list_transform(movies, movie -> movie.title)",
}

#: A row as texts; a list in it is sorted.
Row = tuple[Any, ...]


def main() -> None:
    """Print how many find the same."""
    questions, patterns = read_questions(), read_patterns()
    assert questions.keys() == patterns.keys()
    with ExitStack() as opened, tempfile.TemporaryDirectory() as folder:
        script = (DATA / "cypher" / "movies.cypher").read_text("utf-8")
        films = in_ladybug(opened, script, Path(folder) / "films.lbdb")
        graph = KnowledgeGraph.from_triples(triples_of(films.executor))
        index = GraphIndex.build(graph, HashedEmbeddings())
        executor = opened.enter_context(LadybugExecutor.from_graph(graph))
        found = dict[int, str]()
        for number, said in patterns.items():
            if "lacks" in said:
                found[number] = f"cannot be said: {said['lacks']}"
            else:
                found[number] = outcome(questions[number], said, films.rows, lambda p: documents(index, executor, p))
    print(f"{len(graph)} triples, {len(found)} questions\n\n| outcome | questions |\n|---|---|")
    for name, count in sorted(Counter(found.values()).items(), key=lambda pair: -pair[1]):
        print(f"| {name} | {count} |")
    print(f"\nthe same in all: {sum(name.startswith('same') for name in found.values())}\n")
    for number, name in found.items():
        if name == "other":
            print(f"{number}: {' '.join(questions[number].split())}")
    if "--record" in sys.argv:
        record_outcomes(list(found.values()))


def record_outcomes(found: Sequence[str]) -> None:
    """Write the table of the docs."""
    counts = Counter("patterns cannot say it" if name.startswith("cannot") else name for name in found)
    table = [["films, outcome", "questions"], *([name, str(count)] for name, count in counts.most_common())]
    rooms = ["kg_retrievers/methods/sg_rag", "kg_retrievers/database", "kg_retrievers/graph"]
    mode = "SG-RAG on LadybugDB, patterns by hand, no language model"
    command = figures.this_command("benchmarks.movie_aggregates")
    run = figures.run_of(command, n=f"{len(found)} questions", mode=mode, embeddings="hashed", depends_on=rooms)
    figures.record("movie-aggregates", table, run)


def read_questions() -> dict[int, str]:
    """Return the queries with aggregates, by their positions in the set."""
    with (DATA / "cypher" / "movies_text2cypher.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    good = {
        at: row["cypher"] for at, row in enumerate(rows) if row["syntax_error"] == "False" and not row["false_schema"]
    }
    return {at: query for at, query in good.items() if AGGREGATE.search(query)}


def read_patterns() -> dict[int, dict[str, Any]]:
    """Return the pattern of each question with its columns, or what patterns lack."""
    lines = Path(__file__).with_name("movie_patterns.jsonl").read_text("utf-8").splitlines()
    return {row["question"]: row for row in map(json.loads, lines)}


def triples_of(executor: Executor) -> Iterator[Triple]:
    """Yield the films as triples."""
    for relation in LINKS:
        query = f"MATCH (a)-[r:{relation}]->(b) RETURN coalesce(a.name, ''), coalesce(b.title, b.name, '')"
        for head, tail in executor.run(query, limit=1000).rows:
            yield Triple(head, relation, tail)
    for label, key, relation in PROPERTIES:
        query = f"MATCH (a:{label}) WHERE a.{relation} IS NOT NULL RETURN a.{key}, a.{relation}"
        for head, value in executor.run(query, limit=1000).rows:
            yield Triple(head, relation, str(value))


def documents(index: GraphIndex, executor: Executor, pattern: Pattern) -> list[Any]:
    """Return what the retriever finds for a pattern."""
    writer = PatternCypherWriter(index, RunnableLambda(lambda _: pattern))
    return CypherRetriever(index=index, writer=writer, executor=executor).invoke("?")


def outcome(
    query: str, said: Mapping[str, Any], run: Callable[[str], Sequence[Any]], ask: Callable[[Pattern], list[Any]]
) -> str:
    """Return how the rows of a pattern compare with those of a query."""
    pattern = Pattern.from_dict(said["pattern"])
    try:
        gold, everything = (rows_of(run, text) for text in (query, LIMIT.sub("", query)))
    except RuntimeError as error:
        return f"the set's query does not run: {error}"
    found = ask(pattern)
    rows = list(rows_in(found, pattern, said["columns"]))
    if Counter(rows) == Counter(gold):
        return "same rows" if gold else "same: no rows"
    if pattern.operation and pattern.operation.kind == "order":
        unlimited = ask(replace(pattern, operation=replace(pattern.operation, limit=None)))
        value_of = values_of(unlimited)
        ours, theirs = (sorted(value_of.get(row[0], -1) for row in some) for some in (rows[: len(gold)], gold))
        if Counter(rows) <= Counter(everything) and ours == theirs:
            return "same rows, other ties"
    elif "ORDER BY" not in query.upper() and Counter(rows) == Counter(everything):
        return "same rows without the LIMIT"
    return "other"


def rows_of(run: Callable[[str], Sequence[Any]], query: str) -> list[Row]:
    """Return the rows of a query of the set."""
    query = translated(query)
    for of_neo4j, of_ladybug in REPLACED.items():
        query = query.replace(of_neo4j, of_ladybug)
    return [tuple(map(cell, row)) for row in run(query)]


def cell(value: Any) -> Any:
    """Return a value as a text, or as texts in order."""
    return tuple(sorted(map(str, value))) if isinstance(value, list | set) else str(value)


def values_of(found: Sequence[Any]) -> dict[str, Any]:
    """Return the values by which answers are ordered."""
    return dict(zip(found[0].metadata["answers"], found[0].metadata["value"], strict=True)) if found else {}


def rows_in(found: Sequence[Any], pattern: Pattern, columns: Sequence[Any]) -> Iterator[Row]:
    """Yield rows with the columns that a question wants: answers, values, and what evidence says of each answer."""
    if not found:
        return
    metadata = found[0].metadata
    if columns == ["number"]:
        yield (cell(len(metadata["answers"])),)
    elif columns == ["value"]:
        yield (cell(metadata["value"]),)
    else:
        values = metadata["value"] if isinstance(metadata["value"], list) else [None] * len(metadata["answers"])
        for answer, value in zip(metadata["answers"], values, strict=True):
            rows: list[Row] = [()]
            for column in columns:
                rows = [(*row, shown) for row in rows for shown in cells(column, answer, value, metadata, pattern)]
            yield from rows


def cells(column: Any, answer: str, value: Any, metadata: Mapping[str, Any], pattern: Pattern) -> list[Any]:
    """Return what a column shows of an answer: {"each": unknown} one by one, {"all": unknown} as one list."""
    if isinstance(column, str):
        return [cell(answer if column == "target" else value)]
    ((how, name),) = column.items()
    beside = list(dict.fromkeys(beside_of(answer, name, metadata["triples"], pattern)))
    return [cell(beside)] if how == "all" else list(map(cell, beside))


def beside_of(answer: str, name: str, triples: Sequence[Sequence[str]], pattern: Pattern) -> Iterator[str]:
    """Yield what an unknown beside the target is, by the facts that are shown."""
    target, other = Unknown(str(pattern.target)), Unknown(name)
    for head, relation, tail in pattern.triples:
        facts = [fact for fact in triples if fact[1] == getattr(relation, "text", None)]
        if (head, tail) == (target, other):
            yield from (fact[2] for fact in facts if fact[0] == answer)
        elif (head, tail) == (other, target):
            yield from (fact[0] for fact in facts if fact[2] == answer)


if __name__ == "__main__":
    main()
