"""Which queries are refused because an engine would not survive them, and how much larger a value may become."""

from __future__ import annotations

from typing import Any

import pytest

from kg_retrievers.database.bounds import (
    MAX_AT_NODE,
    MAX_DIGITS,
    MAX_HOPS,
    MAX_LIMIT,
    MAX_OPERATORS,
    MAX_RELATIONSHIPS,
    MAX_SKIP,
)
from kg_retrievers.database.safety import check_read_only
from kg_retrievers.errors import CypherSafetyError


def star(size: int, separator: str = ", ") -> str:
    return separator.join(f"(a)-[:R]->(b{i})" for i in range(size))


def path(size: int) -> str:
    return "(a0)" + "".join(f"-[:R]->(a{i})" for i in range(1, size + 1))


def clique(size: int) -> str:
    return ", ".join(f"(a{i})--(a{j})" for i in range(size) for j in range(i))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("MATCH (n) RETURN n SKIP 1000000 LIMIT 3", f"SKIP; it may be from 0 to {MAX_SKIP}. Begin behind the last"),
        ("MATCH (n) WITH n ORDER BY n.x SKIP 5000 LIMIT 3 RETURN n", "number of SKIP"),
        ("RETURN COLLECT { MATCH (n) RETURN n.x ORDER BY n.x SKIP 9999 LIMIT 1 }", "number of SKIP"),
        (f"RETURN 1 LIMIT {MAX_LIMIT + 1}", f"LIMIT; it may be from 0 to {MAX_LIMIT}. Write a smaller LIMIT"),
        ("RETURN 1 LIMIT " + "9" * 5000, f"a number of 5000 characters; at most {MAX_DIGITS} are read"),
        ("RETURN 1." + "5" * 5000, "a number of 5002 characters"),
        (f"MATCH (a)-[*1..{MAX_HOPS + 1}]->(b) RETURN b", f"it may be from 0 to {MAX_HOPS}. Write how many hops"),
        ("MATCH (a)-[*99999999999]->(b) RETURN b", "number of a path"),
        ("MATCH (a)-->{1,100000}(b) RETURN b", "number of a path"),
        ("MATCH p = SHORTEST 100000 (a)-->+(b) RETURN p", "number of a path"),
        ("RETURN [" + "1, " * 10_000 + "1]", "behind 15000 words and signs, the most that are read. Pass a long list"),
        ("RETURN 1" + "+1" * 5000, f"behind {MAX_OPERATORS} operators, the most there may be"),
        ("RETURN " + "NOT " * 1000 + "true", "operators"),
        ("RETURN " + "- " * 1000 + "1", "operators"),
        ("RETURN [1]" + "[0]" * 1000, "operators"),
        ("RETURN n" + ".a" * 1000, "operators"),
        ("RETURN 1" + " IS NULL" * 1000, "operators"),
        ("MATCH (n) RETURN CASE" + " WHEN n.x = 1 THEN 2" * 1000 + " END", "operators"),
        (
            f"MATCH {star(MAX_AT_NODE + 1)} RETURN a",
            "9 relationships meet at 'a'; at most 8 are planned in time. Put a WITH",
        ),
        (f"MATCH {star(9, ' UNWIND [1] AS x MATCH ')} RETURN a", "9 relationships meet at 'a'"),
        (f"MATCH {path(MAX_RELATIONSHIPS + 1)} RETURN a0", "relationship 17 of what is matched together; at most 16"),
        (f"MATCH (x) OPTIONAL MATCH {path(17)} RETURN x", "relationship 17"),
        (f"MATCH (x) WHERE EXISTS {{ MATCH {path(17)} }} RETURN x", "relationship 17"),
        (f"RETURN COUNT {{ {path(17)} }}", "relationship 17"),
        (f"MATCH (x) WHERE {path(17)} RETURN x", "relationship 17"),
        (f"RETURN [{path(17)} | 1]", "relationship 17"),
        (f"MATCH p = shortestPath({path(17)}) RETURN p", "relationship 17"),
        (f"MATCH ({path(17)}){{2}} RETURN 1", "relationship 17"),
        ("RETURN " + "replace(" * 10 + "'aa'" + ", 'a', 'aaaaaaaaaa')" * 10, "times as large; at most 10000"),
        ("WITH 'a' AS s " + "WITH replace(s, 'a', 'aaaa') AS s " * 9 + "RETURN s", "times as large"),
        ("RETURN replace(replace(replace($x, 'a', $x), 'a', $x), 'a', $x)", "times as large"),
        ("WITH 'ab' AS s " + "WITH s + s AS s " * 30 + "RETURN size(s)", "times as large"),
        ("WITH 'ab' AS s " + "WITH concat(s, s) AS s " * 30 + "RETURN size(s)", "times as large"),
        ("RETURN range(1, 1000000000)", "1000000000 times as large"),
        ("RETURN [x IN range(1, 1000) | range(1, 1000)]", "1000000 times as large"),
        ("WITH 1000000000 AS x UNWIND range(1, x) AS y RETURN y", "a range whose end is computed"),
        ("MATCH (n) UNWIND range(1, n.number) AS x RETURN x", "Write its ends as integers, as known parameters, or by"),
        ("RETURN range(1, size($x) * 1000000)", "a range whose end is computed"),
    ],
    ids=lambda value: ascii(value[:40]),
)
def test_what_is_beyond_a_bound(query: str, message: str) -> None:
    with pytest.raises(CypherSafetyError, match=r"^check_read_only: got .* at line \d+, column \d+, ") as caught:
        check_read_only(query)
    head, _, rest = message.partition(".*")
    assert head in str(caught.value)
    assert rest in str(caught.value)
    assert len(str(caught.value)) < 500
    assert query[caught.value.position :].startswith(caught.value.token)


