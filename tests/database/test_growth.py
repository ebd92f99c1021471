"""How much larger than its parts a value may become."""

from __future__ import annotations

import pytest

from kg_retrievers.database import check_read_only
from kg_retrievers.errors import CypherSafetyError


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("RETURN " + "replace(" * 10 + "'aa'" + ", 'a', 'aaaaaaaaaa')" * 10, "times as large; at most 10000"),
        ("WITH 'a' AS s " + "WITH replace(s, 'a', 'aaaa') AS s " * 9 + "RETURN s", "times as large"),
        ("RETURN replace(replace(replace($x, 'a', $x), 'a', $x), 'a', $x)", "times as large"),
        ("WITH 'ab' AS s " + "WITH s + s AS s " * 30 + "RETURN size(s)", "times as large"),
        ("WITH 'ab' AS s " + "WITH s || s AS s " * 30 + "RETURN size(s)", "times as large"),
        ("WITH 'ab' AS s " + "WITH concat(s, s) AS s " * 30 + "RETURN size(s)", "times as large"),
        ("RETURN " + "concat(" * 8 + "$x" + ", $x, $x, $x)" * 8, None),
        ("RETURN range(1, 1000000000)", "1000000000 times as large"),
        ("UNWIND range(0, 999999999) AS x RETURN sum(x)", "times as large"),
        ("RETURN [x IN range(1, 1000) | range(1, 1000)]", "1000000 times as large"),
        ("RETURN [x IN range(1, 1000) | [y IN range(1, 1000) | x * y]]", "times as large"),
        ("WITH 1000000000 AS x UNWIND range(1, x) AS y RETURN y", "a range whose end is computed"),
        ("MATCH (n) UNWIND range(1, n.number) AS x RETURN x", "Write its ends as integers, as known parameters, or by"),
        ("RETURN range(1, size($x) * 1000000)", "a range whose end is computed"),
        ("RETURN range(1, toInteger('1000000000'))", "a range whose end is computed"),
    ],
    ids=lambda value: ascii(str(value)[:40]),
)
def test_what_grows_too_much(query: str, message: str | None) -> None:
    if message is None:  # 4 + 3 * 7 texts: they are added, not multiplied
        check_read_only(query)
        return
    with pytest.raises(CypherSafetyError) as caught:
        check_read_only(query)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "RETURN replace(replace(replace('a', 'a', 'bcd'), 'b', ''), 'and', '&')",
        "UNWIND range(1, 12) AS month UNWIND range(1, 31) AS day RETURN month, day",
        "MATCH (n) WITH collect(n) AS ns, size(n.xs) AS last RETURN [i IN range(0, last - 1) | ns[i]]",
        "MATCH (n) RETURN " + " + ' ' + ".join(f"n.x{i}" for i in range(20)) + " AS line",
    ],
    ids=lambda query: ascii(query[:40]),
)
def test_what_stays_small(query: str) -> None:
    check_read_only(query)


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
