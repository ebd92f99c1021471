"""What a SPARQL query may do: what only reads passes, everything else is refused, and values are never read as text."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.database.sparql.safety import MAX_DEPTH, MAX_QUERY, READ_WORDS, check_read_only, written
from kg_retrievers.database.sparql.terms import STRING, Iri, Text, value_term, written_term
from kg_retrievers.database.sparql.tokens import tokenize
from kg_retrievers.errors import InvalidArgumentError, SparqlSafetyError

pyoxigraph = pytest.importorskip("pyoxigraph")

#: Queries that only read, and those that are refused, each with a pattern of the reason.
DATA = json.loads((Path(__file__).parent / "queries.json").read_text("utf-8"))["sparql"]


@pytest.mark.parametrize("query", DATA["harmless"])
def test_what_only_reads_passes(query: str) -> None:
    checked = check_read_only(query)
    text = written(checked, {}, 7)
    pyoxigraph.Store().query(text)  # it is SPARQL, and so is what is sent
    pyoxigraph.Store().query(written(checked, {}, 7, sort=False))
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


@given(WORDS)
def test_any_other_word_is_refused(word: str) -> None:
    if word.lower() not in READ_WORDS:
        for query in (f"SELECT ?s {{ ?s ?p ?o {word} }}", f"{word} {{ ?s ?p ?o }}", f"SELECT ?s {{ ?s ?p ?o }} {word}"):
            with pytest.raises(SparqlSafetyError):
                check_read_only(query)


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


def test_a_list_is_no_join() -> None:
    check_read_only(f"SELECT ?s {{ ?s ?p ?o FILTER(?o IN ({', '.join('1' * 900)})) }}")


def test_parameters_are_terms() -> None:
    query = "SELECT ?s { VALUES ?s { $a } ?s ?p ?o FILTER(?o IN ($a) && ?o > $n) }"
    checked = check_read_only(query, parameters={"a": [], "n": 1})
    assert checked.parameters == ("a", "n")
    terms = {"a": ["<urn:a>", '"} DROP ALL"'], "n": ["7"]}
    bound = '{ VALUES ?s { <urn:a> "} DROP ALL" } ?s ?p ?o FILTER(?o IN (<urn:a>, "} DROP ALL") && ?o > 7) }'
    assert written(checked, terms, 3, sort=False) == f"SELECT ?s {bound} LIMIT 3 "
    with pytest.raises(InvalidArgumentError, match="stands for 2 terms where one is wanted"):
        written(checked, {**terms, "n": ["1", "2"]}, 3)


def test_a_parameter_touches_no_string() -> None:
    """Glued to `""`, the term of a number began a long string, behind which the text of another string was read."""
    hidden = "} SERVICE SILENT <http://127.0.0.1/> { ?s ?p ?o } } #"
    query = f'SELECT ?s {{ VALUES ?s {{ ""$n ""$n \'" {hidden}\' }} }}'
    checked = check_read_only(query, parameters={"n": 1})
    sent = written(checked, {"n": [written_term(value_term(1))]}, 9, sort=False)
    assert {row[0].value for row in pyoxigraph.Store().query(sent)} == {"", "1", f'" {hidden}'}
    checked = check_read_only("ASK{?s?p$n VALUES?p{$n$n}}", parameters={"n": 1})
    assert written(checked, {"n": ["1"]}, 3) == "ASK{?s?p 1 VALUES?p{1 1}}"


def test_time_is_linear() -> None:
    choose = random.Random(0)
    pieces = ["'" * 3, "<urn:", "a" * 9, "((", "?x", "\\", '"', "#", "::", "..", "%"]
    for _ in range(60):
        text = "".join(choose.choice(pieces) for _ in range(3)) * 4_000
        try:
            tokenize(f"SELECT ?s {{ {text} }}")
        except SparqlSafetyError:
            continue


def test_an_iri_is_written_whole() -> None:
    assert written_term(Iri("http://example.org/größe?a=1")) == "<http://example.org/größe?a=1>"