@pytest.mark.parametrize(
    "query",
    [
        f"MATCH (n) RETURN n SKIP {MAX_SKIP} LIMIT {MAX_LIMIT}",
        "RETURN " + "9" * MAX_DIGITS,
        f"MATCH (a)-[*1..{MAX_HOPS}]->(b) RETURN b",
        "MATCH (a)-[*1..2 (r, n | WHERE r.since > 2020)]->(b) RETURN b",
        "RETURN 1" + "+1" * MAX_OPERATORS,
        "MATCH (n) WHERE n.x IN [" + "1, " * 5000 + "1] RETURN n",
        f"MATCH {star(MAX_AT_NODE)} RETURN a",
        f"MATCH {star(8)} WITH DISTINCT a MATCH {star(8)} RETURN a",
        f"MATCH {path(MAX_RELATIONSHIPS)} RETURN a0",
        f"MATCH {clique(6)} RETURN a0",
        "MATCH (a)" + "".join(f" OPTIONAL MATCH (a)-->(b{i})" for i in range(12)) + " RETURN a",
        "MATCH (a) WHERE " + " AND ".join(f"(a)-->(:L {{x: {i}}})" for i in range(12)) + " RETURN a",
        "RETURN " + "concat(" * 8 + "$x" + ", $x, $x, $x)" * 8,  # 4 + 3 * 7 texts: they are added, not multiplied
        "RETURN replace(replace(replace('a', 'a', 'bcd'), 'b', ''), 'and', '&')",
        "UNWIND range(1, 12) AS month UNWIND range(1, 31) AS day RETURN month, day",
        "MATCH (n) WITH collect(n) AS ns, size(n.xs) AS last RETURN [i IN range(0, last - 1) | ns[i]]",
        "MATCH (n) RETURN " + " + ' ' + ".join(f"n.x{i}" for i in range(20)) + " AS line",
    ],
    ids=lambda query: ascii(query[:40]),
)
def test_what_is_within_the_bounds(query: str) -> None:
    check_read_only(query)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("SKIP", MAX_SKIP + 1, rf"got '\$n' .* which holds {MAX_SKIP + 1}, as the number of SKIP"),
        ("SKIP", -1, "which holds -1, as the number of SKIP"),
        ("SKIP", "1000000", "a parameter of SKIP that holds no integer"),
        ("SKIP", None, "a parameter of SKIP that holds no integer"),
        ("LIMIT", 2_000_000, "as the number of LIMIT"),
        ("LIMIT", -(10**5000), "as the number of LIMIT"),
    ],
    ids=["more", "less", "text", "nothing", "limit", "huge"],
)
def test_parameters_of_skip_and_limit(place: str, value: Any, message: str) -> None:
    query = f"MATCH (n) RETURN n ORDER BY n {place} $n"
    check_read_only(query)  # nothing is known of it
    for fits in (0, MAX_SKIP):
        check_read_only(query, parameters={"n": fits})
    with pytest.raises(CypherSafetyError, match=message):
        check_read_only(query, parameters={"n": value})


def test_known_parameters_are_counted() -> None:
    check_read_only("RETURN range(1, $n), replace('a', 'a', $t)")
    check_read_only("RETURN range(1, $n)", parameters={"n": 50})
    with pytest.raises(CypherSafetyError, match="times as large"):
        check_read_only("RETURN range(1, $n)", parameters={"n": 10**9})
    with pytest.raises(CypherSafetyError, match="computed"):
        check_read_only("RETURN range(1, $n)", parameters={"n": "many"})
    with pytest.raises(CypherSafetyError, match="times as large"):
        check_read_only("RETURN replace('a', 'a', $t)", parameters={"t": "a" * 20_000})


@pytest.mark.parametrize(
    "call",
    ["repeat('a', 2)", "lpad('a', 9, ' ')", "regexp_replace(n.x, 'a', 'b')", "reduce(s = '', x IN $xs | s + x)",
     "list_transform($xs, x -> x)", "list_reduce($xs, (x, y) -> x + x)", "repeat('a', 1000000000)"],
)  # fmt: skip
def test_functions_that_repeat_are_refused(call: str) -> None:
    with pytest.raises(CypherSafetyError):
        check_read_only(f"MATCH (n) RETURN {call} AS x")
