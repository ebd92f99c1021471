"""What a SPARQL query may join: parts that multiply each other are refused, whatever stands around them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.database.sparql.joins import MAX_JOINED
from kg_retrievers.database.sparql.safety import check_read_only
from kg_retrievers.errors import SparqlSafetyError

pyoxigraph = pytest.importorskip("pyoxigraph")

#: Groups whose parts multiply each other, and groups that are joined.
DATA = json.loads((Path(__file__).parent / "queries.json").read_text("utf-8"))["sparql"]
TWO = "?a <urn:p> ?b . ?c <urn:q> ?d "


def asked(group: str) -> str:
    return f"SELECT ?a {{ {group} }}"


@pytest.mark.parametrize("group", DATA["multiply"])
def test_parts_that_multiply_each_other_are_refused(group: str) -> None:
    prefixes = "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
    pyoxigraph.Store().query(prefixes + asked(group))  # it is SPARQL
    with pytest.raises(SparqlSafetyError, match="shares no variable"):
        check_read_only(asked(group))
    with pytest.raises(SparqlSafetyError, match="shares no variable"):
        check_read_only(f"ASK {{ <urn:x> ?x ?y {{ {group} }} }}")


@pytest.mark.parametrize("group", DATA["joined"])
def test_what_is_joined_passes(group: str) -> None:
    prefixes = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    pyoxigraph.Store().query(prefixes + asked(group))
    check_read_only(asked(group))


def test_values_behind_the_query_begin_a_part() -> None:
    check_read_only(asked(TWO) + " VALUES ?d { <urn:x> }")
    with pytest.raises(SparqlSafetyError, match="shares no variable"):
        check_read_only(asked(TWO) + " VALUES ?e { <urn:x> }")


def test_what_stands_outside_of_where_is_checked() -> None:
    for query in (
        f"SELECT ?s (EXISTS {{ {TWO} }} AS ?is) {{ <urn:x> ?p ?s }}",
        f"SELECT ?s {{ <urn:x> ?p ?s }} GROUP BY ?s HAVING(NOT EXISTS {{ {TWO} }})",
        f"SELECT ?s {{ <urn:x> ?p ?s }} ORDER BY EXISTS {{ {TWO} }}",
        f"SELECT ?s (EXISTS {{ ?s ?p ?o }} AS ?is) {{ {TWO} }}",
    ):
        with pytest.raises(SparqlSafetyError, match="shares no variable"):
            check_read_only(query)


@pytest.mark.parametrize(
    "one",
    ["?a <urn:p> ?b . ", "?a <urn:p>/<urn:q> ?b . ", "OPTIONAL { ?a <urn:p> ?b } ?a <urn:p> ?b . ",
     "{ ?a <urn:p> ?b } ", "{ ?a <urn:p>/<urn:q> ?b } ", "GRAPH ?a { ?a <urn:p> ?b } ", "VALUES ?a { 1 } ",
     "{ SELECT ?a { ?a ?p ?b } } "],
)  # fmt: skip
def test_how_much_is_joined_is_bounded(one: str) -> None:
    most = MAX_JOINED // (2 if "/" in one else 1)
    check_read_only(asked(one * most))
    with pytest.raises(SparqlSafetyError, match=f"behind {MAX_JOINED} triples"):
        check_read_only(asked(one * (most + 1)))


def test_items_of_a_collection_are_triples() -> None:
    half = MAX_JOINED // 2
    check_read_only(asked(f"?a ?p ({'?b ' * (half - 1)})"))
    for group in (f"?a ?p ({'?b ' * half})", f"?a ?p {'(' * 9}{'1 ' * half}{')' * 9}", f"({'[] ' * half})"):
        with pytest.raises(SparqlSafetyError, match=f"behind {MAX_JOINED} triples"):
            check_read_only(asked(group + " . ?a <urn:p> ?b"))


@pytest.mark.parametrize(
    "group",
    ["?a ?p", "?a ?p }", "?a ?p ?b ?c", "?a ?p ?b ?c ?q ?d", "?a <urn:p>/ ?b", "?a . ?b", "'a' 'b' 'c'", "FILTER",
     "FILTER ?a", "BIND ?a", "OPTIONAL ?a", "VALUES ?a", "GRAPH { ?a ?p ?b }", "(", "?a ?p (", "?a ?p [ ?q",
     "?a ?p [ ?q ?b ] ]", "{ SELECT ?a }", "UNION", "{ } UNION", "^^", "@en"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(group: str) -> None:
    with pytest.raises(SparqlSafetyError):
        check_read_only(asked(group))


def free_parts(triples: Sequence[tuple[str, str, str]]) -> int:
    """Return how many parts begin at no term: of the nodes that are joined, those that reach no term."""
    free, left = 0, {name for one, _, two in triples for name in (one, two) if name != TERM}
    while left:
        found = {min(left)}
        for _ in triples:
            found |= {name for one, _, two in triples if found & {one, two} for name in (one, two) if name != TERM}
        left -= found
        free += not any(found & {one, two} and TERM in (one, two) for one, _, two in triples)
    return free


TERM = "<urn:x>"
NODES = st.sampled_from(["?a", "?b", "?c", "?d", "?e", "?f", "?g", TERM])
TRIPLES = st.lists(st.tuples(NODES, st.sampled_from(["<urn:p>", "<urn:q>", "?p", "?q"]), NODES), max_size=6)


@settings(max_examples=300, deadline=None)
@given(TRIPLES, st.sampled_from(["{}", "{{ {} }}", "?z <urn:p> <urn:x> {{ {} }}", "{{ {} }} UNION {{ }}",
                                 "<urn:x> ?z ?y MINUS {{ {} }}", "<urn:x> ?z ?y FILTER NOT EXISTS {{ {} }}",
                                 "{{ SELECT ?a {{ {} }} }}"]))  # fmt: skip
def test_parts_are_those_of_a_plain_computation(triples: list[tuple[str, str, str]], around: str) -> None:
    query = asked(around.format(" . ".join(map(" ".join, triples))))
    if free_parts(triples) < 2:
        check_read_only(query)
        return
    with pytest.raises(SparqlSafetyError, match="shares no variable"):
        check_read_only(query)


NODE = st.sampled_from(["?s", "?o", "<urn:x>", "rdfs:label", "'a'@en", "-1", "1.5", "true", "[]", "'b'^^<urn:kind>",
                        "[ <urn:p> ?s ; a <urn:C> , ?o ]"])  # fmt: skip
PATH = st.sampled_from(
    ["?r", "a", "<urn:p>", "^<urn:p>", "<urn:p>/<urn:q>*", "(<urn:p>|!a)+", "!(a|^<urn:p>)", "rdfs:label?"]
)
SIMPLE = st.builds("?s {} {} .".format, PATH, NODE) | st.sampled_from(
    ["FILTER(?o > 1)", "FILTER REGEX(STR(?s), 'a')", "BIND(1 AS ?n)", "VALUES ?s { <urn:x> UNDEF }",
     "VALUES () { () }", "?s ?r () .", "?s ?r (1 ?o ()) , (?s) .", "(?s) a ?o ."]
)  # fmt: skip


def around(groups: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return larger groups, in which all that is joined is joined by ?s."""
    forms = ["{{ {} }}", "OPTIONAL {{ {} }}", "MINUS {{ {} }}", "GRAPH ?s {{ {} }}", "FILTER EXISTS {{ {} }}",
             "{{ {} }} UNION {{ ?s ?r ?o }}", "FILTER(?s != 1 && NOT EXISTS {{ {} }})"]  # fmt: skip
    nested = st.builds(str.format, st.sampled_from(forms), groups)
    return st.lists(nested | groups, min_size=1, max_size=3).map(" ".join)


