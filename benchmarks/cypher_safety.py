"""How many of the Cypher queries that people write pass the check for reading ones, and whether any that writes does.

    python benchmarks/cypher_safety.py

The queries of 767 questions on a graph of films. "good": those without a syntax error by the set's own mark, all of
which only read; counted by question, in the last row without repetitions. "with the schema": the labels and
relationship types of the graph are given. "sorted": those that `limited` sorts by all their columns. Each query that is
refused is listed with the reason, the good ones first. "With a clause put in": at every position between two tokens
outside of brackets one of ten clauses is put in, which changes data, opens a file or address, or begins another
statement; none may pass. Whether those that pass can be run, and find the same as unchecked: see `cypher_databases.py`.
Data: the folder named in KG_RETRIEVERS_DATA (default ../shared/data).
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path
from typing import NamedTuple

from kg_retrievers.database.safety import CheckedQuery, check_read_only
from kg_retrievers.database.tokens import tokenize
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
    """The query of a question, with what the set says of it."""

    text: str
    kind: str
    good: bool
    has_rows: bool


class Result(NamedTuple):
    """What the check says of queries, and its time for each in milliseconds of CPU."""

    passed: dict[str, CheckedQuery]
    refused: dict[str, str]
    milliseconds: float


def main() -> None:
    """Print a Markdown table, the refused queries and the count of those with a clause put in."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    queries = read_queries()
    texts = list(dict.fromkeys(query.text for query in queries))
    result, with_schema = check(texts), check(texts, schema=True)
    good = [query for query in queries if query.good]
    rows = {kind: [query.text for query in good if query.kind == kind] for kind in sorted({q.kind for q in queries})}
    rows |= {"all": [query.text for query in good], "all, each once": list({query.text: None for query in good})}
    print("| kind | good | pass | | with the schema | sorted |\n|---|---|---|---|---|---|")
    for kind, of_kind in rows.items():
        passed = [result.passed[text] for text in of_kind if text in result.passed]
        schema = sum(text in with_schema.passed for text in of_kind)
        in_order = sum(bool(checked.sort_by) for checked in passed)
        share = 100 * len(passed) / len(of_kind)
        print(f"| {kind} | {len(of_kind)} | {len(passed)} | {share:.1f} % | {schema} | {in_order} |")
    print(f"\n{result.milliseconds:.2f} ms of CPU per query")
    once = set(rows["all, each once"])
    for text, reason in sorted(result.refused.items(), key=lambda item: item[0] not in once):
        print(f"\n{'good' if text in once else 'marked as a syntax error'}: {' '.join(text.split())}\n  {reason}")
    tried, passing = put_in(list(result.passed))
    print(f"\nWith a clause put in: {tried} tried, {len(passing)} pass")
    print("\n".join(passing))


def read_queries() -> list[Written]:
    """Return the queries of the set, one for each question."""
    with (DATA / "cypher" / "movies_text2cypher.csv").open(encoding="utf-8", newline="") as file:
        return [
            Written(row["cypher"], row["type"], row["syntax_error"] == "False", row["returns_results"] == "True")
            for row in csv.DictReader(file)
        ]


def check(texts: list[str], schema: bool = False) -> Result:
    """Check queries, as they are or with the labels and relationship types of the graph."""
    passed, refused = dict[str, CheckedQuery](), dict[str, str]()
    labels, relations = (LABELS, RELATIONS) if schema else (None, None)
    check_read_only("RETURN 1")  # reads the grammar
    began = time.process_time()
    for text in texts:
        try:
            passed[text] = check_read_only(text, labels=labels, relations=relations)
        except CypherSafetyError as error:
            refused[text] = str(error)
    return Result(passed, refused, 1000 * (time.process_time() - began) / len(texts))


def put_in(texts: list[str]) -> tuple[int, list[str]]:
    """Insert clauses, by turns, at all positions outside of brackets; return how many were tried and which pass."""
    tried, passing = 0, list[str]()
    for query in texts:
        depth = 0
        for token in tokenize(query):
            depth += (token.text in tuple("([{")) - (token.text in tuple(")]}"))
            if depth or token.kind in ("blank", "comment"):
                continue
            text = f"{query[: token.end]} {CLAUSES[tried % len(CLAUSES)]} {query[token.end :]}"
            tried += 1
            try:
                passing.append(check_read_only(text).text)
            except CypherSafetyError:
                continue
    return tried, passing


if __name__ == "__main__":
    main()
