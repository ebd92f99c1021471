"""Mutants of queries, and of models' replies in each parser, for as long as asked: `make fuzz SECONDS=600`.

The environment variables KG_RETRIEVERS_FUZZ_SECONDS (60) and KG_RETRIEVERS_FUZZ_SEED (0) say how long in all, and with
which mutants.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mutants import SECONDS, SEED, Readings, mutant, mutated, rounds, timed

from kg_retrievers.chains.prompts import AnswerReply, VerdictReply
from kg_retrievers.core import replies
from kg_retrievers.database.safety import check_read_only, limited
from kg_retrievers.database.tokens import tokenize
from kg_retrievers.errors import CypherSafetyError
from kg_retrievers.methods.subgraph_rag.prompts import parse_answers as parse_lines
from kg_retrievers.questions.choosing import chosen_number
from kg_retrievers.questions.prompts import parse_pattern

pytestmark = pytest.mark.heavy

#: Of what is asked for, queries take an eighth for each test, and parsers a quarter; `test_fuzz_chains.py` the rest.
EIGHTH = SECONDS / 8

QUERIES = (Path(__file__).parent / "database" / "harmless_queries.cypher").read_text("utf-8").strip().split("\n\n")
WRITES = (
    """
CREATE (x)|MERGE (x)|SET n.x = 1|DELETE n|DETACH DELETE n|REMOVE n.x|INSERT (x)|FOREACH (x IN [1] / SET n.y = x)
LOAD CSV FROM 'x' AS l|LOAD FROM 'x'|CALL { CREATE (x) }|CALL apoc.load.json('x') YIELD value|CALL timeout=0|USE other
; CREATE (x)|UNION CREATE (x)|COPY x FROM 'y'|DROP INDEX i|CREATE p = (a)-[:R]->(b)|SET n:Admin|SET n += {x: 1}
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
PIECES = [
    *"()[]{}.,:;|<>=+-*/'\"`$ \n\\",
    *("/*", "*/", "//", "**/", "\u200b", "\uff33\u017ft", "SET", "CREATE", "DELETE"),
]

PARSERS: dict[str, Callable[[str], object]] = {
    "plain_answers": replies.plain_answers,
    "marked_answers": replies.marked_answers,
    "listed_answers": replies.listed_answers,
    "parse_object: answer": lambda reply: replies.parse_object(reply, AnswerReply),
    "parse_object: verdict": lambda reply: replies.parse_object(reply, VerdictReply),
    "subgraph-rag answers": parse_lines,
    "parse_pattern": parse_pattern,
    "chosen_number": lambda reply: chosen_number(reply, 9),
}


def test_no_clause_that_writes_passes() -> None:
    for draw in rounds(EIGHTH):
        query = draw.choice(QUERIES)
        depth, places = 0, [0]
        for token in tokenize(query):
            depth += (token.text in tuple("([{")) - (token.text in tuple(")]}")) if token.kind == "sign" else 0
            if not depth and token.kind != "comment":
                places.append(token.end)
        place = draw.choice(places)
        changed = f"{query[:place]} {draw.choice(WRITES)} {query[place:]}"
        if "//" not in query[:place]:
            assert timed(check_read_only, changed, CypherSafetyError) is None, changed


def test_mutants_of_queries_change_nothing() -> None:
    """Those that pass run in a database that can be written to."""
    ladybug = pytest.importorskip("ladybug")
    connection = ladybug.Connection(ladybug.Database(":memory:", buffer_pool_size=256 << 20))
    connection.execute("CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT64, x INT64)")
    connection.execute("CREATE REL TABLE KNOWS(FROM Person TO Person, since INT64)")
    connection.execute("UNWIND range(1, 9) AS i CREATE (:Person {name: CAST(i AS STRING), age: i, x: i})")
    connection.execute("MATCH (a:Person), (b:Person) WHERE a.age + 1 = b.age CREATE (a)-[:KNOWS {since: a.age}]->(b)")
    connection.set_query_timeout(200)

    def stored() -> list[object]:
        tables = connection.execute("CALL show_tables() RETURN *").get_all()
        people = connection.execute("MATCH (n:Person) RETURN n.* ORDER BY n.name").get_all()
        return [tables, people, connection.execute("MATCH ()-[r]->() RETURN r ORDER BY r.since").get_all()]

    before = stored()
    for draw in rounds(EIGHTH):
        query = draw.choice(QUERIES)
        changed = mutated(draw, draw.choice([query, f"{query} {draw.choice(WRITES)}"]), QUERIES + WRITES, PIECES)
        checked = timed(check_read_only, changed, CypherSafetyError)
        if checked is None or "$" in changed or isinstance(checked.limit, str):  # type: ignore[attr-defined]
            continue
        sent = limited(checked, 10, sort_key="CAST({} AS STRING)").text  # type: ignore[arg-type]
        try:
            connection.execute(sent)
        except (RuntimeError, MemoryError, UnicodeDecodeError):
            continue
        assert stored() == before, sent


def test_mutants_of_replies_raise_nothing_untyped() -> None:
    readings = Readings()
    with readings.all():
        for draw in rounds(2 * EIGHTH):
            reply = mutant(draw)
            for name, parse in PARSERS.items():
                with readings.one(name, [reply]):
                    parse(reply)


def test_hostile_values_of_the_right_types_raise_nothing_untyped() -> None:
    from benchmarks.fuzz import fuzz  # alarms need the main thread

    found = fuzz(SECONDS, SEED)
    assert found
    assert {name: counts["failures"] for name, counts in found.items() if counts["failures"]} == {}
