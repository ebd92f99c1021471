"""Which Cypher queries pass as merely reading ones."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.database.safety import MAX_QUERY, check_read_only, limited
from kg_retrievers.database.tokens import line_and_column, tokenize, without_comments
from kg_retrievers.errors import CypherSafetyError, InvalidArgumentError


def passes(query: str) -> bool:
    """Tell whether the check lets a query pass."""
    try:
        check_read_only(query)
    except CypherSafetyError:
        return False
    return True


DATA = json.loads((Path(__file__).parent / "queries.json").read_text("utf-8"))["cypher"]
LABELS, RELATIONS = ["Person", "Movie", "CREATE", "my label"], ["ACTED_IN", "DIRECTED", "SET"]

#: Queries that write, open files or addresses, change settings, or hide it. None may pass.
ATTACKS = sum(DATA["attacks"].values(), list[str]())

#: Queries that only read. All must pass, and with the labels and relations above.
HARMLESS = sum(DATA["harmless"].values(), list[str]())

#: Complex queries that LadybugDB or Neo4j runs and that only read, with blank lines between them.
COMPLEX = (Path(__file__).parent / "harmless_queries.cypher").read_text("utf-8").strip().split("\n\n")


# Attacks and harmless queries --------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ATTACKS, ids=ascii)
def test_attacks_are_refused(query: str) -> None:
    with pytest.raises(CypherSafetyError, match=r"^check_read_only: got .* at line \d+, column \d+, .*\.$") as caught:
        check_read_only(query)
    error = caught.value
    assert isinstance(error, ValueError)
    assert query[error.position : error.position + len(error.token)] == error.token
    assert bool(error.token) == (error.position < len(query))


@pytest.mark.parametrize("query", HARMLESS, ids=ascii)
def test_harmless_queries_pass(query: str) -> None:
    checked = check_read_only(query)
    assert check_read_only(query, labels=LABELS, relations=RELATIONS) == checked
    assert check_read_only(checked.text) == checked


@pytest.mark.parametrize("query", COMPLEX, ids=ascii)
def test_complex_queries_pass(query: str) -> None:
    checked = check_read_only(query)
    assert check_read_only(checked.text) == checked


@pytest.mark.parametrize("name", ["set", "delete", "match", "call"])
def test_names_of_clauses_are_variables_in_back_ticks_alone(name: str) -> None:
    for query in (f"MATCH ({name}) RETURN 1 AS x", f"MATCH (n) RETURN {name}.x", f"WITH 1 AS x RETURN x, {name}"):
        with pytest.raises(CypherSafetyError, match="the name of a clause, which a variable has in back-ticks alone"):
            check_read_only(query)
        check_read_only(query.replace(name, f"`{name}`"))


@pytest.mark.parametrize(
    ("query", "token", "line", "column"),
    [
        ("MATCH (n)\n  DETACH DELETE n", "DETACH", 2, 3),
        ("MATCH (n) RETURN set.x", "set", 1, 18),
        ("MATCH (n)", "", 1, 10),
        ("RETURN 'a\n'\n + 'b", "'", 3, 4),
        ("MATCH (n) RETURN apoc.x(1)", "apoc", 1, 18),
        ("RETURN '\\u0041'", "\\u", 1, 9),
        ("MATCH (n RETURN n", "RETURN", 1, 10),
    ],
)
def test_a_refusal_says_where(query: str, token: str, line: int, column: int) -> None:
    with pytest.raises(CypherSafetyError, match=f"line {line}, column {column},") as caught:
        check_read_only(query)
    assert caught.value.token == token
    assert line_and_column(query, caught.value.position) == (line, column)


def test_a_refusal_says_what_could_stand_there() -> None:
    for query, told in (
        ("MATCH (n) DELETE n", r"which does more than read, where can stand: '\('.* MATCH, .*only reads"),
        ("MATCH (n) n", "got 'n' at line 1, column 11, where can stand"),
    ):
        with pytest.raises(CypherSafetyError, match=told):
            check_read_only(query)
    with pytest.raises(CypherSafetyError, match="an operator, the end"):
        check_read_only("RETURN n.x CREATE (m)")


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("(", ")"),
        ("abs(", ")"),
        ("[", "]"),
        ("n[", "]"),
        ("{a: ", "}"),
        ("CASE WHEN ", " THEN 1 END"),
        ("COUNT { MATCH (n) WHERE ", "}"),
    ],
)
def test_deep_queries(opening: str, closing: str) -> None:
    assert passes("RETURN " + opening * 8 + "1" + closing * 8)
    with pytest.raises(CypherSafetyError, match="nested too deeply"):
        check_read_only("RETURN " + opening * 1000 + "1" + closing * 1000)


def test_long_queries() -> None:
    assert passes("RETURN [" + "1, " * 2000 + "1]")
    assert passes("RETURN " + "(x {k: " * 8 + "1" + "})" * 8)
    assert passes("MATCH (n:" + "|".join(f"L{i}" for i in range(500)) + ") RETURN n")
    with pytest.raises(CypherSafetyError, match=f"at most {MAX_QUERY}"):
        check_read_only("RETURN 1".ljust(MAX_QUERY + 1))


# What a query may name ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("MATCH (n:Persn) RETURN n", "label"),
        ("MATCH (n:person) RETURN n", "label"),
        ("MATCH (n:ACTED_IN) RETURN n", "label"),
        ("MATCH (n:Person|Film) RETURN n", "label"),
        ("MATCH (n:Person&!(Movie|Film)) RETURN n", "label"),
        ("MATCH (n:Person:Film) RETURN n", "label"),
        ("MATCH (n IS Film) RETURN n", "label"),
        ("MATCH (n) WHERE EXISTS { (n)-->(:Film) } RETURN n", "label"),
        ("MATCH (n) WHERE (n)-->(:Film) RETURN n", "label"),
        ("MATCH (n:`Person``) DETACH DELETE n //`) RETURN n", "label"),
        ("MATCH (n) WHERE n:Film RETURN n", "label or relationship type"),
        ("MATCH (n)-[:Person]->() RETURN n", "relationship type"),
        ("MATCH (n)-[:ACTED_IN|KNOWS*1..2]->() RETURN n", "relationship type"),
        ("RETURN [(a)-[:KNOWS]->(b) | b]", "relationship type"),
        ("MATCH p = shortestPath((a)-[:KNOWS*]-(b)) RETURN p", "relationship type"),
    ],
)
def test_labels_and_types_of_the_graph(query: str, wrong: str) -> None:
    check_read_only(query)
    with pytest.raises(CypherSafetyError, match=rf"a {wrong} that the graph does not have. Use one of: \w"):
        check_read_only(query, labels=LABELS, relations=RELATIONS)


def test_parameters() -> None:
    query = "MATCH (n {a: $b, c: $`d e`}) WHERE n.x IN $b RETURN n LIMIT $n"
    assert check_read_only(query).parameters == ("b", "d e", "n")
    assert check_read_only(query, parameters={"b": 1, "d e": 2, "n": 3, "more": 4}).limit == 3
    assert check_read_only(query).limit == "n"
    with pytest.raises(CypherSafetyError, match=r"a parameter that is not given. Use one of: b, n") as caught:
        check_read_only(query, parameters={"b": 1, "n": 3})
    assert caught.value.token == "$`d e`"


# What is known of a query ------------------------------------------------------------------------------------------


def test_what_runs_has_no_comments() -> None:
    query = "MATCH (n)/* DELETE n */RETURN\u00a0n.a\n AS b // CREATE (m)\n LIMIT 5 ; // x"
    checked = check_read_only(query)
    assert checked.text == f"MATCH (n){' ' * 14}RETURN n.a\n AS b {' ' * 13}\n LIMIT 5"
    assert without_comments("RETURN '/* a */', `//b` /* c\nd */") == "RETURN '/* a */', `//b`     \n    "


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("MATCH (n) RETURN n", "MATCH (n) RETURN n ORDER BY n LIMIT 11"),
        ("RETURN 1 AS a, n.b, count(*) LIMIT 5;", "RETURN 1 AS a, n.b, count(*) ORDER BY a, n.b, count(*) LIMIT 5"),
        ("RETURN DISTINCT n.a AS `b c`\nLIMIT 99", "RETURN DISTINCT n.a AS `b c` ORDER BY `b c` LIMIT 11"),
        ("RETURN n.a ORDER BY n.b DESC LIMIT 11", "RETURN n.a ORDER BY n.b DESC, n.a LIMIT 11"),
        ("RETURN n.a SKIP 3 LIMIT 10 // x", "RETURN n.a ORDER BY n.a SKIP 3 LIMIT 10"),
        ("RETURN n.a\nORDER BY n.a\nOFFSET 3\n", "RETURN n.a\nORDER BY n.a\nOFFSET 3 LIMIT 11"),
        ("RETURN n.a, n.b ORDER BY n.c, n.b", "RETURN n.a, n.b ORDER BY n.c, n.b, n.a LIMIT 11"),
        ("RETURN n.a, n.b ORDER BY n.b DESC, n.a", "RETURN n.a, n.b ORDER BY n.b DESC, n.a, n.b LIMIT 11"),
        ("MATCH (n) RETURN *", "MATCH (n) RETURN * LIMIT 11"),
        ("RETURN n.a - 1, n.b", "RETURN n.a - 1, n.b LIMIT 11"),
        ("MATCH (n) RETURN n.a AS n", "MATCH (n) RETURN n.a AS n LIMIT 11"),
        ("MATCH (n) RETURN n AS n", "MATCH (n) RETURN n AS n ORDER BY n LIMIT 11"),
        ("RETURN 1 AS x UNION RETURN 2 AS x", "RETURN 1 AS x UNION RETURN 2 AS x"),
        ("WITH 1 AS x LIMIT 3 RETURN x", "WITH 1 AS x LIMIT 3 RETURN x ORDER BY x LIMIT 11"),
        ("RETURN '{}' AS a, n.`{b}`", "RETURN '{}' AS a, n.`{b}` ORDER BY a, n.`{b}` LIMIT 11"),
    ],
)
def test_limited(query: str, wanted: str) -> None:
    checked = limited(check_read_only(query), 10)
    assert checked.text == wanted
    assert limited(checked, 10) == checked
    assert check_read_only(checked.text).columns == checked.columns


def test_limited_for_an_engine() -> None:
    checked = check_read_only("MATCH (n) RETURN n, n.x AS y ORDER BY y")
    assert limited(checked, 1, sort_key="CAST({} AS STRING)").text == (
        "MATCH (n) RETURN n, n.x AS y ORDER BY y, CAST(n AS STRING) LIMIT 2"
    )
    sorted_already = check_read_only("MATCH (n) RETURN n, n.x AS y ORDER BY CAST(n AS STRING), y")
    as_it_is = limited(sorted_already, 1, sort_key="CAST({} AS STRING)")
    assert as_it_is.text == "MATCH (n) RETURN n, n.x AS y ORDER BY CAST(n AS STRING), y LIMIT 2"


def test_limited_by_a_parameter() -> None:
    query = "MATCH (n {x: $x}) RETURN n.y LIMIT $n"
    few = limited(check_read_only(query, parameters={"x": 1, "n": 5}), 10)
    assert (few.text, few.parameters) == ("MATCH (n {x: $x}) RETURN n.y ORDER BY n.y LIMIT 5", ("x",))
    many = limited(check_read_only(query, parameters={"x": 1, "n": 50}), 10)
    assert many.text.endswith(" LIMIT 11")
    for parameters in (None, {"x": 1, "n": "5"}):
        with pytest.raises(InvalidArgumentError, match=r"\$n, whose value is not known"):
            limited(check_read_only(query, parameters=parameters), 10)


# Tokens ------------------------------------------------------------------------------------------------------------


WORDS = r"""MATCH RETURN WITH SET DELETE CREATE CALL UNION
(n) (n:Person) -[:R]-> n n.x 1 1.5 'a' "b" `c` $p , . : ; | ( )
[ ] { } = <> - > < * + / // /* */ ' " ` \ \' \u0027 $ $$ ? ~ # é 名 ₂ ²"""
BLANKS = [" ", "\n", "\r", "\t", "\x85", "\u00a0", "\u2003", "\u2028", "\u200b", "\u180e", "\x00", "\ud800"]
PIECES = st.sampled_from([*WORDS.split(), *BLANKS]) | st.text(max_size=3)
QUERIES = st.lists(PIECES, max_size=12).map("".join)


