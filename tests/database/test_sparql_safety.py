"""What a SPARQL query may do: what only reads passes, everything else is refused, and values are never read as text."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.database.sparql.safety import MAX_DEPTH, MAX_QUERY, READ_WORDS, check_read_only, tokenize, written
from kg_retrievers.database.sparql.terms import STRING, Iri, Text, value_term, written_term
from kg_retrievers.errors import InvalidArgumentError, SparqlSafetyError

pyoxigraph = pytest.importorskip("pyoxigraph")

HARMLESS = [
    "SELECT ?s WHERE { ?s ?p ?o }",
    "select distinct ?s { ?s a <urn:a> ; rdfs:label 'insert data'@en, \"drop\" . } order by desc(?s) limit 3 offset 2",
    "PREFIX ex: <urn:x:> SELECT ?s (COUNT(?o) AS ?n) { ?s ex:p/^ex:q*|!ex:r ?o } GROUP BY ?s HAVING(?n > 1)",
    "ASK { ?s ?p '''load\n\"clear\"''' # service <http://x>\n }",
    "SELECT ?s { ?s ?p ?o FILTER(?o < 3 && ?o >= -1 || REGEX(STR(?o), 'a|b', 'i') && ?o IN (1, 2.5, 1e3, true)) }",
    "SELECT ?s { { ?s ?p ?o } UNION { ?o ?p ?s } MINUS { ?s a ?o } OPTIONAL { ?s ?p ?x } BIND(IF(?x, 1, 2) AS ?y) }",
    "SELECT ?s { VALUES (?s ?o) { (<urn:a> UNDEF) } GRAPH ?g { ?s ?p ?o } FILTER NOT EXISTS { ?s ?q xsd:integer } }",
    "SELECT ?s { { SELECT ?s { ?s ?p ?o } LIMIT 3 } FILTER(xsd:integer(?s) != 3) ?s ?p [ ?q _:b ] }",
    "SELECT (GROUP_CONCAT(?s; SEPARATOR=', ') AS ?all) { ?s ?p ?o } VALUES ?p { rdf:type }",
    "SELECT ?filme_über { ?filme_über <http://example.org/größe> 'a\\'b\\\\' }",
]


@pytest.mark.parametrize("query", HARMLESS)
def test_what_only_reads_passes(query: str) -> None:
    checked = check_read_only(query)
    text = written(checked, {}, 7)
    pyoxigraph.Store().query(text)  # it is SPARQL, and so is what is sent
    pyoxigraph.Store().query(written(checked, {}, 7, sort=False))
    assert check_read_only(text).columns == checked.columns


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("INSERT DATA { <urn:a> <urn:b> <urn:c> }", "Begin with SELECT"),
        ("DELETE WHERE { ?s ?p ?o }", "Begin with SELECT"),
        ("LOAD <http://localhost/x>", "Begin with SELECT"),
        ("CLEAR ALL", "Begin with SELECT"),
        ("PREFIX ex: <urn:x:> DROP GRAPH ex:a", "Begin with SELECT"),
        ("SELECT ?s { ?s ?p ?o } ; DROP ALL", "'DROP'"),
        ("SELECT ?s { ?s ?p ?o } SELECT ?x { ?x ?y ?z }", "cannot parse"),
        ("SELECT ?s { ?s ?p ?o } ASK { ?s ?p ?o }", "not known to only read"),
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "three terms of each triple"),
        ("DESCRIBE <urn:a>", r"Write SELECT \?relation"),
        ("SELECT ?s { SERVICE <http://localhost/sparql> { ?s ?p ?o } }", "Ask one endpoint"),
        ("SELECT ?s { service silent ?g { ?s ?p ?o } }", "Ask one endpoint"),
        ("SELECT ?s FROM <http://localhost/x> { ?s ?p ?o }", "Leave it out"),
        ("SELECT ?s FROM NAMED <http://localhost/x> { ?s ?p ?o }", "Leave it out"),
        ("BASE <http://localhost/> SELECT ?s { ?s ?p <x> }", "where SELECT or ASK|not absolute"),
        ("DEFINE get:soft 'soft' SELECT ?s { ?s ?p ?o }", "Begin with SELECT"),
        ("SELECT ?s { ?s <java:java.lang.Runtime> ?o }", "scheme 'java'"),
        ("PREFIX f: <java:java.lang.> SELECT ?s { ?s f:Runtime ?o }", "scheme 'java'"),
        ("SELECT ?s { ?s ?p ?o FILTER(bif:system(?o)) }", "not declared"),
        ("SELECT ?s { ?s ?p ?o FILTER(<http://example.org/run>(?o)) }", "call of a function"),
        ("PREFIX ex: <urn:x:> SELECT ?s { ?s ?p ?o FILTER(ex:run (?o)) }", "call of a function"),
        ("SELECT ?s { ?s ?p ?o BIND(UUID() AS ?x) }", "not known to only read"),
        ("SELECT ?s { ?s ?p ?o LATERAL { ?s ?q ?r } }", "not known to only read"),
        ("SELECT * { ?s ?p ?o }", "Name them"),
        ("SELECT { ?s ?p ?o }", "cannot parse"),
        ("SELECT ?s { ?s ?p $o }", "parameter that is not given"),
        ("SELECT ?s { ?s ?p 'a\\u0027 } INSERT DATA { ' }", "engines read at different times"),
        ("SELECT ?s { ?s ?p ?o FILTER(?s <?o&&?o> 1) }", "blanks on both sides"),
        ("SELECT ?s { ?s ?p <='a> . SERVICE <http://127.0.0.1/> { ?s ?p ?o } } #' }", "blanks on both sides"),
        ("SELECT ?s { ?s ?p ?o FILTER(?o <=?p&&?s> 1) }", "blanks on both sides"),
        ("SELECT ?s { << ?s ?p ?o >> ?q ?r }", "statement about a statement"),
        ("SELECT ?s { ?s ?p ?o {| ?q ?r |} }", "statement about a statement"),
        ("SELECT ?s { ?s ?p 'a", "does not end"),
        ("SELECT ?s { ?s ?p 'a\nb' }", "does not end"),
        ("SELECT ?s { ?s ?p ?o", "cannot parse"),
        ("SELECT ?s { ?s ?p ?o ) }", "cannot parse"),
        ("SELECT ?s ?s ?p ?o", "cannot parse"),
        ("SELECT ?s { ?s ?p ?o } LIMIT 99999999", "from 0 to 1000000"),
        ("SELECT ?s { ?s ?p ?o } OFFSET 1001", "from 0 to 1000"),
        ("SELECT ?s { ?s ?p ?o } LIMIT", "from 0 to 1000000"),
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
        ("PREFIX SELECT ?s { ?s ?p ?o }", "where SELECT or ASK"),
        ("PREFIX", "where SELECT or ASK"),
        ("", "where SELECT or ASK"),
        ("SELECT ?s { ?s ?p 'a\0' }", "cannot be sent"),
        ("SELECT ?s { ?s ?p ?o } ÀSK", "not known to only read"),
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
