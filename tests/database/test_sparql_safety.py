"""What a SPARQL query may do: what only reads passes, everything else is refused, and values are never read as text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.database.sparql.joins import MAX_JOINED
from kg_retrievers.database.sparql.safety import MAX_DEPTH, MAX_QUERY, READ_WORDS, check_read_only, written
from kg_retrievers.database.sparql.terms import STRING, Text, value_term, written_term
from kg_retrievers.errors import InvalidArgumentError, SparqlSafetyError

pyoxigraph = pytest.importorskip("pyoxigraph")

#: Queries that only read, and those that are refused, each with a pattern of the reason.
DATA = json.loads((Path(__file__).parent / "queries.json").read_text("utf-8"))["sparql"]


@pytest.mark.parametrize("query", DATA["harmless"])
def test_what_only_reads_passes(query: str) -> None:
    checked = check_read_only(query)
    text = written(checked, {}, 7)
    pyoxigraph.Store().query(text)  # it is SPARQL, and so is what is sent
    assert check_read_only(text).columns == checked.columns


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        *DATA["refused"],
        ("SELECT ?s { " + "?s ?p ?o . " * 301 + "}", "300 triples"),
        ("SELECT ?s { ?s ?p ?o " + ", ?o " * 301 + "}", "300 triples"),
        ("SELECT ?s { " + "{ ?s ?p ?o } " * 301 + "}", "300 triples"),
        ("SELECT ?s { ?s <urn:p>" + "/<urn:p>" * 301 + " ?o }", "300 triples"),
        ("SELECT ?s { ?s <urn:p> " + "[] , " * 150 + " [] }", "300 triples"),
        ("SELECT ?s { ?s ?p ?o FILTER(" + "1 + " * 501 + "1 = 2) }", "500 operators"),
        ("SELECT ?s { ?s <urn:p>" + "|<urn:p>" * 501 + " ?o }", "500 operators"),
        ("SELECT ?s " + "{ " * (MAX_DEPTH + 1), f"in {MAX_DEPTH} brackets"),
        ("SELECT ?s { ?s ?p ?o } #" + " " * MAX_QUERY, "characters"),
        ("SELECT ?s { " + "1 " * 2_001 + "}", "2000 words"),
    ],
)
def test_everything_else_is_refused(query: str, reason: str) -> None:
    with pytest.raises(SparqlSafetyError, match=reason):
        check_read_only(query)


WORDS = st.from_regex(r"[A-Za-z_]{1,12}", fullmatch=True)
PIECES = st.sampled_from(
    ["?s", "<urn:a>", "rdf:type", "'", '"', "#", "\n", "{", "}", "(", ")", ".", "SELECT", "WHERE", "SERVICE", "$x",
     "INSERT DATA", "<", ">", "\\u0027", "''' a", "LIMIT 3", "FILTER", "<http://a", "DROP ALL", "&&", "^^", "@en"]
)  # fmt: skip


@settings(max_examples=500)
@given(st.lists(st.one_of(PIECES, WORDS, st.text(max_size=3)), max_size=25).map(" ".join))
def test_no_text_passes_that_an_engine_reads_as_another_thing(text: str) -> None:
    """What passes holds only words that read, whichever way it is cut."""
    try:
        checked = check_read_only(f"SELECT ?s {{ ?s ?p ?o {text} }}")
    except SparqlSafetyError:
        return
    sent = written(checked, {}, 5)
    plain = re.sub(
        r"'''.*?'''|\"\"\".*?\"\"\"|'[^'\n]*'|\"[^\"\n]*\"|<[^<>\s]*>|\?\w+|[\w-]*:[\w:.%-]*|@[\w-]+", " ", sent
    )
    assert {word.lower() for word in re.findall(r"[^\W\d]\w*", plain)} <= READ_WORDS


@settings(max_examples=300)
@given(
    st.text(
        st.one_of(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), st.sampled_from("\\u0022'\"U"))
    )
)
def test_a_text_comes_back_as_it_was(text: str) -> None:
    kinds = [STRING, "@en", "urn:kind"]
    query = f"SELECT ?x {{ VALUES ?x {{ {' '.join(written_term(Text(text, kind)) for kind in kinds)} }} }}"
    assert "\\u" not in query.replace("\\u0075", "").replace("\\\\", "")
    assert [row[0].value for row in pyoxigraph.Store().query(query)] == [text] * 3
    before_tokens = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), query)  # as some engines do
    assert [row[0].value for row in pyoxigraph.Store().query(before_tokens)] == [text] * 3


def test_parameters_are_terms() -> None:
    query = "SELECT ?s { VALUES ?s { $a } ?s ?p ?o FILTER(?o IN ($a) && ?o > $n) }"
    checked = check_read_only(query, parameters={"a": [], "n": 1})
    assert checked.parameters == ("a", "n")
    terms = {"a": ["<urn:a>", '"} DROP ALL"'], "n": ["7"]}
    bound = '{ VALUES ?s { <urn:a> "} DROP ALL" } ?s ?p ?o FILTER(?o IN (<urn:a>, "} DROP ALL") && ?o > 7) }'
    assert written(checked, terms, 3) == f"SELECT ?s {bound} ORDER BY STR(?s) LIMIT 3 "
    with pytest.raises(InvalidArgumentError, match="stands for 2 terms where one is wanted"):
        written(checked, {**terms, "n": ["1", "2"]}, 3)


def test_a_parameter_touches_no_string() -> None:
    """Glued to `""`, the term of a number began a long string, behind which the text of another string was read."""
    hidden = "} SERVICE SILENT <http://127.0.0.1/> { ?s ?p ?o } } #"
    query = f'SELECT ?s {{ VALUES ?s {{ ""$n ""$n \'" {hidden}\' }} }}'
    checked = check_read_only(query, parameters={"n": 1})
    sent = written(checked, {"n": [written_term(value_term(1))]}, 9)
    assert {row[0].value for row in pyoxigraph.Store().query(sent)} == {"", "1", f'" {hidden}'}
    checked = check_read_only("SELECT?s{?s?p$n VALUES?p{$n$n}}", parameters={"n": 1})
    assert written(checked, {"n": ["1"]}, 3) == "SELECT?s{?s?p 1 VALUES?p{1 1}} ORDER BY STR(?s) LIMIT 3 "


# --- joins: parts that multiply each other are refused, whatever stands around them ----------------------------------

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
        check_read_only(f"SELECT ?x {{ <urn:x> ?x ?y {{ {group} }} }}")


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


def test_a_caller_deep_in_a_stack_may_ask_as_much() -> None:
    def called(depth: int) -> None:
        if depth:
            called(depth - 1)
        else:
            check_read_only(asked("?deep <urn:p> ?b . " * MAX_JOINED))

    called(600)


def test_as_much_may_be_joined_with_the_cache_of_the_parser() -> None:
    """Another library may turn it on, for the whole process."""
    query = asked("?a <urn:p> ?b . " * MAX_JOINED)
    code = f"""
import pyparsing
from kg_retrievers.database.sparql.safety import check_read_only
pyparsing.ParserElement.enable_packrat()
check_read_only({query!r})
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_items_of_a_collection_are_triples() -> None:
    half = MAX_JOINED // 2
    check_read_only(asked(f"?a ?p ({'?b ' * (half - 1)})"))
    for group in (f"?a ?p ({'?b ' * half})", f"?a ?p {'(' * 9}{'1 ' * half}{')' * 9}", f"({'[] ' * half})"):
        with pytest.raises(SparqlSafetyError, match=f"behind {MAX_JOINED} triples"):
            check_read_only(asked(group + " . ?a <urn:p> ?b"))


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