@given(QUERIES)
def test_tokens_tile_the_query(query: str) -> None:
    try:
        tokens = tokenize(query)
    except CypherSafetyError:
        return
    assert "".join(token.text for token in tokens) == query
    assert [token.position for token in tokens[1:]] == [token.end for token in tokens[:-1]]
    assert len(without_comments(query)) == len(query)


@given(QUERIES | st.text())
def test_nothing_else_is_raised(query: str) -> None:
    with suppress(CypherSafetyError):
        checked = check_read_only(query)
        assert check_read_only(checked.text) == checked
        assert isinstance(checked.limit, str) or passes(limited(checked, 3).text)


DATA = (st.text(max_size=20) | st.sampled_from(ATTACKS + HARMLESS)).filter(
    lambda text: not re.search(r"\\[uU]|\$\$|[\x00\ud800-\udfff]", text)
)


@given(DATA, st.sampled_from("'\""))
def test_quoted_data_changes_nothing(text: str, quote: str) -> None:
    quoted = quote + text.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
    for query in (f"RETURN {quoted} AS x", f"MATCH (n {{a: {quoted}}}) WHERE n.b <> {quoted} RETURN n"):
        assert passes(query)
        assert not passes(query + " CREATE (n)")


@given(DATA.filter(bool))
def test_quoted_names_change_nothing(name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    query = f"MATCH ({quoted}:{quoted}) RETURN {quoted}.{quoted} AS {quoted}"
    checked = check_read_only(query, labels=[name])
    assert checked.columns == (name,)
    assert not passes(query + " CREATE (n)")
