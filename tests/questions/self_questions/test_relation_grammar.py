"""What names of relations say, and the words for what they lead to."""

from __future__ import annotations

import pytest

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.questions.self_questions.english import end_words, read_relation, type_noun, verb_of
from kg_retrievers.questions.self_questions.shapes import Names


@pytest.mark.parametrize(
    ("name", "form", "words"),
    [
        ("painted_by", "passive", "painted"),
        ("wasWrittenBy", "passive", "written"),
        ("release_year", "noun", "release year"),
        ("has_author", "noun", "author"),
        ("hasISBN", "noun", "ISBN"),
        ("in_language", "noun", "language"),
        ("is_a", "noun", "kind"),
        ("CAPITAL_OF", "noun of", "capital"),
        ("is part of", "noun of", "part"),
        ("locatedIn", "copula", "located in"),
        ("successor to", "copula", "successor to"),
        ("is_made_of", "copula", "made of"),
        ("WORKS_FOR", "verb", "for"),
        ("cites_statute", "noun", "statute"),
        ("depends_on_service", "verb", "on"),
        ("belongs_to_team", "verb", "to"),
        ("livesInCity", "verb", "in"),
        ("means_of_transport", "noun", "means of transport"),
        ("lists_no_items", "noun", "lists no items"),
        ("reads_from", "verb", "from"),
        ("presides over", "verb", "over"),
        ("hostedOn", "copula", "hosted on"),
        ("brought_against", "copula", "brought against"),
        ("joined in", "verb", "in"),
        ("labels_of", "noun of", "labels"),
        ("shares border with", "verb", "border with"),
        ("contains", "verb", ""),
        ("awards", "noun", "awards"),
        ("colonized", "verb", ""),
        ("starring", "verb", ""),
        ("building", "noun", "building"),
        ("people.person.place_of_birth", "noun", "place of birth"),
        ("/film/film/directed_by", "passive", "directed"),
        ("http://example.org/ns#birthPlace", "noun", "birth place"),
        ("https://example.org/prop/direct/P31/", "noun", "p31"),
        ("関係", "noun", "関係"),
        ("%", "noun", "%"),
    ],
)
def test_names_are_read(name: str, form: str, words: str) -> None:
    found = read_relation(name)
    assert (found.form, found.words) == (form, words)


@pytest.mark.parametrize(
    ("word", "base", "third", "past", "agent", "gerund"),
    [
        ("studied", "study", "studies", "studied", "studier", "studying"),
        ("plans", "plan", "plans", "planned", "planner", "planning"),
        ("created", "create", "creates", "created", "creator", "creating"),
        ("wrote", "write", "writes", "wrote", "writer", "writing"),
        ("died", "die", "dies", "died", "dier", "dying"),
        ("teaches", "teach", "teaches", "taught", "teacher", "teaching"),
        ("transferred", "transfer", "transfers", "transferred", "transferrer", "transferring"),
    ],
)
def test_forms_of_verbs(word: str, base: str, third: str, past: str, agent: str, gerund: str) -> None:
    verb = verb_of(word)
    assert verb is not None
    assert (verb.base, verb.third, verb.past, verb.agent, verb.gerund) == (base, third, past, agent, gerund)


@pytest.mark.parametrize(
    ("relation", "tails", "types", "kind", "noun"),
    [
        ("opened", ["1999", "2001-05-03", "3 May 2010", "1/2/2003", "1850"], [], "date", "date"),
        ("born", ["1 March 1901", "2 May 1920", "3 June 1931"], [], "date", "date"),
        ("length", ["84 m", "7 m", "12 m"], [], "unknown", "one"),
        ("height", ["17", "1,024", "-3.5", "40 %", "1e9"], [], "number", "number"),
        ("painted_by", ["Ann", "Bob", "Cid", "Dan", "Eve"], [], "person", "person"),
        ("teacher", ["Ann", "Bob", "Cid", "Dan", "Eve"], [], "person", "person"),
        ("likes", ["Ann", "Bob", "Cid", "Dan", "Eve"], [], "unknown", "one"),
        ("likes", ["Ann", "Bob", "Cid", "Dan", "Eve"], ["Person", "Painter"], "person", "painter"),
        ("likes", ["Oslo", "Rome", "Paris", "Lima", "Bern"], ["http://x.org/City"], "place", "city"),
        ("likes", ["Ann", "Bob", "Cid", "Dan", "Eve"], ["a sort of thing with a long name"], "thing", "thing"),
    ],
)
def test_ends_are_recognised(relation: str, tails: list[str], types: list[str], kind: str, noun: str) -> None:
    kinds = dict.fromkeys(tails, types) | {"elsewhere": ["Person"]}
    graph = KnowledgeGraph.from_triples([(f"h{tail}", relation, tail) for tail in tails], types=kinds)
    found = end_words(graph, label_of(0, False))
    assert (found.kind, found.noun) == (kind, noun)


def test_names_of_types() -> None:
    assert [type_noun(name) for name in ("Q5", "TVShow", "animated_film", "Film (1999)", "映画")] == [
        "q5",
        "tvshow",
        "animated film",
        "",
        "映画",
    ]


def test_relations_with_the_same_words_are_said_in_more() -> None:
    graph = KnowledgeGraph.from_triples([("a", "people.person.name", "b"), ("c", "film.film.name", "d")])
    names = Names(graph)
    assert [words.words for words in names.relation_words.values()] == ["people person name", "film name"]
