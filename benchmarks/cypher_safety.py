"""How many of the Cypher queries that people write pass the check for reading ones, and whether any that writes does.

    python benchmarks/cypher_safety.py

The distinct queries of 767 questions on a graph of films. "good": those without a syntax error by the set's own mark,
all of which only read. "with the schema": the labels and relationship types of the graph are given. "sorted": those
that `limited` sorts by all their columns. Each query that is refused is listed with the reason, the good ones first.
"With a clause put in": at every place between two tokens outside of brackets one of ten clauses is put in, which
changes data, opens a file or address, or begins another statement; none may pass. Data: the folder named in
KG_RETRIEVERS_DATA (default ../shared/data).
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kg_retrievers.database import CheckedQuery, check_read_only, limited, tokenize
from kg_retrievers.errors import CypherSafetyError

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
LABELS = ["Movie", "Person"]
RELATIONS = ["ACTED_IN", "DIRECTED", "FOLLOWS", "PRODUCED", "REVIEWED", "WROTE"]
CLAUSES = [
    "CREATE (x)",
    "SET m.title = 'x'",
    "DETACH DELETE m",
    "MERGE (x:Movie)",
    "REMOVE m.title",
    "FOREACH (x IN [1] | CREATE (y))",
    "CALL { CREATE (x) }",
    "CALL apoc.load.json('x') YIELD value",
    "LOAD CSV FROM 'x' AS line",
    "; CREATE (x)",
]


class Written(NamedTuple):
    """A query of the set."""

    text: str
    kind: str
    good: bool


class Result(NamedTuple):
    """What the check says of all queries, and its time for each in milliseconds of CPU."""

    passed: dict[Written, CheckedQuery]
    refused: dict[Written, str]
    milliseconds: float


def main() -> None:
    """Print a Markdown table, the refused queries and the count of those with a clause put in."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    queries = list(read_queries())
    result, with_schema = check(queries), check(queries, schema=True)
    print("| kind | good | pass | | with the schema | sorted |\n|---|---|---|---|---|---|")
    for kind in [*sorted({query.kind for query in queries}), "all"]:
        good = [query for query in queries if query.good and kind in (query.kind, "all")]
        passed = [result.passed[query] for query in good if query in result.passed]
        schema = sum(query in with_schema.passed for query in good)
        in_order = sum(limited(checked, 10).total_order for checked in passed)
        share = 100 * len(passed) / len(good)
        print(f"| {kind} | {len(good)} | {len(passed)} | {share:.1f} % | {schema} | {in_order} |")
    print(f"\n{result.milliseconds:.2f} ms of CPU per query")
    for query, reason in sorted(result.refused.items(), key=lambda item: not item[0].good):
        print(f"\n{'good' if query.good else 'marked as a syntax error'}: {' '.join(query.text.split())}\n  {reason}")
    tried, passing = put_in(list(result.passed))
    print(f"\nWith a clause put in: {tried} tried, {len(passing)} pass")
    print("\n".join(passing))


def read_queries() -> Iterator[Written]:
    """Yield the distinct queries of the set."""
    with (DATA / "cypher" / "movies_text2cypher.csv").open(encoding="utf-8", newline="") as file:
        rows = [Written(row["cypher"], row["type"], row["syntax_error"] == "False") for row in csv.DictReader(file)]
    yield from dict.fromkeys(rows)


def check(queries: list[Written], schema: bool = False) -> Result:
    """Check all queries, as they are or with the labels and relationship types of the graph."""
    passed, refused = dict[Written, CheckedQuery](), dict[Written, str]()
    labels, relations = (LABELS, RELATIONS) if schema else (None, None)
    check_read_only("RETURN 1")  # reads the grammar
    began = time.process_time()
    for query in queries:
        try:
            passed[query] = check_read_only(query.text, labels=labels, relations=relations)
        except CypherSafetyError as error:
            refused[query] = str(error)
    return Result(passed, refused, 1000 * (time.process_time() - began) / len(queries))


def put_in(queries: list[Written]) -> tuple[int, list[str]]:
    """Put clauses, by turns, into all places outside of brackets, and return how many were tried and which pass."""
    tried, passing = 0, list[str]()
    for query in queries:
        depth = 0
        for token in tokenize(query.text):
            depth += (token.text in tuple("([{")) - (token.text in tuple(")]}"))
            if depth or token.kind in ("blank", "comment"):
                continue
            text = f"{query.text[: token.end]} {CLAUSES[tried % len(CLAUSES)]} {query.text[token.end :]}"
            tried += 1
            try:
                passing.append(check_read_only(text).text)
            except CypherSafetyError:
                continue
    return tried, passing


if __name__ == "__main__":
    main()