GROUPS = st.recursive(SIMPLE, around, max_leaves=8)


@settings(max_examples=300, deadline=None)
@given(GROUPS)
def test_all_that_an_engine_reads_is_read(group: str) -> None:
    query = asked(f"?s <urn:p> ?o . {group}")
    try:
        prefix = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
        pyoxigraph.Store().query(prefix + query)
    except SyntaxError:  # such as BIND of a variable that is in use
        return
    check_read_only(query)
    with pytest.raises(SparqlSafetyError, match="shares no variable"):
        check_read_only(asked(f"?s <urn:p> ?o . {group} ?far ?by ?away . ?one ?is ?two ."))


WORDS = """
?a ?b <urn:p> a . ; , { } ( ) [ ] _:x 'a' @en ^^ ^ / | * + 3 {} () [] (?a) VALUES BIND AS FILTER EXISTS NOT UNION
OPTIONAL MINUS GRAPH SELECT WHERE LIMIT GROUP BY COUNT
"""
PIECES = st.sampled_from(WORDS.split())


@settings(max_examples=1000, deadline=None)
@given(st.lists(PIECES, max_size=14).map(" ".join), st.lists(PIECES, max_size=5).map(" ".join))
def test_nothing_else_is_raised(group: str, tail: str) -> None:
    for query in (
        asked(group),
        asked(f"{{ {group} }} {tail}"),
        f"{asked(group)} {tail}",
        f"SELECT ?a {tail} {{ {group}",
    ):
        try:
            check_read_only(query)
        except SparqlSafetyError:
            continue
